"""Messages of smoothers that make a key, implemented independently from docs/kernel.md; bytes as postcard has them."""

import keys as k
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tuples import PREFIX, r, scalar

ANNOUNCEMENT, ROSTER, PLEDGE, PLEDGED, DEALING, VERDICT, ANSWER, OUTCOME, VOTE = range(9)


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def octets(data):
    return varint(len(data)) + data


class Member:
    def __init__(self, index):
        self.index = index
        self.key = Ed25519PrivateKey.from_private_bytes(r.labelled_hash("alpheus/vector/v1", [b"member", bytes([index])]))
        self.public = self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def sign(self, label, data):
        return octets(data) + self.key.sign(r.labelled_hash(PREFIX + label, [data]))


MEMBERS = [Member(index) for index in range(4)]


class Attempt:
    """Member 3 is away; what member 1 has sealed for member 2 does not open."""

    def __init__(self, epoch, attempt):
        self.epoch, self.attempt = epoch, attempt
        self.ceremony = k.Ceremony(4, 2, attempt, absent=[3])
        self.dealers = [k.Dealer(self.ceremony, m, corrupts=2 if m == 1 else None) for m in range(3)]
        self.settled = k.Settled(self.ceremony, self.dealers)

    def word(self, by, kind, content, attempt=None, signer=None, epoch=None):
        attempt = self.attempt if attempt is None else attempt
        epoch = self.epoch if epoch is None else epoch
        data = varint(epoch) + varint(attempt) + varint(by) + varint(kind) + content
        return by, MEMBERS[by if signer is None else signer].sign("key/word/v1", data)

    def announcement(self, by, **more):
        return self.word(by, ANNOUNCEMENT, self.ceremony.keys[by] + b"\0", **more)

    def list(self, by, kind, words, **more):
        return self.word(by, kind, varint(len(words)) + b"".join(varint(m) + w for m, w in words), **more)

    def pledge(self, by):
        return self.word(by, PLEDGE, self.ceremony.digest + self.dealers[by].pledge())

    def dealing(self, by):
        return self.word(by, DEALING, octets(self.dealers[by].bytes))

    def verdict(self, by):
        return self.word(by, VERDICT, b"\1\1" if by == 2 else b"\0")

    def answer(self):
        return self.word(1, ANSWER, varint(2) + scalar(self.dealers[1].share(2)))

    def vote_digest(self):
        c, s = self.ceremony.committee, self.settled
        public = [(share * k.B).encode() for share in s.shares]
        shared = c.purpose + varint(c.members) + varint(c.threshold) + s.key.encode()
        shared += varint(len(public)) + b"".join(public) + s.transcript
        return r.labelled_hash(PREFIX + "key/shared/v1", [shared])

    def vote(self, by):
        data = varint(self.epoch) + varint(self.attempt) + self.vote_digest()
        return self.word(by, VOTE, MEMBERS[by].sign("key/vote/v1", data))

    def roster(self, by=0, **more):
        return self.list(by, ROSTER, [self.announcement(m) for m in range(3)], **more)

    def pledged(self):
        return self.list(0, PLEDGED, [self.pledge(m) for m in range(3)])

    def outcome(self):
        words = [self.dealing(0), self.dealing(1), self.answer(), self.dealing(2)]
        return self.list(0, OUTCOME, words + [self.verdict(m) for m in range(3)])


def received(words):
    return [{"by": by, "word": word.hex()} for by, word in words]


def base(attempt):
    return {"committee": attempt.ceremony.committee.json(), "epoch": attempt.epoch,
            "keys": [m.public.hex() for m in MEMBERS]}


def good():
    """Member 0, who convenes: what it hears when, and what it says then."""
    a = Attempt(4, 0)

    def stage(time, heard, said):
        return {"time": time, "heard": received(heard), "said": [word.hex() for _, word in said]}

    others = (1, 2)
    return [{
        **base(a),
        "signing": r.labelled_hash("alpheus/vector/v1", [b"member", bytes([0])]).hex(),
        "patience": 10,
        "randomness": a.ceremony.seeds[0].hex() + a.dealers[0].randomness,
        "stages": [
            stage(0, [], [a.announcement(0)]),
            stage(9, [a.announcement(m) for m in others], []),
            stage(10, [], [a.roster(), a.pledge(0)]),
            stage(11, [a.pledge(m) for m in others], [a.pledged(), a.dealing(0)]),
            stage(12, [a.dealing(m) for m in others], [a.verdict(0)]),
            stage(13, [a.verdict(m) for m in others], []),
            stage(14, [a.answer()], [a.outcome(), a.vote(0)]),
            stage(15, [a.vote(1)], []),
            stage(16, [a.vote(2)], []),
        ],
        "settled": a.settled.json(),
    }]


def bad():
    """What member 0 hears of key epoch 5, whose first convener is member 1."""
    a, later = Attempt(5, 0), Attempt(5, 1)
    announced = [a.announcement(m) for m in range(3)]

    def roster(words, by=1):
        return [a.list(by, ROSTER, words)]

    other = a.word(2, ANNOUNCEMENT, bytes([9] * 32) + b"\0")
    cases = [
        ([a.roster(1)], None, 1),
        (roster(announced[:2]), "List", 1),
        (roster([announced[0], announced[1], announced[1]]), "List", 1),
        (roster([announced[0], announced[1], (2, announced[1][1])]), "List", 1),
        (roster([announced[0], announced[1], a.announcement(2, signer=1)]), "List", 1),
        (roster([announced[0], announced[1], later.announcement(2)]), "List", 1),
        (roster([announced[0], announced[1], a.announcement(2, epoch=4)]), "List", 1),
        (roster([announced[0], announced[1], a.pledge(2)]), "List", 1),
        (roster([*announced, a.pledge(2)]), "List", 1),
        (roster(announced, 2), "NotConvener", 2),
        ([announced[2], other], "Twice", 2),
    ]
    return [{**base(a), "heard": received(heard), "fault": fault, "by": by} for heard, fault, by in cases]
