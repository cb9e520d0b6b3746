"""The anonymous credential, implemented independently from docs/protocol.md."""

import hashlib
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reference as r  # noqa: E402
from ristretto import BASE, IDENTITY, ORDER, from_uniform  # noqa: E402

PREFIX = "alpheus/credential/"


def wide(label, parts):
    return hashlib.sha512(r.delimited(label, parts)).digest()


def hash_to_element(label, parts):
    return from_uniform(wide(label, parts))


def hash_to_scalar(label, parts):
    return int.from_bytes(wide(label, parts), "little") % ORDER


G = BASE
H = hash_to_element("alpheus/group/second-base/v1", [])


def number(n, size=8):
    return n.to_bytes(size, "big", signed=n < 0)


def scalar(k):
    return (k % ORDER).to_bytes(32, "little")


def inverse(k):
    return pow(k, -1, ORDER)


class Stream:
    """Given randomness, recorded so that the computation can be repeated."""

    def __init__(self, name):
        self.source = hashlib.shake_256(f"alpheus credential {name}".encode()).digest(1 << 14)
        self.used = 0

    def take(self, count):
        self.used += count
        return self.source[self.used - count : self.used]

    def scalar(self):
        return int.from_bytes(self.take(64), "little") % ORDER

    def so_far(self):
        return self.source[: self.used].hex()


class Statement:
    """Public: label, fields, elements; equations [image, [(coefficient, secret, element)]]."""

    def __init__(self, label, fields, secrets, elements, equations):
        self.label, self.fields, self.secrets = label, fields, secrets
        self.elements, self.equations = elements, equations

    def shape(self):
        out = number(self.secrets, 2) + number(len(self.elements), 2)
        out += number(len(self.equations), 2)
        for image, terms in self.equations:
            out += number(image, 2) + number(len(terms), 2)
            for coefficient, secret, element in terms:
                out += number(coefficient) + number(secret, 2) + number(element, 2)
        return out

    def prefix(self):
        elements = b"".join(e.encode() for e in self.elements)
        return r.delimited(PREFIX + self.label, [*self.fields, self.shape(), elements])

    def challenge(self, commitments, leave_out=None):
        hashed = b"".join(c for j, c in enumerate(commitments) if j != leave_out)
        data = self.prefix() + number(len(hashed)) + hashed
        return int.from_bytes(hashlib.sha512(data).digest(), "little") % ORDER

    def evaluate(self, scalars, equation):
        total = IDENTITY
        for coefficient, secret, element in self.equations[equation][1]:
            total = total + (coefficient * scalars[secret]) * self.elements[element]
        return total

    def prove(self, witness, stream, leave_out=None):
        """With `leave_out`, the forgery that a verifier accepts which leaves that
        commitment out of its hash: it is solved for once the challenge is known."""
        fresh = stream.take(32)
        statement = hashlib.sha512(self.prefix()).digest()
        secrets = b"".join(scalar(w) for w in witness)
        nonces = [
            hash_to_scalar("alpheus/proof/nonce/v1", [fresh, secrets, statement, number(j)])
            for j in range(self.secrets)
        ]
        count = range(len(self.equations))
        commitments = [self.evaluate(nonces, j).encode() for j in count]
        c = self.challenge(commitments, leave_out)
        responses = [(k + c * w) % ORDER for k, w in zip(nonces, witness)]
        if leave_out is not None:
            image = self.elements[self.equations[leave_out][0]]
            commitments[leave_out] = (self.evaluate(responses, leave_out) - c * image).encode()
        return b"".join(commitments) + b"".join(map(scalar, responses))


def part(statement, commitments):
    hashed = b"".join(commitments)
    return hashlib.sha512(statement.prefix() + number(len(hashed)) + hashed).digest()


def prove_together(statements, witnesses, own, stream):
    """Proofs by one challenge, and all parts. The first `own` secrets are each one's own."""
    fresh, count = stream.take(32), len(statements)
    prefixes = b"".join(hashlib.sha512(s.prefix()).digest() for s in statements)
    secrets = [w for witness in witnesses for w in witness[:own]] + witnesses[0][own:]
    hashed = b"".join(map(scalar, secrets))
    statement = hashlib.sha512(prefixes).digest()
    nonces = [
        hash_to_scalar("alpheus/proof/nonce/v1", [fresh, hashed, statement, number(j)])
        for j in range(len(secrets))
    ]
    of = [nonces[p * own : (p + 1) * own] + nonces[count * own :] for p in range(count)]
    commitments = [[s.evaluate(of[p], j).encode() for j in range(len(s.equations))]
                   for p, s in enumerate(statements)]
    parts = [part(s, c) for s, c in zip(statements, commitments)]
    c = hash_to_scalar("alpheus/proof/together/v1", parts)
    proofs = []
    for p, witness in enumerate(witnesses):
        responses = [(k + c * w) % ORDER for k, w in zip(of[p], witness)]
        proofs.append(b"".join(commitments[p]) + b"".join(map(scalar, responses)))
    return proofs, parts


def varint(n):
    out = b""
    while n >= 128:
        out, n = out + bytes([n % 128 + 128]), n // 128
    return out + bytes([n])


class Issuer:
    def __init__(self, name):
        stream = Stream(f"issuer {name}")
        self.x0, self.x1, self.x2, self.xb = (stream.scalar() for _ in range(4))
        self.public = [self.x0 * G + self.xb * H, self.x1 * H, self.x2 * H]

    def bytes(self):
        return b"".join(map(scalar, (self.x0, self.x1, self.x2, self.xb)))


class Configuration:
    def __init__(self, issuer, limit=1, tier=1, kind=1):
        self.issuer, self.limit, self.tier, self.kind = issuer, limit, tier, kind
        self.deployment = hashlib.sha256(b"alpheus credential deployment").digest()
        self.incarnation = 300
        # Start, epoch, pre-login, border pre-login (microseconds), epochs of a period, ahead.
        self.schedule = [1_700_000_000_000_000, 15_000_000, 3_000_000, 10_000_000, 5760, 3]
        numbers = [kind, self.tier, limit, self.incarnation, *self.schedule]
        self.bytes = self.deployment + b"".join(map(varint, numbers))
        self.bytes += b"".join(e.encode() for e in issuer.public)
        self.fingerprint = r.labelled_hash(PREFIX + "configuration/v2", [self.bytes])

    def about(self, name, limit):
        """The same, for presentations about one subject."""
        parts = [self.fingerprint, number(limit, 4), name]
        other = Configuration(self.issuer, limit, self.tier, self.kind)
        other.fingerprint = r.labelled_hash(PREFIX + "subject/v1", parts)
        return other

    def json(self):
        return {"deployment": self.deployment.hex(), "kind": self.kind, "tier": self.tier,
                "limit": self.limit, "incarnation": self.incarnation, "schedule": self.schedule,
                "issuer": self.issuer.bytes().hex(), "fingerprint": self.fingerprint.hex()}

    def period(self, epoch):
        return epoch // self.schedule[4]

    def m2(self, period):
        parts = [self.deployment, number(self.kind, 4), number(self.tier, 4), number(period)]
        return hash_to_scalar(PREFIX + "attributes/v1", parts)

    def context(self, epoch):
        return hash_to_element(PREFIX + "context/v1", [self.fingerprint, number(epoch)])

    def bases(self):
        bits = (self.limit - 1).bit_length()
        return [self.limit - 2**j if j + 1 == bits else 2**j for j in range(bits)]


class Request:
    def __init__(self, config, account, period, name, wrong=False, leave_out=None):
        self.period, stream = period, Stream(f"request {name}")
        hedge = [stream.take(32), config.fingerprint, number(period), account]
        self.m1, self.r1 = (
            hash_to_scalar(PREFIX + "request-secrets/v1", [*hedge, number(j)]) for j in (0, 1))
        self.e1 = self.m1 * G + self.r1 * H + (G if wrong else IDENTITY)
        fields = [config.fingerprint, number(period), account]
        statement = Statement("request/v1", fields, 2, [G, H, self.e1], [(2, [(1, 0, 0), (1, 1, 1)])])
        self.proof = statement.prove([self.m1, self.r1], stream, leave_out)
        self.bytes = number(period) + self.e1.encode() + self.proof
        self.randomness = stream.so_far()


class Response:
    """`wrong` is the equation that alone does not hold."""

    def __init__(self, config, request, name, wrong=None, leave_out=None, m2=None):
        k, stream = config.issuer, Stream(f"response {name}")
        asked = r.labelled_hash(PREFIX + "asked/v1", [request.bytes])
        hedge = [stream.take(32), k.bytes(), config.fingerprint, asked]
        b = hash_to_scalar(PREFIX + "response-secret/v1", hedge)
        t1, t2, m2 = b * k.x1, b * k.x2, config.m2(request.period) if m2 is None else m2
        self.u, self.ha = b * G, b * H
        self.eu = b * k.public[0] + t1 * request.e1 + (t2 * m2) * G
        self.x0a, self.x1a, self.x2a = b * k.xb * H, t1 * H, t2 * H
        witness = [k.x0, k.x1, k.x2, k.xb, b, t1, t2]
        self.corrupt(config, request, wrong, witness)
        elements = [G, H, *k.public, request.e1, config.m2(request.period) * G,
                    self.u, self.eu, self.ha, self.x0a, self.x1a, self.x2a]
        equations = [
            (2, [(1, 0, 0), (1, 3, 1)]), (3, [(1, 1, 1)]), (4, [(1, 2, 1)]),
            (7, [(1, 4, 0)]), (9, [(1, 4, 1)]), (10, [(1, 3, 9)]),
            (11, [(1, 4, 3)]), (11, [(1, 5, 1)]), (12, [(1, 4, 4)]), (12, [(1, 6, 1)]),
            (8, [(1, 4, 2), (1, 5, 5), (1, 6, 6)]),
        ]
        statement = Statement("response/v1", [config.fingerprint, asked], 7, elements, equations)
        if wrong is not None:
            holds = [statement.evaluate(witness, j) == elements[e[0]] for j, e in enumerate(equations)]
            assert [j for j, h in enumerate(holds) if not h] == [wrong], (wrong, holds)
        self.bytes = b"".join(e.encode() for e in elements[7:])
        self.bytes += statement.prove(witness, stream, leave_out)
        self.randomness = stream.so_far()
        self.mac = self.eu - self.x0a - request.r1 * self.x1a

    def corrupt(self, config, request, wrong, witness):
        if wrong in (0, 1, 2):  # Another secret than the public key's.
            witness[wrong] += 1
        elif wrong == 3:
            self.u = self.u + G
        elif wrong == 4:  # The witness's xb stays that of X0A over the new HA.
            self.ha = self.ha + G
            self.x0a = config.issuer.xb * self.ha
        elif wrong == 5:
            self.x0a = self.x0a + G
        elif wrong == 6:  # t1 is not b·x1, but all else is made with it.
            witness[5] += 1
            self.x1a, self.eu = witness[5] * H, self.eu + request.e1
        elif wrong == 7:
            witness[5] += 1
            self.eu = self.eu + request.e1
        elif wrong == 8:
            witness[6] += 1
            self.x2a = witness[6] * H
        elif wrong == 9:
            witness[6] += 1
        elif wrong == 10:
            self.eu = self.eu + G
        if wrong in (8, 9):
            self.eu = self.eu + config.m2(request.period) * G


class Credential:
    def __init__(self, config, request, response):
        self.config, self.m1, self.u, self.mac = config, request.m1, response.u, response.mac
        self.period = request.period


class Login:
    """`alter` may change elements before the proof; V is the verifier's, or the holder's of one that
    is `openly` made. One that is made `together` with others is proven by them."""

    def __init__(self, credential, epoch, index, message, name, alter=None, leave_out=None,
                 together=None, openly=False):
        config, stream = credential.config, Stream(f"login {name}")
        self.config, self.epoch, self.message = config, epoch, message
        hedge = self.hedge(stream.take(32), credential, epoch, index)
        if together:
            hedge, bits_hedge = together
        else:
            bits_hedge = hedge
        label = PREFIX + "showing-secrets/v1"
        self.seed = r.derive(hedge, label, [], 32)
        key = r.derive(self.seed, PREFIX + "session-key/v1", [], 32)
        public = Ed25519PrivateKey.from_private_bytes(key).public_key()
        self.holder = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
        a, blind, z = (hash_to_scalar(label, [hedge, number(j)]) for j in (1, 2, 3))
        self.u, self.c = a * credential.u, a * credential.mac + blind * G
        self.cm = credential.m1 * self.u + z * H
        self.tag = inverse(credential.m1 + index) * config.context(epoch)
        self.witness, self.bits = [credential.m1, z, blind], []
        for j, bit in enumerate(self.decompose(index)):
            s = hash_to_scalar(label, [bits_hedge, number(4 + j)])
            self.bits.append(bit * G + s * H)
            self.witness += [bit, s, (1 - bit) * s]
        if alter:
            alter(self)
        self.claimed = z * config.issuer.public[1] - blind * G
        if not together:
            v = self.claimed if openly else self.v()
            self.proof = self.statement(v).prove(self.witness, stream, leave_out)
            self.randomness = stream.so_far()

    @staticmethod
    def hedge(fresh, credential, epoch, index):
        fingerprint = credential.config.fingerprint
        return fresh + scalar(credential.m1) + fingerprint + number(epoch) + number(index, 4)

    def decompose(self, index):
        *powers, last = self.config.bases() or [0]
        bits = [0] * len(powers)
        top = int(index >= 2 ** len(powers))
        rest = index - last * top
        bits = [rest >> j & 1 for j in range(len(powers))] + [top]
        return bits if self.config.limit > 1 else []

    def v(self):
        k, m2 = self.config.issuer, self.config.m2(self.config.period(self.epoch))
        return (k.x0 + k.x2 * m2) * self.u + k.x1 * self.cm - self.c

    def statement(self, v):
        config, bits = self.config, len(self.bits)
        fields = [config.fingerprint, number(self.epoch), number(config.limit, 4),
                  self.holder, self.message]
        elements = [G, H, config.issuer.public[1], config.context(self.epoch),
                    self.u, self.c, self.cm, v, self.tag, *self.bits]
        index = [(base, 3 + 3 * j, 8) for j, base in enumerate(config.bases())]
        equations = [(6, [(1, 0, 4), (1, 1, 1)]), (7, [(1, 1, 2), (-1, 2, 0)]),
                     (3, [(1, 0, 8), *index])]
        for j in range(bits):
            d, b = 9 + j, 3 + 3 * j
            equations += [(d, [(1, b, 0), (1, b + 1, 1)]), (d, [(1, b, d), (1, b + 2, 1)])]
        self.false = [j for j, (image, _) in enumerate(equations)
                      if not Statement("", [], 0, elements, equations).evaluate(self.witness, j)
                      == elements[image]]
        return Statement("showing/v1", fields, 3 + 3 * bits, elements, equations)

    def bytes(self):
        elements = [self.u, self.c, self.cm, self.tag, *self.bits]
        head = number(self.epoch) + self.holder + self.message
        return head + b"".join(e.encode() for e in elements) + self.proof

    def tag_id(self):
        parts = [self.config.fingerprint, number(self.epoch), self.tag.encode()]
        return r.labelled_hash(PREFIX + "tag/v1", parts)


class Refutation:
    """That the claimed V of a presentation is wrong. `lie` is the equation that alone does not hold;
    the other secrets and elements are made to fit."""

    def __init__(self, login, about, name, lie=None, leave_out=None, claimed=None):
        config, stream = login.config, Stream(f"refutation {name}")
        key, m2 = config.issuer, config.m2(config.period(login.epoch))
        v = login.claimed if claimed is None else claimed
        whole = v.encode() + login.bytes()
        base = [config.fingerprint, whole, about]
        y = hash_to_element(PREFIX + "refutation-base/v1", base)
        hedge = [stream.take(32), key.bytes(), *base]
        rho = hash_to_scalar(PREFIX + "refutation-secret/v1", hedge)
        sigma = inverse(rho)
        secrets = [key.x0, key.x1, key.x2, key.xb]
        if lie in (0, 1, 2):
            secrets[lie] += 1
        shifted, m2u = v + login.c, m2 * login.u
        wrong = shifted - secrets[0] * login.u - secrets[1] * login.cm - secrets[2] * m2u
        masked, nonzero = rho * wrong, sigma * y
        if lie == 3:
            masked = G
        if lie == 4:  # V is right, and nothing is subtracted.
            masked, nonzero, sigma = G, 7 * y, 0
        elements = [G, H, *key.public, login.u, login.cm, m2u, shifted, masked, y, nonzero]
        equations = [(2, [(1, 0, 0), (1, 3, 1)]), (3, [(1, 1, 1)]), (4, [(1, 2, 1)]),
                     (8, [(1, 0, 5), (1, 1, 6), (1, 2, 7), (1, 4, 9)]), (11, [(1, 4, 10)])]
        statement = Statement("refutation/v1", [config.fingerprint, about], 5, elements, equations)
        witness = [*secrets, sigma]
        self.false = [j for j, (image, _) in enumerate(equations)
                      if not statement.evaluate(witness, j) == elements[image]]
        self.bytes = masked.encode() + nonzero.encode() + statement.prove(witness, stream, leave_out)
        self.randomness = stream.so_far()


class Together:
    """Presentations of several credentials, each for its own verifier. `alter` may change them."""

    def __init__(self, credentials, epoch, index, message, name, alter=None):
        stream = Stream(f"together {name}")
        hedges = [Login.hedge(stream.take(32), c, epoch, index) for c in credentials]
        bits = b"".join(hedges)
        self.logins = [Login(c, epoch, index, message, name, together=(hedge, bits))
                       for c, hedge in zip(credentials, hedges)]
        if alter:
            alter(self.logins)
        statements = [login.statement(login.v()) for login in self.logins]
        self.false = [login.false for login in self.logins]
        witnesses = [login.witness for login in self.logins]
        proofs, self.parts = prove_together(statements, witnesses, 3, stream)
        for login, proof in zip(self.logins, proofs):
            login.proof = proof
        self.randomness = stream.so_far()

    def bytes(self, place):
        others = self.parts[:place] + self.parts[place + 1 :]
        return b"".join(others) + self.logins[place].bytes()


class ReUp:
    def __init__(self, credential, login, name, tag=None, m1=None, leave_out=None, before=None):
        config, stream = credential.config, Stream(f"re-up {name}")
        epoch, session = login.epoch + 1, login.tag_id()
        m1 = credential.m1 if m1 is None else m1
        tag = inverse(m1) * config.context(epoch) if tag is None else tag
        fields = [config.fingerprint, number(epoch), session]
        elements = [config.context(login.epoch), config.context(epoch), before or login.tag, tag]
        statement = Statement("re-up/v1", fields, 1, elements, [(0, [(1, 0, 2)]), (1, [(1, 0, 3)])])
        proof = statement.prove([m1], stream, leave_out)
        self.bytes = number(epoch) + session + tag.encode() + proof
        self.randomness = stream.so_far()
