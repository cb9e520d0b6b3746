//! Plans of one cell and of three, from devices to rows: the sum alone, and with count and sum of squares.

use alpheus_bounded_influence::blame::LieError;
use alpheus_crypto::group::PublicScalar;
use alpheus_encrypted_stream::coordinator::MemberFaultError;
use alpheus_encrypted_stream::error::{ExclusionError, ReleaseError};

use super::{Reading, last, lies_in_contribution, named, net, net_of, opened, values, world};
use crate::protocol::world::Setup;

const LIAR: u32 = 1;

fn setup(cells: usize) -> Setup {
    Setup { cells, streams_each: 2, ..Setup::new(3) }
}

/// What these streams send in a window: their sum, or count, sum and sum of squares.
fn truth(cells: usize, streams: impl IntoIterator<Item = usize>, number: u64) -> Vec<i128> {
    let sent = streams.into_iter().flat_map(|stream| values(stream, number));
    let sent: Vec<i128> = sent
        .map(|one| match one {
            Reading::Value(value) | Reading::Absurd(value) | Reading::Unsquared(value) => {
                i128::from(value)
            }
        })
        .collect();
    let sum = sent.iter().sum();
    match cells {
        1 => vec![sum],
        _ => vec![sent.len() as i128, sum, sent.iter().map(|one| one * one).sum()],
    }
}

#[test]
fn rows_of_one_cell_and_of_three_are_the_truth() {
    for cells in [1, 3] {
        let mut net = net(setup(cells));
        for number in 0..2 {
            net.close(number);
            let (outputs, row) = opened(&net);
            assert_eq!((row, outputs.population), (truth(cells, 0..6, number), 6), "{cells}");
            assert!(named(&net).is_empty());
        }
        assert!(net.dropped.is_empty(), "{:?}", net.dropped);
    }
}

/// With one cell, a sum that no number of events explains; with three, also one that its own number does not.
#[test]
fn an_absurd_sum_costs_its_owner_the_window_with_one_cell_and_with_three() {
    for (cells, absurd) in [(1, i64::MAX), (1, -1), (3, 3_001), (3, -1), (3, 1_001)] {
        let sent = move |stream, number| match stream {
            2 => vec![Reading::Absurd(absurd)],
            _ => values(stream, number),
        };
        let mut net = net_of(world(setup(cells), sent));
        net.close(0);
        let (outputs, row) = opened(&net);
        let others = truth(cells, [0, 1, 3, 4, 5], 0);
        assert_eq!((row, outputs.population), (others, 5), "{cells}: {absurd}");
        assert_eq!(last(&net).excluded.get(&ExclusionError::OutOfBounds), Some(&1));
        assert!(named(&net).is_empty());
    }
}

#[test]
fn a_lie_in_any_of_one_cell_and_of_three_is_named_in_one_round() {
    for (cells, cell) in [(1, 0), (3, 0), (3, 1), (3, 2)] {
        let mut net = net(setup(cells));
        net.lies = lies_in_contribution(&net, LIAR, move |own| {
            own.share.values[cell] = own.share.values[cell].plus(&PublicScalar::of(9));
        });
        net.close(0);
        assert_eq!(last(&net).result, Err(ReleaseError::NotTheRow), "{cells}: {cell}");
        assert_eq!(named(&net), [(LIAR, MemberFaultError::Lie(LieError::Unbalanced))]);
    }
}
