"""Masks and their parameters: python3 generate.py TARGET."""

import hashlib
import math
import sys
from fractions import Fraction
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

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
        for top, bottom, c in ((0, 1, 8), (1, 3, 0), (1, 3, 8), (1, 2, 1), (1, 1, 8)):
            t = 0 if n == 1 or top == 0 else min(n - 1, max(1, n * top // bottom, c))
            for members in sorted({1, n // 2 + 1, n - 1, n}):
                spared = max(1 if n >= 4 else 0, members // 5)
                least = max((n + t) // 2 + 1, members - spared)
                cases.append({"controllers": n, "alpha": [top, bottom], "colluders": c, "tolerated": t,
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


def generation_of(source, number, plan, own, noise):
    """The keys of a generation, from what the first one came from."""
    for _ in range(number):
        source = r.derive(source, "alpheus/generation/next/v1", [], 32)
    secret = r.derive(source, "alpheus/generation/v1", [], 32)
    return {
        "agreement": r.derive(secret, "alpheus/generation/agreement/v1", [plan], 32),
        "own": r.derive(own + secret, "alpheus/mask/own/v2", [plan], 16),
        "noise": r.derive(noise + secret, "alpheus/noise/generation/v1", [plan], 32),
    }


def generations():
    """Two controllers of a clique, in generations of their own."""
    plan, window, cases = fixed("mask plan"), 5, []
    membership = fixed("membership of a generation")
    start = (window * WINDOW).to_bytes(8, "big")
    mask = r.labelled_hash("alpheus/mask/v1", [plan, start, membership])
    for numbers in [(0, 0), (1, 0), (2, 3)]:
        sources = [fixed(f"source {p}") for p in (0, 1)]
        own, noise = [fixed(f"own {p}") for p in (0, 1)], [fixed(f"noise {p}") for p in (0, 1)]
        held = [generation_of(sources[p], numbers[p], plan, own[p], noise[p]) for p in (0, 1)]
        privates = [X25519PrivateKey.from_private_bytes(h["agreement"]) for h in held]
        publics = [key.public_key().public_bytes_raw() for key in privates]
        shared = privates[0].exchange(X25519PublicKey.from_public_bytes(publics[1]))
        both = r.derive(shared, "alpheus/agreement/v1", sorted(publics), 32)
        life = r.derive(agreed(0, 1), "alpheus/mask/pair/v1", [], 16)
        pair = r.derive(life + both, "alpheus/mask/pair/v2", [], 16)
        tokens = []
        for p, sign in ((0, 1), (1, -1)):
            token = add(r.mask_pad(held[p]["own"], mask, WORDS), r.mask_pad(pair, mask, WORDS), sign)
            tokens.append([r.hexadecimal(word) for word in token])
        cases.append({
            "plan": plan.hex(), "window_size": WINDOW, "window": window, "membership": membership.hex(),
            "agreed": agreed(0, 1).hex(), "numbers": list(numbers),
            "sources": [s.hex() for s in sources], "own": [s.hex() for s in own],
            "noise": [s.hex() for s in noise], "publics": [key.hex() for key in publics],
            "noise_keys": [h["noise"].hex() for h in held], "tokens": tokens,
        })
    write("generations.json", cases)


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


def ln_comb(n, k):
    if k < 0 or k > n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def ln_sum(terms):
    top = max(terms, default=-math.inf)
    return top if top == -math.inf else top + math.log(math.fsum(math.exp(t - top) for t in terms))


ROSTERS = 8192


def needed_picks(picks):
    return -(-4 * picks // 5)


def drawn(n, good, picks, counts):
    """Exactly: so many m-subsets of n hold a number of the good ones that is in counts."""
    return sum(math.comb(good, i) * math.comb(n - good, picks - i) for i in counts if i <= picks)


def alone(n, t, picks):
    """F_alone, exactly."""
    others, honest = n - 1, n - t
    total = math.comb(others, picks)
    return sum(
        math.comb(honest, a)
        * Fraction(drawn(others, t + a - 1, picks, range(needed_picks(picks), picks + 1)), total) ** a
        for a in range(1, honest // 4 + 1))


def cut_off(n, t, picks, r):
    """F_cut, exactly."""
    others, honest = n - 1, n - t
    total, spare = math.comb(others, picks), picks - needed_picks(picks)
    most, sums = n - ((n + t) // 2 + 1 + r), Fraction(0)
    for b in range(r + 1, honest):
        for x in range(0, most + 1):
            a = honest - b - x
            if a > honest // 4:
                ways = drawn(others - b, x, picks, range(0, spare + 1))
                sums += math.comb(honest, b) * math.comb(honest - b, x) * Fraction(ways, total) ** a
    return sums


def ln_alone(n, t, picks):
    others, honest, terms = n - 1, n - t, []
    for a in range(1, honest // 4 + 1):
        good = t + a - 1
        enough = ln_sum([ln_comb(good, i) + ln_comb(others - good, picks - i)
                         for i in range(needed_picks(picks), picks + 1)]) - ln_comb(others, picks)
        terms.append(ln_comb(honest, a) + a * enough)
        if a > 20 and terms[-1] < terms[0] - 80:
            break  # what follows is smaller yet, by more each time
    return ln_sum(terms)


def ln_cut(n, t, picks, r, most=None, both=False):
    """ln F_cut by its first three b, each far below the one before; `both` as the design counts it."""
    others, honest, terms = n - 1, n - t, []
    spare, total = picks - needed_picks(picks), ln_comb(n - 1, picks)
    most = n - ((n + t) // 2 + 1 + r) if most is None else most
    for b in range(r + 1, r + 4):
        for x in range(0, most + 1):
            a = honest - b - x
            if a <= honest // 4:
                continue
            one = ln_sum([ln_comb(x, i) + ln_comb(others - b - x, picks - i)
                          for i in range(0, spare + 1)]) - total
            back = b * (ln_comb(others - a, picks) - total) if both else 0
            terms.append(ln_comb(honest, b) + ln_comb(honest - b, x) + a * one + back)
    return ln_sum(terms)


def cuts():
    """Both sums of the bound, exactly for small rosters, and the least m and r of large ones."""
    cases = []
    for n, t, picks, r in ((5, 1, 2, 0), (9, 0, 4, 0), (12, 4, 7, 1), (20, 6, 9, 0), (24, 8, 11, 2),
                           (30, 0, 9, 1), (40, 13, 19, 1), (64, 21, 30, 2)):
        small, large = alone(n, t, picks), cut_off(n, t, picks, r)
        shown = lambda f: None if f == 0 else round(math.log(f.numerator) - math.log(f.denominator), 9)  # noqa: E731
        cases.append({"controllers": n, "tolerated": t, "picks": picks, "cut_off": r,
                      "ln_alone": shown(small), "ln_cut_off": shown(large)})
    write("cuts.json", cases)
    half = -9 * math.log(10) - math.log(2 * ROSTERS)
    least = []
    for n, t in ((501, 167), (501, 250), (1000, 333), (10_000, 3333), (10_000, 5000)):
        picks = next(m for m in range(10, 400) if ln_alone(n, t, m) <= half)
        low, high = 0, (n - t) // 16
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if ln_cut(n, t, picks, middle) <= half else (middle + 1, high)
        least.append({"controllers": n, "tolerated": t, "picks": picks, "cut_off": low})
    write("cuts_least.json", least)
    # The design's own figures: drops of a tenth at most, edges of both directions.
    assert ln_alone(10_000, 3333, 79) <= half and ln_alone(10_000, 5000, 184) <= half
    assert ln_cut(10_000, 3333, 79, 26, most=1000, both=True) <= half
    assert ln_cut(10_000, 3333, 79, 25, most=1000, both=True) > half


def picks_of(secret, n, p, picks):
    roster = b"".join(fixed(f"controller {q}") for q in range(n))
    digest = r.labelled_hash("alpheus/mask/roster/v1", [picks.to_bytes(4, "big"), roster])
    key = r.derive(secret, "alpheus/mask/picks/v1", [digest], 16)
    others, found, block = [q for q in range(n) if q != p], set(), 0
    while len(found) < min(picks, len(others)):
        number = int.from_bytes(r.aes(key, block.to_bytes(16, "big"))[:8], "big")
        found.add(others[number * len(others) >> 64])
        block += 1
    return digest, sorted(found)


def picks():
    cases = []
    for n, p, wanted in ((2, 0, 1), (9, 4, 8), (100, 0, 20), (100, 99, 20), (10_000, 5000, 78)):
        digest, found = picks_of(fixed(f"own {p}"), n, p, wanted)
        cases.append({"controllers": n, "controller": p, "wanted": wanted, "secret": fixed(f"own {p}").hex(),
                      "ids": [fixed(f"controller {q}").hex() for q in range(n)] if n <= 100 else None,
                      "roster": digest.hex(), "picks": found})
    write("picks.json", cases)
    write("picks_bad.json", [
        {"controllers": 5, "controller": 1, "wanted": 3, "picks": bad}
        for bad in ([0, 2], [0, 2, 3, 4], [0, 0, 2], [2, 0, 3], [0, 1, 2], [0, 2, 5])
    ])


def leaves():
    presence = fixed("presence")
    write("leaves.json", [
        {"presence": presence.hex(), "pickers": pickers,
         "inner": (presence if pickers is None else r.labelled_hash(
             "alpheus/mask/pickers/v1", [presence, b"".join(q.to_bytes(4, "big") for q in pickers)])).hex()}
        for pickers in (None, [], [3], [0, 7, 70_000])
    ])


parameters()
quorums()
sets()
masks()
generations()
refusals()
cuts()
picks()
leaves()
