//! Which terms are refused, and what the others are.

use crate::world::cell;
use alpheus_bounded_influence::terms::{Cell, Relation, Terms, TermsError};

fn refused(cells: &[Cell], relations: &[Relation], owners: u32) -> Option<TermsError> {
    Terms::new(cells, relations, owners, 10).err()
}

#[test]
fn refusals_name_their_cause() {
    let plain = cell(0, 10);
    assert_eq!(refused(&[], &[], 1), Some(TermsError::NoCells));
    assert_eq!(refused(&[plain; 4], &[], 1), Some(TermsError::TooManyCells(4)));
    assert_eq!(refused(&[plain, cell(1, 0)], &[], 1), Some(TermsError::EmptyBounds(1)));
    let wide = |bits: u32| cell(0, (1 << bits) - 1);
    assert_eq!(refused(&[wide(64)], &[], 1000), None);
    assert_eq!(refused(&[wide(65)], &[], 1000), Some(TermsError::TooWide));
    let far = cell((1 << 120) - 5, 1 << 120);
    assert_eq!(refused(&[far], &[], 127), None);
    assert_eq!(refused(&[far], &[], 128), Some(TermsError::Capacity { cell: 0, owners: 128 }));
    let most = cell(i128::MIN, i128::MAX);
    assert_eq!(refused(&[most], &[], 1), Some(TermsError::Capacity { cell: 0, owners: 1 }));
}

#[test]
fn a_relation_needs_different_cells_and_a_count() {
    let cells = [cell(0, 3), cell(-6, 15), cell(0, 75)];
    let good = Relation { count: 0, sum: 1, squares: Some(2), lowest: -2, highest: 5 };
    assert_eq!(refused(&cells, &[good], 1), None);
    let bad = [
        Relation { count: 1, sum: 0, ..good },
        Relation { count: 3, ..good },
        Relation { sum: 3, ..good },
        Relation { sum: 0, ..good },
        Relation { squares: Some(1), ..good },
        Relation { squares: Some(3), ..good },
        Relation { lowest: 6, ..good },
    ];
    for relation in bad {
        assert_eq!(refused(&cells, &[good, relation], 1), Some(TermsError::Relation(1)));
    }
    // Each would be bounded by the other, and nothing by itself.
    let (one, other) = (
        Relation { squares: None, lowest: 0, ..good },
        Relation { count: 1, sum: 0, squares: None, lowest: 0, highest: 1 },
    );
    let counts = [cell(0, 3), cell(0, 15)];
    assert_eq!(refused(&counts, &[one], 1), None);
    assert_eq!(refused(&counts, &[one, other], 1), Some(TermsError::Relation(0)));
    let far = Relation { lowest: i64::MIN, highest: i64::MAX, ..good };
    assert_eq!(refused(&cells, &[far], 1), Some(TermsError::TooWide));
    // Events within one of each other, whose squares exceed what is computed with.
    let narrow = Relation { lowest: (1 << 62) - 1, highest: 1 << 62, ..good };
    assert_eq!(refused(&cells, &[narrow], 1), Some(TermsError::TooWide));
}

/// Two sides of a cell are 2 forms; three cells with their relations are 6, which makes 8.
#[test]
fn proofs_are_short() {
    let one = Terms::new(&[cell(-20, 100)], &[], 1000, 10).unwrap();
    assert_eq!(one.owner_length(), 32 + 32 * (6 + 2 * 4));
    let relation = Relation { count: 0, sum: 1, squares: Some(2), lowest: 0, highest: 1000 };
    let cells = [cell(0, 3600), cell(0, 3_600_000), cell(0, 3_600_000_000)];
    let three = Terms::new(&cells, &[relation], 1000, 10).unwrap();
    assert_eq!(three.owner_length(), 3 * 32 + 32 * (6 + 2 * 8));
}

/// Whatever a proof depends on is in the digest.
#[test]
fn other_terms_have_another_digest() {
    let cells = [cell(0, 3), cell(-6, 15), cell(0, 75)];
    let relation = Relation { count: 0, sum: 1, squares: Some(2), lowest: -2, highest: 5 };
    let digest = |cells: &[Cell], relations: &[Relation]| {
        Terms::new(cells, relations, 10, 2).unwrap().digest().0
    };
    let mut other = cells;
    other[1].noise = 4;
    let all = [
        digest(&cells, &[relation]),
        digest(&cells, &[]),
        digest(&cells, &[Relation { squares: None, ..relation }]),
        digest(&cells, &[Relation { lowest: -1, ..relation }]),
        digest(&other, &[relation]),
        digest(&cells[..2], &[]),
    ];
    assert!((1..all.len()).all(|at| !all[..at].contains(&all[at])));
}
