//! Sums that are sealed to a consumer, and receipts with the parts of sums that they rest on.

use alpheus_encrypted_stream::consumer::SealedSum;
use alpheus_encrypted_stream::receipt::WindowReceipt;
use alpheus_encrypted_stream::tick::parts::{NeededBlocks, PartialSum};
use alpheus_encrypted_stream::tick::sums::Blocks;
use alpheus_policy::plan::Release;

/// A receipt of a verified or bounded window is decoded, and encoded to the same bytes. Any bytes are also
/// checked as a part of a sum: none leads to a root that it does not have.
pub fn receipt(data: &[u8]) {
    match WindowReceipt::from_bytes(data) {
        Ok(receipt) => assert_eq!(receipt.to_bytes(), data, "a receipt has one encoding"),
        Err(error) => assert!(!error.to_string().is_empty(), "an error has a message"),
    }
    if let Ok(part) = postcard::from_bytes::<PartialSum>(data) {
        let release = Release { rows: vec![vec![3], vec![20]] };
        let needed = NeededBlocks::of(&Blocks::of_lengths(&[8, 3, 7, 1, 1, 1]), &release);
        let (own, root) = needed.part(&[7; 21]);
        let holds = needed.check(&part, &root).is_ok();
        assert!(!holds || part == own, "another part leads to the same root");
    }
}

/// A sum sealed to a consumer is decoded, and encoded to the same bytes.
pub fn sealed_sum(data: &[u8]) {
    match SealedSum::from_bytes(data) {
        Ok(sum) => assert_eq!(sum.to_bytes(), data, "a sealed sum has one encoding"),
        Err(error) => assert!(!error.to_string().is_empty(), "an error has a message"),
    }
}
