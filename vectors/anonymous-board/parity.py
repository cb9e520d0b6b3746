"""Mode 2: keys by parity and their audit, from the equations of
crates/anonymous-board/docs/protocol.md. `generate.py` runs it."""

import math

import reference as r

UNIT = 1 << 127 | 1 << 126 | 1 << 121 | 1
PLACES = (0, UNIT, 1)
COPIES = 2


def dot(a, b):
    """POLYVAL's product, from RFC 8452: a b X^-128 in GF(2^128)."""
    modulus = 1 << 128 | 1 << 127 | 1 << 126 | 1 << 121 | 1
    product = 0
    for i in range(128):
        if a >> i & 1:
            product ^= b << i
    for _ in range(128):
        if product & 1:
            product ^= modulus
        product >>= 1
    while product.bit_length() > 128:
        product ^= modulus << (product.bit_length() - 129)
    return product


class Parity:
    """Everything of one case. `common` are the functions of generate.py."""

    def __init__(self, common, name, servers, rows, blocks):
        self.c, self.name = common, name
        self.servers, self.rows, self.blocks = servers, rows, blocks
        self.columns = 1 << (servers - 1)
        per_group = servers * (1 + self.columns // 2 * 16)
        self.together = max(1, min(rows, math.isqrt(rows * per_group // (16 * blocks))))
        self.groups = -(-rows // self.together)
        self.permutation = self.draw("permutation", 16)

    def draw(self, what, length):
        return self.c.draw(f"parity {self.name} {what}", length)

    # Numbers: POLYVAL's field.

    def times(self, a, b):
        return dot(a, b)

    def power(self, a, exponent):
        out = UNIT
        while exponent:
            if exponent & 1:
                out = self.times(out, a)
            a, exponent = self.times(a, a), exponent >> 1
        return out

    def inverse(self, a):
        return self.power(a, 2**128 - 2)

    # Keys.

    def stretch(self, seed):
        n = self.together * self.blocks
        return b"".join(self.c.mmo(self.permutation, self.c.xor(seed, self.c.number(j))) for j in range(n))

    def generate(self, row, message):
        """The word, and every server's key: flags and seeds of its groups."""
        written, place = divmod(row, self.together)
        keys = [b""] * self.servers
        for group in range(self.groups):
            parity = int(group == written)
            columns = [c for c in range(1 << self.servers) if bin(c).count("1") % 2 == parity]
            columns.sort(key=lambda c: self.draw(f"order {group} {c}", 8))
            seeds = [self.draw(f"seed {group} {j}", 16) for j in range(self.columns)]
            for i in range(self.servers):
                held = [seed for seed, c in zip(seeds, columns) if c >> i & 1]
                keys[i] += bytes([columns[-1] >> i & 1]) + b"".join(held)
            if parity:
                width = 16 * self.blocks
                word = bytes(place * width) + message
                word = self.c.xor(word.ljust(self.together * width, b"\0"), *map(self.stretch, seeds))
        return word, keys

    def expand(self, word, key):
        each = len(key) // self.groups
        out = b""
        for at in range(0, len(key), each):
            group = key[at : at + each]
            seeds = [group[i : i + 16] for i in range(1, each, 16)]
            rows = self.c.xor(*map(self.stretch, seeds))
            out += self.c.xor(rows, word) if group[0] else rows
        return out[: self.rows * self.blocks * 16]

    # The audit.

    def common_digest(self, nonce, keys, word):
        keys = r.labelled_hash("alpheus/board/keys/v1", keys)
        return r.labelled_hash("alpheus/board/common/v1", [nonce, keys, word])

    def points(self, bound, common, copy):
        def point(which):
            digest = r.labelled_hash("alpheus/board/points/v1", [bound, common, bytes([copy]), which])
            return int.from_bytes(digest[:16], "little")

        return point(b"row"), point(b"r"), point(b"s")

    def sums(self, table, points):
        rho, a, b = points
        total = [0, 0, 0, 0]
        for x in range(self.rows):
            row = table[x * 16 * self.blocks : (x + 1) * 16 * self.blocks]
            m = 0
            for i in range(0, len(row), 16):
                m = self.times(m ^ int.from_bytes(row[i : i + 16], "little"), rho)
            rx, sx = self.power(a, self.rows - x), self.power(b, self.rows - x)
            for i, weight in enumerate((rx, sx, self.times(rx, sx), UNIT)):
                total[i] ^= self.times(weight, m)
        return total

    def through(self, values, at):
        """Lagrange's polynomial through values at the three places, at one more."""
        out = 0
        for i, value in enumerate(values):
            for j, other in enumerate(PLACES):
                if j != i:
                    value = self.times(value, at ^ other)
                    value = self.times(value, self.inverse(PLACES[i] ^ other))
            out ^= value
        return out

    def coefficients(self, values):
        """Of the same: by its values at 0, and at two more points of a linear system."""
        c0 = values[0]
        one, two = values[1] ^ c0, values[2] ^ c0
        # c1 + c2 = one, c1 w + c2 w w = two
        w = PLACES[2]
        c2 = self.times(two ^ self.times(one, w), self.inverse(self.times(w, w ^ UNIT)))
        return [c0, one ^ c2, c2]

    def prove(self, sums, masks):
        f = self.coefficients([masks[0], sums[0], sums[2]])
        g = self.coefficients([masks[1], sums[1], sums[3]])
        h = [0] * 5
        for i in range(3):
            for j in range(3):
                h[i + j] ^= self.times(f[i], g[j])
        return [*masks, *h]

    def at(self, coefficients, place):
        out = 0
        for c in reversed(coefficients):
            out = self.times(out, place) ^ c
        return out

    def tau(self, drawn, copy):
        digest = r.labelled_hash("alpheus/board/place/v1", [drawn, bytes([copy]), bytes([0])])
        return int.from_bytes(digest[:16], "little")

    def open(self, sums, proof, tau):
        f = self.through([proof[0], sums[0], sums[2]], tau)
        g = self.through([proof[1], sums[1], sums[3]], tau)
        h = proof[2:]
        return f, g, self.at(h, tau), self.at(h, PLACES[1]) ^ self.at(h, PLACES[2])

    def accepted(self, answers):
        for copy in range(COPIES):
            f, g, h, gate = (self.xor_all(a[copy][i] for a in answers) for i in range(4))
            if gate or self.times(f, g) != h:
                return False
        return True

    @staticmethod
    def xor_all(numbers):
        out = 0
        for number in numbers:
            out ^= number
        return out

    def case(self, word, keys, row_table=None, **more):
        """Commitments, proofs for what the keys really write, and what servers open."""
        c = self.c
        bound, nonce, drawn = self.draw("bound", 32), self.draw("nonce", 16), self.draw("drawn", 32)
        salts = [self.draw(f"salt {i}", 32) for i in range(self.servers)]
        bindings = [r.labelled_hash("alpheus/board/key/v1", [bytes([i]), key, salt])
                    for i, (key, salt) in enumerate(zip(keys, salts))]
        common = self.common_digest(nonce, bindings, word)
        tables = [self.expand(word, key) for key in keys]
        proofs, answers = [b""] * self.servers, [[] for _ in keys]
        for copy in range(COPIES):
            points = self.points(bound, common, copy)
            masks = [int.from_bytes(self.draw(f"mask {copy} {i}", 16), "little") for i in range(2)]
            whole = self.prove(self.sums(c.xor(*tables), points), masks)
            shares = [[int.from_bytes(self.draw(f"share {copy} {i} {k}", 16), "little") for k in range(7)]
                      for i in range(1, self.servers)]
            shares.append([self.xor_all([whole[k], *(share[k] for share in shares)]) for k in range(7)])
            for i, share in enumerate(shares):
                proofs[i] += b"".join(c.number(n) for n in share)
                answers[i].append(self.open(self.sums(tables[i], points), share, self.tau(drawn, copy)))
        flat = [b"".join(c.number(n) for copy in answer for n in copy).hex() for answer in answers]
        return {
            "servers": self.servers, "rows": self.rows, "blocks": self.blocks,
            "permutation": self.permutation.hex(), "bound": bound.hex(), "nonce": nonce.hex(),
            "bindings": [b.hex() for b in bindings], "word": word.hex(), "drawn": drawn.hex(),
            "parts": [part(*each).hex() for each in zip(keys, salts, proofs)],
            "tables": [table.hex() for table in tables], "answers": flat,
            "accepted": self.accepted(answers), **more,
        }


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def part(key, salt, proofs):
    """As it stands in the envelope (postcard)."""
    return varint(len(key)) + key + salt + varint(len(proofs)) + proofs


def good(common, target):
    cases = []
    for servers, rows, blocks, row in [(3, 1, 1, 0), (3, 7, 2, 4), (4, 9, 1, 8), (5, 20, 1, 13), (6, 10, 1, 2), (8, 6, 1, 5)]:
        one = Parity(common, f"good {servers} {rows}", servers, rows, blocks)
        message = one.draw("message", 16 * blocks)
        word, keys = one.generate(row, message)
        case = one.case(word, keys, row=row, message=message.hex())
        expected = (bytes(16 * blocks * row) + message).ljust(16 * blocks * rows, b"\0")
        assert common.xor(*map(bytes.fromhex, case["tables"])) == expected and case["accepted"]
        cases.append(case)
    r.write(target, "parity.json", cases)


def bad(common, target):
    one = Parity(common, "bad", 3, 12, 1)
    message = one.draw("message", 16)
    # The first row of the first group.
    word, keys = one.generate(0, message)
    assert one.together > 1 and one.groups > 1

    def write(name, refusal, case):
        assert case["accepted"] == (refusal != "audit"), name
        r.write(target, f"parity_bad_{name}.json", [{**case, "refusal": refusal}])

    def flipped(data, at, bits=1):
        return data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]

    honest = one.case(word, keys)
    write("two_rows", "audit", one.case(flipped(word, 16), keys))
    write("seed", "audit", one.case(word, [flipped(keys[0], len(keys[0]) - 1), *keys[1:]]))
    write("word_more", "audit", one.case(word, [flipped(keys[0], 0), *keys[1:]]))
    write("key_twice", "audit", one.case(word, [keys[1], *keys[1:]]))

    def changed(part_at, change):
        parts = [bytes.fromhex(p) for p in honest["parts"]]
        parts[part_at] = change(parts[part_at])
        return {**honest, "parts": [p.hex() for p in parts]}

    salts = [one.draw(f"salt {i}", 32) for i in range(3)]
    length = len(varint(len(keys[0])))
    write("other_key", "other-key", changed(0, lambda p: flipped(p, length + 5)))
    write("salt", "other-key", changed(1, lambda p: flipped(p, length + len(keys[1]) + 3)))
    write("proof", "proof", changed(2, lambda p: p[: length + len(keys[2]) + 32] + varint(223) + bytes(223)))

    def rebound(key):
        """A key that is bound to, but malformed."""
        binding = r.labelled_hash("alpheus/board/key/v1", [bytes([0]), key, salts[0]])
        proofs = bytes(2 * 7 * 16)
        return {**honest, "bindings": [binding.hex(), *honest["bindings"][1:]],
                "parts": [part(key, salts[0], proofs).hex(), *honest["parts"][1:]]}

    write("length", "length", rebound(keys[0][:-1]))
    write("flag", "flag", rebound(flipped(keys[0], 0, 2)))
    write("word_length", "words", {**honest, "word": word[:-1].hex()})
    write("bindings", "commitments", {**honest, "bindings": honest["bindings"][:2]})
