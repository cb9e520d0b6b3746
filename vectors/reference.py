"""The constructions that several protocols' vectors share, implemented independently from
the documents: no line of it comes from the Rust code or runs it."""

import hashlib
import hmac
import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

MASK = (1 << 64) - 1


def delimited(label, parts):
    """Label and parts, each preceded by its length as eight big-endian bytes."""
    out = b""
    for part in [label.encode(), *parts]:
        out += len(part).to_bytes(8, "big") + part
    return out


def labelled_hash(label, parts):
    return hashlib.sha256(delimited(label, parts)).digest()


def derive(secret, label, parts, length):
    """HKDF-SHA256 (RFC 5869) without salt."""
    key = hmac.new(bytes(32), secret, hashlib.sha256).digest()
    out, block, number = b"", b"", 0
    while len(out) < length:
        number += 1
        message = block + delimited(label, parts) + bytes([number])
        block = hmac.new(key, message, hashlib.sha256).digest()
        out += block
    return out[:length]


def tag(key, label, parts):
    """HMAC-SHA256, cut to 16 bytes."""
    return hmac.new(key, delimited(label, parts), hashlib.sha256).digest()[:16]


def _extract(suite, salt, label, secret):
    return hmac.new(salt, b"HPKE-v1" + suite + label + secret, hashlib.sha256).digest()


def _expand(suite, key, label, info, length):
    """One block of HMAC is enough here."""
    message = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    return hmac.new(key, message + b"\1", hashlib.sha256).digest()[:length]


KEM = b"KEM" + b"\x00\x20"
SUITE = b"HPKE" + b"\x00\x20" + b"\x00\x01" + b"\x00\x03"
SUITE_XWING = b"HPKE" + b"\x64\x7a" + b"\x00\x01" + b"\x00\x03"


def hpke_key(seed):
    """RFC 9180, DeriveKeyPair of DHKEM(X25519, HKDF-SHA256)."""
    key = _extract(KEM, b"", b"dkp_prk", seed)
    return X25519PrivateKey.from_private_bytes(_expand(KEM, key, b"sk", b"", 32))


def hpke_seal(public, info, secret, ephemeral_seed, data=b""):
    """RFC 9180, single-shot base mode, ChaCha20-Poly1305: the encapsulated key, then the ciphertext."""
    ephemeral = hpke_key(ephemeral_seed)
    encapsulated = ephemeral.public_key().public_bytes_raw()
    agreed = ephemeral.exchange(X25519PublicKey.from_public_bytes(public))
    key = _extract(KEM, b"", b"eae_prk", agreed)
    shared = _expand(KEM, key, b"shared_secret", encapsulated + public, 32)
    return encapsulated + hpke_encrypt(SUITE, shared, info, secret, data)


def hpke_encrypt(suite, shared, info, secret, data=b""):
    """RFC 9180, KeyScheduleS in base mode, and the first message."""
    context = b"\0" + _extract(suite, b"", b"psk_id_hash", b"") + _extract(suite, b"", b"info_hash", info)
    key = _extract(suite, shared, b"secret", b"")
    nonce = _expand(suite, key, b"base_nonce", context, 12)
    return ChaCha20Poly1305(_expand(suite, key, b"key", context, 32)).encrypt(nonce, secret, data)


def aes(key, block):
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(block) + encryptor.finalize()


def words_of(data):
    """Little-endian 64-bit words."""
    return [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]


def keystream(key, first, count):
    """The words of AES(first), AES(first + 1), ..."""
    blocks = ((first + j) % (1 << 128) for j in range((count + 1) // 2))
    data = b"".join(aes(key, block.to_bytes(16, "big")) for block in blocks)
    return words_of(data)[:count]


def mask_pad(key, digest, count):
    """Block j is AES(AES(D[0..16]) xor (D[16..30] | j:16))."""
    chained = aes(key, digest[:16])
    data = b""
    for j in range((count + 1) // 2):
        second = digest[16:30] + j.to_bytes(2, "big")
        data += aes(key, bytes(a ^ b for a, b in zip(chained, second)))
    return words_of(data)[:count]


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def link(session, t):
    """The public link hash."""
    return mix(mix(session ^ 0x9E3779B97F4A7C15) ^ t)


def hexadecimal(word):
    """A word as JSON carries it: 16 hexadecimal digits, most significant first."""
    return f"{word:016x}"


def write(target, name, vector, version=1):
    """Writes one file, the same bytes every time."""
    path = Path(target) / f"v{version}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(vector, indent=1, ensure_ascii=True) + "\n")
