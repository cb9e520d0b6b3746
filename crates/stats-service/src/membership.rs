//! How smoothers and the aggregator know each other. A certificate of TLS shows a role that the
//! authority certified, perhaps for another deployment. So each request to a smoother's address for
//! peers bears what the caller has signed, with its key on the card: the name in its certificate.

use alpheus_accountable_statistics::configuration::PinnedConfiguration;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::{Message, Signed};
use alpheus_node::network::answer::{ApiError, caller};
use alpheus_node::network::role::{Name, Role};
use alpheus_node::service::http::Peer;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The header of a request that says who its sender is.
pub const HEADER: HeaderName = HeaderName::from_static("alpheus-member");
/// Callers whose statements are known to hold; a deployment has fewer parties.
const KNOWN: usize = 256;

/// A party's statement that a certificate's name is its own in this deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Membership {
    /// The fingerprint of the deployment's configuration.
    deployment: Digest,
    /// The name in its certificate.
    name: String,
}

impl Message for Membership {
    const LABEL: &'static str = labels::STATISTICS_MEMBERSHIP;
}

fn statement(pinned: &PinnedConfiguration, name: &Name) -> Membership {
    Membership { deployment: pinned.fingerprint(), name: name.to_string() }
}

/// The header's value for a party with this certificate's name.
#[must_use]
pub fn stated(pinned: &PinnedConfiguration, name: &Name, key: &SigningKey) -> Arc<str> {
    let signed = Signed::new(&statement(pinned, name), key);
    BASE64.encode(&postcard::to_allocvec(&signed).unwrap_or_default()).into()
}

/// Admits the deployment's smoothers and its aggregator.
#[derive(Clone)]
pub struct Members {
    pinned: PinnedConfiguration,
    known: Arc<Mutex<HashMap<Name, String>>>,
}

impl Members {
    /// The members of a deployment.
    #[must_use]
    pub fn new(pinned: &PinnedConfiguration) -> Self {
        Self { pinned: pinned.clone(), known: Arc::default() }
    }

    /// Admits a caller by its certificate and its statement.
    ///
    /// # Errors
    /// [`ApiError`] if the caller is no member, or does not prove it.
    pub fn admit(&self, peer: &Peer, headers: &HeaderMap) -> Result<(), ApiError> {
        let name = caller(peer, &[Role::Smoother, Role::Aggregator])?;
        let stated = headers.get(HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(&name).is_some_and(|known| known == stated) {
            return Ok(());
        }
        if !self.holds(&name, stated) {
            return Err(no_member());
        }
        if known.len() < KNOWN {
            known.insert(name, stated.to_owned());
        }
        Ok(())
    }

    fn holds(&self, name: &Name, stated: &str) -> bool {
        let bytes = BASE64.decode(stated.as_bytes()).unwrap_or_default();
        let Ok(signed) = postcard::from_bytes::<Signed<Membership>>(&bytes) else { return false };
        let expected = statement(&self.pinned, name);
        let signs = |key: &VerifyingKey| {
            signed.open(key).is_ok_and(|opened| opened.into_inner() == expected)
        };
        match name.role {
            Role::Aggregator => signs(&self.pinned.aggregator),
            _ => self.pinned.ids().filter_map(|id| self.pinned.key(id)).any(signs),
        }
    }
}

fn no_member() -> ApiError {
    let why = "the certificate's name does not belong to a member of this deployment; use the card, keys and identity of one party, and the card that this smoother has";
    ApiError::new(StatusCode::FORBIDDEN, "no-member", why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;
    use crate::test_deployment::TestDeployment;

    /// A smoother of another deployment under the same authority, and a member under another's name.
    #[test]
    fn only_members_under_their_own_names_are_admitted() {
        let (place, other) = (TestDeployment::new(), TestDeployment::new());
        let members = Members::new(&place.card.pinned);
        let name = |role, name: &str| Name { role, name: name.to_owned() };
        let (one, two) = (name(Role::Smoother, "one"), name(Role::Smoother, "two"));
        let aggregator = name(Role::Aggregator, "one");
        let of = |place: &TestDeployment, name: &Name, key: &SigningKey| {
            stated(&place.card.pinned, name, key)
        };
        let key = |place: &TestDeployment| {
            keys::signing(&place.keys("aggregator").join(keys::SIGNING)).unwrap()
        };
        assert!(members.holds(&one, &of(&place, &one, &place.smoother(3))));
        assert!(members.holds(&aggregator, &of(&place, &aggregator, &key(&place))));
        for (what, name, stated) in [
            ("nothing", &one, "".into()),
            ("no statement", &one, "AAAA".into()),
            ("another name", &two, of(&place, &one, &place.smoother(3))),
            ("another role", &aggregator, of(&place, &one, &place.smoother(3))),
            ("a smoother as aggregator", &aggregator, of(&place, &aggregator, &place.smoother(3))),
            ("the aggregator as smoother", &one, of(&place, &one, &key(&place))),
            ("another deployment's key", &one, of(&place, &one, &other.smoother(3))),
            ("another deployment", &one, of(&other, &one, &place.smoother(3))),
        ] {
            assert!(!members.holds(name, &stated), "{what}");
        }
    }
}
