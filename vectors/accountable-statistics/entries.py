"""Entries of the ledger of slots, receipts, certificates and a closing's roots, implemented independently from docs/protocol.md;
bytes as postcard has them."""

import hashlib

from making import MEMBERS, octets, varint
from tuples import PREFIX, r
from uploads import Key, signature

# 64 is the most that a deployment has.
MAX_SIGNATURES = 64


class Entry:
    def __init__(self, aggregate, key_epoch, slot, revision, ephemeral, name):
        parts = [r.labelled_hash("alpheus/vector/v1", [what, name]) for what in (b"content", b"sealed")]
        self.fields = {"aggregate": aggregate, "key_epoch": key_epoch, "slot": slot, "revision": revision,
                       "ephemeral": ephemeral, "content": parts[0], "sealed": parts[1]}
        self.slot = slot
        self.bytes = (aggregate + varint(key_epoch) + slot.to_bytes(4, "big") + revision.to_bytes(8, "big")
                      + ephemeral + parts[0] + parts[1])

    def json(self):
        return {name: value.hex() if isinstance(value, bytes) else str(value) for name, value in self.fields.items()}

    def hash(self, label):
        return r.labelled_hash(PREFIX + label, [self.bytes])

    def signed(self, by):
        return MEMBERS[by].sign("entry/v2", self.bytes)


def leaf(data):
    return hashlib.sha256(b"\0" + data).digest()


def root(leaves):
    """RFC 6962: the left subtree has the largest power of two of leaves below their number."""
    if len(leaves) == 1:
        return leaves[0]
    left = 1
    while 2 * left < len(leaves):
        left *= 2
    return hashlib.sha256(b"\1" + root(leaves[:left]) + root(leaves[left:])).digest()


def roots(slots, entries, rejected):
    known = {entry.slot: entry for entry in entries}
    ledger = [leaf(known[s].hash("entry/v2") if s in known else b"") for s in range(slots)]
    counted = [leaf(known[s].hash("counted/v2") if s in known and s not in rejected else b"") for s in range(slots)]
    return root(ledger), root(counted)


def certificate(signatures):
    return varint(len(signatures)) + b"".join(varint(by) + signed for by, signed in signatures)


KEY = Key(bytes(range(32)))


def some(aggregate):
    return [Entry(aggregate, 20_000, slot, revision, KEY.bytes, bytes([slot]))
            for slot, revision in ((0, 0), (2, 2**64 - 1), (3, 2**63 + 5))]


def good(aggregate):
    entries = some(aggregate)
    ledger, tuples = roots(6, entries, [2])
    return [{
        "entries": [{**entry.json(), "bytes": entry.bytes.hex(), "digest": entry.hash("entry/v2").hex(),
                     "receipt": (varint(1) + entry.signed(1)).hex(),
                     "deposited": signature(KEY, entry.bytes, f"entry {entry.slot}")[0].hex(),
                     "certificate": certificate([(by, entry.signed(by)) for by in (0, 1, 2)]).hex()}
                    for entry in entries],
        "keys": [member.public.hex() for member in MEMBERS],
        "slots": 6, "rejected": [2], "ledger": ledger.hex(), "tuples": tuples.hex(),
    }]


def bad(aggregate):
    """Signed bytes that are no entry, and what is no certificate."""
    entry = some(aggregate)[1]
    epoch = varint(20_000)
    long = entry.bytes.replace(epoch, bytes([epoch[0], epoch[1], epoch[2] | 128, 0]), 1)
    without = entry.bytes.replace(epoch, b"", 1)
    signed = [(by, entry.signed(by)) for by in range(4)]

    def one(data, error):
        return {"certificate": data.hex(), "error": error}

    entries = [(data, MEMBERS[1].sign("entry/v2", data))
               for data in (entry.bytes[:-1], entry.bytes + b"\0", long, without)]
    earlier = MEMBERS[1].sign("entry/v1", entry.bytes)
    return [{
        "key": MEMBERS[1].public.hex(),
        "entries": [*({"signed": whole.hex(), "error": "Malformed"} for _, whole in entries),
                    {"signed": earlier.hex(), "error": "Signature"},
                    {"signed": entry.signed(2).hex(), "error": "Signature"}],
        "certificates": [
            one(certificate(signed + signed[:1]), "NotSeveral"),
            one(certificate([signed[0], (0, entry.signed(1))]), "NotSeveral"),
            one(certificate([(by, entry.signed(1)) for by in range(MAX_SIGNATURES + 1)]), "NotSeveral"),
            one(certificate(signed) + b"\0", "Malformed"),
            one(certificate(signed)[:-1], "Malformed"),
            one(b"\x83\x00" + certificate(signed[:3])[1:], "Malformed"),
            one(b"", "Malformed"),
        ],
    }]
