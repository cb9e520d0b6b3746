//! Records of another version of the program are refused with that error, and older records
//! of this version can be read.

use alpheus_encrypted_stream::controller::{Controller, HostRecords};
use alpheus_encrypted_stream::coordinator::{Coordinator, Timing};
use alpheus_encrypted_stream::error::RestoreError;
use alpheus_encrypted_stream::ledger::{RecordError, Scope, StampedRecord};

use crate::protocol::net::Net;
use crate::protocol::world::{Setup, after, start};

/// The error of restoring a controller whose records claim to have this version.
fn restored(net: &Net, version: u8) -> Option<RestoreError> {
    let id = net.controllers[0].id();
    let mut values: Vec<Vec<u8>> =
        net.store.values(Scope::Controller(id)).into_iter().map(<[u8]>::to_vec).collect();
    values.iter_mut().for_each(|value| value[0] = version);
    let host = HostRecords::read(net.store.values(Scope::Host), &net.world.deployment).unwrap();
    let controller = Controller::restore(
        net.world.identity(0),
        net.world.deployment.clone(),
        net.world.held(0),
        &host,
        values.iter().map(Vec::as_slice),
        after(0),
        start(None),
    );
    controller.err()
}

/// Format 8 is that of the previous version; 10 would be that of a later one.
#[test]
fn ledgers_of_another_format_are_refused_with_that_error() {
    let mut net = Net::new(Setup::new(2));
    net.close(0);
    assert_eq!(restored(&net, 9), None);
    for found in [8, 10] {
        assert_eq!(restored(&net, found), Some(RestoreError::OtherFormat { position: 0, found }));
        let said = StampedRecord::read(&[found, 0]).unwrap_err();
        assert_eq!(said, RecordError::Version(found));
    }
    let host = HostRecords::read([&[10_u8, 0][..]], &net.world.deployment);
    assert_eq!(host.err(), Some(RestoreError::OtherFormat { position: 0, found: 10 }));
    let says = RestoreError::OtherFormat { position: 0, found: 10 }.to_string();
    assert!(says.contains("use the version that wrote it"), "{says}");
}

#[test]
fn service_records_of_another_format_are_refused_with_that_error() {
    let net = Net::new(Setup::new(2));
    let (announced, key) = (net.world.announced.clone(), net.world.service.clone());
    let restored = |value: &[u8]| {
        let timing = Timing::default();
        Coordinator::restore(announced.clone(), key.clone(), timing, [value], after(0)).err()
    };
    for found in [1, 3] {
        assert_eq!(restored(&[found, 4]), Some(RestoreError::OtherFormat { position: 0, found }));
    }
    assert_eq!(restored(&[2, 99]), Some(RestoreError::BadRecord { position: 0 }));
    assert_eq!(restored(&[2, 4]), None, "a plan that was retired, as it was always written");
}
