//! Messages of bounded windows.

use alpheus_bounded_influence::blame::Blame;
use alpheus_bounded_influence::check::{Checker, Member};
use alpheus_bounded_influence::messages::{Contribution, EdgeStatement, Opening, Scope};
use alpheus_bounded_influence::terms::{Cell, Terms};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Message, Signed, Verified};
use std::sync::LazyLock;

/// Of the terms that most seeds are made for.
static CHECKER: LazyLock<Option<Checker>> = LazyLock::new(|| checker(3));

/// Of terms without noise: an opening needs no proof.
static WITHOUT_NOISE: LazyLock<Option<Checker>> = LazyLock::new(|| checker(0));

fn checker(noise: u64) -> Option<Checker> {
    let cell = Cell { lowest: -20, highest: 100, noise };
    Terms::new(&[cell], &[], 1000, 10).ok().map(Checker::new)
}

/// Messages of bounded windows are read as what they were written as. Whatever a contribution contains, its check says
/// yes or no. Whatever follows it as its opening and as statements of edges, a judge names nobody but their sender.
pub fn bounded(data: &[u8]) {
    one_meaning::<Opening>(data);
    one_meaning::<EdgeStatement>(data);
    one_meaning::<Contribution>(data);
    let Ok((contribution, rest)) = postcard::take_from_bytes::<Contribution>(data) else { return };
    let _ = judged(&contribution, rest);
    let (Some(checker), Some(signed)) = (CHECKER.as_ref(), signed(&contribution)) else { return };
    let counted = u32::try_from(contribution.owners.len()).unwrap_or(u32::MAX);
    let member = Member { controller: contribution.controller, counted, listed: counted };
    let scope = contribution.scope;
    let Ok(found) = checker.contributions(&scope, &[(member, signed)]) else { return };
    assert_eq!(found.bounded.len() + found.faulty.len(), 1, "a contribution holds or does not");
}

/// A window of this one controller, without owners and noise, whose row fails. Fuzzing finds no digests, so messages get
/// those that they need to be looked at.
fn judged(contribution: &Contribution, data: &[u8]) -> Option<()> {
    let (checker, controller) = (WITHOUT_NOISE.as_ref()?, contribution.controller);
    let scope = Scope { terms: checker.terms().digest(), ..contribution.scope };
    let contribution = Contribution { scope, owners: Vec::new(), ..contribution.clone() };
    let (member, given) = (Member { controller, counted: 0, listed: 0 }, signed(&contribution)?);
    let digest = given.digest();
    let found = checker.contributions(&scope, &[(member, given)]).ok()?;
    let (bounded, (read, rest)) =
        (found.bounded.into_iter().next()?, postcard::take_from_bytes::<Opening>(data).ok()?);
    let opening = Opening { scope, controller, contribution: digest, noise: None, ..read };
    let opening_set = opening.opening_set;
    let opened = checker.openings(&opening_set, &[(bounded, signed(&opening)?)]).ok()?;
    let _ = checker.row(&[controller], &opened, None);
    let failed = checker.failed(&[controller], &opened).ok()?;
    let read: Vec<EdgeStatement> = postcard::from_bytes(rest).ok()?;
    let of_round = |stated| EdgeStatement { scope, opening_set, ..stated };
    let stated: Vec<_> = read.into_iter().filter_map(|one| signed(&of_round(one))).collect();
    let judgement = Blame::new(1).judge(&failed, &stated);
    assert!(judgement.named.keys().all(|named| *named == controller), "others are named");
    assert!(judgement.struck.is_empty(), "an edge has two ends");
    Some(())
}

fn signed<T: Message>(message: &T) -> Option<Verified<T>> {
    let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
    Signed::new(message, &key).open(&key.verifying_key()).ok()
}

/// What is read is what is signed again, and opens.
fn one_meaning<T: Message + PartialEq>(data: &[u8]) {
    let Ok(message) = postcard::from_bytes::<T>(data) else { return };
    let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
    let opened = Signed::new(&message, &key).open(&key.verifying_key());
    assert!(opened.is_ok_and(|opened| *opened == message), "a message has one meaning");
}
