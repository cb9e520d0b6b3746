//! Sets up each member's device and the controllers of the members' streams, created or
//! restored from their ledgers.

use super::devices::Device;
use super::embedded_deployment::{Controllers, EmbeddedDeployment, Member, Pace};
use super::error::RuntimeError;
use super::keys::RootSecret;
use super::manager::Manager;
use super::storage::reached;
use super::stream_producer::StreamProducer;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::Annotation;
use alpheus_encrypted_stream::certificate::{CertifiedOwner, Deployment, Party, Role};
use alpheus_encrypted_stream::controller::{Controller, HeldStream, HostRecords, Identity};
use alpheus_encrypted_stream::error::{AnnotationError, CertificateError, RestoreError};
use alpheus_encrypted_stream::ledger::{Scope, Start, Step};
use alpheus_encrypted_stream::mask::generation::KeySource;
use alpheus_encrypted_stream::messages::ControllerMessage;
use alpheus_encrypted_stream::producer::OpeningSecrets;
use alpheus_encrypted_stream::tick::ingest::Ingest;
use alpheus_node::clock;
use alpheus_node::ledger::scan_all;
use alpheus_policy::ids::StreamId;
use alpheus_policy::layout::Layout;
use alpheus_policy::policy::Policies;
use alpheus_time::Timestamp;
use alpheus_transport::Store;
use rand_core::CryptoRng;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A controller to create or restore.
struct ControllerSetup {
    identity: Identity,
    streams: Vec<(HeldStream, Signed<Annotation>, CertifiedOwner)>,
}

impl EmbeddedDeployment {
    /// Creates or restores devices and controllers.
    pub(super) fn seat(
        &mut self,
        members: &[Member],
        policies: &Policies,
        controllers: Controllers,
        layout: &Arc<Layout>,
        private: &dyn Store,
        rng: &mut impl CryptoRng,
    ) -> Result<(), RuntimeError> {
        let mut seats: BTreeMap<String, ControllerSetup> = BTreeMap::new();
        let mut names: HashMap<&str, String> = HashMap::new();
        for member in members {
            let next = names.len();
            let name = names.entry(&member.owner).or_insert_with(|| match controllers {
                Controllers::PerOwner => {
                    format!("controller of {}", self.root.stream(&member.owner))
                }
                Controllers::Count(count) => format!("controller {}", next % count.max(1) as usize),
            });
            let seat = match seats.entry(name.clone()) {
                std::collections::btree_map::Entry::Occupied(seat) => seat.into_mut(),
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(seat_of(name, &self.root, &self.deployment, &mut self.manager)?)
                }
            };
            self.controller_of.push(seat.identity.id());
            self.add_member(member, policies, layout, seat)?;
        }
        let host = scan_all(private, &self.topics.ledger, &Scope::Host.prefix())?;
        let host =
            HostRecords::read(host.iter().map(|(_, value)| value.as_ref()), &self.deployment)?;
        let mut made = Vec::with_capacity(seats.len());
        for seat in seats.into_values() {
            made.push(self.controller(seat, &host, private, rng)?);
        }
        self.host.take(made)?;
        Ok(())
    }

    /// A member's device, catalogue entry and stream at its controller.
    fn add_member(
        &mut self,
        member: &Member,
        policies: &Policies,
        layout: &Arc<Layout>,
        seat: &mut ControllerSetup,
    ) -> Result<(), RuntimeError> {
        let (stream, owner_key) = (self.root.stream(&member.key), self.root.owner(&member.owner));
        self.streams.push(stream);
        self.manager.service.admit(stream);
        let certified = self.certified_owner(&member.owner)?;
        let owner = certified.id();
        let policy = policies.of_owner(&member.owner).clone();
        let metadata: Vec<(String, String)> = member.metadata.clone().into_iter().collect();
        let (master, schema) = (self.root.master(&member.key), self.schema.clone());
        let producer = StreamProducer::for_schema(&master, stream, &schema, layout, || {
            self.device(&member.key, stream)
        })?;
        self.devices.push(Device::new(producer, &self.topics));
        let annotation = Annotation {
            stream,
            owner,
            schema: self.schema.id(),
            version: 1,
            valid_from: Timestamp(0),
            valid_to: Timestamp::LIMIT,
            metadata,
            policy,
        };
        let signed = Signed::new(&annotation, &owner_key);
        self.manager.put_stream(annotation.into_catalog(seat.identity.id()), None);
        let (schema, layout, master) =
            (self.schema.clone(), layout.clone(), self.root.master(&member.key));
        seat.streams.push((
            HeldStream { stream, owner, schema, layout, master: Some(master) },
            signed,
            certified,
        ));
        Ok(())
    }

    /// Gives the service its ingest key.
    pub(super) fn admit_frames(&mut self) -> Result<(), RuntimeError> {
        let ingest = self.ingest()?;
        self.manager.service.check_with(ingest);
        Ok(())
    }

    /// What checks frames, with the service's ingest key. A job beside the service has it too.
    ///
    /// # Errors
    /// [`RuntimeError`] if the key cannot be certified.
    pub fn ingest(&self) -> Result<Ingest, RuntimeError> {
        let (authority, schema) = (*self.deployment.authority(), &self.schema);
        let (digest, _) = self.ingest_certificate()?;
        Ok(Ingest::new(authority, schema.id(), schema.tick, [(digest, self.root.ingest())]))
    }

    fn ingest_certificate(&self) -> Result<(Digest, SealingPublic), CertificateError> {
        let request = self.root.service().ingest_request(&self.root.ingest());
        self.deployment.ingest(&self.root.certify(request))
    }

    /// The keys of a stream's device, which the service then knows.
    fn device(&mut self, member: &str, stream: StreamId) -> Result<OpeningSecrets, RuntimeError> {
        let device = self.root.device(member);
        let request = Party::signing(Role::Device, member, device.verifying_key());
        let certificate = self.deployment.device(&self.root.certify(request))?.digest();
        self.manager.service.admit_device(stream, certificate, device.verifying_key())?;
        let (ingest, ingest_key) = self.ingest_certificate()?;
        let authority = *self.deployment.authority();
        Ok(OpeningSecrets { device, certificate, authority, ingest, ingest_key })
    }

    /// A controller with its owners' choices.
    fn controller(
        &self,
        seat: ControllerSetup,
        host: &HostRecords,
        private: &dyn Store,
        rng: &mut impl CryptoRng,
    ) -> Result<(Controller, Step<Vec<ControllerMessage>>), RuntimeError> {
        let id = seat.identity.id();
        let records = scan_all(private, &self.topics.ledger, &Scope::Controller(id).prefix())?;
        let start = self.host.start_of(&id, rng);
        let now = if self.root_is_new { Timestamp(0) } else { self.started()? };
        let mut choices = Vec::with_capacity(seat.streams.len());
        let mut streams = Vec::with_capacity(seat.streams.len());
        for (stream, annotation, owner) in seat.streams {
            streams.push(stream);
            choices.push((annotation, owner));
        }
        let values: Vec<&[u8]> = records.iter().map(|(_, value)| value.as_ref()).collect();
        let keys = Keys { identity: seat.identity, new: self.root_is_new };
        let (mut controller, mut step) =
            from_ledger(keys, &self.deployment, streams, host, &values, now, start)?;
        controller.draw_keys_from(KeySource::new(Secret::random(rng)));
        for (annotation, owner) in choices {
            match controller.annotate(&annotation, &owner, now) {
                // The ledger has this choice or a later one.
                Err(AnnotationError::NotLater { .. } | AnnotationError::Revoked) => {}
                taken => step.merge(taken?),
            }
        }
        Ok((controller, step))
    }

    /// The controllers' clock at the start. In a replay, time advances only with its input.
    fn started(&self) -> Result<Timestamp, RuntimeError> {
        match self.pace {
            Pace::Live { .. } => Ok(clock::now()),
            Pace::Recorded => {
                Ok(reached(self.store.as_ref(), &self.topics)?.unwrap_or(Timestamp(0)))
            }
        }
    }
}

/// A controller's keys, and whether this run has drawn them.
pub struct Keys {
    /// Its keys, certified.
    pub identity: Identity,
    /// Whether this run has drawn them: then it has no ledger yet.
    pub new: bool,
}

/// Creates or restores a controller. New keys get a new ledger. Keys with a ledger are
/// restored; keys that lost theirs count everything before as released.
///
/// # Errors
/// [`RestoreError`] if the ledger cannot be read, or is of another controller.
pub fn from_ledger(
    keys: Keys,
    deployment: &Deployment,
    streams: Vec<HeldStream>,
    host: &HostRecords,
    values: &[&[u8]],
    now: Timestamp,
    start: Start,
) -> Result<(Controller, Step<Vec<ControllerMessage>>), RestoreError> {
    let (identity, deployment) = (keys.identity, deployment.clone());
    // A controller in the fence has a ledger, or has lost it.
    if !values.is_empty() || start.fence.is_some() {
        let values = values.iter().copied();
        return Controller::restore(identity, deployment, streams, host, values, now, start);
    }
    let (mut controller, step) = if keys.new {
        Controller::create(identity, deployment, now)
    } else {
        Controller::create_again(identity, deployment, now, start.number)
    };
    streams.into_iter().for_each(|stream| controller.hold(stream));
    Ok((controller, step))
}

fn seat_of(
    name: &str,
    root: &RootSecret,
    deployment: &Deployment,
    manager: &mut Manager,
) -> Result<ControllerSetup, RuntimeError> {
    let secrets = root.controller(name);
    let certificate = root.certify(secrets.request(name));
    let identity = secrets.certified(&certificate, deployment)?;
    manager.register_controller(&certificate)?;
    Ok(ControllerSetup { identity, streams: Vec::new() })
}
