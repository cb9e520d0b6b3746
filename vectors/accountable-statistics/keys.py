"""Keys without a dealer and decryption in parts, implemented independently from docs/kernel.md."""

import hpke
from tuples import B, ORDER, PREFIX, M, Statement, Stream, hash_to_scalar, number, r, scalar
from ristretto import IDENTITY


def place(member):
    return member + 1


class Committee:
    def __init__(self, members, threshold):
        self.members, self.threshold = members, threshold
        self.purpose = r.labelled_hash("alpheus/vector/v1", [b"a day"])
        parts = [self.purpose, number(members, 2), number(threshold, 2)]
        self.digest = r.labelled_hash(PREFIX + "key/committee/v1", parts)

    def json(self):
        return {"purpose": self.purpose.hex(), "members": self.members, "threshold": self.threshold}


class Ceremony:
    def __init__(self, members, threshold, attempt=3, absent=()):
        self.committee, self.attempt = Committee(members, threshold), attempt
        self.members, self.threshold = members, threshold
        self.seeds = [r.labelled_hash("alpheus/vector/v1", [number(m)]) for m in range(members)]
        self.keys = [bytes(32) if m in absent else hpke.public(hpke.derive_key(self.sealing_seed(m)))
                     for m in range(members)]
        parts = [self.committee.digest, number(attempt, 4), b"".join(self.keys)]
        self.digest = r.labelled_hash(PREFIX + "key/ceremony/v1", parts)

    def sealing_seed(self, member):
        parts = [self.committee.digest, number(self.attempt, 4), number(member, 2)]
        return r.derive(self.seeds[member], PREFIX + "key/sealing/v1", parts, 32)

    def json(self):
        return {"committee": self.committee.json(), "digest": self.committee.digest.hex(),
                "attempt": self.attempt, "seeds": [s.hex() for s in self.seeds],
                "ceremony": self.digest.hex()}


class Dealer:
    """`corrupts` is a member whose share does not open."""

    def __init__(self, ceremony, member, knows=True, corrupts=None):
        self.ceremony, self.member = ceremony, member
        stream = Stream(f"dealer {member}")
        seed = ceremony.seeds[member]
        label, t = PREFIX + "key/coefficient/v1", range(ceremony.threshold)
        self.coefficients = [
            hash_to_scalar(label, [seed, ceremony.digest, number(member, 2), number(k, 2)]) for k in t]
        self.commitments = [k * B for k in self.coefficients]
        encoded = b"".join(e.encode() for e in self.commitments)
        fields = [ceremony.digest, number(member, 2), encoded]
        statement = Statement("key/dealing/v1", fields, 1, [B, self.commitments[0]], [(1, [(1, 0, 0)])])
        witness = self.coefficients[0] if knows else 5
        self.proof = statement.prove([witness], stream)
        sealed = b""
        for to, key in enumerate(ceremony.keys):
            context = [ceremony.digest, number(member, 2), number(to, 2)]
            info = r.labelled_hash(PREFIX + "key/share/v1", context)
            one = bytes(80) if key == bytes(32) else hpke.seal(key, info, scalar(self.share(to)), stream.take(32))
            sealed += one[:-1] + bytes([one[-1] ^ (to == corrupts)])
        self.randomness = stream.so_far()
        self.bytes = encoded + self.proof + sealed

    def pledge(self, data=None):
        parts = [self.ceremony.digest, number(self.member, 2), self.bytes if data is None else data]
        return r.labelled_hash(PREFIX + "key/pledge/v1", parts)

    def share(self, member):
        return sum(k * place(member) ** i for i, k in enumerate(self.coefficients)) % ORDER


class Settled:
    """Of all dealers that qualify."""

    def __init__(self, ceremony, dealers):
        self.secret = sum(d.coefficients[0] for d in dealers) % ORDER
        self.key = self.secret * B
        self.shares = [sum(d.share(m) for d in dealers) % ORDER for m in range(ceremony.members)]
        pledges = b"".join(number(d.member, 2) + d.pledge() for d in dealers)
        self.transcript = r.labelled_hash(PREFIX + "key/transcript/v1", [ceremony.digest, pledges])

    def json(self):
        return {"key": self.key.encode().hex(), "transcript": self.transcript.hex(),
                "shares": [scalar(s).hex() for s in self.shares],
                "public": [(s * B).encode().hex() for s in self.shares]}


class Partial:
    """`secret` is another share than the member's; `alter` changes elements before the proof."""

    def __init__(self, settled, member, part, sums, context, name, secret=None, leave_out=None):
        stream = Stream(f"partial {name}")
        secret = settled.shares[member] if secret is None else secret
        public = settled.shares[member] * B
        self.element = secret * sums[0]
        encoded = bytes([part]) + sums[0].encode() + sums[1].encode()
        fields = [settled.transcript, number(member, 2), encoded, context]
        elements = [B, public, sums[0], self.element]
        statement = Statement("partial/v1", fields, 1, elements, [(1, [(1, 0, 0)]), (3, [(1, 0, 2)])])
        proof = statement.prove([secret], stream, leave_out)
        self.randomness = stream.so_far()
        self.bytes = number(member, 2) + self.element.encode() + proof


def combine(members, partials, sums):
    """C less the weighted partial decryptions."""
    total = sums[1]
    for i, partial in zip(members, partials):
        weight = 1
        for j in members:
            if j != i:
                weight = weight * place(j) * pow(place(j) - place(i), -1, ORDER) % ORDER
        total = total - weight * partial.element
    return total


assert M != IDENTITY
