//! All that crosses between parties, byte by byte. Lengths are fixed by the
//! kind and the limit, so that no message tells holders apart by its size.
//!
//! Integers are big-endian, elements and scalars 32 bytes. Decoding refuses
//! what is not canonical and every identity.

use crate::error::Malformed;
use crate::limit::Limit;
use crate::schedule::{Epoch, Period};
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::sigma::{Beside, Part};
use alpheus_crypto::sign::{Signature, VerifyingKey};
use serde::{Deserialize, Serialize};

/// Reads fixed parts from the front of bytes.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (part, rest) = self.0.split_first_chunk().ok_or(Malformed::Length)?;
        self.0 = rest;
        Ok(*part)
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(crate) fn element(&mut self) -> Result<Element, Malformed> {
        Ok(Element::from_bytes(&self.array()?)?)
    }

    fn key(&mut self) -> Result<VerifyingKey, Malformed> {
        VerifyingKey::try_from(self.array()?).map_err(|_| Malformed::Key)
    }

    /// The rest, which must be whole elements and scalars.
    fn proof(self) -> Vec<u8> {
        self.0.to_vec()
    }
}

/// E1 = m1·G + r1·H and the proof of (m1, r1), over an identified channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// For which period. The issuer takes only the running and the next one.
    pub period: Period,
    /// E1.
    pub e1: Element,
    /// Of the request's statement.
    pub proof: Vec<u8>,
}

impl Request {
    /// Decodes.
    ///
    /// # Errors
    /// [`Malformed`]; the proof's content is looked at when it is checked.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let (period, e1) = (Period(reader.number()?), reader.element()?);
        Ok(Self { period, e1, proof: reader.proof() })
    }

    /// Encodes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.period.0.to_be_bytes().as_slice(), self.e1.as_bytes(), &self.proof].concat()
    }

    /// H(request): what the issuer knows it again by.
    #[must_use]
    pub fn digest(&self) -> Digest {
        labelled(labels::CREDENTIAL_ASKED, &[&self.to_bytes()])
    }
}

/// A credential, blinded, and the proof that the pinned keys made it.
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
    /// Of the response's statement.
    pub proof: Vec<u8>,
}

impl Response {
    /// Decodes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
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

/// One showing of a credential: a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The epoch of the context, from the holder's own clock.
    pub epoch: Epoch,
    /// The holder's key for this session: fresh for every login.
    pub holder: VerifyingKey,
    /// msg: the digest of whatever else the showing is for, such as a gate's nonce.
    pub message: Digest,
    /// Ũ = a·U.
    pub u: Element,
    /// C' = a·U' + r·G.
    pub c: Element,
    /// Cm = m1·Ũ + z·H.
    pub cm: Element,
    /// τ = (m1 + i)⁻¹·T: the tag.
    pub tag: Element,
    /// D_j = b_j·G + s_j·H, as many as the limit has bits.
    pub bits: Vec<Element>,
    /// Of the showing's statement.
    pub proof: Vec<u8>,
}

impl Login {
    /// Bytes of every login under a limit: 392, and 192 for each bit.
    #[must_use]
    pub fn length(limit: Limit) -> usize {
        392 + 192 * limit.bits()
    }

    /// Decodes a login under a limit.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(bytes: &[u8], limit: Limit) -> Result<Self, Malformed> {
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

/// One of several showings that a holder makes together, of one credential for each verifier:
/// each verifier gets its own, and a digest of every other one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joint {
    /// The showing.
    pub login: Login,
    /// The others, and how many come before it.
    pub beside: Beside,
}

impl Joint {
    /// Bytes of every one of so many under a limit.
    #[must_use]
    pub fn length(limit: Limit, many: usize) -> usize {
        Login::length(limit) + size_of::<Part>() * many.saturating_sub(1)
    }

    /// Decodes what the verifier at a place, of so many, is shown under a limit: the others'
    /// digests, then the showing.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(
        bytes: &[u8],
        limit: Limit,
        (place, many): (usize, usize),
    ) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let others = (1..many).map(|_| reader.array()).collect::<Result<_, _>>()?;
        let login = Login::from_bytes(reader.0, limit)?;
        Ok(Self { login, beside: Beside { place, others } })
    }

    /// Encodes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.beside.others.concat();
        bytes.extend_from_slice(&self.login.to_bytes());
        bytes
    }
}

/// A session moves on by one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReUp {
    /// The epoch to move to.
    pub epoch: Epoch,
    /// The session.
    pub session: SessionId,
    /// τ' = m1⁻¹·T of that epoch.
    pub tag: Element,
    /// Of the re-up's statement.
    pub proof: Vec<u8>,
}

impl ReUp {
    /// Of an encoded one, with its proof; a login is longer.
    pub(crate) const LENGTH: usize = 168;

    /// Decodes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
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
    /// Over the session's id.
    pub signature: Signature,
}

impl Logout {
    /// Decodes.
    ///
    /// # Errors
    /// [`Malformed::Length`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let session = SessionId(TagId(Digest(reader.array()?)));
        let signature = Signature::from_bytes(&reader.array()?);
        if reader.0.is_empty() { Ok(Self { session, signature }) } else { Err(Malformed::Length) }
    }

    /// Encodes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.session.0.0.as_bytes().as_slice(), &self.signature.to_bytes()].concat()
    }
}

/// A tag's name: the digest of context and tag. Shards are told by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TagId(pub Digest);

impl TagId {
    /// The name of a tag in a context.
    #[must_use]
    pub fn of(configuration: &Digest, epoch: Epoch, tag: &Element) -> Self {
        let parts: [&[u8]; 3] = [configuration.as_bytes(), &epoch.0.to_be_bytes(), tag.as_bytes()];
        Self(labelled(labels::CREDENTIAL_TAG, &parts))
    }

    /// Which of so many shards it lies on.
    #[must_use]
    pub fn shard(&self, shards: u64) -> u64 {
        let head = self.0.as_bytes().first_chunk().map_or(0, |head| u64::from_be_bytes(*head));
        head.checked_rem(shards).unwrap_or(0)
    }
}

/// A session's name: that of the tag that it was logged in with, so it lies on
/// that tag's shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(pub TagId);
