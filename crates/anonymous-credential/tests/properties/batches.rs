//! Batches of messages: every one gets its own verdict.

use crate::support::{Ledger, NOTHING, Service, at};
use crate::town::rng;
use alpheus_anonymous_credential::error::{Malformed, Refused};
use alpheus_anonymous_credential::holder::{Outgoing, Which};
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp};
use alpheus_anonymous_credential::sessions::{Due, LookUp, Unspent};
use alpheus_anonymous_credential::verifier::verify_re_ups;
use alpheus_crypto::sigma::MalformedProof;

const COUNT: u32 = 256;

/// So many logins, and a re-up of each, on a service that has seen neither.
fn crowd() -> (Service, Vec<Outgoing>, Vec<Outgoing>) {
    let rng = &mut rng(50);
    let mut service = Service::new(Limit::ONE, rng).unwrap();
    let compared = service.pinned.compare(&service.pinned.fingerprint()).unwrap();
    let (mut logins, mut re_ups) = (Vec::new(), Vec::new());
    for account in 0..COUNT {
        let store = &mut Ledger::new();
        let mut holder = service.register(&account.to_be_bytes(), store, rng).unwrap();
        let login = holder.log_in(at(1), Which::Running, &compared, &NOTHING, rng).unwrap();
        logins.push(login.commit(store).unwrap());
        re_ups.push(holder.re_up(at(13), rng).unwrap().commit(store).unwrap());
    }
    (service, logins, re_ups)
}

fn unspent(service: &Service, sent: &[Outgoing]) -> Vec<Unspent> {
    let look_up = |sent: &Outgoing| {
        let login = Login::from_bytes(&sent.bytes, service.pinned.limit).unwrap();
        match service.shard.look_up(at(1), login).unwrap() {
            LookUp::Unspent(unspent) => unspent,
            LookUp::Same(_) => panic!("nothing was spent"),
        }
    };
    sent.iter().map(look_up).collect()
}

/// Adds ±1 to the last response, a scalar in little-endian bytes.
fn shift(sent: &mut Outgoing, up: bool) {
    let from = sent.bytes.len() - 32;
    for byte in &mut sent.bytes[from..] {
        let (shifted, carry) = if up { byte.overflowing_add(1) } else { byte.overflowing_sub(1) };
        *byte = shifted;
        if !carry {
            return;
        }
    }
}

fn refused<T>(verdicts: &[Result<T, Refused>]) -> Vec<(usize, Refused)> {
    let errors = verdicts.iter().enumerate();
    errors.filter_map(|(at, verdict)| verdict.as_ref().err().map(|e| (at, *e))).collect()
}

#[test]
fn culprits_among_256_are_found_and_nobody_else() {
    let (mut service, mut logins, mut re_ups) = crowd();
    let verify = |service: &Service, sent: &[Outgoing]| {
        refused(&service.verifier.verify(unspent(service, sent)))
    };
    assert_eq!(verify(&service, &logins), []);
    let honest = logins.clone();
    shift(&mut logins[100], true);
    assert_eq!(verify(&service, &logins), [(100, Refused::Proof)]);
    // Two that cancel in a sum without weights.
    shift(&mut logins[200], false);
    assert_eq!(verify(&service, &logins), [(100, Refused::Proof), (200, Refused::Proof)]);
    // One that is not even a proof.
    logins[3].bytes.pop();
    let length = Refused::Malformed(Malformed::Proof(MalformedProof::Length));
    let expected = [(3, length), (100, Refused::Proof), (200, Refused::Proof)];
    assert_eq!(verify(&service, &logins), expected);

    for login in &honest {
        service.log_in(at(1), login).unwrap();
    }
    let verify = |service: &Service, sent: &[Outgoing]| {
        let due = |sent: &Outgoing| match service
            .shard
            .due(at(13), ReUp::from_bytes(&sent.bytes).unwrap())
            .unwrap()
        {
            Due::Due(due) => due,
            Due::Moved(_) => panic!("nothing moved"),
        };
        refused(&verify_re_ups(&service.pinned, sent.iter().map(due).collect()))
    };
    assert_eq!(verify(&service, &re_ups), []);
    shift(&mut re_ups[0], true);
    shift(&mut re_ups[255], false);
    assert_eq!(verify(&service, &re_ups), [(0, Refused::Proof), (255, Refused::Proof)]);
    service.re_up(at(13), &re_ups[1]).unwrap();
}
