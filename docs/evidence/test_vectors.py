"""receipts.py and check.py against the known answers in vectors/: python3 -m unittest test_vectors."""

import json
import unittest
from fractions import Fraction
from pathlib import Path

from check import EPSILON, RHO, check_noise, fits, greatest, ln, skellam
from receipts import WrongError, announced, check_receipt, signed_by, whole

VECTORS = Path(__file__).resolve().parents[2] / "vectors"

# What is said of each refusal in the vectors.
REASONS = {
    "NotVerified": "no receipt of a verified plan", "Membership": "signature of membership", "OtherPlan": "plan of membership",
    "OtherWindow": "window of membership", "Roster": "does not fit the plan", "OwnersInvented": "more owners than the plan",
    "OpeningSet": "signature of opening-set", "NotASubset": "not within the membership", "BelowQuorum": "too few controllers",
    "Population": "population breaks", "Signature": "the signature of (token|presence)", "Length": "another length",
    "OtherShare": "token of window-opening|root of the membership|a stream is another's", "CheckWord": "do not add up",
    "Malformed": "bytes are", "Version": "it is no receipt"}


def known(name):
    return json.loads((VECTORS / name).read_text())


def opened(case):
    """The words of a case's receipt."""
    certificate = whole(bytes.fromhex(case["service"]), "SIGNED")
    signed_by(case["authority"], certificate, "certificate/v1")
    service = whole(certificate["bytes"], "CERTIFICATE")["key"]
    plan = announced(bytes.fromhex(case["announcement"]), case["authority"], service)
    excluded = sum(len(own["streams"]) for own in case.get("excluded", []))
    row = {"window_start": case["start"] // 1000, "population": case.get("population", 4), "excluded": excluded}
    return check_receipt(bytes.fromhex(case["receipt"]), plan, service, row), row, plan, service


class Vectors(unittest.TestCase):
    def test_receipts_open_to_their_rows(self):
        for case in known("receipts/v2/receipts.json"):
            signed, row, plan, service = opened(case)
            self.assertEqual([f"{word:016x}" for word in signed["words"]], case["row"])
            for name, value in [("population", row["population"] + 1), ("excluded", row["excluded"] - 1)]:
                if name == "population" or case["excluded"]:
                    with self.assertRaises(WrongError):
                        check_receipt(bytes.fromhex(case["receipt"]), plan, service, {**row, name: value})

    def test_receipts_that_break_a_rule_are_refused(self):
        for name in ["receipts_bad_content", "receipts_bad_form"]:
            for case in known(f"receipts/v2/{name}.json"):
                first = known("receipts/v2/receipts.json")[0]
                with self.assertRaisesRegex(WrongError, REASONS[case["error"]]):
                    opened({**first, **case})

    def test_losses_and_noise_are_the_known_ones(self):
        for case in known("budget/v1/conversions.json"):
            log, epsilon = ln(int(case["atto_delta"])), Fraction(case["micro_epsilon"], 10**6)
            self.assertEqual(int(log * RHO), int(case["ln"]))
            most = int(case["most_rho"])
            self.assertTrue(fits(Fraction(most, RHO), epsilon, log))
            self.assertFalse(fits(Fraction(most + 1, RHO), epsilon, log))
            least = greatest(1 << 127, lambda e: not fits(Fraction(most, RHO), Fraction(e, EPSILON), log)) + 1
            self.assertEqual(least, int(case["least_epsilon"]))
        for case in known("budget/v1/noise.json"):
            if case["mechanism"] == "Skellam":
                for (rows, l1, l2), noise in zip(case["groups"], case["noise"]):
                    events = int(case["events"])
                    drawn = skellam(int(case["charge"]), int(l1) * events, int(l2) * events**2, rows)
                    self.assertEqual({name: str(value) for name, value in drawn.items()}, noise["Skellam"])

    def test_a_wrong_charge_is_named(self):
        reading = {"name": "reading", "kind": {"Number": {"scale": 0, "min": 0, "max": 1000}}, "optional": False}
        asked = {"mechanism": "Laplace", "micro_epsilon": 500_000, "atto_delta": 0, "unit": "PersonPerWindow", "events": 3,
                 "streams_per_owner": 2, "noise": [{"Laplace": {"above": 1, "below": 12000}}, "None"]}
        group = {"rows": [0], "statistic": {"Sum": 0}, "l1": "1000", "l2_squared": "1000000", "noise": asked["noise"][0]}
        noise = {"asked": asked, "groups": [group], "charges": [{"attribute": 0, "epsilon": str(EPSILON // 2)}]}
        check_noise(noise, [reading])
        noise["charges"][0]["epsilon"] = str(EPSILON // 2 + 1)
        with self.assertRaisesRegex(WrongError, "^charges is"):
            check_noise(noise, [reading])


if __name__ == "__main__":
    unittest.main()
