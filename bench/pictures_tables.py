#!/usr/bin/env python3
"""Redraws figure 1 of the verifiable tables' paper from `alpheus-bench tables --format json`.

    python3 -m pip install -r bench/requirements.txt
    python3 bench/pictures_tables.py --report REPORT.json --output bench/results/tables.svg

The paper's verification, at 80 bits, stands beside, in grey.
"""

import sys

import picture_sheet
from picture_sheet import PAPER

COLOURS = {"X128": "#1f5f8b", "C80": "#7fb0d0", "P80": "#c8702a", "P128": "#3a3a3a"}
LINES = {"checking": "o-", "computing": "x--", "preparing": "s:"}
# Table 4, 80 bits: the figure's dashed and drawn lines of Verify, in seconds.
VERIFY = {
    "paper (CCS 2014), 80 bits, a laptop of 2011: Verify": 0.070,
    "the same, with powers computed ahead": 0.062,
}


def curves(report):
    """Points in seconds by set and work."""
    found = {}
    for it in report.get("series", []):
        set_name, _, rest = it["name"].partition(": ")
        work = rest.split(" ")[0]
        if it["name"].endswith("(figure 1)") and set_name in COLOURS and work in LINES:
            found[set_name, work] = [(n, value / 1e6) for n, value in it["points"]]
    if not any(work == "checking" for _, work in found):
        sys.exit("error: the report has no curves of figure 1 of X128, C80, P80 or P128\n"
                 "help: make the report with `alpheus-bench tables --format json` of this version")
    return found


def figure_one(axes, report):
    """Checking and computing a sum of products, by values."""
    for (set_name, work), points in curves(report).items():
        label = f"{set_name}: {work}"
        axes.plot(*zip(*points), LINES[work], color=COLOURS[set_name], label=label, markersize=4)
    for (label, seconds), style in zip(VERIFY.items(), ["-", "--"]):
        axes.axhline(seconds, color=PAPER, linestyle=style, label=label)
    axes.set(xscale="log", yscale="log", xlabel="values", ylabel="seconds, one processor",
             title="Figure 1: checking, computing and preparing, by how many values there are")
    axes.legend(fontsize=7, ncols=2)


def main():
    (report,), output = picture_sheet.read(__doc__, ["report"])
    sheet, axes = picture_sheet.sheet(1, 1, (9, 6))
    figure_one(axes, report)
    where = report["environment"]
    about = f"{where['date']}, {where['processor']}, Linux {where['kernel']}"
    if not where["optimised"]:
        about += "; NOT OPTIMISED: figures mean nothing"
    sheet.supxlabel(about, fontsize=7)
    picture_sheet.save(sheet, output)


if __name__ == "__main__":
    main()
