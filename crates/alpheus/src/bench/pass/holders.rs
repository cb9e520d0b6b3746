//! Many holders' logins and re-ups, made before they are sent.

use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::holder::{Holder, Requesting, Which};
use alpheus_anonymous_credential::issuer::Issuer;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::Log;
use alpheus_anonymous_credential::schedule::{Epoch, Time};
use alpheus_crypto::hash::Digest;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// What one client sends: a login for an epoch, and the re-ups to those after it.
pub(super) struct Tokens {
    pub(super) login: Vec<u8>,
    pub(super) re_ups: Vec<Vec<u8>>,
}

type Forgets = BTreeMap<Vec<u8>, Vec<u8>>;

/// Tokens of so many holders, from an epoch on.
///
/// # Errors
/// If the deployment does not work.
pub(super) fn tokens(
    key: &IssuerKey,
    pinned: &Pinned,
    holders: u32,
    first: Epoch,
    epochs: u32,
) -> Result<Vec<Tokens>, Failure> {
    let each = |number: u32| one(key, pinned, number, first, epochs);
    (0..holders).into_par_iter().map(each).collect()
}

fn one(
    key: &IssuerKey,
    pinned: &Pinned,
    number: u32,
    first: Epoch,
    epochs: u32,
) -> Result<Tokens, Failure> {
    let rng = &mut entropy::rng()?;
    let start = pinned.schedule.starts(first);
    let mut holder = holder(key, pinned, number, start)?;
    let compared = pinned.compare(&pinned.fingerprint()).blame(Category::Io)?;
    let nothing = Digest([0; 32]);
    let login = holder.log_in(start, Which::Running, &compared, &nothing, rng);
    let login = login.blame(Category::Io)?.commit(&mut Forgets::new()).blame(Category::Io)?;
    let mut re_ups = Vec::new();
    for epoch in 1..u64::from(epochs) {
        let opens = pinned.schedule.opens(Epoch(first.0 + epoch));
        let re_up = holder.re_up(opens, rng).blame(Category::Io)?;
        re_ups.push(re_up.commit(&mut Forgets::new()).blame(Category::Io)?.bytes);
        holder.prune().commit(&mut Forgets::new()).blame(Category::Io)?;
    }
    Ok(Tokens { login: login.bytes, re_ups })
}

/// A holder, issued to in this process.
///
/// # Errors
/// If the deployment does not work.
pub(super) fn holder(
    key: &IssuerKey,
    pinned: &Pinned,
    number: u32,
    now: Time,
) -> Result<Holder, Failure> {
    let (rng, account) = (&mut entropy::rng()?, number.to_be_bytes());
    let copy = IssuerKey::from_bytes(&key.expose()).blame(Category::Io)?;
    let issuer = Issuer::restore(copy, pinned.clone(), [], Log::New, now).blame(Category::Io)?;
    let mut issuer = issuer.commit(&mut Forgets::new()).blame(Category::Io)?;
    let asking = Requesting::begin(pinned.clone(), &account, now, Which::Running, rng);
    let asking = asking.blame(Category::Io)?.commit(&mut Forgets::new()).blame(Category::Io)?;
    let answer = issuer.issue(now, &account, &asking.bytes(), rng).blame(Category::Io)?;
    let answer = answer.commit(&mut Forgets::new()).blame(Category::Io)?;
    let holder = asking.finish(&answer).blame(Category::Io)?;
    holder.commit(&mut Forgets::new()).blame(Category::Io)
}
