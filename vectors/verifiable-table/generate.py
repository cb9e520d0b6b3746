"""Known answers of the verifiable table: python3 generate.py TARGET."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import pairing as s5  # noqa: E402
import table as t  # noqa: E402
from table import Ring, Stream, Table, digest, little, pack, r  # noqa: E402

TARGET = sys.argv[1]
Q = t.primes(1 << 51, -1, 1 << 14, 4)
Q_WIDE = t.primes(1 << 51, -1, 1 << 15, 5)
T60 = t.primes(1 << 30, -1, 1 << 14, 2)
T84 = t.primes(1 << 42, 1, 1 << 14, 2)
T84_WIDE = t.primes(1 << 42, 1, 1 << 15, 2)
SETS = {
    "L128": (4096, Q[:2], T60), "S128": (8192, Q[:3], T60), "X128": (8192, Q, T84),
    "W128": (16384, Q_WIDE, T84_WIDE), "C80": (4096, Q[:3], T60),
}
KEY, SEGMENT = bytes(range(32)), bytes(range(32, 48))
DATA_SET = t.data_set_of(KEY)


def write(name, cases):
    r.write(TARGET, name, cases)


def parameters():
    write("parameters.json", [
        {"name": name, "n": n, "q": q, "t": plain} for name, (n, q, plain) in SETS.items()
    ])


def words_digest(words):
    return digest(b"".join(word.to_bytes(8, "little") for word in words))


def transforms():
    """Coefficients are a key stream's residues; values are digested, the first shown."""
    cases = []
    for n, p in [(512, Q[0]), (512, T60[1]), (1024, T84[0]), (8192, Q[3]), (16384, Q_WIDE[4])]:
        ring = Ring("ntt", n, [p], [])
        coefficients = Stream(bytes(16), n).residues(p, n)
        values = ring.values(coefficients, p)
        assert ring.coefficients(values, p) == coefficients
        cases.append({"n": n, "p": p, "first": values[:4], "values": words_digest(values)})
    write("ntt.json", cases)


def ring_of(name):
    return Ring(name, *SETS[name])


def rows_of(n):
    """Column 0 is signed, column 1 has empty cells."""
    x = [(i * 7919) % 2001 - 1000 for i in range(n)]
    y = [None if i % 5 == 3 else (i * i) % 777 for i in range(n)]
    return x, y


def blocks():
    """A block of two declared columns, one optional, one registered pair: stored are
    x, y, the presence of y, and x beside y; products x², y², xy and x·(x beside y)."""
    cases = []
    for name, order in (("L128", 1), ("S128", 3)):
        ring = ring_of(name)
        table = Table(ring, KEY, DATA_SET, order)
        x, y = rows_of(ring.n)
        columns = [
            x, [v or 0 for v in y], [int(v is not None) for v in y],
            [0 if v is None else u for u, v in zip(x, y)],
        ]
        products = [(0, 0), (0, 1), (0, 3), (1, 1)]
        drawn = bytes(range(48, 48 + 128))
        fresh = [drawn[32 * i : 32 * i + 32] for i in range(4)]
        data, ciphertexts = table.block(SEGMENT, 0, columns, products, fresh)
        linear = table.tag(SEGMENT, 0, (0, 3, 0), 0, ciphertexts[3])
        square = table.tag(SEGMENT, 0, (1, 0, 3), 0, table.product(ciphertexts[0], ciphertexts[3]))
        cases.append({
            "set": name, "order": order, "length": len(data), "block": digest(data),
            "seed": data[45:77].hex(), "c0": [limb[:2] for limb in ciphertexts[0][0]],
            "tag_beside": little(linear).hex(), "tag_product": little(square).hex(),
        })
    write("block.json", cases)


def answers():
    """The sum of one block is that block: its answer, and forgeries of it."""
    ring = ring_of("L128")
    table = Table(ring, KEY, DATA_SET, 1)
    column = [(i * 31) % 500 for i in range(ring.n)]
    kind = (0, 0, 0)
    _, c = table.encrypt(SEGMENT, 0, 0, kind, column, bytes(range(48, 80)))
    tag = table.tag(SEGMENT, 0, kind, 0, c)
    good = b"".join(pack(component) for component in c) + little(tag)
    write("answer.json", [{"answer": digest(good), "length": len(good), "sum": sum(column)}])
    hidden = [[list(limb) for limb in component] for component in c]
    hidden[1][1][4000] = (hidden[1][1][4000] + 1) % ring.q[1]
    raised = [[list(limb) for limb in component] for component in c]
    raised[0][0][9] = ring.q[0]
    other = table.tag(SEGMENT, 0, kind, 1, c)
    epoch = table.tag(SEGMENT, 1, kind, 0, c)
    column_1 = table.tag(SEGMENT, 0, (0, 1, 0), 0, c)
    plain = table.hash(c)

    def case(why, components=c, by=tag, cut=0, more=b""):
        data = b"".join(pack(component) for component in components) + little(by) + more
        data = data[: len(data) - cut]
        places = [at for at in range(min(len(data), len(good))) if data[at] != good[at]]
        changed = {str(at): data[at] for at in places}
        return {"why": why, "length": len(data), "changed": changed, "error": "Rejected"}

    write("answer_bad_tag.json", [
        case("the tag of another number", by=other), case("the tag of another epoch", by=epoch),
        case("the tag of another column", by=column_1), case("the hash without a mask", by=plain),
        case("one residue of one limb", components=hidden),
    ])
    write("answer_bad_bytes.json", [
        case("a residue that is not canonical", components=raised),
        case("a tag word that is not canonical", by=[ring.q[0], *tag[1:]]),
        case("cut by one", cut=1), case("a byte more", more=b"\0"),
    ])


def states():
    """An owner's records, sealed for the server twice: the second names the first."""
    records = [(b"\x80", b"schema"), (b"\x81\x00", bytes(range(200)) * 30), (b"\xff", b"")]
    fresh = [bytes(range(48, 80)), bytes(range(80, 112))]
    first, name = t.sealed_state(KEY, 1, SEGMENT, bytes(32), records[:1], fresh[0])
    second, last = t.sealed_state(KEY, 2, SEGMENT, name, records, fresh[1])
    pairs = [[key.hex(), value.hex()] for key, value in records]
    write("state.json", [
        {"version": version, "length": len(data), "state": digest(data), "name": own.hex(),
         "previous": before.hex(), "records": held}
        for version, data, own, before, held in (
            (1, first, name, bytes(32), pairs[:1]), (2, second, last, name, pairs),
        )
    ])

    def case(why, data):
        places = [at for at in range(min(len(data), len(second))) if data[at] != second[at]]
        runs = {}
        for at in places:
            runs[str(at)] = data[at]
        return {"why": why, "length": len(data), "changed": runs, "error": "Rejected"}

    def flipped(at):
        return second[:at] + bytes([second[at] ^ 1]) + second[at + 1 :]

    write("state_bad.json", [
        case("another format", flipped(0)), case("another table", flipped(1)),
        case("another version", flipped(24)), case("another segment", flipped(25)),
        case("another predecessor", flipped(41)), case("another name", flipped(73)),
        case("a bit of the records", flipped(105)), case("a bit of the tag", flipped(-1 % len(second))),
        case("cut by one", second[:-1]), case("a byte more", second + b"\0"),
        case("the header alone", second[:105]), case("nothing", b""),
    ])


def pairing_tables():
    """The paper's own scheme: a block of two columns, the sum of one and the sum of their
    product over two blocks, and forgeries."""
    n, _, t = SETS["X128"]
    drawn = bytes(range(32, 32 + 16 + 128))
    data_set, fresh = drawn[:16], [drawn[16 + 32 * i : 48 + 32 * i] for i in range(4)]
    owner, wider = (s5.Pairing("P80", n, t, KEY, data_set, 2, bound) for bound in (1000, 1001))
    item = lambda column, block, slot: (  # noqa: E731
        slot * 37 + column * 11 + block * 501) % 2001 - 1000
    made, data = [], []
    for block in (0, 1):
        columns = [[item(c, block, slot) for slot in range(n)] for c in (0, 1)]
        whole, columns = owner.block(block, columns, fresh[2 * block : 2 * block + 2])
        data.append(whole)
        made.append(columns)
    (c, nu, y), _ = made[0]
    write("pairing_block.json", [{
        "set": "P80", "length": len(whole), "blocks": [digest(whole) for whole in data],
        "hash": nu.to_bytes(32, "little").hex(), "tag": s5.tag(nu, y).hex(),
    }])
    total = s5.summed(made[0][0][0], made[1][0][0])
    linear = [sum(block[0][which] for block in made) % s5.Q for which in (1, 2)]
    good = b"".join(map(s5.packed, total)) + s5.first(linear[0]) + s5.first(linear[1])
    products = [s5.tensor(block[0][0], block[1][0]) for block in made]
    # Each as a product of pairings, so that the exponents are not the only way.
    t_2 = x_2 = lam = s5.FQ12.one()
    for (_, nu, y), (_, other, over) in made:
        t_2 = t_2 * s5.pair(nu, other)
        x_2 = x_2 * s5.pair(y, other) * s5.pair(over, nu)
        lam = lam * s5.pair(y, over)
    value = s5.summed(*products)
    assert owner.hash(value) == sum(a[1] * b[1] for a, b in made) % s5.Q
    body = b"".join(map(s5.packed, value))
    quadratic = body + s5.target(t_2) + s5.target(x_2) + s5.target(lam)
    slot = [sum(item(0, b, s) for b in (0, 1)) for s in (0, n - 1)]
    xy = [sum(item(0, b, s) * item(1, b, s) for b in (0, 1)) for s in (0, n - 1)]
    write("pairing_answer.json", [
        {"of": "sum", "length": len(good), "answer": digest(good), "ends": slot},
        {"of": "product", "length": len(quadratic), "answer": digest(quadratic), "ends": xy},
    ])
    other = sum(wider.exponents(0, at, block[0][0])[1] for at, block in enumerate(made)) % s5.Q
    sums = (total, [*linear, other], good)
    forgeries(owner, sums, (body, [t_2, x_2, lam], quadratic))


def forgeries(owner, sums, products):
    """What must be refused, as what differs from the honest answer; `other_y` is y under the
    masks of another bound."""
    def case(of, why, honest, data):
        """Bytes that differ, by the place of the first of each run."""
        runs, end = {}, None
        for at in range(min(len(data), len(honest))):
            if data[at] != honest[at]:
                if at != end:
                    runs[begun := at] = b""
                runs[begun], end = runs[begun] + data[at : at + 1], at + 1
        changed = {str(at): run.hex() for at, run in runs.items()}
        return {"of": of, "why": why, "length": len(data), "changed": changed, "error": "Rejected"}

    (total, (nu, y, other_y), good), (body, (t_2, x_2, lam), quadratic) = sums, products
    head = b"".join(map(s5.packed, total))
    other = [[*total[0]], [*total[1]]]
    other[1][4000] = (other[1][4000] + 1) % s5.Q
    moved = b"".join(map(s5.packed, other))
    # A tag for another ciphertext takes z: without it y stays.
    shifted = s5.first(owner.hash(other))
    g = s5.pair(1, 1)
    write("pairing_bad_tag.json", [
        case("sum", "one coefficient", good, moved + good[len(head):]),
        case("sum", "one coefficient, and T as it is then", good, moved + shifted + s5.first(y)),
        case("sum", "X for T", good, head + s5.first(y) + s5.first(nu)),
        case("sum", "sealed for another bound", good, head + s5.first(nu) + s5.first(other_y)),
        case("sum", "T without a mask", good, head + s5.first(nu) + s5.first(0)),
        case("product", "T2", quadratic, body + b"".join(map(s5.target, [t_2 * g, x_2, lam]))),
        case("product", "X2'", quadratic, body + b"".join(map(s5.target, [t_2, x_2 * g, lam]))),
        case("product", "L", quadratic, body + b"".join(map(s5.target, [t_2, x_2, lam * g]))),
    ])
    raised = (int.from_bytes(good[:32], "little") + s5.Q).to_bytes(32, "little") + good[32:]
    elements = len(body)
    zero = quadratic[:elements] + bytes(576) + quadratic[elements + 576:]
    minus = (s5.field_modulus - 1).to_bytes(48, "big") + bytes(528)
    write("pairing_bad_bytes.json", [
        case("sum", "a coefficient that is not canonical", good, raised),
        case("sum", "a point of the curve that is not in the subgroup", good,
             head + s5.outside() + s5.first(y)),
        case("sum", "X and a point of order three", good,
             head + s5.first(nu) + s5.moved(y, s5.of_order_three())),
        case("product", "-X2' and -L: the equation holds whatever z is", quadratic,
             body + b"".join(map(s5.target, [t_2, -x_2, -lam]))),
        case("sum", "no point", good, head + b"\xff" * 48 + s5.first(y)),
        case("sum", "cut by one", good, good[:-1]),
        case("product", "zero for T2", quadratic, zero),
        case("product", "-1, of order two, for T2", quadratic,
             quadratic[:elements] + minus + quadratic[elements + 576:]),
        case("product", "a byte more", quadratic, quadratic + b"\0"),
    ])


parameters()
transforms()
blocks()
answers()
states()
pairing_tables()
