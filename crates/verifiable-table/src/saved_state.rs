//! The owner's records, sealed for the server. Together with the key, they replace a ledger
//! that is lost.

use crate::error::{SavedStateError, VerifyError};
use crate::keys::TableKey;
use crate::label::{DataSet, Segment};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::{kdf, labels};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::Zeroizing;

/// The name of a saved state. The server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StateName {
    /// One more than that of the state it replaces.
    pub version: u64,
    /// The start of the owner that saved it.
    pub segment: Segment,
}

/// The version, and enough of the segment to tell copies of one ledger apart.
impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-", self.version)?;
        self.segment.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A pseudorandom function of all that a state holds. States of one ledger form a chain of
/// these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StateId(pub(crate) [u8; 32]);

impl StateId {
    /// What the first state of a table has in place of its predecessor's.
    pub(crate) const NONE: Self = Self([0; 32]);
}

/// The format of saved states.
const FORMAT: u8 = 1;
/// Format, data set, version, segment, predecessor.
const NAMED: usize = 1 + 16 + 8 + 16 + 32;
/// The same, and the state's own id.
const HEADER: usize = NAMED + 32;
/// Bytes of the authentication tag.
const TAG: usize = 16;
/// The shortest unit of padding.
const MIN_UNIT: usize = 4096;

/// A sealed state as it is sent, stored and fetched: always the same bytes.
///
/// # Privacy
/// It reveals its name, its predecessor's id, and its length to a sixteenth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedState<B = Vec<u8>> {
    name: StateName,
    bytes: B,
}

impl<B: AsRef<[u8]>> SavedState<B> {
    /// Reads a state of a table. Checks the header only; opening shows whether the owner
    /// made it.
    ///
    /// # Errors
    /// [`SavedStateError`].
    pub fn from_bytes(data_set: &DataSet, bytes: B) -> Result<Self, SavedStateError> {
        let all = bytes.as_ref();
        let (header, sealed) = all.split_at_checked(HEADER).ok_or(SavedStateError::Length)?;
        if header[0] != FORMAT {
            return Err(SavedStateError::Format(header[0]));
        }
        if header[1..17] != data_set.0 {
            return Err(SavedStateError::DataSet);
        }
        if sealed.len() < MIN_UNIT + TAG {
            return Err(SavedStateError::Length);
        }
        let (mut version, mut segment) = ([0; 8], [0; 16]);
        version.copy_from_slice(&header[17..25]);
        segment.copy_from_slice(&header[25..41]);
        let name = StateName { version: u64::from_be_bytes(version), segment: Segment(segment) };
        Ok(Self { name, bytes })
    }

    /// The name in its header.
    #[must_use]
    pub fn name(&self) -> StateName {
        self.name
    }

    /// The exact bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// A state that was opened: its owner made it, for this table and under this name.
pub struct OpenedState {
    pub(crate) name: StateName,
    pub(crate) id: StateId,
    pub(crate) previous: StateId,
    pub(crate) records: Vec<(Vec<u8>, Zeroizing<Vec<u8>>)>,
}

impl OpenedState {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> StateName {
        self.name
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> StateId {
        self.id
    }

    /// The id of the state that it replaced. A later state of the same ledger holds all that an
    /// earlier one does.
    #[must_use]
    pub fn previous(&self) -> StateId {
        self.previous
    }

    /// The records, without the one that names this state.
    pub fn records(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.records.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))
    }
}

impl TableKey {
    /// The name of this key's table. Each table has a key of its own, so that the key alone
    /// finds it.
    #[must_use]
    pub fn data_set(&self) -> DataSet {
        let name: Secret<16> = kdf::derive(self.expose(), labels::TABLE_DATA_SET, &[]);
        DataSet(*name.expose())
    }

    /// Opens the state of this name, as the server has it.
    ///
    /// A server that keeps newer states to itself can show any older one: only who knows the
    /// newest version can tell.
    ///
    /// # Errors
    /// [`VerifyError`], whatever is wrong.
    pub fn open_state(&self, name: &StateName, bytes: &[u8]) -> Result<OpenedState, VerifyError> {
        let data_set = self.data_set();
        let state = SavedState::from_bytes(&data_set, bytes).map_err(|_| VerifyError)?;
        if state.name != *name {
            return Err(VerifyError);
        }
        StateKey::new(self, data_set).open(&state)
    }
}

/// The key under which a table's states are sealed.
pub(crate) struct StateKey {
    root: Secret<32>,
    data_set: DataSet,
}

/// A list of records, without its padding.
type Records<'a> = Vec<(&'a [u8], &'a [u8])>;

impl StateKey {
    pub(crate) fn new(key: &TableKey, data_set: DataSet) -> Self {
        let root = kdf::derive(key.expose(), labels::TABLE_STATE, &[b"root", &data_set.0]);
        Self { root, data_set }
    }

    /// Seals records. The id, and with it the key, derives from `fresh` and from all that is
    /// sealed. So no two states share a key, even if the generator repeats.
    pub(crate) fn seal(
        &self,
        name: StateName,
        previous: StateId,
        records: &Records<'_>,
        fresh: &[u8; 32],
    ) -> (SavedState, StateId) {
        let plain = pad(postcard::to_allocvec(records).unwrap_or_default());
        let mut bytes = Vec::with_capacity(HEADER + plain.len() + TAG);
        bytes.push(FORMAT);
        bytes.extend(self.data_set.0);
        bytes.extend(name.version.to_be_bytes());
        bytes.extend(name.segment.0);
        bytes.extend(previous.0);
        let id: Secret<32> = self.derive(&[b"name", fresh, &bytes, &plain]);
        bytes.extend(id.expose());
        let payload = Payload { msg: &plain, aad: &bytes };
        let sealed = self.cipher(&bytes).encrypt(&Nonce::default(), payload);
        #[expect(clippy::expect_used, reason = "only more than 256 GiB do not fit")]
        let sealed = sealed.expect("a state is far shorter than the cipher's limit");
        bytes.extend(sealed);
        (SavedState { name, bytes }, StateId(*id.expose()))
    }

    pub(crate) fn open<B: AsRef<[u8]>>(
        &self,
        state: &SavedState<B>,
    ) -> Result<OpenedState, VerifyError> {
        let (header, sealed) = state.as_bytes().split_at_checked(HEADER).ok_or(VerifyError)?;
        let payload = Payload { msg: sealed, aad: header };
        let plain = self.cipher(header).decrypt(&Nonce::default(), payload);
        let plain = Zeroizing::new(plain.map_err(|_| VerifyError)?);
        let read = postcard::take_from_bytes::<Records<'_>>(&plain).map_err(|_| VerifyError)?;
        let owned = |(key, value): (&[u8], &[u8])| (key.to_vec(), Zeroizing::new(value.to_vec()));
        let records = read.0.into_iter().map(owned).collect();
        let id = |from: usize| {
            let mut id = [0; 32];
            id.copy_from_slice(&header[from..from + 32]);
            StateId(id)
        };
        Ok(OpenedState { name: state.name, id: id(NAMED), previous: id(NAMED - 32), records })
    }

    fn derive(&self, parts: &[&[u8]]) -> Secret<32> {
        kdf::derive(self.root.expose(), labels::TABLE_STATE, parts)
    }

    /// The cipher of one state, whose header no other shares.
    fn cipher(&self, header: &[u8]) -> ChaCha20Poly1305 {
        ChaCha20Poly1305::new(self.derive(&[b"key", header]).expose().into())
    }
}

/// Appends zeros, so that the length says little about the records.
fn pad(mut plain: Vec<u8>) -> Zeroizing<Vec<u8>> {
    let mut unit = MIN_UNIT;
    while 16 * unit < plain.len() {
        unit *= 2;
    }
    let length = plain.len().div_ceil(unit).max(1) * unit;
    let mut padded = Zeroizing::new(Vec::with_capacity(length));
    padded.extend_from_slice(&plain);
    padded.resize(length, 0);
    zeroize::Zeroize::zeroize(&mut plain);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_test_support::vectors::{cases, from_hex, hex};
    use serde_json::Value;
    use sha2::{Digest, Sha256};

    fn bytes(text: &Value) -> Vec<u8> {
        from_hex(text.as_str().unwrap())
    }

    fn counting<const N: usize>(from: u8) -> [u8; N] {
        std::array::from_fn(|i| from + u8::try_from(i).unwrap())
    }

    /// Seals what the vectors seal.
    fn sealed(key: &TableKey) -> Vec<SavedState> {
        let state_key = StateKey::new(key, key.data_set());
        let (mut previous, mut all) = (StateId::NONE, Vec::new());
        let vectors: Vec<Value> = cases("verifiable-table/v1/state.json");
        for (case, fresh) in vectors.iter().zip([48, 80]) {
            let held: Vec<_> = case["records"].as_array().unwrap().iter().collect();
            let held: Vec<_> = held.iter().map(|pair| (bytes(&pair[0]), bytes(&pair[1]))).collect();
            let records = held.iter().map(|(key, value)| (key.as_slice(), value.as_slice()));
            let version = case["version"].as_u64().unwrap();
            let name = StateName { version, segment: Segment(counting(32)) };
            assert_eq!(case["previous"], hex(&previous.0));
            let made = state_key.seal(name, previous, &records.collect(), &counting(fresh));
            let (state, id) = made;
            assert_eq!(case["length"], state.bytes.len());
            assert_eq!(case["name"], hex(&id.0));
            assert_eq!(case["state"], hex(&Sha256::digest(&state.bytes)));
            let opened = key.open_state(&name, &state.bytes).unwrap();
            assert!(opened.records().eq(records_of(&held)) && opened.previous == previous);
            previous = id;
            all.push(state);
        }
        all
    }

    fn records_of(held: &[(Vec<u8>, Vec<u8>)]) -> impl Iterator<Item = (&[u8], &[u8])> {
        held.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))
    }

    #[test]
    fn states_match_the_vectors_and_forgeries_do_not_open() {
        let key = TableKey::new(Secret::from_bytes(counting(0)));
        let states = sealed(&key);
        let (honest, name) = (&states[1].bytes, states[1].name);
        let bad: Vec<Value> = cases("verifiable-table/v1/state_bad.json");
        assert_eq!(bad.len(), 12);
        for case in bad {
            let mut forged = honest.clone();
            forged.resize(usize::try_from(case["length"].as_u64().unwrap()).unwrap(), 0);
            for (at, byte) in case["changed"].as_object().unwrap() {
                forged[at.parse::<usize>().unwrap()] =
                    u8::try_from(byte.as_u64().unwrap()).unwrap();
            }
            assert_ne!(&forged, honest);
            assert!(key.open_state(&name, &forged).is_err(), "{}", case["why"]);
        }
        assert!(key.open_state(&name, &states[0].bytes).is_err(), "an older one under this name");
        let other = TableKey::new(Secret::from_bytes([1; 32]));
        assert!(other.open_state(&name, honest).is_err(), "another key");
        assert_ne!(other.data_set(), key.data_set());
    }

    /// Not even an owner that is resumed twice from one snapshot of its memory.
    #[test]
    fn different_records_are_never_sealed_under_one_key() {
        let key = TableKey::new(Secret::from_bytes([3; 32]));
        let key = StateKey::new(&key, key.data_set());
        let name = StateName { version: 1, segment: Segment([1; 16]) };
        let seal = |value: &[u8]| key.seal(name, StateId::NONE, &vec![(b"k", value)], &[5; 32]);
        let ((a, first), (b, second)) = (seal(b"one"), seal(b"two"));
        assert_ne!(first, second);
        let same = a.bytes[HEADER..].iter().zip(&b.bytes[HEADER..]).filter(|(a, b)| a == b).count();
        assert!(same < 60, "two key streams agree in a byte of 256, not in {same} of 4112");
        assert_eq!(seal(b"one").0, a);
    }

    #[test]
    fn lengths_say_little() {
        for (length, padded) in [
            (0, 4096),
            (4096, 4096),
            (4097, 8192),
            (65_536, 65_536),
            (65_537, 73_728),
            (1 << 20, 1 << 20),
        ] {
            assert_eq!(pad(vec![7; length]).len(), padded, "{length}");
        }
    }
}
