//! Checks that only an unusual caller or message meets, each missed when it is taken away.

use crate::properties::codes::Gate;
use crate::properties::town::{Town, rng};
use crate::support::{Ledger, NOTHING, START, at, configuration, pin};
use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::error::{HolderError, IssuerError, MessageError, VerifierError};
use alpheus_anonymous_credential::holder::{PendingRequest, Timing};
use alpheus_anonymous_credential::issuer::{Applicant, Issuer};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, Logout, ReUp, SessionId, TagId};
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_anonymous_credential::sessions::codes::{CodeLookUp, code_tags};
use alpheus_anonymous_credential::sessions::peers::HoldRequest;
use alpheus_anonymous_credential::sessions::{ReUpLookUp, Shard};
use alpheus_anonymous_credential::verifier::verify_re_ups;
use alpheus_crypto::hash::Digest;

const SCAN: Digest = Digest([5; 32]);

#[test]
fn an_issuer_needs_the_key_of_its_configuration() {
    let mut rng = rng(160);
    let pinned = pin(&configuration(&IssuerKey::random(&mut rng).unwrap(), Limit::ONE)).unwrap();
    let other = IssuerKey::random(&mut rng).unwrap();
    let refused = Issuer::restore(other, pinned, [], StateOrigin::New, at(0)).err();
    assert_eq!(refused, Some(IssuerError::OtherKey));
}

/// A registrar checks all requests of an account before it answers one.
#[test]
fn a_restored_issuer_says_beforehand_what_it_would_not_issue() {
    let mut rng = rng(161);
    let key = IssuerKey::random(&mut rng).unwrap();
    let pinned = pin(&configuration(&key, Limit::ONE)).unwrap();
    let step = PendingRequest::begin(pinned.clone(), b"ada", Timing::Running, at(0), &mut rng);
    let asks = step.unwrap().commit(&mut Ledger::new()).unwrap().bytes();
    let issuer = Issuer::restore(key, pinned, [], StateOrigin::Restored, at(0)).unwrap();
    let issuer = issuer.commit(&mut Ledger::new()).unwrap();
    let checked = issuer.check(Applicant::named(b"ada"), &asks, at(0));
    assert_eq!(checked, Err(IssuerError::MayHaveForgotten));
}

/// A copy of the pass has logged in for the next epoch: the session's tag there is spent.
#[test]
fn a_re_up_on_one_shard_needs_a_free_tag() {
    let mut town = Town::new(1, 162);
    let mut ada = town.device(b"ada");
    let mut copy = town.copy(&ada);
    let service = |town: &mut Town, sent: &_| town.service.log_in(sent, at(14)).unwrap();
    let sent = town.present(&mut ada, Timing::Running, at(14)).unwrap();
    service(&mut town, &sent);
    let ahead = town.present(&mut copy, Timing::Next, at(14)).unwrap();
    service(&mut town, &ahead);
    let sent = town.carry(&mut ada, at(14)).unwrap();
    let re_up = ReUp::from_bytes(&sent.bytes).unwrap();
    let shard = &mut town.service.shard;
    let Ok(ReUpLookUp::Due(due)) = shard.look_up_re_up(re_up, at(14)) else { panic!("it is due") };
    let proven = verify_re_ups(&town.service.pinned, vec![due]).pop().unwrap().unwrap();
    assert_eq!(shard.re_up_here(proven, at(14)).err(), Some(VerifierError::Spent));
}

/// Another shard holds the next tag for a session of its own. And the tag with which a session began is no
/// re-up that came before, no matter who says so.
#[test]
fn a_re_up_takes_no_tag_of_another_session_and_is_no_login() {
    let mut town = Town::new(1, 165);
    let mut ada = town.device(b"ada");
    let sent = town.present(&mut ada, Timing::Running, at(14)).unwrap();
    let session = town.service.log_in(&sent, at(14)).unwrap().session;
    let tag = Login::from_bytes(&sent.bytes, Limit::ONE).unwrap().tag;
    let again = ReUp { epoch: START, session, tag, proof: Vec::new() };
    let refused = town.service.shard.look_up_re_up(again, at(14)).err();
    assert_eq!(refused, Some(VerifierError::NotCurrent));
    let sent = town.carry(&mut ada, at(14)).unwrap();
    let re_up = ReUp::from_bytes(&sent.bytes).unwrap();
    let (shard, ledger) = (&mut town.service.shard, &mut town.service.ledger);
    let Ok(ReUpLookUp::Due(due)) = shard.look_up_re_up(re_up, at(14)) else { panic!("it is due") };
    let proven = verify_re_ups(&town.service.pinned, vec![due]).pop().unwrap().unwrap();
    let own = proven.hold_request(&town.service.pinned);
    let other = HoldRequest { session: SessionId(TagId(Digest([7; 32]))), ..own };
    shard.hold_for_peer(other, at(14)).unwrap().commit(ledger).unwrap();
    assert_eq!(shard.re_up_here(proven, at(14)).err(), Some(VerifierError::Spent));
}

/// A gateway that asks again learns that the session has ended.
#[test]
fn an_ended_session_has_no_status() {
    let mut town = Town::new(1, 163);
    let mut ada = town.device(b"ada");
    let sent = town.present(&mut ada, Timing::Running, at(1)).unwrap();
    let session = town.service.log_in(&sent, at(1)).unwrap().session;
    assert!(town.service.shard.status(session).is_ok());
    let logout = ada.holder.log_out(session).unwrap();
    town.service.shard.log_out(&logout).unwrap().commit(&mut town.service.ledger).unwrap();
    assert_eq!(town.service.shard.status(session).err(), Some(VerifierError::Ended));
    // A longer message is none, though its signature holds.
    let long = [logout.to_bytes(), vec![0]].concat();
    assert_eq!(Logout::from_bytes(&long).err(), Some(MessageError::Length));
}

#[test]
fn a_deployment_without_codes_looks_none_up() {
    let mut gate = Gate::new(164).unwrap();
    let code = gate.code(at(1)).unwrap();
    let key = IssuerKey::random(&mut gate.rng).unwrap();
    let pinned = pin(&configuration(&key, Limit::ONE)).unwrap();
    let shard = Shard::restore(pinned, [], StateOrigin::New, at(0)).unwrap();
    let shard = shard.commit(&mut Ledger::new()).unwrap();
    let refused = shard.look_up_code(code.clone(), &SCAN, at(1)).err();
    assert_eq!(refused, Some(VerifierError::NoCodes));
    let long = [code.to_bytes(), vec![0; 127]].concat();
    assert_eq!(Code::from_bytes(&long).err(), Some(MessageError::Length));
}

/// A gate whose scan was rejected and made void asks about it again.
#[test]
fn a_void_scan_is_not_looked_up_again() {
    let mut gate = Gate::new(165).unwrap();
    let code = gate.code(at(1)).unwrap();
    let tags = code_tags(&gate.pinned, &code, &SCAN);
    let (shard, ledger) = &mut gate.shards[Gate::shard_of(&tags[0])];
    let _ = shard.void_scan(&tags, &SCAN, at(1)).unwrap().commit(ledger).unwrap();
    let again = shard.look_up_code(code.clone(), &SCAN, at(1)).err();
    assert_eq!(again, Some(VerifierError::Spent));
    let other = shard.look_up_code(code, &Digest([6; 32]), at(1));
    assert!(matches!(other, Ok(CodeLookUp::Unspent(_))));
}

/// A tag that a peer asks to hold for a code is of an epoch that codes reach, and that this shard has not
/// forgotten.
#[test]
fn a_tag_is_held_for_a_code_in_its_time_only() {
    let gate = Gate::new(166).unwrap();
    let request = |epoch: u64| {
        let (tag, session) = (TagId(Digest([1; 32])), SessionId(TagId(Digest([2; 32]))));
        HoldRequest { epoch: Epoch(epoch), tag, session }
    };
    let held = |origin, epoch| {
        let shard = Shard::restore(gate.pinned.clone(), [], origin, at(1)).unwrap();
        let mut shard = shard.commit(&mut Ledger::new()).unwrap();
        shard.hold_for_code(request(epoch), at(1)).map(drop)
    };
    let new = |epoch| held(StateOrigin::New, epoch);
    assert_eq!((new(START.0), new(START.0 + 3)), (Ok(()), Ok(())));
    assert_eq!(new(START.0 + 10), Err(VerifierError::Epoch));
    assert_eq!(new(START.0 - 1), Err(VerifierError::Epoch));
    let forgotten = held(StateOrigin::Restored, START.0);
    assert_eq!(forgotten, Err(VerifierError::MayHaveForgotten));
}

/// The same for a session's next tag. A shard that may have forgotten the tag's login would hold it
/// for a second session of the pass.
#[test]
fn a_tag_is_held_for_a_session_in_its_time_only() {
    let gate = Gate::new(170).unwrap();
    let held = |origin, epoch| {
        let shard = Shard::restore(gate.pinned.clone(), [], origin, at(1)).unwrap();
        let mut shard = shard.commit(&mut Ledger::new()).unwrap();
        let (tag, session) = (TagId(Digest([1; 32])), SessionId(TagId(Digest([2; 32]))));
        let request = HoldRequest { epoch: Epoch(epoch), tag, session };
        shard.hold_for_peer(request, at(1)).map(drop)
    };
    let results = [
        held(StateOrigin::New, START.0 - 1),
        held(StateOrigin::New, START.0),
        held(StateOrigin::New, START.0 + 1),
        held(StateOrigin::Restored, START.0),
    ];
    let (early, forgotten) = (VerifierError::Epoch, VerifierError::MayHaveForgotten);
    assert_eq!(results, [Err(early), Ok(()), Err(early), Err(forgotten)]);
}

#[test]
fn a_code_is_of_a_pass_of_its_own_period_and_configuration() {
    let mut gate = Gate::new(167).unwrap();
    let other = Gate::new(168).unwrap().pinned;
    let elsewhere = other.compare(&other.fingerprint()).unwrap();
    let mut holder = gate.copy(&gate.store);
    let refused = holder.code(&elsewhere, at(1), &mut gate.rng).err();
    assert_eq!(refused, Some(HolderError::OtherConfiguration));
    let tomorrow = at(5760 * 15 + 1);
    assert_eq!(gate.code(tomorrow).err(), Some(HolderError::OtherPeriod));
    // Nothing was burnt meanwhile.
    assert!(gate.code(at(1)).is_ok());
}

/// With more presentations in an epoch a code would spend one of them.
#[test]
fn a_credential_of_a_larger_limit_makes_no_code() {
    let mut rng = rng(169);
    let key = IssuerKey::random(&mut rng).unwrap();
    let mut settings = configuration(&key, Limit::try_from(2).unwrap());
    settings.schedule.ahead = 3;
    let pinned = pin(&settings).unwrap();
    let step = PendingRequest::begin(pinned.clone(), b"ada", Timing::Running, at(0), &mut rng);
    let asks = step.unwrap().commit(&mut Ledger::new()).unwrap();
    let issuer = Issuer::restore(key, pinned.clone(), [], StateOrigin::New, at(0)).unwrap();
    let mut issuer = issuer.commit(&mut Ledger::new()).unwrap();
    let answer = issuer.issue(Applicant::named(b"ada"), &asks.bytes(), at(0), &mut rng).unwrap();
    let answer = answer.commit(&mut Ledger::new()).unwrap();
    let mut holder = asks.finish(&answer).unwrap().commit(&mut Ledger::new()).unwrap();
    let compared = pinned.compare(&pinned.fingerprint()).unwrap();
    assert_eq!(holder.code(&compared, at(1), &mut rng).err(), Some(HolderError::LimitForbids));
    assert!(holder.log_in(Timing::Running, &compared, &NOTHING, at(1), &mut rng).is_ok());
}
