//! Many holders' logins and re-ups, made in advance.

use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::holder::{Holder, PendingRequest, Timing};
use alpheus_anonymous_credential::issuer::{Applicant, Issuer};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_crypto::hash::Digest;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_time::Timestamp;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The requests of one client, one for each epoch from its first on.
pub(super) struct Tokens {
    pub(super) first: Epoch,
    /// `login` or `re-up`, and its bytes.
    pub(super) each: Vec<(&'static str, Vec<u8>)>,
}

/// How clients arrive and stay.
#[derive(Clone, Copy)]
pub(super) struct Stay {
    /// Epochs of the longest stay.
    pub(super) epochs: u32,
    /// New clients in each epoch; by default all come in the first.
    pub(super) join: Option<u32>,
    /// Each client logs in again in each epoch, without re-ups.
    pub(super) login_only: bool,
}

type Forgets = BTreeMap<Vec<u8>, Vec<u8>>;

impl Stay {
    /// For this many epochs from the first on, with re-ups.
    pub(super) fn from_the_first(epochs: u32) -> Self {
        Self { epochs, join: None, login_only: false }
    }

    /// The epoch, from the first, in which a client arrives.
    fn joins(&self, number: u32) -> u32 {
        self.join.map_or(0, |each| number / each.max(1))
    }
}

/// Tokens of this many holders, from an epoch on.
///
/// # Errors
/// If the deployment does not work.
pub(super) fn tokens(
    key: &IssuerKey,
    pinned: &PinnedConfiguration,
    holders: u32,
    first: Epoch,
    stay: Stay,
) -> Result<Vec<Tokens>, Failure> {
    let each = |number: u32| one(key, pinned, number, first, stay);
    (0..holders).into_par_iter().map(each).collect()
}

/// Time to make tokens, measured on a few, plus a third.
///
/// # Errors
/// If the deployment does not work.
pub(super) fn takes(
    key: &IssuerKey,
    pinned: &PinnedConfiguration,
    holders: u32,
    stay: Stay,
) -> Result<Duration, Failure> {
    let (few, start) = (holders.min(32), Instant::now());
    let alike = Stay { join: None, ..stay };
    tokens(key, pinned, few, Epoch(100), alike)?;
    Ok(start.elapsed().mul_f64(f64::from(holders) / f64::from(few) * 4.0 / 3.0))
}

fn one(
    key: &IssuerKey,
    pinned: &PinnedConfiguration,
    number: u32,
    first: Epoch,
    stay: Stay,
) -> Result<Tokens, Failure> {
    let rng = &mut entropy::rng()?;
    let (joins, mut each) = (stay.joins(number), Vec::new());
    let first = Epoch(first.0 + u64::from(joins));
    let mut holder = holder(key, pinned, number, pinned.schedule.starts(first))?;
    let compared = pinned.compare(&pinned.fingerprint()).blame(Category::Io)?;
    let nothing = Digest([0; 32]);
    for epoch in (first.0..).take(stay.epochs.saturating_sub(joins) as usize) {
        if stay.login_only || epoch == first.0 {
            let now = pinned.schedule.starts(Epoch(epoch));
            let login = holder.log_in(Timing::Running, &compared, &nothing, now, rng);
            let login = login.blame(Category::Io)?.commit(&mut Forgets::new());
            each.push(("login", login.blame(Category::Io)?.bytes));
        } else {
            let re_up = holder.re_up(pinned.schedule.opens(Epoch(epoch)), rng);
            let re_up = re_up.blame(Category::Io)?.commit(&mut Forgets::new());
            each.push(("re-up", re_up.blame(Category::Io)?.bytes));
        }
        holder.prune().commit(&mut Forgets::new()).blame(Category::Io)?;
    }
    Ok(Tokens { first, each })
}

/// A holder with a credential issued in this process.
///
/// # Errors
/// If the deployment does not work.
pub(super) fn holder(
    key: &IssuerKey,
    pinned: &PinnedConfiguration,
    number: u32,
    now: Timestamp,
) -> Result<Holder, Failure> {
    let (rng, account) = (&mut entropy::rng()?, number.to_be_bytes());
    let copy = IssuerKey::from_bytes(&key.expose()).blame(Category::Io)?;
    let issuer =
        Issuer::restore(copy, pinned.clone(), [], StateOrigin::New, now).blame(Category::Io)?;
    let mut issuer = issuer.commit(&mut Forgets::new()).blame(Category::Io)?;
    let asking = PendingRequest::begin(pinned.clone(), &account, Timing::Running, now, rng);
    let asking = asking.blame(Category::Io)?.commit(&mut Forgets::new()).blame(Category::Io)?;
    let answer =
        issuer.issue(Applicant::named(&account), &asking.bytes(), now, rng).blame(Category::Io)?;
    let answer = answer.commit(&mut Forgets::new()).blame(Category::Io)?;
    let holder = asking.finish(&answer).blame(Category::Io)?;
    holder.commit(&mut Forgets::new()).blame(Category::Io)
}
