"""Mode 2's baseline: keys from a group, with the proofs of crates/anonymous-board/docs/protocol.md
("The baseline"). `generate.py` runs it."""

import hashlib
import math
import sys
from pathlib import Path

import reference as r

sys.path.append(str(Path(__file__).resolve().parents[1] / "anonymous-credential"))
from ristretto import BASE, IDENTITY, ORDER, decode, from_uniform  # noqa: E402

HELD = 30


def wide(label, parts):
    return hashlib.sha512(r.delimited(label, parts)).digest()


def hashed(label, parts):
    return int.from_bytes(wide(label, parts), "little") % ORDER


def scalar(k):
    return (k % ORDER).to_bytes(32, "little")


def total(points):
    out = IDENTITY
    for point in points:
        out = out + point
    return out


class Group:
    """Everything of one case. `common` are the functions of generate.py."""

    def __init__(self, common, name, servers, rows, size):
        self.c, self.name, self.servers = common, name, servers
        self.rows, self.size = rows, size
        self.across = math.isqrt(rows)
        self.down = -(-rows // self.across)
        self.width = -(-size // HELD)
        bases = [from_uniform(wide("alpheus/board/base/v1", [at.to_bytes(8, "big")]))
                 for at in range(self.across * self.width)]
        self.bases = [bases[c * self.width : (c + 1) * self.width] for c in range(self.across)]

    def draw(self, what, length):
        return self.c.draw(f"group {self.name} {what}", length)

    def number(self, what):
        return int.from_bytes(self.draw(what, 64), "little") % ORDER

    def holding(self, part, what):
        """An element whose encoding holds 30 bytes."""
        for attempt in range(1000):
            tried = bytearray(self.draw(f"{what} {attempt}", 32))
            tried[0] &= 0xFE
            tried[31] &= 0x7F
            tried[1:31] = part
            try:
                return decode(bytes(tried))
            except ValueError:
                continue
        raise AssertionError(what)

    def message(self, row):
        return self.draw(f"message {row}", HELD * self.width)

    def write(self, rows, seed):
        """The word that has a message in the column of each of these rows."""
        columns = {row % self.across: self.message(row) for row in rows}
        cells = []
        for c, bases in enumerate(self.bases):
            for k, base in enumerate(bases):
                held = columns.get(c)
                part = IDENTITY if held is None else self.holding(held[k * HELD : (k + 1) * HELD], f"hold {c} {k}")
                cells.append(part - seed * base)
        return cells

    def shared(self, values, what):
        shares = [[self.number(f"{what} {i} {j}") for j in range(len(values))] for i in range(1, self.servers)]
        rest = [(value - sum(share[j] for share in shares)) % ORDER for j, value in enumerate(values)]
        return [*shares, rest]

    def line(self, cells, sums, seed, free):
        """y - 1 of y columns hold nothing but the stretched seed: e, d, responses."""
        data = b"".join(p.encode() for p in [*cells, *sums])
        weights = [hashed("alpheus/board/column/v1", [data, k.to_bytes(8, "big")]) for k in range(self.width)]
        q = [total(w * p for w, p in zip(weights, bases)) for bases in self.bases]
        v = [total(w * p for w, p in zip(weights, cells[c * self.width :])) for c in range(self.across)]
        whole, chosen = total(sums), self.number("chosen")
        nonces = [self.number(f"nonce {c}") for c in range(self.across)]
        committed = b""
        for c in range(self.across):
            e = chosen if c == free else 0
            committed += (nonces[c] * BASE - e * whole).encode() + (nonces[c] * q[c] + e * v[c]).encode()
        statement = whole.encode() + b"".join(a.encode() + b.encode() for a, b in zip(q, v))
        e = hashed("alpheus/board/line/v1", [statement + committed])
        d = (chosen - e) * pow(free + 1, -1, ORDER)
        responses = [n if c == free else n + (e + (c + 1) * d) * seed for c, n in enumerate(nonces)]
        return b"".join(map(scalar, [e, d, *responses]))

    def sums(self, key, points):
        """Of u = b + alpha sigma with powers of r, of s, of both, and with ones."""
        alpha, a, b = points
        out = [0] * 4
        for j in range(self.down):
            u = key[j] + alpha * key[self.down + j]
            r_j, s_j = pow(a, self.down - j, ORDER), pow(b, self.down - j, ORDER)
            for i, weight in enumerate((r_j, s_j, r_j * s_j, 1)):
                out[i] = (out[i] + weight * u) % ORDER
        return out

    @staticmethod
    def coefficients(values):
        """Of the polynomial of degree 2 through values at 0, 1, 2."""
        half = pow(2, -1, ORDER)
        c2 = (values[2] - 2 * values[1] + values[0]) * half
        return [values[0], (values[1] - values[0] - c2) % ORDER, c2 % ORDER]

    @staticmethod
    def at(coefficients, place):
        return sum(c * pow(place, i, ORDER) for i, c in enumerate(coefficients)) % ORDER

    def both(self, sums, proof):
        f = self.coefficients([proof[0], sums[0], sums[2]])
        g = self.coefficients([proof[1], sums[1], sums[3]])
        return f, g

    def open(self, sums, proof, tau):
        f, g = self.both(sums, proof)
        h = proof[2:]
        gate = self.at(h, 1) - self.at(h, 2)
        return self.at(f, tau), self.at(g, tau), self.at(h, tau), gate % ORDER

    def table(self, cells, key):
        flat = [base for bases in self.bases for base in bases]
        return [key[self.down + j] * base + key[j] * cell
                for j in range(self.down) for base, cell in zip(flat, cells)]

    def case(self, row, marks=None, seeds=None, rows=None, **more):
        """A write into `row`, with marks and seeds at these places down instead of one there,
        and messages in the columns of all `rows`."""
        seed, at = self.number("seed"), row // self.across
        marks = {at: 1} if marks is None else marks
        seeds = {at: seed} if seeds is None else seeds
        cells = self.write(rows or [row], seed)
        b = self.shared([marks.get(j, 0) for j in range(self.down)], "mark")
        sigma = self.shared([seeds.get(j, 0) for j in range(self.down)], "share")
        z = [sum(each) * BASE for each in sigma]
        keys = [[*one, *other] for one, other in zip(b, sigma)]
        points, drawn = [self.number(f"point {i}") for i in range(3)], self.draw("drawn", 32)
        tau = hashed("alpheus/board/place/v1", [drawn, bytes([0])])
        whole = self.sums([sum(each) for each in zip(*keys)], points)
        masks = [self.number("mask f"), self.number("mask g")]
        f, g = self.both(whole, masks)
        h = [sum(f[i] * g[k - i] for i in range(3) if 0 <= k - i < 3) % ORDER for k in range(5)]
        proofs = self.shared([*masks, *h], "proof")
        openings = [self.open(self.sums(key, points), proof, tau) for key, proof in zip(keys, proofs)]
        opened = [sum(each) % ORDER for each in zip(*openings)]
        return {
            "servers": self.servers, "rows": self.rows, "bytes": self.size, "row": row,
            "message": self.message(row).hex(), "cells": [p.encode().hex() for p in cells],
            "sums": [p.encode().hex() for p in z],
            "line": self.line(cells, z, seed, row % self.across).hex(),
            "keys": [b"".join(map(scalar, key)).hex() for key in keys],
            "points": [scalar(p).hex() for p in points], "drawn": drawn.hex(),
            "proofs": [b"".join(map(scalar, proof)).hex() for proof in proofs],
            "openings": [b"".join(map(scalar, opening)).hex() for opening in openings],
            "mark": scalar(sum(map(sum, b))).hex(),
            "tables": [[p.encode().hex() for p in self.table(cells, key)] for key in keys],
            "accepted": opened[3] == 0 and opened[0] * opened[1] % ORDER == opened[2], **more,
        }


def good(common, target):
    cases = []
    for servers, rows, size, row in [(2, 1, 8, 0), (3, 7, 40, 5), (4, 9, 30, 0)]:
        one = Group(common, f"good {servers} {rows}", servers, rows, size)
        case = one.case(row)
        assert case["accepted"] and case["mark"] == scalar(1).hex()
        # What all shares add up to is the message in its row and nothing elsewhere.
        tables = [[decode(bytes.fromhex(p)) for p in table] for table in case["tables"]]
        cells = [total(each) for each in zip(*tables)]
        first = row * one.width
        for at, cell in enumerate(cells):
            written = first <= at < first + one.width
            part = one.message(row)[(at - first) * HELD :][:HELD] if written else b""
            assert cell.encode()[1:31] == part if written else cell == IDENTITY
        cases.append(case)
    r.write(target, "group.json", cases)


def bad(common, target):
    one = Group(common, "bad", 3, 9, 30)
    seed = one.number("seed")
    honest = one.case(4)

    def write(name, refusal, case):
        assert case["accepted"] == (refusal != "audit"), name
        assert refusal == "audit" or (case["mark"] != scalar(1).hex()) == (refusal == "mark"), name
        r.write(target, f"group_bad_{name}.json", [{**case, "refusal": refusal}])

    # Row 4 is one down; its column is 1. The message in two rows, taken off in a third: seeds and
    # marks add up to what they should.
    write("two_rows", "audit", one.case(4, marks={0: -1, 1: 1, 2: 1}, seeds={0: -seed, 1: seed, 2: seed}))
    write("two_marks", "audit", one.case(4, marks={0: 1, 1: 1, 2: ORDER - 1}))
    write("seed_elsewhere", "audit", one.case(4, seeds={2: seed}))
    write("mark_of_two", "mark", one.case(4, marks={1: 2}))
    write("two_columns", "columns", one.case(4, rows=[4, 5]))
    write("another_column", "columns", one.case(4, rows=[5]))

    def of(name, at, change):
        """One entry of a list changed."""
        entries = list(honest[name])
        entries[at] = change(entries[at])
        return {**honest, name: entries}

    def more(text):
        return (decode(bytes.fromhex(text)) + BASE).encode().hex()

    def plus_one(text):
        first = int.from_bytes(bytes.fromhex(text)[:32], "little")
        return scalar(first + 1).hex() + text[64:]

    write("cell", "columns", of("cells", 0, more))
    write("response", "columns", {**honest, "line": honest["line"][:192] + plus_one(honest["line"][192:])})
    write("responses", "columns", {**honest, "line": honest["line"][:-64]})
    write("challenge", "columns", {**honest, "line": (ORDER.to_bytes(32, "little").hex()) + honest["line"][64:]})
    write("sum", "seeds", of("sums", 0, more))
    write("seed", "seeds", of("keys", 0, lambda key: key[:192] + plus_one(key[192:])))
    write("cells", "length", {**honest, "cells": honest["cells"][:-1]})
    write("sums", "length", {**honest, "sums": honest["sums"][:-1]})
    write("key", "length", of("keys", 1, lambda key: key[:-128]))
    write("number", "malformed", of("keys", 0, lambda key: ORDER.to_bytes(32, "little").hex() + key[64:]))
