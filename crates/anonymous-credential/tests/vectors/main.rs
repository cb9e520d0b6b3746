//! Known answers made by an independent script, and everything that must be
//! refused, with the name of its refusal: `vectors/anonymous-credential`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

mod json;
mod together;

use alpheus_anonymous_credential::configuration::{Configuration, Pinned};
use alpheus_anonymous_credential::error::{HolderRefused, IssueRefused, Refused};
use alpheus_anonymous_credential::holder::{Holder, Outgoing, Requesting, Which};
use alpheus_anonymous_credential::issuer::Issuer;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::Log;
use alpheus_anonymous_credential::messages::{Login, ReUp, Request, Response};
use alpheus_anonymous_credential::schedule::{Epoch, Period, Schedule, Time};
use alpheus_anonymous_credential::sessions::{Acknowledged, Due, LookUp, Shard};
use alpheus_anonymous_credential::verifier::{Verifier, verify_re_ups};
use alpheus_crypto::group::{Element, PublicScalar};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use json::{array, bad, bytes, cases, from_hex, number, small, text};
use rand_core::{TryCryptoRng, TryRng};
use serde_json::Value;
use std::collections::BTreeMap;
use std::convert::Infallible;

type Ledger = BTreeMap<Vec<u8>, Vec<u8>>;

/// The randomness that the script used, to be used up exactly.
struct Told(Vec<u8>);

impl TryRng for Told {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        panic!("randomness is drawn as bytes")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        panic!("randomness is drawn as bytes")
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        out.copy_from_slice(&self.0.drain(..out.len()).collect::<Vec<u8>>());
        Ok(())
    }
}

impl TryCryptoRng for Told {}

fn told<T>(case: &Value, field: &str, run: impl FnOnce(&mut Told) -> T) -> T {
    let mut rng = Told(bytes(case, field));
    let done = run(&mut rng);
    assert!(rng.0.is_empty(), "all of `{field}` is used");
    done
}

fn issuer_key(case: &Value) -> IssuerKey {
    IssuerKey::from_bytes(&Secret::from_bytes(array(&case["configuration"], "issuer"))).unwrap()
}

fn pinned(case: &Value) -> Pinned {
    let c = &case["configuration"];
    let s: Vec<u64> = serde_json::from_value(c["schedule"].clone()).unwrap();
    let configuration = Configuration {
        deployment: array(c, "deployment"),
        kind: small(c, "kind"),
        tier: small(c, "tier"),
        limit: small(c, "limit").try_into().unwrap(),
        incarnation: number(c, "incarnation"),
        schedule: Schedule {
            start: Time(s[0]),
            epoch: s[1],
            pre_login: s[2],
            border_pre_login: s[3],
            epochs_per_period: s[4],
            ahead: s[5],
        },
        issuer: *issuer_key(case).public(),
    };
    let operator = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
    let signed = Signed::new(&configuration, &operator);
    let pinned = Pinned::open(&signed, &operator.verifying_key()).unwrap();
    assert_eq!(pinned.fingerprint().as_bytes(), &array(c, "fingerprint"));
    pinned
}

/// The middle of an epoch.
fn during(pinned: &Pinned, epoch: u64) -> Time {
    Time(pinned.schedule.starts(Epoch(epoch)).0 + pinned.schedule.epoch / 2)
}

fn requesting(case: &Value) -> (Requesting, Time) {
    let pinned = pinned(case);
    let now = during(&pinned, pinned.schedule.first_epoch(Period(number(case, "period"))).0);
    let account = bytes(case, "account");
    let step = told(case, "request_randomness", |rng| {
        Requesting::begin(pinned, &account, now, Which::Running, rng)
    });
    (step.unwrap().commit(&mut Ledger::new()).unwrap(), now)
}

fn issuer(case: &Value, now: Time) -> Issuer {
    let step = Issuer::restore(issuer_key(case), pinned(case), [], Log::New, now);
    step.unwrap().commit(&mut Ledger::new()).unwrap()
}

#[test]
fn hashed_elements_scalars_and_bases() {
    for case in cases("hashed") {
        let parts: Vec<Vec<u8>> = case["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| from_hex(p.as_str().unwrap()))
            .collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let element = Element::hashed(text(&case, "label"), &parts);
        assert_eq!(element.as_bytes(), &array(&case, "element"));
        let scalar = PublicScalar::hashed(text(&case, "label"), &parts);
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
fn issuance_byte_for_byte() {
    for case in cases("issue") {
        let (asking, now) = requesting(&case);
        assert_eq!(asking.bytes(), bytes(&case, "request"));
        let mut issuer = issuer(&case, now);
        let answer = told(&case, "response_randomness", |rng| {
            issuer.issue(now, &bytes(&case, "account"), &asking.bytes(), rng)
        });
        let answer = answer.unwrap().commit(&mut Ledger::new()).unwrap();
        assert_eq!(answer, bytes(&case, "response"));
        let mut ledger = Ledger::new();
        asking.finish(&answer).unwrap().commit(&mut ledger).unwrap();
        let stored: Vec<&[u8]> = ledger.values().map(Vec::as_slice).collect();
        assert_eq!(stored, [credential(&case).as_slice()]);
        let request = Request::from_bytes(&asking.bytes()).unwrap();
        assert_eq!(request.to_bytes(), asking.bytes());
        assert_eq!(Response::from_bytes(&answer).unwrap().to_bytes(), answer);
    }
}

#[test]
fn bad_requests_are_refused_by_name() {
    for (name, case) in bad("request", "identity encoding length period proof") {
        let pinned = pinned(&case);
        let now = during(&pinned, pinned.schedule.first_epoch(Period(7)).0);
        let mut issuer = issuer(&case, now);
        let request = bytes(&case, "request");
        let refusal: Option<IssueRefused> =
            issuer.issue(now, &bytes(&case, "account"), &request, &mut Told(Vec::new())).err();
        assert_eq!(format!("{:?}", refusal.unwrap()), text(&case, "error"), "{name}");
    }
}

#[test]
fn bad_responses_are_refused_by_name() {
    for (name, case) in bad("response", "identity encoding length proof") {
        let (asking, _) = requesting(&case);
        let refusal: Option<HolderRefused> = asking.finish(&bytes(&case, "response")).err();
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

fn log_in(case: &Value, holder: &mut Holder, epoch: u64, randomness: &str) -> Outgoing {
    let pinned = pinned(case);
    let (now, message) = (during(&pinned, epoch), Digest(array(case, "message")));
    let compared = pinned.compare(&pinned.fingerprint()).unwrap();
    let step =
        told(case, randomness, |rng| holder.log_in(now, Which::Running, &compared, &message, rng));
    step.unwrap().commit(&mut Ledger::new()).unwrap()
}

struct Service {
    pinned: Pinned,
    verifier: Verifier,
    shard: Shard,
}

impl Service {
    fn new(case: &Value) -> Self {
        let pinned = pinned(case);
        let verifier = Verifier::new(issuer_key(case), pinned.clone()).unwrap();
        let shard = Shard::restore(pinned.clone(), [], Log::New, Time(0)).unwrap();
        Self { pinned, verifier, shard: shard.commit(&mut Ledger::new()).unwrap() }
    }

    fn log_in(&mut self, bytes: &[u8]) -> Result<Acknowledged, Refused> {
        let login = Login::from_bytes(bytes, self.pinned.limit)?;
        assert_eq!(login.to_bytes(), bytes);
        let now = during(&self.pinned, login.epoch.0);
        let LookUp::Unspent(unspent) = self.shard.look_up(now, login)? else { panic!("spent") };
        let proven = self.verifier.verify(vec![unspent]).pop().unwrap()?;
        Ok(self.shard.log_in(now, proven)?.commit(&mut Ledger::new()).unwrap())
    }

    fn re_up(&mut self, now: Time, bytes: &[u8]) -> Result<Acknowledged, Refused> {
        let re_up = ReUp::from_bytes(bytes)?;
        assert_eq!(re_up.to_bytes(), bytes);
        let Due::Due(due) = self.shard.due(now, re_up)? else { panic!("moved") };
        let proven = verify_re_ups(&self.pinned, vec![due]).pop().unwrap()?;
        let reserved = self.shard.reserve(now, proven)?.commit(&mut Ledger::new()).unwrap();
        let moved = self.shard.advance(now, reserved)?.commit(&mut Ledger::new()).unwrap();
        Ok(self.shard.activate(moved)?.commit(&mut Ledger::new()).unwrap())
    }
}

#[test]
fn logins_byte_for_byte() {
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
fn bad_logins_are_refused_by_name() {
    let names = "identity encoding key length bit_identity equation forged_with_identity swapped \
                 limit m2 issuer";
    for (name, case) in bad("login", names) {
        let refusal = Service::new(&case).log_in(&bytes(&case, "login")).unwrap_err();
        assert_eq!(format!("{refusal:?}"), text(&case, "error"), "{name}");
    }
}

#[test]
fn re_ups_byte_for_byte() {
    for case in cases("re_up") {
        let (mut holder, mut service) = (holder(&case, 0), Service::new(&case));
        let epoch = Login::from_bytes(&bytes(&case, "login"), service.pinned.limit).unwrap().epoch;
        let login = log_in(&case, &mut holder, epoch.0, "login_randomness");
        assert_eq!(login.bytes, bytes(&case, "login"));
        service.log_in(&login.bytes).unwrap();
        let now = service.pinned.schedule.opens(epoch.next());
        let step = told(&case, "randomness", |rng| holder.re_up(now, rng)).unwrap();
        let sent = step.commit(&mut Ledger::new()).unwrap();
        assert_eq!(sent.bytes, bytes(&case, "re_up"));
        assert_eq!(service.re_up(now, &sent.bytes).unwrap().epoch, epoch.next());
    }
}

#[test]
fn bad_re_ups_are_refused_by_name() {
    for (name, case) in bad("re_up", "identity encoding length proof session") {
        let mut service = Service::new(&case);
        let login = bytes(&case, "login");
        let epoch = Login::from_bytes(&login, service.pinned.limit).unwrap().epoch;
        service.log_in(&login).unwrap();
        let now = service.pinned.schedule.opens(epoch.next());
        let refusal = service.re_up(now, &bytes(&case, "re_up")).unwrap_err();
        assert_eq!(format!("{refusal:?}"), text(&case, "error"), "{name}");
    }
}
