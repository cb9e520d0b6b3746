"""Writes v1/ below the directory that it is given: what losses cost, the noise
for them, and what an account allows.

Implemented independently from crates/policy/docs/budget.md: exact fractions, and logarithms
by decimals of 120 digits. Shares no code with the Rust.
"""
import json
import random
import sys
from decimal import ROUND_CEILING, Decimal, getcontext
from fractions import Fraction
from math import ceil, comb, gcd, isqrt
from pathlib import Path

OUT = Path(sys.argv[1]) / "v1"
getcontext().prec = 120
random.seed("alpheus/budget/v1")
EPSILON, RHO = 10**18, 10**24
MAX_SKELLAM = 1 << 21


def ln(atto):
    """ln(1/delta), rounded up to 10^-24."""
    exact = (Decimal(10**18) / atto).ln() * RHO
    return Fraction(int(exact.to_integral_value(ROUND_CEILING)), RHO)


def floored(number):
    return Fraction(int(number * RHO), RHO)


def fits(rho, epsilon, atto):
    """rho + 2 sqrt(rho ln(1/delta)) <= epsilon, or the condition for one alpha."""
    if atto == 0 or rho > epsilon:
        return False
    if 4 * rho * ln(atto) <= (epsilon - rho) ** 2:
        return True
    a = int(epsilon / (2 * rho))
    if a == 0:
        return False
    right = a * epsilon + floored(Decimal(a).ln()) + 1 + floored(Decimal(1) / (2 * (a + 1)))
    return a * (a + 1) * rho + ln(atto) <= right


def greatest(most, holds):
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def most_rho(epsilon, atto):
    return greatest(ceil(epsilon * RHO), lambda r: fits(Fraction(r, RHO), epsilon, atto))


def pure_rho(units):
    """Of epsilon units: epsilon^2 / 2, rounded up."""
    return ceil(Fraction(units, EPSILON) ** 2 / 2 * RHO)


def conversions():
    cases = []
    for micro, atto in [(1, 1), (1, 10**9), (500_000, 10**9), (10**6, 10**6), (10**7, 123456789012), (3, 5 * 10**17)]:
        rho = most_rho(Fraction(micro, 10**6), atto)
        enough = greatest(10**40, lambda e: not fits(Fraction(rho, RHO), Fraction(e, EPSILON), atto)) + 1
        cases.append({"micro_epsilon": micro, "atto_delta": str(atto), "ln": str(int(ln(atto) * RHO)),
                      "most_rho": str(rho), "least_epsilon": str(enough), "pure_rho": str(pure_rho(micro * 10**12))})
    return cases


def laplace(micro, count, l1):
    below = l1 * count * 10**6
    divisor = gcd(below, micro)
    return {"Laplace": {"above": str(micro // divisor), "below": str(below // divisor)}}


def gaussian(rho, l2):
    return {"Gaussian": {"variance": str(ceil(Fraction(l2 * RHO, 2 * rho)))}}


def skellam_rho(variance, l1, l2):
    v = Fraction(variance)
    return ceil((l2 / (2 * v) * (1 + 1 / v) + 3 * l1 / (2 * v * v)) * RHO)


def steps(granule, l1, l2, rows):
    if granule == 1:
        return l1, l2
    whole = -(-l1 // granule)
    if rows == 1:
        return whole, whole**2
    return whole + rows, -(-l2 // granule**2) + 2 * whole + rows


def skellam(rho, l1, l2, rows):
    table = lambda change: skellam_rho(MAX_SKELLAM, *change) <= rho  # noqa: E731
    if table((l1, l2)):
        granule = 1
    elif rows > 1:
        granule = next(2**b - 1 for b in range(2, 56) if table(steps(2**b - 1, l1, l2, rows)))
    else:
        k = greatest(l1, lambda k: table((k, k * k)))
        granule = -(-l1 // k) | 1
    moved = steps(granule, l1, l2, rows)
    enough = greatest(MAX_SKELLAM, lambda v: v == 0 or skellam_rho(v, *moved) > rho) + 1
    return {"Skellam": {"above": str(enough), "below": "1", "granule": str(granule)}}


def groups():
    """Rows, and how far one event moves them: sums of squares are at most (sum)^2."""
    shapes = [(1, 160, 160**2), (1, 9700, 9700**2), (8, 2, 2), (40, 2, 2), (1, 40_000_000, 40_000_000**2), (1, 1, 1)]
    return random.sample(shapes, random.randint(1, len(shapes)))


def noise():
    cases = []
    for mechanism in ["Laplace", "Skellam", "Gaussian"]:
        for micro, atto, events in [(100_000, 10**9, 1), (500_000, 10**9, 20), (1_000_000, 10**12, 7), (333_333, 1, 100)]:
            own = groups()
            count, epsilon = len(own), Fraction(micro, 10**6)
            share = most_rho(epsilon, atto) // count
            rows = []
            for size, l1, l2 in own:
                l1, l2 = l1 * events, l2 * events**2
                made = {"Laplace": lambda: laplace(micro, count, l1), "Gaussian": lambda: gaussian(share, l2),
                        "Skellam": lambda: skellam(share, l1, l2, size)}[mechanism]()
                rows.append(made)
            pure = mechanism == "Laplace"
            cases.append({
                "mechanism": mechanism, "micro_epsilon": micro, "atto_delta": str(atto), "events": str(events),
                "groups": [[rows_, str(l1), str(l2)] for rows_, l1, l2 in own], "noise": rows,
                "charge": str(ceil(epsilon / count * EPSILON) if pure else share),
            })
    return cases


def norm(windows):
    return sum(Fraction(comb(2 * k, k), 4**k) ** 2 for k in range(windows))


def running():
    cases = []
    for micro, atto, events, windows, touched, honest in [
        (10**6, 10**9, 1, 1, 1, 1), (10**6, 10**9, 20, 24, 1, 10), (10**5, 10**9, 100, 300, 3, 67), (10**7, 10**15, 1, 100, 100, 1000),
    ]:
        l2 = 500**2 * events**2 * touched**2
        rho = most_rho(Fraction(micro, 10**6), atto)
        variance = l2 * norm(windows) / (2 * Fraction(rho, RHO)) / honest
        fraction = next(f for f in range(33) if variance * 4**f >= 32)
        fine = min(96, 118 - (isqrt(int(variance * 4**fraction)) + 1).bit_length())
        squared = ceil(variance * 4 ** (fraction + fine))
        root = isqrt(squared)
        # The norm is rounded up in units of 2^-128 along the way: a scale agrees to 30 digits.
        cases.append({"micro_epsilon": micro, "atto_delta": str(atto), "events": str(events), "windows": windows,
                      "touched": touched, "honest": honest, "fraction_bits": fraction, "fine_bits": fine,
                      "seed_scale": str(root + (root * root < squared))})
    return cases


class Account:
    def __init__(self, unit, period, per_window, total, atto):
        self.unit, self.period, self.atto = unit, period, atto
        self.per_window, self.total = Fraction(per_window, 10**6), Fraction(total, 10**6)
        self.live = {}

    def within(self, costs, limit):
        """Costs as (kind, units)."""
        epsilon = sum(units for kind, units in costs if kind == "Pure")
        rho = sum(units for kind, units in costs if kind == "Concentrated")
        all_rho = rho + sum(pure_rho(units) for kind, units in costs if kind == "Pure")
        # Each release leaves a little out: all of them less than 10^-18 here.
        left = self.atto - 1
        pure = rho == 0 and Fraction(epsilon, EPSILON) <= limit
        return pure or (left > 0 and fits(Fraction(all_rho, RHO), limit, left))

    def limits(self, start, end):
        moments = {start} | {s for (s, _, _) in self.live if start < s < end}
        out = [("Window", [c for (s, e, _), c in self.live.items() if s <= m < e], self.per_window) for m in sorted(moments)]
        if self.unit == "person-per-period":
            for n in range(start // self.period, (end - 1) // self.period + 1):
                low, high = n * self.period, (n + 1) * self.period
                out.append(("Period", [c for (s, e, _), c in self.live.items() if s < high and low < e], self.total))
        else:
            out.append(("Total", list(self.live.values()), self.total))
        return out

    def ask(self, plan, start, end, kind, units):
        for rule, costs, limit in self.limits(start, end):
            allowed = lambda u: self.within([*costs, (kind, u)], limit)  # noqa: E731, B023
            if not allowed(units):
                return {"rule": rule, "nearest": str(greatest(units, allowed))}
        self.live[(start, end, plan)] = (kind, units)
        return None


def accounts():
    cases = []
    for unit, period, total, atto in [("event", 0, 4_000_000, 0), ("person-per-window", 0, 2_000_000, 10**9),
                                      ("person-per-period", 100, 1_500_000, 10**12), ("person-per-period", 70, 900_000, 0)]:
        account, asks = Account(unit, period, 500_000, total, atto), []
        for _ in range(40):
            length = random.choice([10, 10, 20, 50])
            start = random.randrange(0, 40) * 10 // length * length
            key = (start, start + length, random.randrange(3))
            if key in account.live:
                continue
            kind = "Pure" if atto == 0 or random.random() < 0.5 else "Concentrated"
            units = random.randrange(1, 400_000) * 10**12 if kind == "Pure" else random.randrange(1, 2 * 10**21)
            refused = account.ask(key[2], key[0], key[1], kind, units)
            asks.append({"plan": key[2], "start": key[0], "end": key[1], "kind": kind, "units": str(units), "refused": refused})
        cases.append({"unit": unit, "period": period, "per_window": 500_000, "total": total, "atto_delta": str(atto), "asks": asks})
    return cases


def bad():
    return [
        {"name": "no epsilon", "mechanism": "Laplace", "micro_epsilon": 0, "atto_delta": "1", "l1": "1", "error": "NoEpsilon"},
        {"name": "no delta", "mechanism": "Gaussian", "micro_epsilon": 1, "atto_delta": "0", "l1": "1", "error": "NoDelta"},
        {"name": "no delta", "mechanism": "Skellam", "micro_epsilon": 1, "atto_delta": "0", "l1": "1", "error": "NoDelta"},
        {"name": "wide", "mechanism": "Laplace", "micro_epsilon": 1, "atto_delta": "0", "l1": str(2**60), "error": "TooWide"},
        {"name": "wide", "mechanism": "Gaussian", "micro_epsilon": 1, "atto_delta": "1", "l1": str(2**60), "error": "TooWide"},
        {"name": "wide", "mechanism": "Skellam", "micro_epsilon": 1, "atto_delta": "1", "l1": "1", "error": "TooWide"},
    ]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    files = {"conversions": conversions, "noise": noise, "running": running, "accounts": accounts, "noise_bad_asks": bad}
    for name, make in files.items():
        lines = ",\n".join(json.dumps(case, sort_keys=True) for case in make())
        (OUT / f"{name}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
