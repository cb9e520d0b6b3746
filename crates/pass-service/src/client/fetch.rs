//! Gets passes from the issuer, under the account's name and separately from any use.

use crate::client::id_token::{IdToken, IdTokenError};
use crate::client::passfile::PassFile;
use crate::links;
use alpheus_access_pass::file::Evidence;
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::holder::{PendingRequest, Timing};
use alpheus_anonymous_credential::schedule::{Epoch, Period};
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::base::Base;
use alpheus_node::network::client::{HttpClient, Limits};
use alpheus_node::network::error::RequestError;
use axum::http::{Method, header};
use data_encoding::BASE64;
use zeroize::Zeroizing;

/// A durable request to the issuer, its link and credentials.
pub struct IssueRequest {
    pending: PendingRequest,
    period: Period,
    link: HttpClient,
    authorization: Authorization,
}

/// How the request shows whose account it is for.
enum Authorization {
    /// The value of a header.
    Basic(Zeroizing<String>),
    /// The account, and a command that prints its ID tokens.
    IdToken { account: String, command: Zeroizing<String> },
}

impl Authorization {
    fn new(account: &str, evidence: &Evidence) -> Self {
        match evidence {
            Evidence::Secret(secret) => {
                let credentials = Zeroizing::new(format!("{account}:{secret}"));
                let encoded = Zeroizing::new(BASE64.encode(credentials.as_bytes()));
                Self::Basic(Zeroizing::new(format!("Basic {}", *encoded)))
            }
            Evidence::IdTokenCommand(command) => Self::IdToken {
                account: account.to_owned(),
                command: Zeroizing::new(command.clone()),
            },
        }
    }

    /// The value of the header `Authorization`. May take as long as the command.
    async fn header(&self) -> Result<Zeroizing<String>, Failure> {
        let (account, command) = match self {
            Self::Basic(value) => return Ok(value.clone()),
            Self::IdToken { account, command } => (account, command.clone()),
        };
        let printed = tokio::task::spawn_blocking(move || IdToken::print(&command));
        let token = printed.await.blame(Category::Io)?.blame(Category::Refused)?;
        if token.subject != *account {
            return Err(IdTokenError::OtherAccount).blame(Category::Refused);
        }
        Ok(Zeroizing::new(format!("Bearer {}", *token.text)))
    }
}

/// A pass in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPass {
    /// The period.
    pub period: Period,
    /// Whether it was just fetched.
    pub new: bool,
}

impl IssueRequest {
    /// A request for the pass of a period; `None` if the file has the pass. A request that
    /// was begun earlier is repeated unchanged.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn begin(file: &mut PassFile, timing: Timing) -> Result<Option<Self>, Failure> {
        let card = file.card()?;
        let pinned = card.pinned;
        let period = period(&pinned, timing);
        if file.holder(&pinned, period)?.is_some() {
            return Ok(None);
        }
        let pending = match file.pending_request(&pinned, period)? {
            Some(pending) => pending,
            None => {
                let account = file.account().0.as_bytes().to_vec();
                let rng = &mut entropy::rng()?;
                let step = PendingRequest::begin(pinned, &account, timing, clock::now(), rng);
                step.blame(Category::Refused)?.commit(file).blame(Category::Io)?
            }
        };
        let base = Base::parse(&card.issuer).blame(Category::Input)?;
        let link = links::issuer(base, card.authority.as_deref())?;
        let (account, evidence) = file.account();
        let authorization = Authorization::new(account, evidence);
        Ok(Some(Self { pending, period, link, authorization }))
    }

    /// Sends the request to the issuer.
    ///
    /// # Errors
    /// The issuer refuses or is unreachable, or there is no ID token.
    pub async fn send(&self) -> Result<Vec<u8>, Failure> {
        let value = self.authorization.header().await?;
        let headers = [(header::AUTHORIZATION, value.as_str())];
        let body = self.pending.bytes();
        let answer = self.link.exchange(Method::POST, "/v1/pass", &headers, body, Limits::SHORT);
        answer.await.map_err(RequestError::into_refusal)
    }

    /// Stores the pass in the file.
    ///
    /// # Errors
    /// The answer is invalid, or the file cannot be written.
    pub fn finish(self, file: &mut PassFile, answer: &[u8]) -> Result<StoredPass, Failure> {
        self.pending.finish(answer).blame(Category::Refused)?.commit(file).blame(Category::Io)?;
        Ok(StoredPass { period: self.period, new: true })
    }
}

/// Gets the pass of a period, unless the file has it. After a lost answer it sends the same
/// request, and gets the same pass.
///
/// # Errors
/// The issuer refuses or is unreachable, or the file cannot be written.
pub async fn fetch(file: &mut PassFile, timing: Timing) -> Result<StoredPass, Failure> {
    match IssueRequest::begin(file, timing)? {
        Some(request) => {
            let answer = request.send().await?;
            request.finish(file, &answer)
        }
        None => Ok(StoredPass { period: period(&file.card()?.pinned, timing), new: false }),
    }
}

fn period(pinned: &PinnedConfiguration, timing: Timing) -> Period {
    let running = pinned.schedule.epoch_at(clock::now()).unwrap_or(Epoch(0));
    let running = pinned.schedule.period_of(running);
    match timing {
        Timing::Running => running,
        Timing::Next => Period(running.0.saturating_add(1)),
    }
}
