"""Writes v1/ below the directory that it is given: noise shares from a fixed
stream of bytes, and running totals.

Implemented independently from crates/encrypted-stream/docs/noise.md: probabilities by
decimals of 160 digits, everything else in integers. Shares no code with the Rust.
"""
import json
import sys
from decimal import Decimal, getcontext
from fractions import Fraction
from math import comb, isqrt
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reference  # noqa: E402

OUT = Path(sys.argv[1]) / "v1"
getcontext().prec = 160
WORD = 1 << 64
FULL = 1 << 128
CUT = 112


class Stream:
    """SplitMix64, little-endian words, in units of 16 bytes."""

    def __init__(self, seed):
        self.state = seed

    def word(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) % WORD
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
        return z ^ (z >> 31)

    def uniform(self):
        low = self.word()
        return low | self.word() << 64


def power(x):
    """e^-x for a fraction x."""
    return (-Decimal(x.numerator) / Decimal(x.denominator)).exp()


def chance(x):
    return int(power(x) * FULL)


def logistic(x):
    e = power(x)
    return int(e / (1 + e) * FULL)


def cumulative(weights):
    """Thresholds of all values but the last."""
    total, running, out = sum(weights), 0, []
    for weight in weights[:-1]:
        running += weight
        out.append(int(running * FULL / total))
    return out


def pick(thresholds, u):
    return sum(u >= threshold for threshold in thresholds)


def poisson(mean):
    """First value and thresholds: weights relative to that of the mode, as far
    as they reach 2^-(CUT + 17)."""
    mode, least = int(mean), Decimal(1) / (1 << (CUT + 17))
    below, k, weight = [], mode, Decimal(1)
    while k > 0:
        weight = weight * k / mean
        if weight < least:
            break
        k -= 1
        below.insert(0, weight)
    first, above, weight, k = k, [], Decimal(1), mode
    while weight >= least:
        above.append(weight)
        k += 1
        weight = weight * mean / k
    return first, cumulative(below + above)


class Polya:
    def __init__(self, x, honest):
        self.blocks = next(j for j in range(1, 63) if x * 2**j >= 80)
        rates = [power(x * 2**j) for j in range(self.blocks)]
        self.first, self.count = poisson(2 * sum(rates) / honest)
        self.block = cumulative(rates)
        self.bits = [chance(x * 2**i) for i in range(self.blocks - 1)]

    def draw(self, stream):
        n = self.first + pick(self.count, stream.uniform())
        total = 0
        for slot in range(self.first + len(self.count)):
            j = pick(self.block, stream.uniform())
            u = stream.uniform()
            offset = u % (1 << j)
            k = (1 << j) + offset
            kept = Fraction(stream.uniform(), FULL) * k < 1 << j
            for i, threshold in enumerate(self.bits):
                survives = stream.uniform() < threshold
                kept = kept and (survives or not offset >> i & 1)
            if slot < n and kept:
                total += k if u >> 127 else -k
        return total


class Skellam:
    def __init__(self, variance, granule, honest):
        half = variance / honest / 2
        self.first, self.half = poisson(Decimal(half.numerator) / Decimal(half.denominator))
        self.granule = granule

    def draw(self, stream):
        one = pick(self.half, stream.uniform())
        value = (one - pick(self.half, stream.uniform())) * self.granule
        if self.granule > 1:
            value += stream.uniform() * self.granule // FULL - self.granule // 2
        return value


def least_scale(variance):
    root = isqrt(variance)
    pairs = [(root, root), (root + 1, root), (root + 1, root + 1)]
    return next((t, m) for t, m in pairs if t * m >= variance)


class Gaussian:
    def __init__(self, variance):
        t, self.m = least_scale(variance)
        size = next(i for i in range(200) if Fraction(1 << i, t) >= 80)
        self.magnitude = [logistic(Fraction(1 << i, t)) for i in range(size)]
        twice = 2 * t * self.m
        self.lowest = max(0, twice.bit_length() - 136)
        self.keep = [chance(Fraction(1 << i, twice)) for i in range(self.lowest, 2 * size)]
        self.attempts = 132 if t < 8 else 66

    def draw(self, stream):
        drawn = None
        for _ in range(self.attempts):
            size = sum((stream.uniform() < p) << i for i, p in enumerate(self.magnitude))
            negative = stream.uniform() >> 127 == 0
            kept = size > 0 or not negative
            squared = (size - self.m) ** 2
            for i, threshold in enumerate(self.keep, self.lowest):
                survives = stream.uniform() < threshold
                kept = kept and (survives or not squared >> i & 1)
            if kept and drawn is None:
                drawn = -size if negative else size
        return drawn or 0


def chances():
    cases = [(1, 1), (1, 2), (1, 3), (7, 5), (89, 1), (90, 1), (179, 2), (1, 10**12), (123456789, 10**9),
             (1, 2**100), (64 * 693147180559945309417232, 10**24)]
    return [{"above": str(a), "below": str(b), "chance": f"{chance(Fraction(a, b)) if a < 90 * b else 0:032x}",
             "logistic": f"{logistic(Fraction(a, b)) if a < 90 * b else 0:032x}"} for a, b in cases]


def texts(noise):
    """Numbers as text: they may exceed what readers of JSON keep."""
    return {kind: {name: str(value) for name, value in of.items()} for kind, of in noise.items()}


def share(noise, sampler, honest, seed, count):
    stream = Stream(seed)
    draws = [str(sampler.draw(stream)) for _ in range(count)]
    return {"noise": texts(noise), "honest": honest, "seed": str(seed), "draws": draws, "next": str(stream.word())}


def shares():
    cases = []
    for above, below, honest, count in [(1, 5, 1, 60), (1, 5, 10, 60), (3, 2, 4, 60), (1, 10**6, 3, 40),
                                        (7, 10**15, 100, 60), (50, 1, 2, 20), (1, 2**50, 1000, 60)]:
        noise = {"Laplace": {"above": above, "below": below}}
        cases.append(share(noise, Polya(Fraction(above, below), honest), honest, len(cases), count))
    for above, below, granule, honest in [(50, 3, 1, 10), (1, 1, 1, 1), (4000, 1, 7, 2), (1000, 1, 2**40 + 1, 30)]:
        noise = {"Skellam": {"above": above, "below": below, "granule": granule}}
        sampler = Skellam(Fraction(above, below), granule, honest)
        cases.append(share(noise, sampler, honest, len(cases), 60))
    for variance, honest in [(1, 1), (2, 1), (3, 1), (100, 1), (100, 5), (10**12, 3), (10**30, 1)]:
        noise = {"Gaussian": {"variance": variance}}
        sampler = Gaussian(-(-variance // honest))
        cases.append(share(noise, sampler, honest, len(cases), 8))
    return cases


def coefficients():
    wanted = [*range(0, 70), 100, 365, 999]
    return [{"k": k, "units": f"{comb(2 * k, k) * (1 << 127) // 4**k:032x}"} for k in wanted]


def rounded(value, bits):
    return value + (1 << bits >> 1) >> bits


def running():
    cases = []
    for scale, fraction, fine in [(6 << 96, 2, 96), (1 << 117, 0, 90), (77 << 40, 7, 40), (3, 0, 0)]:
        windows, stream, sampler = 6, Stream(100 + len(cases)), Gaussian(scale * scale)
        b = [comb(2 * k, k) * (1 << 127) // 4**k for k in range(windows)]
        seeds = [sampler.draw(stream) for _ in range(windows)]
        # Each product is rounded down by itself.
        total = [rounded(sum(seeds[i] * b[t - i] >> 127 for i in range(t + 1)), fine) for t in range(windows)]
        shares = [{"t": t, "last": last, "share": str(total[t] - (0 if last is None else total[last]))}
                  for t in range(windows) for last in [None, *range(t)]]
        cases.append({"seed_scale": str(scale), "fraction_bits": fraction, "fine_bits": fine,
                      "seed": str(100 + len(cases)), "windows": windows, "shares": shares})
    return cases


class Keyed:
    """ChaCha20 under a derived key, nonce and counter zero."""

    def __init__(self, key):
        self.cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()

    def uniform(self):
        return int.from_bytes(self.cipher.update(bytes(16)), "little")


def keyed_totals():
    """A controller's shares, from its secret: seeds of each place from a key of its own."""
    cases = []
    for number, (scale, fraction, fine) in enumerate([(6 << 96, 2, 96), (1 << 117, 0, 90)]):
        secret, plan, windows = bytes([17 + number] * 32), bytes([29 + number] * 32), 5
        sampler = Gaussian(scale * scale)
        keys = [reference.derive(secret, "alpheus/noise/seed/v1", [plan, place.to_bytes(4, "big")], 32)
                for place in range(windows)]
        seeds = [sampler.draw(Keyed(key)) for key in keys]
        b = [comb(2 * k, k) * (1 << 127) // 4**k for k in range(windows)]
        total = [rounded(sum(seeds[i] * b[t - i] >> 127 for i in range(t + 1)), fine) for t in range(windows)]
        sent = [(0, None), (1, 0), (4, 1), (2, None)]
        cases.append({"secret": secret.hex(), "plan": plan.hex(), "windows": windows, "seed_scale": str(scale),
                      "fraction_bits": fraction, "fine_bits": fine,
                      "shares": [{"place": t, "last": last, "share": str(total[t] - (0 if last is None else total[last]))}
                                 for t, last in sent]})
    return cases


def bad():
    laplace = lambda a, b: {"Laplace": {"above": a, "below": b}}  # noqa: E731
    skellam = lambda a, b, g: {"Skellam": {"above": a, "below": b, "granule": g}}  # noqa: E731
    gaussian = lambda v: {"Gaussian": {"variance": v}}  # noqa: E731
    cases = [
        (laplace(0, 1), 1, "Zero"), (laplace(1, 0), 1, "Zero"), (laplace(1, 2**60), 1, "TooWide"),
        (skellam(0, 1, 1), 1, "Zero"), (skellam(1, 0, 1), 1, "Zero"), (skellam(1, 1, 2), 1, "Zero"),
        (skellam(1, 1, 0), 1, "Zero"), (skellam(2**23, 1, 1), 1, "TooWide"),
        (gaussian(0), 1, "Zero"), (gaussian(15), 2, "TooNarrow"), (gaussian(75), 5, "TooNarrow"),
    ]
    return [{"noise": texts(noise), "honest": honest, "error": error} for noise, honest, error in cases]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    files = {"chances": chances, "shares": shares, "shares_bad_noise": bad, "coefficients": coefficients,
             "running": running, "keyed_totals": keyed_totals}
    for name, make in files.items():
        lines = ",\n".join(json.dumps(case, sort_keys=True) for case in make())
        (OUT / f"{name}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
