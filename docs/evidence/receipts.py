"""What controllers have signed: plans, receipts, and the columns that follow from them.

Written from encrypted-stream/docs/protocol.md and docs/wire-formats.md, with no code of Alpheus. `check.py` uses it.
"""

import hashlib
from decimal import Decimal
from fractions import Fraction
from math import isqrt

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

WORD = 1 << 64
# Postcard. u and i are integers, b a byte, s a text, x bytes, a number so many bytes; * a list, ? an option. A name
# is a struct, or with | an enum, which is read as serde writes it in JSON.
TYPES = dict(line.split(" ", 1) for line in """\
F numerator:u denominator:u
BITS roster:u bytes:x
WINDOW start:u end:u
SIGNED bytes:x signature:64
STATEMENT lines:32 count:u
CERTIFICATE subject:16 role:u name:s key:32 agreement:?32 sealing:?32
BINS edges:*i cells:**u min:i max:i scale:b
SUM sum:u count:?u scale:b
SIDE sum:u count:u scale:b
COUNT count:u of:?u
MOMENTS output:u count:u sum:u squares:?u scale:b
QUANTILE numerator:u denominator:u
ORDER | Counts Quantile:QUANTILE Min Max Range Mode Top:u
HISTOGRAM output:ORDER bins:BINS
REGRESSION output:u count:u x:u y:u xx:?u xy:u yy:?u x_scale:b y_scale:b
BY output:u counts:BINS sums:?**u squares:?**u scale:b
STATISTIC | Sum:SUM Count:COUNT Moments:MOMENTS Histogram:HISTOGRAM Regression:REGRESSION By:BY SideSum:SIDE Any:u All:u D:*u F:*u
ITEM alias:s statistic:STATISTIC
DIGIT row:u bits:b digit:b
LIMBS low:u high:u
CELL | Whole:u Digit:DIGIT Limbs:LIMBS
HORIZON windows:u touched:u
MECHANISM | Laplace Skellam Gaussian Matrix:HORIZON
UNIT | Event PersonPerWindow PersonPerPeriod:u
LAPLACE above:u below:u
SKELLAM above:u below:u granule:u
GAUSSIAN variance:u
RUNNING seed_scale:u fraction_bits:b fine_bits:b
NOISE | None Laplace:LAPLACE Skellam:SKELLAM Gaussian:GAUSSIAN Running:RUNNING
PRIVACY mechanism:MECHANISM micro_epsilon:u atto_delta:u unit:UNIT events:u streams_per_owner:u noise:*NOISE
COMPARE attribute:s comparison:u value:s
IN attribute:s values:*s negated:b
STEP | Compare:COMPARE In:IN All:u Any:u Not
NEIGHBOURS picks:u cut_off:u
MASKS | Single Clique Dream:b Epoch:b Neighbours:NEIGHBOURS
GROUP name:s value:s
POPULATION min:u max:u
EPOCH terms:32 list:32 windows:u
STREAM stream:16 owner:32 controller:u
INTEGRITY | plain verified bounded:u
RELEASE rows:**u cells:*CELL items:*ITEM integrity:INTEGRITY steps:*STEP privacy:?PRIVACY attributes:*u population:POPULATION
TERMS alpha:F colluders:u dropout:F delta:b masks:MASKS epoch:?EPOCH roster:*32 streams:*STREAM
PLAN nonce:16 query:s consumer:s to:?32 schema:32 group:*GROUP window_us:u grace:u from_us:u release:RELEASE terms:TERMS
SHARE token:SIGNED opening:?SIGNED
EXCLUSION presence:SIGNED at:u size:u path:*32 pickers:?*u
RECEIPT version:b membership:SIGNED opening_set:?SIGNED shares:*SHARE exclusions:*EXCLUSION
MEMBERSHIP plan:32 window:WINDOW set:BITS owners:*u root:32 keys:*SIGNED
OPENING_SET plan:32 window:WINDOW membership:32 set:BITS
TOKEN plan:32 window:WINDOW controller:u membership:32 words:*u
OPENING plan:32 window:WINDOW controller:u set:32 token:?32 words:*u
EXCLUDED stream:u reason:u
PRESENCE plan:32 window:WINDOW controller:u summons:32 accepted:*u excluded:*EXCLUDED owners:u silent:u key:?SIGNED
SEALED version:b plan:32 window:WINDOW membership:32 set:BITS words:*u""".splitlines())


class WrongError(Exception):
    pass


def need(holds, what):
    if not holds:
        raise WrongError(what)


def same(name, stated, follows):
    need(stated == follows, f"{name} is {stated}, and follows as {follows}")


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        need(self.at + count <= len(self.data), "bytes are lacking")
        self.at += count
        return self.data[self.at - count:self.at]

    def varint(self):
        byte = self.take(1)[0]
        return byte if byte < 128 else byte - 128 + 128 * self.varint()

    def read(self, of):
        if of in TYPES:
            fields = [field.partition(":") for field in TYPES[of].split()]
            if fields[0][0] != "|":
                return {name: self.read(kind) for name, _, kind in fields}
            name, _, kind = fields[1 + self.varint()]
            return {name: self.read(kind)} if kind else name
        if of[0] == "*":
            return [self.read(of[1:]) for _ in range(self.varint())]
        if of[0] == "?":
            return self.read(of[1:]) if self.take(1)[0] else None
        if of == "b" or of.isdigit():
            return self.take(1)[0] if of == "b" else self.take(int(of)).hex()
        number = self.varint()
        if of in "sx":
            return self.take(number).decode() if of == "s" else self.take(number)
        return number if of == "u" else number >> 1 ^ -(number & 1)


def whole(data, of):
    reader = Reader(data)
    value = reader.read(of)
    need(reader.at == len(data), "bytes are left over")
    return value


def labelled(label, *parts):
    return hashlib.sha256(b"".join(len(p).to_bytes(8, "big") + p for p in [label.encode(), *parts])).digest()


def signed_by(key, signed, label):
    """The digest of a signed message, by which others name it."""
    digest = labelled(f"alpheus/{label}", signed["bytes"])
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signed["signature"]), digest)
    except InvalidSignature:
        raise WrongError(f"the signature of {label} does not hold") from None
    return digest.hex()


def announced(data, authority, service):
    """The plan that the service announced, with the keys that the authority certified for its controllers."""
    signed = whole(data, "SIGNED")
    signed_by(service, signed, "announcement/v5")
    body = Reader(signed["bytes"])
    plan = body.read("PLAN")
    plan.update(plan["release"], **plan["terms"], id=labelled("alpheus/plan/v5", body.data[:body.at]).hex())
    n, alpha, certificates = len(plan["roster"]), plan["alpha"], body.read("*SIGNED")
    same("roster", plan["roster"], [signed_by(authority, one, "certificate/v1") for one in certificates])
    certificates = [whole(one["bytes"], "CERTIFICATE") for one in certificates]
    need(all(one["role"] == 1 for one in certificates), "a member is no controller")
    share = max(n * alpha["numerator"] // alpha["denominator"], plan["colluders"], 1)
    plan["tolerated"] = min(share, n - 1) if alpha["numerator"] and n > 1 else 0
    return {**plan, "keys": [one["key"] for one in certificates]}


def check_receipt(data, plan, service, row):
    """What the members of a row's window have signed."""
    receipt, n, each = whole(data, "RECEIPT"), len(plan["roster"]), plan["window_us"]
    start = -(-row["window_start"] * 1000 // each) * each
    here = {"plan": plan["id"], "window": {"start": start, "end": start + each}}

    def read(signed, of, label, key, **bound):
        message = {**whole(signed["bytes"], of), "digest": signed_by(key, signed, label)}
        for name, value in {**here, **bound}.items():
            same(f"{name} of {label}", message[name], value)
        return message
    def among(bits): return [p for p in range(bits["roster"]) if bits["bytes"][p // 8] >> p % 8 & 1]
    need(receipt["version"] == 2 and plan["integrity"] == "verified", "it is no receipt of a verified plan")
    m, chosen = read(receipt["membership"], "MEMBERSHIP", "membership/v2", service), {"roster": n, "bytes": b""}
    members, token, opening, words = among(m["set"]), None, None, [0] * len(plan["rows"])
    sizes = len(m["owners"]) == len(members) and len(m["keys"]) in (0, len(members))
    need(m["set"]["roster"] == n and sizes, "the membership does not fit the plan")
    counts, at = dict(zip(members, m["owners"])), lambda p: {s["owner"] for s in plan["streams"] if s["controller"] == p}
    need(all(counts[p] <= len(at(p)) for p in members), "the membership states more owners than the plan")
    set_of, bound = m["set"], {}
    if n > 1:
        s = read(receipt["opening_set"], "OPENING_SET", "opening-set/v1", service, membership=m["digest"])
        set_of, bound = s["set"], {"set": s["digest"]}
    chosen = among(set_of)
    cut = plan["masks"]["Neighbours"]["cut_off"] if "Neighbours" in plan["masks"] else 0
    spared = max(n >= 4, len(members) * plan["dropout"]["numerator"] // plan["dropout"]["denominator"])
    less = plan["tolerated"] + cut
    need(set(chosen) <= set(members) and set_of["roster"] == n, "the opening set is not within the membership")
    need(len(chosen) >= max((n + less + cut) // 2 + 1, len(members) - spared), "too few controllers have signed")
    own = sorted((counts[p] for p in chosen), reverse=True)
    counted = sum(own) if n == 2 or not less else sum(own[min(less, len(own) - 1):])
    need(plan["population"]["min"] <= counted and sum(own) <= plan["population"]["max"], "population breaks the plan")
    same("the number of shares", len(receipt["shares"]), len(chosen))
    for p, share in zip(chosen, receipt["shares"]):
        z = read(share["token"], "TOKEN", "token/v1", plan["keys"][p], controller=p, membership=m["digest"])
        o = {"words": [0] * len(words)} if n == 1 else read(
            share["opening"], "OPENING", "window-opening/v2", plan["keys"][p], controller=p, token=z["digest"], **bound)
        need(len(z["words"]) == len(o["words"]) == len(words), "a share has another length")
        words = [(w + add - sub) % WORD for w, add, sub in zip(words, z["words"], o["words"])]
    need(plan["to"] or words[-1] == 0, "the shares do not add up: the check word is not zero")
    left_out = 0
    for one in receipt["exclusions"]:
        p = whole(one["presence"]["bytes"], "PRESENCE")["controller"]
        said = read(one["presence"], "PRESENCE", "presence/v2", plan["keys"][p])
        need(all(plan["streams"][x["stream"]]["controller"] == p for x in said["excluded"]), "a stream is another's")
        leaf = bytes.fromhex(said["digest"])
        if one["pickers"] is not None:
            leaf = labelled("alpheus/mask/pickers/v1", leaf, b"".join(q.to_bytes(4, "big") for q in one["pickers"]))
        same("a presence's place", [one["at"], one["size"]], [members.index(p), len(members)])
        node, at, last = hashlib.sha256(b"\0" + leaf).digest(), one["at"], one["size"] - 1
        path = [bytes.fromhex(sibling) for sibling in one["path"]]
        while last:
            if at % 2 or at < last:
                node = hashlib.sha256(b"\1" + (path.pop(0) + node if at % 2 else node + path.pop(0))).digest()
            at, last = at // 2, last // 2
        same("the root of the membership", m["root"], node.hex())
        left_out += len(said["excluded"])
    same("population", row["population"], sum(own))
    need(row["excluded"] >= left_out, f"excluded is {row['excluded']}, and controllers signed that it is {left_out}")
    return {"version": 1, **here, "membership": m["digest"], "set": set_of, "words": words}


def cell(place, words):
    (kind, own), = place.items()
    signed = [w - WORD if w >> 63 else w for w in words]
    if kind != "Digit":
        return signed[own] if kind == "Whole" else signed[own["low"]] + (signed[own["high"]] << 32)
    rest, half = signed[own["row"]], 1 << own["bits"] - 1
    for _ in range(own["digit"] + 1):
        digit = (rest + half) % (2 * half) - half
        rest = rest - digit >> own["bits"]
    return digit


def column(statistic, cells, noisy):
    """A column from exact sums; NotImplemented of statistics that are left to `alpheus verify`."""
    (kind, own), = statistic.items()
    if kind in ("Sum", "SideSum", "Count"):
        count = own["count"] if own.get("of") is None else own["of"]
        if count is not None and cells[count] == 0 and not noisy:
            return None
        return cells[own["count"]] if kind == "Count" else format(Decimal(cells[own["sum"]]).scaleb(-own["scale"]), "f")
    if kind == "Moments" and cells[own["count"]] > 0:
        n, total, ten = cells[own["count"]], cells[own["sum"]], 10 ** own["scale"]
        variance = Fraction(n * cells[own["squares"] or 0] - total**2, (n * ten) ** 2)
        root = Fraction(isqrt(int(abs(variance) * 4**400)), 2**400)
        mean = Fraction(total, n * ten)
        return None if own["output"] and variance < 0 else float([mean, variance, root][own["output"]])
    if kind == "Histogram" and own["output"] == "Counts":
        return [sum(cells[at] for at in one) for one in own["bins"]["cells"]]
    return NotImplemented if kind != "Moments" else None
