//! Certificates that the authority revokes while plans run: of a controller, an owner, and a
//! consumer.

use std::collections::BTreeSet;
use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_encrypted_stream::error::{ExclusionError, PlanRefusalError, WindowRefusalError};
use alpheus_time::Timestamp;

use crate::protocol::evil::Evil;
use crate::protocol::identities::certified;
use crate::protocol::net::Net;
use crate::protocol::world::{EPOCH, Setup, World, after};

fn revoked(certificate: Digest) -> Arc<BTreeSet<Digest>> {
    Arc::new([certificate].into())
}

/// The answers to the plan, if each controller knows of the revocation.
fn answers(setup: Setup, out: impl Fn(&World) -> Digest) -> Vec<Option<PlanRefusalError>> {
    let mut net = Net::unannounced(World::new(setup));
    let list = revoked(out(&net.world));
    net.controllers.iter_mut().for_each(|controller| controller.note_revocations(&list));
    let step = net.coordinator.announce();
    net.run(Timestamp(EPOCH), step);
    let answer = |position| net.coordinator.answer(position).unwrap().clone().err();
    (0..net.world.setup.controllers).map(answer).collect()
}

#[test]
fn a_plan_with_a_revoked_controller_is_refused_by_all_others() {
    let refused = answers(Setup::new(3), |world| Digest(world.plan.roster[2].0));
    assert_eq!(refused, vec![Some(PlanRefusalError::RevokedController { position: 2 }); 3]);
    let accepted = answers(Setup::new(3), |_| Digest([7; 32]));
    assert_eq!(accepted, vec![None; 3]);
}

#[test]
fn a_plan_that_is_sealed_to_a_revoked_consumer_is_refused() {
    let sealed = Setup { sealed: true, ..Setup::new(2) };
    let refused = answers(sealed, |world| Digest(world.plan.sealed_to.unwrap().0));
    assert_eq!(refused, vec![Some(PlanRefusalError::RevokedConsumer); 2]);
}

#[test]
fn streams_of_a_revoked_owner_are_in_no_window_and_no_token() {
    let mut evil = Evil::new(Setup { streams_each: 2, ..Setup::new(2) });
    let draft = evil.gather();
    let stream = evil.world.plan.streams[0].stream;
    let owner = certified(&evil.world.setup.owner_key(stream));
    let list = revoked(owner.certificate().digest());
    evil.controllers[0].note_revocations(&list);
    assert_eq!(evil.token(0, &draft).err(), Some(WindowRefusalError::PolicyChanged));
    let left_out = |evil: &mut Evil| {
        evil.close(1);
        let streams = evil.streams(0);
        evil.presence_at(0, streams, after(1)).1.excluded
    };
    let reason = ExclusionError::CertificateRevoked;
    assert_eq!(left_out(&mut evil), [(0, reason)]);
    // A restored controller gets the list again, and knows from its ledger whose its streams are.
    evil.start_again(after(1));
    evil.controllers[0].note_revocations(&list);
    assert_eq!(left_out(&mut evil), [(0, reason)]);
}

/// In a verified plan the row is what members sign. The holder of a revoked key is none of them.
#[test]
fn members_give_nothing_with_a_controller_whose_certificate_is_revoked() {
    let refused = WindowRefusalError::RevokedMember { position: 2 };
    for setup in [Setup::new(6), Setup::new(6).verified()] {
        let is_verified = setup.verified;
        let mut evil = Evil::new(setup);
        let list = revoked(Digest(evil.world.plan.roster[2].0));
        let draft = evil.gather();
        let mut without = draft.clone();
        without.members.remove(2);
        // It is revoked after the token of controller 1, and before that of controller 0.
        assert!(evil.token(1, &draft).is_ok());
        evil.controllers[0].note_revocations(&list);
        evil.controllers[1].note_revocations(&list);
        let set = evil.set(&draft, &[0, 1, 2, 3, 4, 5]);
        let rest = evil.set(&draft, &[0, 1, 3, 4, 5]);
        if is_verified {
            assert_eq!(evil.opening(1, &set).err(), Some(refused));
            assert!(evil.opening(1, &rest).is_ok());
            assert_eq!(evil.token(0, &draft).err(), Some(refused));
            assert!(evil.token(0, &without).is_ok());
        } else {
            // There the service decides with all of them, and a controller alone changes no more.
            assert!(evil.opening(1, &set).is_ok() && evil.token(0, &draft).is_ok());
        }
    }
}

#[test]
fn a_running_plan_releases_nothing_more_to_a_revoked_consumer() {
    let mut evil = Evil::new(Setup { sealed: true, ..Setup::new(2) });
    let list = revoked(Digest(evil.world.plan.sealed_to.unwrap().0));
    evil.controllers[0].note_revocations(&list);
    let streams = evil.streams(0);
    let presence = evil.presence(0, streams).1;
    assert_eq!(presence.excluded, [(0, ExclusionError::CertificateRevoked)]);
}
