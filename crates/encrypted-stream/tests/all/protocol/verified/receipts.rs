//! Receipts that do not hold, each refused for its reason.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{
    ControllerMessage, Membership, Opening, OpeningSet, ServiceMessage, Token,
};
use alpheus_encrypted_stream::receipt::{Receipt, ReceiptError, ReceiptFormatError, SharePart};
use alpheus_policy::explain::receipt_bytes;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::{Plan, PopulationBounds};

use super::{gather, long, long_of, receipt, whole};
use crate::protocol::evil::Evil;
use crate::protocol::sealed_results;
use crate::protocol::world::{Setup, after, window};

/// An honest window of four controllers.
fn honest() -> (Evil, Receipt) {
    let mut evil = long(4, 1, 1);
    let (draft, _) = gather(&mut evil, |_, streams| streams);
    let receipt = receipt(&mut evil, &draft, &[0, 1, 2, 3]);
    (evil, receipt)
}

/// What a changed receipt is refused for.
fn refused(change: impl FnOnce(&Evil, &mut Receipt)) -> ReceiptError {
    let (evil, mut receipt) = honest();
    assert!(receipt.verify(&evil.world.announced, whole()).is_ok());
    change(&evil, &mut receipt);
    receipt.verify(&evil.world.announced, whole()).unwrap_err()
}

fn membership(evil: &Evil, receipt: &Receipt, change: impl FnOnce(&mut Membership)) -> Receipt {
    let mut own = receipt.membership.dangerous_unverified().unwrap();
    change(&mut own);
    Receipt { membership: Signed::new(&own, &evil.world.service), ..receipt.clone() }
}

fn opening_set(evil: &Evil, receipt: &mut Receipt, change: impl FnOnce(&mut OpeningSet)) {
    let mut own = receipt.opening_set.as_ref().unwrap().dangerous_unverified().unwrap();
    change(&mut own);
    receipt.opening_set = Some(Signed::new(&own, &evil.world.service));
}

#[test]
fn another_row_is_refused() {
    let (evil, receipt) = honest();
    let row = receipt.verify(&evil.world.announced, whole()).unwrap();
    let mut words = row.words().to_vec();
    assert_eq!(row.check(&words, row.population()), Ok(()));
    words[0] = words[0].wrapping_add(1);
    assert_eq!(row.check(&words, row.population()), Err(ReceiptError::OtherRow));
    assert_eq!(row.check(row.words(), row.population() + 1), Err(ReceiptError::OtherRow));
    assert_eq!(row.check(&words[1..], row.population()), Err(ReceiptError::OtherRow));
}

#[test]
fn a_replayed_receipt_is_refused() {
    let (evil, receipt) = honest();
    let other = receipt.verify(&evil.world.announced, window(0));
    assert_eq!(other, Err(ReceiptError::OtherWindow(whole())));
    let setup = Setup { windows: 9, ..Setup::new(4) }.verified();
    let next = long_of(setup, |plan| Plan { nonce: [9; 16], ..plan });
    let other = receipt.verify(&next.world.announced, whole());
    assert_eq!(other, Err(ReceiptError::OtherPlan));
    let setup = Setup { windows: 9, ..Setup::new(4) }.with_ticks();
    let plain = long_of(setup, |plan| plan);
    assert_eq!(receipt.verify(&plain.world.announced, whole()), Err(ReceiptError::NotVerified));
}

#[test]
fn what_the_service_did_not_sign_is_refused() {
    let forged = refused(|_, receipt| {
        let own = receipt.membership.dangerous_unverified().unwrap();
        receipt.membership = Signed::new(&own, &crate::protocol::world::key(9));
    });
    assert_eq!(forged, ReceiptError::Membership);
    let forged = refused(|_, receipt| {
        let own = receipt.opening_set.as_ref().unwrap().dangerous_unverified().unwrap();
        receipt.opening_set = Some(Signed::new(&own, &crate::protocol::world::key(9)));
    });
    assert_eq!(forged, ReceiptError::OpeningSet);
    assert_eq!(refused(|_, receipt| receipt.opening_set = None), ReceiptError::OpeningSet);
}

/// Another M or S is one that the members did not sign anything for.
#[test]
fn another_set_is_refused() {
    let smaller = refused(|evil, receipt| {
        opening_set(evil, receipt, |own| own.set = RosterSet::of(4, [0, 1, 2]));
        receipt.shares.pop();
    });
    let part = SharePart::Opening;
    assert_eq!(smaller, ReceiptError::OtherShare { controller: 0, part });
    let other = refused(|evil, receipt| {
        *receipt = membership(evil, receipt, |own| own.owners[0] = 0);
    });
    assert_eq!(other, ReceiptError::OtherSet);
    let both = refused(|evil, receipt| {
        *receipt = membership(evil, receipt, |own| own.owners[0] = 0);
        let digest = receipt.membership.digest();
        opening_set(evil, receipt, |own| own.membership = digest);
    });
    let part = SharePart::Token;
    assert_eq!(both, ReceiptError::OtherShare { controller: 0, part });
}

/// The bits of a set mean other controllers over another list.
#[test]
fn a_bitmap_over_another_list_is_refused() {
    let longer = refused(|evil, receipt| {
        opening_set(evil, receipt, |own| own.set = RosterSet::of(5, [0, 1, 2, 3]));
    });
    assert_eq!(longer, ReceiptError::NotASubset);
    let longer = refused(|evil, receipt| {
        *receipt = membership(evil, receipt, |own| own.members = RosterSet::of(5, [0, 1, 2, 3]));
    });
    assert_eq!(longer, ReceiptError::Roster);
    let fewer = refused(|evil, receipt| {
        *receipt = membership(evil, receipt, |own| {
            own.owners.pop();
        });
    });
    assert_eq!(fewer, ReceiptError::Roster);
    let beyond = refused(|evil, receipt| {
        *receipt = membership(evil, receipt, |own| {
            own.members = RosterSet::of(4, [0, 1, 2]);
            own.owners.pop();
            own.mask_keys.pop();
        });
        let digest = receipt.membership.digest();
        opening_set(evil, receipt, |own| own.membership = digest);
    });
    assert_eq!(beyond, ReceiptError::NotASubset);
}

#[test]
fn too_few_members_or_owners_are_refused() {
    let few = refused(|evil, receipt| {
        opening_set(evil, receipt, |own| own.set = RosterSet::of(4, [0, 1]));
        receipt.shares.truncate(2);
    });
    assert_eq!(few, ReceiptError::BelowQuorum { held: 2, needed: 3 });
    let invented = refused(|evil, receipt| {
        *receipt = membership(evil, receipt, |own| own.owners[2] = 2);
        let digest = receipt.membership.digest();
        opening_set(evil, receipt, |own| own.membership = digest);
    });
    assert_eq!(invented, ReceiptError::OwnersInvented { controller: 2 });
    let nobody = refused(|evil, receipt| {
        *receipt = membership(evil, receipt, |own| own.owners.fill(0));
        let digest = receipt.membership.digest();
        opening_set(evil, receipt, |own| own.membership = digest);
    });
    assert_eq!(nobody, ReceiptError::Population { stated: 0, counted: 0 });
}

/// The members answer for a plan with room for all of them. The service shows their answers as another's.
#[test]
fn a_population_above_the_plans_bound_is_refused() {
    let (_, mut receipt) = honest();
    let setup = Setup { windows: 9, ..Setup::new(4) }.verified();
    let narrow = long_of(setup, |plan| {
        let population = PopulationBounds { max: 3, ..plan.population };
        Plan { population, ..plan }
    });
    let plan = narrow.world.id();
    receipt = membership(&narrow, &receipt, |own| own.plan = plan);
    let digest = receipt.membership.digest();
    opening_set(&narrow, &mut receipt, |own| (own.plan, own.membership) = (plan, digest));
    let refused = receipt.verify(&narrow.world.announced, whole()).unwrap_err();
    assert!(matches!(refused, ReceiptError::Population { stated: 4, .. }), "{refused}");
}

/// A member's signature for a window counts in no other one, whatever it is bound to.
#[test]
fn openings_of_another_window_plan_or_member_are_refused() {
    let part = SharePart::Opening;
    let other = ReceiptError::OtherShare { controller: 1, part };
    let changes: [fn(&mut Opening); 3] =
        [|own| own.window = window(0), |own| own.plan = PlanId([9; 32]), |own| own.controller = 2];
    for change in changes {
        let found = refused(|evil, receipt| {
            let signed = receipt.shares[1].opening.as_ref().unwrap();
            let mut own = signed.dangerous_unverified().unwrap();
            change(&mut own);
            let key = crate::protocol::coordinator::key_of(&evil.world, 1);
            receipt.shares[1].opening = Some(Signed::new(&own, &key));
        });
        assert_eq!(found, other);
    }
}

#[test]
fn shares_that_are_missing_doubled_or_of_others_are_refused() {
    assert_eq!(
        refused(|_, receipt| drop(receipt.shares.pop())),
        ReceiptError::Shares { found: 3, expected: 4 }
    );
    let more = refused(|_, receipt| receipt.shares.push(receipt.shares[0].clone()));
    assert_eq!(more, ReceiptError::Shares { found: 5, expected: 4 });
    let part = SharePart::Token;
    let twice = refused(|_, receipt| receipt.shares[1] = receipt.shares[0].clone());
    assert_eq!(twice, ReceiptError::Signature { controller: 1, part });
    let swapped = refused(|_, receipt| receipt.shares.swap(2, 3));
    assert_eq!(swapped, ReceiptError::Signature { controller: 2, part });
    let part = SharePart::Opening;
    let none = refused(|_, receipt| receipt.shares[3].opening = None);
    assert_eq!(none, ReceiptError::OtherShare { controller: 3, part });
    let theirs = refused(|_, receipt| {
        receipt.shares[3].opening = receipt.shares[2].opening.clone();
    });
    assert_eq!(theirs, ReceiptError::Signature { controller: 3, part });
}

/// A member that signs two tokens for one membership has opened one of them.
#[test]
fn shares_of_two_openings_do_not_mix() {
    let part = SharePart::Opening;
    let mixed = refused(|evil, receipt| {
        let own: Token = receipt.shares[1].token.dangerous_unverified().unwrap();
        let words = own.words.iter().map(|word| word.wrapping_add(1)).collect();
        let key = crate::protocol::coordinator::key_of(&evil.world, 1);
        receipt.shares[1].token = Signed::new(&Token { words, ..own }, &key);
    });
    assert_eq!(mixed, ReceiptError::OtherShare { controller: 1, part });
}

/// Whatever the members signed, it must add up. Here one of them signs another number.
#[test]
fn shares_that_do_not_add_up_are_refused() {
    let (evil, mut receipt) = honest();
    let key = crate::protocol::coordinator::key_of(&evil.world, 1);
    let mut token: Token = receipt.shares[1].token.dangerous_unverified().unwrap();
    *token.words.last_mut().unwrap() ^= 1;
    receipt.shares[1].token = Signed::new(&token, &key);
    let mut opening = receipt.shares[1].opening.as_ref().unwrap().dangerous_unverified().unwrap();
    opening.token = Some(receipt.shares[1].token.digest());
    receipt.shares[1].opening = Some(Signed::new(&opening, &key));
    let error = receipt.verify(&evil.world.announced, whole()).unwrap_err();
    assert_eq!(error, ReceiptError::CheckWord);
    // Any other word of it is this controller's to say: that is what its signature is for.
    *token.words.last_mut().unwrap() ^= 1;
    token.words[0] = token.words[0].wrapping_add(5);
    receipt.shares[1].token = Signed::new(&token, &key);
    opening.token = Some(receipt.shares[1].token.digest());
    receipt.shares[1].opening = Some(Signed::new(&opening, &key));
    assert!(receipt.verify(&evil.world.announced, whole()).is_ok());
    // A share of another length.
    token.words.pop();
    receipt.shares[1].token = Signed::new(&token, &key);
    let part = SharePart::Token;
    let error = receipt.verify(&evil.world.announced, whole()).unwrap_err();
    assert_eq!(error, ReceiptError::Length { controller: 1, part });
}

/// A row that is sealed to its consumer is compared under its pads.
#[test]
fn a_sealed_row_is_checked_as_it_is_sealed() {
    let setup = Setup { windows: 9, sealed: true, ..Setup::new(3) }.verified();
    let mut evil = long_of(setup, |plan| plan);
    let (draft, accepted) = gather(&mut evil, |_, streams| streams);
    let receipt = receipt(&mut evil, &draft, &[0, 1, 2]);
    let row = receipt.verify(&evil.world.announced, whole()).unwrap();
    let reader = sealed_results::reader(&evil.world);
    assert_eq!(reader.open(&row.sealed()).unwrap(), super::truth(&evil, &accepted));
    assert_ne!(row.words(), super::truth(&evil, &accepted));
}

#[test]
fn a_receipt_has_one_form() {
    let (_, receipt) = honest();
    let bytes = receipt.to_bytes();
    assert_eq!(Receipt::from_bytes(&bytes).as_ref(), Ok(&receipt));
    let bad = |bytes: &[u8]| Receipt::from_bytes(bytes).unwrap_err();
    assert_eq!(bad(&bytes[..bytes.len() - 1]), ReceiptFormatError::Malformed);
    assert_eq!(bad(&[bytes.clone(), vec![0]].concat()), ReceiptFormatError::Malformed);
    assert_eq!(bad(&[]), ReceiptFormatError::Malformed);
    for version in [1, 4] {
        let other = [vec![version], bytes[1..].to_vec()].concat();
        assert_eq!(bad(&other), ReceiptFormatError::Version(version));
    }
    // A length in more bytes than it needs.
    let mut longer = bytes.clone();
    longer.splice(2..3, [bytes[2] | 0x80, 0]);
    assert_eq!(bad(&longer), ReceiptFormatError::Malformed);
}

/// Signatures of many members are checked in several batches. Wherever a forged one is, it is found, and named.
#[test]
fn a_forged_share_is_found_in_each_batch() {
    let (evil, honest) = honest();
    let row = honest.verify(&evil.world.announced, whole()).unwrap();
    for together in 1..6 {
        let verify =
            |receipt: &Receipt| receipt.verify_in_batches(&evil.world.announced, whole(), together);
        assert_eq!(verify(&honest).as_ref(), Ok(&row));
        for controller in 0..4 {
            let mut forged = honest.clone();
            let share = &mut forged.shares[controller as usize];
            let own = share.token.dangerous_unverified().unwrap();
            share.token = Signed::new(&own, &crate::protocol::world::key(9));
            let part = SharePart::Token;
            assert_eq!(verify(&forged), Err(ReceiptError::Signature { controller, part }));
            let mut forged = honest.clone();
            let share = &mut forged.shares[controller as usize];
            let own = share.opening.as_ref().unwrap().dangerous_unverified().unwrap();
            share.opening = Some(Signed::new(&own, &crate::protocol::world::key(9)));
            let part = SharePart::Opening;
            assert_eq!(verify(&forged), Err(ReceiptError::Signature { controller, part }));
        }
    }
}

/// Members' later signatures, for another set, are useless: they sign one.
#[test]
fn a_member_opens_once() {
    let mut evil = long(4, 1, 1);
    let (draft, _) = gather(&mut evil, |_, streams| streams);
    receipt(&mut evil, &draft, &[0, 1, 2, 3]);
    let other: ServiceMessage = evil.set(&draft, &[0, 1, 2]);
    let refused = evil.ask(0, after(9), &other);
    assert!(!matches!(refused, Ok(ControllerMessage::Opening(_))), "{refused:?}");
}

/// `EXPLAIN` states how large receipts are before there is one.
#[test]
fn receipts_are_as_large_as_is_explained() {
    for controllers in [3, 8] {
        let mut evil = long(controllers, 1, 1);
        let (draft, _) = gather(&mut evil, |_, streams| streams);
        let members: Vec<u32> = (0..controllers).collect();
        let found = receipt(&mut evil, &draft, &members).to_bytes().len();
        let said = receipt_bytes(&evil.world.plan, false);
        assert!(said.abs_diff(found) * 20 < found, "{said} bytes are explained, {found} are there");
    }
}
