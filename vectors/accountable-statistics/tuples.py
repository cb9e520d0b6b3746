"""Tuples of accountable statistics, implemented independently from docs/kernel.md."""

import hashlib
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "anonymous-credential"))
import protocol as credential  # noqa: E402
import reference as r  # noqa: E402
from bulletproofs import Prover  # noqa: E402
from protocol import hash_to_element, hash_to_scalar, number, scalar  # noqa: E402
from ristretto import BASE as B, ORDER  # noqa: E402

PREFIX = "alpheus/statistics/"
M = hash_to_element(PREFIX + "message-base/v1", [])


class Statement(credential.Statement):
    """The same proofs, under labels of this protocol."""

    def prefix(self):
        elements = b"".join(e.encode() for e in self.elements)
        return r.delimited(PREFIX + self.label, [*self.fields, self.shape(), elements])

    def false(self, witness):
        """Which equations do not hold."""
        equations = enumerate(self.equations)
        return [j for j, e in equations if self.evaluate(witness, j) != self.elements[e[0]]]


class Stream(credential.Stream):
    def __init__(self, name):
        source = hashlib.shake_256(f"alpheus statistics {name}".encode())
        self.source, self.used = source.digest(1 << 14), 0


class Interval:
    def __init__(self, lowest, highest, square):
        self.lowest, self.highest, self.square = lowest, highest, square
        self.width = highest - lowest
        self.bits = next(n for n in (2, 4, 8, 16, 32) if self.width < 2**n)
        self.two_sided = self.width + 1 != 2**self.bits
        self.bytes = number(lowest) + number(highest) + bytes([square])

    def json(self):
        return {"lowest": self.lowest, "highest": self.highest, "square": self.square}


class Terms:
    def __init__(self, key, interval):
        self.key, self.interval = key, interval
        self.digest = r.labelled_hash(PREFIX + "terms/v1", [key.encode(), interval.bytes])


class Binding:
    def __init__(self, tag, aggregate, ephemeral):
        self.fields = [tag.encode(), aggregate, ephemeral]
        self.digest = r.labelled_hash(PREFIX + "binding/v2", self.fields)

    def json(self):
        return {name: field.hex() for name, field in zip(("tag", "aggregate", "ephemeral"), self.fields)}


class Tuple:
    """`alter` may change secrets before encryption and elements after it; `lie` what the
    range proof says its bits are. Randomness as the Rust prover draws it, but for the range
    proof's own."""

    def __init__(self, terms, binding, value, name, alter=None, leave_out=None, lie=None):
        self.terms, self.binding, stream = terms, binding, Stream(f"tuple {name}")
        self.stream = stream
        real = value is not None
        offset = value - terms.interval.lowest if real else 0
        given = number(offset, 4) + number(int(real), 4)
        hedge = [stream.take(32), given, terms.digest, binding.digest]
        blinding = [hash_to_scalar(PREFIX + "blinding/v1", [*hedge, bytes([j])]) for j in range(3)]
        self.v, self.c, (self.rv, self.rc, self.rq) = offset, int(real), blinding
        self.shift, self.witness_shift, self.squared = {}, {}, None
        if alter:
            alter(self)
        self.encrypt()
        self.proof = self.statement().prove(self.witness(), stream, leave_out)
        self.randomness = stream.so_far()
        self.range = self.prove_range(lie)
        self.bytes = self.ciphertexts() + self.proof + self.range

    def moved(self, name, point):
        return point + self.shift[name] if name in self.shift else point

    def encrypt(self):
        P, v = self.terms.key, self.v if self.squared is None else self.squared
        self.R_v = self.moved("R_v", self.rv * B)
        self.C_v = self.moved("C_v", self.v * M + self.rv * P)
        self.R_c = self.moved("R_c", self.rc * B)
        self.C_c = self.moved("C_c", self.c * M + self.rc * P)
        self.R_q = self.moved("R_q", v * self.R_v + self.rq * B)
        self.C_q = self.moved("C_q", v * self.C_v + self.rq * P)

    def elements(self):
        four = [self.R_v, self.C_v, self.R_c, self.C_c]
        return four + ([self.R_q, self.C_q] if self.terms.interval.square else [])

    def ciphertexts(self):
        return b"".join(e.encode() for e in self.elements())

    def witness(self):
        secrets = {"v": self.v, "rv": self.rv, "c": self.c, "rc": self.rc,
                   "sc": (1 - self.c) * self.rc, "sv": (1 - self.c) * self.rv, "rq": self.rq}
        secrets.update(self.witness_shift)
        values = [k % ORDER for k in secrets.values()]
        return values if self.terms.interval.square else values[:6]

    def statement(self):
        # 0 B, 1 M, 2 P, 3 R_v, 4 C_v, 5 R_c, 6 C_c, 7 R_q, 8 C_q.
        equations = [
            (3, [(1, 1, 0)]), (4, [(1, 0, 1), (1, 1, 2)]),
            (5, [(1, 3, 0)]), (6, [(1, 2, 1), (1, 3, 2)]),
            (6, [(1, 2, 6), (1, 4, 2)]), (4, [(1, 2, 4), (1, 5, 2)]),
        ]
        if self.terms.interval.square:
            equations += [(8, [(1, 0, 4), (1, 6, 2)]), (7, [(1, 0, 3), (1, 6, 0)])]
        fields = [self.terms.digest, self.binding.digest]
        elements = [B, M, self.terms.key, *self.elements()]
        return Statement("tuple/v1", fields, 7 if self.terms.interval.square else 6, elements, equations)

    def prove_range(self, lie):
        interval = self.terms.interval
        parts = [self.terms.digest, self.binding.digest, self.ciphertexts(), self.proof]
        bound = r.labelled_hash(PREFIX + "range-statement/v1", parts)
        commitments, values, blindings = [self.C_v], [self.v], [self.rv]
        if interval.two_sided:
            commitments.append(interval.width * self.C_c - self.C_v)
            values.append(interval.width * self.c - self.v)
            blindings.append(interval.width * self.rc - self.rv)
        bits = lie(values) if lie else {}
        prover = Prover(M, self.terms.key, interval.bits, commitments, values, blindings, self.stream, **bits)
        return prover.prove((PREFIX + "range/v1").encode(), bound)

    def digest(self):
        return r.labelled_hash(PREFIX + "tuple-digest/v1", [self.bytes])


assert scalar(ORDER) == bytes(32)
