//! The checks alone, in this process: decoding, look-up, proof.

use crate::measure::Effort;
use crate::pass::holders::{Stay, Tokens, tokens};
use crate::report::{Figure, Goal};
use alpheus_anonymous_credential::configuration::{Configuration, PinnedConfiguration};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp};
use alpheus_anonymous_credential::schedule::{Epoch, Schedule};
use alpheus_anonymous_credential::sessions::{
    DueReUp, LoginLookUp, ReUpLookUp, Shard, UnspentLogin,
};
use alpheus_anonymous_credential::verifier::{Verifier, verify_re_ups};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_time::{Span, Timestamp};
use std::collections::BTreeMap;
use std::hint::black_box;

const BATCH: usize = 256;
const EPOCH: u64 = 15_000_000;

/// Milliseconds for one, alone and in batches.
///
/// # Errors
/// If a measurement fails.
pub(super) fn figures(effort: Effort) -> Result<Vec<Figure>, Failure> {
    let (key, pinned) = deployment()?;
    let sent = tokens(&key, &pinned, 256, Epoch(100), Stay::from_the_first(2))?;
    let verifier = Verifier::new(key, pinned.clone()).blame(Category::Io)?;
    let now = pinned.schedule.starts(Epoch(100));
    let restore =
        || Shard::restore(pinned.clone(), [], StateOrigin::New, Timestamp(0)).blame(Category::Io);
    let empty = restore()?.commit(&mut BTreeMap::new()).blame(Category::Io)?;
    let unspent = |count: usize| -> Vec<UnspentLogin> {
        let one = |bytes: &Vec<u8>| {
            let login = Login::from_bytes(bytes, Limit::ONE).ok()?;
            let LoginLookUp::Unspent(login) = empty.look_up(login, now).ok()? else { return None };
            Some(login)
        };
        sent.iter().take(count).filter_map(|tokens| one(bytes(tokens, 0)?)).collect()
    };
    let mut shard = restore()?.commit(&mut BTreeMap::new()).blame(Category::Io)?;
    for proven in verifier.verify(unspent(BATCH)) {
        let step = proven.and_then(|proven| shard.log_in(proven, now)).blame(Category::Io)?;
        step.commit(&mut BTreeMap::new()).blame(Category::Io)?;
    }
    let later = pinned.schedule.opens(Epoch(101));
    let due = |count: usize| -> Vec<DueReUp> {
        let one = |bytes: &Vec<u8>| match shard
            .look_up_re_up(ReUp::from_bytes(bytes).ok()?, later)
            .ok()?
        {
            ReUpLookUp::Due(due) => Some(due),
            ReUpLookUp::Moved(_) => None,
        };
        sent.iter().take(count).filter_map(|tokens| one(bytes(tokens, 1)?)).collect()
    };
    let login =
        |count| effort.time(|| _ = black_box(verifier.verify(unspent(count)))) / count as f64;
    let re_up =
        |count| effort.time(|| _ = black_box(verify_re_ups(&pinned, due(count)))) / count as f64;
    let figure = |name: &str, nanoseconds: f64, most: f64| {
        let alone =
            Figure::alone("pass, the checks alone", name.to_owned(), "ms", nanoseconds / 1e6);
        alone.with_goal(Goal::AtMost(most))
    };
    Ok(vec![
        figure("login, one", login(1), 0.3),
        figure("login, in batches of 32", login(32), 0.3),
        figure("login, in batches of 256", login(BATCH), 0.3),
        figure("re-up, one", re_up(1), 0.1),
        figure("re-up, in batches of 32", re_up(32), 0.1),
        figure("re-up, in batches of 256", re_up(BATCH), 0.045),
    ])
}

fn bytes(tokens: &Tokens, epoch: usize) -> Option<&Vec<u8>> {
    tokens.each.get(epoch).map(|(_, bytes)| bytes)
}

fn deployment() -> Result<(IssuerKey, PinnedConfiguration), Failure> {
    let rng = &mut entropy::rng()?;
    let key = IssuerKey::random(rng).blame(Category::Io)?;
    let schedule = Schedule {
        start: Timestamp(0),
        epoch: Span(EPOCH),
        pre_login: Span(EPOCH / 5),
        border_pre_login: Span(EPOCH / 5),
        epochs_per_period: 5760,
        ahead: 0,
    };
    let configuration = Configuration {
        deployment: *Secret::<32>::random(rng).expose(),
        kind: 1,
        tier: 1,
        limit: Limit::ONE,
        incarnation: 1,
        schedule,
        issuer: *key.public(),
    };
    let operator = SigningKey::from_seed(&Secret::random(rng));
    let signed = Signed::new(&configuration, &operator);
    Ok((key, PinnedConfiguration::open(&signed, &operator.verifying_key()).blame(Category::Io)?))
}
