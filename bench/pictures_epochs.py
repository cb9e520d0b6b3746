#!/usr/bin/env python3
"""Draws how many windows open over presence, and what a window costs a controller, from the lines that
the drills of `crates/alpheus/tests/processes/epochs.rs` print, gathered into one list.

    python3 -m pip install -r bench/requirements.txt
    python3 bench/pictures_epochs.py --windows WINDOWS.json --output bench/results/epochs.svg
"""

import picture_sheet
from picture_sheet import OTHER, OURS


def points(windows, controllers, value):
    """For each presence the mean of a value over its windows."""
    found = {}
    for it in windows:
        if it["controllers"] == controllers and (number := value(it)) is not None:
            found.setdefault(it["percent"], []).append(number)
    return [(percent, sum(all_) / len(all_)) for percent, all_ in sorted(found.items())]


def draw(axes, windows, value, label):
    rosters = sorted({it["controllers"] for it in windows})
    for controllers, colour in zip(rosters, [OURS, OTHER, "#3a3a3a"]):
        drawn = points(windows, controllers, value)
        axes.plot(*zip(*drawn), "o-", color=colour, label=f"{controllers:,} controllers")
    axes.set(xscale="log", xlabel="awake, % of the roster", ylabel=label)
    axes.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
    axes.legend()


def opens(window):
    return 100.0 * window["opened"]


def cost(window):
    """A window that does not open asks nobody for a token."""
    return window["milliseconds"] / window["awake"] if window["opened"] else None


def main():
    (windows,), output = picture_sheet.read(__doc__, ["windows"])
    drawn, (left, right) = picture_sheet.sheet(1, 2, (9, 3.6))
    draw(left, windows, opens, "windows that open, %")
    draw(right, windows, cost, "ms of processor a member, list and window")
    left.set_ylim(bottom=0)
    right.set_yscale("log")
    picture_sheet.save(drawn, output)


if __name__ == "__main__":
    main()
