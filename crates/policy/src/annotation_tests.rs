//! Annotations in force and not, forged and stale.

use super::*;
use crate::schema::Schema;
use proptest::prelude::*;

const SCHEMA: &str = "
name: Rides
metadataAttributes:
  - { name: age, type: [enum, optional], symbols: [young, senior] }
  - { name: region, type: string }
streamAttributes:
  - { name: pulse, type: integer, aggregations: [sum] }
";

fn content(version: u64, from: u64, to: u64) -> Content {
    let schema = Schema::from_yaml(SCHEMA).unwrap();
    Content {
        stream: StreamId([1; 16]),
        owner: owner_id(&[9; 32]),
        schema: schema.id(),
        service: "app.example".into(),
        valid_from: Timestamp(from),
        valid_to: Timestamp(to),
        version,
        metadata: vec![("age".into(), "senior".into()), ("region".into(), "west".into())],
        policy: ResolvedPolicy::private(&schema),
        revoked: false,
    }
}

fn signed(content: &Content) -> SignedAnnotation {
    SignedAnnotation { bytes: content.bytes(), signature: vec![7], owner_key: [9; 32] }
}

fn verified(content: &Content) -> Annotation {
    signed(content).verify(|_, _, signature| signature == [7]).unwrap()
}

fn versions(all: &[Content]) -> Annotations {
    let mut annotations = Annotations::default();
    all.iter().for_each(|content| annotations.insert(verified(content)).unwrap());
    annotations
}

#[test]
fn only_the_owners_signature_over_the_one_encoding_makes_an_annotation() {
    let good = content(1, 0, 100);
    let refuse = |change: fn(&mut SignedAnnotation)| {
        let mut other = signed(&good);
        change(&mut other);
        other.verify(|_, _, signature| signature == [7]).unwrap_err()
    };
    assert_eq!(refuse(|other| other.signature.clear()), AnnotationError::Forged);
    assert_eq!(refuse(|other| other.owner_key[0] ^= 1), AnnotationError::OtherOwner);
    assert_eq!(refuse(|other| other.bytes.push(0)), AnnotationError::Malformed);
    assert_eq!(refuse(|other| other.bytes.truncate(20)), AnnotationError::Malformed);
    let mut backwards = good.clone();
    backwards.valid_to = backwards.valid_from;
    assert_eq!(signed(&backwards).verify(|_, _, _| true), Err(AnnotationError::EmptyValidity));
    let mut unsorted = good.clone();
    unsorted.metadata.reverse();
    assert_eq!(signed(&unsorted).verify(|_, _, _| true), Err(AnnotationError::Malformed));
}

#[test]
fn the_callers_check_sees_the_exact_bytes() {
    let content = content(1, 0, 100);
    let annotation = signed(&content).verify(|key, bytes, signature| {
        (key, bytes, signature) == (&[9; 32], &content.bytes()[..], &[7][..])
    });
    assert_eq!(*annotation.unwrap(), content);
}

#[test]
fn metadata_are_those_of_the_schema() {
    let schema = Schema::from_yaml(SCHEMA).unwrap();
    let good = content(1, 0, 100);
    assert_eq!(good.fits(&schema), Ok(()));
    let with = |metadata: &[(&str, &str)]| {
        let mut other = good.clone();
        other.metadata = metadata.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
        other.fits(&schema)
    };
    assert_eq!(with(&[("region", "west")]), Ok(()));
    assert_eq!(with(&[]), Err(AnnotationError::MissingMetadata { name: "region".into() }));
    let symbol = with(&[("age", "old"), ("region", "west")]);
    assert_eq!(symbol, Err(AnnotationError::NoSuchSymbol { name: "age".into() }));
    let unknown = with(&[("region", "west"), ("shoe", "42")]);
    assert_eq!(unknown, Err(AnnotationError::UnknownMetadata { name: "shoe".into() }));
    let mut other = good.clone();
    other.policy.attributes.clear();
    assert_eq!(other.fits(&schema), Err(AnnotationError::OtherSchema));
}

#[test]
fn versions_only_grow() {
    let mut annotations = versions(&[content(3, 0, 100)]);
    assert_eq!(annotations.insert(verified(&content(3, 0, 100))), Ok(()));
    for version in [2, 3] {
        let stale = annotations.insert(verified(&content(version, 1, 100)));
        assert_eq!(stale, Err(AnnotationError::Stale { known: 3, got: version }));
    }
    let mut other = content(4, 0, 100);
    other.stream = StreamId([2; 16]);
    assert_eq!(annotations.insert(verified(&other)), Err(AnnotationError::OtherStream));
}

fn window(start: u64, end: u64) -> Window {
    Window { start: Timestamp(start), end: Timestamp(end) }
}

/// The versions asked about a window.
fn asked(
    annotations: &Annotations,
    start: u64,
    end: u64,
    now: u64,
) -> Result<Vec<u64>, NotAllowed> {
    let mut asked = Vec::new();
    annotations.allows(window(start, end), Timestamp(now), |annotation| {
        asked.push(annotation.version);
        Ok(())
    })?;
    asked.sort_unstable();
    asked.dedup();
    Ok(asked)
}

#[test]
fn a_window_needs_every_version_in_force_during_it_and_now() {
    let annotations = versions(&[content(1, 0, 100), content(2, 50, 200), content(3, 80, 90)]);
    assert_eq!(asked(&annotations, 0, 50, 40), Ok(vec![1]));
    assert_eq!(asked(&annotations, 0, 50, 60), Ok(vec![1, 2]));
    assert_eq!(asked(&annotations, 0, 51, 60), Ok(vec![1, 2]));
    assert_eq!(asked(&annotations, 10, 85, 60), Ok(vec![1, 2, 3]));
    // Version 3 has superseded version 2 and ended.
    let ended = Err(NotAllowed::NotInForce { at: Timestamp(90) });
    assert_eq!(asked(&annotations, 85, 95, 60), ended);
    assert_eq!(asked(&annotations, 0, 50, 90), ended);
    assert_eq!(
        asked(&versions(&[content(1, 10, 20)]), 5, 15, 15),
        Err(NotAllowed::NotInForce { at: Timestamp(5) })
    );
    assert_eq!(
        asked(&Annotations::default(), 0, 1, 0),
        Err(NotAllowed::NotInForce { at: Timestamp(0) })
    );
}

#[test]
fn one_version_that_forbids_is_enough() {
    let annotations = versions(&[content(1, 0, 100), content(2, 50, 200)]);
    let forbid = |forbidden: u64, now| {
        annotations.allows(window(0, 50), Timestamp(now), |annotation| {
            if annotation.version == forbidden {
                Err(Refusal::Private { attribute: 0 })
            } else {
                Ok(())
            }
        })
    };
    assert!(matches!(forbid(1, 60), Err(NotAllowed::Refused { version: 1, .. })));
    assert!(matches!(forbid(2, 60), Err(NotAllowed::Refused { version: 2, .. })));
    assert_eq!(forbid(2, 40), Ok(()));
}

#[test]
fn after_a_revocation_nothing_is_in_force_whenever_it_begins() {
    let mut end = content(2, 1_000_000, 2_000_000);
    end.revoked = true;
    let annotations = versions(&[content(1, 0, 100), end]);
    assert_eq!(asked(&annotations, 0, 10, 50), Err(NotAllowed::Revoked));
    // A later version is new consent, but not for the time in between.
    let mut annotations = annotations;
    annotations.insert(verified(&content(3, 1_500_000, 2_000_000))).unwrap();
    assert_eq!(asked(&annotations, 1_500_000, 1_500_010, 1_600_000), Ok(vec![3]));
    assert!(asked(&annotations, 1_400_000, 1_500_010, 1_600_000).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
        let signed = SignedAnnotation { bytes, signature: Vec::new(), owner_key: [9; 32] };
        let _ = signed.verify(|_, _, _| true);
    }

    /// However versions follow one another, the walk through a window ends and
    /// asks every version that `in_force` names at some time of it.
    #[test]
    fn the_walk_asks_all_that_are_in_force(
        spans in prop::collection::vec((0u64..60, 1u64..60), 1..6), start in 0u64..60, length in 1u64..40
    ) {
        let all: Vec<Content> = (1..).zip(&spans)
            .map(|(version, (from, length))| content(version, *from, from + length)).collect();
        let annotations = versions(&all);
        let times = (start..start + length).map(|at| annotations.in_force(Timestamp(at)));
        let Ok(now) = annotations.in_force(Timestamp(start)) else { return Ok(()) };
        let expected: Result<Vec<_>, _> = times.map(|found| found.map(|one| one.version)).collect();
        let walked = asked(&annotations, start, start + length, start);
        match expected {
            Ok(mut each) => {
                each.push(now.version);
                each.sort_unstable();
                each.dedup();
                prop_assert_eq!(walked, Ok(each));
            }
            Err(first) => prop_assert_eq!(walked, Err(first)),
        }
    }
}
