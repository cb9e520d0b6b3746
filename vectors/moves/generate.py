"""Known answers of placements that move a stream: python3 generate.py TARGET."""

import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reference as r  # noqa: E402

TARGET = sys.argv[1]
LABEL = "alpheus/placement/v1"
BORDER = 1_700_006_400_000_000


def fixed(name, length):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(f"alpheus moves {name}".encode()).digest(length)


def varint(number):
    """Seven bits a byte, least significant first."""
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def encode(stream, version, controller, producer, moved):
    text = producer.encode()
    out = stream + varint(version) + controller + varint(len(text)) + text
    if moved:
        before, at, lost = moved
        out += before + varint(at) + bytes([lost])
    return out


def case(name, version, producer="watch", moved=None):
    stream, controller = fixed(f"stream {name}", 16), fixed(f"controller {name}", 32)
    encoded = encode(stream, version, controller, producer, moved)
    before, at, lost = moved or (None, 0, False)
    return {"stream": stream.hex(), "version": version, "controller": controller.hex(),
            "producer": producer, "from": before and before.hex(), "at": at, "lost": lost,
            "bytes": encoded.hex(), "digest": r.labelled_hash(LABEL, [encoded]).hex()}


before = fixed("before", 32)
first = case("first", 1)
moved = case("moved", 2, moved=(before, BORDER, False))
r.write(TARGET, "placement.json", [
    first,
    moved,
    case("lost", 3, producer="a watch with a longer name", moved=(before, BORDER + 1, True)),
    case("late", 2**32 - 1, producer="", moved=(before, 2**52, False)),
])

whole, short = bytes.fromhex(moved["bytes"]), bytes.fromhex(first["bytes"])
r.write(TARGET, "bad.json", [
    # The first placement with a mark that no move follows.
    {"bytes": (short + b"\0").hex()},
    # The end of the move is missing, or something follows it.
    {"bytes": whole[:-1].hex()},
    {"bytes": whole[:len(short) + 5].hex()},
    {"bytes": (whole + b"\0").hex()},
    # Neither yes nor no.
    {"bytes": (whole[:-1] + b"\2").hex()},
    # A border with a needless byte.
    {"bytes": (short + before + varint(BORDER)[:-1] + bytes([varint(BORDER)[-1] | 128, 0, 0])).hex()},
    {"bytes": short[:-1].hex()},
    {"bytes": ""},
])
