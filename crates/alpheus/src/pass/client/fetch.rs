//! Gets passes from the issuer: under the account's name, apart from any use.

use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::pass::client::passfile::PassFile;
use crate::pass::clock;
use crate::pass::link::{Base, Link, LinkError};
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::holder::{Requesting, Which};
use alpheus_anonymous_credential::schedule::{Epoch, Period};
use axum::http::{Method, header};
use data_encoding::BASE64;
use zeroize::Zeroizing;

/// A request that is durable, and what it is sent with.
pub struct Fetching {
    asking: Requesting,
    period: Period,
    link: Link,
    basic: Zeroizing<String>,
}

/// What was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The period.
    pub period: Period,
    /// Whether it was not there before.
    pub new: bool,
}

impl Fetching {
    /// A request for the pass of a period; none if it is there. One that was begun
    /// before is the same again.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn begin(file: &mut PassFile, which: Which) -> Result<Option<Self>, Failure> {
        let card = file.card()?;
        let pinned = card.pinned;
        let period = period(&pinned, which);
        if file.holder(&pinned, period)?.is_some() {
            return Ok(None);
        }
        let asking = match file.requesting(&pinned, period)? {
            Some(asking) => asking,
            None => {
                let account = file.account().0.as_bytes().to_vec();
                let rng = &mut entropy::rng()?;
                let begun = Requesting::begin(pinned, &account, clock::now(), which, rng);
                begun.blame(Category::Refused)?.commit(file).blame(Category::Io)?
            }
        };
        let base = Base::parse(&card.issuer).blame(Category::Input)?;
        let link = Link::new(base, card.authority.as_deref())?;
        let (account, secret) = file.account();
        let credentials = Zeroizing::new(format!("{account}:{secret}"));
        let basic = Zeroizing::new(format!("Basic {}", BASE64.encode(credentials.as_bytes())));
        Ok(Some(Self { asking, period, link, basic }))
    }

    /// Asks the issuer.
    ///
    /// # Errors
    /// It refuses or is not reached.
    pub async fn ask(&self) -> Result<Vec<u8>, LinkError> {
        let headers = [(header::AUTHORIZATION, self.basic.as_str())];
        self.link.exchange(Method::POST, "/v1/pass", &headers, self.asking.bytes()).await
    }

    /// Puts the pass into the file.
    ///
    /// # Errors
    /// The answer is none, or the file cannot be written.
    pub fn finish(self, file: &mut PassFile, answer: &[u8]) -> Result<Fetched, Failure> {
        self.asking.finish(answer).blame(Category::Refused)?.commit(file).blame(Category::Io)?;
        Ok(Fetched { period: self.period, new: true })
    }
}

/// Gets the pass of a period, if the file has none yet. Asked again after a lost
/// answer, it sends the same request and gets the same pass.
///
/// # Errors
/// The issuer refuses or is not reached; the file cannot be written.
pub async fn fetch(file: &mut PassFile, which: Which) -> Result<Fetched, Failure> {
    match Fetching::begin(file, which)? {
        Some(fetching) => {
            let answer = fetching.ask().await?;
            fetching.finish(file, &answer)
        }
        None => Ok(Fetched { period: period(&file.card()?.pinned, which), new: false }),
    }
}

fn period(pinned: &Pinned, which: Which) -> Period {
    let running = pinned.schedule.epoch_at(clock::now()).unwrap_or(Epoch(0));
    let running = pinned.schedule.period_of(running);
    match which {
        Which::Running => running,
        Which::Next => Period(running.0.saturating_add(1)),
    }
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Self {
        let category = match &error {
            LinkError::Refused(problem) if problem.status < 500 => Category::Refused,
            LinkError::Malformed(_) => Category::Input,
            _ => Category::Io,
        };
        Failure::new(category, error)
    }
}
