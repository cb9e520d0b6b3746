//! What the types rule out: copies and debug output of secrets, keys in variable-time code,
//! messages that leave before they are durable.

use alpheus_anonymous_credential::holder::{Holder, OutboundMessage, PendingRequest};
use alpheus_anonymous_credential::issuer::Issuer;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::{Change, Step};
use alpheus_anonymous_credential::sessions::{DueReUp, MovedReUp, ReservedReUp, UnspentLogin};
use alpheus_anonymous_credential::verifier::{ProvenLogin, ProvenReUp, Verifier};
use alpheus_crypto::group::{PublicScalar, SecretScalar};
use alpheus_crypto::sigma::Claim;
use std::fmt::{Debug, Display};
use std::path::Path;

/// Does not compile if the type has the trait, because then there are two candidates.
macro_rules! lacks {
    ($($type:ty: $($trait:path),+;)+) => {
        #[test]
        fn secrets_and_steps_lack_traits_that_would_leak_or_repeat_them() {
            $($(
                {
                    trait Ambiguous<A> { fn pick() {} }
                    impl<T: ?Sized> Ambiguous<()> for T {}
                    struct Has;
                    impl<T: ?Sized + $trait> Ambiguous<Has> for T {}
                    <$type as Ambiguous<_>>::pick();
                }
            )+)+
        }
    };
}

lacks! {
    SecretScalar: Clone, Copy, Debug, Display, Into<PublicScalar>, serde::Serialize;
    IssuerKey: Clone, Copy, Debug, Display, serde::Serialize;
    Issuer: Clone, Debug;
    Verifier: Clone, Debug;
    Holder: Clone, Debug, serde::Serialize;
    PendingRequest: Clone, Debug, serde::Serialize;
    Change: Debug;
    Step<OutboundMessage>: Clone, Debug, std::ops::Deref;
    UnspentLogin: Clone;
    ProvenLogin: Clone;
    DueReUp: Clone;
    ProvenReUp: Clone;
    ReservedReUp: Clone;
    MovedReUp: Clone;
    Claim: Clone;
}

fn sources(directory: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let (mut found, mut waiting) = (Vec::new(), vec![root]);
    while let Some(place) = waiting.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.push((path.display().to_string(), std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty());
    found
}

/// The key consists of `SecretScalar`s, which have no variable-time operation. This crate cannot
/// reach the curve's own scalars, and the only variable-time function in `crypto` accepts public
/// ones.
#[test]
fn the_key_meets_no_variable_time_code() {
    let door = "pub(crate) fn vartime_sum_vanishes(terms: &[(PublicScalar, Element)])";
    let mut doors = 0;
    for (path, text) in sources("src").iter().chain(&sources("../crypto/src")) {
        let code: Vec<&str> = text.lines().filter(|l| !l.trim_start().starts_with("//")).collect();
        let ours = !path.contains("/crypto/");
        for line in code {
            assert!(!ours || !line.contains("curve25519_dalek"), "{path}: {line}");
            doors += usize::from(line.contains(".vartime_") || line.contains("::vartime_"));
        }
        if path.ends_with("/group.rs") {
            assert!(text.contains(door), "the door takes public scalars");
        }
    }
    assert_eq!(doors, 1, "one door to variable time");
    let manifest = include_str!("../../../Cargo.toml");
    let shipped = manifest.split("[dev-dependencies]").next().unwrap();
    assert!(!shipped.contains("curve25519-dalek"), "the curve only through alpheus-crypto");
}
