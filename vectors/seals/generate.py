"""Master secrets sealed for a controller, and keys of days for a reader: python3 generate.py TARGET.
After crates/encrypted-stream/docs/protocol.md."""

import hashlib
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reference as r  # noqa: E402
import xwing  # noqa: E402

TARGET = sys.argv[1]
MASTER, DAYS = "alpheus/master/v2", "alpheus/grant/days/v2"
FIRST = 19_000


def fixed(name, length=32):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(f"alpheus seals {name}".encode()).digest(length)


def public(private):
    return private.public_key().public_bytes_raw()


AUTHORITY = Ed25519PrivateKey.from_private_bytes(fixed("authority"))


def certified(role, seed, word):
    """A controller's or a consumer's certificate, its digest, and its hybrid key. All keys come from one seed."""
    part = lambda what: r.derive(seed, f"alpheus/{word}/{what}", [], 32)  # noqa: E731
    agreement = public(X25519PrivateKey.from_private_bytes(part("agreement/v1")))
    verifying = public(Ed25519PrivateKey.from_private_bytes(part("signing/v1")))
    key = xwing.public_key(part("sealing/v2"))
    hybrid = r.labelled_hash("alpheus/hybrid-key/v1", [key])
    content = fixed("subject", 16) + bytes([role, 4]) + b"name" + verifying
    content += b"\1" + agreement + b"\0" + b"\1" + hybrid
    digest = r.labelled_hash("alpheus/certificate/v2", [content])
    length = bytes([len(content) & 127 | 128, len(content) >> 7])
    return (length + content + AUTHORITY.sign(digest)).hex(), digest, key


SEED, READER_SEED = fixed("controller"), fixed("reader")
CERTIFICATE, CONTROLLER, KEY = certified(1, SEED, "identity")
READER_CERTIFICATE, READER, READER_KEY = certified(2, READER_SEED, "consumer")
OWNER, STREAM, SCHEMA = fixed("owner"), fixed("stream", 16), fixed("schema")
RANDOMNESS = fixed("randomness", 64)


def sealed(key, label, context, secret, shared=None):
    """X-Wing in HPKE. `shared` replaces what the two keys agree on."""
    agreed, encapsulated = xwing.encapsulate(key, RANDOMNESS)
    info = r.labelled_hash(label, context)
    return encapsulated + r.hpke_encrypt(r.SUITE_XWING, shared or agreed, info, secret)


def halves(key):
    """What somebody would agree on who knows one half only: the other counts as zero."""
    ephemeral = X25519PrivateKey.from_private_bytes(RANDOMNESS[32:])
    point, theirs = public(ephemeral), key[-32:]
    lattice = xwing.kem_encapsulate(key[:-32], RANDOMNESS[:32])[0]
    curve = ephemeral.exchange(X25519PublicKey.from_public_bytes(theirs))
    combined = lambda m, x: hashlib.sha3_256(m + x + point + theirs + b"\\.//^\\").digest()  # noqa: E731
    assert combined(lattice, curve) == xwing.encapsulate(key, RANDOMNESS)[0]
    return {"without X25519": combined(lattice, bytes(32)), "without ML-KEM": combined(bytes(32), curve)}


def classical(seed, label, context, secret):
    """As before: DHKEM(X25519, HKDF-SHA256)."""
    return r.hpke_seal(public(r.hpke_key(seed)), r.labelled_hash(label, context), secret, fixed("ephemeral"))


def bad(key, label, old, names, context, secret):
    """Everything that must not open, by what is wrong."""
    for at, name in enumerate(names):
        changed = [fixed(f"another {name}", len(part)) if i == at else part for i, part in enumerate(context)]
        yield name, sealed(key, label, changed, secret)
    yield "label", sealed(key, old, context, secret)
    for name, shared in halves(key).items():
        yield name, sealed(key, label, context, secret, shared)
    yield "another key", sealed(xwing.public_key(fixed("another key")), label, context, secret)
    yield "classical", classical(fixed("classical"), label, context, secret)
    whole = sealed(key, label, context, secret)
    for at in (0, 1087, 1088, 1119, 1120, len(whole) - 1):
        yield f"byte {at}", whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:]
    yield "shorter", whole[:-1]


def parties(**more):
    return {"authority": fixed("authority").hex(), "owner": OWNER.hex(), "stream": STREAM.hex(), "schema": SCHEMA.hex(),
            "randomness": RANDOMNESS.hex(), **more}


def handovers():
    names = ["authority", "controller", "owner", "stream", "schema"]
    context, secret = [public(AUTHORITY), CONTROLLER, OWNER, STREAM, SCHEMA], fixed("master")
    case = parties(seed=SEED.hex(), certificate=CERTIFICATE, key=KEY.hex(), master=secret.hex())
    r.write(TARGET, "handover.json", [case | {"sealed": sealed(KEY, MASTER, context, secret).hex()}])
    r.write(TARGET, "handover_bad_seal.json", [
        case | {"what": what, "sealed": data.hex(), "error": "UnsealError"}
        for what, data in bad(KEY, MASTER, "alpheus/master/v1", names, context, secret)])


def days():
    names = ["authority", "controller", "reader", "owner", "stream", "schema", "first", "last"]
    for_days = lambda first, last: [  # noqa: E731
        public(AUTHORITY), CONTROLLER, READER, OWNER, STREAM, SCHEMA, first.to_bytes(8, "big"), last.to_bytes(8, "big")]
    # The day's key of the stream whose master secret is handed over.
    key = lambda day: r.derive(fixed("master"), "alpheus/stream/day/v1", [STREAM, SCHEMA, day.to_bytes(8, "big")], 16)  # noqa: E731
    case = parties(seed=READER_SEED.hex(), certificate=READER_CERTIFICATE, key=READER_KEY.hex(),
                   controller=CONTROLLER.hex())
    good = []
    for last in (FIRST, FIRST + 2, FIRST + 365):
        secret = b"".join(key(day) for day in range(FIRST, last + 1))
        data = sealed(READER_KEY, DAYS, for_days(FIRST, last), secret)
        good.append(case | {"first": FIRST, "last": last, "secrets": secret.hex(), "sealed": data.hex()})
    r.write(TARGET, "days.json", good)
    last = FIRST + 2
    context, secret = for_days(FIRST, last), b"".join(key(day) for day in range(FIRST, last + 1))
    own = {"first": FIRST, "last": last, "error": "NotForYou"}
    wrong = list(bad(READER_KEY, DAYS, "alpheus/grant/day/v1", names, context, secret))
    wrong += [("a day less", sealed(READER_KEY, DAYS, context, secret[16:])),
              ("a day more", sealed(READER_KEY, DAYS, context, secret + key(last + 1))),
              ("part of a day", sealed(READER_KEY, DAYS, context, secret[:-1])),
              ("no day", sealed(READER_KEY, DAYS, context, b""))]
    cases = [case | own | {"what": what, "sealed": data.hex()} for what, data in wrong]
    for first, end in ((FIRST + 2, FIRST), (FIRST, FIRST + 366), (0, (1 << 64) - 1)):
        data = sealed(READER_KEY, DAYS, for_days(first, end), secret)
        cases.append(case | own | {"what": "days", "first": first, "last": end, "sealed": data.hex()})
    r.write(TARGET, "days_bad_seal.json", cases)


handovers()
days()
