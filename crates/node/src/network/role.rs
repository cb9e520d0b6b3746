//! What a certificate lets its holder do: a role and a name, as a URI among the
//! certificate's alternative names.

use std::fmt;
use std::str::FromStr;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// What a process acts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum)]
pub enum Role {
    /// Plans queries, stores and sums ciphertexts.
    Server,
    /// Guards owners' streams.
    Controller,
    /// Encrypts events.
    Producer,
    /// Chooses policies for streams.
    Owner,
    /// Asks queries and reads results.
    Consumer,
    /// Watches the service: health, hosts, running queries. It reads no result.
    Operator,
    /// Issues access passes.
    Issuer,
    /// Checks access passes and keeps spent tags.
    Verifier,
    /// Serves sessions of access passes; also a gate that scans codes.
    Gateway,
    /// A database or the auditor of an anonymous board.
    Board,
    /// Gives clients of statistics their credentials.
    Registrar,
    /// Keeps slots of statistics, and decrypts their sums with others.
    Smoother,
    /// Checks and closes statistics.
    Aggregator,
}

/// Who a process is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// What it acts as.
    pub role: Role,
    /// What it is called: letters, digits, `-`, `_` and `.`.
    pub name: String,
}

/// Why something names no party.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerNameError {
    /// No certificate was shown.
    #[error(
        "no client certificate was presented; connect with one that the deployment's authority issued"
    )]
    Anonymous,
    /// The certificate cannot be read.
    #[error("the certificate cannot be read")]
    Malformed,
    /// The certificate has no URI of ours, or more than one.
    #[error("the certificate names no role; have one issued by `alpheus ca issue`")]
    Roleless,
    /// A name with other characters, none, or too many.
    #[error("a name has 1 to 64 letters, digits, `-`, `_` or `.`")]
    BadName,
}

const SCHEME: &str = "alpheus://";
const MAX_NAME: usize = 64;

impl Role {
    /// Whether its processes listen, and so show their certificates to all who come.
    #[must_use]
    pub fn serves(self) -> bool {
        !matches!(self, Role::Producer | Role::Owner | Role::Consumer | Role::Operator)
    }

    /// Every role.
    pub const ALL: [Role; 13] = [
        Role::Server,
        Role::Controller,
        Role::Producer,
        Role::Owner,
        Role::Consumer,
        Role::Operator,
        Role::Issuer,
        Role::Verifier,
        Role::Gateway,
        Role::Board,
        Role::Registrar,
        Role::Smoother,
        Role::Aggregator,
    ];

    /// How it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Server => "server",
            Role::Controller => "controller",
            Role::Producer => "producer",
            Role::Owner => "owner",
            Role::Consumer => "consumer",
            Role::Operator => "operator",
            Role::Issuer => "issuer",
            Role::Verifier => "verifier",
            Role::Gateway => "gateway",
            Role::Board => "board",
            Role::Registrar => "registrar",
            Role::Smoother => "smoother",
            Role::Aggregator => "aggregator",
        }
    }

    /// The same with its article.
    #[must_use]
    pub const fn with_article(self) -> &'static str {
        match self {
            Role::Server => "a server",
            Role::Controller => "a controller",
            Role::Producer => "a producer",
            Role::Owner => "an owner",
            Role::Consumer => "a consumer",
            Role::Operator => "an operator",
            Role::Issuer => "an issuer",
            Role::Verifier => "a verifier",
            Role::Gateway => "a gateway",
            Role::Board => "a board",
            Role::Registrar => "a registrar",
            Role::Smoother => "a smoother",
            Role::Aggregator => "an aggregator",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Name {
    /// A name.
    ///
    /// # Errors
    /// [`PeerNameError::BadName`].
    pub fn new(role: Role, name: impl Into<String>) -> Result<Name, PeerNameError> {
        let name = name.into();
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let good = (1..=MAX_NAME).contains(&name.len()) && name.chars().all(allowed);
        if good && !name.starts_with('.') {
            Ok(Name { role, name })
        } else {
            Err(PeerNameError::BadName)
        }
    }

    /// The process that a certificate in DER form names.
    ///
    /// # Errors
    /// [`PeerNameError`] if it names none, or more than one.
    pub fn of_certificate(der: &[u8]) -> Result<Name, PeerNameError> {
        Name::in_certificate(der)?.ok_or(PeerNameError::Roleless)
    }

    /// The process that a certificate in DER form names, if it names any.
    ///
    /// # Errors
    /// [`PeerNameError`] if it names more than one, or the name is malformed.
    pub fn in_certificate(der: &[u8]) -> Result<Option<Name>, PeerNameError> {
        let certificate = Certificate::from_der(der).map_err(|_| PeerNameError::Malformed)?;
        let names = certificate.tbs_certificate().get_extension::<SubjectAltName>();
        let Some((_, names)) = names.map_err(|_| PeerNameError::Malformed)? else {
            return Ok(None);
        };
        let mut ours = names.0.iter().filter_map(|name| match name {
            GeneralName::UniformResourceIdentifier(uri) if uri.as_str().starts_with(SCHEME) => {
                Some(uri.as_str())
            }
            _ => None,
        });
        match (ours.next(), ours.next()) {
            (Some(uri), None) => uri.parse().map(Some),
            (None, _) => Ok(None),
            _ => Err(PeerNameError::Roleless),
        }
    }
}

/// As certificates hold it: `alpheus://controller/first`.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.role, self.name)
    }
}

impl FromStr for Name {
    type Err = PeerNameError;

    fn from_str(text: &str) -> Result<Name, PeerNameError> {
        let rest = text.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/'));
        let (role, name) = rest.ok_or(PeerNameError::Roleless)?;
        let role = Role::ALL.into_iter().find(|known| known.as_str() == role);
        Name::new(role.ok_or(PeerNameError::Roleless)?, name)
    }
}

/// The host that a controller's protocol certificate names, as `host` or
/// `host/name`: whose TLS certificate has this name speaks for it.
#[must_use]
pub fn host_named(name: &str) -> &str {
    name.split_once('/').map_or(name, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_they_are_read() {
        for role in Role::ALL {
            let name = Name::new(role, "a-b_c.9").unwrap();
            assert_eq!(name.to_string().parse(), Ok(name));
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for bad in ["", ".", "..", "a b", "a/b", "é", &"x".repeat(65)] {
            assert_eq!(Name::new(Role::Owner, bad), Err(PeerNameError::BadName), "{bad}");
        }
        for bad in ["https://owner/a", "alpheus://owner", "alpheus://king/a"] {
            assert_eq!(bad.parse::<Name>(), Err(PeerNameError::Roleless), "{bad}");
        }
    }
}
