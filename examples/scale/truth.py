"""The expected results of a recording, computed only from the plaintext that the application sent. Shares no code with Alpheus."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

Window = dict[str, list[Fraction]]


def windows(taken: Path, length: int) -> dict[int, Window]:
    """The values of each attribute by window, from lines `milliseconds,attribute,value`."""
    found: dict[int, Window] = defaultdict(lambda: defaultdict(list))
    with taken.open(newline="") as file:
        for time, name, cell in csv.reader(file):
            found[int(time) // length * length][name].append(Fraction(cell))
    return found


def statistic(function: str, values: list[Fraction]) -> float:
    """Exact, rounded once; roots by the library."""
    count, total = len(values), sum(values)
    if function == "count":
        return count
    if function == "avg":
        return float(total / count)
    variance = sum(value * value for value in values) / count - (total / count) ** 2
    return math.sqrt(variance) if function == "stddev" else float(variance)


def differences(row: dict[str, object], window: Window) -> list[str]:
    """Names of a result row's wrong columns; `count_heart_rate` is a function of an attribute."""
    wrong = []
    for column, found in row.items():
        function, _, attribute = column.partition("_")
        if function in ("count", "avg", "var", "stddev"):
            wanted = statistic(function, window.get(attribute, []))
            if not isinstance(found, (int, float)) or not math.isclose(found, wanted, rel_tol=1e-12):
                wrong.append(column)
    return wrong
