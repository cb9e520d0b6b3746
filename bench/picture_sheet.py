"""What the scripts of pictures share: reports as arguments, and a sheet that is the same bytes for
the same reports."""

import argparse
import json
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

OURS, PAPER, OTHER = "#1f5f8b", "#b0b0b0", "#c8702a"


def read(doc, names):
    """The reports that the flags `names` name, in that order, and the picture's path."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in [*names, "output"]:
        parser.add_argument(f"--{name}", required=True, metavar="FILE")
    args = parser.parse_args()
    reports = []
    for path in (getattr(args, name) for name in names):
        try:
            with open(path, encoding="utf-8") as file:
                reports.append(json.load(file))
        except (OSError, ValueError) as error:
            sys.exit(f"error: {path}: {error}")
    return reports, args.output


def sheet(rows, columns, size):
    """A sheet in inches, and its axes."""
    return pyplot.subplots(rows, columns, figsize=size, layout="constrained")


def save(drawn, output):
    """Writes a sheet as SVG without the date."""
    matplotlib.rcParams["svg.hashsalt"] = "alpheus"
    drawn.savefig(output, metadata={"Date": None})
