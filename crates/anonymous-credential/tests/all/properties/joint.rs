//! Joint presentations: each is valid for its verifier alone, and all of them burn one index.

use crate::properties::town::{Device, Town};
use crate::support::NOTHING;
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::error::{HolderError, VerifierError};
use alpheus_anonymous_credential::holder::{SubjectPresenter, present_together};
use alpheus_anonymous_credential::ledger::Step;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{JointPresentation, TagId};
use alpheus_anonymous_credential::schedule::Period;
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_crypto::hash::Digest;
use std::collections::BTreeSet;

const QUOTA: u32 = 5;
const MANY: usize = 3;

/// A holder with a credential from each of three issuers.
struct Several {
    towns: Vec<Town>,
    devices: Vec<Device>,
}

impl Several {
    fn new(seed: u8) -> Self {
        let mut towns: Vec<Town> = (seed..).take(MANY).map(|seed| Town::new(1, seed)).collect();
        let devices = towns.iter_mut().map(|town| town.device(b"ada")).collect();
        Self { towns, devices }
    }

    fn subject(&self, at: usize, name: u8) -> Subject {
        let pinned: PinnedConfiguration = self.towns[at].pinned();
        Subject::new(&pinned, &Digest([name; 32]), Limit::try_from(QUOTA).unwrap(), Period(7))
    }

    fn abouts(&self) -> Vec<SubjectPresenter> {
        let about = |at: usize| {
            let Device { holder, store } = &self.devices[at];
            holder.for_subject(self.subject(at, 1), store).unwrap()
        };
        (0..MANY).map(about).collect()
    }

    /// Presents from the stored records.
    fn present(&mut self) -> Result<Vec<Vec<u8>>, HolderError> {
        let mut abouts = self.abouts();
        let steps: Vec<Step<Vec<u8>>> =
            present_together(&mut abouts, &NOTHING, &mut self.towns[0].rng)?;
        let stores = self.devices.iter_mut().map(|device| &mut device.store);
        Ok(steps.into_iter().zip(stores).map(|(step, store)| step.commit(store).unwrap()).collect())
    }

    fn verify(&self, at: usize, bytes: &[u8]) -> Result<TagId, VerifierError> {
        let subject = self.subject(at, 1);
        let joint = JointPresentation::from_bytes(bytes, subject.limit(), (at, MANY))?;
        let verifier = &self.towns[at].service.verifier;
        let verdict = verifier.verify_joint(&subject, vec![joint]).pop().unwrap();
        verdict.map(|proven| proven.name(&subject))
    }
}

#[test]
fn all_credentials_burn_one_index_and_none_is_left_after_the_quota() {
    let mut several = Several::new(110);
    let mut tags = BTreeSet::new();
    for left in (0..QUOTA).rev() {
        let shown = several.present().unwrap();
        for (at, bytes) in shown.iter().enumerate() {
            assert!(tags.insert(several.verify(at, bytes).unwrap()));
            // Received again, it is the same presentation.
            assert!(tags.contains(&several.verify(at, bytes).unwrap()));
        }
        assert!(several.abouts().iter().all(|about| about.left() == left));
    }
    assert_eq!(several.present().err(), Some(HolderError::Burnt));
}

/// One credential was presented about the subject alone; its indices are burnt for all.
#[test]
fn an_index_that_one_credential_has_burnt_is_used_by_none() {
    let mut several = Several::new(120);
    let mut first = several.abouts().remove(0);
    for _ in 0..3 {
        let step = first.present(&NOTHING, &mut several.towns[0].rng).unwrap();
        step.commit(&mut several.devices[0].store).unwrap();
    }
    several.present().unwrap();
    assert!(several.abouts().iter().all(|about| about.left() == 1));
}

#[test]
fn a_presentation_for_one_verifier_is_worthless_to_another() {
    let mut several = Several::new(130);
    let (shown, again) = (several.present().unwrap(), several.present().unwrap());
    for at in 0..MANY {
        for (of, bytes) in shown.iter().enumerate() {
            assert_eq!(several.verify(at, bytes).is_ok(), at == of, "{of} at {at}");
        }
        // The digests of one and the presentation of another.
        let digests = 64 * (MANY - 1);
        let mixed = [&again[at][..digests], &shown[at][digests..]].concat();
        assert_eq!(several.verify(at, &mixed), Err(VerifierError::Proof));
    }
    // Its digests depend on what the others received, and reveal nothing else: the shared parts
    // differ the next time.
    let words = |bytes: &[u8]| bytes.as_chunks::<32>().0.iter().copied().collect::<BTreeSet<_>>();
    let late = |bytes: &[u8]| words(&bytes[64 * (MANY - 1) + 72..]);
    assert!(late(&shown[0]).intersection(&late(&again[1])).next().is_none());
}

/// As for one presentation: credentials of the next period would double the quota.
#[test]
fn credentials_of_another_period_give_no_more_presentations() {
    let mut several = Several::new(150);
    several.devices = several.towns.iter_mut().map(|town| town.early_device(b"ada")).collect();
    let about = |several: &Several, at: usize, period| {
        let limit = Limit::try_from(QUOTA).unwrap();
        Subject::new(&several.towns[at].pinned(), &Digest([1; 32]), limit, Period(period))
    };
    let mut presenters: Vec<SubjectPresenter> = (0..MANY)
        .map(|at| {
            let Device { holder, store } = &several.devices[at];
            holder.for_subject(about(&several, at, 8), store).unwrap()
        })
        .collect();
    let steps = present_together(&mut presenters, &NOTHING, &mut several.towns[0].rng).unwrap();
    for (at, step) in steps.into_iter().enumerate() {
        let bytes = step.commit(&mut several.devices[at].store).unwrap();
        let verify = |period| {
            let subject = about(&several, at, period);
            let joint = JointPresentation::from_bytes(&bytes, subject.limit(), (at, MANY)).unwrap();
            let verifier = &several.towns[at].service.verifier;
            verifier.verify_joint(&subject, vec![joint]).pop().unwrap().map(drop)
        };
        assert_eq!((verify(8), verify(7)), (Ok(()), Err(VerifierError::Epoch)));
    }
}

#[test]
fn credentials_with_different_limits_are_not_presented_together() {
    let mut several = Several::new(140);
    let mut abouts = several.abouts();
    let other = Limit::try_from(QUOTA + 1).unwrap();
    let subject = Subject::new(&several.towns[2].pinned(), &Digest([1; 32]), other, Period(7));
    let Device { holder, store } = &several.devices[2];
    abouts[2] = holder.for_subject(subject, store).unwrap();
    let refused = present_together(&mut abouts, &NOTHING, &mut several.towns[0].rng).err();
    assert_eq!(refused, Some(HolderError::OtherConfiguration));
    assert!(present_together(&mut [], &NOTHING, &mut several.towns[0].rng).is_err());
}
