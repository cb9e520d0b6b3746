"""Results that are sealed to one consumer: pads, sums and their encoding:
python3 generate.py TARGET."""

import hashlib
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reference as r  # noqa: E402

TARGET = sys.argv[1]
CONTROLLERS = 11
WORDS = 5
START, END = 1_700_000_000_000_000, 1_700_000_010_000_000


def fixed(name, length=32):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(f"alpheus vectors {name}".encode()).digest(length)


def write(name, vector):
    r.write(TARGET, name, vector)


def public(private):
    return private.public_key().public_bytes_raw()


SEED = fixed("consumer")
CONSUMER = X25519PrivateKey.from_private_bytes(
    r.derive(SEED, "alpheus/consumer/agreement/v1", [], 32)
)
SEATS = [X25519PrivateKey.from_private_bytes(fixed(f"seat {p}")) for p in range(CONTROLLERS)]
PLAN, MEMBERSHIP = fixed("plan"), fixed("membership")


def pad(position, plan=PLAN, start=START, membership=MEMBERSHIP, count=WORDS):
    """What the controller at a position adds to its token."""
    theirs = public(CONSUMER)
    shared = SEATS[position].exchange(X25519PublicKey.from_public_bytes(theirs))
    publics = sorted([theirs, public(SEATS[position])])
    agreed = r.derive(shared, "alpheus/agreement/v1", publics, 32)
    key = r.derive(agreed, "alpheus/consumer/pair/v1", [], 16)
    parts = [plan, start.to_bytes(8, "big"), membership]
    return r.mask_pad(key, r.labelled_hash("alpheus/consumer/pad/v1", parts), count)


def varint(number):
    """Seven bits a byte, the low ones first; the top bit says that more follow."""
    out = b""
    while number >= 128:
        out, number = out + bytes([number % 128 + 128]), number // 128
    return out + bytes([number])


def encoded(members, words, roster=CONTROLLERS, version=1):
    bitmap = bytearray((roster + 7) // 8)
    for p in members:
        bitmap[p // 8] |= 1 << p % 8
    return (
        bytes([version]) + PLAN + varint(START) + varint(END) + MEMBERSHIP
        + varint(roster) + varint(len(bitmap)) + bytes(bitmap)
        + varint(len(words)) + b"".join(varint(word) for word in words)
    )


def sum_under_pads(truth, members):
    words = list(truth)
    for p in members:
        words = [(word + more) & r.MASK for word, more in zip(words, pad(p))]
    return words


def hexadecimals(words):
    return [r.hexadecimal(word) for word in words]


def sums():
    truth = [0, 1, r.MASK, 1 << 63, 0]
    cases = []
    for members in ([0], [10], [0, 3, 10], list(range(CONTROLLERS))):
        words = sum_under_pads(truth, members)
        cases.append({
            "seed": SEED.hex(), "public": public(CONSUMER).hex(),
            "seats": [fixed(f"seat {p}").hex() for p in range(CONTROLLERS)],
            "plan": PLAN.hex(), "start": START, "end": END, "membership": MEMBERSHIP.hex(),
            "members": members, "pads": [hexadecimals(pad(p)) for p in members],
            "words": hexadecimals(words), "opened": hexadecimals(truth),
            "encoded": encoded(members, words).hex(),
        })
    write("sealed.json", cases)


def bad_encodings():
    good = encoded([0, 3], [7, 1 << 40, 0])
    at = 1 + 32 + len(varint(START)) + len(varint(END)) + 32

    def bad(name, error, *encodings):
        write(f"sealed_bad_{name}.json", [{"encoded": e.hex(), "error": error} for e in encodings])

    bad("version", "Version", b"\x00" + good[1:], b"\x02" + good[1:])
    bad("truncated", "Malformed", b"", good[:1], good[:40], good[:-1])
    bad("trailing", "Malformed", good + b"\x00")
    # A length written in more bytes than it needs is another spelling of the same sum.
    bad("spelling", "Malformed", good[:at] + b"\x8b\x00" + good[at + 1:])
    bad("beyond_roster", "Malformed", good[:at + 2] + b"\x00\x80" + good[at + 4:])
    bad("bitmap_length", "Malformed", good[:at + 1] + b"\x01\x09" + good[at + 4:])


for make in (sums, bad_encodings):
    make()
