//! Verified windows whose members mask with some of the others only.

use alpheus_encrypted_stream::messages::ServiceMessage;
use alpheus_policy::plan::{Fraction, MaskStrategy};
use alpheus_time::Span;

use crate::protocol::net::Net;
use crate::protocol::world::{Setup, after, window};

/// The last window has opened: its receipt holds, and its row is the truth over these streams.
fn holds(net: &Net, number: u64, streams: impl IntoIterator<Item = usize>) {
    let opened = net.outcomes.last().unwrap().result.as_ref().unwrap();
    assert_eq!(opened.outputs, net.world.truth(streams, number), "window {number}");
    let receipt = opened.receipt.as_deref().unwrap();
    let row = receipt.verify(&net.world.announced, window(number)).unwrap();
    assert_eq!(row.check(&opened.outputs, opened.population), Ok(()));
    let mut other = opened.outputs.clone();
    other[0] ^= 1;
    assert!(row.check(&other, opened.population).is_err());
}

/// All sixty must be present for such a sparse graph to be safe. Each counts on the owners of 59.
#[test]
fn rows_hold_under_masks_that_are_drawn_for_each_window() {
    for masks in [MaskStrategy::Dream { bits: 1 }, MaskStrategy::Epoch { bits: 1 }] {
        let setup = Setup { masks, minimum: 59, ..Setup::new(60) }.verified();
        let alpha = Fraction { numerator: 1, denominator: 60 };
        let mut net = Net::new(Setup { alpha, ..setup });
        for number in 0..2 {
            net.close(number);
            holds(&net, number, 0..60);
        }
    }
}

/// Also without a member of M that sends no token: its pads with its neighbours stay out.
#[test]
fn rows_hold_under_neighbours() {
    let masks = MaskStrategy::Neighbours { picks: 5, cut_off: 0 };
    let setup = Setup { masks, alpha: Fraction::THIRD, ..Setup::new(6) };
    let mut net = Net::new(setup.verified());
    net.close(0);
    holds(&net, 0, 0..6);
    net.lost = |to, message| to == 5 && matches!(message, ServiceMessage::Introduction { .. });
    net.close(1);
    net.timeout(after(1).plus(Span::seconds(4)));
    holds(&net, 1, 0..5);
}
