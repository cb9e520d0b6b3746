"""Changes one digit of each kind of a pack, one after the other: python3 flips.py PACK DEPLOYMENT.

Each change must be noticed. Those of numbers that follow from others must be named, not only by
the signature: by check.py, or where that takes them as given, by further.py.
"""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[5] / "docs" / "evidence"))
import check  # noqa: E402
import further  # noqa: E402

# What the service states and nothing else shows: only its signature covers these.
STATED = {
    "head.from", "head.until", "head.made", "head.controllers", "head.owners",
    "schema.schema.version", "schema.schema.tick", "schema.schema.capacity.population",
    "schema.schema.capacity.events", "schema.schema.frames.Ticks.anchor", "policy.window_us",
    "policy.min_population", "policy.alpha.numerator", "policy.alpha.denominator",
    "policy.colluders", "withdrawals.before", "withdrawals.within", "withdrawals.after",
    "withdrawals.unknown", "revocations.version", "revocations.certificates",
    "release.row.silent", "release.row.excluded", "release.row.population",
    "release.row.sum_alarms", "release.row.sum_litres", "release.verified.row.silent",
    "release.verified.row.excluded",
}
# Parts of these are of the schema, or of a row that only the service states.
STATED_BELOW = (
    "policy.dropout", "policy.generalise", "policy.missing_ticks", "schema.schema.options",
    "schema.schema.attributes", "release.row.noise")
EXHIBITS = ("signature", "announcement", "receipt")


def leaves(value, path=()):
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from leaves(inner, (*path, key))
    digits = isinstance(value, str) and re.fullmatch(r"[0-9a-f.]*[0-9][0-9a-f.]*", value)
    if digits or type(value) in (int, float):
        yield path, value


def flipped(value):
    """As JSON, with another last digit."""
    written = json.dumps(value)
    place = max(at for at, char in enumerate(written) if char.isdigit())
    return written[:place] + str((int(written[place]) + 1) % 10) + written[place + 1:]


def changed(tree, path, value):
    if not path:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = changed(tree[path[0]], path[1:], value)
    return copy


def text(tree):
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


def said(lines, trusted):
    """What is wrong, by check.py, and by further.py if that names nothing but the signature."""
    for kind in (check.Pack, further.Further):
        wrong, _ = check.check("".join(lines).encode(), trusted, kind)
        if any(not one.startswith("the signature:") for one in wrong):
            return wrong, kind.__name__
    return wrong, None


def kind_of(line, path):
    kind = line["kind"] + (".verified" if line["kind"] == "release" and line["receipt"] else "")
    return ".".join([kind, *(part for part in path if isinstance(part, str))])


def main(pack, deployment):
    lines = Path(pack).read_text(encoding="utf-8").splitlines(keepends=True)
    trusted = json.loads(Path(deployment).read_text(encoding="utf-8"))
    assert said(lines, trusted) == ([], None)
    named = {}
    for number, line in enumerate(lines):
        tree = json.loads(line)
        assert text(tree) + "\n" == line, line
        for path, value in leaves(tree):
            kind = kind_of(tree, path)
            if kind in named:
                continue
            own = text(changed(tree, path, "@")).replace('"@"', flipped(value)) + "\n"
            differ = sum(a != b for a, b in zip(own, line))
            assert differ == 1 and len(own) == len(line), (own, line)
            wrong, named[kind] = said([*lines[:number], own, *lines[number + 1:]], trusted)
            assert wrong, f"{kind}: {own}"
    signed = {kind for kind, by in named.items() if by is None}
    signed = {kind for kind in signed if kind.split(".")[0] not in EXHIBITS}
    signed = {kind for kind in signed if kind not in STATED and not kind.startswith(STATED_BELOW)}
    further_only = sorted(kind for kind, by in named.items() if by == "Further")
    print(json.dumps({"kinds": len(named), "only signed": sorted(signed),
                      "only further": further_only}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
