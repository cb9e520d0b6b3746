"""The paper's own scheme, implemented independently from crates/verifiable-table/docs/protocol.md over
py_ecc's BLS12-381: no line of it comes from the Rust code or runs it."""

import sys
from pathlib import Path

from py_ecc.bls.point_compression import compress_G1, compress_G2
from py_ecc.optimized_bls12_381 import FQ, FQ12, G1, G2, add, curve_order, field_modulus, is_inf
from py_ecc.optimized_bls12_381 import multiply
from py_ecc.optimized_bls12_381 import pairing as ate

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import reference as r  # noqa: E402
from table import NOISE, Ring, Stream, Table, subkey  # noqa: E402

Q = curve_order
LABEL = "alpheus/table/pairing-%s/v1"
# py_ecc's last power is (p^12 - 1)/q and its loop runs over |x|; that of blst and others is three
# times as much, and x is negative.
NORMAL = curve_order - 3


def scalars(stream, count):
    """Of each four words the low 255 bits, if they are below q."""
    kept = []
    while len(kept) < count:
        words = stream.fill(4)
        drawn = sum(word << 64 * i for i, word in enumerate(words)) & ((1 << 255) - 1)
        kept += [drawn] if drawn < Q else []
    return kept


def product(a, b):
    """Of polynomials, through one product of whole numbers."""
    size = 8 * ((2 * Q.bit_length() + len(a).bit_length() + 8) // 8 + 1)
    pack = lambda c: int.from_bytes(  # noqa: E731
        b"".join(x.to_bytes(size // 8, "little") for x in c), "little")
    whole = (pack(a) * pack(b)).to_bytes((len(a) + len(b)) * size // 8, "little")
    digits = (whole[at : at + size // 8] for at in range(0, len(whole), size // 8))
    return [int.from_bytes(d, "little") % Q for d in digits][: len(a) + len(b) - 1]


def reduced(c, n):
    """Modulo X^n + 1."""
    return [(x - y) % Q for x, y in zip(c[:n], c[n:] + [0] * (2 * n - len(c)))]


class Pairing:
    """The owner's secrets, and what it makes of one data set."""

    def __init__(self, name, n, t, key, data_set, columns, bound):
        self.name, self.n, self.plain = name.encode(), n, Ring(name, n, [], t)
        self.data_set = data_set
        self.named = data_set + columns.to_bytes(2, "big") + bound.to_bytes(8, "big")
        key_of = lambda purpose: subkey(key, LABEL % "key", [purpose, self.name])  # noqa: E731
        secret = lambda purpose: r.derive(  # noqa: E731
            key, LABEL % "key", [purpose, self.name], 32)
        self.table = Table.__new__(Table)
        self.table.ring = self.plain
        parts = [b"secret", self.named, self.name]
        self.s = self.table.ternary(subkey(secret(b"secrets"), LABEL % "key", parts))
        self.beta, self.alpha, self.z = scalars(Stream(key_of(b"hash"), 0), 3)
        self.masks, self.blocks = secret(b"masks"), secret(b"blocks")

    def encrypt(self, label, slots, fresh):
        name = LABEL % "block"
        message = b"".join(slot.to_bytes(8, "little", signed=True) for slot in slots)
        own = r.derive(self.blocks, name, [b"message", fresh, label, message], 32)
        seed = r.derive(own, name, [b"seed"], 32)
        words = Stream(subkey(own, name, [b"noise"]), 0).fill(self.n)
        noise = [bin(word & ((1 << 42) - 1)).count("1") - NOISE for word in words]
        stream = Stream(subkey(seed, LABEL % "uniform", [self.name]), 0)
        c1 = scalars(stream, self.n)
        masked = reduced(product(c1, [x % Q for x in self.s]), self.n)
        pairs = zip(self.table.encode(slots), noise, masked)
        c0 = [(m + self.plain.plain * e - x) % Q for m, e, x in pairs]
        return seed, [c0, c1]

    def hash(self, components):
        total = 0
        for d, component in enumerate(components):
            value = 0
            for x in reversed(component):
                value = (value * self.beta + x) % Q
            total += pow(self.alpha, d, Q) * value
        return total % Q

    def mask(self, column, index):
        key = subkey(self.masks, LABEL % "mask",
                     [b"input", column.to_bytes(2, "big"), self.name])
        u, v = scalars(Stream(key, index), 2)
        key = subkey(self.masks, LABEL % "mask", [b"data set", self.named, self.name])
        a, b = scalars(Stream(key, 0), 2)
        return (u * a + v * b) % Q

    def exponents(self, column, index, components):
        """ν and y."""
        nu = self.hash(components)
        return nu, (self.mask(column, index) - nu) * pow(self.z, -1, Q) % Q

    def block(self, index, columns, fresh):
        """Bytes of a block, and for each column the ciphertext, ν and y."""
        body, made = b"", []
        for column, (slots, drawn) in enumerate(zip(columns, fresh)):
            label = self.named + column.to_bytes(2, "big") + index.to_bytes(8, "big")
            seed, c = self.encrypt(label, slots, drawn)
            nu, y = self.exponents(column, index, c)
            body += seed + packed(c[0]) + tag(nu, y)
            made.append((c, nu, y))
        return b"\x01" + self.data_set + index.to_bytes(8, "big") + body, made


def packed(component):
    return b"".join(x.to_bytes(32, "little") for x in component)


def first(k):
    return compress_G1(multiply(G1, k)).to_bytes(48, "big")


def second(k):
    return b"".join(half.to_bytes(48, "big") for half in compress_G2(multiply(G2, k)))


def tag(nu, y):
    return first(nu) + second(nu) + first(y) + second(y)


def pair(a, b):
    """e(g^a, h^b), of points that were multiplied."""
    return ate(multiply(G2, b), multiply(G1, a)) ** NORMAL


def target(x):
    """Coefficients of 1, w, ... w^5 over F_p^2: py_ecc has u as w^6 - 1."""
    c = [int(x) for x in x.coeffs]
    parts = ((c[k] + c[k + 6], c[k + 6]) for k in range(6))
    return b"".join((x % field_modulus).to_bytes(48, "big") for two in parts for x in two)


def outside():
    """A point of the curve that is not in the subgroup of order q."""
    x = 1
    while True:
        square = (x**3 + 4) % field_modulus
        y = pow(square, (field_modulus + 1) // 4, field_modulus)
        point = (FQ(x), FQ(y), FQ(1))
        if y * y % field_modulus == square and not is_inf(multiply(point, Q)):
            return compress_G1(point).to_bytes(48, "big")
        x += 1


def of_order_three():
    """A point of the curve that nothing but the check of its group refuses where 3 divides z."""
    point = (FQ(0), FQ(2), FQ(1))
    assert is_inf(multiply(point, 3)) and not is_inf(multiply(point, Q))
    return point


def moved(k, point):
    """g^k and a point more."""
    return compress_G1(add(multiply(G1, k), point)).to_bytes(48, "big")


def tensor(a, b):
    """Three components, without reduction modulo X^n + 1."""
    middle = zip(product(a[0], b[1]), product(a[1], b[0]))
    return [product(a[0], b[0]), [(x + y) % Q for x, y in middle], product(a[1], b[1])]


def summed(a, b):
    return [[(x + y) % Q for x, y in zip(c, d)] for c, d in zip(a, b)]
