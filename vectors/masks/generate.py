"""Masks and their parameters: python3 generate.py TARGET."""

import hashlib
import math
import sys
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reference as r  # noqa: E402

TARGET = sys.argv[1]
WINDOW = 10_000_000
CONTROLLERS = 7
WORDS = 3


def fixed(name, length=32):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(f"alpheus vectors {name}".encode()).digest(length)


def write(name, vector):
    r.write(TARGET, name, vector)


def failure_bound(bits, honest):
    """F(b), exactly: W times the sum over every way to cut the graph in two."""
    absent = 1 - Fraction(1, 2**bits)
    cuts = (math.comb(honest, j) * absent ** (j * (honest - j)) for j in range(1, honest // 2 + 1))
    return (128 // bits) * 2**bits * sum(cuts)


def ln_failure_bound(bits, honest):
    """The same in logarithms, where exact numbers would have millions of digits."""
    ln_absent = math.log1p(-(2.0**-bits))
    terms = [
        math.lgamma(honest + 1) - math.lgamma(j + 1) - math.lgamma(honest - j + 1)
        + j * (honest - j) * ln_absent
        for j in range(1, honest // 2 + 1)
    ]
    top = max(terms)
    return math.log((128 // bits) * 2**bits) + top + math.log(sum(math.exp(t - top) for t in terms))


def exceeds(bits, honest, exponent):
    if honest <= 120:
        return failure_bound(bits, honest) > Fraction(1, 10**exponent)
    return ln_failure_bound(bits, honest) > -exponent * math.log(10)


def largest_b(honest, exponent):
    if honest <= 1 or exceeds(1, honest, exponent):
        return None
    bits = 1
    while not exceeds(bits + 1, honest, exponent):
        bits += 1
    return bits


def parameters():
    cases = [(5000, 9), (104, 9), (200, 9), (0, 7), (1, 7), (2, 1), (37, 7), (38, 7), (44, 9), (45, 9)]
    cases += [(n // 2, 7) for n in (100, 200, 500, 1000, 2000, 5000, 100_000)]
    write("parameters.json", [
        {"honest": honest, "delta_exponent": exponent, "bits": bits,
         "rounds": bits and (128 // bits) * 2**bits}
        for honest, exponent in cases
        for bits in [largest_b(honest, exponent)]
    ])


def quorums():
    cases = []
    for n in (1, 2, 3, 4, 5, 14, 30, 100, 207):
        for top, bottom in ((0, 1), (1, 3), (1, 2)):
            t = 0 if n == 1 or top == 0 else max(1, n * top // bottom)
            for members in sorted({1, n // 2 + 1, n - 1, n}):
                spared = max(1 if n >= 4 else 0, members // 5)
                least = max((n + t) // 2 + 1, members - spared)
                cases.append({"controllers": n, "alpha": [top, bottom], "tolerated": t,
                              "members": members, "dropout": [1, 5], "least": least})
    write("quorum.json", cases)
    cases = []
    for own, others, t, n, trust in (
        (1, [1] * 13, 4, 14, False), (1, [1] * 12, 4, 14, False), (1, [10**6, 1, 1, 2], 1, 5, False),
        (3, [900, 800], 2, 3, False), (7, [5], 1, 2, False), (7, [5], 1, 2, True),
        (7, [5], 0, 2, False), (4, [], 0, 1, False), (0, [3, 9, 9], 1, 4, False),
    ):
        kept = sorted(others)[: max(0, len(others) - t)]
        counted = own + sum(kept)
        if n == 2 and t > 0:
            counted = own + (sum(others) if trust else 0)
        cases.append({"own": own, "others": others, "tolerated": t, "controllers": n,
                      "trust": trust, "counted": counted})
    write("population.json", cases)


def varint(number):
    out = b""
    while number >= 128:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def set_bytes(roster, members):
    bitmap = bytearray((roster + 7) // 8)
    for member in members:
        bitmap[member // 8] |= 1 << (member % 8)
    return varint(roster) + varint(len(bitmap)) + bytes(bitmap)


def sets():
    cases = [(0, []), (1, [0]), (8, [0, 7]), (9, [8]), (64, [63]), (65, [0, 64]), (200, list(range(0, 200, 7)))]
    write("roster_set.json", [
        {"roster": roster, "members": members, "bytes": set_bytes(roster, members).hex()}
        for roster, members in cases
    ])
    write("roster_set_bad_beyond_roster.json", [{"bytes": (varint(9) + varint(2) + b"\x00\x02").hex()}])
    write("roster_set_bad_length.json", [
        {"bytes": (varint(8) + varint(2) + b"\x00\x00").hex()},
        {"bytes": (varint(9) + varint(1) + b"\x00").hex()},
        {"bytes": (varint(2**32 - 1) + varint(0)).hex()},
    ])


def agreed(p, q):
    return fixed(f"agreed {min(p, q)} {max(p, q)}")


def edge(strategy, bits, plan, window, p, q):
    """Whether p and q share a mask in the round of this window number."""
    if strategy == "clique":
        return True
    key = r.derive(agreed(p, q), "alpheus/mask/graph/v1", [], 16)
    rounds = (128 // bits) * 2**bits
    number = window if strategy == "dream" else window // rounds
    parts = [strategy.encode(), plan, bytes([bits]), number.to_bytes(8, "big")]
    drawn = r.aes(key, r.labelled_hash("alpheus/mask/round/v1", parts)[:16])
    drawn = f"{int.from_bytes(drawn, 'big'):0128b}"
    if strategy == "dream":
        return drawn[:bits] == "0" * bits
    segment, graph = divmod(window % rounds, 2**bits)
    return int(drawn[segment * bits : (segment + 1) * bits], 2) == graph


def add(words, pad, sign):
    return [(w + sign * p) % 2**64 for w, p in zip(words, pad)]


def controller(p, case, plan):
    """N(p), T_p and o_p as the equations have them."""
    start = (case["window"] * WINDOW).to_bytes(8, "big")
    mask = r.labelled_hash("alpheus/mask/v1", [plan, start, bytes.fromhex(case["membership"])])
    opening = r.labelled_hash("alpheus/open/v1", [mask, bytes.fromhex(case["opening"])])
    neighbours = [q for q in range(CONTROLLERS)
                  if q != p and edge(case["strategy"], case["bits"], plan, case["window"], p, q)]
    own = r.derive(fixed(f"own {p}"), "alpheus/mask/own/v1", [plan], 16)
    own = r.mask_pad(own, mask, WORDS)
    token, opens = add([int(w, 16) for w in case["tau"][p]], own, 1), own
    for q in (q for q in neighbours if q in case["members"]):
        key, sign = r.derive(agreed(p, q), "alpheus/mask/pair/v1", [], 16), 1 if p < q else -1
        token = add(token, r.mask_pad(key, mask, WORDS), sign)
        opens = add(opens, r.mask_pad(key, opening if q in case["opened"] else mask, WORDS), sign)
    return neighbours, token, opens


def masks():
    plan, cases = fixed("mask plan"), []
    strategies = [("clique", 0, 5), ("dream", 1, 5), ("dream", 2, 170_000_000), ("epoch", 1, 5),
                  ("epoch", 1, 255), ("epoch", 1, 256), ("epoch", 3, 336), ("epoch", 3, 170_000_123)]
    for strategy, bits, window in strategies:
        case = {
            "strategy": strategy, "bits": bits, "plan": plan.hex(), "window_size": WINDOW,
            "window": window, "members": [0, 1, 2, 4, 5, 6], "opened": [0, 2, 4, 5],
            "membership": fixed(f"membership {window}").hex(), "opening": fixed(f"opening {window}").hex(),
            "agreed": [[agreed(p, q).hex() for q in range(CONTROLLERS) if q != p] for p in range(CONTROLLERS)],
            "own": [fixed(f"own {p}").hex() for p in range(CONTROLLERS)],
            "tau": [[r.hexadecimal(w) for w in r.words_of(fixed(f"tau {p}", 8 * WORDS))]
                    for p in range(CONTROLLERS)],
        }
        answers = [controller(p, case, plan) for p in range(CONTROLLERS)]
        shown = lambda words: [r.hexadecimal(w) for w in words]  # noqa: E731
        case["neighbours"] = [neighbours for neighbours, _, _ in answers]
        case["tokens"] = {str(p): shown(answers[p][1]) for p in case["members"]}
        case["openings"] = {str(p): shown(answers[p][2]) for p in case["opened"]}
        cases.append(case)
    write("masks.json", cases)


def refusals():
    everyone, rest = list(range(CONTROLLERS)), list(range(1, CONTROLLERS))
    cases = {
        "not_a_member": ("NotAMember", 0, rest, rest, CONTROLLERS),
        "not_opened": ("NotOpened", 0, everyone, rest, CONTROLLERS),
        "not_a_subset": ("NotASubset", 1, rest, everyone, CONTROLLERS),
        "alone_in_membership": ("Isolated", 3, [3], [3], CONTROLLERS),
        "alone_in_opening": ("Isolated", 3, everyone, [3], CONTROLLERS),
        "other_roster": ("OtherRoster", 1, everyone, everyone, CONTROLLERS + 1),
    }
    for name, (error, p, members, opened, roster) in cases.items():
        write(f"opening_bad_{name}.json", [{"error": error, "controller": p, "members": members,
                                            "opened": opened, "roster": roster}])


parameters()
quorums()
sets()
masks()
refusals()
