//! Whose frames count.

use super::{Service, ServiceError};
use crate::refused_frames::RefusedFrames;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_encrypted_stream::tick::ingest::Ingest;
use alpheus_policy::ids::StreamId;
use std::collections::BTreeSet;

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

    /// The stream's device is no longer let in. A job lets the running session end, at midnight at
    /// the latest.
    ///
    /// # Errors
    /// [`ServiceError`] if the store fails.
    pub fn dismiss_device(&mut self, stream: &StreamId) -> Result<(), ServiceError> {
        self.plane.dismiss_device(stream)
    }

    /// These certificates of ingest keys are revoked.
    pub fn revoke_ingest(&mut self, revoked: &BTreeSet<Digest>) {
        self.plane.revoke_ingest(revoked);
    }

    /// Frames that were refused, as far as that is kept.
    #[must_use]
    pub fn refused(&self) -> RefusedFrames {
        self.plane.refused()
    }
}
