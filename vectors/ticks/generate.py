"""Known answers of tick frames: sums of a session, their roots, claims, frames, openings
and segments: python3 generate.py TARGET. After crates/encrypted-stream/docs/protocol.md."""

import hashlib
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reference as r  # noqa: E402

TARGET = sys.argv[1]
SECOND = 1_000_000
DAY = 86_400 * SECOND
TICK, ANCHOR = 10 * SECOND, 60 * SECOND
NOON = 19_675 * DAY + DAY // 2
NO_ROOT = bytes(16)
OPENING, TICKED, GAP, CLOSING_TICK, CLOSING_GAP = range(5)
NAMES = ["opening", "tick", "gap", "closing_tick", "closing_gap"]
FRAME = [0x20, 0x21, 0x22, 0x23, 0x24]
WORDS = 21
# Words of each block: two attributes of eleven and seven words, then event count and check word.
BLOCKS = [8, 3, 7, 1, 1, 1]


def fixed(name, length=32):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(f"alpheus ticks {name}".encode()).digest(length)


def big(*numbers):
    return [number.to_bytes(8, "big") for number in numbers]


def little(number, length=8):
    return number.to_bytes(length, "little")


def authority():
    """The public key of a deployment's authority."""
    return public_key(Ed25519PrivateKey.from_private_bytes(fixed("authority")))


def public_key(private):
    return private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def words_bytes(words):
    return b"".join(map(little, words))


def words_hex(words):
    return [r.hexadecimal(word) for word in words]


def leaves(words, blocks):
    """One leaf for each block: its number, its length and its words."""
    out, at = [], 0
    for number, length in enumerate(blocks):
        content = number.to_bytes(4, "big") + length.to_bytes(4, "big")
        content += words_bytes(words[at : at + length])
        out.append(hashlib.sha256(b"\0" + content).digest())
        at += length
    assert at == len(words)
    return out


def root(hashes):
    """RFC 6962: the left subtree is the largest full one."""
    if len(hashes) == 1:
        return hashes[0]
    half = 1
    while half * 2 < len(hashes):
        half *= 2
    return hashlib.sha256(b"\1" + root(hashes[:half]) + root(hashes[half:])).digest()


class Stream:
    def __init__(self, name="a"):
        self.master, self.stream, self.schema = fixed("master"), fixed(f"stream {name}", 16), fixed("schema")
        self.border_key = r.derive(self.master, "alpheus/stream/border/v1", [self.stream, self.schema], 32)

    def names(self):
        return {"master": self.master.hex(), "stream": self.stream.hex(), "schema": self.schema.hex()}

    def key_vector(self, session, t, count=WORDS):
        subkey = r.derive(self.master, "alpheus/stream/day/v1", [self.stream, self.schema, *big(t // DAY)], 16)
        return r.keystream(subkey, (session << 64) | (t << 12), count)

    def claim(self, kind, session, a, b, count, prefix):
        tag = r.tag(self.border_key, "alpheus/tick/v2", big(kind, session, a, b, count) + [prefix])
        mask = int.from_bytes(r.tag(self.border_key, "alpheus/tick/count/v2", big(session, b))[:8], "little")
        mask = 0 if kind == OPENING else mask
        return {
            "kind": NAMES[kind], "session": r.hexadecimal(session), "from": a, "to": b, "count": count,
            "masked_count": r.hexadecimal((count + mask) & r.MASK), "root": prefix.hex(), "tag": tag.hex(),
        }


class Device:
    """What a device sends in one session."""

    def __init__(self, stream, session, at, name="device"):
        self.stream, self.session, self.border = stream, session, at
        self.sum, self.count = [0] * WORDS, 0
        self.key = fixed(f"session key {session}")
        self.device = Ed25519PrivateKey.from_private_bytes(fixed(name))
        self.frames, self.claims = [], []

    def send(self, body):
        mac = r.tag(self.key, "alpheus/frame/v2", [self.stream.stream, body])
        self.frames.append((body + mac).hex())

    def open(self, previous=None):
        claim = self.stream.claim(OPENING, self.session, self.border, self.border, 0, NO_ROOT)
        self.claims.append(claim)
        body = bytes([FRAME[OPENING]]) + little(self.session) + little(self.border) + bytes.fromhex(claim["tag"])
        body += fixed("ingest key")  # the id: the digest of its certificate
        body += bytes([0]) + bytes(16) if previous is None else bytes([1]) + b"".join(map(little, previous))
        names = authority() + self.stream.stream + self.stream.schema
        ingest = r.hpke_key(fixed("ingest seed")).public_key().public_bytes_raw()
        info = r.labelled_hash("alpheus/session-key/v2", [names + body])
        self.sealed = r.hpke_seal(ingest, info, self.key, fixed(f"ephemeral {self.session}"))
        body += self.sealed + fixed("device certificate")
        claimed = names + body
        body += self.device.sign(r.labelled_hash("alpheus/opening/v2", [claimed]))
        self.send(body)

    def _claim(self, kind, a, b):
        prefix = root(leaves(self.sum, BLOCKS))[:16]
        claim = self.stream.claim(kind, self.session, a, b, self.count, prefix)
        if a // ANCHOR < b // ANCHOR:
            self.sum, self.count = [0] * WORDS, 0
        self.border = b
        self.claims.append(claim)
        return claim

    def tick(self, events, kind=TICKED):
        a, b = self.border, self.border + TICK
        new, old = self.stream.key_vector(self.session, b), self.stream.key_vector(self.session, a)
        total = [sum(column) for column in zip([0] * WORDS, *events)]
        words = [(m + n - o) & r.MASK for m, n, o in zip(total, new, old)]
        self.sum = [(x + y) & r.MASK for x, y in zip(self.sum, words)]
        self.count += len(events)
        claim = self._claim(kind, a, b)
        self.send(bytes([FRAME[kind]]) + little(self.session) + little(b)
                  + little(int(claim["masked_count"], 16)) + bytes.fromhex(claim["root"])
                  + bytes.fromhex(claim["tag"]) + words_bytes(words))

    def gap(self, until, kind=GAP):
        a = self.border
        claim = self._claim(kind, a, until)
        self.send(bytes([FRAME[kind]]) + little(self.session) + little(a) + little(until)
                  + little(int(claim["masked_count"], 16)) + bytes.fromhex(claim["root"])
                  + bytes.fromhex(claim["tag"]))


def event(number):
    """Small values; the last word is the check word."""
    return [(number * 31 + at) % 97 for at in range(WORDS - 1)] + [0]


def session_number():
    return int.from_bytes(fixed("session", 8), "big")


def sums():
    words = r.words_of(fixed("sum", 8 * WORDS))
    cases = [([0] * WORDS, BLOCKS), (words, BLOCKS), (words[:1], [1]), (words[:9], [8, 1]), (words[:5], [2, 2, 1])]
    good = [{"words": words_hex(w), "blocks": b, "root": root(leaves(w, b)).hex()} for w, b in cases]
    r.write(TARGET, "root.json", good)
    other = good[1]
    changed = list(words)
    changed[20] ^= 1
    r.write(TARGET, "root_bad_word.json", [other | {"words": words_hex(changed)}])
    r.write(TARGET, "root_bad_blocks.json", [other | {"blocks": [8, 3, 6, 2, 1, 1]}])
    r.write(TARGET, "root_bad_order.json", [other | {"words": words_hex(words[1:] + words[:1])}])


def claims():
    stream, session = Stream(), session_number()
    prefix = root(leaves([7] * WORDS, BLOCKS))[:16]
    cases = [(OPENING, NOON, NOON, 0, NO_ROOT), (TICKED, NOON, NOON + TICK, 3, prefix),
             (GAP, NOON, NOON + 9 * TICK, 0, prefix), (CLOSING_TICK, NOON, NOON + TICK, 2**32, prefix),
             (CLOSING_GAP, NOON, NOON + 2 * TICK, 1, prefix)]
    good = [stream.names() | stream.claim(kind, session, a, b, n, h) for kind, a, b, n, h in cases]
    r.write(TARGET, "claim.json", good)
    tick = good[1] | {"error": "BadTag"}
    for name, change in {
        "kind": {"kind": "gap"}, "session": {"session": r.hexadecimal(session ^ 1)}, "from": {"from": NOON - TICK},
        "to": {"to": NOON + 2 * TICK}, "count": {"count": 2}, "root": {"root": fixed("root", 16).hex()},
        "stream": {"stream": fixed("another", 16).hex()}, "schema": {"schema": fixed("another").hex()},
        "master": {"master": fixed("another").hex()},
    }.items():
        r.write(TARGET, f"claim_bad_{name}.json", [tick | change])


def run():
    """Over an anchor, with empty ticks, with a gap in a period, a gap over an anchor, and a close."""
    device = Device(Stream(), session_number(), NOON + 4 * TICK)
    device.open((session_number() - 1, NOON))
    device.tick([event(1), event(2)])
    device.tick([event(3)])  # ends at an anchor
    device.tick([])
    device.gap(device.border + 2 * TICK)
    device.tick([event(4)])
    device.gap(device.border + 8 * TICK)  # over an anchor
    device.tick([event(5), event(6), event(7)])
    device.tick([], CLOSING_TICK)
    return device


def frames():
    device = run()
    known = device.stream.names() | {
        "words": WORDS, "blocks": BLOCKS, "tick": TICK, "anchor": ANCHOR, "opened": NOON + 4 * TICK,
        "session": r.hexadecimal(device.session), "session_key": device.key.hex(), "ingest_key": fixed("ingest key").hex(),
        "ingest_seed": fixed("ingest seed").hex(), "ephemeral": fixed(f"ephemeral {device.session}").hex(),
        "sealed": device.sealed.hex(), "certificate": fixed("device certificate").hex(),
        "authority": authority().hex(), "device_seed": fixed("device").hex(), "device": public_key(device.device).hex(),
    }
    r.write(TARGET, "session.json", known | {"frames": device.frames, "claims": device.claims})
    bad = {}
    whole = [bytes.fromhex(frame) for frame in device.frames]
    opening, tick, gap = whole[0], whole[1], whole[4]
    for name, frame, error in [
        ("empty", b"", "Empty"), ("kind", b"\x28" + tick[1:], "UnknownKind"), ("old_kind", b"\x11" + tick[1:], "UnknownKind"),
        ("truncated_opening", opening[:-1], "Truncated"), ("long_opening", opening + b"\0", "TooLong"),
        ("truncated_tick", tick[:60], "Truncated"), ("no_words", tick[:57] + tick[-16:], "NoWords"),
        ("partial_word", tick[:-17] + tick[-16:], "PartialWord"), ("long_gap", gap + bytes(8), "TooLong"),
        ("truncated_gap", gap[:-1], "Truncated"), ("gap_back", gap[:9] + gap[17:25] + gap[9:17] + gap[25:], "Order"),
        ("time", tick[:9] + little(1 << 52) + tick[17:], "TimeBeyondLimit"),
        ("previous_flag", opening[:65] + b"\2" + opening[66:], "PreviousFlag"),
    ]:
        bad[name] = {"frame": frame.hex(), "error": error}
    for name, vector in bad.items():
        r.write(TARGET, f"frame_bad_{name}.json", vector)
    macs = {name: whole[at][:place] + bytes([whole[at][place] ^ 1]) + whole[at][place + 1 :]
            for name, at, place in [("words", 1, 60), ("count", 1, 17), ("mac", 1, len(tick) - 1), ("gap", 4, 17),
                                    ("opening", 0, 9), ("previous", 0, 66)]}
    r.write(TARGET, "frame_bad_mac.json", [
        {"session_key": device.key.hex(), "stream": device.stream.stream.hex(), "frame": frame.hex(), "part": name}
        for name, frame in macs.items()])


def segments():
    """Windows cut out of that session: claims, the released key part, the number of events."""
    device = run()
    stream, session, claims_ = device.stream, device.session, device.claims
    at = lambda ticks: NOON + ticks * TICK  # noqa: E731

    def key_part(spans):
        total = [0] * WORDS
        for start, end in spans:
            pairs = zip(total, stream.key_vector(session, start), stream.key_vector(session, end))
            total = [(t + a - b) & r.MASK for t, a, b in pairs]
        return words_hex(total)

    cases = [
        ("from the opening over an anchor", at(4), at(7), [claims_[0], claims_[2], claims_[3]], [(at(4), at(7))], 3),
        ("within a period", at(6), at(7), claims_[2:4], [(at(6), at(7))], 0),
        ("into a gap", at(6), at(8), [claims_[2], claims_[4]], [(at(6), at(7))], 0),
        ("out of a gap", at(8), at(10), [claims_[4], claims_[5]], [(at(9), at(10))], 1),
        ("from the end of a gap", at(9), at(10), [claims_[4], claims_[5]], [(at(9), at(10))], 1),
        ("over a gap", at(6), at(10), [claims_[2], claims_[4], claims_[5]], [(at(6), at(7)), (at(9), at(10))], 1),
        ("within a gap", at(12), at(13), [claims_[6]], [], 0),
        ("to the close", at(10), at(20), [claims_[5], claims_[6], claims_[8]], [(at(10), at(10)), (at(18), at(20))], 3),
    ]
    r.write(TARGET, "segment.json", [
        stream.names() | {"words": WORDS, "anchor": ANCHOR, "tick": TICK, "what": what, "from": start, "to": end,
                          "claims": own, "events": events, "key_part": key_part(spans)}
        for what, start, end, own, spans, events in cases])


def certificates():
    """What the authority signs of a device and of an ingest key, as postcard; and what is none."""
    authority_key = Ed25519PrivateKey.from_private_bytes(fixed("authority"))
    device = public_key(Ed25519PrivateKey.from_private_bytes(fixed("device")))
    ingest = r.hpke_key(fixed("ingest seed")).public_key().public_bytes_raw()

    def option(key):
        return bytes([0]) if key is None else bytes([1]) + key

    def signed(role, sealing=None, agreement=None, verifying=device, hybrid=None,
               signer=authority_key, label="alpheus/certificate/v2"):
        content = fixed("subject", 16) + bytes([role, 4]) + b"a\xc3\xa9b" + verifying + option(agreement) + option(sealing)
        content += option(hybrid)
        assert len(content) < 256
        length = bytes([len(content)]) if len(content) < 128 else bytes([len(content) & 127 | 128, len(content) >> 7])
        digest = r.labelled_hash(label, [content])
        return length + content + signer.sign(digest), digest

    def case(role, made, error=None):
        text, digest = made
        found = {"authority": authority().hex(), "role": role, "certificate": text.hex(), "digest": digest.hex(),
                 "verifying": device.hex()}
        return found | ({} if error is None else {"error": error})

    good = signed(4)
    r.write(TARGET, "certificate.json", [
        case("device", good) | {"seed": fixed("device").hex()},
        case("ingest", signed(5, ingest)) | {"sealing": ingest.hex(), "seed": fixed("ingest seed").hex()}])
    other = Ed25519PrivateKey.from_private_bytes(fixed("another authority"))
    r.write(TARGET, "certificate_bad_content.json", [
        case("device", signed(4, signer=other), "Unsigned"),
        case("device", signed(4, label="alpheus/certificate/v1"), "Unsigned"),
        case("ingest", good, "Role"), case("device", signed(5, ingest), "Role"),
        case("device", signed(4, hybrid=fixed("hybrid key")), "Keys"),
        case("ingest", signed(5, ingest, hybrid=fixed("hybrid key")), "Keys"),
        case("device", signed(4, ingest), "Keys"), case("ingest", signed(5), "Keys"),
        case("device", signed(4, agreement=ingest), "Keys"), case("ingest", signed(5, bytes(32)), "Keys"),
        case("device", signed(4, verifying=bytes([1]) + bytes(31)), "Keys"),
        case("device", (good[0][:-1], good[1]), "NotACertificate"),
        case("device", (good[0] + b"\0", good[1]), "NotACertificate"),
        case("device", signed(6), "NotACertificate"), case("device", (b"", good[1]), "NotACertificate")])


sums()
claims()
frames()
segments()
certificates()
