//! A holder burns durably before it sends, never proves again what it sent, and
//! takes its context from nobody.

use crate::support::{Ledger, NOTHING, START, at, configuration, pin};
use crate::town::{Broken, Town};
use alpheus_anonymous_credential::configuration::{Configuration, OtherConfiguration, Pinned};
use alpheus_anonymous_credential::error::{BadConfiguration, HolderRefused};
use alpheus_anonymous_credential::holder::{Holder, Requesting, Which, forget_before};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::schedule::Schedule;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::{Rejected, Signed};

#[test]
fn what_is_shown_is_burnt_first_and_sent_again_as_it_was() {
    let mut town = Town::new(1, 40);
    let mut device = town.device(b"ada");
    let compared = town.compared();
    // The store breaks: nothing comes out, and the index is not tried again.
    let holder = &mut device.holder;
    let step = holder.log_in(at(1), Which::Running, &compared, &NOTHING, &mut town.rng).unwrap();
    assert!(step.commit(&mut Broken).is_err());
    assert!(holder.resend(START).unwrap().commit(&mut Broken).is_err());
    let again = holder.log_in(at(1), Which::Running, &compared, &NOTHING, &mut town.rng);
    assert_eq!(again.err(), Some(HolderRefused::Burnt));
    // Killed then: nothing was stored, nothing was sent. A fresh showing it is.
    let restore = |store: &Ledger| Holder::restore(town.pinned(), device.holder.period(), store);
    device.holder = restore(&device.store).unwrap().unwrap();
    let sent = town.show(&mut device, at(1), Which::Running).unwrap();
    // Killed after the commit: burnt, and the same bytes.
    let restored = Holder::restore(town.pinned(), device.holder.period(), &device.store);
    device.holder = restored.unwrap().unwrap();
    assert_eq!(town.show(&mut device, at(1), Which::Running), Err(HolderRefused::Burnt));
    let resent = device.holder.resend(START).unwrap().commit(&mut device.store).unwrap();
    assert_eq!(resent, sent);
    town.log_in(at(1), &resent).unwrap();
    // A re-up burns its epoch as well.
    let sent = town.carry(&mut device, at(13)).unwrap();
    let restored = Holder::restore(town.pinned(), device.holder.period(), &device.store);
    device.holder = restored.unwrap().unwrap();
    assert_eq!(town.show(&mut device, at(13), Which::Next), Err(HolderRefused::Burnt));
    let resent = device.holder.resend(START.next()).unwrap().commit(&mut device.store).unwrap();
    assert_eq!(resent, sent);
}

#[test]
fn a_request_outlives_a_crash() {
    let mut town = Town::new(1, 41);
    let (pinned, mut store) = (town.pinned(), Ledger::new());
    let begin = Requesting::begin(pinned.clone(), b"ada", at(0), Which::Running, &mut town.rng);
    let asking = begin.unwrap().commit(&mut store).unwrap();
    let answer = town.service.issuer.issue(at(0), b"ada", &asking.bytes(), &mut town.rng).unwrap();
    let answer = answer.commit(&mut town.service.books).unwrap();
    let period = asking.period();
    drop(asking);
    let asking = Requesting::restore(pinned.clone(), period, &store).unwrap().unwrap();
    asking.finish(&answer).unwrap().commit(&mut store).unwrap();
    assert!(Requesting::restore(pinned.clone(), period, &store).unwrap().is_none());
    assert!(Holder::restore(pinned.clone(), period, &store).unwrap().is_some());
    store.values_mut().for_each(|value| value.truncate(value.len() - 1));
    assert!(Holder::restore(pinned, period, &store).is_err());
}

#[test]
fn a_clock_that_goes_back_shows_nothing() {
    let mut town = Town::new(1, 42);
    let mut device = town.device(b"ada");
    town.show(&mut device, at(46), Which::Running).unwrap();
    device.holder.prune().commit(&mut device.store).unwrap();
    for which in [Which::Running, Which::Next] {
        assert_eq!(town.show(&mut device, at(28), which), Err(HolderRefused::ClockStepped));
    }
    assert_eq!(town.carry(&mut device, at(28)), Err(HolderRefused::ClockStepped));
}

/// A gateway that wants to recognise one holder later needs a context of the
/// holder's own: another epoch length, incarnation or limit, or another key.
#[test]
fn no_gateway_names_a_context() {
    let mut town = Town::new(1, 43);
    let mut device = town.device(b"ada");
    let pinned = town.pinned();
    let key = IssuerKey::random(&mut town.rng).unwrap();
    let own = *pinned;
    let schedule =
        Schedule { start: alpheus_anonymous_credential::schedule::Time(1), ..own.schedule };
    for other in [
        Configuration { incarnation: 2, ..own },
        Configuration { limit: Limit::try_from(2).unwrap(), ..own },
        Configuration { schedule, ..own },
        Configuration { tier: 2, ..own },
        Configuration { kind: 2, ..own },
        Configuration { deployment: [2; 32], ..own },
        configuration(&key, Limit::ONE),
    ] {
        // It signs one for this holder alone ...
        let mallory = SigningKey::from_seed(&Secret::from_bytes([4; 32]));
        let operator = SigningKey::from_seed(&Secret::from_bytes([3; 32])).verifying_key();
        let opened = Pinned::open(&Signed::new(&other, &mallory), &operator);
        let refused = Some(BadConfiguration::Signature(Rejected::Signature));
        assert_eq!(opened.err(), refused);
        // ... or has the operator sign it: then what the holders pinned differs.
        let targeted = pin(&other).unwrap();
        let heard = targeted.fingerprint();
        assert_eq!(pinned.compare(&heard).err(), Some(OtherConfiguration));
        let compared = targeted.compare(&heard).unwrap();
        let rng = &mut town.rng;
        let shown = device.holder.log_in(at(1), Which::Running, &compared, &NOTHING, rng);
        assert_eq!(shown.err(), Some(HolderRefused::OtherConfiguration));
    }
    town.show(&mut device, at(1), Which::Running).unwrap();
}

/// It was carried on, and the acknowledgement was lost with the device that waited for
/// it: started again, it says what came last.
#[test]
fn what_was_carried_on_is_said_again_and_not_what_began_it() {
    let (mut town, mut device, session) = crate::town::logged_in(47);
    let begun = device.holder.resend(START).unwrap().commit(&mut Ledger::new()).unwrap();
    let latest = |device: &crate::town::Device, seconds| {
        let latest = device.holder.resend_latest(at(seconds), START).unwrap();
        latest.commit(&mut Ledger::new()).unwrap()
    };
    assert_eq!(latest(&device, 13), begun, "it was not carried on");
    assert!(!begun.is_re_up());
    let carried = town.carry(&mut device, at(13)).unwrap();
    town.re_up(at(13), &carried, None).unwrap();
    assert_eq!(latest(&device, 14), carried);
    assert!(carried.is_re_up() && carried.session == session);
    // Before the next epoch opens nobody would take it.
    assert_eq!(latest(&device, 11), begun);
}

/// Whoever takes the file later does not find what was shown with it long ago.
#[test]
fn periods_that_are_over_are_forgotten() {
    let mut town = Town::new(1, 48);
    let mut device = town.device(b"ada");
    town.show(&mut device, at(1), Which::Running).unwrap();
    let period = device.holder.period();
    let waiting = Requesting::begin(town.pinned(), b"ada", at(1), Which::Next, &mut town.rng);
    waiting.unwrap().commit(&mut device.store).unwrap();
    let all = device.store.clone();
    forget_before(period, &device.store.clone()).commit(&mut device.store).unwrap();
    assert_eq!(device.store, all);
    let next = alpheus_anonymous_credential::schedule::Period(period.0 + 1);
    forget_before(next, &device.store.clone()).commit(&mut device.store).unwrap();
    assert!(device.store.keys().all(|key| key.starts_with(b"request")), "what waits, waits");
    assert_eq!(device.store.len(), 1);
}
