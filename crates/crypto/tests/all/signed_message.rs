//! Signed messages open only as signed: the same bytes, signer and kind.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{BatchItem, SignatureError, SigningKey, verify_batch};
use alpheus_crypto::signed_message::{
    CheckedSignatures, Message, SignatureBatch, Signed, SignedMessageError,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    number: u64,
    names: Vec<String>,
}

impl Message for Order {
    const LABEL: &'static str = "alpheus/test-order/v1";
}

/// Another kind of message with the same bytes as an order.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Refund {
    number: u64,
    names: Vec<String>,
}

impl Message for Refund {
    const LABEL: &'static str = "alpheus/test-refund/v1";
}

/// A message with an order's label, but with bytes that an order cannot have.
#[derive(Serialize, Deserialize)]
struct LongOrder(Order, u8);

impl Message for LongOrder {
    const LABEL: &'static str = Order::LABEL;
}

#[derive(Serialize, Deserialize)]
struct NotAnOrder(Vec<u8>);

impl Message for NotAnOrder {
    const LABEL: &'static str = Order::LABEL;
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&Secret::from_bytes([seed; 32]))
}

fn order() -> Order {
    Order { number: 300, names: vec!["a".into(), "bc".into()] }
}

/// Decodes a message of one kind as another kind.
fn received_as<U>(sent: &impl Serialize) -> Signed<U> {
    postcard::from_bytes(&postcard::to_allocvec(sent).unwrap()).unwrap()
}

#[test]
fn a_signed_message_opens_to_its_content() {
    let signed = Signed::new(&order(), &key(1));
    let verified = received_as::<Order>(&signed).open(&key(1).verifying_key()).unwrap();
    assert_eq!(*verified, order());
    assert_eq!(verified.signer(), &key(1).verifying_key());
    let again = Signed::new(&order(), &key(1)).open(&key(1).verifying_key()).unwrap();
    assert_eq!(verified.digest(), again.digest(), "the same message has the same digest");
    assert_eq!(verified.into_inner(), order());
}

#[test]
fn another_key_or_kind_of_message_is_refused() {
    let signed = Signed::new(&order(), &key(1));
    assert_eq!(signed.open(&key(2).verifying_key()), Err(SignedMessageError::Signature));
    let refund = received_as::<Refund>(&signed);
    assert_eq!(refund.open(&key(1).verifying_key()), Err(SignedMessageError::Signature));
}

#[test]
fn malformed_messages_are_refused_even_if_signed() {
    let open = |signed: &Signed<Order>| signed.open(&key(1).verifying_key()).err();
    let trailing = received_as(&Signed::new(&LongOrder(order(), 0), &key(1)));
    assert_eq!(open(&trailing), Some(SignedMessageError::Malformed));
    // Order { number: 2, names: [] }, with two bytes for the length of `names` instead of one.
    let overlong = received_as(&Signed::new(&NotAnOrder(vec![0x80, 0x00]), &key(1)));
    assert_eq!(open(&overlong), Some(SignedMessageError::Malformed));
    let empty = received_as(&Signed::new(&NotAnOrder(vec![]), &key(1)));
    assert_eq!(open(&empty), Some(SignedMessageError::Malformed));
}

#[test]
fn a_batch_holds_only_if_each_signature_does() {
    let (label, messages) = ("alpheus/test/v1", [b"a", b"b", b"c"]);
    let mut items: Vec<BatchItem<'_>> = (1u8..)
        .zip(&messages)
        .map(|(seed, message)| BatchItem {
            key: key(seed).verifying_key(),
            label,
            message: message.as_slice(),
            signature: key(seed).sign(label, message.as_slice()),
        })
        .collect();
    assert_eq!(verify_batch(&items), Ok(()));
    assert_eq!(verify_batch(&[]), Ok(()));
    items[1].message = b"x";
    assert_eq!(verify_batch(&items), Err(SignatureError::Mismatch));
}

#[test]
fn messages_checked_in_a_batch_open_as_each_would_alone() {
    let order = |number: u64| Order { number, names: Vec::new() };
    let honest: Vec<_> = (1..=8).map(|seed| Signed::new(&order(seed.into()), &key(seed))).collect();
    let check = |messages: &[Signed<Order>]| {
        let mut batch = SignatureBatch::default();
        (1u8..).zip(messages).for_each(|(seed, m)| batch.add(m, &key(seed).verifying_key()));
        batch.check()
    };
    let opened = |messages: &[Signed<Order>], checked: &CheckedSignatures| -> Vec<_> {
        let open =
            |(seed, m): (u8, &Signed<Order>)| m.open_with(&key(seed).verifying_key(), checked);
        (1u8..).zip(messages).map(open).collect()
    };
    for forged in [None, Some(0), Some(5)] {
        let mut messages = honest.clone();
        if let Some(position) = forged {
            messages[position] = Signed::new(&order(99), &key(77));
        }
        for (position, opened) in opened(&messages, &check(&messages)).into_iter().enumerate() {
            let expected = if forged == Some(position) {
                Err(SignedMessageError::Signature)
            } else {
                Ok(order(position as u64 + 1))
            };
            assert_eq!(opened.map(|verified| verified.into_inner()), expected, "{position}");
        }
    }
    // A checked signature does not cover another key, another message or another kind.
    let checked = check(&honest);
    assert_eq!(
        honest[0].open_with(&key(2).verifying_key(), &checked),
        Err(SignedMessageError::Signature)
    );
    let other = received_as::<Refund>(&honest[0]);
    assert!(matches!(
        other.open_with(&key(1).verifying_key(), &checked),
        Err(SignedMessageError::Signature)
    ));
    let stranger = Signed::new(&order(1), &key(77));
    assert_eq!(
        stranger.open_with(&key(1).verifying_key(), &checked),
        Err(SignedMessageError::Signature)
    );
}

proptest! {
    #[test]
    fn a_message_with_a_flipped_bit_does_not_open(bit in 0usize..8 * 80) {
        let mut bytes = postcard::to_allocvec(&Signed::new(&order(), &key(1))).unwrap();
        prop_assume!(bit / 8 < bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(signed) = postcard::from_bytes::<Signed<Order>>(&bytes) {
            prop_assert!(signed.open(&key(1).verifying_key()).is_err());
        }
    }

    #[test]
    fn arbitrary_bytes_never_open(bytes: Vec<u8>) {
        if let Ok(signed) = postcard::from_bytes::<Signed<Order>>(&bytes) {
            prop_assert!(signed.open(&key(1).verifying_key()).is_err());
        }
    }
}
