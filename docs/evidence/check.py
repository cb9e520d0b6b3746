"""Checks a pack of `alpheus evidence`: python3 check.py PACK DEPLOYMENT [DAYS].

DEPLOYMENT is deployment.json of an identity folder: it says whose signatures count. The service
keeps receipts for DAYS, or 30. Written from policy/docs/budget.md and docs/wire-formats.md, with no
code of Alpheus. It prints what is wrong, and then the exit code is 1; else what holds, what is only
stated, and what it does not compute. lines.json has the names that each kind of line has.
"""

import json
import sys
from collections import Counter
from decimal import ROUND_CEILING, Decimal, getcontext
from fractions import Fraction
from math import ceil, isfinite
from pathlib import Path

from receipts import (WrongError, announced, cell, check_receipt, column, labelled, listed, need,
                      same, signed_by, whole)

getcontext().prec = 120
EPSILON, RHO = 10**18, 10**24
DAY = 24 * 60 * 60 * 1000
LINES = json.loads(Path(__file__).with_name("lines.json").read_text(encoding="utf-8"))
ROW = {"window_start", "window_end", "population", "silent", "excluded", "status",
       "streams_without_report", "integrity", "plan", "sealed",
       "members_left_out", "members_refused"}


def log_of(atto):
    """ln(1/delta), rounded up."""
    log = (Decimal(EPSILON) / atto).ln() * RHO
    return Fraction(int(log.to_integral_value(ROUND_CEILING)), RHO)


def fits(rho, epsilon, log):
    """Whether rho-zCDP implies (epsilon, delta), where log is ln(1/delta)."""
    if rho > epsilon or 4 * rho * log <= (epsilon - rho) ** 2:
        return rho <= epsilon
    a = int(epsilon / (2 * rho))
    if a == 0:
        return False
    parts = [Decimal(a).ln(), Decimal(1) / (2 * (a + 1))]
    slack = 1 + sum(Fraction(int(part * RHO), RHO) for part in parts)
    return a * (a + 1) * rho + log <= a * epsilon + slack


def first(most, holds):
    """The first number up to most for which it holds, as it does for all after it."""
    low = 0
    while low < most:
        middle = (low + most) // 2
        low, most = (low, middle) if holds(middle) else (middle + 1, most)
    return low


def share_of(noise):
    """What each group of rows is charged, and in which unit."""
    asked, count = noise["asked"], max(len(noise["groups"]), 1)
    epsilon, delta = Fraction(asked["micro_epsilon"], 10**6), asked["atto_delta"]
    if asked["mechanism"] == "Laplace":
        return "epsilon", ceil(epsilon / count * EPSILON)
    log = log_of(delta - 1 - (delta // 1024 if is_running(noise) else 0))
    most = ceil(epsilon * RHO)
    return "rho", first(most, lambda rho: not fits(Fraction(rho + 1, RHO), epsilon, log)) // count


def is_running(noise):
    return "Matrix" in noise["asked"]["mechanism"]


def parts(statistic):
    """A statistic's kind, its attributes, and the rest of it."""
    if isinstance(statistic, str):
        return statistic, [], {}
    (kind, own), = statistic.items()
    if isinstance(own, int):
        return kind, [own], {}
    if isinstance(own, list):
        return kind, own[:1], {"aggregation": own[1]}
    return kind, [own[name] for name in ("y", "x", "of", "by") if name in own], own


def charged_to(group):
    """The attributes that a group of rows is charged to."""
    of = sorted(set(parts(group["statistic"])[1]))
    need(of, "a group is charged to no attribute")
    same("attributes", group["attributes"], of)
    return of


def once(text):
    """A line in which no name stands twice, so that all readers read the same."""
    def pairs(all_pairs):
        need(len(dict(all_pairs)) == len(all_pairs), "a name stands twice")
        return dict(all_pairs)

    def number(text):
        need(isfinite(float(text)), f"{text} is not a number of JSON")
        return float(text)
    return json.loads(text, object_pairs_hook=pairs, parse_float=number, parse_constant=number)


def closed(what, stated, names):
    """That all that is stated has these names and no others: nobody can add a number."""
    for one in stated if isinstance(stated, list) else [stated] if stated and names else []:
        # One with a question mark may be lacking.
        fits = {own.rstrip("?") for own in names if own[-1] != "?" or own[:-1] in one}
        need(one.keys() == fits, f"{what} has other names")
        for name, within in names.items():
            closed(f"{name} of {what}", one[name] if within else [], within)


class Pack:
    """What the lines said so far. A kind's method takes a line, and returns what follows for it."""

    def __init__(self, authority, service, days=30):
        self.keys, self.days = {"authority": authority, "service": service}, int(days)
        self.exhibits, self.named, self.kinds, self.notes = {}, set(), Counter(), Counter()
        self.streams, self.budgets, self.plans, self.charged = Counter(), [], {}, Counter()
        self.rows, self.windows, self.queries = set(), set(), []

    def line(self, text):
        line = once(text)
        kind = line["kind"]
        need(kind == "head" or self.kinds["head"] == 1, "there is not one head, as the first line")
        closed(kind, line, LINES[kind])
        self.kinds[kind] += 1
        follows = getattr(self, f"line_{kind}")(line)
        for name, value in (follows or {}).items():
            same(f"{name} of {kind}", line[name], value)

    def exhibit_line(self, text):
        line = once(text)
        closed(line["kind"], line, LINES["exhibits"][line["kind"]])
        exhibit = bytes.fromhex(line["bytes"])
        self.exhibits[labelled("alpheus/evidence/exhibit/v1", exhibit).hex()] = exhibit

    def exhibit(self, digest):
        need(digest in self.exhibits, f"the pack has nothing with the digest {digest}")
        self.named.add(digest)
        return self.exhibits[digest]

    def line_head(self, line):
        self.head = line
        return {**self.keys, "format": 1}

    def line_schema(self, line):
        self.schema = line

    def line_policy(self, line):
        counts = 0 < line["owners"] <= line["streams"] <= self.head["streams"]
        need(counts, "owners and streams do not fit each other")
        at = [own["name"] for own in self.schema["schema"]["attributes"]].index(line["attribute"])
        self.streams[at] += line["streams"]
        if line["budget"] and (at, line["budget"]) not in self.budgets:
            self.budgets.append((at, line["budget"]))

    def line_query(self, line):
        self.queries.append(line)

    def line_plan(self, line):
        need(line["id"] not in self.plans, "the plan has another line")
        self.plans[line["id"]], noise, line["signed"] = line, line["noise"], None
        if noise:
            (unit, share), groups = share_of(noise), noise["groups"]
            rows = [row for row, own in enumerate(noise["asked"]["noise"]) if own != "None"]
            same("rows", sorted(row for group in groups for row in group["rows"]), rows)
            need(all(group["rows"] for group in groups), "a group has no rows")
            of = Counter(at for group in groups for at in charged_to(group))
            charges = [{"attribute": at, unit: str(of[at] * share)} for at in sorted(of)]
            same("charges", noise["charges"], charges)
        if line["announcement"] is None:
            return {"consumer": self.head["consumer"], "epochs": True}
        plan = line["signed"] = announced(self.exhibit(line["announcement"]), **self.keys)
        same("schema", plan["schema"], self.schema["id"])
        names = [own["name"] for own in line["columns"]]
        same("columns", names, [own["alias"] for own in plan["items"]])
        same("consumer of head", self.head["consumer"], plan["consumer"])
        if noise:
            self.check_charged(sorted(of), plan["attributes"])
        same("noise", noise and noise["asked"], plan["privacy"])
        if noise and not is_running(noise):
            words = len(plan["rows"]) * plan["controllers"]
            same("slack_bits", noise["slack_bits"], 110 - (words - 1).bit_length())
        return {name: plan[name] for name in line.keys() & plan.keys()}

    def check_charged(self, charged, of):
        """That a plan charges its own attributes: all but those of which it only counts events."""
        need(set(charged) <= set(of), f"{charged} is charged, and the plan is of {of}")
        for at in of:
            known = at in charged or not self.schema["schema"]["attributes"][at]["optional"]
            need(known, f"attribute {at} is charged nothing, and some may lack it")

    def line_withdrawals(self, line):
        self.notes["withdrawals and revocations, as the service states them"] += 1

    line_revocations = line_withdrawals

    def line_release(self, line):
        row, plan, key = line["row"], self.plans.get(line["plan"]), line["row"]["window_start"]
        need(self.head["from"] <= key < self.head["until"], "the window is of another time")
        if plan is None:
            need(not row.get("integrity"), "the plan of a row that controllers signed is lacking")
            self.notes["rows of plans that the service does not keep"] += 1
            return {"cost": None}
        need((line["plan"], key) not in self.rows, "the row is there twice")
        self.rows.add((line["plan"], key))
        self.check_names(row, plan)
        opened = row["status"] in ("ok", "ok: less exact than asked")
        numbers = [row.get(own["name"]) for own in plan["columns"]]
        need(opened or numbers == [None] * len(numbers), "a row that did not open has numbers")
        by_list = plan["epochs"] and plan["integrity"] == "verified"
        # By epochs a row is of its list's plan, which its receipt has.
        same("plan", line["plan"] if by_list else row.get("plan", line["plan"]), line["plan"])
        same("window_end", row["window_end"], key + plan["window_us"] // 1000)
        same("group", [[name, row[name]] for name, _ in plan["group"]], plan["group"])
        noise = plan["noise"] if opened else None
        running = bool(noise) and is_running(noise)
        charges = noise["charges"] if noise else []
        if charges:
            self.charged[line["plan"]] = 1 if running else self.charged[line["plan"]] + 1
        (least, most), owners = plan["population"], row["population"]
        enough = not opened or running or owners == 0 or least <= owners <= most
        need(enough, "population breaks the plan")
        if line["receipt"] and plan["integrity"] == "bounded":
            self.exhibit(line["receipt"])
            self.notes["ROWS WHOSE PROOFS ONLY alpheus verify CHECKS"] += 1
        elif line["receipt"]:
            window = plan["query"], str(plan["group"]), key
            need(window not in self.windows, "two plans have a signed row of the window")
            self.windows.add(window)
            receipt = self.exhibit(line["receipt"])
            signed = self.listed(row, plan, receipt) if by_list else plan["signed"]
            self.receipt(row, signed, receipt)
        elif opened and plan["integrity"] != "plain":
            is_old = row["window_end"] + self.days * DAY < self.head["made"]
            need(is_old, "a row that controllers signed has no receipt")
            self.notes[f"ROWS THAT NOBODY CAN CHECK: receipts are kept for {self.days} days"] += 1
        else:
            numbers = "with numbers that the service alone states" if opened else "without numbers"
            self.notes[f"rows {numbers}"] += 1
        return {"query": plan["query"], "cost": [] if running else charges}

    def check_names(self, row, plan):
        """That a row has no names but those of its plan, and says what its plan is."""
        names, noise = {own["name"] for own in plan["columns"]}, plan["noise"]
        known = ROW | names | {name for name, _ in plan["group"]}
        known |= {"noise", "mostly_noise"} if noise else set()
        known |= {"windows"} if noise and is_running(noise) else set()
        within = {*(row.get("noise") or ()), *(row.get("mostly_noise") or ())}
        more = sorted(row.keys() - known | within - names)
        need(not more, f"{more} is not a column")
        integrity = None if plan["integrity"] == "plain" else plan["integrity"]
        same("integrity", row.get("integrity"), integrity)
        need(("sealed" in row) == plan["sealed"], "a row is sealed if its plan says for whom")

    def listed(self, row, terms, receipt):
        """The plan of a window's list, which is what the line of its terms says."""
        plan = listed(receipt, **self.keys)
        same("terms", plan["terms"], terms["id"])
        same("plan", row["plan"], plan["id"])
        same("schema", plan["schema"], self.schema["id"])
        same("consumer of head", self.head["consumer"], plan["consumer"])
        names = [own["name"] for own in terms["columns"]]
        same("columns", names, [own["alias"] for own in plan["items"]])
        for name in ("query", "window_us", "population", "group", "alpha", "dropout", "colluders"):
            same(name, terms[name], plan[name])
        return plan

    def signed(self, row, plan, receipt):
        return check_receipt(receipt, plan, self.keys["service"], row)

    def receipt(self, row, plan, receipt):
        """That a row's numbers are what controllers have signed."""
        signed = self.signed(row, plan, receipt)
        self.notes["rows that controllers have signed, computed from what they signed"] += 1
        if plan["sealed"]:
            same("sealed", whole(bytes.fromhex(row["sealed"]["sum"]), "SEALED"), signed)
        cells = [cell(place, signed["words"]) for place in plan["cells"]]
        for item in plan["items"]:
            value = column(item["statistic"], cells, bool(plan["privacy"]))
            if plan["sealed"] or row["population"] == 0:
                value = None
            if value is NotImplemented:
                self.notes["numbers that this program does not compute"] += 1
            else:
                same(item["alias"], row[item["alias"]], value)

    def line_spent(self, line):
        at, budget = line["attribute"], line["budget"]
        need((at, budget) in self.budgets, "no policy has this budget")
        self.budgets.remove((at, budget))
        by_owner, anybody = {None: []}, []
        for id_ in self.charged:
            members = (self.plans[id_]["signed"] or {}).get("members")
            if members is None:
                anybody.append(id_)
            for owner in {own["owner"] for own in members or ()}:
                by_owner.setdefault(owner, []).append(id_)
        losses = [self.loss(at, budget, plans + anybody) for plans in by_owner.values()]
        both, pure, slack, rho, of_pure, times = max(losses)
        omitted, delta, least = -(-slack * EPSILON >> 128), budget["atto_delta"], []
        if rho == 0 and omitted <= max(delta, 1):
            least.append(pure)
        if delta > omitted:
            of = Fraction(both, RHO), log_of(delta - omitted)
            least.append(first(1 << 127, lambda e: fits(of[0], Fraction(e, EPSILON), of[1])))
        return {"releases": times, "epsilon": str(pure), "rho_of_pure": str(of_pure),
                "rho": str(rho), "slack": str(slack),
                "epsilon_at_delta": str(min(least)) if least else None}

    def loss(self, attribute, budget, plans):
        """What these plans' releases cost an owner: rho of all of it, epsilon, what samplers omit,
        rho of what is charged as rho, and of what is charged as epsilon; how many releases."""
        pure = rho = of_pure = slack = times = 0
        factor, most = -(-budget["window_micro_epsilon"] * 3 // 2_000_000) + 1, 2**128 - 1
        for plan in plans:
            noise, often = self.plans[plan]["noise"], self.charged[plan]
            for own in noise["charges"]:
                if own["attribute"] == attribute:
                    epsilon, times = int(own.get("epsilon", 0)), times + often
                    pure, rho = pure + often * epsilon, rho + often * int(own.get("rho", 0))
                    of_pure += often * ceil(Fraction(epsilon, EPSILON) ** 2 / 2 * RHO)
                    shift = max(factor + 128 - noise["slack_bits"], 0)
                    slack = min(slack + often * min(1 << min(shift, 128), most), most)
        return rho + of_pure, pure, slack, rho, of_pure, times

    def end(self):
        """What only all lines together show."""
        for kind in ("head", "schema", "withdrawals", "revocations"):
            need(self.kinds[kind] == 1, f"the line {kind} is lacking, or there twice")
        for at, _ in enumerate(self.schema["schema"]["attributes"]):
            need(self.streams[at] >= self.head["streams"], "policies of streams are lacking")
        same("budgets without a line of what was spent", self.budgets, [])
        same("plans and receipts that no line names", sorted(self.exhibits.keys() - self.named), [])
        self.notes["plans and receipts that are signed on their own"] = len(self.named)
        for query in self.queries:
            if query["consumer"] != self.head["consumer"]:
                self.notes["queries of others, as the service states them"] += 1
                continue
            running = [own for own in self.plans.values() if own["running"]]
            own = [plan for plan in running if plan["query"] == query["name"]]
            shared = {(query["window_ms"] * 1000, *query["population"], str(query["columns"]))}
            stated = query["groups"], query["streams"], shared if own else set()
            terms = {(p["window_us"], *p["population"], str(p["columns"])) for p in own}
            follows = len(own), sum(plan["streams"] for plan in own), terms
            same(f"groups, streams and plans of {query['name']}", stated, follows)


def check_signature(text, signature, service):
    """That the service has signed these lines, and no others."""
    line = once(signature)
    closed("the signature", line, LINES["signature"])
    same("the number of lines", line["lines"], len(text.splitlines()))
    signed = whole(bytes.fromhex(line["signed"]), "SIGNED")
    signed_by(service, signed, "evidence/v1")
    lines = labelled("alpheus/evidence/lines/v1", text).hex()
    statement = {"lines": lines, "count": line["lines"]}
    same("the statement", whole(signed["bytes"], "STATEMENT"), statement)


def check(data, trusted, kind=Pack, days=30):
    """What is wrong with a pack, and what is to be noted of it."""
    certificate = whole(bytes.fromhex(trusted["service"]), "SIGNED")
    signed_by(trusted["authority"], certificate, "certificate/v2")
    certified = whole(certificate["bytes"], "CERTIFICATE")
    need(certified["role"] == 0, "the certificate is of no service")
    service = certified["key"]
    pack, end = kind(trusted["authority"], service, days), data.find(b'{"kind":"signature"')
    text, (signature, *exhibits) = data[:end], data[end:].splitlines()
    steps = [("the signature", check_signature, text, signature, service)]
    steps += [("an exhibit", pack.exhibit_line, line) for line in exhibits]
    steps += [(f"line {at}", pack.line, line) for at, line in enumerate(text.splitlines(), 1)]
    wrong = []
    for what, act, *args in [*steps, ("all lines together", pack.end)]:
        try:
            act(*args)
        except WrongError as error:
            wrong.append(f"{what}: {error}")
        except Exception as error:  # A pack may be anything.
            wrong.append(f"{what}: it cannot be read: {error!r}")
    return wrong, [f"{times} {note}" for note, times in sorted(pack.notes.items())]


def main(pack, deployment, days=30, kind=Pack):
    trusted = json.loads(Path(deployment).read_text(encoding="utf-8"))
    wrong, notes = check(Path(pack).read_bytes(), trusted, kind, days)
    print(*(wrong or ["holds: the service has signed these lines", *notes]), sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
