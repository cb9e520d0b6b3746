//! A server that has read the table alone cannot keep the others from reporting it.

use crate::coalition::ring::{NOW, Ring, party, restated, server};
use alpheus_anonymous_board::messages::{Body, BurnReason, Fault, Statement};
use alpheus_anonymous_board::reader::ReadError;
use alpheus_anonymous_board::writer::Content;
use alpheus_crypto::signed_message::Signed;

/// All are bound, and all shares but one are sent: the owner of that one may have read the table.
fn bound(liar: usize) -> Ring {
    let mut ring = Ring::new(3, 60, 90);
    (0..4).for_each(|i| drop(ring.post(i, Content::Cover)));
    (ring.withheld, ring.idle) = (Some(liar), vec![liar]);
    ring.later(61);
    ring.turn();
    assert!(ring.shares.iter().all(Option::is_some) && ring.transcript().agreed_latch().is_some());
    ring
}

/// The final reasons of all others.
fn others(ring: &Ring, liar: usize) -> Vec<Option<BurnReason>> {
    let said = ring.transcript();
    (0..3).filter(|i| *i != liar).map(|i| said.abort_reason(party(i))).collect()
}

/// The liar aborts with each reason, and is the first or the last that readers ask.
#[test]
fn an_abort_after_the_latch_hides_nothing() {
    for liar in [0, 2] {
        let reasons = [
            BurnReason::Late,
            BurnReason::TooFew,
            BurnReason::Dwindled,
            BurnReason::Contradiction,
            BurnReason::Restored,
            BurnReason::Reported(party(1)),
            BurnReason::Blamed(party(1), Fault::Set),
        ];
        for reason in reasons {
            let mut ring = bound(liar);
            let (said, body) = (ring.transcript(), Body::Abort { reason });
            let sequence = said.next_sequence(party(liar));
            let board = ring.board.fingerprint();
            let abort = Statement { board, epoch: NOW, by: party(liar), sequence, body };
            ring.statements[liar].push(Signed::new(&abort, &server(liar)));
            assert_eq!(ring.read().err(), Some(ReadError::Burnt(BurnReason::Unshared)), "{reason}");
            ring.turn();
            assert_eq!(others(&ring, liar), [Some(BurnReason::Unshared); 2], "{reason}");
            assert_eq!(ring.read().err(), Some(ReadError::Burnt(BurnReason::Unshared)), "{reason}");
        }
    }
}

/// The liar is caught with two statements for one.
#[test]
fn a_fault_after_the_latch_hides_nothing() {
    let mut ring = bound(2);
    let latch = ring.statements[2].last().cloned().unwrap();
    let other = restated(&ring.board, 2, latch, |body| {
        if let Body::Latch { share, .. } = body {
            share.0[0] ^= 1;
        }
    });
    for i in [0, 1] {
        let step = ring.servers[i].handle_statement(&other, party(2), NOW).unwrap();
        ring.commit(i, step);
        let kept = ring.servers[i].transcript(NOW).unwrap().conflict(party(2)).cloned();
        assert_eq!(kept, Some(other.clone()), "the proof is kept all the same");
    }
    ring.turn();
    assert_eq!(others(&ring, 2), [Some(BurnReason::Unshared); 2]);
}

/// A first abort is not the whole story: until all have ended the epoch, a silent server may be
/// bound and release its share.
#[test]
fn an_epoch_has_ended_when_all_servers_have_ended_it() {
    let mut ring = Ring::new(3, 60, 91);
    (0..4).for_each(|i| drop(ring.post(i, Content::Cover)));
    let body = Body::Abort { reason: BurnReason::Late };
    let (board, by) = (ring.board.fingerprint(), party(0));
    let abort = Statement { board, epoch: NOW, by, sequence: 1, body };
    ring.statements[0].push(Signed::new(&abort, &server(0)));
    let said = ring.transcript();
    assert_eq!(
        (said.burn_reason(), said.has_ended(), said.may_have_been_read()),
        (Some(BurnReason::Late), false, false)
    );
    ring.turn();
    let said = ring.transcript();
    assert_eq!(
        (said.burn_reason(), said.has_ended(), said.may_have_been_read()),
        (Some(BurnReason::Late), true, false)
    );
}
