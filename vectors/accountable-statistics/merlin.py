"""Merlin transcripts over STROBE-128 and Keccak-f[1600], written from FIPS 202, the
STROBE specification (v1.0.2) and merlin.cool. For vectors only."""

import hashlib

MASK = (1 << 64) - 1
ROUNDS = [
    0x0000000000000001, 0x0000000000008082, 0x800000000000808A, 0x8000000080008000,
    0x000000000000808B, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
    0x000000000000008A, 0x0000000000000088, 0x0000000080008009, 0x000000008000000A,
    0x000000008000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003,
    0x8000000000008002, 0x8000000000000080, 0x000000000000800A, 0x800000008000000A,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
]


def rotate(word, by):
    by %= 64
    return (word << by | word >> (64 - by)) & MASK if by else word


def keccak(state):
    lanes = [int.from_bytes(state[8 * i : 8 * i + 8], "little") for i in range(25)]
    a = [[lanes[x + 5 * y] for y in range(5)] for x in range(5)]
    for constant in ROUNDS:
        c = [a[x][0] ^ a[x][1] ^ a[x][2] ^ a[x][3] ^ a[x][4] for x in range(5)]
        d = [c[(x - 1) % 5] ^ rotate(c[(x + 1) % 5], 1) for x in range(5)]
        a = [[a[x][y] ^ d[x] for y in range(5)] for x in range(5)]
        x, y, current = 1, 0, a[1][0]
        for t in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            current, a[x][y] = a[x][y], rotate(current, (t + 1) * (t + 2) // 2)
        for y in range(5):
            row = [a[x][y] for x in range(5)]
            for x in range(5):
                a[x][y] = row[x] ^ (~row[(x + 1) % 5] & MASK & row[(x + 2) % 5])
        a[0][0] ^= constant
    return bytearray(b"".join(a[i % 5][i // 5].to_bytes(8, "little") for i in range(25)))


RATE = 166
META, ASSOCIATED, PRF = 16 | 2, 2, 1 | 2 | 4


class Strobe:
    def __init__(self, label):
        state = bytearray(200)
        state[:6] = bytes([1, RATE + 2, 1, 0, 1, 96])
        state[6:18] = b"STROBEv1.0.2"
        self.state, self.at, self.began = keccak(state), 0, 0
        self.operate(META, label)

    def permute(self):
        self.state[self.at] ^= self.began
        self.state[self.at + 1] ^= 4
        self.state[RATE + 1] ^= 0x80
        self.state, self.at, self.began = keccak(self.state), 0, 0

    def step(self):
        self.at += 1
        if self.at == RATE:
            self.permute()

    def absorb(self, data):
        for byte in data:
            self.state[self.at] ^= byte
            self.step()

    def operate(self, flags, data, more=False):
        if not more:
            began, self.began = self.began, self.at + 1
            self.absorb(bytes([began, flags]))
        self.absorb(data)

    def squeeze(self, count):
        self.operate(PRF, b"")
        if self.at:
            self.permute()
        out = bytearray()
        for _ in range(count):
            out.append(self.state[self.at])
            self.state[self.at] = 0
            self.step()
        return bytes(out)


class Transcript:
    def __init__(self, label):
        self.strobe = Strobe(b"Merlin v1.0")
        self.append(b"dom-sep", label)

    def append(self, label, message):
        self.strobe.operate(META, label)
        self.strobe.operate(META, len(message).to_bytes(4, "little"), more=True)
        self.strobe.operate(ASSOCIATED, message)

    def challenge(self, label, count):
        self.strobe.operate(META, label)
        self.strobe.operate(META, count.to_bytes(4, "little"), more=True)
        return self.strobe.squeeze(count)


def known_answers():
    """SHA3-256 by this permutation, and Merlin's own simple test."""
    state, message = bytearray(200), b"abc\x06"
    for i, byte in enumerate(message):
        state[i] ^= byte
    state[135] ^= 0x80
    assert bytes(keccak(state)[:32]) == hashlib.sha3_256(b"abc").digest()
    transcript = Transcript(b"test protocol")
    transcript.append(b"some label", b"some data")
    assert transcript.challenge(b"challenge", 32).hex() == (
        "d5a21972d0d5fe320c0d263fac7fffb8145aa640af6e9bca177c03c7efcf0615")


known_answers()
