"""Known answers of the access pass: python3 generate.py TARGET."""

import base64
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import reference as r  # noqa: E402

TARGET = sys.argv[1]
PREFIX = "alpheus/pass/"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(n):
    return n.to_bytes(8, "big")


def public(seed):
    return X25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(
        Encoding.Raw, PublicFormat.Raw)


def agree(seed, their):
    """X25519, bound to both public keys."""
    shared = X25519PrivateKey.from_private_bytes(seed).exchange(
        X25519PublicKey.from_public_bytes(their))
    low, high = sorted([public(seed), their])
    return r.derive(shared, "alpheus/agreement/v1", [low, high], 32)


def connections():
    cases = []
    for k in range(4):
        gateway, client = bytes([k + 1] * 32), bytes([k + 101] * 32)
        challenge, session = bytes(range(k, k + 32)), bytes(range(k + 40, k + 72))
        until = 1_700_000_015_000_000 + k
        nonce = r.labelled_hash(PREFIX + "connection/v1",
                                [challenge, public(gateway), public(client)])
        agreed = agree(client, public(gateway))
        assert agreed == agree(gateway, public(client))
        key = r.derive(agreed, PREFIX + "requests/v1", [session, nonce], 32)
        confirmation = r.tag(key, PREFIX + "confirmation/v1", [nonce, number(until)])
        cases.append({
            "gateway_seed": gateway.hex(), "client_seed": client.hex(),
            "challenge": challenge.hex(), "session": session.hex(), "until": until,
            "gateway_public": public(gateway).hex(), "client_public": public(client).hex(),
            "nonce": nonce.hex(), "key": key.hex(), "confirmation": confirmation.hex(),
        })
    r.write(TARGET, "connection.json", cases)


def stamp(key, session, counter, method, authority, path):
    parts = [session, number(counter), method.encode(), authority.lower().encode(), path.encode()]
    tag = r.tag(key, PREFIX + "request/v1", parts)
    return f"v1.{b64(session)}.{counter}.{b64(tag)}"


def requests():
    cases = []
    for k, (counter, method, authority, path) in enumerate([
        (0, "GET", "music.example", "/"),
        (1, "POST", "Music.Example:8443", "/songs/7?from=0&to=9"),
        (2**64 - 2, "GET", "[::1]:7443", "/%E2%99%AB"),
        (77, "DELETE", "music.example", "/a?"),
    ]):
        key, session = bytes([k + 7] * 32), bytes([k + 60] * 32)
        cases.append({"key": key.hex(), "session": session.hex(), "counter": counter,
                      "method": method, "authority": authority, "path": path,
                      "stamp": stamp(key, session, counter, method, authority, path)})
    r.write(TARGET, "request.json", cases)
    good = cases[1]["stamp"]
    version, session, counter, tag = good.split(".")
    # The last letter of 32 bytes in base64url has two bits that must be zero.
    loose = session[:-1] + chr(ord(session[-1]) + 1)
    r.write(TARGET, "request_bad_stamp.json", [
        {"why": why, "stamp": text, "error": "Malformed"} for why, text in {
            "empty": "", "version": good.replace("v1", "v2"), "no_version": good[3:],
            "leading_zero": good.replace(".1.", ".01."), "sign": good.replace(".1.", ".+1."),
            "too_large": good.replace(".1.", f".{2**64}."), "no_counter": good.replace(".1.", ".."),
            "short_session": good.replace(session, session[:-2]), "short_tag": good[:-2],
            "padding": good + "==", "trailing": good + ".x", "loose_bits": good.replace(session, loose),
            "space": " " + good, "hexadecimal": good.replace(tag, "00" * 16),
        }.items()
    ])


def bindings():
    nonces, steps = [bytes(16), bytes(range(16))], [0, 170_000_000, 2**64 - 1]
    r.write(TARGET, "binding.json", [
        {"nonce": nonce.hex(), "challenge": r.labelled_hash(PREFIX + "gate/v1", [nonce]).hex()}
        for nonce in nonces
    ] + [
        {"step": step, "challenge": r.labelled_hash(PREFIX + "time/v1", [number(step)]).hex()}
        for step in steps
    ])


def challenges():
    """TokenChallenge of RFC 9577, section 2.1, with the header that carries it."""
    cases = []
    for k, (issuer, origin) in enumerate([
        ("issuer.example", "music.example"), ("localhost:7501", "localhost:7443"), ("a", ""),
    ]):
        fingerprint, epoch = bytes([k + 9] * 32), 40_320 + k
        key = b"".join(bytes([k + 20 + part] * 32) for part in range(3))
        context = r.labelled_hash(PREFIX + "redemption/v1", [fingerprint, number(epoch)])
        challenge = (0xA1FE).to_bytes(2, "big")
        challenge += len(issuer).to_bytes(2, "big") + issuer.encode()
        challenge += bytes([len(context)]) + context
        challenge += len(origin).to_bytes(2, "big") + origin.encode()
        padded = [base64.urlsafe_b64encode(part).decode() for part in (challenge, key)]
        cases.append({
            "issuer": issuer, "origin": origin, "fingerprint": fingerprint.hex(), "epoch": epoch,
            "key": key.hex(), "challenge": challenge.hex(),
            "header": f'PrivateToken challenge="{padded[0]}", token-key="{padded[1]}"',
        })
    r.write(TARGET, "challenge.json", cases)


connections()
requests()
bindings()
challenges()
