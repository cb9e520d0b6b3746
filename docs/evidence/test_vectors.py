"""The programs against the known answers in vectors/: python3 -m unittest test_vectors."""

import json
import unittest
from fractions import Fraction
from pathlib import Path

from check import EPSILON, RHO, Pack, first, fits, log_of, share_of
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from further import Further, check_noise, skellam
from receipts import TYPES, Reader, WrongError, among, announced, labelled, listed, signed_by, whole

VECTORS = Path(__file__).resolve().parents[2] / "vectors"

# What is said of each refusal in the vectors.
REASONS = {
    "NotVerified": "not a receipt of a verified plan", "Membership": "signature of membership",
    "OtherPlan": "plan of membership", "OtherWindow": "window of membership",
    "Roster": "does not fit the plan", "OwnersInvented": "more owners than the plan",
    "OpeningSet": "signature of opening-set", "NotASubset": "not within the membership",
    "BelowQuorum": "too few controllers", "Population": "population breaks",
    "Signature": "the signature of (token|presence)", "Length": "another length",
    "OtherShare": "window of presence|token of window-opening|root of the membership|a stream is another's|leaves nothing"
                  "|excluded is 0, and signed are",
    "OtherSet": "membership of opening-set", "Shares": "the number of shares", "OtherList": "not a receipt of a verified",
    "CheckWord": "do not add up", "Malformed": "bytes are", "Version": "it is not a receipt"}

# The same of lists.
LISTS = {
    "NotTheService": "signature of epoch/(call|list)", "Entry": "roster is|not in order",
    "EntryKey": "agreement keys of the list", "Certificate": "roster is",
    "Malformed": "terms of the list", "UnsafeMasks": "plan of membership"}


def known(name):
    return json.loads((VECTORS / name).read_text())


def announced_by(case):
    """A case's plan, and the service's key."""
    certificate = whole(bytes.fromhex(case["service"]), "SIGNED")
    signed_by(case["authority"], certificate, "certificate/v2")
    service = whole(certificate["bytes"], "CERTIFICATE")["key"]
    if "announcement" not in case:
        return listed(bytes.fromhex(case["receipt"]), case["authority"], service), service
    return announced(bytes.fromhex(case["announcement"]), case["authority"], service), service


def opened(case, **changed):
    """The numbers of a case's row."""
    plan, service = announced_by(case)
    excluded = sum(len(own["streams"]) for own in case.get("excluded", []))
    row = {"window_start": case["start"] // 1000, "population": case.get("population", 4)}
    row.update({"excluded": excluded, **changed})
    pack = Further(case["authority"], service)
    return pack.signed(row, plan, bytes.fromhex(case["receipt"]))["words"]


def postcard(value, of):
    """Bytes that are read as this value."""
    if of in TYPES:
        return b"".join(postcard(value[name], field) for name, field in TYPES[of].items())
    if of.isdigit():
        return bytes.fromhex(value)
    if of[0] == "?":
        return b"\0" if value is None else b"\1" + postcard(value, of[1:])
    if of[0] == "*":
        return postcard(len(value), "u") + b"".join(postcard(one, of[1:]) for one in value)
    if of in ("bytes", "text"):
        value = value.encode() if of == "text" else value
        return postcard(len(value), "u") + value
    if value < 128 or of == "byte":
        return bytes([value])
    return bytes([value % 128 + 128]) + postcard(value // 128, of)


class Vectors(unittest.TestCase):
    def test_receipts_open_to_their_rows(self):
        for case in known("receipts/v2/receipts.json"):
            self.assertEqual([f"{word:016x}" for word in opened(case)], case["row"])
            with self.assertRaisesRegex(WrongError, "^population is"):
                opened(case, population=case["population"] + 1)
            if case["excluded"]:
                with self.assertRaisesRegex(WrongError, "^excluded is"):
                    opened(case, excluded=0)

    def test_receipts_with_lists_open_to_their_rows_and_others_are_refused(self):
        for case in known("receipts/v3/receipts.json"):
            self.assertEqual([f"{word:016x}" for word in opened(case)], case["row"])
        for case in known("receipts/v3/receipts_bad_content.json"):
            with self.assertRaisesRegex(WrongError, LISTS.get(case["error"]) or REASONS[case["error"]]):
                opened(case)

    def test_a_receipt_with_a_list_is_of_no_announced_plan(self):
        case, plain = known("receipts/v3/receipts.json")[0], known("receipts/v2/receipts.json")[0]
        with self.assertRaisesRegex(WrongError, "it is not a receipt"):
            opened({**plain, "receipt": case["receipt"]})
        with self.assertRaisesRegex(WrongError, "the receipt has no list"):
            opened({**case, "receipt": plain["receipt"]})

    def test_a_sealed_row_has_the_sums_that_were_signed(self):
        case = known("receipts/v2/receipts.json")[0]
        plan, service = announced_by(case)
        plan, pack = {**plan, "sealed": True, "to": "00" * 32}, Further(case["authority"], service)
        row = {"window_start": case["start"] // 1000, "population": case["population"]}
        receipt, row["excluded"] = bytes.fromhex(case["receipt"]), 0
        for wrong in (0, 1):
            signed = pack.signed(row, plan, receipt)
            signed["words"][0] ^= wrong
            row["sealed"] = {"sum": postcard(signed, "SEALED").hex()}
            if not wrong:
                pack.receipt(row, plan, receipt)
        with self.assertRaisesRegex(WrongError, "^sealed is"):
            pack.receipt(row, plan, receipt)

    def test_a_window_of_a_group_has_a_signed_row_of_one_plan(self):
        class Signed(Pack):
            """A pack whose receipts hold."""

            def exhibit(self, digest):
                return digest

            def receipt(self, *args):
                pass

        row = {"window_start": 10, "window_end": 20, "population": 2, "status": "ok",
               "integrity": "verified", "region": "North"}
        plan = {"query": "Sums", "columns": [], "epochs": False, "integrity": "verified",
                "window_us": 10_000, "group": [["region", "North"]], "noise": None,
                "population": [1, 9], "sealed": False, "signed": None}
        pack = Signed("00", "00")
        pack.head, south = {"from": 0, "until": 99}, {"region": "South"}
        pack.plans = {"a": plan, "b": plan, "c": {**plan, "group": [["region", "South"]]}}

        def say(plan, **changed):
            pack.line_release({"row": {**row, **changed, "plan": plan}, "plan": plan,
                               "receipt": "00"})
        say("a")
        say("c", **south)
        say("b", window_start=20, window_end=30)
        with self.assertRaisesRegex(WrongError, "two plans have a signed row of the window"):
            say("b")

    def test_a_share_too_many_is_refused(self):
        case = known("receipts/v2/receipts.json")[0]
        receipt = whole(bytes.fromhex(case["receipt"]), "RECEIPT")
        receipt["shares"].append(receipt["shares"][0])
        with self.assertRaisesRegex(WrongError, "^the number of shares is 5"):
            opened({**case, "receipt": postcard(receipt, "RECEIPT").hex()})

    def test_another_form_of_the_same_content_is_refused(self):
        for of, data, why in [
            ("?u", "0205", "an option is neither there nor not"),
            ("?u", "810005", "an option is neither there nor not"),
            ("u", "8500", "bytes are more than a number needs"),
            ("u", "80808080808080808002", "a number has more than 64 bits"),
            ("u", "ff" * 9 + "02", "a number has more than 64 bits"),
        ]:
            with self.assertRaisesRegex(WrongError, why):
                whole(bytes.fromhex(data), of)
        self.assertEqual(whole(bytes.fromhex("ff" * 9 + "01"), "u"), 2**64 - 1)
        # A bit of no controller, a byte too many, and one too few.
        self.assertEqual(among({"roster": 9, "bytes": b"\1\1"}), [0, 8])
        for bits in (b"\1\3", b"\1\1\0", b"\1"):
            with self.assertRaisesRegex(WrongError, "bits are of no controller"):
                among({"roster": 9, "bytes": bits})

    def test_a_presence_in_another_place_is_refused(self):
        case = next(own for own in known("receipts/v2/receipts.json") if own["excluded"])
        receipt = whole(bytes.fromhex(case["receipt"]), "RECEIPT")
        receipt["exclusions"][0]["size"] += 1
        with self.assertRaisesRegex(WrongError, "^a presence's place is"):
            opened({**case, "receipt": postcard(receipt, "RECEIPT").hex()})

    def test_plans_of_members_that_nobody_certified_are_refused(self):
        case, key = known("receipts/v2/receipts.json")[0], Ed25519PrivateKey.generate()
        public = key.public_key().public_bytes_raw().hex()
        signed = whole(bytes.fromhex(case["announcement"]), "SIGNED")
        reader = Reader(signed["bytes"])
        roster, plan = reader.value("PLAN")["terms"]["roster"], signed["bytes"][:reader.tell()]
        certificates = [whole(one["bytes"], "CERTIFICATE") for one in reader.value("*SIGNED")]

        def sign(body, label):
            signature = key.sign(labelled(f"alpheus/{label}", body)).hex()
            return {"bytes": body, "signature": signature}

        def announce(certificates, by=public, order=sorted, plan=plan):
            own = [sign(postcard(one, "CERTIFICATE"), "certificate/v2") for one in certificates]
            own = order(own, key=lambda one: labelled("alpheus/certificate/v2", one["bytes"]))
            ids = b"".join(labelled("alpheus/certificate/v2", one["bytes"]) for one in own)
            body = plan.replace(bytes.fromhex("".join(roster[:len(own)])), ids)
            body += postcard(own, "*SIGNED") + b"\0"
            return announced(postcard(sign(body, "announcement/v5"), "SIGNED"), public, by)
        self.assertEqual(announce(certificates)["controllers"], 4)
        with self.assertRaisesRegex(WrongError, "of announcement/v5 does not hold"):
            announce(certificates, case["authority"])
        with self.assertRaisesRegex(WrongError, "^roster is"):
            announce(certificates[:3])
        with self.assertRaisesRegex(WrongError, "a member is not a controller"):
            announce([*certificates[:3], {**certificates[3], "role": 2}])
        # One controller could sign as several.
        for twice in ([certificates[0]] * 4, [*certificates[:3], certificates[2]]):
            with self.assertRaisesRegex(WrongError, "a controller is in the roster twice"):
                announce(twice)
        with self.assertRaisesRegex(WrongError, "a controller is in the roster twice"):
            announce([*certificates[:3], {**certificates[3], "key": certificates[0]["key"]}])
        members = Reader(plan).value("PLAN")["terms"]["streams"]
        first, other = (next(own["owner"] for own in members if own["controller"] == at) for at in (0, 1))
        twice = plan.replace(bytes.fromhex(other), bytes.fromhex(first))
        with self.assertRaisesRegex(WrongError, "an owner is at two controllers"):
            announce(certificates, plan=twice)
        with self.assertRaisesRegex(WrongError, "the roster is not in order"):
            announce(certificates, order=lambda own, key: sorted(own, key=key)[::-1])

    def test_receipts_that_break_a_rule_are_refused(self):
        for name in ["receipts_bad_content", "receipts_bad_form"]:
            for case in known(f"receipts/v2/{name}.json"):
                first = known("receipts/v2/receipts.json")[0]
                with self.assertRaisesRegex(WrongError, REASONS[case["error"]]):
                    opened({**first, **case})

    def test_losses_and_noise_are_the_known_ones(self):
        for case in known("budget/v1/conversions.json"):
            log, epsilon = log_of(int(case["atto_delta"])), Fraction(case["micro_epsilon"], 10**6)
            self.assertEqual(int(log * RHO), int(case["ln"]))
            most = int(case["most_rho"])
            self.assertTrue(fits(Fraction(most, RHO), epsilon, log))
            self.assertFalse(fits(Fraction(most + 1, RHO), epsilon, log))
            least = first(1 << 127, lambda e: fits(Fraction(most, RHO), Fraction(e, EPSILON), log))
            self.assertEqual(least, int(case["least_epsilon"]))
        for case in known("budget/v1/noise.json"):
            if case["mechanism"] == "Skellam":
                events, charge = int(case["events"]), int(case["charge"])
                for (rows, l1, l2), noise in zip(case["groups"], case["noise"]):
                    drawn = skellam(charge, int(l1) * events, int(l2) * events**2, rows)
                    drawn = {name: str(value) for name, value in drawn.items()}
                    self.assertEqual(drawn, noise["Skellam"])

    def test_noise_that_does_not_follow_is_named(self):
        number = {"Number": {"scale": 0, "min": 0, "max": 1000}}
        reading = {"name": "reading", "kind": number, "optional": False}
        drawn = {"Laplace": {"above": 1, "below": 12000}}
        asked = {"mechanism": "Laplace", "micro_epsilon": 500_000, "atto_delta": 0, "events": 3,
                 "unit": "PersonPerWindow", "streams_per_owner": 2, "noise": [drawn, "None"]}
        group = {"rows": [0], "statistic": {"Sum": 0}, "attributes": [0], "l1": "1000",
                 "l2_squared": "1000000", "noise": drawn}
        noise = {"asked": asked, "groups": [group]}
        self.assertEqual(share_of(noise), ("epsilon", EPSILON // 2))
        check_noise(noise, [reading])
        for name, wrong in [("attributes", [1]), ("l1", "999"), ("rows", [1]), ("noise", "None")]:
            with self.assertRaisesRegex(WrongError, f"{name} (of rows )?(is|and)"):
                check_noise({"asked": asked, "groups": [{**group, name: wrong}]}, [reading])
        less = {"Laplace": {"above": 1, "below": 11999}}
        noise = {"asked": {**asked, "noise": [less, "None"]}, "groups": [{**group, "noise": less}]}
        with self.assertRaisesRegex(WrongError, "^noise is"):
            check_noise(noise, [reading])


if __name__ == "__main__":
    unittest.main()
