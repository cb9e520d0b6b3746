"""Known answers of bounded windows: python3 generate.py TARGET. After crates/bounded-influence/docs/protocol.md."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
for directory in (HERE.parent, HERE.parent / "anonymous-credential", HERE.parent / "accountable-statistics"):
    sys.path.insert(0, str(directory))
import reference as r  # noqa: E402
from bulletproofs import Prover  # noqa: E402
from protocol import G, H, Stream, hash_to_scalar, number, scalar  # noqa: E402
from ristretto import ORDER  # noqa: E402

TARGET = sys.argv[1]
PREFIX = "alpheus/bounded/"


def digest(label, parts):
    return r.labelled_hash(f"{PREFIX}{label}/v1", parts)


def fixed(name, length=32):
    return r.labelled_hash("alpheus/vector/v1", [name.encode()])[:length]


class Form:
    """Σ factor · cell + constant."""

    def __init__(self, factors, constant=0):
        self.factors, self.constant = factors, constant
        self.bytes = b"".join(number(n, 16) for n in [*factors, constant])

    def of(self, cells):
        return sum(f * cell for f, cell in zip(self.factors, cells)) + self.constant

    def blinding(self, blindings):
        return sum(f * b for f, b in zip(self.factors, blindings)) % ORDER

    def commitment(self, cells):
        total = self.constant * G
        for factor, cell in zip(self.factors, cells):
            total = total + factor * cell
        return total


class Terms:
    """`cells` are (least, most, noise); `relations` (count, sum, squares or None, least, most)."""

    def __init__(self, cells, relations):
        self.cells, self.relations = cells, relations
        owner, most = self.of_owner()
        self.owner, self.owner_bits = self.padded(owner, most)
        noise = [form for at, cell in enumerate(cells)
                 for form in (self.form({at: 1}, cell[2]), self.form({at: -1}, cell[2]))]
        self.noise, self.noise_bits = self.padded(noise, max(2 * cell[2] for cell in cells))
        self.digest = digest("terms", [
            number(len(cells)), number(self.owner_bits) + number(len(self.owner)),
            b"".join(form.bytes for form in self.owner),
            number(self.noise_bits) + number(len(self.noise)),
            b"".join(form.bytes for form in self.noise)])

    def form(self, factors, constant=0):
        return Form([factors.get(at, 0) for at in range(len(self.cells))], constant)

    def of_owner(self):
        forms, most = [], 1
        above, below = {}, {}
        for count, total, squares, low, high in self.relations:
            events = self.cells[count][1]
            above.setdefault(total, []).append(min(0, events * low))
            below.setdefault(total, []).append(max(0, events * high))
            if squares is not None:
                below.setdefault(squares, []).append(events * max(low * low, high * high))
        for at, (least, highest, _) in enumerate(self.cells):
            if not any(bound >= least for bound in above.get(at, [])):
                forms, most = forms + [self.form({at: 1}, -least)], max(most, highest - least)
            if not any(bound <= highest for bound in below.get(at, [])):
                forms, most = forms + [self.form({at: -1}, highest)], max(most, highest - least)
        for count, total, squares, low, high in self.relations:
            events, width = self.cells[count][1], high - low
            forms += [self.form({total: 1, count: -low}), self.form({count: high, total: -1})]
            most = max(most, events * width)
            if squares is not None:
                forms += [self.form({total: low + high, count: -low * high, squares: -1})]
                most = max(most, events * -(-width * width // 4))
        return forms, most

    def padded(self, forms, most):
        bits = next(bits for bits in (8, 16, 32, 64) if most < 1 << bits)
        while len(forms) & (len(forms) - 1):
            forms = forms + [forms[-1]]
        return forms, bits

    def json(self):
        return {"cells": [[str(n) for n in cell] for cell in self.cells],
                "relations": [list(relation) for relation in self.relations]}


class Scope:
    def __init__(self, terms, name, **changed):
        self.terms = terms.digest
        self.fields = {"plan": fixed(f"plan {name}"), "start": 1_700_000_000_000_000, "end": 1_700_000_060_000_000,
                       "epoch": 7, "cohort": 2, "membership": fixed(f"membership {name}")} | changed
        f = self.fields
        self.digest = digest("scope", [f["plan"], terms.digest, number(f["start"]), number(f["end"]),
                                       number(f["epoch"]), number(f["cohort"], 4), f["membership"]])

    def json(self):
        return {k: v.hex() if isinstance(v, bytes) else v for k, v in self.fields.items()}

    def encoded(self):
        f = self.fields
        numbers = b"".join(postcard(f[name]) for name in ("start", "end", "epoch", "cohort"))
        return f["plan"] + self.terms + numbers + f["membership"]


def postcard(count):
    """A number in groups of seven bits."""
    out = b""
    while count >= 128:
        out, count = out + bytes([count % 128 + 128]), count // 128
    return out + bytes([count])


def many(items):
    return postcard(len(items)) + b"".join(items)


def share(values, blinds):
    return many([scalar(v) for v in values]) + many([scalar(b) for b in blinds])


def one(commitments, proof):
    return many([bytes.fromhex(c) for c in commitments]) + many([bytes([b]) for b in bytes.fromhex(proof)])


def committed(values, blindings):
    return [value * G + blinding * H for value, blinding in zip(values, blindings)]


def blindings(secret, whose, controller, values):
    data = b"".join(number(value, 16) for value in values)
    return [hash_to_scalar(f"{PREFIX}blinding/v1", [secret, whose, number(controller, 4), number(cell, 4), data])
            for cell in range(len(values))]


def encoded(elements):
    return b"".join(element.encode() for element in elements)


def prove(forms, bits, commitments, values, blinds, bound, stream, lie=None):
    """`lie` replaces the digits of the forms' values."""
    found = [form.of(values) for form in forms]
    left = lie(found) if lie else None
    prover = Prover(G, H, bits, [form.commitment(commitments) for form in forms], found,
                    [form.blinding(blinds) for form in forms], stream, left)
    return prover.prove(f"{PREFIX}range/v1".encode(), bound)


class Contribution:
    """What a controller commits to. Owners are (name, values)."""

    def __init__(self, name, terms, owners, controller=3, secret="secret", lie=None, scope=None, forms=None):
        self.terms, self.scope, self.controller = terms, scope or Scope(terms, name), controller
        self.secret, self.stream = fixed(secret), Stream(f"bounded {name}")
        self.inputs = [(fixed(owner), values) for owner, values in owners]
        drafts = []
        for owner, values in self.inputs:
            blinds = blindings(self.secret, b"owner" + self.scope.digest + owner, controller, values)
            drafts.append((committed(values, blinds), values, blinds))
        drafts.sort(key=lambda draft: draft[0][0].encode())
        statement = digest("owners", [self.scope.digest, number(controller, 4),
                                      b"".join(encoded(draft[0]) for draft in drafts)])
        self.owners = []
        for at, (commitments, values, blinds) in enumerate(drafts):
            bound = digest("owner", [statement, number(at, 4)])
            proof = prove(forms or terms.owner, terms.owner_bits, commitments, values, blinds, bound, self.stream, lie)
            self.owners.append([[element.encode().hex() for element in commitments], proof.hex()])
        cells = range(len(terms.cells))
        sums = [[sum(draft[part][cell] for draft in drafts) for cell in cells] for part in (1, 2)]
        self.sums = [[scalar(n).hex() for n in part] for part in sums]
        self.encoded = (self.scope.encoded() + postcard(controller) + share(*sums)
                        + many([one(*owner) for owner in self.owners]))

    def json(self, error=None, counted=None, listed=None):
        many = len(self.owners)
        case = {"terms": self.terms.json(), "terms_digest": self.terms.digest.hex(), "scope": self.scope.json(),
                "scope_digest": self.scope.digest.hex(), "controller": self.controller,
                "counted": many if counted is None else counted, "listed": many if listed is None else listed,
                "owners": [{"commitments": c, "proof": p} for c, p in self.owners]}
        if error:
            return case | {"error": error}
        return case | {"secret": self.secret.hex(), "encoded": self.encoded.hex(), "sums": self.sums,
                       "inputs": [[owner.hex(), [str(v) for v in values]] for owner, values in self.inputs]}


ONE = Terms([(-20, 100, 3)], [])
WIDE = Terms([(-100, 20, 3)], [])
TWO = Terms([(0, 3, 0), (-6, 15, 0)], [(0, 1, None, -2, 5)])
THREE = Terms([(0, 3, 3), (-6, 15, 3), (0, 75, 3)], [(0, 1, 2, -2, 5)])


def pad_of(key, label, parts, cells):
    words = r.mask_pad(key, digest(label, parts)[:30], 16 * cells)
    data = b"".join(word.to_bytes(8, "little") for word in words)
    return [int.from_bytes(data[64 * at:64 * at + 64], "little") % ORDER for at in range(2 * cells)]


def edges():
    """The controller at 1 with those at 0 and 2, of whom each shares a key with it."""
    keys, opening_set, scope, cells = [fixed("key 0", 16), fixed("key 2", 16)], fixed("set"), Scope(TWO, "edges"), 2
    body, lists = [], []
    for other, key in zip((0, 2), keys):
        mask = pad_of(key, "mask", [scope.digest], cells)
        opening = pad_of(key, "open", [scope.digest, opening_set], cells)
        elements = committed(*[[m - o for m, o in zip(mask[part], opening[part])]
                               for part in (slice(0, cells), slice(cells, None))])
        lists.append([e.encode().hex() for e in elements])
        body.append(postcard(other) + many([e.encode() for e in elements]))
    pad = pad_of(fixed("key", 16), "consumer", [scope.digest], cells)
    consumer = committed(pad[:cells], pad[cells:])
    message = (scope.encoded() + postcard(1) + opening_set + many(body)
               + b"\x01" + many([e.encode() for e in consumer]))
    return [{"terms": TWO.json(), "scope": scope.json(), "set": opening_set.hex(), "keys": [k.hex() for k in keys],
             "consumer_key": fixed("key", 16).hex(), "edges": lists,
             "consumer_pad": [e.encode().hex() for e in consumer], "encoded": message.hex()}]


def edges_bad():
    """Statements of the controller at 1 of three, whose share is what it commits to. The first is valid."""
    keys, opening_set, scope, cells = [fixed("key 0", 16), fixed("key 2", 16)], fixed("set"), Scope(TWO, "edges"), 2

    def own(key):
        mask, opening = pad_of(key, "mask", [scope.digest], cells), pad_of(key, "open", [scope.digest, opening_set], cells)
        difference = [m - o for m, o in zip(mask, opening)]
        return committed(difference[:cells], difference[cells:])

    def case(error, stated, left_out=()):
        body = [postcard(other) + many([e.encode() for e in elements]) for other, elements in stated]
        message = scope.encoded() + postcard(1) + opening_set + many(body) + b"\x00"
        return {"terms": TWO.json(), "scope": scope.json(), "set": opening_set.hex(), "keys": [k.hex() for k in keys],
                "encoded": message.hex(), "left_out": [list(ends) for ends in left_out], "error": error}

    first, second = [(other, own(key)) for other, key in zip((0, 2), keys)]
    moved = (2, [second[1][0] + G, second[1][1] - G])
    return [case(None, [first, second]), case("Malformed", [second, first]), case("Malformed", [first, first, second]),
            case("Malformed", [first, (1, second[1]), second]), case("Malformed", [first, second, (3, second[1])]),
            case("Malformed", [first, (2, second[1][:1])]), case("Malformed", [first, (2, second[1] + [G])]),
            case("Malformed", [first, second], [(0, 1)]), case("Unbalanced", [second]),
            case("Unbalanced", [(0, second[1]), (2, first[1])]), case("Unbalanced", [first, moved])]


def rounds():
    """For fuzzing, one after the other: a contribution without owners, its opening, and two statements of its sender."""
    contribution, opening_set = Contribution("none", ONE, []), fixed("set")
    head = contribution.scope.encoded() + postcard(contribution.controller) + opening_set
    statements = [head + many(edges) + b"\x00" for edges in ([], [postcard(0) + many([G.encode()])])]
    message = contribution.encoded + head + fixed("contribution") + share([1], [2]) + b"\x00" + many(statements)
    return [{"encoded": message.hex()}]


def pads():
    key, other, scope = fixed("key", 16), fixed("set"), Scope(ONE, "pads")

    def pad(label, parts):
        return [scalar(n).hex() for n in pad_of(key, label, parts, 2)]
    return [{"key": key.hex(), "scope": scope.json(), "terms_digest": ONE.digest.hex(), "set": other.hex(),
             "mask": pad("mask", [scope.digest]), "open": pad("open", [scope.digest, other]),
             "consumer": pad("consumer", [scope.digest])}]


def proven_noise(scope, opening_set, controller, values, lie=None):
    """Blindings, commitments and proof of a controller's noise."""
    terms, secret, stream = ONE, fixed("secret"), Stream(f"bounded noise {values[0]}" if lie else "bounded noise")
    blinds = blindings(secret, b"noise" + scope.digest + opening_set, controller, values)
    elements = committed(values, blinds)
    bound = digest("noise", [scope.digest, number(controller, 4), opening_set, encoded(elements)])
    return blinds, elements, prove(terms.noise, terms.noise_bits, elements, values, blinds, bound, stream, lie)


def noise_bad():
    """Openings of a controller without owners. The first is valid; `proof` is null if there is none."""
    scope, opening_set, values, controller = Scope(ONE, "noise"), fixed("set"), [-3], 5

    def case(error, made, scope=scope, opening_set=opening_set, controller=controller, **changed):
        _, elements, proof = made
        return {"terms": ONE.json(), "scope": scope.json(), "set": opening_set.hex(), "controller": controller,
                "commitments": [e.encode().hex() for e in elements], "proof": proof.hex(), "error": error} | changed

    good = proven_noise(scope, opening_set, controller, values)
    blinds, elements, proof = good
    another = proven_noise(scope, opening_set, controller, [2])
    cases = [case(None, good), case("Noise", good, opening_set=fixed("other set")), case("Noise", good, controller=6),
             case("Noise", good, scope=Scope(ONE, "other")), case("Noise", (blinds, another[1], proof)),
             case("Noise", good, proof=None), case("Noise", good, proof="00" * len(proof)),
             case("Cells", good, commitments=[e.encode().hex() for e in elements * 2])]
    # One more than the range, and one less.
    return cases + [case("Noise", proven_noise(scope, opening_set, controller, [value], digits)) for value in (4, -4)]


def noise():
    terms, secret, opening_set, values, controller = ONE, fixed("secret"), fixed("set"), [-3], 5
    scope = Scope(terms, "noise")
    blinds, elements, proof = proven_noise(scope, opening_set, controller, values)
    contribution = fixed("contribution")
    message = (scope.encoded() + postcard(controller) + opening_set + contribution + share(values, blinds)
               + b"\x01" + one([e.encode().hex() for e in elements], proof.hex()))
    return [{"terms": terms.json(), "scope": scope.json(), "secret": secret.hex(), "set": opening_set.hex(),
             "contribution": contribution.hex(), "encoded": message.hex(),
             "controller": controller, "values": [str(v) for v in values],
             "commitments": [e.encode().hex() for e in elements], "proof": proof.hex(),
             "blindings": [scalar(b).hex() for b in blinds]}]


def digits(found):
    """The lowest digit carries what does not fit: it is no bit."""
    return [digit for value in found for digit in [value - (value & 254 if value >= 0 else 0)] +
            [value >> i & 1 if value >= 0 else 0 for i in range(1, 8)]]


def bad():
    two = [("a", [7]), ("b", [100])]
    good = Contribution("one", ONE, two)
    cases = [good.json("Owners", counted=3, listed=3), good.json("Owners", counted=1), good.json("Counted", listed=1)]
    turned = Contribution("one", ONE, two)
    turned.owners.reverse()
    twice = Contribution("one", ONE, two)
    twice.owners[1] = twice.owners[0]
    cases += [turned.json("Order"), twice.json("Order")]
    # Digits that are no bits: above and below the bounds.
    cases += [Contribution(f"value {value}", ONE, [("a", [value])], lie=digits).json("Range") for value in (101, -21)]
    # Proven for other bounds, another window, another place.
    cases += [Contribution("forms", ONE, [("a", [-50])], forms=WIDE.owner).json("Range")]
    other = Contribution("one", ONE, two)
    other.scope = Scope(ONE, "other")
    moved = Contribution("one", ONE, two, controller=3)
    moved.controller = 4
    swapped = Contribution("one", ONE, two)
    swapped.owners[0][1], swapped.owners[1][1] = swapped.owners[1][1], swapped.owners[0][1]
    cases += [other.json("Range"), moved.json("Range"), swapped.json("Range")]
    # Of a scope that differs in one field.
    for change in ({"plan": fixed("plan other")}, {"start": 1_700_000_000_000_001}, {"end": 1_700_000_060_000_001},
                   {"epoch": 8}, {"cohort": 3}, {"membership": fixed("membership other")}):
        changed = Contribution("one", ONE, two)
        changed.scope = Scope(ONE, "one", **change)
        cases.append(changed.json("Range"))
    # At most three events from -2 to 5. Each of these breaks one bound, by one.
    cases += [Contribution(f"three {values}", THREE, [("a", values)], lie=digits).json("Range")
              for values in ([2, 3, 30], [2, -5, 5], [2, 11, 53], [2, 3, -1], [4, 3, 29])]
    short, zeros, few = (Contribution("one", ONE, two) for _ in range(3))
    short.owners[0][1] = short.owners[0][1][:-2]
    zeros.owners[0][1] = "00" * (len(zeros.owners[0][1]) // 2)
    few.owners[1][0] = few.owners[1][0] * 2
    return cases + [short.json("Range"), zeros.json("Range"), few.json("Cells")]


r.write(TARGET, "pads.json", pads())
r.write(TARGET, "noise.json", noise())
r.write(TARGET, "edges.json", edges())
r.write(TARGET, "contributions.json", [
    Contribution("one", ONE, [("a", [7]), ("b", [100]), ("c", [-20])]).json(),
    Contribution("none", ONE, []).json(),
    Contribution("two", TWO, [("a", [3, 15]), ("b", [2, -4])], controller=0).json(),
    Contribution("three", THREE, [("a", [2, 3, 29])]).json()])
r.write(TARGET, "contributions_bad.json", bad())
r.write(TARGET, "noise_bad.json", noise_bad())
r.write(TARGET, "edges_bad.json", edges_bad())
r.write(TARGET, "rounds.json", rounds())
