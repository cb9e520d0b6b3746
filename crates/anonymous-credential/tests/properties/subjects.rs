//! A credential is shown about each subject so often and no more, whatever the epoch,
//! and what is shown about one subject says nothing about another.

use crate::support::{Ledger, NOTHING, at};
use crate::town::{Device, Town};
use alpheus_anonymous_credential::error::{HolderRefused, Refused};
use alpheus_anonymous_credential::holder::{Holder, Outgoing, forget_before};
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

/// Shows once, from what the device has stored.
fn show(town: &mut Town, device: &mut Device, about: &Subject) -> Result<Vec<u8>, HolderRefused> {
    let mut open = device.holder.about(about.clone(), &device.store)?;
    let expected = open.next_tag()?;
    let bytes = open.show(&NOTHING, &mut town.rng)?.commit(&mut device.store).unwrap();
    assert_eq!(Login::from_bytes(&bytes, about.limit()).unwrap().tag, expected);
    Ok(bytes)
}

fn verify(town: &Town, about: &Subject, bytes: &[u8]) -> Result<TagId, Refused> {
    let login = Login::from_bytes(bytes, about.limit())?;
    let verdict = town.service.verifier.verify_about(about, vec![login]).pop().unwrap();
    verdict.map(|proven| proven.name(about))
}

#[test]
fn a_fourth_showing_under_a_quota_of_three_is_a_tag_that_is_spent() {
    let mut town = Town::new(1, 90);
    let mut ada = town.device(b"ada");
    let mut copy = town.copy(&ada);
    let about = subject(&town, 1, QUOTA);
    let mut tags = BTreeSet::new();
    for left in (0..QUOTA).rev() {
        let shown = show(&mut town, &mut ada, &about).unwrap();
        assert!(tags.insert(verify(&town, &about, &shown).unwrap()));
        let open = ada.holder.about(about.clone(), &ada.store).unwrap();
        assert_eq!(open.left(), left);
    }
    assert_eq!(show(&mut town, &mut ada, &about).err(), Some(HolderRefused::Burnt));
    // Whoever forgets what it has shown shows the same tags again.
    for _ in 0..QUOTA {
        let shown = show(&mut town, &mut copy, &about).unwrap();
        assert!(!tags.insert(verify(&town, &about, &shown).unwrap()));
    }
    // Somebody else's are others.
    let mut bob = town.device(b"bob");
    let shown = show(&mut town, &mut bob, &about).unwrap();
    assert!(tags.insert(verify(&town, &about, &shown).unwrap()));
}

#[test]
fn a_showing_is_about_one_subject_under_one_limit() {
    let mut town = Town::new(1, 91);
    let mut ada = town.device(b"ada");
    let (one, two) = (subject(&town, 1, QUOTA), subject(&town, 2, QUOTA));
    let shown = show(&mut town, &mut ada, &one).unwrap();
    assert!(verify(&town, &one, &shown).is_ok());
    assert_eq!(verify(&town, &two, &shown), Err(Refused::Proof));
    // Three bits as well, but another limit.
    assert_eq!(verify(&town, &subject(&town, 1, 4), &shown), Err(Refused::Proof));
    let tags = |about: &Subject, device: &Device| {
        device.holder.about(about.clone(), &device.store).unwrap().next_tag().unwrap()
    };
    let again = town.copy(&ada);
    assert_ne!(tags(&one, &again), tags(&two, &again));
    let late = Subject::new(&town.pinned(), &Digest([1; 32]), one.limit(), Period(8));
    let other = ada.holder.about(late, &ada.store).err();
    assert_eq!(other, Some(HolderRefused::OtherPeriod));
}

#[test]
fn what_was_shown_is_known_after_a_restart_and_forgotten_with_its_period() {
    let mut town = Town::new(1, 92);
    let mut ada = town.device(b"ada");
    let about = subject(&town, 1, QUOTA);
    show(&mut town, &mut ada, &about).unwrap();
    let back = Holder::restore(town.pinned(), ada.holder.period(), &ada.store).unwrap().unwrap();
    assert_eq!(back.about(about.clone(), &ada.store).unwrap().left(), QUOTA - 1);
    // A login of the epoch has nothing to do with it.
    let which = alpheus_anonymous_credential::holder::Which::Running;
    assert!(town.show(&mut ada, at(1), which).is_ok());
    let mut store: Ledger = ada.store.clone();
    store.insert([b"about".as_slice(), &[0; 8]].concat(), vec![1]);
    assert!(back.about(about.clone(), &store).is_ok(), "another period's");
    let damaged = ada.store.iter().find(|(key, _)| key.starts_with(b"about")).unwrap();
    let mut store = ada.store.clone();
    store.insert(damaged.0.clone(), vec![1; 7]);
    assert_eq!(back.about(about, &store).err(), Some(HolderRefused::Damaged));
    forget_before(Period(8), &ada.store.clone()).commit(&mut ada.store).unwrap();
    assert!(ada.store.keys().all(|key| !key.starts_with(b"about")));
}

/// Of one credential, with one limit: neither serves as the other.
#[test]
fn a_showing_is_no_login_and_a_login_no_showing() {
    let mut town = Town::new(QUOTA, 94);
    let mut ada = town.device(b"ada");
    let about = subject(&town, 1, QUOTA);
    let shown = show(&mut town, &mut ada, &about).unwrap();
    let which = alpheus_anonymous_credential::holder::Which::Running;
    let login = town.show(&mut ada, at(1), which).unwrap();
    assert_eq!(shown.len(), login.bytes.len());
    assert_eq!(verify(&town, &about, &login.bytes), Err(Refused::Proof));
    let epoch = login.epoch;
    let tag = Login::from_bytes(&shown, about.limit()).unwrap().tag;
    let session = SessionId(TagId::of(&town.service.pinned.fingerprint(), epoch, &tag));
    let as_login = Outgoing { session, epoch, bytes: shown.clone() };
    assert!(town.log_in(at(1), &as_login).is_err());
    // Each is good for what it is.
    assert!(verify(&town, &about, &shown).is_ok() && town.log_in(at(1), &login).is_ok());
}
