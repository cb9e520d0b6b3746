//! Messages of tables: the verifiable table's, and those of the paper's own.

use alpheus_pairing_table as pairing;
use alpheus_pairing_table::parameters::PairingSet;
use alpheus_verifiable_table::label::{Column, DataSet, Kind};
use alpheus_verifiable_table::messages::{Answer, Block, Manifest, Request};
use alpheus_verifiable_table::parameters::Set;
use alpheus_verifiable_table::saved::SavedState;
use alpheus_verifiable_table::server::Sum;

/// The manifest of the table for the messages.
#[must_use]
pub fn table_manifest(data_set: DataSet) -> Manifest {
    let products = vec![(Column(0), Column(0))];
    Manifest { data_set, set: Set::L128, columns: 1, products }
}

/// Blocks, requests and answers of a table are decoded, and encoded to the same bytes. A server sums
/// any block that it has accepted, or reports that it is damaged.
pub fn table(data: &[u8]) {
    let mut data_set = DataSet([0; 16]);
    if let Some(named) = data.get(1..17) {
        data_set.0.copy_from_slice(named);
    }
    let manifest = table_manifest(data_set);
    if let Ok(block) = Block::from_bytes(&manifest, data) {
        assert_eq!(block.as_bytes(), data, "a block is kept as it came");
        let address = block.address();
        let run = alpheus_verifiable_table::messages::Run {
            segment: address.segment,
            epoch: address.epoch,
            from: 0,
            to: 1,
        };
        let weights = alpheus_verifiable_table::messages::Weights::Ones;
        let request = Request { kind: Kind::Column(Column(0)), runs: vec![run], weights };
        if let Ok(mut sum) = Sum::new(&manifest, &request) {
            let _ = sum.add(&block);
        }
    }
    if let Ok(state) = SavedState::from_bytes(&data_set, data) {
        assert_eq!(state.as_bytes(), data, "a saved state is kept as it came");
    }
    for kind in [Kind::Column(Column(0)), Kind::Product(Column(0), Column(0))] {
        if let Ok(answer) = Answer::from_bytes(manifest.ring(), kind, data) {
            assert_eq!(answer.to_bytes(manifest.ring()), data, "an answer has one encoding");
        }
    }
    if let Ok(request) = postcard::from_bytes::<Request>(data) {
        let _ = Sum::new(&manifest, &request);
    }
    if let Ok(manifest) = postcard::from_bytes::<Manifest>(data) {
        let _ = manifest.check();
    }
}

/// The shape of the paper's own table for the messages.
pub const PAIRING: pairing::messages::Shape =
    pairing::messages::Shape { set: PairingSet::P80, columns: 1, bound: 9 };

/// Blocks and answers that end with these bytes, and functions, are decoded, and encoded to the same
/// bytes. The bytes before, mostly coefficients, are zero.
pub fn pairing_table(data: &[u8]) {
    use pairing::messages::{Answer, Block, Function};
    let ending = |length: usize| {
        let from = length.checked_sub(data.len())?;
        let mut bytes = vec![0; length];
        bytes[from..].copy_from_slice(data);
        Some(bytes)
    };
    for degree in [1, 2] {
        let bytes = ending(Answer::length(PAIRING.set, degree));
        let bytes = bytes.unwrap_or_else(|| data.to_vec());
        if let Ok(answer) = Answer::from_bytes(PAIRING.set, degree, &bytes) {
            assert_eq!(answer.to_bytes(), bytes, "an answer has one encoding");
        }
    }
    // A block is thousands of numbers, which take a millisecond. Tests try all inputs of two bytes, and a
    // block that ends with one byte shows as much.
    let block = (data.len() != 2).then(|| ending(PAIRING.block_length())).flatten();
    let mut bytes = block.unwrap_or_else(|| data.to_vec());
    if data.len() < bytes.len() {
        bytes[0] = 1;
    }
    if let Ok(block) = Block::from_bytes(&PAIRING, &bytes) {
        assert_eq!(block.to_bytes(), bytes, "a block has one encoding");
    }
    if let Ok(function) = postcard::from_bytes::<Function>(data) {
        let _ = pairing::server::Evaluation::new(&PAIRING, &function);
    }
}
