//! Login codes: a login and the re-ups of the following epochs in one message, accepted all or
//! none. A turnstile reads them from a screen.

use crate::configuration::PinnedConfiguration;
use crate::error::MessageError;
use crate::limit::Limit;
use crate::messages::{Login, ReUp, Reader, SessionId, TagId, connection};
use crate::schedule::Epoch;
use alpheus_crypto::group::Element;
use alpheus_crypto::labels;
use alpheus_crypto::sign::{Signature, SignatureError};

/// Bytes of a login with a limit of one.
const LOGIN: usize = 392;
/// Bytes of a tag and the proof of its re-up.
const ONWARD: usize = 128;

/// A login and its re-ups. The login gives their epochs and session, so they are not repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The login.
    pub login: Login,
    /// Tag and proof of the re-up to each following epoch.
    pub onward: Vec<(Element, Vec<u8>)>,
}

impl Code {
    /// Decodes.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MessageError> {
        let (login, onward) = bytes.split_at_checked(LOGIN).ok_or(MessageError::Length)?;
        let (parts, rest) = onward.as_chunks::<ONWARD>();
        if !rest.is_empty() {
            return Err(MessageError::Length);
        }
        let part = |part: &[u8; ONWARD]| {
            let mut reader = Reader(part);
            Ok((reader.element()?, reader.array::<96>()?.to_vec()))
        };
        let onward = parts.iter().map(part).collect::<Result<_, MessageError>>()?;
        Ok(Self { login: Login::from_bytes(login, Limit::ONE)?, onward })
    }

    /// Encodes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.login.to_bytes();
        for (tag, proof) in &self.onward {
            bytes.extend_from_slice(tag.as_bytes());
            bytes.extend_from_slice(proof);
        }
        bytes
    }

    /// The session that the login would begin.
    #[must_use]
    pub fn session(&self, pinned: &PinnedConfiguration) -> SessionId {
        SessionId(TagId::of(&pinned.fingerprint(), self.login.epoch, &self.login.tag))
    }

    /// Every tag that the code spends, the login's first.
    #[must_use]
    pub fn tags(&self, pinned: &PinnedConfiguration) -> Vec<(Epoch, TagId)> {
        let named = |(epoch, tag)| (epoch, TagId::of(&pinned.fingerprint(), epoch, tag));
        self.elements().map(named).collect()
    }

    /// The code's re-ups, each with the tag that precedes it.
    pub(crate) fn re_ups(&self, session: SessionId) -> Vec<(Element, ReUp)> {
        let mut re_ups = Vec::with_capacity(self.onward.len());
        let (mut from, mut epoch) = (self.login.tag, self.login.epoch);
        for (tag, proof) in &self.onward {
            epoch = epoch.next();
            re_ups.push((from, ReUp { epoch, session, tag: *tag, proof: proof.clone() }));
            from = *tag;
        }
        re_ups
    }

    fn elements(&self) -> impl Iterator<Item = (Epoch, &Element)> {
        let tags = std::iter::once(&self.login.tag).chain(self.onward.iter().map(|(tag, _)| tag));
        // A decoded code may name any epoch; the last one is never open.
        (0..).zip(tags).map(|(n, tag)| (Epoch(self.login.epoch.0.saturating_add(n)), tag))
    }

    /// Checks that the code's holder signed a challenge, as for a connection. Without this a
    /// photograph of a code would be as good as the code.
    ///
    /// # Errors
    /// [`SignatureError`].
    pub fn check_signature(
        &self,
        pinned: &PinnedConfiguration,
        challenge: &[u8; 32],
        signature: &Signature,
    ) -> Result<(), SignatureError> {
        let message = connection(self.session(pinned), challenge);
        self.login.holder.verify(labels::CREDENTIAL_CONNECTION, &message, signature)
    }
}
