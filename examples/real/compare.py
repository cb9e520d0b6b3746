#!/usr/bin/env python3
"""Compares the output of `alpheus replay` with the exact truth about a data set.

    compare.py DATA DATASET TABLE OUTPUT.json [--group COLUMN] [--minimum N --owners FILE]
               [--from MILLISECONDS] [--closed [--enough N --owners FILE]]

DATA is the folder of real files, TABLE a key of its truth file (say
`windows_1h`), OUTPUT.json what `replay` wrote. Counts, sums and histograms
must be equal; means and variances must be the exact rational, rounded once.
With --minimum, windows with fewer owners than that (by the `population`
column of --owners, an output of the same data without a minimum) must be
refused and all others equal. With --from, windows that start earlier are left
out of both: a query over members' sums begins at an anchor. With --closed,
windows that did not open are left out as well, and counted by reason. The
reason must be that owners or controllers were too few, and with --enough no
window with N owners or more may be among them: where members decide what rows
say, they count as many owners fewer as may be made up. Exits 1 on any
difference and never prints a value, only where it differs.
"""
import argparse
import collections
import gzip
import json
import re
import sys
from decimal import Decimal
from fractions import Fraction


def load(path):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def truth_of(data, dataset):
    for ending in (".json", ".json.gz"):
        try:
            return load(f"{data}/truth/{dataset}{ending}")
        except FileNotFoundError:
            continue
    sys.exit(f"compare.py: no truth for {dataset} in {data}/truth")


def column(attribute):
    return attribute.lower().replace("-", "_")


def differences(row, name, scale, expected):
    """Columns of one row that differ from one row of truth."""
    _, count, total, squares, _, _, _, _, bins = expected
    unit = 10**scale
    variance = Fraction(count * squares - total * total, count * count * unit * unit)
    wanted = {
        "count": row[f"count_{name}"] == count,
        "sum": Decimal(row[f"sum_{name}"] or "NaN") == Decimal(total).scaleb(-scale),
        "avg": row[f"avg_{name}"] == float(Fraction(total, count * unit)),
        "var": row[f"var_{name}"] == float(variance),
        "histogram": row[f"histogram_{name}"] == bins,
    }
    return [f"{function}_{name}" for function, equal in wanted.items() if not equal]


def scale_of(truth, attribute):
    factor = truth["scale"][attribute]
    return len(str(factor)) - 1


def index(rows, group):
    return {(row["window_start"], str(row[group]) if group else None): row for row in rows}


def since(begun, found):
    return {key: row for key, row in found.items() if key[0] >= begun}


def expected_rows(table, group):
    if not group:
        for row in table:
            yield (row[0] * 1000, None), row
        return
    for member, rows in table.items():
        for row in rows:
            yield (row[0] * 1000, str(member)), row


def compare(truth, table, rows, group, refused, begun):
    problems, compared = [], 0
    found = since(begun, index(rows, group))
    for attribute, expected in truth[table].items():
        name, scale = column(attribute), scale_of(truth, attribute)
        listed = set()
        for key, values in expected_rows(expected, group):
            if key[0] < begun:
                continue
            listed.add(key)
            row = found.get(key)
            if row is None:
                problems.append(f"{attribute}: no row for window {key}")
            elif key in refused:
                if row["status"] == "ok" or row[f"sum_{name}"] is not None:
                    problems.append(f"{attribute}: window {key} should have been refused")
            else:
                problems += [f"window {key}: {c} ({row['status']})" for c in differences(row, name, scale, values)]
                compared += 1
        for key, row in found.items():
            if key not in listed and row[f"count_{name}"] not in (0, None):
                problems.append(f"{attribute}: window {key} should hold nothing")
    return problems, compared


# What the service says of a window that had too few owners or controllers.
TOO_FEW = re.compile("population below the minimum|the population is below|fewer controllers answered than|no list of this epoch")


def closed(found, owners, enough):
    """Why windows did not open, each with how many, and those that should have."""
    reasons = collections.Counter(row["status"] for row in found.values() if row["status"] != "ok")
    problems = [f"windows did not open for another reason than too few: {why}" for why in reasons if not TOO_FEW.search(why)]
    if enough:
        shut = [key for key, row in found.items() if row["status"] != "ok"]
        problems += [f"window {key} had enough owners and did not open" for key in shut if owners[key]["population"] >= enough]
    return reasons, problems


def compare_altitude(truth, rows):
    """Sums and counts per bucket, added up over all windows."""
    sums, counts = {}, {}
    for row in rows:
        for bucket, value in (row["sum_by_altitude"] or {}).items():
            sums[int(bucket)] = sums.get(int(bucket), 0) + Decimal(value)
        for bucket, value in (row["count_by_altitude"] or {}).items():
            counts[int(bucket)] = counts.get(int(bucket), 0) + value
    problems = []
    expected = truth["hr_by_altitude_5m"]
    expected = expected.items() if isinstance(expected, dict) else [(row[0], row[1:]) for row in expected]
    expected = {int(bucket): values for bucket, values in expected}
    for bucket in sorted(set(expected) | set(counts)):
        count, total = expected.get(bucket, (0, 0))[:2]
        if counts.get(bucket, 0) != count or sums.get(bucket, 0) != total:
            problems.append(f"bucket {bucket}")
    return problems, len(expected)


def main():
    try:
        run()
    except OSError as error:
        sys.exit(f"compare.py: {error}")
    except (KeyError, TypeError, ValueError, EOFError) as error:
        sys.exit(f"compare.py: the output or the truth is not as expected ({type(error).__name__}: {error}); "
                 "OUTPUT.json must be what `alpheus replay` wrote for this dataset's stats.sql")


def run():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("dataset")
    parser.add_argument("table")
    parser.add_argument("output")
    parser.add_argument("--group")
    parser.add_argument("--minimum", type=int)
    parser.add_argument("--owners")
    parser.add_argument("--closed", action="store_true")
    parser.add_argument("--enough", type=int)
    parser.add_argument("--from", type=int, default=0, dest="begun")
    arguments = parser.parse_args()
    truth, rows = truth_of(arguments.data, arguments.dataset), load(arguments.output)
    refused, reasons, unfit = set(), {}, []
    if arguments.table == "hr_by_altitude_5m":
        problems, compared = compare_altitude(truth, rows)
    else:
        if arguments.minimum:
            owners = since(arguments.begun, index(load(arguments.owners), arguments.group))
            refused = {key for key, row in owners.items() if row["population"] < arguments.minimum}
            found = since(arguments.begun, index(rows, arguments.group))
            status = {key for key, row in found.items() if row["status"] != "ok"}
            if refused != status:
                sys.exit(f"compare.py: {len(refused ^ status)} windows refused wrongly or not refused")
        elif arguments.closed:
            found = since(arguments.begun, index(rows, arguments.group))
            refused = {key for key, row in found.items() if row["status"] != "ok"}
            owners = since(arguments.begun, index(load(arguments.owners), arguments.group)) if arguments.enough else {}
            reasons, unfit = closed(found, owners, arguments.enough)
        problems, compared = compare(truth, arguments.table, rows, arguments.group, refused, arguments.begun)
    problems = unfit + problems
    for problem in problems[:20]:
        print(problem, file=sys.stderr)
    shut = f", {len(refused)} windows did not open" if arguments.closed or arguments.minimum else ""
    shut += "".join(f"; {many}: {why}" for why, many in sorted(reasons.items()))
    print(f"{arguments.dataset} {arguments.table}: {compared} compared, {len(problems)} different{shut}")
    sys.exit(1 if problems or not compared else 0)


if __name__ == "__main__":
    main()
