"""Messages between the service and the job that adds up at scale, and digests of sets, as
jvm/docs/protocol.md has them: python3 generate.py TARGET."""

import hashlib
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reference as r  # noqa: E402

TARGET = sys.argv[1]
START, WINDOW = 1_700_000_000_000_000, 10_000_000
COMPLETE = 255
REASONS = [
    "gap", "duplicate", "broken-chain", "missing-border", "session-died", "offline",
    "over-capacity", "wrong-length", "before-plan",
]


def fixed(name, length=32):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(f"alpheus vectors job {name}".encode()).digest(length)


def write(name, vector):
    r.write(TARGET, name, vector)


PLAN = fixed("plan").hex()
STREAMS = [fixed(f"stream {at}", 16).hex() for at in range(70)]


def u(number, bits):
    return number.to_bytes(bits // 8, "big")


def text(digits):
    return u(len(digits), 16) + digits.encode()


def data(content):
    return u(len(content), 32) + content


def longs(words):
    return u(len(words), 32) + b"".join(u(word, 64) for word in words)


def bitmap(positions):
    """Bit 0 lowest, and no empty byte at the end."""
    number = sum(1 << at for at in positions)
    return data(number.to_bytes((number.bit_length() + 7) // 8, "little"))


def message(kind, *parts):
    return bytes([1, kind]) + b"".join(parts)


def digest(label, start, members):
    total = [0] * 4
    for member in members:
        of = r.labelled_hash(label, [bytes.fromhex(PLAN), u(start, 64), member])
        for at in range(4):
            total[at] = (total[at] + int.from_bytes(of[8 * at : 8 * at + 8], "big")) & r.MASK
    return total


def stream_digest(start, positions):
    return digest("alpheus/jvm/stream-set/v1", start, [bytes.fromhex(STREAMS[at]) for at in positions])


def token_digest(start, positions):
    return digest("alpheus/jvm/token-set/v1", start, [u(at, 32) for at in positions])


def hexadecimals(words):
    return [r.hexadecimal(word) for word in words]


def plan_body(view):
    rows = b"".join(u(len(row), 32) + b"".join(u(word, 16) for word in row) for row in view["rows"])
    times = [u(view[name], 64) for name in ("window", "grace", "from")]
    return text(view["plan"]) + b"".join(times) + u(view["gaps"], 32) + u(len(view["rows"]), 32) + rows


VIEWS = [
    {"plan": PLAN, "window": WINDOW, "grace": 0, "from": START, "gaps": 2**31 - 1, "rows": [[0], [1, 2, 65535], [7]]},
    {"plan": PLAN, "window": 86_400_000_000, "grace": 5_000_000, "from": 0, "gaps": 0, "rows": [[3]]},
]


def plans():
    write("plan_start.json", [{**view, "encoded": message(3, plan_body(view)).hex()} for view in VIEWS])
    write("join.json", [
        {
            **view, "stream": STREAMS[at], "position": at,
            "encoded": message(2, text(STREAMS[at]), plan_body(view), u(at, 32)).hex(),
        }
        for at, view in enumerate(VIEWS)
    ])
    write("plan_end.json", [{"plan": PLAN, "encoded": message(4, text(PLAN)).hex()}])


def opening(start, streams, controllers, masked, rows):
    ours, theirs = stream_digest(start, streams), token_digest(start, controllers)
    return {
        "plan": PLAN, "start": start, "streams": streams, "members": [STREAMS[at] for at in streams],
        "stream_digest": hexadecimals(ours), "controllers": controllers,
        "token_digest": hexadecimals(theirs), "masked": masked, "rows": rows,
        "encoded": message(
            5, text(PLAN), u(start, 64), bitmap(streams), longs(ours), bitmap(controllers),
            longs(theirs), u(int(masked), 8), u(rows, 32),
        ).hex(),
    }


def openings():
    write("opening.json", [
        opening(START, [0, 3, 7, 8, 69], [1, 2, 256], True, 3),
        opening(START + WINDOW, list(range(64)), [0], False, 683),
        opening(START, [], [], True, 1),
    ])


def tokens():
    cases = []
    for controller, opens, rows in [(0, False, [0, 1, r.MASK]), (256, True, [1 << 63]), (7, False, [])]:
        body = [text(PLAN), u(START, 64), u(controller, 32), u(int(opens), 8), longs(rows)]
        cases.append({
            "plan": PLAN, "start": START, "controller": controller, "opens": opens,
            "rows": hexadecimals(rows), "encoded": message(9, *body).hex(),
        })
    write("token.json", cases)


def border(session, at, closing, events, name):
    tag = fixed(name, 16)
    made = u(session, 64) + u(at, 64) + u(int(closing), 8) + u(events, 64) + tag
    return {"at": at, "closing": closing, "events": events, "tag": tag.hex()}, made


def segment(session, start, tag, borders):
    listed, made = zip(*borders)
    opens = tag is not None
    body = u(session, 64) + u(start, 64) + u(int(opens), 8) + (tag or bytes(16))
    found = {
        "session": r.hexadecimal(session), "from": start,
        "opening": tag.hex() if opens else None, "borders": list(listed),
    }
    return found, body + u(len(made), 32) + b"".join(made)


def summary(at, check_sum, why, segments):
    listed, made = zip(*segments) if segments else ((), ())
    number = COMPLETE if why is None else REASONS.index(why)
    return {
        "stream": STREAMS[at], "plan": PLAN, "start": START, "position": at,
        "check_sum": r.hexadecimal(check_sum), "why": why, "segments": list(listed),
        "encoded": message(
            6, text(STREAMS[at]), text(PLAN), u(START, 64), u(at, 32), u(check_sum, 64),
            u(number, 8), u(len(made), 32), *made,
        ).hex(),
    }


def summaries():
    first = segment(r.MASK, START, None, [
        border(r.MASK, START + 4_000_000, False, 3, "a"), border(r.MASK, START + 6_000_000, True, 0, "b"),
    ])
    second = segment(9, START + 8_000_000, fixed("opening", 16), [
        border(9, START + WINDOW, False, 1 << 40, "c"),
    ])
    write("summary.json", [
        summary(0, r.MASK - 4, None, [first]), summary(69, 5, None, [first, second]),
        *[summary(at, 0, why, []) for at, why in enumerate(REASONS)],
    ])


CLAIMS = ["opening", "tick", "gap", "closing_tick", "closing_gap"]


def claim(kind, session, start, end, name):
    """What a tick frame states, as the service sees it."""
    count, root, tag = int.from_bytes(fixed(f"count {name}", 8), "big"), fixed(f"root {name}", 16), fixed(f"tag {name}", 16)
    body = u(CLAIMS.index(kind), 8) + u(session, 64) + u(start, 64) + u(end, 64) + u(count, 64) + root + tag
    return {
        "kind": kind, "session": r.hexadecimal(session), "from": start, "to": end,
        "masked_count": r.hexadecimal(count), "root": root.hex(), "tag": tag.hex(),
    }, body


def tick_summary(at, check_sum, why, segments, conflict=()):
    number = COMPLETE if why is None else REASONS.index(why)
    listed = [u(len(segment), 32) + b"".join(body for _, body in segment) for segment in segments]
    return {
        "stream": STREAMS[at], "plan": PLAN, "start": START, "position": at,
        "check_sum": r.hexadecimal(check_sum), "why": why,
        "claims": [[found for found, _ in segment] for segment in segments],
        "conflict": [found for found, _ in conflict],
        "encoded": message(
            14, text(STREAMS[at]), text(PLAN), u(START, 64), u(at, 32), u(check_sum, 64), u(number, 8),
            u(len(segments), 32), *listed, u(int(bool(conflict)), 8), *[body for _, body in conflict],
        ).hex(),
    }


def tick_summaries():
    """Streams of a schema with one frame a tick: claims in place of borders."""
    first = [claim("gap", r.MASK, START - 5_000_000, START + 1_000_000, "a"),
             claim("closing_tick", r.MASK, START + 5_000_000, START + 6_000_000, "b")]
    second = [claim("opening", 9, START + 6_000_000, START + 6_000_000, "c"),
              claim("closing_gap", 9, START + 6_000_000, START + WINDOW, "d")]
    twice = [claim("tick", 9, START, START + 1_000_000, name) for name in "ef"]
    good = [tick_summary(0, r.MASK - 4, None, [first]), tick_summary(69, 5, None, [first, second], twice),
            *[tick_summary(at, 0, why, []) for at, why in enumerate(REASONS)]]
    write("tick_summary.json", good)
    whole = bytes.fromhex(good[1]["encoded"])
    at = 2 + 2 + 32 + 2 + 64 + 8 + 4 + 8 + 1 + 4 + 4
    bad_kind = whole[:at] + b"\x05" + whole[at + 1 :]
    write("tick_summary_bad_bytes.json", [
        {"encoded": each.hex(), "error": error} for error, each in [
            ("Truncated", whole[:-1]), ("Truncated", whole[:-130]), ("Malformed", bad_kind), ("Kind", b"\x01\x06" + whole[2:]),
        ]])
    cases = []
    for at in (0, 69):
        private = Ed25519PrivateKey.from_private_bytes(fixed(f"key {at}"))
        certificate, key = fixed(f"certificate {at}"), private.public_key().public_bytes_raw()
        cases.append({
            "stream": STREAMS[at], "certificate": certificate.hex(), "key": key.hex(),
            "encoded": message(15, text(STREAMS[at]), certificate, key).hex(),
        })
    write("device.json", cases)


def progress():
    cases = [(0, 1, 0), (2, 3, START), (127, 128, 1 << 52)]
    write("progress.json", [
        {"task": task, "tasks": tasks, "time": time,
         "encoded": message(12, u(task, 32), u(tasks, 32), u(time, 64)).hex()}
        for task, tasks, time in cases
    ])
    write("joined.json", [
        {"stream": STREAMS[at], "plan": PLAN, "position": at,
         "encoded": message(13, text(STREAMS[at]), text(PLAN), u(at, 32)).hex()}
        for at in (0, 69)
    ])


def window_sums():
    cases = []
    for streams, controllers in [([0, 3, 69], [1, 2]), (list(range(70)), [0])]:
        ciphertexts, summed = [r.MASK, 0, 5], [1, 1 << 63, 0]
        ours, theirs = stream_digest(START, streams), token_digest(START, controllers)
        body = [
            text(PLAN), u(START, 64), u(len(streams), 64), longs(ours), u(len(controllers), 64),
            longs(theirs), longs(ciphertexts), longs(summed),
        ]
        cases.append({
            "plan": PLAN, "start": START, "members": [STREAMS[at] for at in streams],
            "stream_digest": hexadecimals(ours), "controllers": controllers,
            "token_digest": hexadecimals(theirs), "ciphertexts": hexadecimals(ciphertexts),
            "tokens": hexadecimals(summed), "encoded": message(10, *body).hex(),
        })
    write("window_sum.json", cases)


def bad(name, error, **cases):
    """Bytes that are no message of a kind, by the kind's name."""
    made = [
        {"message": kind, "encoded": each.hex(), "error": error}
        for kind, those in cases.items() for each in those
    ]
    write(f"messages_bad_{name}.json", made)


def bad_messages():
    end, token = message(4, text(PLAN)), message(9, text(PLAN), u(START, 64), u(0, 32), u(0, 8), longs([1, 2]))
    whole = bytes.fromhex(summary(0, 1, "gap", [])["encoded"])
    one = segment(5, START, None, [border(5, START + WINDOW, False, 3, "a")])
    complete = bytes.fromhex(summary(0, 1, None, [one])["encoded"])
    sums = message(10, text(PLAN), u(START, 64), *[u(0, 64) + longs([0] * 4)] * 2, longs([1]), longs([2]))
    bad("version", "Version", plan_end=[b"\x00" + end[1:], b"\x02" + end[1:]], window_sum=[b"\x02" + sums[1:]])
    bad("kind", "Kind", plan_end=[b"\x01\x03" + end[2:]], summary=[end], window_sum=[token], token=[sums])
    bad("truncated", "Truncated", plan_end=[b"", b"\x01", end[:3], end[:-1]], token=[token[:-1]],
        summary=[whole[:-1], complete[:-1], whole[:40]], window_sum=[sums[:-8], sums[:80]])
    huge = u(2**31 - 1, 32)
    bad("too_long", "TooLong", token=[token[:-20] + huge], window_sum=[sums[:-12] + huge],
        opening=[message(5, text(PLAN), u(START, 64), huge)])
    at = 2 + 2 + 32 + 2 + 64 + 8 + 4 + 8
    bad("reason", "Malformed", summary=[whole[:at] + bytes([why]) + whole[at + 1 :] for why in (9, 128, 254)])
    # What Java reads more generously than it is written, and Rust does not.
    flag = 2 + 2 + 64 + 8 + 4
    one_claim = [claim("tick", 9, START, START + 1_000_000, name) for name in "ef"]
    ticks = bytes.fromhex(tick_summary(0, 1, None, [one_claim[:1]])["encoded"])
    twice = bytes.fromhex(tick_summary(0, 1, None, [], one_claim)["encoded"])
    bad("spelling", "Malformed", token=[token[:flag] + b"\x02" + token[flag + 1 :]],
        plan_end=[message(4, text(PLAN.upper())), message(4, text(PLAN[:-2])), message(4, text("é" * 32))],
        summary=[whole[:at] + bytes([COMPLETE]) + whole[at + 1 : -4] + complete[at + 1 :].replace(u(5, 64), u(6, 64), 1),
                 whole[:at] + b"\x00" + complete[at + 1 :]],
        window_sum=[message(10, text(PLAN), u(START, 64), u(0, 64), longs([0] * 3), sums[-200:])],
        tick_summary=[ticks[:-1] + b"\x02", ticks[:at] + b"\x00" + ticks[at + 1 :],
                      twice[:at] + b"\x00" + twice[at + 1 :], twice[:-131] + b"\xff" + twice[-130:]],
        device=[message(15, text(STREAMS[0]), fixed("certificate"), key) for key in (bytes(32), b"\x01" + bytes(31))])
    bad("task", "Malformed", progress=[message(12, u(task, 32), u(tasks, 32), u(START, 64)) for task, tasks in ((0, 0), (2, 2), (0, 2**15 + 1))])
    bad("trailing", "Trailing", plan_end=[end + b"\x00"], token=[token + token], summary=[whole + b"\x01"], window_sum=[sums + b"\x00"])


for make in (plans, openings, tokens, summaries, tick_summaries, progress, window_sums, bad_messages):
    make()
