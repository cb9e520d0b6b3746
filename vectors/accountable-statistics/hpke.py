"""HPKE (RFC 9180), base mode, one message: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256,
ChaCha20-Poly1305. Written from the RFC."""

import hashlib
import hmac

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

KEM = b"KEM" + (0x20).to_bytes(2, "big")
SUITE = b"HPKE" + b"".join(n.to_bytes(2, "big") for n in (0x20, 1, 3))


def extract(suite, salt, label, ikm):
    return hmac.new(salt or bytes(32), b"HPKE-v1" + suite + label + ikm, hashlib.sha256).digest()


def expand(suite, prk, label, info, length):
    info = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    return hmac.new(prk, info + b"\x01", hashlib.sha256).digest()[:length]


def public(secret):
    return secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def derive_key(ikm):
    prk = extract(KEM, b"", b"dkp_prk", ikm)
    return X25519PrivateKey.from_private_bytes(expand(KEM, prk, b"sk", b"", 32))


def seal(to, info, plaintext, ikm):
    """Encapsulated key, then ciphertext; `ikm` is what the ephemeral key is derived from."""
    ephemeral = derive_key(ikm)
    encapsulated = public(ephemeral)
    dh = ephemeral.exchange(X25519PublicKey.from_public_bytes(to))
    prk = extract(KEM, b"", b"eae_prk", dh)
    shared = expand(KEM, prk, b"shared_secret", encapsulated + to, 32)
    context = b"\x00" + extract(SUITE, b"", b"psk_id_hash", b"") + extract(SUITE, b"", b"info_hash", info)
    secret = extract(SUITE, shared, b"secret", b"")
    key = expand(SUITE, secret, b"key", context, 32)
    nonce = expand(SUITE, secret, b"base_nonce", context, 12)
    return encapsulated + ChaCha20Poly1305(key).encrypt(nonce, plaintext, b"")
