//! The same three numbers of one owner in Prio3SumVec, with two aggregators of which one must be honest.

use crate::{BITS, time};
use prio::codec::Encode;
use prio::vdaf::prio3::{Prio3SumVec, optimal_chunk_length};
use prio::vdaf::{Aggregator, Client};
use serde_json::{Value, json};

const CONTEXT: &[u8] = b"alpheus bench";
const NONCE: [u8; 16] = [3; 16];
const KEY: [u8; 32] = [9; 32];

/// What a report costs its client, both verifiers together, and in bytes.
pub(crate) fn figures(runs: usize) -> Value {
    let most = (1_u128 << BITS) - 1;
    let prio = Prio3SumVec::new_sum_vec(2, most, 3, optimal_chunk_length(3 * BITS));
    let prio = prio.expect("a vector of three numbers");
    let numbers = vec![10, 500, 30_000];
    let made = time(runs, || drop(prio.shard(CONTEXT, &numbers, &NONCE)));
    let (public, shares) = prio.shard(CONTEXT, &numbers, &NONCE).expect("shares");
    let length = |encoded: Result<Vec<u8>, _>| encoded.map_or(0, |bytes: Vec<u8>| bytes.len());
    let upload: usize = shares.iter().map(|share| length(share.get_encoded())).sum();
    let upload = upload + length(public.get_encoded());
    let mut exchanged = 0;
    let checked = time(runs, || {
        let mut said = Vec::new();
        let mut states = Vec::new();
        for (at, share) in shares.iter().enumerate() {
            let begun = prio.verify_init(&KEY, CONTEXT, at, &(), &NONCE, &public, share);
            let (state, verifier) = begun.expect("a share that is whole");
            states.push(state);
            said.push(verifier);
        }
        exchanged = said.iter().map(|one| length(one.get_encoded())).sum();
        let message = prio.verifier_shares_to_message(CONTEXT, &(), said).expect("a valid report");
        for state in states {
            assert!(prio.verify_next(CONTEXT, state, message.clone()).is_ok());
        }
    });
    json!({
        "make_ms": made,
        "check_ms_both": checked,
        "upload_bytes": upload,
        "verifiers_exchange_bytes": exchanged,
    })
}
