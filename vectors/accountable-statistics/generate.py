"""Known answers of accountable statistics: python3 generate.py TARGET."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import entries  # noqa: E402
import keys as k  # noqa: E402
import making  # noqa: E402
import tuples as t  # noqa: E402
import uploads as u  # noqa: E402
from ristretto import decode  # noqa: E402
from tuples import B, M, ORDER, Binding, Interval, Terms, Tuple, r, scalar  # noqa: E402

TARGET = sys.argv[1]
KEY = 1234567890123456789012345678901234567890 * B
AGGREGATE = r.labelled_hash("alpheus/vector/v1", [b"aggregate"])
# A key of one upload.
EPHEMERAL = u.Key(bytes(range(32))).bytes
BINDING = Binding(t.hash_to_element("alpheus/vector/v1", [b"tag"]), AGGREGATE, EPHEMERAL)
BYTE = Interval(-100, 155, True)
PLAIN = Interval(0, 15, False)
BETWEEN = Interval(10, 20, True)


def write(name, cases):
    r.write(TARGET, name, cases)


def case(terms, binding, **more):
    return {"key": terms.key.encode().hex(), **terms.interval.json(), "binding": binding.json(), **more}


def digests():
    write("terms.json", [
        case(Terms(KEY, interval), BINDING, terms_digest=Terms(KEY, interval).digest.hex(),
             binding_digest=BINDING.digest.hex(), message_base=M.encode().hex())
        for interval in (BYTE, PLAIN, BETWEEN)
    ])


def tuples():
    cases = []
    for interval, values in ((BYTE, (-100, 155, 0, None)), (PLAIN, (15, None)), (BETWEEN, (10, 20, 15, None)),
                             (Interval(0, 65_535, True), (65_535,)), (Interval(0, 100_000, True), (100_000, None))):
        terms = Terms(KEY, interval)
        for value in values:
            one = Tuple(terms, BINDING, value, f"{interval.bits} {value}")
            assert one.statement().false(one.witness()) == []
            cases.append(case(terms, BINDING, value=value, randomness=one.randomness,
                              range=one.range.hex(), tuple=one.bytes.hex(), digest=one.digest().hex()))
    write("tuple.json", cases)


def refused(alter, false, error="Statement", terms=None, value=9, leave_out=None, lie=None):
    """A tuple of which exactly the given equations do not hold."""
    terms = terms or Terms(KEY, BYTE)
    one = Tuple(terms, BINDING, value, "refused", alter, leave_out, lie)
    found = one.statement().false(one.witness())
    assert found == false, (found, false)
    return case(terms, BINDING, tuple=one.bytes.hex(), error=error)


def shifted(name, by=B):
    return lambda one: one.shift.__setitem__(name, by)


def no_bit(one):
    """c = 2, v' = 0, and a witness for all but the bit."""
    one.c, one.v = 2, 0
    one.witness_shift["sv"] = -one.rv


def full_dummy(one):
    one.c = 0


def other_square(one):
    one.squared = one.v + 1
    one.witness_shift = {}


TAMPERED = [(shifted("R_v"), 0), (shifted("C_v"), 1), (shifted("R_c"), 2), (shifted("C_c"), 3),
          (no_bit, 4), (full_dummy, 5), (shifted("C_q"), 6), (shifted("R_q"), 7)]


def false_equations():
    write("tuple_bad_equation.json", [
        refused(alter, [j], leave_out=out) for alter, j in TAMPERED for out in (None, j)
    ] + [refused(other_square, [6, 7])])


def set_value(value):
    return lambda one: setattr(one, "v", value)


def top_bit_two(values):
    """256 as 2 · 2⁷: no bit, but a sum of powers."""
    left = [0] * 7 + [2]
    assert sum(b << i for i, b in enumerate(left)) == values[0]
    return {"left": left}


def right_off(values):
    """The same, with a_R so that every product is 0."""
    return {"left": [0] * 7 + [2], "right": [-1] * 7 + [0]}


def minus_one(values):
    return {"left": [-1] + [0] * 7}


def second_negative(values):
    """Two-sided: 11 among 0..=10 fits the bits; w − v' = −1 does not."""
    assert values == [11, -1]
    return {"left": [1, 1, 0, 1, -1, 0, 0, 0]}


def second_wrapped(values):
    return {"left": [1, 1, 0, 1, 1, 1, 1, 1]}


def beyond():
    between = Terms(KEY, BETWEEN)
    wide = [refused(set_value(256), [], "Range", lie=lie) for lie in (top_bit_two, right_off, None)]
    below = [refused(set_value(-1), [], "Range", lie=lie) for lie in (minus_one, None)]
    sided = [refused(set_value(11), [], "Range", between, 10, lie=lie)
             for lie in (second_negative, second_wrapped)]
    write("tuple_bad_range.json", wide + below + sided + beyond_wide())


def beyond_wide():
    """w + 1, of 16 bits and of the two-sided 32 bits of a speed in thousandths."""
    short = Terms(KEY, Interval(0, 65_535, True))
    speed = Terms(KEY, Interval(0, 100_000, True))

    def top(values):
        assert values == [65_536]
        return {"left": [0] * 15 + [2]}

    def negative(values):
        assert values == [100_001, -1]
        return {"left": [100_001 >> i & 1 for i in range(32)] + [-1] + [0] * 31}

    def wrapped(values):
        return {"left": [100_001 >> i & 1 for i in range(32)] + [1] * 32}

    return [refused(set_value(65_536), [], "Range", short, 9, lie=top), *(refused(set_value(100_001), [], "Range", speed, 9, lie=lie)
                      for lie in (negative, wrapped))]


def misplaced():
    terms = Terms(KEY, BYTE)
    good = Tuple(terms, BINDING, 3, "good")
    other = Tuple(terms, BINDING, 3, "other")
    tag, aggregate = BINDING.fields[:2]
    element = t.hash_to_element("alpheus/vector/v1", [b"other tag"])
    this = t.hash_to_element("alpheus/vector/v1", [b"tag"])
    assert this.encode() == tag
    elsewhere = [
        Binding(element, aggregate, EPHEMERAL), Binding(this, bytes(32), EPHEMERAL),
        Binding(this, aggregate, u.Key(bytes(32)).bytes),
    ]
    whole = good.bytes.hex()
    write("tuple_bad_binding.json", [
        case(terms, binding, tuple=whole, error="Statement") for binding in elsewhere
    ] + [case(Terms(KEY + B, BYTE), BINDING, tuple=whole, error="Statement"),
         case(Terms(KEY, Interval(-101, 154, True)), BINDING, tuple=whole, error="Statement")])
    parts = good.ciphertexts() + good.proof
    write("tuple_bad_mixed.json", [
        case(terms, BINDING, tuple=(parts + other.range).hex(), error="Range"),
        case(terms, BINDING, error="Statement",
             tuple=(good.ciphertexts() + other.proof + good.range).hex()),
        case(terms, BINDING, error="Statement",
             tuple=(other.ciphertexts() + good.proof + good.range).hex()),
        case(terms, BINDING, error="Statement", tuple=multiple(good, 3).hex()),
    ])


def multiple(one, by):
    """Everything of a tuple that can be multiplied without knowing its secrets."""
    points = b"".join((by * e).encode() for e in one.elements())
    size = 32 * 8
    scaled = b"".join((by * decode(one.proof[i : i + 32])).encode() for i in range(0, size, 32))
    responses = one.proof[size:]
    scaled += b"".join(scalar(by * int.from_bytes(responses[i : i + 32], "little"))
                       for i in range(0, len(responses), 32))
    return points + scaled + one.range


def malformed():
    terms = Terms(KEY, BYTE)
    good = Tuple(terms, BINDING, 3, "good").bytes
    first = (6 + 8 + 7) * 32
    scalars = [0, 4, 5]

    cases = []
    for at in range(0, len(good), 32):
        in_range = at >= first
        is_scalar = 14 * 32 <= at < first or in_range and (at - first) // 32 in scalars
        chunks = [b"\xff" * 32, ORDER.to_bytes(32, "little") if is_scalar else bytes(32)]
        for chunk in chunks:
            error = "NotCanonical" if chunk[0] else "Identity"
            if in_range:
                error = "Range"
            elif is_scalar:
                error = f"Proof(Response({error}))"
            else:
                error = f"Element({error})" if at < 6 * 32 else f"Proof(Commitment({error}))"
            cases.append({"at": at, "chunk": chunk.hex(), "error": error})
    write("tuple_bad_encoding.json", [case(terms, BINDING, tuple=good.hex(), cases=cases)])
    write("tuple_bad_length.json", [
        case(terms, BINDING, tuple=data.hex(), error="Length")
        for data in (b"", good[:31], good[:-1], good + b"\0", good[:-64])
    ] + [case(Terms(KEY, PLAIN), BINDING, tuple=good.hex(), error="Length")])


def generated_keys():
    cases = []
    for members, threshold in ((1, 1), (4, 2), (7, 3)):
        ceremony = k.Ceremony(members, threshold)
        dealers = [k.Dealer(ceremony, member) for member in range(members)]
        cases.append({
            **ceremony.json(),
            "dealers": [{"randomness": d.randomness, "dealing": d.bytes.hex(), "pledge": d.pledge().hex(),
                         "shares": [scalar(d.share(m)).hex() for m in range(members)]} for d in dealers],
            "settled": k.Settled(ceremony, dealers).json(),
            "without_first": k.Settled(ceremony, dealers[1:]).json() if threshold > 1 else None,
        })
    write("key.json", cases)
    ceremony = k.Ceremony(4, 2)
    dealer, liar = k.Dealer(ceremony, 1), k.Dealer(ceremony, 1, knows=False)
    earlier = k.Dealer(k.Ceremony(4, 2, attempt=2), 1)

    def bad(data, error, pledge=None):
        pledge = dealer.pledge(data) if pledge is None else pledge
        return {"dealer": 1, "dealing": data.hex(), "pledge": pledge.hex(), "error": error}

    good = dealer.bytes
    write("dealing_bad.json", [{**ceremony.json(), "cases": [
        bad(liar.bytes, "Proof"),
        bad(k.Dealer(ceremony, 2).bytes, "Proof"),
        bad(earlier.bytes, "Proof"),
        bad(earlier.bytes, "NotPledged", pledge=earlier.pledge()),
        bad(good[:32] + dealer.commitments[0].encode() + good[64:], "Proof"),
        bad(good, "NotPledged", pledge=k.Dealer(ceremony, 2).pledge()),
        bad(good, "NotPledged", pledge=dealer.pledge(good[:-1])),
        bad(good[:-1], "Malformed"), bad(good + b"\0", "Malformed"), bad(b"", "Malformed"),
        *(bad(good[:at] + chunk + good[at + 32 :], "Malformed")
          for at in range(0, 96, 32) for chunk in (bytes(32), b"\xff" * 32)),
        bad(good[:96] + ORDER.to_bytes(32, "little") + good[128:], "Malformed"),
    ]}])


def partial_decryptions():
    ceremony = k.Ceremony(4, 2)
    settled = k.Settled(ceremony, [k.Dealer(ceremony, member) for member in range(4)])
    terms, context = Terms(settled.key, BYTE), r.labelled_hash("alpheus/vector/v1", [b"context"])
    values = (-100, 155, 0, None)
    given = [Tuple(terms, BINDING, value, f"partial {value}") for value in values]
    total = lambda elements: elements[0] + elements[1] + elements[2] + elements[3]  # noqa: E731
    offsets = [v + 100 for v in values if v is not None]
    expected = [len(offsets), sum(offsets), sum(v * v for v in offsets)]
    parts = [("R_c", "C_c"), ("R_v", "C_v"), ("R_q", "C_q")]
    sums = [[total([getattr(one, name) for one in given]) for name in pair] for pair in parts]
    base = {"committee": ceremony.committee.json(), "tuples": [one.bytes.hex() for one in given],
            "context": context.hex(), "binding": BINDING.json(), **BYTE.json()}
    cases = []
    for part, number in enumerate(expected):
        partials = [k.Partial(settled, m, part, sums[part], context, f"{part} {m}") for m in range(4)]
        for members in ((0, 1), (1, 3), (2, 3)):
            opened = k.combine(members, [partials[m] for m in members], sums[part])
            assert opened == number * M
        cases.append({"part": part, "number": number, "opened": (number * M).encode().hex(),
                      "randomness": [p.randomness for p in partials],
                      "partials": [p.bytes.hex() for p in partials]})
    write("partial.json", [{**base, "cases": cases}])
    good = k.Partial(settled, 2, 0, sums[0], context, "good").bytes

    def bad(data, error):
        return {"partial": data.hex(), "error": error}

    wrong = [k.Partial(settled, 2, 0, sums[0], context, "wrong", secret, out).bytes
             for secret in (settled.shares[1], settled.shares[2] + 1) for out in (None, 0, 1)]
    cases = [
        *(bad(data, "Wrong(2)") for data in wrong),
        bad(k.Partial(settled, 2, 0, sums[0], bytes(32), "context").bytes, "Wrong(2)"),
        bad(k.Partial(settled, 2, 1, sums[0], context, "part").bytes, "Wrong(2)"),
        bad(k.Partial(settled, 2, 0, sums[1], context, "sum").bytes, "Wrong(2)"),
        bad(t.number(1, 2) + good[2:], "Wrong(1)"), bad(t.number(4, 2) + good[2:], "NoMember(4)"),
        *(bad(good[:at] + chunk + good[at + 32 :], "Malformed")
          for at in range(2, 98, 32) for chunk in (bytes(32), b"\xff" * 32)),
        bad(good[:-32] + ORDER.to_bytes(32, "little"), "Malformed"),
        *(bad(good[:n], "Malformed") for n in (0, 1, 2, 34, len(good) - 1)),
        bad(good + b"\0", "Malformed"),
    ]
    write("partial_bad.json", [{**base, "part": 0, "cases": cases}])


digests()
tuples()
false_equations()
beyond()
misplaced()
malformed()
generated_keys()
write("making.json", making.good())
write("making_bad.json", making.bad())
write("entry.json", entries.good(AGGREGATE))
write("entry_bad.json", entries.bad(AGGREGATE))
write("upload_key.json", u.good(AGGREGATE))
write("upload_key_bad_disclosure.json", u.bad())
write("upload_key_bad_signature.json", u.bad_signatures())
partial_decryptions()
