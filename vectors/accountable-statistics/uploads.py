"""Keys of uploads: what they sign, seal and have disclosed, implemented independently from docs/kernel.md."""

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from tuples import B, ORDER, PREFIX, Statement, Stream, hash_to_scalar, r


class Key:
    """Of one upload, or with another label the aggregator's."""

    def __init__(self, seed, label="ephemeral/v2"):
        self.seed = seed
        self.secret = hash_to_scalar(PREFIX + label, [seed])
        self.public = self.secret * B
        self.bytes = self.public.encode()


def aggregator(seed):
    return Key(seed, "recipient/v1")


def signature(key, message, name, label="deposit/v3", secret=None, leave_out=None):
    """The proof of knowledge of the key, and the randomness."""
    stream = Stream(f"signature {name}")
    statement = Statement(label, [message], 1, [B, key.public], [(1, [(1, 0, 0)])])
    made = statement.prove([key.secret if secret is None else secret], stream, leave_out)
    return made, stream.so_far()


def sealed(key, to, aggregate, content, upload, label="sealed/v2"):
    shared = key.secret * to.public
    parts = [to.bytes, key.bytes, aggregate, content]
    secret = r.derive(shared.encode(), PREFIX + label, parts, 32)
    return ChaCha20Poly1305(secret).encrypt(bytes(12), upload, b"")


def disclosure(to, key, about, name, secret=None, shared=None, leave_out=None, label="disclosed/v1"):
    """Z and the proof that it is Z, and the randomness. With another secret, or another Z, a lie."""
    stream = Stream(f"disclosure {name}")
    secret = to.secret if secret is None else secret
    shared = secret * key.public if shared is None else shared
    elements = [B, to.public, key.public, shared]
    statement = Statement(label, [about], 1, elements, [(1, [(1, 0, 0)]), (3, [(1, 0, 2)])])
    false = statement.false([secret % ORDER])
    proof = statement.prove([secret], stream, leave_out)
    return {"shared": shared.encode().hex(), "proof": proof.hex(), "false": false,
            "randomness": stream.so_far()}


def good(aggregate):
    to, cases = aggregator(bytes([201] * 32)), []
    for at in range(3):
        key = Key(bytes([at + 1] * 32))
        content = r.labelled_hash("alpheus/vector/v1", [b"content", bytes([at])])
        upload, about = bytes(range(at * 100)), bytes([at]) * 40
        signed, randomness = signature(key, about, f"good {at}")
        shown = disclosure(to, key, about, f"good {at}")
        assert shown["false"] == []
        cases.append({
            "seed": key.seed.hex(), "public": key.bytes.hex(), "to_seed": to.seed.hex(), "to": to.bytes.hex(),
            "aggregate": aggregate.hex(), "content": content.hex(), "upload": upload.hex(),
            "sealed": sealed(key, to, aggregate, content, upload).hex(), "about": about.hex(),
            "signature": signed.hex(), "signature_randomness": randomness, "disclosure": shown,
        })
    return cases


def bad():
    """Disclosures that convince nobody: each is false for exactly one reason."""
    to, other = aggregator(bytes([201] * 32)), aggregator(bytes([7] * 32))
    key, another, about = Key(bytes([1] * 32)), Key(bytes([2] * 32)), bytes(40)

    def case(shown, false, about=about, key=key):
        assert shown["false"] == false, shown["false"]
        return {"public": key.bytes.hex(), "to": to.bytes.hex(), "about": about.hex(), "disclosure": shown}

    cases = []
    for out in (None, 0):  # Another key than the recipient's.
        cases.append(case(disclosure(to, key, about, "key", other.secret, leave_out=out), [0]))
    for out in (None, 1):  # Another Z.
        cases.append(case(disclosure(to, key, about, "z", shared=5 * B, leave_out=out), [1]))
    good = disclosure(to, key, about, "good")
    return cases + [
        # Of another upload, in another context, of another aggregator, under another label.
        case(good, [], key=another), case(good, [], about=bytes(39) + b"\1"),
        case(disclosure(other, key, about, "other"), []),
        case(disclosure(to, key, about, "label", label="partial/v1"), []),
        case({**good, "proof": good["proof"][:-2]}, []), case({**good, "proof": good["proof"] + "00"}, []),
    ]


def bad_signatures():
    key, another, message = Key(bytes([1] * 32)), Key(bytes([2] * 32)), bytes(40)
    good = signature(key, message, "good")[0]

    def case(made, key=key, message=message):
        return {"public": key.bytes.hex(), "message": message.hex(), "signature": made.hex()}

    return [
        case(signature(key, message, "lie", secret=another.secret)[0]),
        case(signature(key, message, "lie", secret=another.secret, leave_out=0)[0]),
        case(good, key=another), case(good, message=bytes(39) + b"\1"),
        case(signature(key, message, "label", "partial/v1")[0]),
        case(bytes(32) + good[32:]), case(good[:32] + ORDER.to_bytes(32, "little")),
        {**case(good), "public": bytes(32).hex()}, {**case(good), "public": "ff" * 32},
    ]
