//! What programs outside call sessions, refusals and limits.

use super::town::{Ledger, Town, at};
use alpheus_access_pass::error::GatewayError;
use alpheus_access_pass::gateway::{Limits, session_of};
use alpheus_access_pass::private_token::{TokenChallenge, token_key};
use alpheus_anonymous_credential::holder::Timing;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::Login;
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_crypto::agree::LowOrderError;
use alpheus_time::Span;

/// A gateway finds a login's shard by it, before anybody has checked the login.
#[test]
fn a_login_names_the_session_that_it_begins() {
    let mut town = Town::new(30);
    let mut device = town.device(b"ada");
    let session = town.log_in(&mut device, Timing::Running, at(1));
    let sent = device.holder.resend(device.holder.newest().unwrap()).unwrap();
    let sent = sent.commit(&mut Ledger::new()).unwrap();
    let login = Login::from_bytes(&sent.bytes, Limit::ONE).unwrap();
    assert_eq!(session_of(&town.service.pinned, &login), session);
}

#[test]
fn refusals_have_different_words_and_the_default_limits_are_those_of_the_documents() {
    use GatewayError as G;
    let words = [
        (G::NoPass, "no-pass"),
        (G::Malformed, "malformed"),
        (G::NoSession, "no-session"),
        (G::NotConnected, "not-connected"),
        (G::Ended, "ended"),
        (G::NotYet, "not-yet"),
        (G::Lapsed, "lapsed"),
        (G::Unauthentic, "unauthentic"),
        (G::Replayed, "replayed"),
        (G::TooMany, "too-many"),
        (G::ClockStepped, "clock"),
        (G::Challenge, "challenge"),
        (G::Signature, "signature"),
        (G::Agreement(LowOrderError), "agreement"),
    ];
    for (refusal, word) in words {
        assert_eq!(refusal.rule(), word);
    }
    let Limits { concurrent, overlap } = Limits::default();
    assert_eq!((concurrent, overlap), (16, Span::seconds(2)));
}

/// The header of an epoch is the same for everybody, and of each epoch another.
#[test]
fn a_challenge_names_the_key_and_belongs_to_its_epoch() {
    let town = Town::new(31);
    let pinned = &town.service.pinned;
    let header = |epoch| TokenChallenge::new(pinned, Epoch(epoch), "issuer.example", "a.example");
    let key = token_key(pinned);
    assert_eq!(key.len(), 128, "three elements of 32 bytes in base64");
    assert!(header(1).header().ends_with(&format!(", token-key=\"{key}\"")));
    assert_eq!(header(1), header(1));
    assert_ne!(header(1).to_bytes(), header(2).to_bytes());
}
