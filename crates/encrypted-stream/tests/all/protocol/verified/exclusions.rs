//! What a receipt shows of streams that controllers left out.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::error::ExclusionError;
use alpheus_encrypted_stream::messages::{Membership, Presence, ServiceMessage};
use alpheus_encrypted_stream::receipt::{
    ExcludingPresence, Receipt, ReceiptError, Share, SharePart, SignedExclusions,
};
use alpheus_policy::ids::PlanId;

use super::{gather, long, parts, receipt, whole};
use crate::protocol::coordinator::key_of;
use crate::protocol::evil::{Draft, Evil};
use crate::protocol::identities::certified;
use crate::protocol::net::Net;
use crate::protocol::world::{Setup, after, key, policy, stream_id, window};

const PART: SharePart = SharePart::Presence;

/// Three controllers of two streams each. The second one leaves out its second stream.
fn honest() -> (Evil, Receipt, Presence) {
    let (evil, receipt, presence, _) = with_draft();
    (evil, receipt, presence)
}

/// The same with what M was made of.
fn with_draft() -> (Evil, Receipt, Presence, Draft) {
    let mut evil = long(3, 2, 1);
    let mut left_out = None;
    let (draft, _) = gather(&mut evil, |p, mut streams| {
        if p == 1 {
            parts(&mut streams[1])[2].words[0] ^= 1;
            left_out = Some(streams.clone());
        }
        streams
    });
    // The same summons gets the same presence.
    let presence = evil.presence_at(1, left_out.unwrap(), after(9)).1;
    let ServiceMessage::Membership { proof, .. } = evil.membership(&draft, 1) else {
        unreachable!()
    };
    let mut receipt = receipt(&mut evil, &draft, &[0, 1, 2]);
    let signed = Signed::new(&presence, &key_of(&evil.world, 1));
    receipt.exclusions = vec![ExcludingPresence { presence: signed, proof, pickers: None }];
    (evil, receipt, presence, draft)
}

#[test]
fn a_receipt_says_who_left_out_a_stream() {
    let (evil, receipt, _) = honest();
    let row = receipt.verify(&evil.world.announced, whole()).unwrap();
    let streams = vec![(3, ExclusionError::SumMismatch)];
    assert_eq!(row.exclusions(), [SignedExclusions { controller: 1, streams }]);
    let said = row.to_string();
    assert!(said.ends_with("; controller 1 signed that it left out 1 stream"), "{said}");
    assert_eq!(row.check_excluded(1), Ok(()));
    assert_eq!(row.check_excluded(2), Ok(()), "the service leaves out streams itself");
    let hidden = ReceiptError::FewerExcluded { stated: 0, signed: 1 };
    assert_eq!(row.check_excluded(0), Err(hidden));
    assert_eq!(Receipt::from_bytes(&receipt.to_bytes()), Ok(receipt));
}

#[test]
fn presences_that_are_not_those_of_the_membership_are_refused() {
    let refused = |change: &dyn Fn(&Evil, Presence, &mut Vec<ExcludingPresence>)| {
        let (evil, mut receipt, presence) = honest();
        change(&evil, presence, &mut receipt.exclusions);
        receipt.verify(&evil.world.announced, whole()).unwrap_err()
    };
    let forged = refused(&|_, presence, shown| shown[0].presence = Signed::new(&presence, &key(9)));
    assert_eq!(forged, ReceiptError::Signature { controller: 1, part: PART });
    let other = ReceiptError::OtherShare { controller: 1, part: PART };
    // What it also signed, for another summons of the window, or for another window.
    let signed = |change: &dyn Fn(&mut Presence)| {
        refused(&|evil, mut presence, shown| {
            change(&mut presence);
            shown[0].presence = Signed::new(&presence, &key_of(&evil.world, 1));
        })
    };
    assert_eq!(signed(&|own| own.excluded = vec![(2, ExclusionError::SumMismatch)]), other);
    assert_eq!(signed(&|own| own.excluded.clear()), other);
    assert_eq!(signed(&|own| own.window = window(0)), other);
    assert_eq!(signed(&|own| own.excluded = vec![(0, ExclusionError::SumMismatch)]), other);
    let elsewhere = refused(&|_, _, shown| shown[0].proof.index = 0);
    assert_eq!(elsewhere, other);
    // A larger tree may lead to the same root.
    assert_eq!(refused(&|_, _, shown| shown[0].proof.size = 4), other);
    assert_eq!(refused(&|_, _, shown| shown[0].pickers = Some(vec![0])), other);
    assert_eq!(refused(&|_, _, shown| shown.push(shown[0].clone())), other);
}

/// The receipt with another M, for which all members have signed the same numbers.
fn signed_again(evil: &Evil, receipt: &Receipt, membership: Signed<Membership>) -> Receipt {
    let service = &evil.world.service;
    let mut set = receipt.opening_set.as_ref().unwrap().dangerous_unverified().unwrap();
    set.membership = membership.digest();
    let set = Signed::new(&set, service);
    let again = |share: &Share| {
        let mut token = share.token.dangerous_unverified().unwrap();
        let key = key_of(&evil.world, token.controller);
        token.membership = membership.digest();
        let token = Signed::new(&token, &key);
        let mut opening = share.opening.as_ref().unwrap().dangerous_unverified().unwrap();
        (opening.opening_set, opening.token) = (set.digest(), Some(token.digest()));
        Share { token, opening: Some(Signed::new(&opening, &key)) }
    };
    let shares = receipt.shares.iter().map(again).collect();
    Receipt { membership, opening_set: Some(set), shares, ..receipt.clone() }
}

/// Members let M's tree have whatever their service and a colluder put there: what readers are shown must
/// be about the window too.
#[test]
fn a_presence_in_the_tree_must_be_of_its_member_and_of_the_window() {
    const LIE: ExclusionError = ExclusionError::SumMismatch;
    let shown = |at: usize, change: &dyn Fn(&mut Presence)| {
        let (mut evil, receipt, mut presence, mut draft) = with_draft();
        change(&mut presence);
        let signed = Signed::new(&presence, &key_of(&evil.world, 1));
        let key = evil.mask_keys[&draft.members[at].1].clone();
        evil.mask_keys.insert(signed.digest(), key);
        draft.members[at].1 = signed.digest();
        let to = u32::try_from(at).unwrap();
        let ServiceMessage::Membership { membership, proof } = evil.membership(&draft, to) else {
            unreachable!()
        };
        let mut own = signed_again(&evil, &receipt, membership);
        own.exclusions = vec![ExcludingPresence { presence: signed, proof, pickers: None }];
        own.verify(&evil.world.announced, whole()).map(|row| row.exclusions().len())
    };
    let other = Err(ReceiptError::OtherShare { controller: 1, part: PART });
    assert_eq!(shown(1, &|_| {}), Ok(1));
    assert_eq!(shown(0, &|_| {}), other, "in another's place");
    assert_eq!(shown(1, &|own| own.window = window(0)), other);
    assert_eq!(shown(1, &|own| own.plan = PlanId([9; 32])), other);
    assert_eq!(shown(1, &|own| own.excluded.clear()), other);
    assert_eq!(shown(1, &|own| own.excluded = vec![(0, LIE)]), other);
    assert_eq!(shown(1, &|own| own.excluded = vec![(3, LIE), (3, LIE)]), other);
}

/// An owner's new policy leaves out a stream. The service puts the presence that says so into the
/// receipt, also after a restart.
#[test]
fn the_service_shows_the_presences_that_leave_out_streams() {
    for restarts in [false, true] {
        let setup = Setup { streams_each: 2, ..Setup::new(3) }.verified();
        let mut net = Net::new(setup.clone());
        let planned = net.world.plan.streams[3];
        let stricter = policy(&Setup { minimum: 1000, ..setup.clone() });
        let signed = net.world.annotate(planned.stream, 2, stricter);
        let owner = certified(&setup.owner_key(stream_id(3)));
        let controller = &mut net.controllers[planned.controller as usize];
        controller.annotate(&signed, &owner, after(0)).unwrap().commit(&mut net.store).unwrap();
        if restarts {
            net.lost = |to, message| to == 0 && matches!(message, ServiceMessage::OpeningSet(_));
            net.close(0);
            assert!(net.outcomes.is_empty());
            net.lost = |_, _| false;
            net.restart_service(after(0));
        } else {
            net.close(0);
        }
        let opened = net.outcomes[0].result.as_ref().unwrap();
        let receipt = opened.receipt.as_deref().unwrap();
        let row = receipt.verify(&net.world.announced, window(0)).unwrap();
        let streams = vec![(3, ExclusionError::Policy)];
        let controller = planned.controller;
        assert_eq!(row.exclusions(), [SignedExclusions { controller, streams }]);
        assert_eq!(row.words(), net.world.truth([0, 1, 2, 4, 5].into_iter(), 0));
        let counted: u32 = net.outcomes[0].excluded.values().sum();
        assert_eq!(row.check_excluded(u64::from(counted)), Ok(()));
    }
}
