//! Sealing secrets for a party, and locking them at rest.

use alpheus_crypto::seal::{SealedSecret, SealingKey, SealingPublic, UnsealError, seal};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::vault::{Hardness, UnlockError, VaultKey};
use chacha20::ChaCha12Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use data_encoding::BASE64;

fn rng() -> ChaCha12Rng {
    ChaCha12Rng::from_seed([3; 32])
}

#[test]
fn a_sealed_secret_opens_only_for_its_recipient_and_use() {
    let (ours, theirs) = (
        SealingKey::from_seed(&Secret::from_bytes([1; 32])),
        SealingKey::from_seed(&Secret::from_bytes([2; 32])),
    );
    let secret = Secret::from_bytes([7; 32]);
    let sealed = seal(&ours.public(), "use", &[b"stream"], &secret, &mut rng()).unwrap();
    assert_eq!(ours.open("use", &[b"stream"], &sealed).unwrap().expose(), secret.expose());
    let fails =
        |opened: Result<Secret<32>, UnsealError>| assert_eq!(opened.err(), Some(UnsealError));
    fails(theirs.open("use", &[b"stream"], &sealed));
    fails(ours.open("other use", &[b"stream"], &sealed));
    fails(ours.open("use", &[b"other"], &sealed));
    let bytes = postcard::to_allocvec(&sealed).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        if let Ok(damaged) = postcard::from_bytes(&damaged) {
            fails(ours.open("use", &[b"stream"], &damaged));
        }
    }
}

#[test]
fn sealing_for_a_key_of_small_order_fails() {
    let secret = Secret::from_bytes([7; 32]);
    assert!(seal(&SealingPublic([0; 32]), "use", &[], &secret, &mut rng()).is_err());
}

#[test]
fn a_locked_secret_opens_only_under_its_key_and_name() {
    let easy = Hardness { memory: 8, passes: 1 };
    let key = VaultKey::derive(b"a passphrase", &[1; 16], easy).unwrap();
    let locked = key.lock(b"name", b"secret", &mut rng());
    assert_eq!(key.unlock(b"name", &locked).unwrap().as_slice(), b"secret");
    assert_eq!(key.unlock(b"other", &locked).err(), Some(UnlockError));
    for (passphrase, salt) in [(&b"b passphrase"[..], [1; 16]), (b"a passphrase", [2; 16])] {
        let other = VaultKey::derive(passphrase, &salt, easy).unwrap();
        assert_eq!(other.unlock(b"name", &locked).err(), Some(UnlockError));
    }
    for at in 0..locked.len() {
        let mut damaged = locked.clone();
        damaged[at] ^= 0x80;
        assert_eq!(key.unlock(b"name", &damaged).err(), Some(UnlockError));
        assert_eq!(key.unlock(b"name", &locked[..at]).err(), Some(UnlockError));
    }
}

#[test]
fn only_random_bytes_are_not_stretched() {
    let mut random = [0; 32];
    rng().fill_bytes(&mut random);
    let file = BASE64.encode(&random);
    let free = Hardness::of(file.as_bytes());
    assert_eq!(free, Hardness::of(format!("{file}\n").as_bytes()));
    assert_ne!(free, Hardness::default());
    let key = VaultKey::derive(file.as_bytes(), &[1; 16], free).unwrap();
    let locked = key.lock(b"name", b"secret", &mut rng());
    let cases = [(&file[..], [1; 16], true), (&file, [2; 16], false), ("other", [1; 16], false)];
    for (secret, salt, opens) in cases {
        let key = VaultKey::derive(secret.as_bytes(), &salt, free).unwrap();
        assert_eq!(key.unlock(b"name", &locked).is_ok(), opens);
    }
    let text = BASE64.encode(b"a sentence of thirty-two letters");
    let (short, long) = (BASE64.encode(&random[1..]), BASE64.encode(&[&random[..], b"x"].concat()));
    let pattern = BASE64.encode(&[0xf0; 32]);
    for stretched in ["correct horse", &text, &pattern, &short, &long, &file[1..], ""] {
        assert_eq!(Hardness::of(stretched.as_bytes()), Hardness::default(), "{stretched}");
    }
}

#[test]
fn is_good_is_false_exactly_for_keys_that_sealing_refuses() {
    let rng = &mut rng();
    let one = [vec![1], vec![0; 31]].concat();
    let small: [[u8; 32]; 2] = [[0; 32], one.try_into().unwrap()];
    let good = SealingKey::from_seed(&Secret::random(rng)).public();
    for (key, is_good) in
        small.map(|bytes| (SealingPublic(bytes), false)).into_iter().chain([(good, true)])
    {
        let sealed = seal(&key, "alpheus/test/v1", &[], &Secret::from_bytes([1; 32]), rng);
        assert_eq!((key.is_good(), sealed.is_ok()), (is_good, is_good));
    }
}

#[test]
fn a_sealed_secret_is_decoded_from_its_bytes() {
    let key = SealingKey::from_seed(&Secret::from_bytes([1; 32]));
    let secret = Secret::from_bytes([7; 32]);
    let sealed = seal(&key.public(), "use", &[], &secret, &mut rng()).unwrap();
    let bytes = sealed.to_bytes();
    assert_eq!((bytes.len(), SealedSecret::from_bytes(&bytes)), (sealed.length(), Some(sealed)));
    assert_eq!(SealedSecret::from_bytes(&bytes[..47]), None);
    let dummy = SealedSecret::dummy(80);
    assert_eq!(dummy.to_bytes(), [0; 80]);
    assert_eq!(key.open::<32>("use", &[], &dummy).err(), Some(UnsealError));
}
