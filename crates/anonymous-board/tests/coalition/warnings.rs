//! A server that has read the table alone does not keep the others from saying so.

use crate::ring::{NOW, Ring, party, retold, server};
use alpheus_anonymous_board::messages::{Fault, Statement, What, Why};
use alpheus_anonymous_board::reader::NotRead;
use alpheus_anonymous_board::writer::Content;
use alpheus_crypto::signed::Signed;

/// All are bound, all shares but one are out: whose that is may have read the table.
fn bound(liar: usize) -> Ring {
    let mut ring = Ring::new(3, 60, 90);
    (0..4).for_each(|i| drop(ring.post(i, Content::Cover)));
    (ring.withheld, ring.idle) = (Some(liar), vec![liar]);
    ring.later(61);
    ring.turn();
    assert!(ring.shares.iter().all(Option::is_some) && ring.transcript().all_latched().is_some());
    ring
}

/// What all the others say in the end.
fn others(ring: &Ring, liar: usize) -> Vec<Option<Why>> {
    let said = ring.transcript();
    (0..3).filter(|i| *i != liar).map(|i| said.aborted(party(i))).collect()
}

/// It aborts, for each reason, and is the first or the last that readers ask.
#[test]
fn an_abort_after_the_latch_hides_nothing() {
    for liar in [0, 2] {
        let reasons = [
            Why::Late,
            Why::TooFew,
            Why::Dwindled,
            Why::Contradiction,
            Why::Restored,
            Why::Told(party(1)),
            Why::Blamed(party(1), Fault::Set),
        ];
        for why in reasons {
            let mut ring = bound(liar);
            let (said, what) = (ring.transcript(), What::Abort { why });
            let place = said.next_place(party(liar));
            let board = ring.board.fingerprint();
            let abort = Statement { board, epoch: NOW, by: party(liar), place, what };
            ring.said[liar].push(Signed::new(&abort, &server(liar)));
            assert_eq!(ring.read().err(), Some(NotRead::Burnt(Why::Unshared)), "{why}");
            ring.turn();
            assert_eq!(others(&ring, liar), [Some(Why::Unshared); 2], "{why}");
            assert_eq!(ring.read().err(), Some(NotRead::Burnt(Why::Unshared)), "{why}");
        }
    }
}

/// It is caught with two statements in one place.
#[test]
fn a_fault_after_the_latch_hides_nothing() {
    let mut ring = bound(2);
    let latch = ring.said[2].last().cloned().unwrap();
    let other = retold(&ring.board, 2, latch, |what| {
        if let What::Latch { share, .. } = what {
            share.0[0] ^= 1;
        }
    });
    for i in [0, 1] {
        let step = ring.servers[i].hear(party(2), NOW, &other).unwrap();
        ring.commit(i, step);
        let kept = ring.servers[i].transcript(NOW).unwrap().conflict(party(2)).cloned();
        assert_eq!(kept, Some(other.clone()), "the proof is kept all the same");
    }
    ring.turn();
    assert_eq!(others(&ring, 2), [Some(Why::Unshared); 2]);
}

/// A first abort is not all there is to know: until all have ended the epoch, one that was
/// not heard yet may be bound and give its share.
#[test]
fn an_epoch_has_ended_when_all_say_so() {
    let mut ring = Ring::new(3, 60, 91);
    (0..4).for_each(|i| drop(ring.post(i, Content::Cover)));
    let what = What::Abort { why: Why::Late };
    let (board, by) = (ring.board.fingerprint(), party(0));
    let abort = Statement { board, epoch: NOW, by, place: 1, what };
    ring.said[0].push(Signed::new(&abort, &server(0)));
    let said = ring.transcript();
    assert_eq!((said.burnt(), said.ended(), said.unshared()), (Some(Why::Late), false, false));
    ring.turn();
    let said = ring.transcript();
    assert_eq!((said.burnt(), said.ended(), said.unshared()), (Some(Why::Late), true, false));
}
