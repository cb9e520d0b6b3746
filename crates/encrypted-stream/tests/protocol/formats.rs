//! Records of another version of the program are refused by that name, and older records
//! of this one are read by it.

use alpheus_encrypted_stream::controller::{Controller, HostRecords};
use alpheus_encrypted_stream::coordinator::{Coordinator, Timing};
use alpheus_encrypted_stream::error::RestoreError;
use alpheus_encrypted_stream::ledger::{Scope, Stamped, UnreadableRecord};

use crate::net::Net;
use crate::world::{Setup, after};

/// What a controller is restored from where its records say that they are of `version`.
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
        None,
    );
    controller.err()
}

/// Format 2 is that of the version before; 4 would be a later one's.
#[test]
fn ledgers_of_another_format_are_refused_by_that_name() {
    let mut net = Net::new(Setup::new(2));
    net.close(0);
    assert_eq!(restored(&net, 3), None);
    for found in [2, 4] {
        assert_eq!(restored(&net, found), Some(RestoreError::OtherFormat { position: 0, found }));
        let said = Stamped::read(&[found, 0]).unwrap_err();
        assert_eq!(said, UnreadableRecord::Version(found));
    }
    let host = HostRecords::read([&[4_u8, 0][..]], &net.world.deployment);
    assert_eq!(host.err(), Some(RestoreError::OtherFormat { position: 0, found: 4 }));
    let says = RestoreError::OtherFormat { position: 0, found: 4 }.to_string();
    assert!(says.contains("use the version that wrote it"), "{says}");
}

#[test]
fn the_services_records_of_another_format_are_refused_by_that_name() {
    let net = Net::new(Setup::new(2));
    let (announced, key) = (net.world.announced.clone(), net.world.service.clone());
    let restored = |value: &[u8]| {
        let timing = Timing::default();
        Coordinator::restore(announced.clone(), key.clone(), timing, [value], after(0)).err()
    };
    assert_eq!(restored(&[2, 4]), Some(RestoreError::OtherFormat { position: 0, found: 2 }));
    assert_eq!(restored(&[1, 99]), Some(RestoreError::BadRecord { position: 0 }));
    assert_eq!(restored(&[1, 4]), None, "a plan that was retired, as it was always written");
}
