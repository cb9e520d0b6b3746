"""Checks a pack of `alpheus evidence`: python3 check.py PACK DEPLOYMENT.

DEPLOYMENT is deployment.json of an identity folder: it says whose signatures count. Written from
policy/docs/budget.md and docs/wire-formats.md, with no code of Alpheus. It prints what is wrong, and
then the exit code is 1; else what holds, what is only stated, and what it does not compute.
"""

import json
import sys
from collections import Counter
from decimal import ROUND_CEILING, Decimal, getcontext
from fractions import Fraction
from math import ceil

from receipts import WrongError, announced, cell, check_receipt, column, labelled, need, same, signed_by, whole

getcontext().prec = 120
EPSILON, RHO, WIDEST = 10**18, 10**24, 1 << 21
OPENED = ("ok", "ok: less exact than asked")


def ln(atto): return Fraction(int(((Decimal(EPSILON) / atto).ln() * RHO).to_integral_value(ROUND_CEILING)), RHO)
def floored(number): return Fraction(int(number * RHO), RHO)


def fits(rho, epsilon, log):
    """Whether rho-zCDP implies (epsilon, delta), where log is ln(1/delta)."""
    if rho > epsilon or 4 * rho * log <= (epsilon - rho) ** 2:
        return rho <= epsilon
    a = int(epsilon / (2 * rho))
    most = a * epsilon + floored(Decimal(a).ln()) + 1 + floored(Decimal(1) / (2 * (a + 1))) if a else -1
    return a * (a + 1) * rho + log <= most


def greatest(most, holds, low=0):
    while low < most:
        middle = (low + most + 1) // 2
        low, most = (middle, most) if holds(middle) else (low, middle - 1)
    return low


def sensitivity(statistic, attributes):
    """How far an event moves rows of a statistic (l1, l2_squared), whole or in halves; and the attributes it is of."""
    kind, own = next(iter(statistic.items())) if isinstance(statistic, dict) else (statistic, [])
    own = own if isinstance(own, dict) else {"of": own[0], "aggregation": own[1]} if isinstance(own, list) and own else (
        {"of": own} if isinstance(own, int) else {})
    of = [own[name] for name in ("y", "x", "of", "by") if name in own]
    def bounds(a):
        number = attributes[a]["kind"]
        return (number["Number"]["min"], number["Number"]["max"]) if "Number" in number else (0, 1)
    def times(a, b):
        corners = [one * other for one in bounds(a) for other in bounds(b)]
        return 0 if a == b and corners[1] <= 0 else min(corners), max(corners)
    lacks, cells = any(attributes[a]["optional"] for a in of), 1
    order = {"SumOfSquares": 2, "Sum": 1}.get(kind, own.get("order", 0))
    if kind == "Pair":
        y, x = of
        low, high = {"Count": (0, int(lacks)), "X": bounds(x), "Y": bounds(y), "Xx": times(x, x), "Yy": times(y, y),
                     "Xy": times(y, x)}[own["moment"]]
    else:
        low, high = [(0, 1), bounds(of[0]), times(of[0], of[0])][order] if of else (0, 0)
    if kind not in ("EventCount", "Count", "Sum", "SumOfSquares", "Pair"):
        depth = attributes[of[0]]["aggregations"][own["aggregation"]]["Sketch"]["depth"] if kind == "Sketch" else 1
        lacks, cells = False, 2 * depth
    low, high = (0, int(lacks)) if kind == "Count" else (min(low, 0), max(high, 0)) if lacks else (low, high)
    def moved(low, high, far):
        return max((cells > 1) * cells * far, high - low), max((cells > 1) * cells * far**2, (high - low) ** 2)
    return [moved(a, b, max(abs(a), abs(b))) for a, b in (
        (low, high), (0, 2**32 - 1), (min(low >> 32, 0), max(high >> 32, 0)))], of


def skellam(rho, l1, l2, rows):
    def cost(v, d): return ceil((Fraction(d[1], 2 * v) * (1 + Fraction(1, v)) + Fraction(3 * d[0], 2 * v * v)) * RHO)
    def steps(g):
        w = -(-l1 // g)
        return (l1, l2) if g == 1 else (w, w * w) if rows == 1 else (w + rows, -(-l2 // g**2) + 2 * w + rows)
    def table(d): return cost(WIDEST, d) <= rho
    g = 1 if table((l1, l2)) else -(-l1 // greatest(l1, lambda k: table((k, k * k)))) | 1 if rows == 1 else next(
        2**b - 1 for b in range(2, 56) if table(steps(2**b - 1)))
    return {"above": greatest(WIDEST, lambda v: v == 0 or cost(v, steps(g)) > rho) + 1, "below": 1, "granule": g}


def check_noise(noise, attributes):
    asked, charges, drawn, count = noise["asked"], {}, {}, max(len(noise["groups"]), 1)
    kind, epsilon = asked["mechanism"], Fraction(asked["micro_epsilon"], 10**6)
    running, unit, share = "Matrix" in kind, "rho", ceil(epsilon / count * EPSILON)
    if kind != "Laplace":
        log = ln(asked["atto_delta"] - 1 - (asked["atto_delta"] // 1024 if running else 0))
        share = greatest(ceil(epsilon * RHO), lambda r: fits(Fraction(r, RHO), epsilon, log)) // count
    events = 1 if asked["unit"] == "Event" else asked["events"] * max(asked["streams_per_owner"], 1)
    for group in noise["groups"]:
        moved, of = sensitivity(group["statistic"], attributes)
        l1, l2 = int(group["l1"]), int(group["l2_squared"])
        need((l1, l2) in moved, f"l1 and l2_squared are {l1} and {l2}, and follow as {moved[0]}")
        l1, l2 = l1 * events, l2 * events**2
        if kind == "Laplace":
            unit, scale = "epsilon", epsilon / (l1 * count)
            follows = {"above": scale.numerator, "below": scale.denominator}
        elif kind == "Gaussian":
            follows = {"variance": ceil(Fraction(l2 * RHO, 2 * share))}
        else:
            follows = group["noise"]["Running"] if running else skellam(share, l1, l2, len(group["rows"]))
        same("noise", group["noise"], {"Running" if running else kind: follows})
        drawn.update({row: group["noise"] for row in group["rows"]})
        charges.update({a: charges.get(a, 0) + share for a in of})
    same("the noise of rows", {row: own for row, own in enumerate(asked["noise"]) if own != "None"}, drawn)
    same("charges", noise["charges"], [{"attribute": a, unit: str(charges[a])} for a in sorted(charges)])


def once(text):
    """A line in which no name stands twice, so that all readers read the same."""
    def pairs(all_pairs):
        need(len(dict(all_pairs)) == len(all_pairs), "a name stands twice")
        return dict(all_pairs)
    def constant(name):
        raise WrongError(f"{name} is no number of JSON")
    return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)


class Pack:
    """What the lines said so far."""
    def __init__(self, authority, service, exhibits):
        self.authority, self.service, self.exhibits, self.notes = authority, service, exhibits, Counter()
        self.plans, self.charged, self.budgets, self.streams, self.queries, self.used = {}, Counter(), [], Counter(), [], set()
        self.kinds, self.rows, self.consumer = Counter(), set(), None

    def exhibit(self, digest):
        need(digest in self.exhibits, f"the pack has nothing with the digest {digest}")
        self.used.add(digest)
        return self.exhibits[digest]

    def line(self, kind, line):
        need(kind == "head" or self.kinds["head"] == 1, "the first line is no head, or there are two")
        self.kinds[kind] += 1
        getattr(self, f"line_{kind}")(line)

    def line_head(self, line):
        self.consumer = line["consumer"]
        self.from_, self.until, self.all = line["from"], line["until"], line["streams"]
        same("authority and service", [line["authority"], line["service"]], [self.authority, self.service])
        same("format", line["format"], 1)

    def line_schema(self, line):
        self.id, self.attributes = line["id"], line["schema"]["attributes"]

    def line_policy(self, line):
        need(0 < line["owners"] <= line["streams"] <= self.all, "owners and streams do not fit each other")
        at = [own["name"] for own in self.attributes].index(line["attribute"])
        self.streams[at] += line["streams"]
        if line["budget"] and (at, line["budget"]) not in self.budgets:
            self.budgets.append((at, line["budget"]))

    def line_query(self, line):
        self.queries.append(line)

    def line_plan(self, line):
        need(line["id"] not in self.plans, "the plan has another line")
        same("consumer", line["consumer"], self.consumer)
        plan = {"id": line["id"], "owners": None, "noise": line["noise"], "line": line, "schema": self.id}
        if line["noise"]:
            check_noise(line["noise"], self.attributes)
        if line["announcement"]:
            plan.update(announced(self.exhibit(line["announcement"]), self.authority, self.service))
            owners, rows = {own["owner"] for own in plan["streams"]}, len(plan["rows"])
            follows = {**plan, "epochs": False, "sealed": bool(plan["to"]), "controllers": len(plan["roster"]),
                       "streams": len(plan["streams"]), "owners": len(owners), "population": [*plan["population"].values()],
                       "group": [[*pair.values()] for pair in plan["group"]]}
            for name in follows.keys() & line.keys() - {"noise"}:
                same(name, line[name], follows[name])
            same("schema", plan["schema"], self.id)
            same("noise", line["noise"] and line["noise"]["asked"], plan["privacy"])
            same("columns", [own["name"] for own in line["columns"]], [own["alias"] for own in plan["items"]])
            if line["noise"] and "Matrix" not in line["noise"]["asked"]["mechanism"]:
                same("slack_bits", line["noise"]["slack_bits"], 110 - (rows * len(plan["roster"]) - 1).bit_length())
            plan["owners"] = owners
        else:
            need(line["epochs"], "the plan was not announced")
        self.plans[line["id"]] = plan

    def line_withdrawals(self, line):
        self.notes["withdrawals and revocations, as the service states them"] += 1

    line_revocations = line_withdrawals

    def line_release(self, line):
        row, plan, opened = line["row"], self.plans.get(line["plan"]), line["row"]["status"] in OPENED
        need(self.from_ <= row["window_start"] < self.until, "the window is of another time")
        need(plan is None or (plan["id"], row["window_start"]) not in self.rows, "the row is there twice")
        self.rows.add((line["plan"], row["window_start"]))
        if plan is None:
            need(not row.get("integrity"), "the plan of a row that controllers have signed is lacking")
            self.notes["rows of plans that the service does not keep, with numbers that it alone states"] += 1
            return same("cost", line["cost"], None)
        terms = plan["line"]
        need(opened or all(row.get(own["name"]) is None for own in terms["columns"]), "a row that did not open has numbers")
        same("query", line["query"], terms["query"])
        same("plan", row.get("plan", line["plan"]), line["plan"])
        same("window_end", row["window_end"] - row["window_start"], terms["window_us"] // 1000)
        charges = terms["noise"]["charges"] if terms["noise"] and opened else []
        once = bool(charges) and "Matrix" in terms["noise"]["asked"]["mechanism"]
        same("cost", line["cost"], [] if once else charges)
        if charges:
            self.charged[plan["id"]] = 1 if once else self.charged[plan["id"]] + 1
        need(all(row[name] == value for name, value in terms["group"]), "the row is of another group")
        least, most = terms["population"]
        need(not opened or once or row["population"] == 0 or least <= row["population"] <= most, "population breaks the plan")
        if not line["receipt"]:
            self.notes["rows with numbers that the service alone states" if opened else "rows without numbers"] += 1
            return None
        signed = check_receipt(self.exhibit(line["receipt"]), plan, self.service, row)
        self.notes["rows that controllers have signed, computed from what they signed"] += 1
        need(("sealed" in row) == bool(plan["to"]), "a row is sealed if its plan says for whom")
        if "sealed" in row:
            need(all(row[item["alias"]] is None for item in plan["items"]), "a sealed row has numbers")
            return same("sealed", whole(bytes.fromhex(row["sealed"]["sum"]), "SEALED"), signed)
        cells = [cell(place, signed["words"]) for place in plan["cells"]]
        for item in plan["items"]:
            value = column(item["statistic"], cells, bool(plan["privacy"])) if row["population"] else None
            if value is NotImplemented:
                self.notes["numbers that this program does not compute"] += 1
            else:
                same(item["alias"], row[item["alias"]], value)

    def line_spent(self, line):
        budget, most, owners = line["budget"], (0, 0, 0, 0, 0, 0), {}
        need((line["attribute"], budget) in self.budgets, "no policy has this budget")
        self.budgets.remove((line["attribute"], budget))
        anybody = [plan for plan in self.charged if self.plans[plan]["owners"] is None]
        for plan in self.charged:
            for owner in self.plans[plan]["owners"] or ():
                owners.setdefault(owner, []).append(plan)
        for plans in [[], *owners.values()]:
            pure = rho = of_pure = slack = times = 0
            for plan in plans + anybody:
                noise, often = self.plans[plan]["noise"], self.charged[plan]
                for own in (own for own in noise["charges"] if own["attribute"] == line["attribute"]):
                    epsilon, times = int(own.get("epsilon", 0)), times + often
                    pure, rho = pure + often * epsilon, rho + often * int(own.get("rho", 0))
                    of_pure += often * ceil(Fraction(epsilon, EPSILON) ** 2 / 2 * RHO)
                    exponent = -(-budget["window_micro_epsilon"] * 3 // 2_000_000) + 1
                    slack += often << max(exponent + 128 - noise["slack_bits"], 0)
            most = max(most, (rho + of_pure, pure, slack, rho, of_pure, times))
        both, pure, slack, rho, of_pure, times = most
        omitted, delta = -(-slack * 10**18 >> 128), budget["atto_delta"]
        least = [pure] if rho == 0 and omitted <= max(delta, 1) else []
        if delta > omitted:
            log = ln(delta - omitted)
            least.append(greatest(1 << 127, lambda e: not fits(Fraction(both, RHO), Fraction(e, EPSILON), log)) + (both > 0))
        follows = {"releases": times, "epsilon": str(pure), "rho_of_pure": str(of_pure), "rho": str(rho),
                   "slack": str(slack), "epsilon_at_delta": str(min(least)) if least else None}
        for name, value in follows.items():
            same(name, line[name], value)

    def end(self):
        """What only all lines together show."""
        need(all(self.kinds[kind] == 1 for kind in ("head", "withdrawals", "revocations")), "a line is lacking, or there twice")
        need(all(self.streams[at] >= self.all for at, _ in enumerate(self.attributes)), "policies of streams are lacking")
        same("budgets without a line of what was spent", self.budgets, [])
        same("plans and receipts that no line names", sorted(self.exhibits.keys() - self.used), [])
        self.notes["plans and receipts that are signed on their own"] = len(self.used)
        for query in self.queries:
            own = [plan["line"] for plan in self.plans.values() if plan["line"]["query"] == query["name"]]
            own = [line for line in own if line["running"] and line["consumer"] == query["consumer"]]
            if not own:
                need(query["consumer"] != self.consumer or not query["groups"], f"the plans of {query['name']} are lacking")
                self.notes["queries of others, as the service states them"] += 1
                continue
            same(f"groups of {query['name']}", query["groups"], len(own))
            same(f"streams of {query['name']}", query["streams"], sum(line["streams"] for line in own))
            same(f"window_ms of {query['name']}", query["window_ms"], own[0]["window_us"] // 1000)
            same(f"population of {query['name']}", query["population"], own[0]["population"])
            same(f"columns of {query['name']}", query["columns"], own[0]["columns"])


def check_signature(text, line, service):
    """That the service has signed these lines, and no others."""
    signed = whole(bytes.fromhex(line["signed"]), "SIGNED")
    signed_by(service, signed, "evidence/v1")
    statement = whole(signed["bytes"], "STATEMENT")
    same("lines", line["lines"], statement["count"])
    need(labelled("alpheus/evidence/lines/v1", text).hex() == statement["lines"], "the service has not signed these lines")


def main(pack, deployment):
    with open(pack, "rb") as file:
        data = file.read()
    with open(deployment, encoding="utf-8") as file:
        trusted = json.load(file)
    certificate = whole(bytes.fromhex(trusted["service"]), "SIGNED")
    signed_by(trusted["authority"], certificate, "certificate/v1")
    service = whole(certificate["bytes"], "CERTIFICATE")["key"]
    wrong, exhibits = [], {}

    def step(what, act, *args):
        try:
            return act(*args)
        except WrongError as error:
            wrong.append(f"{what}: {error}")
        except Exception as error:  # A pack may be anything.
            wrong.append(f"{what}: it cannot be read: {error!r}")
        return None

    def add(line):
        exhibit = bytes.fromhex(line["bytes"])
        exhibits[labelled("alpheus/evidence/exhibit/v1", exhibit).hex()] = exhibit

    end = data.find(b'{"kind":"signature"')
    text, (last, *rest) = data[:end], data[end:].splitlines()
    step("the signature", lambda: check_signature(text, json.loads(last), service))
    for line in rest:
        step("an exhibit", lambda line=line: add(json.loads(line)))
    state = Pack(trusted["authority"], service, exhibits)
    for number, line in enumerate(text.splitlines(), 1):
        read = step(f"line {number}", once, line) or {}
        kind = read.get("kind")
        step(f"line {number}, {kind}", state.line, kind, read)
    step("all lines together", state.end)
    if wrong:
        print(*wrong, sep="\n")
        return 1
    print("holds: the service has signed these lines")
    for note, times in sorted(state.notes.items()):
        print(f"{times} {note}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
