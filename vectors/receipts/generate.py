"""Known answers of verified windows: parts of sums, and receipts: python3 generate.py TARGET.
After crates/encrypted-stream/docs/protocol.md."""

import hashlib
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reference as r  # noqa: E402

TARGET = sys.argv[1]
START, END = 1_700_000_000_000_000, 1_700_000_010_000_000
NEXT = (END, END + END - START)
MODULUS = 1 << 64
OUTPUTS, CONTROLLERS = 4, 4


def fixed(name, length=32):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(f"alpheus receipts {name}".encode()).digest(length)


def words(name, count=OUTPUTS):
    data = fixed(name, 8 * count)
    return [int.from_bytes(data[8 * i:8 * i + 8], "little") for i in range(count)]


def public(private):
    return private.public_key().public_bytes_raw()


# Postcard: integers in groups of seven bits, lengths before lists, arrays as they are.

def varint(number):
    out = b""
    while number >= 128:
        out, number = out + bytes([number % 128 + 128]), number // 128
    return out + bytes([number])


def many(items):
    return varint(len(items)) + b"".join(items)


def text(value):
    return varint(len(value)) + value.encode()


def option(value):
    return b"\x00" if value is None else b"\x01" + value


def numbers(values):
    return many([varint(value) for value in values])


def signed(label, body, key):
    digest = r.labelled_hash(label, [body])
    return varint(len(body)) + body + key.sign(digest), digest


# Parts of sums.

def leaf(data):
    return hashlib.sha256(b"\x00" + data).digest()


def node(left, right):
    return hashlib.sha256(b"\x01" + left + right).digest()


def root(leaves):
    if len(leaves) == 1:
        return leaves[0]
    half = 1
    while 2 * half < len(leaves):
        half *= 2
    return node(root(leaves[:half]), root(leaves[half:]))


def rest(leaves, known, start=0):
    """The roots of the largest subtrees without a known leaf, from left to right."""
    inside = [at for at in known if start <= at < start + len(leaves)]
    if not inside:
        return [root(leaves)]
    if len(leaves) == 1:
        return []
    half = 1
    while 2 * half < len(leaves):
        half *= 2
    return rest(leaves[:half], known, start) + rest(leaves[half:], known, start + half)


def part(lengths, released, name):
    total = words(name, sum(lengths))
    leaves, blocks, at = [], [], 0
    for number, length in enumerate(lengths):
        own = total[at:at + length]
        head = number.to_bytes(4, "big") + length.to_bytes(4, "big")
        leaves.append(leaf(head + b"".join(word.to_bytes(8, "little") for word in own)))
        blocks.append(range(at, at + length))
        at += length
    needed = [n for n, block in enumerate(blocks) if any(w in block for row in released for w in row)]
    return {
        "blocks": lengths,
        "rows": released,
        "sum": [r.hexadecimal(word) for word in total],
        "words": [r.hexadecimal(total[w]) for n in needed for w in blocks[n]],
        "path": [digest.hex() for digest in rest(leaves, needed)],
        "root": root(leaves)[:16].hex(),
    }


r.write(TARGET, "parts.json", [
    part([8, 3, 7, 1, 1, 1], [[0], [20]], "first"),
    part([8, 3, 7, 1, 1, 1], [[8, 10], [18], [20]], "second"),
    part([8] * 56 + [8], [[3], [300], [455]], "long"),
    part([1], [[0]], "one"),
    part([2, 2, 2, 2, 2], [[w] for w in range(10)], "all"),
])



def flipped(digits, at=0):
    """The same with one bit changed."""
    data = bytearray.fromhex(digits)
    data[at] ^= 1
    return data.hex()


def bad_parts():
    """Parts that a lying service could send in the place of one, which lead to no root of its device."""
    good = part([8, 3, 7, 1, 1, 1], [[8, 10], [18], [20]], "second")
    words_, path = good["words"], good["path"]
    three, between, last = words_[:3], words_[3:4], words_[4:]
    other = part([8, 3, 7, 1, 1, 1], [[8, 10], [18], [20]], "third")
    changes = {
        "one bit of a word": {"words": [r.hexadecimal(int(words_[0], 16) ^ 1), *words_[1:]]},
        "two words of a block in the other order": {"words": [words_[1], words_[0], *words_[2:]]},
        "two blocks in the other order": {"words": three + last + between},
        "a word more": {"words": [*words_, words_[-1]]},
        "a word less": {"words": words_[:-1]},
        "no words": {"words": []},
        "the words of another sum": {"words": other["words"]},
        "one bit of the path": {"path": [flipped(path[0]), *path[1:]]},
        "the path in the other order": {"path": path[::-1]},
        "a digest more": {"path": [*path, path[-1]]},
        "a digest less": {"path": path[:-1]},
        "the path of another sum": {"path": other["path"]},
        "one bit of the root": {"root": flipped(good["root"], 15)},
        "another sum's root": {"root": other["root"]},
    }
    return [{**good, "why": why, **change} for why, change in changes.items()]


r.write(TARGET, "parts_bad.json", bad_parts())

# A deployment.

AUTHORITY = Ed25519PrivateKey.from_private_bytes(fixed("authority"))
SERVICE = Ed25519PrivateKey.from_private_bytes(fixed("service"))
STRANGER = Ed25519PrivateKey.from_private_bytes(fixed("stranger"))


def seat(number):
    key = Ed25519PrivateKey.from_private_bytes(fixed(f"signing {number}"))
    agreement = public(X25519PrivateKey.from_private_bytes(fixed(f"agreement {number}")))
    body = fixed(f"subject {number}", 16) + varint(1) + text(f"controller {number}") + public(key)
    body += option(agreement) + option(None) + option(fixed(f"hybrid {number}"))
    certificate, digest = signed("alpheus/certificate/v2", body, AUTHORITY)
    return digest, key, certificate, agreement


SEATS = sorted((seat(number) for number in range(CONTROLLERS)), key=lambda own: own[0])


def plan(seats, nonce, verified=1, owners=1, masks=None, alpha=None, epoch=None):
    """Every controller has one stream of one owner, or of several."""
    count = len(seats)
    streams = [(fixed(f"stream {c} {o}", 16), fixed(f"owner {c} {o}"), c)
               for c in range(count) for o in range(owners)]
    alpha = alpha or ((1, 3) if count > 1 else (0, 1))
    body = fixed(nonce, 16) + text("sums") + text("tests") + option(None) + fixed("schema")
    body += many([]) + varint(END - START) + varint(0) + varint(START)
    body += many([numbers([word]) for word in range(OUTPUTS)])
    body += many([]) + many([])
    body += varint(verified) + many([]) + option(None) + numbers([0])
    body += varint(1) + varint(1000) + varint(alpha[0]) + varint(alpha[1]) + varint(1)
    body += varint(1) + varint(5) + bytes([9])
    body += (varint(1 if count > 1 else 0) if masks is None else masks) + option(epoch)
    body += many([own[0] for own in seats])
    body += many([s + o + varint(c) for s, o, c in sorted(streams)])
    return body


def place(controller):
    """The position of its stream, in a plan with one stream for each."""
    own = sorted((fixed(f"stream {c} 0", 16), c) for c in range(CONTROLLERS))
    return [c for _, c in own].index(controller)


def announced(body, seats):
    announcement = body + many([own[2] for own in seats]) + option(None)
    return signed("alpheus/announcement/v5", announcement, SERVICE)[0]


def plan_id(body):
    return r.labelled_hash("alpheus/plan/v5", [body])


def bitmap(members, roster):
    out = bytearray((roster + 7) // 8)
    for member in members:
        out[member // 8] |= 1 << member % 8
    return varint(roster) + many([bytes([byte]) for byte in out])


class Tree:
    """RFC 6962 over the presences of M's members."""

    def __init__(self, leaves):
        self.leaves = leaves

    def proof(self, index):
        levels, position = [self.leaves], index
        while len(levels[-1]) > 1:
            below = levels[-1]
            pairs = [below[at:at + 2] for at in range(0, len(below), 2)]
            levels.append([node(*pair) if len(pair) == 2 else pair[0] for pair in pairs])
        path = [level[(index >> height) ^ 1] for height, level in enumerate(levels)
                if (index >> height) ^ 1 < len(level)]
        return varint(position) + varint(len(self.leaves)) + many(path)


class Window:
    """A window of a plan as it could have been, with what a test changes."""

    def __init__(self, seats=None, nonce="plan", verified=1, masks=None):
        self.seats = SEATS if seats is None else seats
        self.plan = plan(self.seats, nonce, verified, masks=masks)
        self.id = plan_id(self.plan)
        self.window = (START, END)
        self.members = list(range(len(self.seats)))
        self.set = list(self.members)
        self.roster = self.set_roster = len(self.seats)
        self.owners = [1] * len(self.seats)
        self.keys = [own[1] for own in self.seats]
        self.by = self.set_by = SERVICE
        self.row = words("row", OUTPUTS - 1) + [0]
        self.off = 0
        self.token_for = {}
        # By controller: streams that it left out, each with the number of the reason.
        self.excluded = {}
        self.presence_by = {}
        self.shown_as = {}
        self.length = {}
        # Members whose keys for pads M has, if not all of them.
        self.mask_keys = None
        # What S says that M is.
        self.set_for = None
        # Members of S whose shares are missing.
        self.lost = []
        # By controller: the window of which its presence is, and how often it is shown.
        self.presence_in = {}
        self.times = {}

    def span(self):
        return varint(self.window[0]) + varint(self.window[1])

    def presence(self, controller, excluded):
        start, end = self.presence_in.get(controller, self.window)
        body = self.id + varint(start) + varint(end) + varint(controller) + fixed("summons") + numbers([])
        body += many([varint(at) + varint(reason) for at, reason in excluded])
        key = self.presence_by.get(controller, self.keys[controller])
        return signed("alpheus/presence/v2", body + varint(1) + varint(0) + option(None), key)

    def tree(self):
        own = [self.presence(p, self.excluded.get(p, []))[1] for p in self.members]
        return Tree([leaf(digest) for digest in own])

    def exclusions(self):
        excluded = {**self.excluded, **self.shown_as}
        shown = [p for p in sorted(excluded) for _ in range(self.times.get(p, 1))]
        places = [self.members.index(p) for p in shown]
        presences = [self.presence(p, excluded[p])[0] for p in shown]
        tree = self.tree()
        return many([own + tree.proof(at) + option(None) for own, at in zip(presences, places)])

    def membership(self):
        body = self.id + self.span() + bitmap(self.members, self.roster) + numbers(self.owners)
        presences = root(self.tree().leaves) if self.excluded else fixed("presences")
        # Checking a receipt takes no keys for pads. There are as many as members, or none.
        of = self.members if self.mask_keys is None else self.mask_keys
        keys = many([self.mask_key(p) for p in of])
        return signed("alpheus/membership/v2", body + presences + keys, self.by)

    def mask_key(self, p):
        body = self.id + varint(p) + varint(START) + fixed(f"mask key {p}")
        return signed("alpheus/mask-key/v1", body, self.keys[p])[0]

    def opening_set(self, membership):
        body = self.id + self.span() + (self.set_for or membership) + bitmap(self.set, self.set_roster)
        return signed("alpheus/opening-set/v1", body, self.set_by)

    def shares(self):
        """Words of Z and of o: they add up to the row over S."""
        single = len(self.seats) == 1
        tokens = {p: words(f"token {p}") for p in self.set}
        openings = {p: [0] * OUTPUTS if single else words(f"opening {p}") for p in self.set}
        last = self.set[-1]
        for w in range(OUTPUTS):
            others = sum(tokens[p][w] - openings[p][w] for p in self.set[:-1])
            wanted = self.row[w] + (self.off if w == OUTPUTS - 1 else 0)
            tokens[last][w] = (wanted - others + openings[last][w]) % MODULUS
        return tokens, openings

    def receipt(self):
        single = len(self.seats) == 1
        membership, m = self.membership()
        opening_set, s = self.opening_set(m)
        tokens, openings = self.shares()
        shares = []
        for p in [p for p in self.set if p not in self.lost]:
            own = tokens[p][:self.length.get(p, OUTPUTS)]
            body = self.id + self.span() + varint(p) + m + numbers(own)
            token, t = signed("alpheus/token/v1", body, self.keys[p])
            body = self.id + self.span() + varint(p) + s
            body += option(self.token_for.get(p, t)) + numbers(openings[p])
            opening, _ = signed("alpheus/window-opening/v2", body, self.keys[p])
            shares.append(token + option(None if single else opening))
        start = b"\x02" + membership + option(None if single else opening_set)
        return start + many(shares) + self.exclusions()

    def case(self, name=None, **more):
        out = {"announcement": announced(self.plan, self.seats).hex(), "start": START, "end": END,
               "receipt": self.receipt().hex(), **more}
        if name:
            return {**out, "error": name}
        population = sum(self.owners[p] for p in self.set)
        row = [r.hexadecimal(word) for word in self.row]
        excluded = [{"controller": p, "streams": [at for at, _ in self.excluded[p]]}
                    for p in sorted(self.excluded)]
        return {**out, "row": row, "population": population, "signers": len(self.set),
                "excluded": excluded}


def changed(**fields):
    window = Window()
    for name, value in fields.items():
        setattr(window, name, value)
    return window


def neighbours(signers=5):
    """A window of five controllers, each with masks with all others, of whom one may be cut off.
    One may collude, so it takes floor((5 + 1 + 2 * 1) / 2) + 1 = 5 to open it."""
    seats = sorted([*SEATS, seat(CONTROLLERS)], key=lambda own: own[0])
    window = Window(seats, masks=varint(4) + varint(4) + varint(1))
    window.set = list(range(signers))
    return window


BODY = fixed("subject", 16) + varint(0) + text("service") + public(SERVICE) + option(None) * 3
CERTIFICATE, _ = signed("alpheus/certificate/v2", BODY, AUTHORITY)
DEPLOYMENT = {"authority": public(AUTHORITY).hex(), "service": CERTIFICATE.hex()}
class Lacking(Window):
    """A window whose M lacks a controller: counts are in the order of its members."""

    def case(self, name=None, **more):
        counts = dict(zip(self.members, self.owners))
        self.owners = [counts.get(p, 0) for p in range(self.roster)]
        shown = super().case(name, **more)
        self.owners = [counts[p] for p in self.members]
        return {**shown, "receipt": self.receipt().hex()}


cases = [own.case() for own in (Window(), Window(SEATS[:1]), Window(SEATS[:2]), changed(set=[0, 1, 3]))]
window = Lacking()
window.members, window.set, window.owners = [0, 2, 3], [0, 2, 3], [1, 0, 1]
cases.append(window.case())
# Every controller has one stream. The second and the fourth leave theirs out.
cases.append(changed(excluded={1: [(place(1), 6)], 3: [(place(3), 0)]}).case())
cases.append(changed(mask_keys=[]).case())
cases.append(neighbours().case())
r.write(TARGET, "receipts.json", [{**DEPLOYMENT, **case} for case in cases], 2)

honest = Window()
other_plan = Window(nonce="other")
swapped = changed(keys=[SEATS[p][1] for p in (0, 1, 3, 2)])
mixed = changed(token_for={1: fixed("another token")})
plain = Window(verified=0)
bad = [
    plain.case("NotVerified"),
    changed(by=STRANGER).case("Membership"),
    {**honest.case("OtherPlan"), "announcement": announced(other_plan.plan, SEATS).hex()},
    changed(window=NEXT).case("OtherWindow"),
    changed(roster=5).case("Roster"),
    changed(owners=[1, 1, 1]).case("Roster"),
    changed(mask_keys=[0, 1, 2]).case("Roster"),
    changed(owners=[1, 2, 1, 1]).case("OwnersInvented"),
    changed(set_by=STRANGER).case("OpeningSet"),
    changed(set_roster=5).case("NotASubset"),
    changed(set=[0, 1]).case("BelowQuorum"),
    neighbours(signers=4).case("BelowQuorum"),
    changed(owners=[0, 0, 0, 0]).case("Population"),
    swapped.case("Signature"),
    mixed.case("OtherShare"),
    changed(length={2: OUTPUTS - 1}).case("Length"),
    changed(off=1).case("CheckWord"),
    changed(excluded={1: [(place(1), 6)]}, presence_by={1: STRANGER}).case("Signature"),
    # A presence that the controller signed, but not the one in M.
    changed(excluded={1: [(place(1), 6)]}, shown_as={1: [(place(1), 0)]}).case("OtherShare"),
    # Another controller's stream.
    changed(excluded={1: [(place(2), 6)]}).case("OtherShare"),
    # One that is in M, of another window; one that leaves nothing out; one that is shown twice.
    changed(excluded={1: [(place(1), 6)]}, presence_in={1: NEXT}).case("OtherShare"),
    changed(excluded={1: []}).case("OtherShare"),
    changed(excluded={1: [(place(1), 6)]}, times={1: 2}).case("OtherShare"),
    # S over another M, and a member of S without a share.
    changed(set_for=fixed("another membership")).case("OtherSet"),
    changed(lost=[1]).case("Shares"),
]

whole = honest.receipt()
r.write(TARGET, "receipts_bad_form.json", [
    {"receipt": "", "error": "Malformed"},
    {"receipt": (b"\x04" + whole[1:]).hex(), "error": "Version"},
    {"receipt": whole[:-1].hex(), "error": "Malformed"},
    {"receipt": (whole + b"\x00").hex(), "error": "Malformed"},
    # A length in more bytes than it needs.
    {"receipt": (whole[:1] + bytes([whole[1] | 128, whole[2] | 128, 0]) + whole[3:]).hex(),
     "error": "Malformed"},
], 2)


# By epochs: the plan follows from a list, which the receipt has.

class Listed(Window):
    """A window of an epoch as it could have been, with what a test changes."""

    def __init__(self):
        super().__init__()
        self.terms = plan([], "terms", alpha=(1, 3))
        self.terms_id = plan_id(self.terms)
        self.call_by = self.list_by = SERVICE
        self.list_window = self.window
        self.entries = [self.entry(c) for c in range(CONTROLLERS)]
        self.certificates = [own[2] for own in SEATS]
        self.masks = varint(1)
        self.settle()

    def settle(self):
        """The plan that follows from the list."""
        start = self.window[0].to_bytes(8, "big")
        entries = b"".join(self.digested(c) for c in range(CONTROLLERS))
        digest = r.labelled_hash(
            "alpheus/epoch/entries/v1", [self.terms_id, start, (1).to_bytes(4, "big"), entries])
        epoch = self.terms_id + digest + varint(1)
        self.plan = plan(SEATS, "terms", masks=self.masks, epoch=epoch)
        self.id = plan_id(self.plan)

    @staticmethod
    def digested(c):
        one = (1).to_bytes(4, "big")
        return SEATS[c][0] + SEATS[c][3] + one + fixed(f"owner {c} 0") + one + fixed(f"stream {c} 0", 16)

    @staticmethod
    def entry(c, agreement=None):
        owner = fixed(f"owner {c} 0") + many([fixed(f"stream {c} 0", 16)])
        return SEATS[c][0] + (agreement or SEATS[c][3]) + many([owner])

    def listing(self):
        span = varint(self.list_window[0]) + varint(self.list_window[1])
        call = self.terms + span + varint(1) + varint(self.list_window[1]) + many([])
        call, _ = signed("alpheus/epoch/call/v1", call, self.call_by)
        own = self.terms_id + span + varint(1) + self.masks + many(self.entries)
        own, _ = signed("alpheus/epoch/list/v1", own, self.list_by)
        return call + own + many(self.certificates) + option(None)

    def receipt(self):
        return b"\x03" + super().receipt()[1:] + self.listing()

    def case(self, name=None, **more):
        shown = super().case(name, **more)
        del shown["announcement"]
        return {**DEPLOYMENT, **shown}


def relisted(**fields):
    window = Listed()
    for name, value in fields.items():
        setattr(window, name, value)
    return window


all_but_one = {"entries": Listed().entries[:3], "certificates": Listed().certificates[:3]}
crossed = [Listed.entry(0), Listed.entry(1, SEATS[2][3]), *Listed().entries[2:]]
cases = [own.case() for own in (Listed(), relisted(set=[0, 1, 3]), relisted(mask_keys=[]))]
cases.append(relisted(excluded={1: [(place(1), 6)]}).case())
r.write(TARGET, "receipts.json", cases, 3)
r.write(TARGET, "receipts_bad_content.json", [
    relisted(call_by=STRANGER).case("NotTheService"),
    relisted(list_by=STRANGER).case("NotTheService"),
    relisted(entries=Listed().entries[::-1]).case("Entry"),
    relisted(entries=crossed).case("EntryKey"),
    relisted(certificates=Listed().certificates[::-1]).case("Certificate"),
    relisted(terms_id=fixed("other terms")).case("Malformed"),
    # A list that the service signed, and for which the members have signed nothing.
    relisted(**all_but_one).case("OtherPlan"),
    relisted(list_window=NEXT).case("OtherPlan"),
    relisted(masks=varint(2) + bytes([1])).case("UnsafeMasks"),
    relisted(keys=[SEATS[p][1] for p in (0, 1, 3, 2)]).case("Signature"),
    relisted(off=1).case("CheckWord"),
], 3)

# The members of a list have signed it, and the plan that it is shown for is another.
listed = Listed()
bad.append({**changed().case("OtherList"), "receipt": listed.receipt().hex()})
r.write(TARGET, "receipts_bad_content.json", [{**DEPLOYMENT, **case} for case in bad], 2)

whole = listed.receipt()
r.write(TARGET, "receipts_bad_form.json", [
    {"receipt": whole[:-1].hex(), "error": "Malformed"},
    {"receipt": (whole + b"\x00").hex(), "error": "Malformed"},
    # With a list under the version of receipts without, and the other way round.
    {"receipt": (b"\x02" + whole[1:]).hex(), "error": "Malformed"},
    {"receipt": (b"\x03" + honest.receipt()[1:]).hex(), "error": "Malformed"},
], 3)
