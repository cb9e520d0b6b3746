"""What breaks first on the way to ten million owners: limits.py [--check].

Computes the table of docs/scale-limits.md from the figures in bench/results, and writes it there. With
`--check` it only compares.
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "scale-limits.md"
BEGIN, END = "<!-- computed by bench/limits.py -->\n", "<!-- end of what is computed -->\n"
OWNERS = 10_000_000
# Of the list that each member of an epoch reads: an entry for each stream of it (protocol.md, Membership epochs).
ENTRY = 82
# A machine of the operator, and a phone's share of a month's data.
CORES, MEMORY, PHONE = 16, 64e9, 1e9


def figure(file: str, name: str) -> float:
    found = json.loads((ROOT / "bench" / "results" / file).read_text())["figures"]
    return next(each["ours"] for each in found if each["name"] == name)


def amount(number: float, unit: str) -> str:
    """Three digits at most, since a ratio of noisy figures has no more."""
    if unit == "bytes":
        for power, name in ((12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")):
            if number >= 10**power:
                return f"{number / 10**power:.3g} {name}"
    return f"{float(f'{number:.2g}'):,.0f} {unit}".strip() if number >= 10 else f"{number:.2g} {unit}".strip()


def rows() -> list[tuple[float, str, str, str, str]]:
    """Owners at which it breaks, what, constant, for ten million owners, source."""
    hosts = "2026-11-22-amd-epyc-hosts.json"
    idle = figure(hosts, "1000 controllers: service, nothing to do") / 100 / 1000
    memory = figure(hosts, "1000 controllers: service, memory") * 1e6 / 1000
    window = figure(hosts, "1000 controllers: service, processor time of a window") / 1000
    # Key agreements of one member with 9,999 others: 772.4 ms, in 2026-11-21-amd-epyc-neighbours.md.
    agreement, patience = 0.7724 / 9_999, 10
    state = figure("2026-11-21-amd-epyc-streams.json", "memory for each stream with an open window, 100000 streams")
    wire = figure("2026-11-26-amd-epyc-wire.json", "fitness (456 words): one frame a tick, a stream and hour") * 1e3
    # One owner in a hundred is present in an hour's window, and reads that hour's list.
    month, present = 24 * 30, OWNERS // 100
    listed = PHONE / month / ENTRY * 100
    return [
        (listed, "an epoch's list, as each present member reads it, 1 % present, windows of an hour",
         f"{ENTRY} bytes for each present stream", f"{amount(ENTRY * present * month, 'bytes')} a member and month",
         "protocol.md"),
        (CORES / idle, "hosts of one owner each that ask the service for what is new",
         f"{idle * 1e5:.2g} % of a core for 1,000", amount(idle * OWNERS, "cores"), hosts),
        (MEMORY / memory, "memory of the service for such hosts", amount(memory, "bytes"), amount(memory * OWNERS, "bytes"), hosts),
        (MEMORY / state, "memory for open windows, 456 words, every stream sending", amount(state, "bytes"),
         amount(state * OWNERS, "bytes"), "2026-11-21-amd-epyc-streams.json"),
        (CORES * 3600 / window, "the service's work for a window of an hour, every owner present",
         f"{window * 1000:.2g} ms for each host", amount(window * OWNERS / 3600, "cores"), hosts),
        (patience / agreement * 100, "key agreements of one member with all others, 1 % present, 10 s of its processor",
         f"{agreement * 1e6:.2g} µs for each", amount(agreement * present, "s, once for each pair"),
         "2026-11-21-amd-epyc-neighbours.md"),
        (1.25e9 * 3600 / wire, "frames of ticks of 456 words, against a link of 10 Gbit/s",
         f"{amount(wire, 'bytes')} a stream and hour", f"{amount(wire * OWNERS, 'bytes')} an hour", "2026-11-26-amd-epyc-wire.json"),
    ]


def table() -> str:
    lines = ["| breaks at about | what | constant | for 10,000,000 owners | from |", "| --- | --- | --- | --- | --- |"]
    for owners, what, constant, total, source in sorted(rows()):
        folder = "crates/encrypted-stream/docs" if source == "protocol.md" else "bench/results"
        source = f"[{source}](../{folder}/{source})"
        lines.append(f"| {amount(owners, 'owners')} | {what} | {constant} | {total} | {source} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    known, after = rest.split(END)
    if known == table():
        return
    if "--check" in sys.argv[1:]:
        sys.exit(f"error: {PAGE.relative_to(ROOT)} has other numbers than bench/results; run python3 bench/limits.py")
    PAGE.write_text(before + BEGIN + table() + END + after)


main()
