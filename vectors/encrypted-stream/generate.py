"""Known answers of a stream's keys, frames, sessions and window sums:
python3 generate.py TARGET."""

import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reference as r  # noqa: E402

TARGET = sys.argv[1]
DAY = 86_400_000_000
SECOND = 1_000_000
NOON = 19_675 * DAY + DAY // 2  # 2023-11-14 12:00 UTC
OPENING, DATA, BORDER, CLOSING = 0x10, 0x11, 0x12, 0x13
KINDS = {OPENING: 0, BORDER: 1, CLOSING: 2}


def fixed(name, length=32):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(f"alpheus vectors {name}".encode()).digest(length)


def write(name, vector):
    r.write(TARGET, name, vector)


class Stream:
    """One stream's keys under one schema."""

    def __init__(self, name="a", schema="s"):
        self.master, self.stream = fixed(f"master {name}"), fixed(f"stream {name}", 16)
        self.schema = fixed(f"schema {schema}")
        parts = [self.stream, self.schema]
        self.border_key = r.derive(self.master, "alpheus/stream/border/v1", parts, 32)

    def names(self):
        return {"master": self.master.hex(), "stream": self.stream.hex(), "schema": self.schema.hex()}

    def subkey(self, day):
        parts = [self.stream, self.schema, day.to_bytes(8, "big")]
        return r.derive(self.master, "alpheus/stream/day/v1", parts, 16)

    def key_vector(self, session, t, words):
        return r.keystream(self.subkey(t // DAY), (session << 64) | (t << 12), words)

    def tag(self, kind, session, t, count):
        parts = [n.to_bytes(8, "big") for n in (KINDS[kind], session, t, count)]
        return r.tag(self.border_key, "alpheus/border/v1", parts)

    def encrypt(self, session, previous, t, plain):
        new, old = (self.key_vector(session, at, len(plain)) for at in (t, previous))
        return [(m + n - o) & r.MASK for m, n, o in zip(plain, new, old)]

    def frame(self, kind, session, previous, t, plain, count=0):
        """The bytes of one event."""
        out = bytes([kind]) + session.to_bytes(8, "little") + t.to_bytes(8, "little")
        if kind != OPENING:
            out += previous.to_bytes(8, "little")
        if kind in (BORDER, CLOSING):
            out += count.to_bytes(8, "little")
        if kind != DATA:
            out += self.tag(kind, session, t, count)
        if kind != OPENING:
            out += b"".join(w.to_bytes(8, "little") for w in self.encrypt(session, previous, t, plain))
        return out


def words_hex(words):
    return [r.hexadecimal(word) for word in words]


def keys():
    stream = Stream()
    points = [(0, 0, 1), (1, NOON, 2), (fixed_session(), NOON + 1, 5), (7, 20_000 * DAY - 1, 3),
              (7, 20_000 * DAY, 3), (2**64 - 1, 2**52 - 1, 130)]
    write("key_vector.json", [
        stream.names() | {
            "session": r.hexadecimal(session), "t": t, "day": t // DAY,
            "subkey": stream.subkey(t // DAY).hex(), "words": words_hex(stream.key_vector(session, t, n)),
        }
        for session, t, n in points
    ])
    write("border.json", [border(kind, count) for kind in KINDS for count in (0, 3)])
    good = border(BORDER, 3) | {"error": "BadTag"}
    write("border_bad_kind.json", [good | {"kind": "closing"}, good | {"kind": "opening"}])
    write("border_bad_session.json", [good | {"session": r.hexadecimal(fixed_session() ^ 1)}])
    write("border_bad_time.json", [good | {"t": NOON + SECOND}])
    write("border_bad_count.json", [good | {"count": 2}])
    write("border_bad_stream.json", [good | {"stream": fixed("another", 16).hex()}])
    write("border_bad_schema.json", [good | {"schema": fixed("another").hex()}])
    write("border_bad_master.json", [good | {"master": fixed("another").hex()}])


def fixed_session():
    return int.from_bytes(fixed("session", 8), "big")


def border(kind, count):
    stream, session = Stream(), fixed_session()
    name = {OPENING: "opening", BORDER: "interior", CLOSING: "closing"}[kind]
    return stream.names() | {
        "kind": name, "session": r.hexadecimal(session), "t": NOON, "count": count,
        "tag": stream.tag(kind, session, NOON, count).hex(),
    }


class Run:
    """What a producer sends, from its opening border on."""

    def __init__(self, stream, session, tick, start, words):
        self.stream, self.session, self.tick, self.words = stream, session, tick, words
        self.last = self.border = self.opened = start
        self.count = 0
        self.frames = [stream.frame(OPENING, session, None, start, [])]

    def _border(self, kind):
        t = self.border + self.tick
        zero = [0] * self.words
        self.frames.append(self.stream.frame(kind, self.session, self.last, t, zero, self.count))
        self.last = self.border = t
        self.count = 0

    def _borders(self, until):
        """All before that; a session ends on the first of another day, where the next opens."""
        while (t := self.border + self.tick) < until:
            if t // DAY == self.opened // DAY:
                self._border(BORDER)
                continue
            following = (self.session + 1) & r.MASK
            self.frames.append(self.stream.frame(OPENING, following, None, t, []))
            self._border(CLOSING)
            self.session, self.opened = following, t

    def event(self, t, plain):
        self._borders(t)
        self.frames.append(self.stream.frame(DATA, self.session, self.last, t, plain))
        self.last, self.count = t, self.count + 1

    def close(self, at):
        self._borders(at)
        self._border(CLOSING)


def sessions():
    midnight, odd = 20_000 * DAY, 7 * SECOND
    write("session.json", [
        session_case(NOON, 3),
        session_case(midnight - 20 * SECOND, 4),
        # No border on midnight, and one that ends the run on it.
        session_case(midnight // odd * odd - 3 * odd, 2, odd, 8 * odd),
        session_case(midnight - 50 * SECOND, 2),
    ])


def session_case(start, words, tick=10 * SECOND, length=50 * SECOND):
    """Two ticks with data, an empty one, and a closing border."""
    stream, session = Stream(), fixed_session()
    run = Run(stream, session, tick, start, words)
    offsets = [1, 2, 5 * SECOND, 10 * SECOND - 1, 10 * SECOND + 1, 30 * SECOND + 5]
    events = []
    for i, offset in enumerate(offsets):
        # Negative numbers and wrap-around, and the check word, zero.
        plain = [(i * 0x1234567 - 5 + j) & r.MASK for j in range(words - 1)] + [0]
        run.event(start + offset, plain)
        events.append({"t": start + offset, "plain": words_hex(plain)})
    run.close(start + length)
    return stream.names() | {
        "session": r.hexadecimal(session), "tick": tick, "start": start, "words": words,
        "events": events, "close": start + length, "frames": [f.hex() for f in run.frames],
    }


def windows():
    """Sums over (from, to], what a release of them needs, and what it gives."""
    case = session_case(NOON, 5)
    stream, session = Stream(), fixed_session()
    spans = [(0, 10), (10, 20), (20, 30), (0, 30), (0, 50)]
    write("window.json", [window(case, stream, session, *span) for span in spans])


def window(case, stream, session, after, until):
    words, release = case["words"], [[0], [1, 3], [0, 1, 2, 3], [4]]
    after, until = (case["start"] + at * SECOND for at in (after, until))
    inside = [e for e in case["events"] if after < e["t"] < until]
    plain = [sum(int(e["plain"][j], 16) for e in inside) & r.MASK for j in range(words)]
    old, new = (stream.key_vector(session, t, words) for t in (after, until))
    cipher = [(m + n - o) & r.MASK for m, n, o in zip(plain, new, old)]

    def released(vector):
        return [sum(vector[j] for j in row) & r.MASK for row in release]

    token = released([(o - n) & r.MASK for o, n in zip(old, new)])
    digest = (r.link(session, until) - r.link(session, after)) & r.MASK
    return {key: case[key] for key in ("master", "stream", "schema", "session", "frames")} | {
        "from": after, "to": until, "count": len(inside), "link_digest": r.hexadecimal(digest),
        "sum": words_hex(cipher), "release": release, "token": words_hex(token),
        "result": words_hex(released(plain)),
    }


def frames():
    stream, session = Stream(), fixed_session()
    plain = [1, 2**64 - 1, 0]
    data = stream.frame(DATA, session, NOON, NOON + 1, plain)
    border = stream.frame(BORDER, session, NOON + 1, NOON + SECOND, [0] * 3, 1)
    opening = stream.frame(OPENING, session, None, NOON, [])

    def bad(name, error, *frames):
        write(f"frame_bad_{name}.json", [{"frame": f.hex(), "error": error} for f in frames])

    def link(previous, t):
        times = t.to_bytes(8, "little") + previous.to_bytes(8, "little")
        return bytes([DATA]) + bytes(8) + times + bytes(8)

    bad("empty", "Empty", b"")
    bad("kind", "UnknownKind", b"\x00" + data[1:], b"\x14" + data[1:], b"\x21" + data[1:])
    bad("truncated", "Truncated", data[:1], data[:24], border[:48], opening[:32])
    bad("trailing", "TrailingBytes", opening + b"\x00")
    bad("partial_word", "PartialWord", data[:-1], data + b"\x00", border[:-7])
    bad("no_words", "NoWords", data[:25], border[:49])
    write("frame_bad_too_many_words.json", [
        {"frame": data[:25].hex(), "zeros": 8 * 8193, "error": "TooManyWords"}
    ])
    late = (2**52).to_bytes(8, "little")
    bad("time", "TimeBeyondLimit", opening[:9] + late + opening[17:], data[:9] + late + data[17:])
    bad("order", "TimesNotAscending", link(5, 5), link(6, 5), link(2**63, 5))


def producers():
    """What a producer must refuse. Times are offsets from the opening border."""
    tick = 10 * SECOND

    def bad(name, error, events, close=None):
        write(f"producer_bad_{name}.json", [
            {"tick": tick, "start": NOON, "events": events, "close": close, "error": error}
        ])

    bad("equal_time", "NotAscending", [5, 5])
    bad("backward_time", "NotAscending", [5, 7, 6])
    bad("before_opening", "NotAscending", [-1])
    bad("at_opening", "NotAscending", [0])
    bad("before_border", "NotAscending", [5, tick + 1, tick - 1])
    bad("on_tick", "OnATick", [5, tick])
    bad("jump", "JumpedAhead", [5, 200_000 * tick + 1])
    bad("beyond_limit", "BeyondLimit", [5, 2**52 - NOON])
    bad("close_off_tick", "NotATick", [5], close=tick + 1)
    bad("close_early", "NotAscending", [5, tick + 5], close=tick)


for make in (keys, sessions, windows, frames, producers):
    make()
