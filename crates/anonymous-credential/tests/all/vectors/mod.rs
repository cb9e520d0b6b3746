//! Known answers made by an independent script, and bad messages with the expected errors:
//! `vectors/anonymous-credential`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

mod joint;
mod json;
mod refutations;

use alpheus_anonymous_credential::configuration::{Configuration, PinnedConfiguration};
use alpheus_anonymous_credential::error::{HolderError, IssuerError, VerifierError};
use alpheus_anonymous_credential::holder::{Holder, OutboundMessage, PendingRequest, Timing};
use alpheus_anonymous_credential::issuer::{Applicant, Issuer};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::messages::{Login, ReUp, Request, Response};
use alpheus_anonymous_credential::schedule::{Epoch, Period, Schedule};
use alpheus_anonymous_credential::sessions::{Acknowledgement, LoginLookUp, ReUpLookUp, Shard};
use alpheus_anonymous_credential::verifier::{Verifier, verify_re_ups};
use alpheus_crypto::group::{Element, PublicScalar};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_test_support::vectors::ScriptedRng;
use alpheus_time::{Span, Timestamp};
use json::{array, bad, bytes, cases, from_hex, number, small, text};
use serde_json::Value;
use std::collections::BTreeMap;

type Ledger = BTreeMap<Vec<u8>, Vec<u8>>;

fn scripted<T>(case: &Value, field: &str, run: impl FnOnce(&mut ScriptedRng) -> T) -> T {
    let mut rng = ScriptedRng(bytes(case, field));
    let done = run(&mut rng);
    assert!(rng.0.is_empty(), "all of `{field}` is used");
    done
}

fn issuer_key(case: &Value) -> IssuerKey {
    IssuerKey::from_bytes(&Secret::from_bytes(array(&case["configuration"], "issuer"))).unwrap()
}

fn pinned(case: &Value) -> PinnedConfiguration {
    let c = &case["configuration"];
    let s: Vec<u64> = serde_json::from_value(c["schedule"].clone()).unwrap();
    let configuration = Configuration {
        deployment: array(c, "deployment"),
        kind: small(c, "kind"),
        tier: small(c, "tier"),
        limit: small(c, "limit").try_into().unwrap(),
        incarnation: number(c, "incarnation"),
        schedule: Schedule {
            start: Timestamp(s[0]),
            epoch: Span(s[1]),
            pre_login: Span(s[2]),
            border_pre_login: Span(s[3]),
            epochs_per_period: s[4],
            ahead: s[5],
        },
        issuer: *issuer_key(case).public(),
    };
    let operator = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
    let signed = Signed::new(&configuration, &operator);
    let pinned = PinnedConfiguration::open(&signed, &operator.verifying_key()).unwrap();
    assert_eq!(pinned.fingerprint().as_bytes(), &array(c, "fingerprint"));
    pinned
}

/// The middle of an epoch.
fn during(pinned: &PinnedConfiguration, epoch: u64) -> Timestamp {
    Timestamp(pinned.schedule.starts(Epoch(epoch)).0 + pinned.schedule.epoch.0 / 2)
}

fn requesting(case: &Value) -> (PendingRequest, Timestamp) {
    let pinned = pinned(case);
    let now = during(&pinned, pinned.schedule.first_epoch(Period(number(case, "period"))).0);
    let account = bytes(case, "account");
    let step = scripted(case, "request_randomness", |rng| {
        PendingRequest::begin(pinned, &account, Timing::Running, now, rng)
    });
    (step.unwrap().commit(&mut Ledger::new()).unwrap(), now)
}

fn issuer(case: &Value, now: Timestamp) -> Issuer {
    let step = Issuer::restore(issuer_key(case), pinned(case), [], StateOrigin::New, now);
    step.unwrap().commit(&mut Ledger::new()).unwrap()
}

#[test]
fn hashed_elements_scalars_and_bases_match() {
    for case in cases("hashed") {
        let parts: Vec<Vec<u8>> = case["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| from_hex(p.as_str().unwrap()))
            .collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let element = Element::from_hash(text(&case, "label"), &parts);
        assert_eq!(element.as_bytes(), &array(&case, "element"));
        let scalar = PublicScalar::from_hash(text(&case, "label"), &parts);
        assert_eq!(scalar.to_bytes(), array(&case, "scalar"));
    }
    for case in cases("bases") {
        assert_eq!(Element::base().as_bytes(), &array(&case, "base"));
        assert_eq!(Element::second_base().as_bytes(), &array(&case, "second_base"));
    }
    for (name, case) in bad("element", "identity encoding") {
        let refusal = Element::from_bytes(&array(&case, "element")).unwrap_err();
        assert_eq!(format!("{refusal:?}"), text(&case, "error"), "{name}");
    }
    for (name, case) in bad("scalar", "encoding") {
        let refusal = PublicScalar::from_bytes(&array(&case, "scalar")).unwrap_err();
        assert_eq!(format!("{refusal:?}"), text(&case, "error"), "{name}");
    }
}

#[test]
fn issuance_matches_byte_for_byte() {
    for case in cases("issue") {
        let (pending, now) = requesting(&case);
        assert_eq!(pending.bytes(), bytes(&case, "request"));
        let mut issuer = issuer(&case, now);
        let answer = scripted(&case, "response_randomness", |rng| {
            issuer.issue(Applicant::named(&bytes(&case, "account")), &pending.bytes(), now, rng)
        });
        let answer = answer.unwrap().commit(&mut Ledger::new()).unwrap();
        assert_eq!(answer, bytes(&case, "response"));
        let mut ledger = Ledger::new();
        pending.finish(&answer).unwrap().commit(&mut ledger).unwrap();
        let stored: Vec<&[u8]> = ledger.values().map(Vec::as_slice).collect();
        assert_eq!(stored, [credential(&case).as_slice()]);
        let request = Request::from_bytes(&pending.bytes()).unwrap();
        assert_eq!(request.to_bytes(), pending.bytes());
        assert_eq!(Response::from_bytes(&answer).unwrap().to_bytes(), answer);
    }
}

#[test]
fn bad_requests_are_rejected_with_the_expected_error() {
    for (name, case) in bad("request", "identity encoding length period proof") {
        let pinned = pinned(&case);
        let now = during(&pinned, pinned.schedule.first_epoch(Period(7)).0);
        let mut issuer = issuer(&case, now);
        let request = bytes(&case, "request");
        let refusal: Option<IssuerError> = issuer
            .issue(
                Applicant::named(&bytes(&case, "account")),
                &request,
                now,
                &mut ScriptedRng(Vec::new()),
            )
            .err();
        assert_eq!(format!("{:?}", refusal.unwrap()), text(&case, "error"), "{name}");
    }
}

#[test]
fn bad_responses_are_rejected_with_the_expected_error() {
    for (name, case) in bad("response", "identity encoding length proof") {
        let (pending, _) = requesting(&case);
        let refusal: Option<HolderError> = pending.finish(&bytes(&case, "response")).err();
        assert_eq!(format!("{:?}", refusal.unwrap()), text(&case, "error"), "{name}");
    }
}

/// A credential as a holder stores it.
fn credential(case: &Value) -> Vec<u8> {
    [bytes(case, "m1"), bytes(case, "u"), bytes(case, "mac")].concat()
}

/// A holder that has burnt the indices below the case's.
fn holder(case: &Value, index: u32) -> Holder {
    let period = Period(number(case, "period"));
    let mut records = Ledger::new();
    records.insert([b"credential", period.0.to_be_bytes().as_slice()].concat(), credential(case));
    if let Some(before) = index.checked_sub(1) {
        let epoch = number(case, "epoch").to_be_bytes();
        let key = [b"shown", &period.0.to_be_bytes()[..], &epoch, &before.to_be_bytes()].concat();
        records.insert(key, vec![0; 64]);
    }
    Holder::restore(pinned(case), period, &records).unwrap().unwrap()
}

fn log_in(case: &Value, holder: &mut Holder, epoch: u64, randomness: &str) -> OutboundMessage {
    let pinned = pinned(case);
    let (now, message) = (during(&pinned, epoch), Digest(array(case, "message")));
    let compared = pinned.compare(&pinned.fingerprint()).unwrap();
    let step = scripted(case, randomness, |rng| {
        holder.log_in(Timing::Running, &compared, &message, now, rng)
    });
    step.unwrap().commit(&mut Ledger::new()).unwrap()
}

struct Service {
    pinned: PinnedConfiguration,
    verifier: Verifier,
    shard: Shard,
}

impl Service {
    fn new(case: &Value) -> Self {
        let pinned = pinned(case);
        let verifier = Verifier::new(issuer_key(case), pinned.clone()).unwrap();
        let shard = Shard::restore(pinned.clone(), [], StateOrigin::New, Timestamp(0)).unwrap();
        Self { pinned, verifier, shard: shard.commit(&mut Ledger::new()).unwrap() }
    }

    fn log_in(&mut self, bytes: &[u8]) -> Result<Acknowledgement, VerifierError> {
        let login = Login::from_bytes(bytes, self.pinned.limit)?;
        assert_eq!(login.to_bytes(), bytes);
        let now = during(&self.pinned, login.epoch.0);
        let LoginLookUp::Unspent(unspent) = self.shard.look_up(login, now)? else {
            panic!("spent")
        };
        let proven = self.verifier.verify(vec![unspent]).pop().unwrap()?;
        Ok(self.shard.log_in(proven, now)?.commit(&mut Ledger::new()).unwrap())
    }

    fn re_up(&mut self, bytes: &[u8], now: Timestamp) -> Result<Acknowledgement, VerifierError> {
        let re_up = ReUp::from_bytes(bytes)?;
        assert_eq!(re_up.to_bytes(), bytes);
        let ReUpLookUp::Due(due) = self.shard.look_up_re_up(re_up, now)? else { panic!("moved") };
        let proven = verify_re_ups(&self.pinned, vec![due]).pop().unwrap()?;
        let reserved = self.shard.reserve(proven, now)?.commit(&mut Ledger::new()).unwrap();
        let moved = self.shard.advance(reserved, now)?.commit(&mut Ledger::new()).unwrap();
        Ok(self.shard.activate(moved)?.commit(&mut Ledger::new()).unwrap())
    }
}

#[test]
fn logins_match_byte_for_byte() {
    for case in cases("login") {
        let mut holder = holder(&case, small(&case, "index"));
        let sent = log_in(&case, &mut holder, number(&case, "epoch"), "randomness");
        assert_eq!(sent.bytes, bytes(&case, "login"));
        assert_eq!(sent.session.0.0, Digest(array(&case, "tag")));
        let acknowledged = Service::new(&case).log_in(&sent.bytes).unwrap();
        assert_eq!(acknowledged.session, sent.session);
    }
}

#[test]
fn bad_logins_are_rejected_with_the_expected_error() {
    let names = "identity encoding key length bit_identity equation forged_with_identity swapped \
                 limit m2 issuer";
    for (name, case) in bad("login", names) {
        let refusal = Service::new(&case).log_in(&bytes(&case, "login")).unwrap_err();
        assert_eq!(format!("{refusal:?}"), text(&case, "error"), "{name}");
    }
}

#[test]
fn re_ups_match_byte_for_byte() {
    for case in cases("re_up") {
        let (mut holder, mut service) = (holder(&case, 0), Service::new(&case));
        let epoch = Login::from_bytes(&bytes(&case, "login"), service.pinned.limit).unwrap().epoch;
        let login = log_in(&case, &mut holder, epoch.0, "login_randomness");
        assert_eq!(login.bytes, bytes(&case, "login"));
        service.log_in(&login.bytes).unwrap();
        let now = service.pinned.schedule.opens(epoch.next());
        let step = scripted(&case, "randomness", |rng| holder.re_up(now, rng)).unwrap();
        let sent = step.commit(&mut Ledger::new()).unwrap();
        assert_eq!(sent.bytes, bytes(&case, "re_up"));
        assert_eq!(service.re_up(&sent.bytes, now).unwrap().epoch, epoch.next());
    }
}

#[test]
fn bad_re_ups_are_rejected_with_the_expected_error() {
    for (name, case) in bad("re_up", "identity encoding length proof session") {
        let mut service = Service::new(&case);
        let login = bytes(&case, "login");
        let epoch = Login::from_bytes(&login, service.pinned.limit).unwrap().epoch;
        service.log_in(&login).unwrap();
        let now = service.pinned.schedule.opens(epoch.next());
        let refusal = service.re_up(&bytes(&case, "re_up"), now).unwrap_err();
        assert_eq!(format!("{refusal:?}"), text(&case, "error"), "{name}");
    }
}
