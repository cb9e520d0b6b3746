#!/usr/bin/env python3
"""Compares the output of `alpheus stats replay` with the exact truth about a data set.

    compare_statistics.py DATA DATASET TABLE --output OUTPUT.csv
        [--attribute NAME] [--groups A,B,…] [--hours N] [--slots U]

DATA is the folder of real files, TABLE a key of its truth file (say `windows_1h`), OUTPUT.csv
what the replay wrote: a row for each aggregate. Counts and sums must be equal; means and standard
deviations (of the population) must be the exact number, rounded once. Count and dummies together
must be the slots, but for those that a deployment may leave empty. With --groups, rows of these groups
of a table by group are added up. Exits 1 on any difference and
never prints a value, only where it differs.
"""
import argparse
import csv
import sys
from decimal import Context, Decimal
from fractions import Fraction

from compare import scale_of, truth_of

# So many slots of a thousand may stay empty, or be rejected.
TOLERANCE = 50


def root(square):
    """The double nearest to the square root of a fraction."""
    context = Context(prec=120)
    quotient = context.divide(Decimal(square.numerator), Decimal(square.denominator))
    return float(context.sqrt(quotient))


def differences(row, expected, unit, slots):
    """Columns of a row that differ from a row of truth."""
    _, count, total, squares = expected[:4]
    variance = Fraction(count * squares - total * total, count * count * unit * unit)
    seen, dummies = int(row["slots"]), int(row["dummies"] or -1)
    empty = seen - count - dummies
    wanted = {
        "count": row["count"] == str(count),
        "sum": Decimal(row["sum"] or "NaN") * unit == total,
        "mean": float(row["mean"] or "nan") == float(Fraction(total, count * unit)),
        "stddev": float(row["stddev"] or "nan") == root(variance),
        "slots": slots is None or seen == slots,
        "dummies": dummies >= 0 and 0 <= empty <= seen * TOLERANCE // 1000,
    }
    return [name for name, equal in wanted.items() if not equal]


def added_up(table, groups):
    """Count, sum and sum of squares of some groups, by window."""
    added = {}
    for group in groups:
        for row in table[group]:
            known = added.setdefault(row[0], [row[0], 0, 0, 0])
            for place in (1, 2, 3):
                known[place] += row[place]
    return list(added.values())


def compare(rows, table, scale, slots):
    known = {row[0] * 1000: row for row in table}
    problems = []
    for row in rows:
        start = int(row["interval_start"])
        if start not in known:
            problems.append(f"{start}: no such window in the truth")
            continue
        for name in differences(row, known[start], 10**scale, slots):
            problems.append(f"{start}: {name} differs")
    return problems


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", help="the folder of real files")
    parser.add_argument("dataset", help="say traffic_speed")
    parser.add_argument("table", help="a key of the truth file, say windows_1h")
    parser.add_argument("--output", required=True, help="what the replay wrote")
    parser.add_argument("--attribute", help="by default the truth's only one")
    parser.add_argument("--groups", help="these alone, of a table by group")
    parser.add_argument("--hours", type=int, help="so many aggregates there must be")
    parser.add_argument("--slots", type=int, help="so many slots each must have")
    args = parser.parse_args()
    truth = truth_of(args.data, args.dataset)
    attribute = args.attribute or next(iter(truth[args.table]))
    with open(args.output, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table = truth[args.table][attribute]
    if args.groups:
        table = added_up(table, args.groups.split(","))
    problems = compare(rows, table, scale_of(truth, attribute), args.slots)
    if args.hours is not None and len({row["interval_start"] for row in rows}) != args.hours:
        problems.append(f"{len(rows)} rows, not {args.hours}")
    if not rows:
        problems.append("no rows")
    for problem in problems:
        print(f"compare_statistics.py: {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"{len(rows)} aggregates, all equal")


if __name__ == "__main__":
    main()
