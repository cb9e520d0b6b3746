#!/usr/bin/env python3
"""Draws how far one owner moves the mean of 100 owners, whatever it claims, from the report of `bench/prio`.

    python3 -m pip install -r bench/requirements.txt
    python3 bench/pictures_bounded.py --report REPORT.json --output bench/results/bounded.svg
"""

import picture_sheet
from picture_sheet import OTHER, OURS


def main():
    (report,), output = picture_sheet.read(__doc__, ["report"])
    points = report["influence"]
    drawn, axes = picture_sheet.sheet(1, 1, (6, 3.6))
    claimed = [point["claimed"] for point in points]
    for name, colour, label in [("without", OTHER, "without bounds"), ("with", OURS, "integrity = 'bounded'")]:
        axes.plot(claimed, [point[name] for point in points], "-", color=colour, label=label)
    axes.set(xscale="log", yscale="symlog", xlabel="what one of 100 owners claims as its sum", ylabel="how far the mean moves")
    axes.set_ylim(bottom=0)
    axes.legend()
    picture_sheet.save(drawn, output)


if __name__ == "__main__":
    main()
