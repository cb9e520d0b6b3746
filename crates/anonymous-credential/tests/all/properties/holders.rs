//! A holder burns durably before it sends, never proves again what it sent, and accepts a
//! context from nobody.

use crate::properties::town::Town;
use crate::support::{Ledger, NOTHING, START, at, configuration, pin};
use alpheus_anonymous_credential::configuration::{
    Configuration, OtherConfigurationError, PinnedConfiguration,
};
use alpheus_anonymous_credential::error::{ConfigurationError, HolderError};
use alpheus_anonymous_credential::holder::{Holder, PendingRequest, Timing, forget_before};
use alpheus_anonymous_credential::issuer::Applicant;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::schedule::Schedule;
use alpheus_crypto::ledger::FailingLedger;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Signed, SignedMessageError};

#[test]
fn a_presentation_is_burnt_first_and_resent_byte_for_byte() {
    let mut town = Town::new(1, 40);
    let mut device = town.device(b"ada");
    let compared = town.compared();
    // The store breaks. Nothing is released, and the index is not used again.
    let holder = &mut device.holder;
    let step = holder.log_in(Timing::Running, &compared, &NOTHING, at(1), &mut town.rng).unwrap();
    assert!(step.commit(&mut FailingLedger).is_err());
    assert!(holder.resend(START).unwrap().commit(&mut FailingLedger).is_err());
    let again = holder.log_in(Timing::Running, &compared, &NOTHING, at(1), &mut town.rng);
    assert_eq!(again.err(), Some(HolderError::Burnt));
    // A crash then: nothing was stored or sent, so the presentation is a fresh one.
    let restore = |store: &Ledger| Holder::restore(town.pinned(), device.holder.period(), store);
    device.holder = restore(&device.store).unwrap().unwrap();
    let sent = town.present(&mut device, Timing::Running, at(1)).unwrap();
    // A crash after the commit: the index is burnt, and the bytes are the same.
    let restored = Holder::restore(town.pinned(), device.holder.period(), &device.store);
    device.holder = restored.unwrap().unwrap();
    assert_eq!(town.present(&mut device, Timing::Running, at(1)), Err(HolderError::Burnt));
    let resent = device.holder.resend(START).unwrap().commit(&mut device.store).unwrap();
    assert_eq!(resent, sent);
    town.log_in(&resent, at(1)).unwrap();
    // A re-up burns its epoch, too.
    let sent = town.carry(&mut device, at(13)).unwrap();
    let restored = Holder::restore(town.pinned(), device.holder.period(), &device.store);
    device.holder = restored.unwrap().unwrap();
    assert_eq!(town.present(&mut device, Timing::Next, at(13)), Err(HolderError::Burnt));
    let resent = device.holder.resend(START.next()).unwrap().commit(&mut device.store).unwrap();
    assert_eq!(resent, sent);
}

#[test]
fn a_request_outlives_a_crash() {
    let mut town = Town::new(1, 41);
    let (pinned, mut store) = (town.pinned(), Ledger::new());
    let begin =
        PendingRequest::begin(pinned.clone(), b"ada", Timing::Running, at(0), &mut town.rng);
    let pending = begin.unwrap().commit(&mut store).unwrap();
    let answer = town
        .service
        .issuer
        .issue(Applicant::named(b"ada"), &pending.bytes(), at(0), &mut town.rng)
        .unwrap();
    let answer = answer.commit(&mut town.service.books).unwrap();
    let period = pending.period();
    drop(pending);
    let pending = PendingRequest::restore(pinned.clone(), period, &store).unwrap().unwrap();
    pending.finish(&answer).unwrap().commit(&mut store).unwrap();
    assert!(PendingRequest::restore(pinned.clone(), period, &store).unwrap().is_none());
    assert!(Holder::restore(pinned.clone(), period, &store).unwrap().is_some());
    store.values_mut().for_each(|value| value.truncate(value.len() - 1));
    assert!(Holder::restore(pinned, period, &store).is_err());
}

#[test]
fn a_clock_that_goes_back_presents_nothing() {
    let mut town = Town::new(1, 42);
    let mut device = town.device(b"ada");
    town.present(&mut device, Timing::Running, at(46)).unwrap();
    device.holder.prune().commit(&mut device.store).unwrap();
    for which in [Timing::Running, Timing::Next] {
        assert_eq!(town.present(&mut device, which, at(28)), Err(HolderError::ClockStepped));
    }
    assert_eq!(town.carry(&mut device, at(28)), Err(HolderError::ClockStepped));
}

/// To recognise one holder later, a gateway would need a context for this holder alone: another
/// epoch length, incarnation or limit, or another key.
#[test]
fn no_gateway_chooses_a_context() {
    let mut town = Town::new(1, 43);
    let mut device = town.device(b"ada");
    let pinned = town.pinned();
    let key = IssuerKey::random(&mut town.rng).unwrap();
    let own = *pinned;
    let schedule = Schedule { start: alpheus_time::Timestamp(1), ..own.schedule };
    for other in [
        Configuration { incarnation: 2, ..own },
        Configuration { limit: Limit::try_from(2).unwrap(), ..own },
        Configuration { schedule, ..own },
        Configuration { tier: 2, ..own },
        Configuration { kind: 2, ..own },
        Configuration { deployment: [2; 32], ..own },
        configuration(&key, Limit::ONE),
    ] {
        // It signs a configuration for this holder alone ...
        let mallory = SigningKey::from_seed(&Secret::from_bytes([4; 32]));
        let operator = SigningKey::from_seed(&Secret::from_bytes([3; 32])).verifying_key();
        let opened = PinnedConfiguration::open(&Signed::new(&other, &mallory), &operator);
        let refused = Some(ConfigurationError::Signature(SignedMessageError::Signature));
        assert_eq!(opened.err(), refused);
        // ... or has the operator sign it. Then it differs from what the other holders pinned.
        let targeted = pin(&other).unwrap();
        let heard = targeted.fingerprint();
        assert_eq!(pinned.compare(&heard).err(), Some(OtherConfigurationError));
        let compared = targeted.compare(&heard).unwrap();
        let rng = &mut town.rng;
        let shown = device.holder.log_in(Timing::Running, &compared, &NOTHING, at(1), rng);
        assert_eq!(shown.err(), Some(HolderError::OtherConfiguration));
    }
    town.present(&mut device, Timing::Running, at(1)).unwrap();
}

/// The session was carried on, and the device crashed before the acknowledgement. After its
/// restart it resends the re-up.
#[test]
fn after_a_restart_the_re_up_is_resent_and_not_the_login() {
    let (mut town, mut device, session) = crate::properties::town::logged_in(47);
    let begun = device.holder.resend(START).unwrap().commit(&mut Ledger::new()).unwrap();
    let latest = |device: &crate::properties::town::Device, seconds| {
        let latest = device.holder.resend_latest(START, at(seconds)).unwrap();
        latest.commit(&mut Ledger::new()).unwrap()
    };
    assert_eq!(latest(&device, 13), begun, "it was not carried on");
    assert!(!begun.is_re_up());
    let carried = town.carry(&mut device, at(13)).unwrap();
    town.re_up(&carried, None, at(13)).unwrap();
    assert_eq!(latest(&device, 14), carried);
    assert!(carried.is_re_up() && carried.session == session);
    // Before the next epoch opens nobody would accept the re-up.
    assert_eq!(latest(&device, 11), begun);
}

/// A thief who takes the file later does not find earlier presentations with it.
#[test]
fn records_of_past_periods_are_deleted() {
    let mut town = Town::new(1, 48);
    let mut device = town.device(b"ada");
    town.present(&mut device, Timing::Running, at(1)).unwrap();
    let period = device.holder.period();
    let waiting = PendingRequest::begin(town.pinned(), b"ada", Timing::Next, at(1), &mut town.rng);
    waiting.unwrap().commit(&mut device.store).unwrap();
    let all = device.store.clone();
    forget_before(period, &device.store.clone()).commit(&mut device.store).unwrap();
    assert_eq!(device.store, all);
    let next = alpheus_anonymous_credential::schedule::Period(period.0 + 1);
    forget_before(next, &device.store.clone()).commit(&mut device.store).unwrap();
    assert!(device.store.keys().all(|key| key.starts_with(b"request")), "what waits, waits");
    assert_eq!(device.store.len(), 1);
}
