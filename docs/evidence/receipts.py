"""What the service and controllers signed: plans, receipts, and the columns that follow from them.

Written from encrypted-stream/docs/protocol.md and docs/wire-formats.md, with no code of Alpheus.
"""

import hashlib
import io
import json
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from math import isqrt
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

WORD = 1 << 64
TYPES = json.loads(Path(__file__).with_name("types.json").read_text(encoding="utf-8"))


class WrongError(Exception):
    """What a pack says does not follow."""


def need(holds, what):
    if not holds:
        raise WrongError(what)


def exact(value):
    """A value with its types: to Python 1, 1.0 and true are the same."""
    if isinstance(value, dict):
        return {name: exact(own) for name, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [exact(own) for own in value]
    return type(value), value


def same(name, stated, follows):
    need(exact(stated) == exact(follows), f"{name} is {stated}, and follows as {follows}")


class Reader(io.BytesIO):
    """Postcard. In types.json an object is a struct and a list an enum, * a list and ? an option,
    u and i are integers, and a number is so many bytes."""

    def take(self, count):
        data = self.read(count)
        need(len(data) == count, "bytes are lacking")
        return data

    def integer(self):
        byte = self.take(1)[0]
        rest = self.integer() if byte >= 128 else None
        need(rest != 0, "bytes are more than a number needs")
        number = byte if rest is None else byte - 128 + 128 * rest
        need(number < WORD, "a number has more than 64 bits")
        return number

    def value(self, of):
        if of in TYPES:
            fields = TYPES[of][self.integer()] if isinstance(TYPES[of], list) else TYPES[of]
            if isinstance(fields, str):
                return fields
            return {name: self.value(field) for name, field in fields.items()}
        if of[0] == "*":
            return [self.value(of[1:]) for _ in range(self.integer())]
        if of[0] == "?":
            there = self.take(1)[0]
            need(there <= 1, "an option is neither there nor not")
            return self.value(of[1:]) if there else None
        if of.isdigit():
            return self.take(int(of)).hex()
        number = self.take(1)[0] if of == "byte" else self.integer()
        if of in ("text", "bytes"):
            return self.take(number).decode() if of == "text" else self.take(number)
        return number >> 1 ^ -(number & 1) if of == "i" else number


def whole(data, of):
    reader = Reader(data)
    value = reader.value(of)
    need(not reader.read(), "bytes are left over")
    return value


def labelled(label, *parts):
    parts = [label.encode(), *parts]
    return hashlib.sha256(b"".join(len(p).to_bytes(8, "big") + p for p in parts)).digest()


def signed_by(key, signed, label):
    """The digest of a signed message, by which others name it."""
    digest = labelled(f"alpheus/{label}", signed["bytes"])
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        key.verify(bytes.fromhex(signed["signature"]), digest)
    except InvalidSignature:
        raise WrongError(f"the signature of {label} does not hold") from None
    return digest.hex()


def announced(data, authority, service):
    """The plan that the service announced, with the names of its line, and controllers' keys."""
    signed = whole(data, "SIGNED")
    signed_by(service, signed, "announcement/v5")
    body = Reader(signed["bytes"])
    body.value("PLAN")
    return checked(signed["bytes"][:body.tell()], body.value("*SIGNED"), authority)


def number(value):
    return bytes([value]) if value < 128 else bytes([value % 128 + 128]) + number(value // 128)


def with_list(receipt):
    """A receipt, by epochs with the list of its window's members."""
    reader = Reader(receipt)
    read = reader.value("RECEIPT")
    read["listing"] = reader.value("LISTING") if read["version"] == 3 else None
    need(not reader.read(), "bytes are left over")
    return read


def listed(receipt, authority, service):
    """The plan that follows from the list of a receipt, as that of an announcement."""
    listing = with_list(receipt)["listing"]
    need(listing, "the receipt has no list")
    signed_by(service, listing["call"], "epoch/call/v1")
    signed_by(service, listing["list"], "epoch/list/v1")
    called, own = listing["call"]["bytes"], whole(listing["list"]["bytes"], "LIST")
    call, window = whole(called, "CALL"), own["window"]
    begins = after(called, [*TYPES["PLAN"].values()][:8])
    start = after(called, [*TYPES["PLAN"].values()][:9])
    # Nobody is named, and no masks: these are the last four bytes.
    terms = called[:after(called, ["PLAN"])]
    need(terms[-4:] == bytes(4), "the terms name who takes part")
    terms_id, each = labelled("alpheus/plan/v5", terms), call["terms"]["window_us"]
    same("terms of the list", own["terms"], terms_id.hex())
    same("the call's epoch", (call["window"], call["windows"]), (window, 1))
    same("windows of the list", own["windows"], 1)
    fits = window["start"] % each == 0 and call["terms"]["from_us"] <= window["start"]
    need(fits and window["end"] == window["start"] + each, "the list is of no window of the terms")
    roster, streams, entries = [], [], b""
    for at, entry in enumerate(own["entries"]):
        roster.append(entry["controller"])
        names = [one["owner"] for one in entry["owners"]]
        need(names and names == sorted(set(names)), "owners of an entry are not in order")
        entries += bytes.fromhex(entry["controller"] + entry["agreement"]) + len(names).to_bytes(4, "big")
        for one in entry["owners"]:
            held = one["streams"]
            need(held and held == sorted(set(held)), "streams of an owner are not in order")
            entries += bytes.fromhex(one["owner"]) + len(held).to_bytes(4, "big")
            entries += bytes.fromhex("".join(held))
            streams += [(stream, one["owner"], at) for stream in held]
    need(len({one[0] for one in streams}) == len(streams), "a stream is in two entries")
    digest = labelled("alpheus/epoch/entries/v1", terms_id, window["start"].to_bytes(8, "big"),
                      own["windows"].to_bytes(4, "big"), entries)
    masks = [after(listing["list"]["bytes"], [*TYPES["LIST"].values()][:many]) for many in (3, 4)]
    need("Neighbours" not in own["masks"], "a list has no picks")
    body = terms[:begins] + number(window["start"]) + terms[start:-4]
    body += listing["list"]["bytes"][slice(*masks)]
    body += b"\1" + terms_id + digest + number(1)
    body += number(len(roster)) + bytes.fromhex("".join(roster)) + number(len(streams))
    body += b"".join(bytes.fromhex(s + owner) + number(at) for s, owner, at in sorted(streams))
    plan = checked(body, listing["certificates"], authority)
    keys = [whole(one["bytes"], "CERTIFICATE")["agreement"] for one in listing["certificates"]]
    same("agreement keys of the list", [one["agreement"] for one in own["entries"]], keys)
    return {**plan, "epochs": True, "terms": terms_id.hex()}


def after(data, fields):
    """Where data goes on after these fields."""
    reader = Reader(data)
    for field in fields:
        reader.value(field)
    return reader.tell()


def checked(body, certificates, authority):
    """A plan from its bytes, with the names of its line, and its controllers' keys."""
    plan = whole(body, "PLAN")
    plan.update(plan["release"], **plan["terms"])
    plan["id"] = labelled("alpheus/plan/v5", body).hex()
    members, alpha = plan["streams"], plan["alpha"]
    signers = [signed_by(authority, one, "certificate/v2") for one in certificates]
    same("roster", plan["roster"], signers)
    certificates = [whole(one["bytes"], "CERTIFICATE") for one in certificates]
    need(all(one["role"] == 1 for one in certificates), "a member is not a controller")
    keys, n = [one["key"] for one in certificates], len(signers)
    need(len(set(keys)) == n, "a controller is in the roster twice")
    need(signers == sorted(signers), "the roster is not in order")
    owners = {(one["owner"], one["controller"]) for one in members}
    need(len({owner for owner, _ in owners}) == len(owners), "an owner is at two controllers")
    share = max(n * alpha["numerator"] // alpha["denominator"], plan["colluders"], 1)
    return {
        **plan, "keys": keys, "members": members, "controllers": n,
        "streams": len(members), "owners": len(owners),
        "tolerated": min(share, n - 1) if alpha["numerator"] and n > 1 else 0,
        "epochs": False, "sealed": bool(plan["to"]), "population": [*plan["population"].values()],
        "group": [[*pair.values()] for pair in plan["group"]]}


def among(bits):
    size, data = bits["roster"], int.from_bytes(bits["bytes"], "little")
    need(len(bits["bytes"]) == -(-size // 8) and not data >> size, "bits are of no controller")
    return [at for at in range(size) if data >> at & 1]


def bound(signed, of, label, key, **to):
    """A signed message, with its digest, that is bound to these values."""
    message = {**whole(signed["bytes"], of), "digest": signed_by(key, signed, label)}
    for name, value in to.items():
        same(f"{name} of {label}", message[name], value)
    return message


def check_receipt(data, plan, service, row):
    """The sums of a row's window and how many owners are in them, as its members signed them."""
    receipt, n, each = with_list(data), plan["controllers"], plan["window_us"]
    version = 3 if plan["epochs"] else 2
    need(receipt["version"] == version and plan["integrity"] == "verified", "it is not a receipt of a verified plan")
    start = -(-row["window_start"] * 1000 // each) * each
    # Rounded up, so times before a window's would lead to it too.
    same("window_start", row["window_start"], start // 1000)
    here = {"plan": plan["id"], "window": {"start": start, "end": start + each}}
    m = bound(receipt["membership"], "MEMBERSHIP", "membership/v2", service, **here)
    members, within = among(m["set"]), {**here, "membership": m["digest"]}
    fits = [m["set"]["roster"], len(m["owners"]), len(m["keys"]) or len(members)]
    need(fits == [n, len(members), len(members)], "the membership does not fit the plan")
    counts = dict(zip(members, m["owners"]))
    owners = {(own["controller"], own["owner"]) for own in plan["members"]}
    known = Counter(at for at, _ in owners)
    invented = any(counts[at] > known[at] for at in members)
    need(not invented, "the membership states more owners than the plan")
    opening_set = m if n == 1 else bound(
        receipt["opening_set"], "OPENING_SET", "opening-set/v1", service, **within)
    chosen = among(opening_set["set"])
    subset = set(chosen) <= set(members) and opening_set["set"]["roster"] == n
    need(subset, "the opening set is not within the membership")
    cut = plan["masks"]["Neighbours"]["cut_off"] if "Neighbours" in plan["masks"] else 0
    less, dropout = plan["tolerated"] + cut, plan["dropout"]
    spared = max(n >= 4, len(members) * dropout["numerator"] // dropout["denominator"])
    quorum = max((n + less + cut) // 2 + 1, len(members) - spared)
    need(len(chosen) >= quorum, "too few controllers have signed")
    own = sorted((counts[at] for at in chosen), reverse=True)
    honest = own if n == 2 else own[min(less, len(own) - 1):]
    least, most = plan["population"]
    need(least <= sum(honest) and sum(own) <= most, "population breaks the plan")
    same("the number of shares", len(receipt["shares"]), len(chosen))
    words = [0] * len(plan["rows"])
    for at, share in zip(chosen, receipt["shares"]):
        key, opened = plan["keys"][at], {"words": [0] * len(words)}
        token = bound(share["token"], "TOKEN", "token/v1", key, controller=at, **within)
        if n > 1:
            to = {**here, "controller": at, "token": token["digest"], "set": opening_set["digest"]}
            opened = bound(share["opening"], "OPENING", "window-opening/v2", key, **to)
        lengths = len(token["words"]) == len(opened["words"]) == len(words)
        need(lengths, "a share has another length")
        words = [(w + a - b) % WORD for w, a, b in zip(words, token["words"], opened["words"])]
    need(plan["to"] or words[-1] == 0, "the shares do not add up: the check word is not zero")
    same("population", row["population"], sum(own))
    return {"version": 1, **within, "set": opening_set["set"], "words": words}


def cell(place, words):
    """A sum of the schema's cells, from words: a whole one, two halves, or digits of one."""
    (kind, own), = place.items()
    signed = [word - WORD if word >> 63 else word for word in words]
    if kind != "Digit":
        return signed[own] if kind == "Whole" else signed[own["low"]] + (signed[own["high"]] << 32)
    rest, half = signed[own["row"]], 1 << own["bits"] - 1
    for _ in range(own["digit"] + 1):
        digit = (rest + half) % (2 * half) - half
        rest = rest - digit >> own["bits"]
    return digit


def column(statistic, cells, noisy):
    """A column from sums; NotImplemented of statistics that are left to `alpheus verify`."""
    (kind, own), = statistic.items()
    if kind in ("Sum", "SideSum", "Count"):
        count = own["count"] if own.get("of") is None else own["of"]
        if count is not None and cells[count] == 0 and not noisy:
            return None
        total = kind != "Count" and Decimal(cells[own["sum"]]).scaleb(-own["scale"])
        return cells[own["count"]] if kind == "Count" else format(total, "f")
    if kind == "Moments":
        n, total, ten = cells[own["count"]], cells[own["sum"]], 10 ** own["scale"]
        if n <= 0:
            return None
        variance = Fraction(n * cells[own["squares"] or 0] - total**2, (n * ten) ** 2)
        root = Fraction(isqrt(int(abs(variance) * 4**400)), 2**400)
        values = [Fraction(total, n * ten), variance, root]
        return None if own["output"] and variance < 0 else float(values[own["output"]])
    if kind == "Histogram" and own["output"] == "Counts":
        return [sum(cells[at] for at in one) for one in own["bins"]["cells"]]
    return NotImplemented
