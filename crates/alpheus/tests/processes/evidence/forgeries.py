"""Packs that a lying service could sign: PACK=... DEPLOYMENT=... python3 -m unittest forgeries.

Each changes lines of a pack that holds, as if the service had signed them so. check.py must say
why the pack does not hold, without the help of the signature.
"""

import copy
import json
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[5] / "docs" / "evidence"))
import check  # noqa: E402

PACK = [json.loads(line) for line in Path(os.environ["PACK"]).read_text().splitlines()]
TRUSTED = json.loads(Path(os.environ["DEPLOYMENT"]).read_text())
EXHIBITS = ("announcement", "receipt")


def text(line):
    return line if isinstance(line, str) else json.dumps(line, separators=(",", ":"))


def data(lines):
    return "".join(text(line) + "\n" for line in lines).encode()


def said(lines):
    """What the program says, but of the signature: the service could sign any lines."""
    wrong, _ = check.check(data(lines), TRUSTED)
    return [one for one in wrong if not one.startswith("the signature:")]


class Forgeries(unittest.TestCase):
    def setUp(self):
        self.lines = copy.deepcopy(PACK)

    def of(self, kind, **fields):
        """The first line of a kind with these fields."""
        return next(line for line in self.lines if line["kind"] == kind and all(
            line[name] == value for name, value in fields.items()))

    def release(self, opened, holds=lambda line: True):
        """A row of a window that opened or not, which has this."""
        rows = [line for line in self.lines if line["kind"] == "release" and holds(line)]
        return next(line for line in rows if (line["row"]["status"] == "ok") == opened)

    def refused(self, reason):
        wrong = said(self.lines)
        self.assertTrue(any(reason in one for one in wrong), wrong)

    def after(self, line, *more):
        at = next(at for at, own in enumerate(self.lines) if own is line)
        self.lines[at + 1:at + 1] = more

    def test_the_pack_itself_holds(self):
        self.assertEqual(said(self.lines), [])

    def test_a_verified_row_has_no_receipt_and_other_numbers(self):
        row = self.release(True, lambda line: line["receipt"])
        row["row"]["sum_reading"], row["receipt"] = "999999", None
        self.refused("a row that controllers signed has no receipt")

    def test_a_verified_row_whose_receipt_is_no_more_kept_is_named(self):
        """Its numbers are the service's word, which is said loudly."""
        row, head = self.release(True, lambda line: line["receipt"]), self.of("head")
        row["receipt"], head["made"] = None, row["row"]["window_end"] + 31 * check.DAY
        wrong, notes = check.check(data(self.lines), TRUSTED)
        self.assertFalse(any("has no receipt" in one for one in wrong), wrong)
        self.assertTrue(any("ROWS THAT NOBODY CAN CHECK" in one for one in notes), notes)
        wrong, _ = check.check(data(self.lines), TRUSTED, days=32)
        self.assertTrue(any("has no receipt" in one for one in wrong), wrong)

    def test_a_number_is_added_to_any_kind_of_line(self):
        for at, line in enumerate(PACK):
            self.setUp()
            if line["kind"] != "signature":
                self.lines[at]["persons"] = 0
                self.refused("has other names")
        for within in ("noise", "columns", "alpha"):
            self.setUp()
            plan = self.of("plan", running=False)
            part = plan[within][0] if within == "columns" else plan[within]
            part["persons"] = 0
            self.refused(f"{within} of plan has other names")
        # Columns by buckets have edges, and others none.
        self.setUp()
        self.of("query")["columns"][0]["edges"] = ["0", "1"]
        self.assertFalse(any("other names" in one for one in said(self.lines)))
        self.setUp()
        self.of("plan", running=False)["noise"]["groups"][0]["persons"] = 0
        self.refused("groups of noise of plan has other names")

    def test_a_name_is_lacking_in_any_kind_of_line(self):
        for kind, name in (("head", "made"), ("policy", "to"), ("plan", "dropout")):
            self.setUp()
            del self.of(kind)[name]
            self.refused(f"{kind} has other names")

    def test_the_signature_states_another_number_of_lines(self):
        self.of("signature")["lines"] += 1
        wrong, _ = check.check(data(self.lines), TRUSTED)
        self.assertIn("the signature: the number of lines is", wrong[0])

    def test_a_certificate_of_another_role(self):
        real = check.whole

        def whole(data, of):
            value = real(data, of)
            return {**value, "role": 1} if of == "CERTIFICATE" else value
        check.whole = whole
        try:
            with self.assertRaisesRegex(check.WrongError, "the certificate is of no service"):
                check.check(data(self.lines), TRUSTED)
        finally:
            check.whole = real

    def test_a_verified_row_has_the_form_of_a_sealed_one(self):
        row = self.release(True, lambda line: line["receipt"])["row"]
        names = [own["name"] for own in self.of("plan", integrity="verified")["columns"]]
        row.update({name: None for name in names}, sealed={"sum": ""})
        self.refused("a row is sealed if its plan says for whom")

    def test_a_row_that_did_not_open_has_numbers(self):
        row = self.release(True, lambda line: line["cost"])
        row["row"]["status"], row["cost"] = "population", []
        self.refused("a row that did not open has numbers")

    def test_a_row_opened_by_a_status_that_only_begins_so(self):
        row = self.release(True, lambda line: line["cost"])
        row["row"]["status"], row["cost"] = "okay", []
        self.refused("a row that did not open has numbers")

    def test_a_row_is_stated_twice(self):
        row = self.release(True)
        self.after(row, copy.deepcopy(row))
        self.refused("the row is there twice")

    def test_a_plan_is_stated_twice(self):
        plan = self.of("plan")
        self.after(plan, copy.deepcopy(plan))
        self.refused("the plan has another line")

    def test_a_plan_of_another_consumer(self):
        self.of("plan")["consumer"] = "somebody"
        self.refused("consumer of plan is somebody")

    def test_plans_of_another_consumer_wherever_it_stands(self):
        for line in self.lines:
            if line.get("consumer") == "analyst":
                line["consumer"] = "somebody"
        self.refused("consumer of head is somebody, and follows as analyst")

    def test_lines_that_every_pack_has_are_lacking(self):
        for kind in ("withdrawals", "revocations", "schema"):
            self.setUp()
            self.lines.remove(self.of(kind))
            self.refused(f"the line {kind} is lacking, or there twice")

    def test_lines_that_every_pack_has_once_are_there_twice(self):
        for kind in ("withdrawals", "revocations", "schema"):
            self.setUp()
            self.after(self.of(kind), self.of(kind))
            self.refused(f"the line {kind} is lacking, or there twice")

    def test_a_second_head_moves_the_time(self):
        head = self.of("head")
        self.after(head, {**head, "until": head["from"] + 1})
        self.refused("there is not one head, as the first line")

    def test_a_line_stands_before_the_head(self):
        self.lines.insert(0, self.of("withdrawals"))
        self.refused("there is not one head, as the first line")

    def test_a_name_stands_twice_in_a_line(self):
        row = self.release(True)
        at = self.lines.index(row)
        for name in ('"population":9,', '"popul\\u0061tion":9,'):
            self.lines[at] = text(row).replace('"row":{', '"row":{' + name)
            self.refused("a name stands twice")

    def test_numbers_that_json_does_not_have(self):
        row = self.release(True)
        at = self.lines.index(row)
        for name in ("NaN", "Infinity", "-Infinity"):
            self.lines[at] = text(row).replace('"row":{', '"row":{"other":' + name + ",")
            self.refused(f"{name} is not a number of JSON")

    def test_the_plan_of_signed_rows_is_withheld(self):
        plan = self.of("plan", integrity="verified")
        self.lines = [line for line in self.lines if line is not plan and line["kind"] != "receipt"]
        for row in [line for line in self.lines if line.get("plan") == plan["id"]]:
            row.update(cost=None, receipt=None)
        self.refused("the plan of a row that controllers signed is lacking")

    def test_the_plans_of_a_running_query_are_withheld(self):
        plan = self.of("plan", running=True)
        digest = "alpheus/evidence/exhibit/v1"
        own = [line for line in self.lines if line.get("bytes") and plan["announcement"]
               == check.labelled(digest, bytes.fromhex(line["bytes"])).hex()]
        own += [line for line in self.lines if line.get("plan") == plan["id"]]
        self.lines = [line for line in self.lines if line not in [plan, *own]]
        self.refused(f"groups, streams and plans of {plan['query']} is")

    def test_the_cost_of_a_row_is_withheld(self):
        self.release(True, lambda line: line["cost"])["cost"] = []
        self.refused("cost of release is []")

    def test_what_was_spent_is_withheld(self):
        self.lines.remove(self.of("spent"))
        self.refused("budgets without a line of what was spent")

    def test_what_was_spent_has_a_budget_that_nobody_chose(self):
        self.of("spent")["budget"]["atto_delta"] += 1
        self.refused("no policy has this budget")

    def test_policies_of_streams_are_withheld(self):
        self.lines.remove(self.of("policy"))
        self.refused("policies of streams are lacking")

    def test_more_owners_than_streams(self):
        policy = self.of("policy")
        policy["owners"] = policy["streams"] + 1
        self.refused("owners and streams do not fit each other")

    def test_an_exhibit_that_no_line_names(self):
        self.lines.append({"kind": "receipt", "bytes": "00"})
        self.refused("plans and receipts that no line names")

    def test_an_exhibit_is_withheld(self):
        self.lines.remove(self.of("announcement"))
        self.refused("the pack has nothing with the digest")

    def test_a_window_of_another_time(self):
        head = self.of("head")
        head["from"] = head["until"] = 0
        self.refused("the window is of another time")

    def test_a_plan_of_another_group(self):
        self.of("plan")["group"] = [["place", "here"]]
        self.refused("group of plan is")

    def test_a_plan_by_epochs_that_was_announced_is_not_compared(self):
        plan = self.of("plan")
        plan["announcement"] = None
        self.refused("epochs of plan is False")

    def test_numbers_of_rows_that_controllers_signed(self):
        row = self.release(True, lambda line: line["receipt"])["row"]
        for name, other in [("sum_reading", "13"), ("count_reading", 7), ("population", 2)]:
            self.setUp()
            self.release(True, lambda line: line["receipt"])["row"][name] = other
            self.refused(f"{name} is {other}, and follows as {row[name]}")

    def test_a_row_of_another_plan_or_of_a_longer_window(self):
        for name, other in [("plan", "00"), ("window_end", 0)]:
            self.setUp()
            self.release(True, lambda line: line["receipt"])["row"][name] = other
            self.refused(f"{name} is {other}, and follows as")

    def test_a_signed_row_of_an_earlier_time_and_as_one_of_many(self):
        """Its start is rounded up to the window's, so times before prove by the same receipt."""
        row = self.release(True, lambda line: line["receipt"])
        start, end = row["row"]["window_start"], row["row"]["window_end"]
        row["row"].update(window_start=start - 1, window_end=end - 1)
        self.refused(f"window_start is {start - 1}, and follows as {start}")
        self.setUp()
        row, other = (self.release(True, lambda line: line["receipt"]) for _ in range(2))
        other = copy.deepcopy(row)
        other["row"].update(window_start=start - 7, window_end=end - 7)
        self.after(row, other)
        wrong = said(self.lines)
        self.assertEqual(len(wrong), 1, wrong)
        self.refused(f"window_start is {start - 7}, and follows as {start}")

    def test_names_that_a_row_or_a_line_does_not_have(self):
        rows = [lambda line: line["receipt"], lambda line: line["cost"]]
        for holds in rows:
            for name, other in [("avg_income", 42), ("sealed", {"sum": ""}), ("windows", 1)]:
                self.setUp()
                self.release(True, holds)["row"][name] = other
                self.refused("a row is sealed" if name == "sealed" else f"['{name}'] is not a column")
        self.setUp()
        self.release(True, rows[0])["row"]["noise"] = {"avg_income": 42}
        self.refused("['avg_income', 'noise'] is not a column")
        self.setUp()
        self.release(True, rows[1])["row"]["noise"]["avg_income"] = 42
        self.refused("['avg_income'] is not a column")
        self.setUp()
        self.release(True, rows[1])["avg_income"] = 42
        self.refused("release has other names")

    def test_a_row_that_did_not_open_has_another_column(self):
        row = self.release(True, lambda line: line["cost"])
        names = [own["name"] for own in self.of("plan", id=row["plan"])["columns"]]
        row["row"].update({name: None for name in names}, status="population", avg_income=42)
        row["cost"] = []
        self.refused("['avg_income'] is not a column")

    def test_a_row_that_says_verified_of_a_plan_that_is_not(self):
        self.release(True, lambda line: line["cost"])["row"]["integrity"] = "verified"
        self.refused("integrity is verified, and follows as None")

    def test_a_row_of_a_verified_plan_that_does_not_say_so(self):
        del self.release(True, lambda line: line["receipt"])["row"]["integrity"]
        self.refused("integrity is None, and follows as verified")

    def test_numbers_of_another_type(self):
        """1 is neither true nor 1.0, whatever Python says of them."""
        for name in ("count_reading", "population", "window_end"):
            self.setUp()
            row = self.release(True, lambda line: line["receipt"])["row"]
            row[name] = other = float(row[name])
            self.refused(f"{name} is {other}, and follows as {int(other)}")
        self.setUp()
        self.of("head")["format"] = True
        self.refused("format of head is True, and follows as 1")

    def test_numbers_beyond_all_bounds(self):
        row = self.release(True)
        at = self.lines.index(row)
        self.lines[at] = text(row).replace('"row":{', '"row":{"other":1e400,')
        self.refused("1e400 is not a number of JSON")
        self.setUp()
        for line in self.lines:
            if line["kind"] in ("policy", "spent") and line["budget"]:
                line["budget"]["window_micro_epsilon"] = 10**18
        stated = next(int(line["slack"]) for line in self.lines if line["kind"] == "spent")
        self.refused(f"slack of spent is {stated}, and follows as {2**128 - 1}")

    def test_a_row_of_another_group(self):
        row = copy.deepcopy(self.release(True, lambda line: not line["receipt"]))
        plan = self.of("plan", id=row["plan"])
        for name in ("noise", "mostly_noise"):
            del row["row"][name]
        own = {**plan, "id": "00", "announcement": None, "epochs": True, "noise": None,
               "running": False, "group": [["place", "here"]]}
        rows = [{**row, "query": plan["query"], "plan": "00", "cost": [],
                 "row": {**row["row"], "window_start": row["row"]["window_start"] + at,
                         "window_end": row["row"]["window_end"] + at, "place": place}}
                for at, place in enumerate(("here", "there"))]
        self.after(plan, own)
        self.after(self.release(True), *rows)
        wrong = said(self.lines)
        self.assertEqual(len(wrong), 1, wrong)
        self.refused("group is [['place', 'there']], and follows as [['place', 'here']]")

    def test_a_row_of_fewer_owners_than_the_plan_demands(self):
        self.release(True, lambda line: line["cost"])["row"]["population"] = 10**9
        self.refused("population breaks the plan")

    def test_charges_that_are_less_than_epsilon_wherever_they_stand(self):
        """Each line fits the others, so only what was asked shows it."""
        charged = self.release(True, lambda line: line["cost"])
        plan = self.of("plan", id=charged["plan"])
        for own in (*plan["noise"]["charges"], *charged["cost"]):
            own.update({unit: "1" for unit in own if unit != "attribute"})
        self.refused("charges is")

    def uncharged(self, **changed):
        """A plan whose groups of rows are changed, with charges, costs and sums that follow."""
        plan = self.of("plan", integrity="plain", running=True)
        of = plan["noise"]["charges"][0]["attribute"]
        for group in plan["noise"]["groups"]:
            group.update(changed)
        charged = [{**own, "attribute": at} for own in plan["noise"]["charges"]
                   for at in changed["attributes"]]
        plan["noise"]["charges"] = charged
        for line in self.lines:
            if line.get("plan") == plan["id"]:
                line["cost"] = charged
        spent = self.of("spent", attribute=of)
        nothing = {name: "0" for name in ("epsilon", "rho_of_pure", "rho", "slack")}
        spent.update(nothing, releases=0, epsilon_at_delta="0")
        return plan

    def test_attributes_that_are_not_charged(self):
        """All that the service states fits, and says that nothing was spent."""
        plan = self.uncharged(attributes=[])
        wrong = [one for one in said(self.lines) if one.startswith("line")]
        self.assertEqual(len(wrong), 1, wrong)
        self.refused("attributes is [], and follows as [1]")
        self.setUp()
        self.uncharged(attributes=[], statistic="EventCount")
        self.refused("a group is charged to no attribute")
        for other, statistic in [(0, {"Sum": 0}), (2, {"Count": 2})]:
            self.setUp()
            self.uncharged(attributes=[other], statistic=statistic)
            self.refused(f"[{other}] is charged, and the plan is of [1]")
        self.assertEqual(plan["query"], "Alarms")

    def test_an_attribute_without_noise_that_some_owners_lack(self):
        """Its count alone would need noise."""
        plan = self.uncharged(attributes=[])
        plan["noise"]["groups"] = []
        for at, own in enumerate(plan["noise"]["asked"]["noise"]):
            plan["noise"]["asked"]["noise"][at] = "None"
        self.refused("attribute 1 is charged nothing")

    def test_a_charge_that_is_shared_with_rows_without_noise(self):
        for rows, reason in ([[], "a group has no rows"], [[9], "rows is [0, 1, 9]"]):
            self.setUp()
            plan = self.of("plan", id=self.release(True, lambda line: line["cost"])["plan"])
            group = {**plan["noise"]["groups"][0], "rows": rows, "attributes": [0]}
            plan["noise"]["groups"].append(group)
            self.refused(reason)

    def test_a_plan_that_asked_for_other_noise_than_was_announced(self):
        self.of("plan", running=False)["noise"]["asked"]["events"] += 1
        self.refused("noise is")

    def test_what_samplers_omit(self):
        self.of("plan", running=False)["noise"]["slack_bits"] += 1
        self.refused("slack_bits is")

    def test_another_schema_or_other_columns_than_were_announced(self):
        self.of("schema")["id"] = "00"
        self.refused("schema is")
        self.setUp()
        self.of("plan")["columns"][0]["name"] = "other"
        self.refused("columns is")

    def test_lines_that_the_service_has_not_signed(self):
        for name, reason in [("lines", "the number of lines is"), ("signed", "of evidence/v1 does not")]:
            self.setUp()
            line = self.of("signature")
            # The last byte of a signature is 0 in one of sixteen.
            other = "01" if str(line[name]).endswith("00") else "00"
            line[name] = line[name] + 1 if name == "lines" else line[name][:-2] + other
            wrong, _ = check.check(data(self.lines), TRUSTED)
            self.assertEqual(len(wrong), 1, wrong)
            self.assertIn(reason, wrong[0])

    def test_a_service_that_the_authority_has_not_certified(self):
        with self.assertRaisesRegex(check.WrongError, "certificate/v2 does not hold"):
            check.check(b"", {**TRUSTED, "authority": self.of("head")["service"]})

    def test_another_format_or_deployment(self):
        for name, other in (("format", 2), ("authority", "00"), ("service", "00")):
            self.setUp()
            self.of("head")[name] = other
            self.refused(f"{name} of head is")


if __name__ == "__main__":
    unittest.main()
