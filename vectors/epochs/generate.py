"""Known answers of the lists of membership epochs: python3 generate.py TARGET."""

import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reference as r  # noqa: E402

TARGET = sys.argv[1]
WINDOW = 10_000_000
START = 1_700_006_400_000_000


def fixed(name, length=32):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(f"alpheus epochs {name}".encode()).digest(length)


def owner(name, streams):
    return {"owner": fixed(f"owner {name}"),
            "streams": sorted(fixed(f"stream {name} {n}", 16) for n in range(streams))}


def entry(name, owners):
    return {"controller": fixed(f"controller {name}"), "agreement": fixed(f"agreement {name}"),
            "owners": sorted((owner(f"{name} {n}", many) for n, many in enumerate(owners)),
                             key=lambda one: one["owner"])}


def members(*sizes):
    return sorted((entry(str(n), owners) for n, owners in enumerate(sizes)),
                  key=lambda one: one["controller"])


def encode(one):
    out = one["controller"] + one["agreement"] + len(one["owners"]).to_bytes(4, "big")
    for listed in one["owners"]:
        out += listed["owner"] + len(listed["streams"]).to_bytes(4, "big") + b"".join(listed["streams"])
    return out


def digest(terms, start, windows, entries):
    parts = [terms, start.to_bytes(8, "big"), windows.to_bytes(4, "big"), b"".join(map(encode, entries))]
    return r.labelled_hash("alpheus/epoch/entries/v1", parts)


def shown(one):
    return {"controller": one["controller"].hex(), "agreement": one["agreement"].hex(),
            "owners": [{"owner": listed["owner"].hex(), "streams": [s.hex() for s in listed["streams"]]}
                       for listed in one["owners"]]}


def case(entries, start=START, windows=1, terms="terms"):
    return {"terms": fixed(terms).hex(), "start": start, "windows": windows,
            "entries": [shown(one) for one in entries],
            "digest": digest(fixed(terms), start, windows, entries).hex()}


def bad(name, error, position, entries):
    r.write(TARGET, f"list_bad_{name}.json",
            [{"entries": [shown(one) for one in entries], "error": error, "position": position}])


def changed(entries, position, **fields):
    return [one | fields if at == position else one for at, one in enumerate(entries)]


r.write(TARGET, "list.json", [
    case(members([1])),
    case(members([1], [1, 2], [3])),
    case(members(*([[1]] * 40)), START + WINDOW, terms="other terms"),
    case(members([1] * 300, [2])),
    case([]),
])

three = members([1], [2], [1, 1])
bad("order", "Entry", 1, [three[1], three[0], three[2]])
bad("repeated", "Entry", 1, [three[0], three[0], three[1]])
bad("no_owner", "Entry", 2, changed(three, 2, owners=[]))
bad("no_stream", "Entry", 0, changed(three, 0, owners=[three[0]["owners"][0] | {"streams": []}]))
two = members([1, 1], [1])
wide = next(at for at, one in enumerate(two) if len(one["owners"]) == 2)
bad("owner_order", "Entry", wide, changed(two, wide, owners=two[wide]["owners"][::-1]))
long = members([2])
bad("stream_order", "Entry", 0, changed(long, 0, owners=[
    long[0]["owners"][0] | {"streams": long[0]["owners"][0]["streams"][::-1]}]))
bad("owner_in_two", "OwnerInTwoEntries", 2, changed(three, 2, owners=three[1]["owners"]))
borrowed = [three[2]["owners"][0] | {"streams": three[0]["owners"][0]["streams"]}]
bad("stream_in_two", "Entry", 2, changed(three, 2, owners=borrowed))
