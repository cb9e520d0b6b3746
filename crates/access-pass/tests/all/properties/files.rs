//! The pass file opens with its key only, and reveals nothing without it.

use alpheus_access_pass::error::FileError;
use alpheus_access_pass::file::{Contents, Evidence, FileKey};
use alpheus_anonymous_credential::ledger::Change;
use alpheus_crypto::vault::Hardness;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use zeroize::Zeroizing;

const EASY: Hardness = Hardness { memory: 64, passes: 1 };

fn sealed(rng: &mut ChaCha20Rng) -> (FileKey, Vec<u8>) {
    let key = FileKey::create(b"correct horse", EASY, rng).unwrap();
    let mut contents = Contents::default();
    contents.account.push_str("ada");
    contents.evidence = Evidence::Secret("hunter2".to_owned());
    let put = |key: &[u8], value: &[u8]| Change {
        key: key.to_vec(),
        value: Some(Zeroizing::new(value.to_vec())),
    };
    contents.apply(&[put(b"a", b"1"), put(b"b", b"2"), Change { key: b"a".to_vec(), value: None }]);
    let file = key.seal(&contents, rng).unwrap();
    (key, file)
}

#[test]
fn a_file_opens_with_its_key_and_returns_its_contents() {
    let rng = &mut ChaCha20Rng::from_seed([1; 32]);
    let (key, file) = sealed(rng);
    let (_, contents) = FileKey::open(b"correct horse", &file).unwrap();
    assert_eq!(contents.account, "ada");
    assert!(matches!(&contents.evidence, Evidence::Secret(secret) if secret == "hunter2"));
    assert_eq!(contents.records.len(), 1);
    assert!(!file.windows(7).any(|window| window == b"hunter2"));
    // The same contents never give the same file.
    assert_ne!(key.seal(&contents, rng).unwrap(), file);
}

#[test]
fn any_other_file_is_rejected_with_a_specific_error() {
    let rng = &mut ChaCha20Rng::from_seed([2; 32]);
    let (_, file) = sealed(rng);
    let refused = |passphrase: &[u8], file: &[u8]| FileKey::open(passphrase, file).err();
    assert_eq!(refused(b"wrong", &file), Some(FileError::Locked));
    assert_eq!(refused(b"correct horse", b"ALPHPASS"), Some(FileError::Unreadable));
    assert_eq!(refused(b"correct horse", &[0; 99]), Some(FileError::Unreadable));
    let with = |at: usize, byte: u8| {
        let mut file = file.clone();
        file[at] ^= byte;
        refused(b"correct horse", &file)
    };
    assert_eq!(with(8, 3), Some(FileError::Version(1)));
    let said = FileError::Version(1).to_string();
    assert!(said.contains("only version 2"), "{said}");
    assert_eq!(with(25, 0x80), Some(FileError::Hardness), "it would take all memory");
    // One KiB more than the most, and one pass, which this machine could still do.
    let mut heavy = file.clone();
    heavy[25..29].copy_from_slice(&((1_u32 << 20) + 1).to_be_bytes());
    assert_eq!(refused(b"correct horse", &heavy), Some(FileError::Hardness));
    for at in [9, 24, 40, file.len() - 1] {
        assert_eq!(with(at, 1), Some(FileError::Locked), "byte {at}");
    }
}
