//! What controllers write of the keys that receipts rest on: nothing (`docs/protocol.md`, *Keys of a generation*).

use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::mask::generation::pair_key;
use alpheus_encrypted_stream::mask::{PairKeys, Storage};
use alpheus_encrypted_stream::messages::{
    Closing, MaskKey, Membership, ServiceMessage, WindowOutcome,
};
use alpheus_encrypted_stream::receipt::Receipt;

use super::{gather, long, receipt, whole};
use crate::protocol::evil::Evil;
use crate::protocol::world::{Memory, after, stream_id};

/// Secrets by name.
type NamedSecrets = Vec<(&'static str, Vec<u8>)>;

/// The members' public keys for pads in a receipt.
fn public(receipt: &Receipt) -> Vec<AgreementPublic> {
    let membership: Membership = receipt.membership.dangerous_unverified().unwrap();
    let key = |signed: &Signed<MaskKey>| signed.dangerous_unverified().unwrap().key;
    membership.mask_keys.iter().map(key).collect()
}

/// All that a controller's first generation comes from and has for the plan, derived as the protocol note says.
fn secrets(evil: &Evil, receipt: &Receipt, position: u32) -> NamedSecrets {
    let (seed, plan) = (evil.world.seats[position as usize].0, evil.world.id());
    let life = |label: &str| derive::<32>(&[seed; 32], label, &[]);
    let start = [seed ^ 0x55; 32];
    let source = derive::<32>(&start, labels::GENERATION_NEXT, &[]);
    let own = derive::<32>(&start, labels::GENERATION, &[]);
    let with = |label: &str| [life(label).expose().as_slice(), own.expose()].concat();
    let agreement = derive::<32>(own.expose(), labels::GENERATION_AGREEMENT, &[&plan.0]);
    let (self_mask, noise) = (with(labels::IDENTITY_OWN), with(labels::IDENTITY_NOISE));
    let self_mask = derive::<16>(&self_mask, labels::MASK_OWN_OF_GENERATION, &[&plan.0]);
    let noise = derive::<32>(&noise, labels::NOISE_OF_GENERATION, &[&plan.0]);
    let mut all = vec![
        ("s_0", start.to_vec()),
        ("s_1", source.expose().to_vec()),
        ("x_0", own.expose().to_vec()),
        ("the seed of e_p", agreement.expose().to_vec()),
        ("k_p", self_mask.expose().to_vec()),
        ("the secret of the noise", noise.expose().to_vec()),
    ];
    let (agreement, theirs) = (AgreementKey::from_seed(&agreement), public(receipt));
    assert_eq!(
        agreement.public(),
        theirs[position as usize],
        "these are not the controller's keys"
    );
    let pairs = AgreementKey::from_seed(&life(labels::IDENTITY_AGREEMENT));
    let roster = evil.world.announced.agreement();
    let pairs = PairKeys::agree(&pairs, roster, position, Storage::Compact).unwrap();
    let renewed = pairs.renewed(|other, life| {
        let agreed = agreement.agree(&theirs[other as usize]).map_err(drop)?;
        let key: Secret<16> = pair_key(life, &agreed);
        all.push(("what e_p and another's agree on", agreed.expose().to_vec()));
        all.push(("k_pq", key.expose().to_vec()));
        Ok::<_, ()>(key)
    });
    assert!(renewed.unwrap().is_some());
    all
}

fn has(store: &Memory, bytes: &[u8]) -> bool {
    let in_one = |own: &[u8]| own.windows(bytes.len()).any(|part| part == bytes);
    store.map.iter().any(|(key, value)| in_one(key) || in_one(value))
}

/// A disk keeps what was overwritten, and so do its backups. So nothing of it is written at any time: not with a
/// token or an opening, nor when a window is closed, a stream is erased or a host starts again.
#[test]
fn no_key_of_a_generation_is_ever_written() {
    let mut evil = long(3, 2, 1);
    let (draft, _) = gather(&mut evil, |_, streams| streams);
    let kept = receipt(&mut evil, &draft, &[0, 1, 2]);
    let all: NamedSecrets = (0..3).flat_map(|position| secrets(&evil, &kept, position)).collect();
    let looks = |evil: &Evil, when: &str| {
        for (name, secret) in &all {
            assert!(!has(&evil.store, secret), "{name} is in the store {when}");
        }
    };
    looks(&evil, "after the opening");
    let (plan, window) = (evil.world.id(), whole());
    let closing = Closing { plan, window, outcome: WindowOutcome::Opened { population: 6 } };
    let closing = ServiceMessage::Closing(Signed::new(&closing, &evil.world.service));
    (0..3).for_each(|position| drop(evil.say(position, after(9), &closing)));
    looks(&evil, "once the window is closed");
    // The search finds what is there.
    assert!(has(&evil.store, kept.shares[1].token.digest().as_bytes()));
    let (step, _) = evil.controllers[1].erase(&stream_id(2), after(9)).unwrap();
    step.commit(&mut evil.store).unwrap();
    looks(&evil, "after an erasure");
    evil.start_again(after(9));
    looks(&evil, "after a restart");
}
