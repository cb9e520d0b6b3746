//! In a batch of messages each gets its own verdict.

use crate::properties::town::rng;
use crate::support::{Ledger, NOTHING, Service, at};
use alpheus_anonymous_credential::error::{MessageError, VerifierError};
use alpheus_anonymous_credential::holder::{OutboundMessage, Timing};
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, ReUp};
use alpheus_anonymous_credential::sessions::{LoginLookUp, ReUpLookUp, UnspentLogin};
use alpheus_anonymous_credential::verifier::verify_re_ups;
use alpheus_crypto::sigma::ProofFormatError;

const COUNT: u32 = 256;

/// Logins, and a re-up of each, on a service that has seen neither.
fn crowd() -> (Service, Vec<OutboundMessage>, Vec<OutboundMessage>) {
    let rng = &mut rng(50);
    let mut service = Service::new(Limit::ONE, rng).unwrap();
    let compared = service.pinned.compare(&service.pinned.fingerprint()).unwrap();
    let (mut logins, mut re_ups) = (Vec::new(), Vec::new());
    for account in 0..COUNT {
        let store = &mut Ledger::new();
        let mut holder = service.register(&account.to_be_bytes(), store, rng).unwrap();
        let login = holder.log_in(Timing::Running, &compared, &NOTHING, at(1), rng).unwrap();
        logins.push(login.commit(store).unwrap());
        re_ups.push(holder.re_up(at(13), rng).unwrap().commit(store).unwrap());
    }
    (service, logins, re_ups)
}

fn unspent(service: &Service, sent: &[OutboundMessage]) -> Vec<UnspentLogin> {
    let look_up = |sent: &OutboundMessage| {
        let login = Login::from_bytes(&sent.bytes, service.pinned.limit).unwrap();
        match service.shard.look_up(login, at(1)).unwrap() {
            LoginLookUp::Unspent(unspent) => unspent,
            LoginLookUp::Same(_) => panic!("nothing was spent"),
        }
    };
    sent.iter().map(look_up).collect()
}

/// Adds ±1 to the last response, a little-endian scalar.
fn shift(sent: &mut OutboundMessage, up: bool) {
    let from = sent.bytes.len() - 32;
    for byte in &mut sent.bytes[from..] {
        let (shifted, carry) = if up { byte.overflowing_add(1) } else { byte.overflowing_sub(1) };
        *byte = shifted;
        if !carry {
            return;
        }
    }
}

fn refused<T>(verdicts: &[Result<T, VerifierError>]) -> Vec<(usize, VerifierError)> {
    let errors = verdicts.iter().enumerate();
    errors.filter_map(|(at, verdict)| verdict.as_ref().err().map(|e| (at, *e))).collect()
}

#[test]
fn in_a_batch_of_256_exactly_the_invalid_messages_are_rejected() {
    let (mut service, mut logins, mut re_ups) = crowd();
    let verify = |service: &Service, sent: &[OutboundMessage]| {
        refused(&service.verifier.verify(unspent(service, sent)))
    };
    assert_eq!(verify(&service, &logins), []);
    let honest = logins.clone();
    shift(&mut logins[100], true);
    assert_eq!(verify(&service, &logins), [(100, VerifierError::Proof)]);
    // These two would cancel in a sum without weights.
    shift(&mut logins[200], false);
    assert_eq!(
        verify(&service, &logins),
        [(100, VerifierError::Proof), (200, VerifierError::Proof)]
    );
    // This one does not even decode to a proof.
    logins[3].bytes.pop();
    let length = VerifierError::Malformed(MessageError::Proof(ProofFormatError::Length));
    let expected = [(3, length), (100, VerifierError::Proof), (200, VerifierError::Proof)];
    assert_eq!(verify(&service, &logins), expected);

    for login in &honest {
        service.log_in(login, at(1)).unwrap();
    }
    let verify = |service: &Service, sent: &[OutboundMessage]| {
        let due = |sent: &OutboundMessage| match service
            .shard
            .look_up_re_up(ReUp::from_bytes(&sent.bytes).unwrap(), at(13))
            .unwrap()
        {
            ReUpLookUp::Due(due) => due,
            ReUpLookUp::Moved(_) => panic!("nothing moved"),
        };
        refused(&verify_re_ups(&service.pinned, sent.iter().map(due).collect()))
    };
    assert_eq!(verify(&service, &re_ups), []);
    shift(&mut re_ups[0], true);
    shift(&mut re_ups[255], false);
    assert_eq!(verify(&service, &re_ups), [(0, VerifierError::Proof), (255, VerifierError::Proof)]);
    service.re_up(&re_ups[1], at(13)).unwrap();
}
