//! Receipts of bounded windows: a service that publishes another row, another set or other messages is
//! refused.

use alpheus_bounded_influence::check::{FaultError, FaultyError, RowError};
use alpheus_crypto::group::PublicScalar;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::receipt::{
    BoundedReceipt, BoundsError, Receipt, ReceiptError, ReceiptFormatError, SharePart,
    WindowReceipt,
};

use super::{checker, five, last, net, opened, truth};
use crate::protocol::coordinator::key_of;
use crate::protocol::net::Net;
use crate::protocol::verified;
use crate::protocol::world::{Setup, window};

fn receipt(net: &Net, number: usize) -> BoundedReceipt {
    let opened = net.outcomes[number].result.as_ref().unwrap();
    (**opened.bounded.as_ref().unwrap()).clone()
}

fn verify(net: &Net, receipt: &BoundedReceipt) -> Result<Vec<i128>, ReceiptError> {
    let row = receipt.verify(&net.world.announced, &checker(&net.world), window(0))?;
    Ok(row.cells().to_vec())
}

#[test]
fn what_a_service_changes_is_refused() {
    let mut net = net(five());
    net.close(0);
    net.close(1);
    let (first, second) = (receipt(&net, 0), receipt(&net, 1));
    assert_eq!(verify(&net, &first), Ok(truth(0..5, 0)));
    let changed = |change: &dyn Fn(&mut BoundedReceipt)| {
        let mut other = first.clone();
        change(&mut other);
        verify(&net, &other).err().unwrap()
    };
    let signature = |controller, part| ReceiptError::Signature { controller, part };
    assert!(matches!(verify(&net, &second), Err(ReceiptError::OtherWindow(_))));
    // Members' messages: swapped, doubled, missing, of another window.
    let swapped = changed(&|own| own.shares.swap(0, 1));
    assert_eq!(swapped, signature(0, SharePart::Token));
    let doubled = changed(&|own| own.shares[1] = own.shares[0].clone());
    assert_eq!(doubled, signature(1, SharePart::Token));
    let missing = changed(&|own| drop(own.shares.pop()));
    assert_eq!(missing, ReceiptError::Shares { found: 4, expected: 5 });
    let old = changed(&|own| own.shares[2] = second.shares[2].clone());
    assert_eq!(old, BoundsError::Misplaced(2).into());
    let old = changed(&|own| own.shares[2].opening = second.shares[2].opening.clone());
    assert_eq!(old, BoundsError::Misplaced(2).into());
    let other = changed(&|own| own.shares[2].opening = first.shares[1].opening.clone());
    assert_eq!(other, signature(2, SharePart::Opening));
    // Its own: another S, another M, more owners at one.
    let fewer = changed(&|own| {
        let mut set = own.opening_set.dangerous_unverified().unwrap();
        set.set = RosterSet::of(5, set.set.iter().skip(1));
        own.opening_set = Signed::new(&set, &net.world.service);
        own.shares.remove(0);
    });
    assert_eq!(fewer, BoundsError::Misplaced(1).into());
    let invented = changed(&|own| {
        let mut membership = own.membership.dangerous_unverified().unwrap();
        membership.owners[0] = 2;
        own.membership = Signed::new(&membership, &net.world.service);
    });
    assert_eq!(invented, ReceiptError::OwnersInvented { controller: 0 });
    let of_another = changed(&|own| {
        let key = key_of(&net.world, 0);
        let membership = own.membership.dangerous_unverified().unwrap();
        own.membership = Signed::new(&membership, &key);
    });
    assert_eq!(of_another, ReceiptError::Membership);
}

/// A receipt that a service and a colluding member make together: the commitments do not open to it.
#[test]
fn what_a_colluder_signs_again_is_refused() {
    let mut net = net(five());
    net.close(0);
    let first = receipt(&net, 0);
    let key = key_of(&net.world, 3);
    let with = |change: &dyn Fn(&mut alpheus_encrypted_stream::messages::Contribution)| {
        let mut other = first.clone();
        let mut own = other.shares[3].contribution.dangerous_unverified().unwrap();
        change(&mut own);
        let signed = Signed::new(&own, &key);
        let mut opening = other.shares[3].opening.dangerous_unverified().unwrap();
        opening.contribution = signed.digest();
        other.shares[3].contribution = signed;
        other.shares[3].opening = Signed::new(&opening, &key);
        verify(&net, &other).err().map(|error| match error {
            ReceiptError::Bounds(error) => error,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(with(&|_| ()), None);
    let skewed = with(&|own| {
        own.share.values[1] = own.share.values[1].plus(&PublicScalar::of(1));
    });
    assert_eq!(skewed, Some(RowError::Cell { cell: 1 }.into()));
    let unproven = with(&|own| own.owners[0].proof.fill(0));
    let fault = FaultyError { controller: 3, fault: FaultError::Range };
    assert_eq!(unproven, Some(fault.into()));
    let none = with(&|own| own.owners.clear());
    let fault = FaultyError { controller: 3, fault: FaultError::Owners };
    assert_eq!(none, Some(fault.into()));
}

/// A row beside a true receipt.
#[test]
fn another_row_than_the_receipts_is_refused() {
    let mut net = net(Setup::new(3));
    net.close(0);
    let (outputs, _) = opened(&net);
    let row = receipt(&net, 0);
    let row = row.verify(&net.world.announced, &checker(&net.world), last(&net).window).unwrap();
    assert_eq!(row.check(&outputs.outputs, 3), Ok(()));
    for word in 0..outputs.outputs.len() {
        let mut words = outputs.outputs.clone();
        words[word] ^= 1;
        assert_eq!(row.check(&words, 3), Err(ReceiptError::OtherRow));
    }
    assert_eq!(row.check(&outputs.outputs, 2), Err(ReceiptError::OtherRow));
}

/// A receipt without proofs shows nothing of a bounded plan, and one with proofs nothing of another.
#[test]
fn receipts_of_the_other_kind_show_nothing() {
    let mut net = net(Setup::new(3));
    net.close(0);
    let own = receipt(&net, 0);
    let plain = Receipt {
        membership: own.membership.clone(),
        opening_set: Some(own.opening_set.clone()),
        shares: vec![],
        exclusions: vec![],
        listing: None,
    };
    let refused = plain.verify(&net.world.announced, window(0));
    assert_eq!(refused, Err(ReceiptError::NotVerified));
    let other = verified::long(3, 1, 1);
    let refused = own.verify(&other.world.announced, &checker(&net.world), window(0));
    assert_eq!(refused, Err(BoundsError::NotBounded.into()));
}

/// As bytes a receipt has one form, whose first byte says what it is of. Read again, it shows the same, and
/// nothing without what checks proofs.
#[test]
fn a_receipt_has_one_form() {
    let mut net = net(Setup::new(3));
    net.close(0);
    let own = WindowReceipt::from(receipt(&net, 0));
    let bytes = own.to_bytes();
    assert_eq!((bytes[0], WindowReceipt::from_bytes(&bytes)), (4, Ok(own.clone())));
    let bad = |bytes: &[u8]| WindowReceipt::from_bytes(bytes).unwrap_err();
    assert_eq!(bad(&bytes[..bytes.len() - 1]), ReceiptFormatError::Malformed);
    assert_eq!(bad(&[&bytes[..], &[0]].concat()), ReceiptFormatError::Malformed);
    assert_eq!(bad(&[&[5], &bytes[1..]].concat()), ReceiptFormatError::Version(5));
    assert_eq!(bad(&[]), ReceiptFormatError::Malformed);
    let (announced, checker) = (&net.world.announced, checker(&net.world));
    let row = own.verify(announced, Some(&checker), window(0)).unwrap();
    assert_eq!(row.population(), 3);
    let unchecked = own.verify(announced, None, window(0));
    assert_eq!(unchecked, Err(BoundsError::NotBounded.into()));
    let WindowReceipt::Bounded(inner) = own else { panic!("{own:?}") };
    let unproven = Receipt {
        membership: inner.membership,
        opening_set: Some(inner.opening_set),
        shares: Vec::new(),
        exclusions: Vec::new(),
        listing: None,
    };
    let shown = WindowReceipt::from(unproven).verify(announced, Some(&checker), window(0));
    assert_eq!(shown, Err(BoundsError::NoProofs.into()));
}
