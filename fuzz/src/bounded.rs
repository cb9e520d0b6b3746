//! Messages of bounded windows.

use alpheus_bounded_influence::check::{Checker, Member};
use alpheus_bounded_influence::messages::{Contribution, EdgeStatement, Opening};
use alpheus_bounded_influence::terms::{Cell, Terms};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::{Message, Signed};
use std::sync::LazyLock;

/// Of the terms that most seeds are made for.
static CHECKER: LazyLock<Option<Checker>> = LazyLock::new(|| {
    let cell = Cell { lowest: -20, highest: 100, noise: 3 };
    Terms::new(&[cell], &[], 1000, 10).ok().map(Checker::new)
});

/// Messages of bounded windows are read as what they were written as. Whatever a contribution contains, its check says
/// yes or no.
pub fn bounded(data: &[u8]) {
    one_meaning::<Opening>(data);
    one_meaning::<EdgeStatement>(data);
    one_meaning::<Contribution>(data);
    let Ok(contribution) = postcard::from_bytes::<Contribution>(data) else { return };
    let Some(checker) = CHECKER.as_ref() else { return };
    let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
    let Ok(signed) = Signed::new(&contribution, &key).open(&key.verifying_key()) else { return };
    let counted = u32::try_from(contribution.owners.len()).unwrap_or(u32::MAX);
    let member = Member { controller: contribution.controller, counted, listed: counted };
    let scope = contribution.scope;
    let Ok(found) = checker.contributions(&scope, &[(member, signed)]) else { return };
    assert_eq!(found.bounded.len() + found.faulty.len(), 1, "a contribution holds or does not");
}

/// What is read is what is signed again, and opens.
fn one_meaning<T: Message + PartialEq>(data: &[u8]) {
    let Ok(message) = postcard::from_bytes::<T>(data) else { return };
    let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
    let opened = Signed::new(&message, &key).open(&key.verifying_key());
    assert!(opened.is_ok_and(|opened| *opened == message), "a message has one meaning");
}
