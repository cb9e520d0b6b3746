"""Known answers of the verifiable table: python3 generate.py TARGET."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
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
KEY, DATA_SET, SEGMENT = bytes(range(32)), bytes(range(32, 48)), bytes(range(48, 64))


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
        drawn = bytes(range(64, 64 + 128))
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
    _, c = table.encrypt(SEGMENT, 0, 0, kind, column, bytes(range(64, 96)))
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


parameters()
transforms()
blocks()
answers()
