//! The pass in the terms of Privacy Pass: the challenge that a gateway puts into `WWW-Authenticate`
//! (RFC 9577, section 2.1), and the key under which an issuer's directory lists it (RFC 9578,
//! section 4). So software of that world recognises what is asked for, and from whom.

use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use data_encoding::BASE64URL;

/// The type of our tokens. No registered type has this number.
pub const TOKEN_TYPE: u16 = 0xa1fe;

/// The path of an issuer's directory.
pub const DIRECTORY: &str = "/.well-known/private-token-issuer-directory";

/// The media type of an issuer's directory.
pub const DIRECTORY_TYPE: &str = "application/private-token-issuer-directory";

/// What a gateway asks for: a login in an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenChallenge {
    issuer: String,
    context: [u8; 32],
    origin: String,
    key: String,
}

impl TokenChallenge {
    /// The challenge of an epoch. Issuer and origin are names of hosts, with a port unless it is
    /// the usual one.
    ///
    /// # Privacy
    /// Everybody gets the same challenge in an epoch. One that differed for each client would mark
    /// the client.
    #[must_use]
    pub fn new(pinned: &PinnedConfiguration, epoch: Epoch, issuer: &str, origin: &str) -> Self {
        Self::of(&pinned.fingerprint(), epoch, issuer, origin, token_key(pinned))
    }

    pub(crate) fn of(
        fingerprint: &Digest,
        epoch: Epoch,
        issuer: &str,
        origin: &str,
        key: String,
    ) -> Self {
        let parts: [&[u8]; 2] = [fingerprint.as_bytes(), &epoch.0.to_be_bytes()];
        let context = labelled_hash(labels::PASS_REDEMPTION, &parts).0;
        Self { issuer: issuer.to_owned(), context, origin: origin.to_owned(), key }
    }

    /// `type:16 ‖ |issuer|:16 ‖ issuer ‖ 32:8 ‖ context ‖ |origin|:16 ‖ origin`. Names that are
    /// too long are cut, which no name of a host is.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = TOKEN_TYPE.to_be_bytes().to_vec();
        push(&mut bytes, &self.issuer);
        bytes.push(32);
        bytes.extend(self.context);
        push(&mut bytes, &self.origin);
        bytes
    }

    /// The value of `WWW-Authenticate`.
    #[must_use]
    pub fn header(&self) -> String {
        let challenge = BASE64URL.encode(&self.to_bytes());
        format!("PrivateToken challenge=\"{challenge}\", token-key=\"{}\"", self.key)
    }
}

/// `|text|:16 ‖ text`.
fn push(bytes: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    bytes.extend(length.to_be_bytes());
    bytes.extend(text.bytes().take(length.into()));
}

/// The issuer's public key, X0 ‖ X1 ‖ X2, in base64url with padding.
#[must_use]
pub fn token_key(pinned: &PinnedConfiguration) -> String {
    let public = &pinned.issuer;
    let key = [&public.x0, &public.x1, &public.x2].map(|element| *element.as_bytes());
    BASE64URL.encode(key.as_flattened())
}
