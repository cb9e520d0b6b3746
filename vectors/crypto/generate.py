"""Known answers of the shared cryptography: python3 generate.py TARGET."""

import hashlib
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reference as r  # noqa: E402
import xwing  # noqa: E402

TARGET = sys.argv[1]
LABEL = "alpheus/vector/v1"
# Group order of Ed25519: s and s + ORDER sign alike where checks are lax.
ORDER = 2**252 + 27742317777372353535851937790883648493


def fixed(name, length=32):
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(f"alpheus vectors {name}".encode()).digest(length)


def write(name, vector):
    r.write(TARGET, name, vector)


def hashes():
    lists = [[], [b""], [b"a", b"bc"], [b"ab", b"c"], [fixed("part", 100), b"", b"\x00"]]
    write("labelled_hash.json", [
        {"label": LABEL, "parts": [p.hex() for p in parts],
         "digest": r.labelled_hash(LABEL, parts).hex()}
        for parts in lists
    ])
    points = [(0, 0), (1, 0), (0, 1), (0x9E3779B97F4A7C15, 5), (2**64 - 1, 2**52 - 1),
              (0x0123456789ABCDEF, 1_700_000_000_000_000)]
    write("link.json", [
        {"session": r.hexadecimal(s), "t": t, "h": r.hexadecimal(r.link(s, t))}
        for s, t in points
    ])


def derivation():
    cases = [(fixed("kdf"), [b"stream", b"\x00" * 8], 16), (b"", [], 32),
             (fixed("kdf", 64), [fixed("kdf part", 200)], 80)]
    write("derive.json", [
        {"secret": secret.hex(), "label": LABEL, "parts": [p.hex() for p in parts],
         "key": r.derive(secret, LABEL, parts, length).hex()}
        for secret, parts, length in cases
    ])


def pads():
    key = fixed("aes", 16)
    # The second crosses 2^64 within a batch, the third wraps around 2^128.
    firsts = [(0, 3), ((7 << 64) | (2**64 - 2), 9), (2**128 - 1, 4), (1 << 100, 300)]
    write("keystream.json", [
        {"key": key.hex(), "first": f"{first:032x}",
         "words": [r.hexadecimal(w) for w in r.keystream(key, first, count)]}
        for first, count in firsts
    ])
    write("mask_pad.json", [
        {"key": key.hex(), "digest": fixed(f"digest {count}", 30).hex(),
         "words": [r.hexadecimal(w) for w in r.mask_pad(key, fixed(f"digest {count}", 30), count)]}
        for count in (1, 2, 7, 300)
    ])


def macs():
    key, parts = fixed("mac"), [b"a", fixed("mac part", 90)]
    good = r.tag(key, LABEL, parts)
    vector = {"key": key.hex(), "label": LABEL, "parts": [p.hex() for p in parts], "tag": good.hex()}
    write("mac.json", [vector])
    error = {"error": "BadTag"}
    flipped = bytes([good[0] ^ 1]) + good[1:]
    write("mac_bad_tag.json", [vector | error | {"tag": flipped.hex()}])
    write("mac_bad_label.json", [vector | error | {"label": "alpheus/other/v1"}])
    write("mac_bad_key.json", [vector | error | {"key": fixed("other mac").hex()}])
    moved = [parts[0] + parts[1][:1], parts[1][1:]]
    write("mac_bad_boundary.json", [vector | error | {"parts": [p.hex() for p in moved]}])


def signatures():
    seed, message = fixed("seed"), b"a message"
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public = private.public_key().public_bytes_raw()
    good = private.sign(r.labelled_hash(LABEL, [message]))
    vector = {"seed": seed.hex(), "public": public.hex(), "label": LABEL,
              "message": message.hex(), "signature": good.hex()}
    write("signature.json", [vector])
    mismatch = vector | {"error": "Mismatch"}
    write("signature_bad_message.json", [mismatch | {"message": b"another".hex()}])
    write("signature_bad_label.json", [mismatch | {"label": "alpheus/other/v1"}])
    s = int.from_bytes(good[32:], "little")
    malleated = good[:32] + (s + ORDER).to_bytes(32, "little")
    write("signature_bad_malleated.json", [mismatch | {"signature": malleated.hex()}])
    small = bytes([1]) + bytes(31)
    # Under the neutral point, R = s = 0 "signs" everything where checks are lax.
    forged = small + bytes(32)
    weak = vector | {"error": "InvalidKey", "public": small.hex(), "signature": forged.hex()}
    write("signature_bad_small_order_key.json", [weak])
    # With the neutral point for R, its own signer makes s = k·a, which the plain equation accepts.
    scalar = bytearray(hashlib.sha512(seed).digest()[:32])
    scalar[0] &= 248
    scalar[31] = scalar[31] & 63 | 64
    digest = r.labelled_hash(LABEL, [message])
    k = int.from_bytes(hashlib.sha512(small + public + digest).digest(), "little")
    s = k * int.from_bytes(scalar, "little") % ORDER
    crafted = small + s.to_bytes(32, "little")
    write("signature_bad_small_order_point.json", [mismatch | {"signature": crafted.hex()}])
    no_point = bytes([2]) + bytes(31)
    write("signature_bad_no_point.json", [vector | {"error": "InvalidKey", "public": no_point.hex()}])


def agreement():
    seeds = [fixed("agree a"), fixed("agree b")]
    privates = [X25519PrivateKey.from_private_bytes(seed) for seed in seeds]
    publics = [key.public_key().public_bytes_raw() for key in privates]
    shared = privates[0].exchange(X25519PublicKey.from_public_bytes(publics[1]))
    key = r.derive(shared, "alpheus/agreement/v1", sorted(publics), 32)
    vector = {"seeds": [s.hex() for s in seeds], "publics": [p.hex() for p in publics], "key": key.hex()}
    write("agreement.json", [vector])
    low = ["00" * 32, "01" + "00" * 31,
           "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"]
    write("agreement_bad_low_order.json", [
        {"seed": seeds[0].hex(), "their": point, "error": "LowOrder"} for point in low
    ])


def merkle_root(leaves):
    """RFC 6962, section 2.1, by its recursive definition."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\x01" + merkle_root(leaves[:split]) + merkle_root(leaves[split:])).digest()


def merkle_path(index, leaves):
    if len(leaves) <= 1:
        return []
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    if index < split:
        return merkle_path(index, leaves[:split]) + [merkle_root(leaves[split:])]
    return merkle_path(index - split, leaves[split:]) + [merkle_root(leaves[:split])]


def merkle():
    def case(size, index):
        leaves = [bytes([i, size]) for i in range(size)]
        return {"root": merkle_root(leaves).hex(), "leaf": leaves[index].hex(), "index": index,
                "size": size, "path": [h.hex() for h in merkle_path(index, leaves)]}

    write("merkle_root.json", [
        {"leaves": [bytes([i, size]).hex() for i in range(size)],
         "root": merkle_root([bytes([i, size]) for i in range(size)]).hex()}
        for size in range(18)
    ])
    sizes = (1, 2, 3, 5, 7, 8, 13)
    write("merkle_proof.json", [case(size, i) for size in sizes for i in range(size)])
    good, error = case(7, 4), {"error": "BadProof"}
    write("merkle_bad_index.json", [good | error | {"index": 5}, good | error | {"index": 7}])
    write("merkle_bad_size.json", [good | error | {"size": 5}, good | error | {"size": 16}])
    write("merkle_bad_leaf.json", [good | error | {"leaf": "ff"}])
    write("merkle_bad_path.json", [
        good | error | {"path": good["path"][:-1]},
        good | error | {"path": good["path"] + [good["root"]]},
        good | error | {"path": [good["path"][1], good["path"][0], *good["path"][2:]]},
    ])
    # An inner node's content passed off as a leaf.
    leaves = [bytes([i, 4]) for i in range(4)]
    inner = merkle_root(leaves[:2]) + merkle_root(leaves[2:])
    write("merkle_bad_inner_node.json", [
        {"root": merkle_root(leaves).hex(), "leaf": inner.hex(), "index": 0, "size": 1,
         "path": [], "error": "BadProof"}
    ])


def sealing():
    """Secrets that were sealed for a party. The first is of RFC 9180, A.2.1.1."""
    of = bytes.fromhex
    info, secret = b"Ode on a Grecian Urn", b"Beauty is truth, truth beauty"
    ephemeral = of("909a9b35d3dc4713a5e72a4da274b55d3d3821a37e5d099e74a647db583a904b")
    seed = of("1ac01f181fdf9f352797655161c58b75c656a6cc2716dcb66372da835542e1df")
    public = of("4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a")
    sealed = of("1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a"
                "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db"
                "21993c62ce81883d2dd1b51a28")
    assert r.hpke_key(seed).public_key().public_bytes_raw() == public
    assert r.hpke_seal(public, info, secret, ephemeral, b"Count-0") == sealed
    write("hpke.json", [{
        "seed": seed.hex(), "public": public.hex(), "ephemeral": ephemeral.hex(), "info": info.hex(),
        "data": b"Count-0".hex(), "secret": secret.hex(), "sealed": sealed.hex()}])
    seed, ephemeral, secret, context = fixed("seal"), fixed("ephemeral"), fixed("sealed"), fixed("seal context", 90)
    public = r.hpke_key(seed).public_key().public_bytes_raw()
    sealed = r.hpke_seal(public, r.labelled_hash(LABEL, [context]), secret, ephemeral)
    good = {"seed": seed.hex(), "public": public.hex(), "ephemeral": ephemeral.hex(), "label": LABEL,
            "context": context.hex(), "secret": secret.hex(), "sealed": sealed.hex()}
    write("sealed.json", [good])
    error = {"error": "DoesNotOpen"}
    write("sealed_bad_key.json", [good | error | {"seed": fixed("another seal").hex()}])
    write("sealed_bad_label.json", [good | error | {"label": "alpheus/other/v1"}])
    write("sealed_bad_context.json", [good | error | {"context": fixed("another context", 90).hex()}])
    changed = [sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :] for at in (0, 32, len(sealed) - 1)]
    shorter = [sealed[:-1], sealed[:47], b""]
    write("sealed_bad_bytes.json", [good | error | {"sealed": bad.hex()} for bad in changed + shorter])
    low = bytes(32) + sealed[32:]
    write("sealed_bad_low_order.json", [good | error | {"sealed": low.hex()}])


# draft-connolly-cfrg-xwing-kem, appendix C: a key, the randomness of an encapsulation, what is shared.
XWING = [
    ("7f9c2ba4e88f827d616045507605853ed73b8093f6efbc88eb1a6eacfa66ef26",
     "3cb1eea988004b93103cfb0aeefd2a686e01fa4a58e8a3639ca8a1e3f9ae57e2"
     "35b8cc873c23dc62b8d260169afa2f75ab916a58d974918835d25e6a435085b2",
     "d2df0522128f09dd8e2c92b1e905c793d8f57a54c3da25861f10bf4ca613e384"),
    ("badfd6dfaac359a5efbb7bcc4b59d538df9a04302e10c8bc1cbf1a0b3a5120ea",
     "17cda7cfad765f5623474d368ccca8af0007cd9f5e4c849f167a580b14aabdef"
     "aee7eef47cb0fca9767be1fda69419dfb927e9df07348b196691abaeb580b32d",
     "f2e86241c64d60f6649fbc6c5b7d17180b780a3f34355e64a85749949c45f150"),
    ("ef58538b8d23f87732ea63b02b4fa0f4873360e2841928cd60dd4cee8cc0d4c9",
     "22a96188d032675c8ac850933c7aff1533b94c834adbb69c6115bad4692d8619"
     "f90b0cdf8a7b9c264029ac185b70b83f2801f2f4b3f70c593ea3aeeb613a7f1b",
     "953f7f4e8c5b5049bdc771d1dffada0dd961477d1a2ae0988baa7ea6898d893f"),
]


def hybrid():
    """Secrets that were sealed by X-Wing. The keys and the randomness are the draft's."""
    context, info = fixed("hybrid context", 90), lambda c: r.labelled_hash(LABEL, [c])
    cases = []
    for number, (seed, randomness, shared) in enumerate(XWING):
        seed, randomness = bytes.fromhex(seed), bytes.fromhex(randomness)
        public, secret = xwing.public_key(seed), fixed(f"hybrid {number}")
        agreed, encapsulated = xwing.encapsulate(public, randomness)
        assert agreed.hex() == shared
        sealed = encapsulated + r.hpke_encrypt(r.SUITE_XWING, agreed, info(context), secret)
        cases.append({
            "seed": seed.hex(), "public": public.hex(), "randomness": randomness.hex(), "label": LABEL,
            "context": context.hex(), "secret": secret.hex(), "sealed": sealed.hex()})
    write("hybrid.json", cases)
    good, sealed, error = cases[0], bytes.fromhex(cases[0]["sealed"]), {"error": "DoesNotOpen"}
    write("hybrid_bad_key.json", [good | error | {"seed": cases[1]["seed"]}])
    write("hybrid_bad_label.json", [good | error | {"label": "alpheus/other/v1"}])
    write("hybrid_bad_context.json", [good | error | {"context": fixed("another context", 90).hex()}])
    # A bit of ML-KEM's ciphertext, of X25519's point, and of the secret.
    places = (0, 1087, 1088, 1120, len(sealed) - 1)
    changed = [sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :] for at in places]
    # Half of the KEM: the other shared secret is zero.
    agreed, encapsulated = xwing.encapsulate(bytes.fromhex(good["public"]), bytes(32) + fixed("half"))
    half = [encapsulated + r.hpke_encrypt(r.SUITE_XWING, agreed[:16] + bytes(16), info(context), fixed("hybrid 0"))]
    plain = r.hpke_key(fixed("seal")).public_key().public_bytes_raw()
    classical = [r.hpke_seal(plain, info(context), fixed("hybrid 0"), fixed("ephemeral"))]
    shorter = [sealed[:-1], sealed[:1135], b""]
    write("hybrid_bad_bytes.json",
          [good | error | {"sealed": bad.hex()} for bad in changed + half + classical + shorter])
    public = bytes.fromhex(good["public"])
    # A point of small order, and a coefficient that is not reduced (3329).
    weak = [public[:-32] + bytes(32), public[:-32] + b"\1" + bytes(31), b"\x01\x0d" + public[2:]]
    write("hybrid_bad_public.json", [{"public": bad.hex(), "error": "NoKey"} for bad in weak])


for make in (hashes, derivation, pads, macs, signatures, agreement, merkle, sealing, hybrid):
    make()
