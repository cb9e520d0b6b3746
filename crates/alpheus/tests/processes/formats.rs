//! Every durable format says its version, and one that is not ours is refused by that
//! name, with what to do. `docs/operating.md` lists them.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_node::fence::{FenceError, FenceFile};
use alpheus_node::slots::{SlotError, SlotFile};
use alpheus_policy::ids::StreamId;
use alpheus_policy::schema::Schema;
use alpheus_streams::owner::DeviceFile;
use alpheus_transport::local;
use std::fs;
use std::path::Path;

const SCHEMA: &str = "
name: Meters
version: 1
tick: 1s
capacity: { population: 100, events: 100 }
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 1000, aggregations: [mean] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [1], window: 2s, alpha: 0, dropout: 1/3 }
";

/// The first bytes of a file are another version's.
fn other(path: &Path, magic: &[u8]) {
    let mut bytes = fs::read(path).unwrap_or_default();
    bytes.resize(bytes.len().max(magic.len()).max(64), 0);
    bytes[..magic.len()].copy_from_slice(magic);
    fs::write(path, bytes).unwrap();
}

/// Fences had other forms before: formats 1 and 2.
#[test]
fn fences_of_another_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence");
    for (magic, found) in [(b"ALPHFNC2", '2'), (b"ALPHFNC4", '4')] {
        other(&path, magic);
        let Err(error) = FenceFile::load(&path) else { panic!("taken") };
        assert!(matches!(&error, FenceError::Format { found: known, .. } if *known == found));
        assert!(error.to_string().contains("use the version that wrote it"), "{error}");
    }
    other(&path, b"SOMETHIN");
    assert!(matches!(FenceFile::load(&path), Err(FenceError::Unreadable { .. })));
}

#[test]
fn slot_files_of_another_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slots");
    drop(SlotFile::open(&path).unwrap());
    other(&path, b"ALPHSLT2");
    let Err(error) = SlotFile::open(&path) else { panic!("taken") };
    assert!(matches!(&error, SlotError::Format { found: '2', .. }), "{error}");
    assert!(error.to_string().contains("use the version that wrote it"), "{error}");
    other(&path, b"SOMETHIN");
    assert!(matches!(SlotFile::open(&path), Err(SlotError::Other { .. })));
}

#[test]
fn device_files_of_another_format() {
    let (folder, schema) = (tempfile::tempdir().unwrap(), Schema::from_yaml(SCHEMA).unwrap());
    let path = folder.path().join("watch.json");
    let master = MasterSecret::new(Secret::from_bytes([3; 32]));
    DeviceFile::new(StreamId([1; 16]), &schema, &master).write(&path).unwrap();
    assert!(DeviceFile::read(&path, &schema).is_ok());
    let text = fs::read_to_string(&path).unwrap();
    let newer = text.replacen("\"version\": 1", "\"version\": 2", 1);
    let newer = newer.replacen("\"version\":1", "\"version\":2", 1);
    assert_ne!(newer, text);
    fs::write(&path, newer).unwrap();
    let Err(error) = DeviceFile::read(&path, &schema) else { panic!("taken") };
    let said = error.to_string();
    assert!(said.contains("has format 2") && said.contains("alpheus owner add"), "{said}");
}

/// The state folder of any role: what lies in it is of the folder's format.
#[test]
fn state_folders_of_another_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    drop(local::open(&path, &local::Options::default()).unwrap());
    fs::write(path.join("FORMAT"), "alpheus store, format 2\n").unwrap();
    let Err(error) = local::open(&path, &local::Options::default()) else { panic!("taken") };
    let said = error.to_string();
    assert!(
        said.contains("format 2") && said.contains("use the version that created it"),
        "{said}"
    );
}
