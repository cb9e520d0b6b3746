"""Known answers of the anonymous board: python3 generate.py TARGET.

Keys and digests from the equations of crates/anonymous-board/docs/protocol.md, rows
with a field that is integers and shifts.
"""

import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import group  # noqa: E402
import parity  # noqa: E402
import reference as r  # noqa: E402

TARGET = sys.argv[1]
TREE, PAYLOAD, HASH = bytes([11] * 16), bytes([22] * 16), bytes([33] * 16)


def draw(what, length):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_128(what.encode()).digest(length)


def xor(*blocks):
    out = bytearray(blocks[0])
    for block in blocks[1:]:
        for i, byte in enumerate(block):
            out[i] ^= byte
    return bytes(out)


def number(value, length=16):
    return value.to_bytes(length, "little")


def mmo(key, block):
    return xor(r.aes(key, block), block)


def children(node):
    seed = bytes([node[0] & 0xFE]) + node[1:]
    return mmo(TREE, seed), mmo(TREE, xor(seed, number(1)))


def stretch(node, blocks):
    seed = bytes([node[0] & 0xFE]) + node[1:]
    return b"".join(mmo(PAYLOAD, xor(seed, number(2 * j))) for j in range(blocks))


def leaf_hash(row, node):
    """g_i times (x + 1), with g_i = X^(32 i) of GF(2^128)."""
    return b"".join(mmo(HASH, xor(node, number((row + 1) << (32 * i)))) for i in range(4))


def straight_hash(row, node):
    """What must not be: the row's number at one place only."""
    return b"".join(mmo(HASH, xor(node, number(row + 1), number(i << 96))) for i in range(4))


def depth_of(rows):
    return (rows - 1).bit_length()


def side_of(seed, side):
    return bytes([(seed[0] & 0xFE) | side]) + seed[1:]


def step(node, word, right):
    """Both corrected children of a node; the word is 16 bytes and the right bit."""
    left, other = children(node)
    if node[0] & 1:
        seed = bytes([word[0] & 0xFE]) + word[1:]
        left = xor(left, seed, number(word[0] & 1))
        other = xor(other, seed, number(right))
    return left, other


def generate(rows, blocks, row, message, roots):
    nodes = [side_of(roots[0], 0), side_of(roots[1], 1)]
    levels = []
    for level in range(depth_of(rows)):
        bit = row >> (depth_of(rows) - 1 - level) & 1
        (l0, r0), (l1, r1) = children(nodes[0]), children(nodes[1])
        lose = xor(l0, l1) if bit else xor(r0, r1)
        left = (l0[0] ^ l1[0] ^ bit ^ 1) & 1
        right = (r0[0] ^ r1[0] ^ bit) & 1
        word = bytes([(lose[0] & 0xFE) | left]) + lose[1:]
        levels.append((word, right))
        nodes = [step(node, word, right)[bit] for node in nodes]
    payload = xor(message, stretch(nodes[0], blocks), stretch(nodes[1], blocks))
    check = xor(leaf_hash(row, nodes[0]), leaf_hash(row, nodes[1]))
    return levels, payload, check


def leaves(rows, levels, root, side):
    nodes = [side_of(root, side)]
    for word, right in levels:
        nodes = [child for node in nodes for child in step(node, word, right)]
    return nodes[:rows]


def table(rows, blocks, key, side):
    levels, payload, _ = key["words"]
    out = b""
    for node in leaves(rows, levels, key["roots"][side], side):
        row = stretch(node, blocks)
        out += xor(row, payload) if node[0] & 1 else row
    return out


def key_words(kappa, count):
    stream = b"".join(r.aes(kappa, number(i)) for i in range((count + 1) // 2))
    return [int.from_bytes(stream[8 * i : 8 * i + 8], "little") for i in range(count)]


def nh(message, key):
    """NH of UMAC with words of 64 bits."""
    words = [int.from_bytes(message[i : i + 8], "little") for i in range(0, len(message), 8)]
    sums = [(word + k) % 2**64 for word, k in zip(words, key)]
    return sum(a * b for a, b in zip(sums[::2], sums[1::2])) % 2**128


def digest(rows, key, side, kappa, hashed=leaf_hash):
    levels, _, check = key["words"]
    message = b""
    for row, node in enumerate(leaves(rows, levels, key["roots"][side], side)):
        whole = hashed(row, node)
        if node[0] & 1:
            whole = xor(whole, check)
        message += whole
    key = key_words(kappa, 8 * rows + 2)
    return number(nh(message, key)) + number(nh(message, key[2:]))


def case(rows, blocks, key, **more):
    levels, payload, check = key["words"]
    return {
        "tree": TREE.hex(), "payload_key": PAYLOAD.hex(), "hash": HASH.hex(),
        "rows": rows, "blocks": blocks, "roots": [root.hex() for root in key["roots"]],
        "levels": [{"seed": word.hex(), "right": right} for word, right in levels],
        "payload": payload.hex(), "check": check.hex(), **more,
    }


def roots_of(name):
    return [bytes([root[0] & 0xFE]) + root[1:] for root in (draw(name + "0", 16), draw(name + "1", 16))]


def honest(name, rows, blocks, row):
    roots = roots_of(name)
    message = draw(name + "message", 16 * blocks)
    return {"roots": roots, "words": generate(rows, blocks, row, message, roots)}, message


def good_keys():
    cases = []
    for rows, blocks, row in [(1, 1, 0), (2, 1, 1), (5, 2, 3), (8, 1, 0), (16, 3, 15), (37, 1, 36)]:
        key, message = honest(f"good {rows} {row}", rows, blocks, row)
        kappa = draw(f"kappa {rows}", 16)
        tables = [table(rows, blocks, key, side) for side in (0, 1)]
        digests = [digest(rows, key, side, kappa) for side in (0, 1)]
        expected = bytearray(16 * blocks * rows)
        expected[16 * blocks * row : 16 * blocks * (row + 1)] = message
        assert xor(*tables) == bytes(expected) and digests[0] == digests[1]
        cases.append(case(rows, blocks, key, row=row, message=message.hex(), kappa=kappa.hex(),
                          tables=[t.hex() for t in tables], digest=digests[0].hex()))
    r.write(TARGET, "key.json", cases)


def bad(name, refusal, rows, blocks, key):
    kappa = draw("kappa " + name, 16)
    more = {}
    if refusal == "audit":
        digests = [digest(rows, key, side, kappa) for side in (0, 1)]
        assert digests[0] != digests[1], name
        more["digests"] = [d.hex() for d in digests]
    r.write(TARGET, f"key_bad_{name}.json",
            [case(rows, blocks, key, kappa=kappa.hex(), refusal=refusal, **more)])


def changed(words, levels=None, payload=None, check=None):
    old = words
    return (old[0] if levels is None else levels, old[1] if payload is None else payload,
            old[2] if check is None else check)


def siblings():
    """Writes rows 2j and 2j + 1, and would pass if H took the row's number at one
    place: each server's leaf at one sibling is the other server's at the other."""
    rows, blocks = 2, 1
    for attempt in range(64):
        seed = roots_of(f"siblings {attempt}")[0]
        left, right = children(seed)
        delta = xor(number(1), number(2))
        # Equal seeds, control bits 0 and 1: the second server's children are corrected.
        word = xor(left, right, delta)
        corrected = [xor(right, delta), xor(left, delta)]
        bits = [(corrected[0][0] ^ left[0]) & 1, (corrected[1][0] ^ right[0]) & 1]
        if bits != [1, 1]:
            continue
        word = bytes([(word[0] & 0xFE) | bits[0]]) + word[1:]
        levels = [(word, bits[1])]
        zeros = bytes(16)
        key = {"roots": [seed, seed], "words": (levels, zeros, bytes(64))}
        pairs = [[leaves(rows, levels, seed, side)[row] for side in (0, 1)] for row in (0, 1)]
        check = xor(straight_hash(0, pairs[0][0]), straight_hash(0, pairs[0][1]))
        key["words"] = (levels, draw("siblings payload", 16), check)
        kappa = draw("kappa siblings", 16)
        naive = [digest(rows, key, side, kappa, straight_hash) for side in (0, 1)]
        assert naive[0] == naive[1], "it would have passed"
        both = xor(table(rows, blocks, key, 0), table(rows, blocks, key, 1))
        assert any(both[:16]) and any(both[16:]), "and writes both rows"
        return rows, blocks, key
    raise AssertionError("no seed with the right bits")


def everything():
    """Equal roots, seed words of zero, all control bits set: one write of every row."""
    rows, blocks = 8, 1
    seed = roots_of("everything")[0]
    levels = [(number(1), 1)] * 3
    nodes = [leaves(rows, levels, seed, side)[0] for side in (0, 1)]
    check = xor(leaf_hash(0, nodes[0]), leaf_hash(0, nodes[1]))
    key = {"roots": [seed, seed], "words": (levels, draw("everything payload", 16), check)}
    both = xor(table(rows, blocks, key, 0), table(rows, blocks, key, 1))
    assert both == key["words"][1] * rows
    return rows, blocks, key


def bad_keys():
    rows, blocks, row = 16, 2, 9
    key, _ = honest("bad", rows, blocks, row)
    words, levels = key["words"], key["words"][0]
    flipped = [(xor(levels[0][0], number(1 << 40)), levels[0][1])] + levels[1:]
    bit = levels[:3] + [(levels[3][0], levels[3][1] ^ 1)]
    bad("seed_word", "audit", rows, blocks, {**key, "words": changed(words, levels=flipped)})
    bad("control_bit", "audit", rows, blocks, {**key, "words": changed(words, levels=bit)})
    wrong = xor(words[2], number(1 << 77, 64))
    bad("check_word", "audit", rows, blocks, {**key, "words": changed(words, check=wrong)})
    swapped = {**key, "roots": [key["roots"][0], draw("other root", 16)]}
    swapped["roots"][1] = bytes([swapped["roots"][1][0] & 0xFE]) + swapped["roots"][1][1:]
    bad("other_root", "audit", rows, blocks, swapped)
    bad("siblings", "audit", *siblings())
    bad("every_row", "audit", *everything())
    bad("zero_check", "zero-check", rows, blocks, {**key, "words": changed(words, check=bytes(64))})
    bad("depth", "depth", rows, blocks, {**key, "words": changed(words, levels=levels[:3])})
    bad("payload", "payload", rows, blocks, {**key, "words": changed(words, payload=words[1][:-1])})
    odd = [xor(key["roots"][0], number(1)), key["roots"][1]]
    bad("root", "root", rows, blocks, {**key, "roots": odd})


DEGREE, MODULUS = 1409, 1 << 1409 | 1 << 194 | 1


def product(a, b):
    out = 0
    while b:
        if b & 1:
            out ^= a
        a, b = a << 1, b >> 1
    while out.bit_length() > DEGREE:
        out ^= MODULUS << (out.bit_length() - DEGREE - 1)
    return out


def content(message, random, length):
    size = -(-(length + 16) // 16) * 16
    out = len(message).to_bytes(2, "big") + message
    out = out.ljust(size - 14, b"\0") + random
    return out + r.labelled_hash("alpheus/board/row/v1", [out])[:6]


def row(message, random, length, recovery):
    m = content(message, random, length)
    if recovery:
        value = int.from_bytes(m, "little")
        m += product(product(value, value), value).to_bytes(177, "little")
    return m.ljust(-(-len(m) // 16) * 16, b"\0")


def rows():
    cases = []
    for length, recovery in [(160, True), (144, False), (7, False), (40, True)]:
        messages = [b"", b"a", draw(f"message {length}", length), "Tady žádný".encode()[:length]]
        encoded = [row(m, draw(f"random {i} {length}", 8), length, recovery)
                   for i, m in enumerate(messages)]
        cases.append({
            "message": length, "recovery": recovery,
            "rows": [{"holds": m.hex(), "row": e.hex(), "random": draw(f"random {i} {length}", 8).hex()}
                     for i, (m, e) in enumerate(zip(messages, encoded))],
            "two": xor(encoded[1], encoded[2]).hex(),
            "three": xor(*encoded[:3]).hex(),
        })
    r.write(TARGET, "row.json", cases)


good_keys()
bad_keys()
rows()
parity.good(sys.modules[__name__], TARGET)
parity.bad(sys.modules[__name__], TARGET)
group.good(sys.modules[__name__], TARGET)
group.bad(sys.modules[__name__], TARGET)
