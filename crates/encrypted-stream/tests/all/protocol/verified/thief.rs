//! Somebody who kept a receipt, and later steals keys. Nothing prevents this yet: *Keys of an epoch* in
//! `docs/next.md`. Once keys are wiped, the first test must fail, and be turned round.

use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::mask::{Masker, OwnKey, PairKeys, Round, Storage};
use alpheus_encrypted_stream::messages::{Membership, Token};
use alpheus_encrypted_stream::receipt::Receipt;
use alpheus_policy::ids::PlanId;

use super::{gather, long, receipt, truth, whole};
use crate::protocol::evil::Evil;

/// What the thief computes of a member with the seed of its keys: its owners' window sum.
fn opened(evil: &Evil, receipt: &Receipt, p: u32, stolen: u8) -> Option<Vec<u64>> {
    let seed = Secret::from_bytes([stolen; 32]);
    let part = |label| derive::<32>(seed.expose(), label, &[]);
    let roster = evil.world.announced.agreement();
    let key = AgreementKey::from_seed(&part(labels::IDENTITY_AGREEMENT));
    let pairs = PairKeys::agree(&key, roster, p, Storage::Compact).ok()?;
    let plan: PlanId = evil.world.id();
    let own = OwnKey::new(&part(labels::IDENTITY_OWN), &plan);
    let mut masker = Masker::new(evil.world.announced.plan(), pairs, own).ok()?;
    let membership: Membership = receipt.membership.dangerous_unverified()?;
    let round = Round {
        window: whole(),
        members: &membership.members,
        membership: receipt.membership.digest(),
        pickers: &[],
    };
    let token: Token = receipt.shares[p as usize].token.dangerous_unverified()?;
    let masks = masker.token(&round, vec![0; token.words.len()]).ok()?;
    Some(token.words.iter().zip(masks).map(|(word, mask)| word.wrapping_sub(mask)).collect())
}

/// The weakness that SECURITY.md states, so that nobody believes it is gone before it is.
#[test]
fn a_key_that_is_stolen_later_opens_a_receipt() {
    let mut evil = long(3, 2, 1);
    let (draft, _) = gather(&mut evil, |_, streams| streams);
    let kept = receipt(&mut evil, &draft, &[0, 1, 2]);
    let stolen = evil.world.seats[1].0;
    assert_eq!(opened(&evil, &kept, 1, stolen).unwrap(), truth(&evil, &[2, 3]));
    // Another member's keys do not open it.
    assert_eq!(opened(&evil, &kept, 1, evil.world.seats[2].0), None);
}
