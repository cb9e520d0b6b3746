//! Whose frames count.

use super::{Service, ServiceError};
use crate::runtime::refused::RefusedFrame;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_encrypted_stream::tick::ingest::Ingest;
use alpheus_policy::ids::StreamId;

impl Service {
    /// Accepts a stream's events, before any plan needs them.
    pub fn admit(&mut self, stream: StreamId) {
        self.plane.admit(stream);
    }

    /// Checks frames with these keys, if the schema has one frame a tick.
    pub fn check_with(&mut self, ingest: Ingest) {
        self.plane.check_with(ingest);
    }

    /// The device of a stream: the digest of its certificate, and its key.
    ///
    /// # Errors
    /// [`ServiceError`] if the store fails.
    pub fn admit_device(
        &mut self,
        stream: StreamId,
        certificate: Digest,
        key: VerifyingKey,
    ) -> Result<(), ServiceError> {
        self.plane.admit_device(stream, certificate, key)
    }

    /// Frames of a stream that were refused since the last call, as far as that is kept.
    pub fn take_refused(&mut self, stream: &StreamId) -> Vec<RefusedFrame> {
        self.plane.take_refused(stream)
    }
}
