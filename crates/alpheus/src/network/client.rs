//! Requests to a process of the deployment, over mutual TLS 1.3.

use crate::failure::{Category, Failure};
use crate::network::identity::IdentityFolder;
use crate::network::role::{Name, Role};
use crate::network::tls::{Meant, Seen, Tls};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::time::Duration;
use ureq::http::{Response, StatusCode};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, TcpConnector};
use ureq::{Agent, Body, SendBody};

/// The largest answer that is read.
const LARGEST: u64 = 64 << 20;
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an answer may take beyond what was asked to wait, and beyond what a
/// slow line needs for the body.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes that the slowest line carries in a second.
const SLOWEST: u32 = 64 << 10;

/// One process's way to another.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    base: String,
    seen: Seen,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Nobody answered; asking again later may help.
    #[error("{base}: no answer")]
    Unreachable {
        /// Whom.
        base: String,
        /// Why not.
        source: Box<ureq::Error>,
    },
    /// It answered that it will not.
    #[error("{0}")]
    Refused(Problem),
    /// It answered something else than was agreed.
    #[error("{base}: the answer is not what this version of alpheus expects")]
    Malformed {
        /// Who.
        base: String,
    },
}

/// A refusal on the wire (after RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The rule, as a word that programs can tell.
    pub rule: String,
    /// What is wrong, for people.
    pub detail: String,
    /// What would mend it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The HTTP status.
    pub status: u16,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.detail, self.rule)
    }
}

impl RequestError {
    /// Whether the same request may be answered later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            RequestError::Unreachable { .. } => true,
            // 429: too much at once of ours.
            RequestError::Refused(problem) => problem.status >= 500 || problem.status == 429,
            RequestError::Malformed { .. } => false,
        }
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Failure {
        let (category, help) = match &error {
            RequestError::Refused(Problem { rule, help, .. }) if rule == "policy" => {
                (Category::Refused, help.clone())
            }
            RequestError::Refused(Problem { status, help, .. }) if *status < 500 => {
                (Category::Input, help.clone())
            }
            RequestError::Refused(Problem { help, .. }) => (Category::Io, help.clone()),
            _ => (Category::Io, None),
        };
        let failure = Failure::new(category, error);
        match help {
            Some(help) => failure.with_help(help),
            None => failure,
        }
    }
}

impl Client {
    /// A way to the service at `base` (`https://host:port`), as the identity's holder.
    ///
    /// # Errors
    /// If a file of the identity cannot be used.
    pub fn new(identity: &IdentityFolder, base: &str) -> Result<Client, Failure> {
        Client::to(identity, base, Meant { role: Role::Server, name: None })
    }

    /// A way to somebody. If another is at that address, nothing is said to them.
    ///
    /// # Errors
    /// If a file of the identity cannot be used.
    pub fn to(identity: &IdentityFolder, base: &str, meant: Meant) -> Result<Client, Failure> {
        let seen = Seen::default();
        let tls = Tls::new(identity, meant, seen.clone())?;
        let config = Agent::config_builder()
            .https_only(true)
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .build();
        let connector = ().chain(TcpConnector::default()).chain(tls);
        let agent = Agent::with_parts(config, connector, DefaultResolver::default());
        Ok(Client { agent, base: base.trim_end_matches('/').to_owned(), seen })
    }

    /// Who was there, once a request was answered.
    #[must_use]
    pub fn peer(&self) -> Option<Name> {
        self.seen.name()
    }

    /// Whom it reaches.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Asks for JSON, waiting up to `wait` longer than usual.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn get<T: DeserializeOwned>(&self, path: &str, wait: Duration) -> Result<T, RequestError> {
        let request = self.agent.get(format!("{}{path}", self.base));
        let request = request.config().timeout_global(Some(PATIENCE + wait)).build();
        json(&self.base, self.answer(request.call())?)
    }

    /// Sends JSON and takes JSON.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, RequestError> {
        let bytes = serde_json::to_vec(body).map_err(|_| self.malformed())?;
        json(&self.base, self.send(path, "application/json", &bytes)?)
    }

    /// Sends a binary message and takes one.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn exchange<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        wait: Duration,
    ) -> Result<T, RequestError> {
        self.exchange_while(path, body, wait, || true)
    }

    /// The same, but the body leaves only while it `stands`: a byte that was not
    /// handed to the operating system before it falls never is.
    ///
    /// # Errors
    /// [`RequestError`]; `Unreachable` too if the body fell.
    pub fn exchange_while<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        wait: Duration,
        stands: impl Fn() -> bool,
    ) -> Result<T, RequestError> {
        let bytes = postcard::to_allocvec(body).map_err(|_| self.malformed())?;
        let request = self.agent.post(format!("{}{path}", self.base));
        let patience = PATIENCE + wait + for_size(bytes.len());
        let request = request.config().timeout_global(Some(patience)).build();
        let request = request.header("content-type", "application/octet-stream");
        let request = request.header("content-length", bytes.len().to_string());
        let mut body = Standing { left: &bytes, stands };
        let answer = self.answer(request.send(SendBody::from_reader(&mut body)))?;
        let answer = read(&self.base, answer)?;
        postcard::from_bytes(&answer).map_err(|_| self.malformed())
    }

    /// Asks for something to be gone.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, RequestError> {
        let request = self.agent.delete(format!("{}{path}", self.base));
        json(&self.base, self.answer(request.call())?)
    }

    fn send(&self, path: &str, kind: &str, body: &[u8]) -> Result<Response<Body>, RequestError> {
        let request = self.agent.post(format!("{}{path}", self.base));
        let request = request.config().timeout_global(Some(PATIENCE)).build();
        self.answer(request.header("content-type", kind).send(body))
    }

    fn answer(
        &self,
        answered: Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, RequestError> {
        let unreachable = |source| RequestError::Unreachable {
            base: self.base.clone(),
            source: Box::new(source),
        };
        let answer = answered.map_err(unreachable)?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let problem = read(&self.base, answer)?;
        Err(RequestError::Refused(problem_of(status, &problem)))
    }

    /// The answer makes no sense.
    pub(crate) fn malformed(&self) -> RequestError {
        RequestError::Malformed { base: self.base.clone() }
    }
}

/// How long the slowest line needs.
fn for_size(bytes: usize) -> Duration {
    Duration::from_secs(bytes as u64) / SLOWEST
}

/// A body that may fall while it is sent.
struct Standing<'a, F> {
    left: &'a [u8],
    stands: F,
}

impl<F: Fn() -> bool> Read for Standing<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.stands)() {
            self.left.read(buffer)
        } else {
            Err(io::Error::other("it was taken back"))
        }
    }
}

fn problem_of(status: StatusCode, body: &[u8]) -> Problem {
    serde_json::from_slice(body).unwrap_or_else(|_| Problem {
        rule: "http".to_owned(),
        detail: format!("it answered {status}"),
        help: None,
        status: status.as_u16(),
    })
}

fn read(base: &str, mut answer: Response<Body>) -> Result<Vec<u8>, RequestError> {
    let read = answer.body_mut().with_config().limit(LARGEST).read_to_vec();
    let unreachable =
        |source| RequestError::Unreachable { base: base.to_owned(), source: Box::new(source) };
    read.map_err(unreachable)
}

fn json<T: DeserializeOwned>(base: &str, answer: Response<Body>) -> Result<T, RequestError> {
    serde_json::from_slice(&read(base, answer)?)
        .map_err(|_| RequestError::Malformed { base: base.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// All that a request puts on the wire while its body stands.
    fn on_the_wire(stands: bool) -> Vec<u8> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            let (mut all, mut some) = (Vec::new(), [0; 4096]);
            while let Ok(read @ 1..) = stream.read(&mut some) {
                all.extend_from_slice(&some[..read]);
            }
            all
        });
        let client = Client { agent: Agent::new_with_defaults(), base, seen: Seen::default() };
        let asked = AtomicBool::new(false);
        let still = || {
            asked.store(true, Ordering::Relaxed);
            stands
        };
        let sent: Result<(), _> = client.exchange_while("/", &"a token", Duration::ZERO, still);
        assert!(sent.is_err() && asked.load(Ordering::Relaxed));
        thread.join().unwrap()
    }

    #[test]
    fn a_body_that_was_taken_back_does_not_leave() {
        let holds = |wire: &[u8]| wire.windows(7).any(|bytes| bytes == b"a token");
        assert!(holds(&on_the_wire(true)));
        assert!(!holds(&on_the_wire(false)));
    }
}
