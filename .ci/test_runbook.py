"""Holds docs/operating.md to the alerts of deploy/: each has an entry, and no entry is of an alert that is gone."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cells(line):
    """The cells of a table's row. A bar in a code span is written `\\|`."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def entries(page):
    """Names of alerts that a page's tables explain, each with its row: a cell says `alert NAME`, or it is the first one below `| alert |`."""
    found, of_alerts = [], False
    for line in page.splitlines():
        row = cells(line) if line.startswith("|") else []
        of_alerts = bool(row) and (of_alerts or row[0] == "alert")
        names = re.findall(r"\balert ([A-Z]\w+)", " ".join(row[1:]))
        if of_alerts and row[0] != "alert" and not row[0].startswith("-"):
            names += row[0].split(", ")
        found += [(name, row) for name in names]
    return found


def alerts(rules):
    return re.findall(r"^ *- alert: Alpheus(\w+)$", rules, re.M)


class Runbook(unittest.TestCase):
    def setUp(self):
        self.alerts = alerts((ROOT / "deploy/prometheus/alerts.yaml").read_text())
        self.entries = entries((ROOT / "docs/operating.md").read_text())

    def test_each_alert_has_an_entry(self):
        self.assertGreater(len(self.alerts), 20)
        self.assertEqual(sorted(set(self.alerts) - {name for name, _ in self.entries}), [])

    def test_each_entry_is_of_an_alert(self):
        self.assertEqual(sorted({name for name, _ in self.entries} - set(self.alerts)), [])

    def test_each_entry_says_the_cause_and_what_to_do(self):
        for name, row in self.entries:
            self.assertTrue(all(row) and len(row) >= 3, f"{name}: {row}")

    def test_entries_are_read_as_written(self):
        page = "| alert | cause | do |\n| --- | --- | --- |\n| Up, Down | it | `a \\| b` |\n\n| doctor | see |\n| `x` | 503; alert Full |\n"
        self.assertEqual([name for name, _ in entries(page)], ["Up", "Down", "Full"])
        self.assertEqual(entries(page)[0][1], ["Up, Down", "it", "`a \\| b`"])


if __name__ == "__main__":
    unittest.main()
