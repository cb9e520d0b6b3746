//! What a service has shown of a query, checked as a whole: rows, receipts and plans, as they were read from it or as
//! a file has them. Nothing is read or written here.
//!
//! | file | holds |
//! | --- | --- |
//! | [`plan_description`] | in words what rows of a plan say, where no statement is known |
//! | [`rows`](Verifier) | the checks of a row |
//! | [`gaps`](Gap) | windows of which the service shows nothing |

mod gaps;
mod plan_description;
mod rows;

pub use crate::query::noted_queries::NotedQuery;
pub use gaps::Gap;
pub use rows::Verifier;

use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_encrypted_stream::receipt::WindowReceipt;
use alpheus_node::network::revoked_certificates::RevokedCertificates;
use alpheus_policy::ids::PlanId;
use alpheus_policy::schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is checked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// [`Evidence::FORMAT`], or [`Evidence::BARE_FORMAT`].
    pub format: u32,
    /// The query.
    pub query: String,
    /// The schema that its columns follow from.
    #[serde(default)]
    pub schema: Option<Schema>,
    /// When it was read from the service, in Unix milliseconds.
    #[serde(default)]
    pub read: Option<u64>,
    /// Whether the query was running then.
    #[serde(default)]
    pub running: bool,
    /// Announcements of its plans, in hexadecimal digits.
    pub plans: Vec<String>,
    /// Receipts. In the file they are hexadecimal digits.
    #[serde(with = "digits")]
    pub receipts: Vec<WindowReceipt>,
    /// Of receipts that this program cannot read: the plan, and when the window starts, in Unix
    /// milliseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<(PlanId, u64)>,
    /// Rows as the service has published them.
    pub rows: Vec<Map<String, Value>>,
}

/// Whom a reader trusts, and what it has asked for.
pub struct Trust<'a> {
    /// The authority's and the service's keys.
    pub deployment: &'a Deployment,
    /// The statement that the query was asked with, and the plans that were begun for it, as the reader has
    /// noted them.
    pub noted: Option<NotedQuery>,
    /// Certificates that the authority has revoked.
    pub revoked: Option<&'a RevokedCertificates>,
}

/// A text is no file of evidence.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceFormatError {
    /// It is not of the agreed form.
    #[error(transparent)]
    Malformed(#[from] serde_json::Error),
    /// Another version has written it.
    #[error("the file has format {0}, not {known}", known = Evidence::FORMAT)]
    Version(u32),
}

impl Evidence {
    /// Version of the files.
    pub const FORMAT: u32 = 2;
    /// The same without schema and time.
    pub const BARE_FORMAT: u32 = 1;

    /// Reads the text of a file. Nothing of it is checked.
    ///
    /// # Errors
    /// [`EvidenceFormatError`].
    pub fn from_json(text: &str) -> Result<Self, EvidenceFormatError> {
        let evidence: Self = serde_json::from_str(text)?;
        match evidence.format {
            Self::FORMAT | Self::BARE_FORMAT => Ok(evidence),
            other => Err(EvidenceFormatError::Version(other)),
        }
    }

    /// The text of a file.
    ///
    /// # Errors
    /// If it cannot be written as JSON, which does not happen.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

/// Receipts as text.
mod digits {
    use alpheus_encrypted_stream::receipt::WindowReceipt;
    use data_encoding::HEXLOWER;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        all: &[WindowReceipt],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(all.iter().map(|receipt| HEXLOWER.encode(&receipt.to_bytes())))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<WindowReceipt>, D::Error> {
        let read = |digits: String| {
            let bytes = HEXLOWER.decode(digits.as_bytes()).map_err(D::Error::custom)?;
            WindowReceipt::from_bytes(&bytes).map_err(D::Error::custom)
        };
        Vec::<String>::deserialize(from)?.into_iter().map(read).collect()
    }
}
