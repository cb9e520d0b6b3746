//! A credential is presented about each subject up to the limit, whatever the epoch.
//! Presentations about one subject reveal nothing about another.

use crate::properties::town::{Device, Town};
use crate::support::{Ledger, NOTHING, at};
use alpheus_anonymous_credential::error::{HolderError, VerifierError};
use alpheus_anonymous_credential::holder::{Holder, OutboundMessage, forget_before};
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, SessionId, TagId};
use alpheus_anonymous_credential::schedule::Period;
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_crypto::hash::Digest;
use std::collections::BTreeSet;

const QUOTA: u32 = 3;

fn subject(town: &Town, name: u8, quota: u32) -> Subject {
    let limit = Limit::try_from(quota).unwrap();
    Subject::new(&town.pinned(), &Digest([name; 32]), limit, Period(7))
}

/// The first subject, in the next period.
fn next_subject(town: &Town) -> Subject {
    let limit = Limit::try_from(QUOTA).unwrap();
    Subject::new(&town.pinned(), &Digest([1; 32]), limit, Period(8))
}

/// Presents once, from the device's records.
fn present(town: &mut Town, device: &mut Device, about: &Subject) -> Result<Vec<u8>, HolderError> {
    let mut open = device.holder.for_subject(about.clone(), &device.store)?;
    let expected = open.next_tag()?;
    let bytes = open.present(&NOTHING, &mut town.rng)?.commit(&mut device.store).unwrap();
    assert_eq!(Login::from_bytes(&bytes, about.limit()).unwrap().tag, expected);
    Ok(bytes)
}

fn verify(town: &Town, about: &Subject, bytes: &[u8]) -> Result<TagId, VerifierError> {
    let login = Login::from_bytes(bytes, about.limit())?;
    let verdict = town.service.verifier.verify_for_subject(about, vec![login]).pop().unwrap();
    verdict.map(|proven| proven.name(about))
}

#[test]
fn a_fourth_presentation_under_a_quota_of_three_has_a_spent_tag() {
    let mut town = Town::new(1, 90);
    let mut ada = town.device(b"ada");
    let mut copy = town.copy(&ada);
    let about = subject(&town, 1, QUOTA);
    let mut tags = BTreeSet::new();
    for left in (0..QUOTA).rev() {
        let shown = present(&mut town, &mut ada, &about).unwrap();
        assert!(tags.insert(verify(&town, &about, &shown).unwrap()));
        let open = ada.holder.for_subject(about.clone(), &ada.store).unwrap();
        assert_eq!(open.left(), left);
    }
    assert_eq!(present(&mut town, &mut ada, &about).err(), Some(HolderError::Burnt));
    // A holder that forgets its presentations presents the same tags again.
    for _ in 0..QUOTA {
        let shown = present(&mut town, &mut copy, &about).unwrap();
        assert!(!tags.insert(verify(&town, &about, &shown).unwrap()));
    }
    // Another holder's tags differ.
    let mut bob = town.device(b"bob");
    let shown = present(&mut town, &mut bob, &about).unwrap();
    assert!(tags.insert(verify(&town, &about, &shown).unwrap()));
}

#[test]
fn a_presentation_is_valid_for_one_subject_and_one_limit() {
    let mut town = Town::new(1, 91);
    let mut ada = town.device(b"ada");
    let (one, two) = (subject(&town, 1, QUOTA), subject(&town, 2, QUOTA));
    let shown = present(&mut town, &mut ada, &one).unwrap();
    assert!(verify(&town, &one, &shown).is_ok());
    assert_eq!(verify(&town, &two, &shown), Err(VerifierError::Proof));
    // Three bits as well, but another limit.
    assert_eq!(verify(&town, &subject(&town, 1, 4), &shown), Err(VerifierError::Proof));
    let tags = |about: &Subject, device: &Device| {
        device.holder.for_subject(about.clone(), &device.store).unwrap().next_tag().unwrap()
    };
    let again = town.copy(&ada);
    assert_ne!(tags(&one, &again), tags(&two, &again));
    let late = Subject::new(&town.pinned(), &Digest([1; 32]), one.limit(), Period(8));
    let other = ada.holder.for_subject(late, &ada.store).err();
    assert_eq!(other, Some(HolderError::OtherPeriod));
}

/// The names of a subject's tags do not depend on its period, and the key verifies credentials of
/// every period: only the epoch says that a presentation counts in this one.
#[test]
fn a_credential_of_another_period_gives_no_more_presentations() {
    let mut town = Town::new(1, 93);
    let mut next = town.early_device(b"ada");
    let (now, later) = (subject(&town, 1, QUOTA), next_subject(&town));
    let shown = present(&mut town, &mut next, &later).unwrap();
    assert!(verify(&town, &later, &shown).is_ok());
    assert_eq!(verify(&town, &now, &shown), Err(VerifierError::Epoch));
}

#[test]
fn presentations_survive_a_restart_and_are_deleted_with_their_period() {
    let mut town = Town::new(1, 92);
    let mut ada = town.device(b"ada");
    let about = subject(&town, 1, QUOTA);
    present(&mut town, &mut ada, &about).unwrap();
    let back = Holder::restore(town.pinned(), ada.holder.period(), &ada.store).unwrap().unwrap();
    assert_eq!(back.for_subject(about.clone(), &ada.store).unwrap().left(), QUOTA - 1);
    // A login in the epoch is independent of it.
    let which = alpheus_anonymous_credential::holder::Timing::Running;
    assert!(town.present(&mut ada, which, at(1)).is_ok());
    let mut store: Ledger = ada.store.clone();
    store.insert([b"about".as_slice(), &[0; 8]].concat(), vec![1]);
    assert!(back.for_subject(about.clone(), &store).is_ok(), "another period's");
    let damaged = ada.store.iter().find(|(key, _)| key.starts_with(b"about")).unwrap();
    let mut store = ada.store.clone();
    store.insert(damaged.0.clone(), vec![1; 7]);
    assert_eq!(back.for_subject(about, &store).err(), Some(HolderError::Damaged));
    forget_before(Period(8), &ada.store.clone()).commit(&mut ada.store).unwrap();
    assert!(ada.store.keys().all(|key| !key.starts_with(b"about")));
}

/// Both are of one credential, with one limit, and neither can replace the other.
#[test]
fn a_presentation_is_no_login_and_a_login_no_presentation() {
    let mut town = Town::new(QUOTA, 94);
    let mut ada = town.device(b"ada");
    let about = subject(&town, 1, QUOTA);
    let shown = present(&mut town, &mut ada, &about).unwrap();
    let which = alpheus_anonymous_credential::holder::Timing::Running;
    let login = town.present(&mut ada, which, at(1)).unwrap();
    assert_eq!(shown.len(), login.bytes.len());
    assert_eq!(verify(&town, &about, &login.bytes), Err(VerifierError::Proof));
    let epoch = login.epoch;
    let tag = Login::from_bytes(&shown, about.limit()).unwrap().tag;
    let session = SessionId(TagId::of(&town.service.pinned.fingerprint(), epoch, &tag));
    let as_login = OutboundMessage { session, epoch, bytes: shown.clone() };
    assert!(town.log_in(&as_login, at(1)).is_err());
    // Each is valid for its own purpose.
    assert!(verify(&town, &about, &shown).is_ok() && town.log_in(&login, at(1)).is_ok());
}
