"""Checks a pack as check.py does, and what that takes as given: python3 further.py PACK DEPLOYMENT.

From the schema's bounds and epsilon it computes sensitivities and noise of each plan
(policy/docs/budget.md), and from receipts how many streams controllers left out of a row.
"""

import hashlib
import sys
from fractions import Fraction
from math import ceil

from check import RHO, Pack, charged_to, first, is_running, main, parts, share_of
from receipts import among, bound, labelled, need, same, whole, with_list

WIDEST = 1 << 21


def greatest(most, holds):
    """The greatest number up to most for which it holds, as it does for all before it."""
    return first(most, lambda number: not holds(number + 1))


def power(attribute, order):
    """The bounds of a value's power."""
    number = attribute["kind"].get("Number", {"min": 0, "max": 1})
    low, high = number["min"], number["max"]
    if order == 2:
        return 0 if low <= 0 <= high else min(low**2, high**2), max(low**2, high**2)
    return (low, high) if order else (0, 1)


def product(one, other):
    corners = [a * b for a in power(one, 1) for b in power(other, 1)]
    return min(corners), max(corners)


def added(statistic, attributes):
    """What an event adds to a cell of a statistic: low, high, and how many cells it moves."""
    kind, of, rest = parts(statistic)
    own = [attributes[at] for at in of]
    optional = any(attribute["optional"] for attribute in own)
    if kind == "EventCount":
        return 0, 0, 1
    if kind == "Count" or rest.get("moment") == "Count":
        return 0, int(optional), 1
    if kind not in ("Sum", "SumOfSquares", "Pair"):
        sketch = kind == "Sketch" and own[0]["aggregations"][rest["aggregation"]]["Sketch"]
        return *power(own[0], rest.get("order", 0)), 2 * sketch["depth"] if sketch else 2
    if kind == "Pair":
        y, x = own
        low, high = {"X": power(x, 1), "Y": power(y, 1), "Xx": power(x, 2), "Yy": power(y, 2),
                     "Xy": product(y, x)}[rest["moment"]]
    else:
        low, high = power(own[0], 1 if kind == "Sum" else 2)
    return (min(low, 0), max(high, 0), 1) if optional else (low, high, 1)


def sensitivities(statistic, attributes):
    """How far an event moves rows of a statistic, (l1, l2_squared): whole, or in halves."""
    low, high, cells = added(statistic, attributes)

    def moved(low, high):
        far = max(abs(low), abs(high)) if cells > 1 else 0
        return max(cells * far, high - low), max(cells * far**2, (high - low) ** 2)
    return [moved(low, high), moved(0, 2**32 - 1), moved(min(low >> 32, 0), max(high >> 32, 0))]


def skellam(rho, l1, l2, rows):
    """The noise of rows that a unit moves by l1 and l2, in granules that are as small as can be."""
    def cost(variance, l1, l2):
        exact = Fraction(l2, 2 * variance) * (1 + Fraction(1, variance))
        return ceil((exact + Fraction(3 * l1, 2 * variance**2)) * RHO)

    def steps(granule):
        whole_steps = -(-l1 // granule)
        if granule == 1:
            return l1, l2
        if rows == 1:
            return whole_steps, whole_steps**2
        return whole_steps + rows, -(-l2 // granule**2) + 2 * whole_steps + rows

    def fine(l1, l2):
        return cost(WIDEST, l1, l2) <= rho
    granule = 1
    if not fine(l1, l2) and rows == 1:
        granule = -(-l1 // greatest(l1, lambda most: fine(most, most**2))) | 1
    elif not fine(l1, l2):
        granule = next(2**bits - 1 for bits in range(2, 56) if fine(*steps(2**bits - 1)))
    variance = 1 + first(WIDEST, lambda before: cost(before + 1, *steps(granule)) <= rho)
    return {"above": variance, "below": 1, "granule": granule}


def check_noise(noise, attributes):
    """That the noise of each row follows from what was asked."""
    asked, drawn, count = noise["asked"], {}, max(len(noise["groups"]), 1)
    kind, (_, share) = asked["mechanism"], share_of(noise)
    per_owner = asked["events"] * max(asked["streams_per_owner"], 1)
    events = 1 if asked["unit"] == "Event" else per_owner
    for group in noise["groups"]:
        charged_to(group)
        l1, l2 = int(group["l1"]), int(group["l2_squared"])
        moved = sensitivities(group["statistic"], attributes)
        need((l1, l2) in moved, f"l1 and l2_squared are {l1} and {l2}, and follow as {moved[0]}")
        l1, l2 = l1 * events, l2 * events**2
        if is_running(noise):
            follows = {"Running": group["noise"]["Running"]}
        elif kind == "Laplace":
            scale = Fraction(asked["micro_epsilon"], 10**6 * l1 * count)
            follows = {kind: {"above": scale.numerator, "below": scale.denominator}}
        elif kind == "Gaussian":
            follows = {kind: {"variance": ceil(Fraction(l2 * RHO, 2 * share))}}
        else:
            follows = {kind: skellam(share, l1, l2, len(group["rows"]))}
        same("noise", group["noise"], follows)
        drawn.update({row: group["noise"] for row in group["rows"]})
    noisy = {row: own for row, own in enumerate(asked["noise"]) if own != "None"}
    same("the noise of rows", noisy, drawn)


def root_of(leaf, place, path):
    """The root of the Merkle tree that has a leaf in this place."""
    node, (at, size) = hashlib.sha256(b"\0" + leaf).digest(), place
    last = size - 1
    while last:
        if at % 2 or at < last:
            pair = path.pop(0) + node if at % 2 else node + path.pop(0)
            node = hashlib.sha256(b"\1" + pair).digest()
        at, last = at // 2, last // 2
    return node


def left_out(data, plan):
    """How many streams the controllers of a receipt have signed that they left out."""
    receipt, streams, many = with_list(data), plan["members"], 0
    m = whole(receipt["membership"]["bytes"], "MEMBERSHIP")
    here, members = {"plan": m["plan"], "window": m["window"]}, among(m["set"])
    for one in receipt["exclusions"]:
        at = whole(one["presence"]["bytes"], "PRESENCE")["controller"]
        said = bound(one["presence"], "PRESENCE", "presence/v2", plan["keys"][at], **here)
        own = all(streams[own["stream"]]["controller"] == at for own in said["excluded"])
        need(own, "a stream is another's")
        need(said["excluded"], "a presence that is shown leaves nothing out")
        place = members.index(at), len(members)
        same("a presence's place", (one["at"], one["size"]), place)
        leaf = bytes.fromhex(said["digest"])
        if one["pickers"] is not None:
            pickers = b"".join(picker.to_bytes(4, "big") for picker in one["pickers"])
            leaf = labelled("alpheus/mask/pickers/v1", leaf, pickers)
        root = root_of(leaf, place, [bytes.fromhex(node) for node in one["path"]])
        same("the root of the membership", m["root"], root.hex())
        many += len(said["excluded"])
    return many


class Further(Pack):
    def line_plan(self, line):
        if line["noise"]:
            check_noise(line["noise"], self.schema["schema"]["attributes"])
        return super().line_plan(line)

    def signed(self, row, plan, receipt):
        signed, many = super().signed(row, plan, receipt), left_out(receipt, plan)
        need(row["excluded"] >= many, f"excluded is {row['excluded']}, and signed are {many}")
        return signed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:], kind=Further))
