//! The devices of all owners, in this process: each with the key of its own stream,
//! all behind one certificate.

use crate::program::Program;
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_encrypted_stream::producer::{Producer, Session, Start};
use alpheus_input::files::read_schema;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_policy::ids::StreamId;
use alpheus_policy::layout::Layout;
use alpheus_streams::links;
use alpheus_streams::owner::DeviceFile;
use alpheus_streams::wire::{Receipt, Upload, UploadStatus};
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use rand_core::Rng;
use std::time::Duration;

/// Uploads in one request, which takes up to 16 MB. The border of the first to arrive closes the
/// window, which has no grace. In production devices would need some.
const AT_ONCE: usize = 10_000;

/// The file of a device's key.
pub(super) fn file(number: usize) -> String {
    format!("{number}.device")
}

/// All devices.
pub(super) struct Devices {
    client: BlockingClient,
    encoder: Encoder,
    attributes: usize,
    rng: ChaCha20Rng,
    each: Vec<Device>,
}

struct Device {
    stream: StreamId,
    session: Session,
    outbox: [u8; 16],
    number: u64,
    frames: Vec<Vec<u8>>,
}

impl Devices {
    /// Opens a session of each device at a tick.
    pub(super) fn open(
        program: &Program,
        url: &str,
        devices: usize,
        at: Timestamp,
    ) -> Result<Devices, Failure> {
        let identity = IdentityFolder::open(&program.path("pki/cars"), Role::Producer)?;
        let schema = read_schema(&program.path("schema.yaml"))?;
        let layout = Layout::of(&schema).blame(Category::Input)?;
        let mut rng = entropy::rng()?;
        let open = |number| {
            let (stream, master) = DeviceFile::read(&program.path(&file(number)), &schema)?;
            let producer = Producer::for_schema(&master, stream, &schema, &layout);
            let producer = producer.blame(Category::Input)?;
            let (mut frames, mut outbox) = (Vec::new(), [0; 16]);
            rng.fill_bytes(&mut outbox);
            let keep = &mut |frame: &[u8]| frames.push(frame.to_vec());
            let session = producer.open(Start::First, at, &mut rng, keep);
            let session =
                session.map_err(|refused| refused.error.to_string()).blame(Category::Input)?;
            Ok(Device { stream, session, outbox, number: 0, frames })
        };
        let each = (0..devices).map(open).collect::<Result<_, Failure>>()?;
        Ok(Devices {
            client: links::service(url, &identity)?,
            encoder: Encoder::new(&schema, &layout).blame(Category::Input)?,
            attributes: schema.attributes.len(),
            rng,
            each,
        })
    }

    /// Each device sends a measurement.
    pub(super) fn event(&mut self, at: Timestamp) -> Result<(), Failure> {
        for (number, device) in (0..).zip(&mut self.each) {
            let values = vec![Value::Number(number % 100); self.attributes];
            let (encoder, rng, frames) = (&self.encoder, &mut self.rng, &mut device.frames);
            let sent = device.session.event(
                at,
                |vector| encoder.encode(&values, rng, |word, addend| vector.add(word, addend)),
                &mut |frame| frames.push(frame.to_vec()),
            );
            sent.map_err(|refused| refused.to_string()).blame(Category::Input)?;
        }
        Ok(())
    }

    /// Closes the window.
    pub(super) fn border(&mut self, at: Timestamp) -> Result<(), Failure> {
        self.each.iter_mut().try_for_each(|device| {
            let frames = &mut device.frames;
            let sent = device.session.advance(at, &mut |frame| frames.push(frame.to_vec()));
            sent.blame(Category::Input)
        })
    }

    /// Returns when the service has everything durably.
    pub(super) fn send(&mut self) -> Result<(), Failure> {
        for some in self.each.chunks_mut(AT_ONCE) {
            let uploads = some.iter_mut().map(|device| {
                device.number += 1;
                let Device { stream, outbox, number, frames, .. } = device;
                let frames = std::mem::take(frames);
                Upload { stream: *stream, outbox: *outbox, number: *number, frames }
            });
            let uploads: Vec<_> = uploads.collect();
            let received: Receipt = self.client.call("/v1/events", &uploads, Duration::ZERO)?;
            if received.uploads.iter().any(|became| *became != UploadStatus::Taken) {
                return Err("the service rejected a frame of a device").blame(Category::Check);
            }
        }
        Ok(())
    }
}
