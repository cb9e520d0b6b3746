//! All messages between the parties, byte by byte. Lengths depend only on the kind of message
//! and the limit, so size does not distinguish holders.
//!
//! Integers are big-endian; elements and scalars have 32 bytes. Decoding rejects non-canonical
//! encodings and the identity.

use crate::error::MessageError;
use crate::limit::Limit;
use crate::schedule::{Epoch, Period};
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::sigma::{JointContext, PartDigest};
use alpheus_crypto::sign::{Signature, VerifyingKey};
use serde::{Deserialize, Serialize};

/// Reads fixed-length parts from the front of a slice.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let (part, rest) = self.0.split_first_chunk().ok_or(MessageError::Length)?;
        self.0 = rest;
        Ok(*part)
    }

    fn number(&mut self) -> Result<u64, MessageError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(crate) fn element(&mut self) -> Result<Element, MessageError> {
        Ok(Element::from_bytes(&self.array()?)?)
    }

    fn key(&mut self) -> Result<VerifyingKey, MessageError> {
        VerifyingKey::try_from(self.array()?).map_err(|_| MessageError::Key)
    }

    /// The rest, which must be whole elements and scalars.
    fn proof(self) -> Vec<u8> {
        self.0.to_vec()
    }
}

/// E1 = m1·G + r1·H and the proof of (m1, r1), over an identified channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The period. The issuer accepts only the running and the next one.
    pub period: Period,
    /// E1.
    pub e1: Element,
    /// Proof of the request's statement.
    pub proof: Vec<u8>,
}

impl Request {
    /// Decodes.
    ///
    /// # Errors
    /// [`MessageError`]. The proof's content is checked later.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        let (period, e1) = (Period(reader.number()?), reader.element()?);
        Ok(Self { period, e1, proof: reader.proof() })
    }

    /// Encodes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.period.0.to_be_bytes().as_slice(), self.e1.as_bytes(), &self.proof].concat()
    }

    /// H(request), by which the issuer recognises it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        labelled_hash(labels::CREDENTIAL_REQUEST_DIGEST, &[&self.to_bytes()])
    }
}

/// A blinded credential, and the proof that the pinned keys made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// U = b·G.
    pub u: Element,
    /// eU = b·(X0 + x1·E1 + x2·m2·G).
    pub eu: Element,
    /// HA = b·H.
    pub ha: Element,
    /// X0A = b·xb·H.
    pub x0a: Element,
    /// X1A = b·X1.
    pub x1a: Element,
    /// X2A = b·X2.
    pub x2a: Element,
    /// Proof of the response's statement.
    pub proof: Vec<u8>,
}

impl Response {
    /// Decodes.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        Ok(Self {
            u: reader.element()?,
            eu: reader.element()?,
            ha: reader.element()?,
            x0a: reader.element()?,
            x1a: reader.element()?,
            x2a: reader.element()?,
            proof: reader.proof(),
        })
    }

    /// Encodes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let elements = [&self.u, &self.eu, &self.ha, &self.x0a, &self.x1a, &self.x2a];
        let elements = elements.iter().flat_map(|element| *element.as_bytes());
        elements.chain(self.proof.iter().copied()).collect()
    }
}

/// One presentation of a credential: a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The epoch of the context, from the holder's own clock.
    pub epoch: Epoch,
    /// The holder's key for this session, fresh for every login.
    pub holder: VerifyingKey,
    /// msg: a digest of what else the presentation is for, such as a gate's nonce.
    pub message: Digest,
    /// Ũ = a·U.
    pub u: Element,
    /// C' = a·U' + r·G.
    pub c: Element,
    /// Cm = m1·Ũ + z·H.
    pub cm: Element,
    /// The tag, τ = (m1 + i)⁻¹·T.
    pub tag: Element,
    /// D_j = b_j·G + s_j·H, one for each bit of the limit.
    pub bits: Vec<Element>,
    /// Proof of the presentation's statement.
    pub proof: Vec<u8>,
}

impl Login {
    /// Length of every login under a limit: 392 bytes, and 192 for each bit.
    #[must_use]
    pub fn length(limit: Limit) -> usize {
        392 + 192 * limit.bits()
    }

    /// Decodes a login under a limit.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn from_bytes(bytes: &[u8], limit: Limit) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        Ok(Self {
            epoch: Epoch(reader.number()?),
            holder: reader.key()?,
            message: Digest(reader.array()?),
            u: reader.element()?,
            c: reader.element()?,
            cm: reader.element()?,
            tag: reader.element()?,
            bits: (0..limit.bits()).map(|_| reader.element()).collect::<Result<_, _>>()?,
            proof: reader.proof(),
        })
    }

    /// Encodes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.epoch.0.to_be_bytes().to_vec();
        bytes.extend_from_slice(self.holder.as_bytes());
        bytes.extend_from_slice(self.message.as_bytes());
        let elements = [&self.u, &self.c, &self.cm, &self.tag].into_iter().chain(&self.bits);
        elements.for_each(|element| bytes.extend_from_slice(element.as_bytes()));
        bytes.extend_from_slice(&self.proof);
        bytes
    }
}

/// One of several presentations that a holder makes together, one credential for each verifier.
/// Each verifier receives its own presentation and a digest of every other one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointPresentation {
    /// The presentation.
    pub login: Login,
    /// Digests of the others, and how many precede this one.
    pub context: JointContext,
}

impl JointPresentation {
    /// Length of each of `many` joint presentations under a limit, in bytes.
    #[must_use]
    pub fn length(limit: Limit, many: usize) -> usize {
        Login::length(limit) + size_of::<PartDigest>() * many.saturating_sub(1)
    }

    /// Decodes a joint presentation for the verifier at `place` of `many`, under a limit: the
    /// digests of the others, then the presentation.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn from_bytes(
        bytes: &[u8],
        limit: Limit,
        (position, many): (usize, usize),
    ) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        let others = (1..many).map(|_| reader.array()).collect::<Result<_, _>>()?;
        let login = Login::from_bytes(reader.0, limit)?;
        Ok(Self { login, context: JointContext { position, others } })
    }

    /// Encodes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.context.others.concat();
        bytes.extend_from_slice(&self.login.to_bytes());
        bytes
    }
}

/// Moves a session to the next epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReUp {
    /// The epoch to move to.
    pub epoch: Epoch,
    /// The session.
    pub session: SessionId,
    /// τ' = m1⁻¹·T of that epoch.
    pub tag: Element,
    /// Proof of the re-up's statement.
    pub proof: Vec<u8>,
}

impl ReUp {
    /// Encoded length, with the proof; a login is longer.
    pub(crate) const LENGTH: usize = 168;

    /// Decodes.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        Ok(Self {
            epoch: Epoch(reader.number()?),
            session: SessionId(TagId(Digest(reader.array()?))),
            tag: reader.element()?,
            proof: reader.proof(),
        })
    }

    /// Encodes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let epoch = self.epoch.0.to_be_bytes();
        let session = self.session.0.0;
        [epoch.as_slice(), session.as_bytes(), self.tag.as_bytes(), &self.proof].concat()
    }
}

/// The end of a session, signed by its holder's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logout {
    /// The session.
    pub session: SessionId,
    /// Signature over the session's id.
    pub signature: Signature,
}

impl Logout {
    /// Decodes.
    ///
    /// # Errors
    /// [`MessageError::Length`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        let session = SessionId(TagId(Digest(reader.array()?)));
        let signature = Signature::from_bytes(&reader.array()?);
        if reader.0.is_empty() {
            Ok(Self { session, signature })
        } else {
            Err(MessageError::Length)
        }
    }

    /// Encodes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.session.0.0.as_bytes().as_slice(), &self.signature.to_bytes()].concat()
    }
}

/// A tag's name: the digest of context and tag. It determines the tag's shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TagId(pub Digest);

impl TagId {
    /// The name of a tag in a context.
    #[must_use]
    pub fn of(configuration: &Digest, epoch: Epoch, tag: &Element) -> Self {
        let parts: [&[u8]; 3] = [configuration.as_bytes(), &epoch.0.to_be_bytes(), tag.as_bytes()];
        Self(labelled_hash(labels::CREDENTIAL_TAG, &parts))
    }

    /// The shard that it is on, of `shards`.
    #[must_use]
    pub fn shard(&self, shards: u64) -> u64 {
        let head = self.0.as_bytes().first_chunk().map_or(0, |head| u64::from_be_bytes(*head));
        head.checked_rem(shards).unwrap_or(0)
    }
}

/// A session's name: the name of its login's tag, so it is on that tag's shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(pub TagId);

/// The bytes that a holder signs for a connection.
pub(crate) fn connection(id: SessionId, nonce: &[u8; 32]) -> Vec<u8> {
    [id.0.0.as_bytes().as_slice(), nonce].concat()
}
