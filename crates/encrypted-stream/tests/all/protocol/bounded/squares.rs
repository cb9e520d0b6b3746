//! Sums of squares in bounded windows.

use alpheus_encrypted_stream::error::ExclusionError;

use super::{EVENTS, Reading, last, named, net_of, opened, truth, values, world};
use crate::protocol::world::Setup;

/// A device whose squares are those of no events fits each form, and would make the variance of all less
/// than nothing. Its controller leaves its owner out, and the row is the truth of the others.
#[test]
fn squares_of_no_events_cost_their_owner_the_window() {
    let sent = |stream, number| match stream {
        2 => vec![Reading::Unsquared(1_000); EVENTS as usize],
        _ => values(stream, number),
    };
    let setup = Setup { streams_each: 2, cells: 3, ..Setup::new(3) };
    let mut net = net_of(world(setup.clone(), sent));
    net.close(0);
    let (outputs, cells) = opened(&net);
    assert_eq!((&cells[..2], outputs.population), (&truth([0, 1, 3, 4, 5], 0)[..], 5));
    assert_eq!(last(&net).excluded.get(&ExclusionError::OutOfBounds), Some(&1));
    assert!(named(&net).is_empty());
    // Squares that are as small as they can be are those of equal events.
    let sent = |_, _| vec![Reading::Value(7); EVENTS as usize];
    let mut net = net_of(world(setup, sent));
    net.close(0);
    assert_eq!(opened(&net).1, [18, 6 * 21, 6 * 147]);
}
