"""ristretto255 (RFC 9496) on Python's integers, written from the RFC. Slow, and
in no constant time: for vectors only."""

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


def is_negative(x):
    return x % P % 2 == 1


def absolute(x):
    return -x % P if is_negative(x) else x % P


def sqrt_ratio(u, v):
    """(whether u/v is a square, the non-negative root of u/v or of i·u/v)."""
    r = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * r * r % P
    flipped = check == -u % P
    if flipped or check == -u * SQRT_M1 % P:
        r = r * SQRT_M1 % P
    return check == u % P or flipped, absolute(r)


INVSQRT_A_MINUS_D = sqrt_ratio(1, -1 - D)[1]
SQRT_AD_MINUS_ONE = sqrt_ratio(-D - 1, 1)[1]
if SQRT_AD_MINUS_ONE != 25063068953384623474111414158702152701244531502492656460079210482610430750235:
    SQRT_AD_MINUS_ONE = -SQRT_AD_MINUS_ONE % P


class Point:
    """Extended coordinates on the Edwards curve; equal as ristretto elements."""

    def __init__(self, x, y, z=1, t=None):
        self.x, self.y, self.z = x % P, y % P, z % P
        self.t = x * y % P if t is None else t % P
        self.doubles = [self]

    def __add__(self, other):
        a = (self.y - self.x) * (other.y - other.x)
        b = (self.y + self.x) * (other.y + other.x)
        c = 2 * D * self.t * other.t
        d = 2 * self.z * other.z
        e, f, g, h = b - a, d - c, d + c, b + a
        return Point(e * f, g * h, f * g, e * h)

    def __neg__(self):
        return Point(-self.x, self.y, self.z, -self.t)

    def __sub__(self, other):
        return self + -other

    def double(self):
        a, b, c = self.x * self.x, self.y * self.y, 2 * self.z * self.z
        e, g, h = (self.x + self.y) ** 2 - a - b, b - a, -a - b
        f = g - c
        return Point(e * f, g * h, f * g, e * h)

    def __rmul__(self, k):
        """By k's signed digits, of which two in three are zero, over doubles that are kept."""
        total, place, k = Point(0, 1), 0, k % ORDER
        while k:
            while len(self.doubles) <= place:
                self.doubles.append(self.doubles[-1].double())
            if k & 1:
                digit = 2 - k % 4
                base = self.doubles[place]
                total, k = total + (base if digit == 1 else -base), k - digit
            place, k = place + 1, k >> 1
        return total

    def __eq__(self, other):
        return (self.x * other.y - self.y * other.x) % P == 0 or (
            self.x * other.x - self.y * other.y
        ) % P == 0

    def encode(self):
        u1 = (self.z + self.y) * (self.z - self.y) % P
        u2 = self.x * self.y % P
        invsqrt = sqrt_ratio(1, u1 * u2 * u2)[1]
        den1, den2 = invsqrt * u1 % P, invsqrt * u2 % P
        z_inv = den1 * den2 * self.t % P
        if is_negative(self.t * z_inv):
            x, y, den = self.y * SQRT_M1 % P, self.x * SQRT_M1 % P, den1 * INVSQRT_A_MINUS_D % P
        else:
            x, y, den = self.x, self.y, den2
        if is_negative(x * z_inv):
            y = -y % P
        return absolute(den * (self.z - y)).to_bytes(32, "little")


def decode(data):
    s = int.from_bytes(data, "little")
    if s >= P or is_negative(s):
        raise ValueError("not canonical")
    ss = s * s % P
    u1, u2 = (1 - ss) % P, (1 + ss) % P
    v = (-D * u1 * u1 - u2 * u2) % P
    square, invsqrt = sqrt_ratio(1, v * u2 * u2)
    den_x = invsqrt * u2 % P
    x = absolute(2 * s * den_x)
    y = u1 * invsqrt * den_x * v % P
    if not square or is_negative(x * y) or y == 0:
        raise ValueError("no element")
    return Point(x, y)


def elligator(r0):
    r = SQRT_M1 * r0 * r0 % P
    u = (r + 1) * (1 - D * D) % P
    v = (-1 - r * D) * (r + D) % P
    square, s = sqrt_ratio(u, v)
    c = -1
    if not square:
        s, c = -absolute(s * r0) % P, r
    n = (c * (r - 1) * (D - 1) * (D - 1) - v) % P
    w0, w1 = 2 * s * v, n * SQRT_AD_MINUS_ONE
    w2, w3 = 1 - s * s, 1 + s * s
    return Point(w0 * w3, w2 * w1, w1 * w3, w0 * w2)


def from_uniform(data):
    """The one-way map of RFC 9496 §4.3.4."""
    halves = (data[:32], data[32:])
    a, b = (int.from_bytes(h, "little") % 2**255 for h in halves)
    return elligator(a % P) + elligator(b % P)


IDENTITY = Point(0, 1)
BASE = decode(bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"))


def known_answers():
    """From RFC 9496, appendix A: this file is right before it judges another."""
    multiples = {2: "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
                 5: "e882b131016b52c1d3337080187cf768423efccbb517bb495ab812c4160ff44e",
                 15: "e0c418f7c8d9c4cdd7395b93ea124f3ad99021bb681dfc3302a9d99a2e53e64e"}
    for k, text in multiples.items():
        assert (k * BASE).encode().hex() == text, k
    assert (0 * BASE).encode() == bytes(32)
    uniform = bytes.fromhex("5d1be09e3d0c82fc538112490e35701979d99e06ca3e2b5b54bffe8b4dc772c1"
                            "4d98b696a1bbfb5ca32c436cc61c16563790306c79eaca7705668b47dffe5bb6")
    assert from_uniform(uniform).encode().hex() == (
        "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46")


known_answers()
