#!/usr/bin/env python3
"""Redraws figures 3 to 7 of the Riposte paper, and the rate of delivery, from
`alpheus-bench board --format json`.

    python3 -m pip install -r bench/requirements.txt
    python3 bench/pictures_board.py --report REPORT.json --output bench/results/board.svg

What the paper reports in words stands beside, in grey.
"""

import math
import re
import sys

import picture_sheet
from picture_sheet import OURS, OTHER, PAPER


def series(report, name):
    """The points of the one series of that name."""
    found = [it["points"] for it in report["series"] if it["name"] == name]
    if len(found) != 1:
        sys.exit(f"error: {len(found)} series '{name}' in the report; one is needed\n"
                 "help: make the report with `alpheus-bench board --format json` of this version")
    return found[0]


def pairs(report, group, pattern):
    """First number of the name and the value, of each figure of a group whose name fits."""
    points = []
    for it in report["figures"]:
        fits = re.match(pattern, it["name"])
        if it["group"] == group and fits:
            points.append((float(fits.group(1)), it["ours"]))
    if not points:
        sys.exit(f"error: the report has no figures of '{group}'\n"
                 "help: make it without --only, or with all parts that are drawn")
    return points


def rows(axes, report):
    """Figure 3: writes in a second by rows."""
    axes.plot(*zip(*series(report, "AES alone, by rows")), "--", color=PAPER, label="AES of the rows alone")
    axes.plot(*zip(*series(report, "ours, by rows")), "o-", color=OURS, label="ours, with audit, one core")
    axes.plot([65536], [38.4], "x", color=PAPER, label="paper: its cluster")
    axes.set(xscale="log", yscale="log", xlabel="rows of 160 bytes", ylabel="writes in a second",
             title="Figure 3: size of the table")
    axes.legend()


def widths(axes, report):
    """Figure 4: ten megabytes in rows of any width."""
    group = "board, 10 MB in rows of any width (figure 4)"
    points = pairs(report, group, r"(\d+) rows of")
    axes.plot(*zip(*points), "o-", color=OURS, label="ours, with audit, one core")
    axes.axhline(38.4, color=PAPER, linestyle="--", label="paper: its cluster, at its best width")
    axes.set(xscale="log", yscale="log", xlabel="rows of a table of 10 MB", ylabel="writes in a second",
             title="Figure 4: width of the table")
    axes.legend()


def bytes_moved(axes, report):
    """Figure 5: bytes that a database takes for a write."""
    group = "board, bytes that a write moves (figure 5)"
    points = pairs(report, group, r"(\d+) rows: a database takes")
    axes.plot(*zip(*points), "o-", color=OURS, label="ours: to each database")
    axes.plot([x for x, _ in points], [160 * x for x, _ in points], "--", color=PAPER, label="the table")
    axes.plot([2.5e9 / 160], [1.23e6], "x", color=PAPER, label="paper: a table of 2.5 GB")
    axes.set(xscale="log", yscale="log", xlabel="rows of 160 bytes", ylabel="bytes for a write",
             title="Figure 5: what a write moves")
    axes.legend()


def equal_rows(axes, report):
    """Figure 6: requests in a second by rows, eight servers of which seven may collude."""
    axes.plot(*zip(*series(report, "eight servers, AES, by rows")), "o-", color=OURS, label="ours: AES, audited")
    axes.plot(*zip(*series(report, "eight servers, group, by rows")), "s-", color=OTHER,
              label="the paper's keys over ristretto255, audited")
    axes.plot([1024], [1 / 3.44], "x", color=PAPER, label="paper: P-256, without proofs")
    axes.set(xscale="log", yscale="log", xlabel="rows of 160 bytes", ylabel="requests in a second",
             title="Figure 6: eight equal servers")
    axes.legend(loc="lower left")


def equal_servers(axes, report):
    """Figure 7: requests in a second by the number of servers."""
    for rows, mark in [(16, "o"), (64, "s")]:
        axes.plot(*zip(*series(report, f"{rows} rows, AES, by servers")), mark + "-", color=OURS,
                  label=f"ours: AES, {rows} rows")
        axes.plot(*zip(*series(report, f"{rows} rows, group, by servers")), mark + "--", color=OTHER,
                  label=f"the paper's keys, {rows} rows")
    axes.set(yscale="log", xlabel="servers", ylabel="requests in a second", title="Figure 7: number of servers")
    axes.legend()


def delivery(axes, report):
    """Messages that come back, beside the formula."""
    points = series(report, "messages that come back, by writers for each row")
    loads = [at / 100 for at in range(5, 101)]
    formula = [100 * math.exp(-load) * (1 + load) for load in loads]
    axes.plot(loads, formula, color=PAPER, label="e^(−λ)(1 + λ)")
    axes.plot(*zip(*points), "o", color=OTHER, label="simulated, 2,000 writers")
    axes.set(xlabel="writers for each row (λ)", ylabel="% that come back", title="Delivery")
    axes.legend()


def main():
    (report,), output = picture_sheet.read(__doc__, ["report"])
    sheet, axes = picture_sheet.sheet(3, 2, (11, 12))
    rows(axes[0][0], report)
    widths(axes[0][1], report)
    bytes_moved(axes[1][0], report)
    equal_rows(axes[1][1], report)
    equal_servers(axes[2][0], report)
    delivery(axes[2][1], report)
    where = report["environment"]
    about = f"{where['date']}, {where['processor']}, {where['processors']} processors, Linux {where['kernel']}"
    sheet.suptitle(about, fontsize=8)
    picture_sheet.save(sheet, output)


if __name__ == "__main__":
    main()
