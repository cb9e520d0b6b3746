"""The verifiable table, implemented independently from crates/verifiable-table/docs/protocol.md
with plain integers: no line of it comes from the Rust code or runs it."""

import hashlib
import sys
from math import prod
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import reference as r  # noqa: E402

NOISE = 21


def is_prime(n):
    """Miller and Rabin, exact below 2^64 with these bases."""
    if n < 2:
        return False
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if n in bases or any(n % p == 0 for p in bases):
        return n in bases
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for a in bases:
        x = pow(a, d, n)
        if x in (1, n - 1):
            continue
        for _ in range(s - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def primes(start, step, modulus, count):
    """The first `count` primes that are 1 modulo `modulus`, from `start` up or down."""
    x, found = start // modulus * modulus + 1, []
    while len(found) < count:
        if is_prime(x) and (x - start) * step > 0:
            found.append(x)
        x += step * modulus
    return found


class Ring:
    def __init__(self, name, n, q, t, repetitions=3):
        self.name, self.n, self.q, self.t, self.repetitions = name, n, q, t, repetitions
        self.plain, self.whole = prod(t), prod(q)
        self.roots = {p: self.root(p) for p in [*q, *t]}

    def root(self, p):
        for g in range(2, p):
            root = pow(g, (p - 1) // (2 * self.n), p)
            if pow(root, self.n, p) == p - 1:
                return root
        raise ValueError(p)

    def order(self):
        """Which power of the root stands at each place: exponents."""
        bits = self.n.bit_length() - 1
        exponents = []
        for place in range(self.n):
            g, v, lane = place // 64, place // 8 % 8, place % 8
            i = 64 * g + 8 * lane + v
            exponents.append(2 * int(format(i, f"0{bits}b")[::-1], 2) + 1)
        return exponents

    def values(self, coefficients, p):
        """The values at the odd powers of the root, by a recursive transform."""
        def even(c, w):
            # Values of c at w^0, w^1, ..., w^(len - 1).
            if len(c) == 1:
                return c
            a, b = even(c[::2], w * w % p), even(c[1::2], w * w % p)
            half, x, out = len(c) // 2, 1, [0] * len(c)
            for i in range(half):
                y = b[i] * x % p
                out[i], out[i + half] = (a[i] + y) % p, (a[i] - y) % p
                x = x * w % p
            return out

        psi, twisted, x = self.roots[p], [], 1
        for c in coefficients:
            twisted.append(c * x % p)
            x = x * psi % p
        plain = even(twisted, psi * psi % p)
        return [plain[(e - 1) // 2] for e in self.order()]

    def coefficients(self, values, p):
        """The inverse, by the transform at the inverse root."""
        n, psi = self.n, self.roots[p]
        plain = [0] * n
        for place, e in enumerate(self.order()):
            plain[(e - 1) // 2] = values[place]

        def even(c, w):
            if len(c) == 1:
                return c
            a, b = even(c[::2], w * w % p), even(c[1::2], w * w % p)
            half, x, out = len(c) // 2, 1, [0] * len(c)
            for i in range(half):
                y = b[i] * x % p
                out[i], out[i + half] = (a[i] + y) % p, (a[i] - y) % p
                x = x * w % p
            return out

        inverse = pow(psi, -1, p)
        twisted, x, shrink = even(plain, inverse * inverse % p), 1, pow(n, -1, p)
        out = []
        for c in twisted:
            out.append(c * shrink * x % p)
            x = x * inverse % p
        return out


class Stream:
    """AES-128 in counter mode from number * 2^64."""

    def __init__(self, key, number):
        self.encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        self.next = number << 64

    def fill(self, count):
        blocks = (count + 1) // 2
        counters = b"".join((self.next + j).to_bytes(16, "big") for j in range(blocks))
        self.next += blocks
        return r.words_of(self.encryptor.update(counters))[:count]

    def residues(self, p, count):
        mask, kept = (1 << p.bit_length()) - 1, []
        while len(kept) < count:
            words = (word & mask for word in self.fill(count - len(kept)))
            kept += [word for word in words if word < p]
        return kept


def subkey(secret, label, parts):
    return r.derive(secret, label, parts, 16)


class Table:
    """The owner's secrets, and what it makes."""

    def __init__(self, ring, key, data_set, order):
        self.ring, self.data_set, self.order = ring, data_set, order
        parts = lambda purpose: [purpose, data_set, ring.name.encode()]  # noqa: E731
        label = "alpheus/table/key/v2"
        self.secret = self.ternary(subkey(key, label, parts(b"secret")))
        self.hash_key = subkey(key, label, parts(b"hash"))
        self.mask_secret = r.derive(key, label, parts(b"masks"), 32)
        self.block_secret = r.derive(key, label, parts(b"blocks"), 32)
        self.s = [ring.values([x % p for x in self.secret], p) for p in ring.q]
        length = 64 + 64 + ring.n // 64
        self.hash_words = [
            [Stream(self.hash_key, 3 * j + k).residues(p, length) for k in range(3)]
            for j, p in enumerate(ring.q)
        ]

    def ternary(self, key):
        stream, digits = Stream(key, 0), []
        while len(digits) < self.ring.n:
            word = stream.fill(2)[0]
            digits += [d for d in ((word >> 2 * i) & 3 for i in range(32)) if d < 3]
        return [d - 1 for d in digits[: self.ring.n]]

    def label(self, segment, epoch, kind):
        which, a, b = kind
        columns = bytes([which]) + a.to_bytes(2, "big") + b.to_bytes(2, "big")
        head = self.data_set + segment + epoch.to_bytes(4, "big") + columns
        return head + bytes([self.order]) + self.ring.name.encode()

    def uniform(self, seed):
        key = subkey(seed, "alpheus/table/uniform/v1", [self.ring.name.encode()])
        return [Stream(key, j).residues(p, self.ring.n) for j, p in enumerate(self.ring.q)]

    def encode(self, slots):
        """Coefficients of the message, centred."""
        ring = self.ring
        slots = slots + [0] * (ring.n - len(slots))
        a, b = (ring.coefficients([x % p for x in slots], p) for p in ring.t)
        t1, t2 = ring.t
        inverse = pow(t1, -1, t2)
        whole = [x + t1 * ((y - x) * inverse % t2) for x, y in zip(a, b)]
        return [x - ring.plain if 2 * x > ring.plain else x for x in whole]

    def encrypt(self, segment, epoch, index, kind, slots, fresh):
        ring = self.ring
        label = self.label(segment, epoch, kind) + index.to_bytes(8, "big")
        name = "alpheus/table/block/v1"
        message = b"".join(slot.to_bytes(8, "little", signed=True) for slot in slots)
        own = r.derive(self.block_secret, name, [b"message", fresh, label, message], 32)
        seed = r.derive(own, name, [b"seed"], 32)
        noise_key = subkey(own, name, [b"noise"])
        mask = (1 << 42) - 1
        noise = [bin(word & mask).count("1") - NOISE for word in Stream(noise_key, 0).fill(ring.n)]
        message = [m + ring.plain * e for m, e in zip(self.encode(slots), noise)]
        c1, c0 = self.uniform(seed), []
        for j, p in enumerate(ring.q):
            values = ring.values([x % p for x in message], p)
            c0.append([(m - a * s) % p for m, a, s in zip(values, c1[j], self.s[j])])
        return seed, [c0, c1]

    def hash(self, components):
        """L, limb by limb, three repetitions each."""
        ring, out = self.ring, []
        for j, p in enumerate(ring.q):
            for k in range(ring.repetitions):
                words, total = self.hash_words[j][k], 0
                alpha, beta, outer = words[:64], words[64:128], words[128:]
                if len(components) == 2:
                    inner_weights = [alpha, beta]
                else:
                    inner_weights = [
                        [a * a for a in alpha], [a * b for a, b in zip(alpha, beta)],
                        [b * b for b in beta],
                    ]
                for place in range(ring.n):
                    b, v, lane = place // 512, place // 8 % 64, place % 8
                    inner = sum(w[v] * c[j][place] for w, c in zip(inner_weights, components))
                    total += outer[8 * b + lane] * (inner % p)
                out.append(total % p)
        return out

    def value(self, segment, epoch, kind, i):
        key = subkey(self.mask_secret, "alpheus/table/mask/v1", [self.label(segment, epoch, kind)])
        stream, out = Stream(key, i), []
        for p in self.ring.q:
            out += stream.residues(p, self.ring.repetitions)
        return out

    def mask(self, segment, epoch, kind, i):
        """The K-th difference, by taking differences K times."""
        rows = [self.value(segment, epoch, kind, i + j) for j in range(self.order + 1)]
        while len(rows) > 1:
            rows = [[y - x for x, y in zip(a, b)] for a, b in zip(rows, rows[1:])]
        return self.reduce(rows[0])

    def reduce(self, tag):
        return [x % self.ring.q[at // self.ring.repetitions] for at, x in enumerate(tag)]

    def tag(self, segment, epoch, kind, i, components):
        masks = self.mask(segment, epoch, kind, i)
        return self.reduce([a + b for a, b in zip(masks, self.hash(components))])

    def product(self, a, b):
        def limbs(f):
            return [[f(j, i) % p for i in range(self.ring.n)] for j, p in enumerate(self.ring.q)]
        return [
            limbs(lambda j, i: a[0][j][i] * b[0][j][i]),
            limbs(lambda j, i: a[0][j][i] * b[1][j][i] + a[1][j][i] * b[0][j][i]),
            limbs(lambda j, i: a[1][j][i] * b[1][j][i]),
        ]

    def block(self, segment, index, columns, products, fresh):
        """Bytes of a block, and its ciphertexts."""
        header = b"\x02" + self.data_set + segment + bytes(4) + index.to_bytes(8, "big")
        body, ciphertexts = b"", []
        for column, (slots, drawn) in enumerate(zip(columns, fresh)):
            kind = (0, column, 0)
            seed, c = self.encrypt(segment, 0, index, kind, slots, drawn)
            body += seed + pack(c[0]) + little(self.tag(segment, 0, kind, index, c))
            ciphertexts.append(c)
        tags = [
            self.tag(segment, 0, (1, a, b), index, self.product(ciphertexts[a], ciphertexts[b]))
            for a, b in products
        ]
        return header + body + b"".join(little(tag) for tag in tags), ciphertexts


def data_set_of(key):
    return r.derive(key, "alpheus/table/data-set/v1", [], 16)


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def padded_length(length):
    """Up to a multiple of a sixteenth of the power of two above it, and of 4,096."""
    unit = 4096
    while 16 * unit < length:
        unit *= 2
    return max(1, -(-length // unit)) * unit


def sealed_state(key, version, segment, previous, records, fresh):
    """An owner's records, as the server keeps them, and their name."""
    data_set, label = data_set_of(key), "alpheus/table/state/v1"
    plain = varint(len(records))
    for name, value in records:
        plain += varint(len(name)) + name + varint(len(value)) + value
    plain += bytes(padded_length(len(plain)) - len(plain))
    header = b"\x01" + data_set + version.to_bytes(8, "big") + segment + previous
    root = r.derive(key, label, [b"root", data_set], 32)
    name = r.derive(root, label, [b"name", fresh, header, plain], 32)
    header += name
    once = r.derive(root, label, [b"key", header], 32)
    return header + ChaCha20Poly1305(once).encrypt(bytes(12), plain, header), name


def pack(limbs):
    """51 bits each, the lowest first."""
    held = sum(word << 51 * at for at, word in enumerate(word for limb in limbs for word in limb))
    return held.to_bytes(sum(map(len, limbs)) * 51 // 8, "little")


def little(tag):
    return b"".join(word.to_bytes(8, "little") for word in tag)


def digest(data):
    return hashlib.sha256(data).hexdigest()
