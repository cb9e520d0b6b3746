//! Authentication of one request: session, counter, and a MAC over method, authority and path. A
//! stolen header is worth one request, and only if it arrives before its owner's.

use crate::error::{ClientError, GatewayError};
use alpheus_anonymous_credential::messages::{SessionId, TagId};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::mac::{MacKey, Tag};
use data_encoding::BASE64URL_NOPAD;
use std::fmt;
use std::str::FromStr;

/// The header that carries a stamp.
pub const HEADER: &str = "alpheus-pass";

/// The authenticated parts of a request. TLS protects the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The method, such as `GET`.
    pub method: &'a str,
    /// Host and port as the client names them, compared in lower case.
    pub authority: &'a str,
    /// Path and query, as sent.
    pub path: &'a str,
}

/// `v1.<session>.<counter>.<tag>`: session and tag in base64url, the counter in decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The session.
    pub session: SessionId,
    /// A number that is used once.
    pub counter: u64,
    /// MAC over session, counter and target.
    pub tag: Tag,
}

/// Makes stamps with a connection's key. Not `Clone`, not `Debug`, wiped on drop.
pub struct Stamper {
    session: SessionId,
    key: MacKey,
    next: u64,
}

impl Stamper {
    pub(crate) fn new(session: SessionId, key: MacKey) -> Self {
        Self { session, key, next: 0 }
    }

    /// The session whose requests it stamps.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The next stamp, for one request.
    ///
    /// # Errors
    /// [`ClientError::Exhausted`] after 2^64 − 1 stamps.
    pub fn stamp(&mut self, target: &Target<'_>) -> Result<Stamp, ClientError> {
        let (session, counter) = (self.session, self.next);
        self.next = counter.checked_add(1).ok_or(ClientError::Exhausted)?;
        Ok(Stamp { session, counter, tag: tag(&self.key, session, counter, target) })
    }
}

pub(crate) fn tag(key: &MacKey, session: SessionId, counter: u64, target: &Target<'_>) -> Tag {
    let authority = target.authority.to_ascii_lowercase();
    let parts: [&[u8]; 5] = [
        session.0.0.as_bytes(),
        &counter.to_be_bytes(),
        target.method.as_bytes(),
        authority.as_bytes(),
        target.path.as_bytes(),
    ];
    key.tag(labels::PASS_REQUEST, &parts)
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = BASE64URL_NOPAD.encode(self.session.0.0.as_bytes());
        write!(f, "v1.{session}.{}.{}", self.counter, BASE64URL_NOPAD.encode(&self.tag.0))
    }
}

impl FromStr for Stamp {
    type Err = GatewayError;

    /// Accepts only the spelling that `Display` writes.
    fn from_str(text: &str) -> Result<Self, GatewayError> {
        let stamp = parse(text).ok_or(GatewayError::Malformed)?;
        if stamp.to_string() == text { Ok(stamp) } else { Err(GatewayError::Malformed) }
    }
}

fn parse(text: &str) -> Option<Stamp> {
    let mut parts = text.strip_prefix("v1.")?.split('.');
    let (session, counter, tag) = (parts.next()?, parts.next()?, parts.next()?);
    let session = bytes(session)?;
    let (counter, tag) = (counter.parse().ok()?, Tag(bytes(tag)?));
    Some(Stamp { session: SessionId(TagId(Digest(session))), counter, tag })
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    BASE64URL_NOPAD.decode(text.as_bytes()).ok()?.try_into().ok()
}
