"""Bulletproofs+ (Chung, Han, Ju, Kim, Seo 2020) as a prover that keeps to the paper's
figures, and the transcript that the Rust library takes. It can produce invalid proofs on request."""

import hashlib
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "anonymous-credential"))
from merlin import Transcript  # noqa: E402
from ristretto import IDENTITY, ORDER, from_uniform  # noqa: E402


def scalar(k):
    return (k % ORDER).to_bytes(32, "little")


def chain(label, party, count):
    source = hashlib.shake_256(b"GeneratorsChain" + label + party.to_bytes(4, "little"))
    data = source.digest(64 * count)
    return [from_uniform(data[64 * i : 64 * i + 64]) for i in range(count)]


GENERATORS = {}


def generators(bits, parties):
    if (bits, parties) not in GENERATORS:
        GENERATORS[bits, parties] = [
            [g for party in range(parties) for g in chain(label, party, bits)] for label in (b"G", b"H")]
    return GENERATORS[bits, parties]


def combine(scalars, points):
    total = IDENTITY
    for k, p in zip(scalars, points):
        if k % ORDER:
            total = total + (k % ORDER) * p
    return total


def inverse(k):
    return pow(k, -1, ORDER)


class Prover:
    """`left` and `right` are a_L and a_R if they are not the bits and the bits less one."""

    def __init__(self, message, key, bits, commitments, values, blindings, stream, left=None, right=None):
        self.message, self.key, self.bits, self.stream = message, key, bits, stream
        self.commitments, self.blindings = commitments, blindings
        self.left = left or [v >> i & 1 for v in values for i in range(bits)]
        self.right = right or [a - 1 for a in self.left]

    def challenge(self, transcript, label):
        return int.from_bytes(transcript.challenge(label, 64), "little") % ORDER

    def begin(self, transcript):
        number = lambda n: n.to_bytes(8, "little")  # noqa: E731
        transcript.append(b"dom-sep", b"Bulletproofs+ Range Proof")
        transcript.append(b"H", self.message.encode())
        transcript.append(b"G", self.key.encode())
        for label, n in ((b"N", self.bits), (b"T", 1), (b"M", len(self.commitments))):
            transcript.append(label, number(n))
        for commitment in self.commitments:
            transcript.append(b"Ci", commitment.encode())
        for _ in self.commitments:
            transcript.append(b"vi - minimum_value", number(0))

    def prove(self, label, bound):
        transcript = Transcript(label)
        transcript.append(b"statement", bound)
        self.begin(transcript)
        g, h = generators(self.bits, len(self.commitments))
        full, alpha = len(self.left), self.stream.scalar()
        a_point = combine([*self.left, *self.right, alpha], [*g, *h, self.key])
        transcript.append(b"A", a_point.encode())
        y, z = self.challenge(transcript, b"y"), self.challenge(transcript, b"z")
        a = [k - z for k in self.left]
        weights = [pow(z, 2 * (j + 1), ORDER) << i for j in range(len(self.commitments))
                   for i in range(self.bits)]
        b = [k + w * pow(y, full - i, ORDER) + z for i, (k, w) in enumerate(zip(self.right, weights))]
        for j, blinding in enumerate(self.blindings):
            alpha += pow(z, 2 * (j + 1), ORDER) * blinding * pow(y, full + 1, ORDER)
        rounds = []
        while len(a) > 1:
            a, b, g, h, alpha, pair = self.fold(transcript, y, a, b, g, h, alpha)
            rounds += pair
        return self.end(transcript, y, a[0], b[0], g[0], h[0], alpha, a_point, rounds)

    def fold(self, transcript, y, a, b, g, h, alpha):
        n = len(a) // 2
        yn = pow(y, n, ORDER)
        d_left, d_right = self.stream.scalar(), self.stream.scalar()
        c_left = sum(a[i] * pow(y, i + 1, ORDER) * b[n + i] for i in range(n))
        c_right = sum(a[n + i] * pow(y, n + 1 + i, ORDER) * b[i] for i in range(n))
        left = combine(
            [c_left, d_left, *(k * inverse(yn) for k in a[:n]), *b[n:]],
            [self.message, self.key, *g[n:], *h[:n]])
        right = combine(
            [c_right, d_right, *(k * yn for k in a[n:]), *b[:n]],
            [self.message, self.key, *g[:n], *h[n:]])
        transcript.append(b"L", left.encode())
        transcript.append(b"R", right.encode())
        e = self.challenge(transcript, b"e")
        e_inverse = inverse(e)
        g = [e_inverse * g[i] + (e * inverse(yn)) % ORDER * g[n + i] for i in range(n)]
        h = [e * h[i] + e_inverse * h[n + i] for i in range(n)]
        a = [(a[i] * e + a[n + i] * yn * e_inverse) % ORDER for i in range(n)]
        b = [(b[i] * e_inverse + b[n + i] * e) % ORDER for i in range(n)]
        alpha += d_left * e * e + d_right * e_inverse * e_inverse
        return a, b, g, h, alpha, [left, right]

    def end(self, transcript, y, a, b, g, h, alpha, a_point, rounds):
        r, s, d, eta = (self.stream.scalar() for _ in range(4))
        a1 = combine([r, s, r * y * b + s * y * a, d], [g, h, self.message, self.key])
        last = combine([r * y * s, eta], [self.message, self.key])
        transcript.append(b"A1", a1.encode())
        transcript.append(b"B", last.encode())
        e = self.challenge(transcript, b"e")
        out = scalar(eta + d * e + alpha * e * e) + a_point.encode() + a1.encode() + last.encode()
        out += scalar(r + a * e) + scalar(s + b * e)
        return out + b"".join(point.encode() for point in rounds)
