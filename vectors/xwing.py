"""ML-KEM-768 (FIPS 203) and X-Wing (draft-connolly-cfrg-xwing-kem): keys and encapsulation, for known answers alone."""

import hashlib

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

Q, N, K = 3329, 256, 3
DU, DV = 10, 4


def _reversed(i):
    return int(f"{i:07b}"[::-1], 2)


ZETAS = [pow(17, _reversed(i), Q) for i in range(128)]
GAMMAS = [pow(17, 2 * _reversed(i) + 1, Q) for i in range(128)]


def _ntt(f):
    f, i, length = list(f), 1, 128
    while length >= 2:
        for start in range(0, N, 2 * length):
            for j in range(start, start + length):
                t = ZETAS[i] * f[j + length]
                f[j], f[j + length] = (f[j] + t) % Q, (f[j] - t) % Q
            i += 1
        length //= 2
    return f


def _inverse(f):
    f, i, length = list(f), 127, 2
    while length <= 128:
        for start in range(0, N, 2 * length):
            for j in range(start, start + length):
                f[j], f[j + length] = (f[j] + f[j + length]) % Q, ZETAS[i] * (f[j + length] - f[j]) % Q
            i -= 1
        length *= 2
    return [x * 3303 % Q for x in f]


def _product(f, g):
    h = []
    for i in range(128):
        (a, b), (c, d) = f[2 * i : 2 * i + 2], g[2 * i : 2 * i + 2]
        h += [(a * c + b * d * GAMMAS[i]) % Q, (a * d + b * c) % Q]
    return h


def _sum(*polynomials):
    return [sum(values) % Q for values in zip(*polynomials)]


def _uniform(rho, i, j):
    """An entry of the matrix, by rejection."""
    stream, values, at = hashlib.shake_128(rho + bytes([j, i])).digest(3 * N * 4), [], 0
    while len(values) < N:
        a, b, c = stream[at : at + 3]
        at += 3
        values += [d for d in (a + 256 * (b % 16), b // 16 + 16 * c) if d < Q]
    return values[:N]


def _binomial(key, number):
    stream = int.from_bytes(hashlib.shake_256(key + bytes([number])).digest(128), "little")
    bit = lambda i: stream >> i & 1  # noqa: E731
    return [(bit(4 * i) + bit(4 * i + 1) - bit(4 * i + 2) - bit(4 * i + 3)) % Q for i in range(N)]


def _packed(values, bits):
    return sum(v << (bits * i) for i, v in enumerate(values)).to_bytes(bits * N // 8, "little")


def _unpacked(data, bits):
    number = int.from_bytes(data, "little")
    return [number >> (bits * i) & ((1 << bits) - 1) for i in range(N)]


def _compressed(values, bits):
    return [((x << bits) + Q // 2) // Q % (1 << bits) for x in values]


def _matrix(rho):
    return [[_uniform(rho, i, j) for j in range(K)] for i in range(K)]


def kem_public(d):
    """K-PKE.KeyGen: the encapsulation key."""
    seed = hashlib.sha3_512(d + bytes([K])).digest()
    rho, sigma = seed[:32], seed[32:]
    s = [_ntt(_binomial(sigma, i)) for i in range(K)]
    e = [_ntt(_binomial(sigma, K + i)) for i in range(K)]
    t = [_sum(*(_product(a, x) for a, x in zip(row, s)), e[i]) for i, row in enumerate(_matrix(rho))]
    return b"".join(_packed(x, 12) for x in t) + rho


def kem_encapsulate(public, m):
    """ML-KEM.Encaps_internal: the shared secret and the ciphertext."""
    seed = hashlib.sha3_512(m + hashlib.sha3_256(public).digest()).digest()
    secret, r = seed[:32], seed[32:]
    t = [_unpacked(public[384 * i : 384 * i + 384], 12) for i in range(K)]
    a = _matrix(public[384 * K :])
    y = [_ntt(_binomial(r, i)) for i in range(K)]
    u = [_sum(_inverse(_sum(*(_product(a[j][i], y[j]) for j in range(K)))), _binomial(r, K + i)) for i in range(K)]
    bits = int.from_bytes(m, "little")
    message = [(Q + 1) // 2 * (bits >> i & 1) for i in range(N)]
    v = _sum(_inverse(_sum(*(_product(x, z) for x, z in zip(t, y)))), _binomial(r, 2 * K), message)
    parts = [_packed(_compressed(x, DU), DU) for x in u] + [_packed(_compressed(v, DV), DV)]
    return secret, b"".join(parts)


def public_key(seed):
    """X-Wing's public key of 32 bytes."""
    expanded = hashlib.shake_256(seed).digest(96)
    x25519 = X25519PrivateKey.from_private_bytes(expanded[64:]).public_key().public_bytes_raw()
    return kem_public(expanded[:32]) + x25519


def encapsulate(public, randomness):
    """X-Wing's EncapsulateDerand, of 64 bytes: the shared secret and the encapsulated key."""
    ephemeral = X25519PrivateKey.from_private_bytes(randomness[32:])
    point = ephemeral.public_key().public_bytes_raw()
    agreed = ephemeral.exchange(X25519PublicKey.from_public_bytes(public[-32:]))
    secret, ciphertext = kem_encapsulate(public[:-32], randomness[:32])
    label = b"\\./" + b"/^\\"
    shared = hashlib.sha3_256(secret + agreed + point + public[-32:] + label).digest()
    return shared, ciphertext + point
