//! Calls that a controller does not answer, and streams that it does not attend with.

use alpheus_encrypted_stream::error::PlanShapeError;
use alpheus_policy::ids::ConsumerId;
use alpheus_policy::plan::Fraction;
use alpheus_policy::selection::{Selection, SelectionStep};

use super::*;
use crate::protocol::identities::certified;
use crate::protocol::noise::Noise;

fn setup() -> Setup {
    Setup { streams_each: 2, minimum: 3, windows: 3, ..Setup::new(6) }
}

/// What cannot be the terms of epochs, and why a list of them is refused.
fn not_terms(epochs: &Epochs) -> Vec<(Plan, PlanShapeError)> {
    let (terms, all) = (epochs.terms.clone(), epochs.all.clone());
    let (attribute, values) = ("region".into(), vec!["north".into()]);
    let selection =
        Selection { steps: vec![SelectionStep::In { attribute, values, negated: false }] };
    vec![
        (
            Plan { privacy: Some(Noise::new(1).privacy()), ..terms.clone() },
            PlanShapeError::NoiseInEpoch,
        ),
        (Plan { selection, ..terms.clone() }, PlanShapeError::ConditionInEpoch),
        (
            Plan { sealed_to: Some(ConsumerId([1; 32])), ..terms.clone() },
            PlanShapeError::ConditionInEpoch,
        ),
        (Plan { roster: all.roster.clone(), ..terms.clone() }, PlanShapeError::Terms),
        (Plan { streams: all.streams.clone(), ..terms.clone() }, PlanShapeError::Terms),
        (Plan { masks: MaskStrategy::Clique, ..terms.clone() }, PlanShapeError::Terms),
    ]
}

/// The service signs a call, or a list, for a plan that has noise, conditions or a roster.
#[test]
fn terms_with_noise_conditions_or_a_roster_are_refused() {
    let mut epochs = Epochs::new(setup());
    for (terms, reason) in not_terms(&epochs) {
        let honest = std::mem::replace(&mut epochs.terms, terms.clone());
        assert_eq!(epochs.attendance(0, 0), Err(WindowRefusalError::NotTerms), "{reason}");
        epochs.terms = honest.clone();
        let entries = epochs.entries(0, 0..6);
        epochs.terms = terms;
        let list = epochs.list(0, entries);
        assert_eq!(epochs.accept(0, 0, &list), Err(PlanRefusalError::Malformed(reason)));
        epochs.terms = honest;
    }
}

/// The owner of a controller's first stream chooses again.
fn choose(epochs: &mut Epochs, at: usize, version: u32, change: &dyn Fn(&mut Setup)) {
    let stream = epochs.held(at)[0].stream;
    let owner = certified(&epochs.world.setup.owner_key(stream));
    let mut setup = epochs.world.setup.clone();
    change(&mut setup);
    let signed = epochs.world.annotate(stream, version, policy(&setup));
    let step = epochs.controllers[at].annotate(&signed, &owner, after(0)).unwrap();
    step.commit(&mut epochs.store).unwrap();
}

/// A controller attends with the streams whose owners allow the terms.
#[test]
fn a_stream_whose_owner_does_not_allow_the_terms_is_not_attended_with() {
    type Change = &'static dyn Fn(&mut Setup);
    let changes: [Change; 3] =
        [&|setup| setup.minimum = 4, &|setup| setup.alpha = Fraction::THIRD, &|setup| {
            setup.sealed = true
        }];
    for change in changes {
        let mut epochs = Epochs::new(setup());
        let streams = |epochs: &mut Epochs| {
            let entry = epochs.attendance(2, 1).unwrap().entry;
            entry.owners.into_iter().flat_map(|listed| listed.streams).collect::<Vec<_>>()
        };
        let own: Vec<StreamId> = epochs.held(2).iter().map(|held| held.stream).collect();
        choose(&mut epochs, 2, 2, change);
        assert_eq!(streams(&mut epochs), own[1..]);
    }
}

#[test]
fn a_controller_of_which_no_owner_allows_the_terms_does_not_attend() {
    let mut epochs = Epochs::new(Setup { streams_each: 1, ..setup() });
    choose(&mut epochs, 2, 2, &|setup| setup.minimum = 4);
    assert_eq!(epochs.attendance(2, 1), Err(WindowRefusalError::NothingToGive));
    choose(&mut epochs, 2, 3, &|_| {});
    assert!(epochs.attendance(2, 1).is_ok());
}
