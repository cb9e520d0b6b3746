"""Known answers of the anonymous credential: python3 generate.py TARGET."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import protocol as p  # noqa: E402
from protocol import (  # noqa: E402
    G, H, Configuration, Credential, Issuer, Login, ReUp, Refutation, Request, Response, Together, r,
)
from ristretto import ORDER, P, decode  # noqa: E402

TARGET = sys.argv[1]
ACCOUNT, PERIOD = b"ada@example", 7
EPOCH = 7 * 5760 + 100
MESSAGE = bytes(range(32))
IDENTITY = bytes(32)
ISSUER = Issuer("one")
ONE = Configuration(ISSUER)


def write(name, cases):
    r.write(TARGET, name, cases)


def replaced(data, at, part):
    return data[:at] + part + data[at + len(part) :]


def is_element(data):
    try:
        decode(data)
        return True
    except ValueError:
        return False


def not_canonical():
    """Encodings that are not the one of any element, by what is wrong with them."""
    even = (n.to_bytes(32, "little") for n in range(2, 100, 2))
    found = {"not_reduced": P.to_bytes(32, "little"), "all_ones": b"\xff" * 32,
             "negative": (P - 6).to_bytes(32, "little"),
             "no_square": next(data for data in even if not is_element(data)),
             "high_bit": replaced(G.encode(), 31, bytes([G.encode()[31] | 128]))}
    assert not any(map(is_element, found.values()))
    return found


def elements_and_scalars():
    hashed = [("alpheus/vector/v1", []), ("alpheus/vector/v1", [b"a", b"bc"])]
    write("hashed.json", [
        {"label": label, "parts": [part.hex() for part in parts],
         "element": p.hash_to_element(label, parts).encode().hex(),
         "scalar": p.scalar(p.hash_to_scalar(label, parts)).hex()} for label, parts in hashed
    ])
    write("bases.json", [{"base": G.encode().hex(), "second_base": H.encode().hex()}])
    write("element_bad_identity.json", [{"element": IDENTITY.hex(), "error": "Identity"}])
    write("element_bad_encoding.json", [
        {"why": why, "element": data.hex(), "error": "NotCanonical"}
        for why, data in not_canonical().items()
    ])
    write("scalar_bad_encoding.json", [
        {"scalar": n.to_bytes(32, "little").hex(), "error": "NotCanonical"}
        for n in (ORDER, ORDER + 1, 2**255, 2**256 - 1)
    ])


def issued(config, name, **how):
    request = Request(config, ACCOUNT, PERIOD, name)
    return request, Response(config, request, name, **how)


def credential(config, name="plain"):
    return Credential(config, *issued(config, name))


def issuance():
    cases = []
    for name, config in (("plain", ONE), ("tier", Configuration(ISSUER, limit=1000, tier=300, kind=2))):
        request, response = issued(config, name)
        cases.append({
            "configuration": config.json(), "account": ACCOUNT.hex(), "period": PERIOD,
            "request_randomness": request.randomness, "request": request.bytes.hex(),
            "response_randomness": response.randomness, "response": response.bytes.hex(),
            "m1": p.scalar(request.m1).hex(), "u": response.u.encode().hex(),
            "mac": response.mac.encode().hex(),
        })
    write("issue.json", cases)


def request_case(data, error, account=ACCOUNT):
    return {"configuration": ONE.json(), "account": account.hex(), "request": data.hex(), "error": error}


def bad_requests():
    good = Request(ONE, ACCOUNT, PERIOD, "plain").bytes
    element = "Malformed(Element({}))"
    write("request_bad_identity.json", [
        request_case(replaced(good, 8, IDENTITY), element.format("Identity")),
        request_case(replaced(good, 40, IDENTITY), "Malformed(Proof(Commitment(Identity)))"),
    ])
    write("request_bad_encoding.json", [
        request_case(replaced(good, 8, data), element.format("NotCanonical"))
        for data in not_canonical().values()
    ] + [request_case(replaced(good, 72, p.ORDER.to_bytes(32, "little")),
                      "Malformed(Proof(Response(NotCanonical)))")])
    write("request_bad_length.json", [
        request_case(good[:39], "Malformed(Length)"), request_case(b"", "Malformed(Length)"),
        request_case(good[:-1], "Malformed(Proof(Length))"),
        request_case(good + b"\0", "Malformed(Proof(Length))"),
        request_case(good[:40], "Malformed(Proof(Length))"),
    ])
    write("request_bad_period.json", [
        request_case(Request(ONE, ACCOUNT, period, "plain").bytes, "Period")
        for period in (PERIOD - 1, PERIOD + 2, 2**64 - 1)
    ])
    other = Request(ONE, ACCOUNT, PERIOD, "other").bytes
    write("request_bad_proof.json", [
        request_case(Request(ONE, ACCOUNT, PERIOD, "plain", wrong=True).bytes, "Proof"),
        request_case(Request(ONE, ACCOUNT, PERIOD, "plain", wrong=True, leave_out=0).bytes, "Proof"),
        request_case(replaced(good, 40, other[40:]), "Proof"),
        request_case(good, "Proof", account=b"eve@example"),
        request_case(replaced(good, 0, p.number(PERIOD + 1)), "Proof"),
        request_case(Request(Configuration(ISSUER, tier=2), ACCOUNT, PERIOD, "plain").bytes, "Proof"),
    ])


def response_case(request, data, error):
    return {"configuration": ONE.json(), "account": ACCOUNT.hex(), "period": PERIOD,
            "request_randomness": request.randomness, "response": data.hex(), "error": error}


def bad_responses():
    request, response = issued(ONE, "plain")
    good = response.bytes
    write("response_bad_identity.json", [
        response_case(request, replaced(good, 32 * j, IDENTITY),
                      "Malformed(Element(Identity))" if j < 6 else
                      "Malformed(Proof(Commitment(Identity)))") for j in range(17)
    ])
    write("response_bad_encoding.json", [
        response_case(request, replaced(good, 32 * j, b"\xff" * 32), "Malformed(Element(NotCanonical))")
        for j in range(6)
    ])
    write("response_bad_length.json", [
        response_case(request, good[:-1], "Malformed(Proof(Length))"),
        response_case(request, good[:100], "Malformed(Length)"),
    ])
    wrong = [{"wrong": j, "leave_out": out} for j in range(11) for out in (None, j)]
    write("response_bad_proof.json", [
        response_case(request, Response(ONE, request, "plain", **how).bytes, "Response") for how in wrong
    ] + [response_case(request, data, "Response") for data in (
        # To another request, by another issuer, with attributes of the holder's choice.
        Response(ONE, Request(ONE, ACCOUNT, PERIOD, "other"), "plain").bytes,
        Response(Configuration(Issuer("two")), request, "plain").bytes,
        Response(ONE, request, "plain", m2=Configuration(ISSUER, tier=2).m2(PERIOD)).bytes,
    )])


def logins():
    cases = []
    for limit, index in ((1, 0), (2, 0), (2, 1), (5, 4), (1000, 999)):
        config = Configuration(ISSUER, limit=limit)
        holder = credential(config)
        login = Login(holder, EPOCH, index, MESSAGE, f"{limit} {index}")
        assert login.false == []
        cases.append({
            "configuration": config.json(), "period": PERIOD, "m1": p.scalar(holder.m1).hex(),
            "u": holder.u.encode().hex(), "mac": holder.mac.encode().hex(), "epoch": EPOCH,
            "index": index, "message": MESSAGE.hex(), "randomness": login.randomness,
            "login": login.bytes().hex(), "tag": login.tag_id().hex(),
        })
    write("login.json", cases)


def login_case(data, error, config=ONE):
    return {"configuration": config.json(), "login": data.hex(), "error": error}


def malformed_logins():
    good = Login(credential(ONE), EPOCH, 0, MESSAGE, "1 0").bytes()
    places = range(72, 72 + 4 * 32, 32)
    write("login_bad_identity.json", [
        login_case(replaced(good, at, IDENTITY), "Malformed(Element(Identity))") for at in places
    ] + [login_case(replaced(good, 200 + 32 * j, IDENTITY), "Malformed(Proof(Commitment(Identity)))")
         for j in range(3)])
    write("login_bad_encoding.json", [
        login_case(replaced(good, at, data), "Malformed(Element(NotCanonical))")
        for at in places for data in not_canonical().values()
    ] + [login_case(replaced(good, 296 + 32 * j, b"\xff" * 32), "Malformed(Proof(Response(NotCanonical)))")
         for j in range(3)])
    write("login_bad_key.json", [login_case(replaced(good, 8, key), "Malformed(Key)")
                                 for key in (IDENTITY, bytes([1]) + bytes(31))])
    write("login_bad_length.json", [
        login_case(good[:-1], "Malformed(Proof(Length))"), login_case(good + b"\0", "Malformed(Proof(Length))"),
        login_case(good[:199], "Malformed(Length)"), login_case(b"", "Malformed(Length)"),
    ])
    five = Configuration(ISSUER, limit=5)
    bits = Login(credential(five), EPOCH, 3, MESSAGE, "5 3").bytes()
    write("login_bad_bit_identity.json", [
        login_case(replaced(bits, 200 + 32 * j, IDENTITY), "Malformed(Element(Identity))", five)
        for j in range(3)
    ])


def tampered(false, alter, config=ONE, index=0, leave_out=None):
    """A login in which exactly the given equations do not hold."""
    login = Login(credential(config), EPOCH, index, MESSAGE, "spoilt", alter, leave_out)
    assert login.false == false, (login.false, false)
    return login_case(login.bytes(), "Proof", config)


def cm_off(login):
    """Another m1 in Cm than in the tag; C' so that the MAC holds all the same."""
    k, blind, z = login.config.issuer, login.witness[2], login.witness[1]
    m2 = login.config.m2(PERIOD)
    login.cm = login.cm + G
    v = z * k.public[1] - blind * G
    login.c = (k.x0 + k.x2 * m2) * login.u + k.x1 * login.cm - v


def mac_off(login):
    login.c = login.c + G


def no_credential(login):
    """Nothing was ever issued: a stranger's m1 and elements out of the blue."""
    login.u, login.c = 5 * G, 6 * G
    login.cm = login.witness[0] * login.u + login.witness[1] * H


def tag_off(login):
    login.tag = 9 * G


def beyond(login):
    """Bit 0 is 2: an index beyond the limit."""
    m1, s = login.witness[0], login.witness[4]
    login.bits[0] = 2 * G + s * H
    login.witness[3] = 2
    index = sum(b * w for b, w in zip(login.config.bases(), login.witness[3::3]))
    login.tag = p.inverse(m1 + index) * login.config.context(EPOCH)


def no_commitment(login):
    """D_0 commits to nothing that is known."""
    login.bits[0] = p.hash_to_element("alpheus/vector/v1", [b"nothing"])
    login.witness[3], login.witness[5] = 1, 0


def forged_logins():
    five = Configuration(ISSUER, limit=5)
    cases = []
    for out in (False, True):
        for j, alter in ((0, cm_off), (1, mac_off), (1, no_credential), (2, tag_off)):
            cases.append(tampered([j], alter, leave_out=j if out else None))
        cases.append(tampered([4], beyond, five, 4, 4 if out else None))
        cases.append(tampered([3], no_commitment, five, 1, 3 if out else None))
    write("login_bad_equation.json", cases)
    write("login_bad_forged_with_identity.json", [identity_forgery()])


def identity_forgery():
    """With Ũ = O all three equations hold, without any credential."""
    def alter(login):
        z, blind = login.witness[1], login.witness[2]
        login.u, login.cm, login.c = 0 * G, z * H, blind * G
    login = Login(credential(ONE), EPOCH, 0, MESSAGE, "identity", alter)
    assert login.false == []
    return login_case(login.bytes(), "Malformed(Element(Identity))")


def replace(login, **fields):
    for name, value in fields.items():
        setattr(login, name, value)
    return login.bytes()


def misused_logins():
    holder = credential(ONE)
    fresh = lambda name="1 0": Login(holder, EPOCH, 0, MESSAGE, name)  # noqa: E731
    write("login_bad_swapped.json", [
        login_case(replace(fresh(), proof=fresh("other").proof), "Proof"),
        login_case(replace(fresh(), holder=fresh("other").holder), "Proof"),
        login_case(replace(fresh(), message=bytes(32)), "Proof"),
        login_case(replace(fresh(), epoch=EPOCH + 1), "Proof"),
        login_case(replace(fresh(), u=fresh("other").u), "Proof"),
        login_case(replace(fresh(), c=fresh("other").c), "Proof"),
        login_case(replace(fresh(), tag=p.inverse(holder.m1) * ONE.context(EPOCH + 1)), "Proof"),
    ])
    # The same number of bits, another limit.
    three, four = Configuration(ISSUER, limit=3), Configuration(ISSUER, limit=4)
    write("login_bad_limit.json", [
        login_case(Login(credential(three), EPOCH, 2, MESSAGE, "3 2").bytes(), "Proof", four),
        login_case(Login(credential(four), EPOCH, 3, MESSAGE, "4 3").bytes(), "Proof", three),
        login_case(Login(credential(three), EPOCH, 2, MESSAGE, "3 2").bytes(), "Malformed(Proof(Length))"),
    ])
    request = Request(ONE, ACCOUNT, PERIOD, "plain")
    cases = []
    for m2 in (Configuration(ISSUER, tier=2).m2(PERIOD), ONE.m2(PERIOD - 1), 0):
        other = Credential(ONE, request, Response(ONE, request, "plain", m2=m2))
        cases.append(login_case(Login(other, EPOCH, 0, MESSAGE, "m2").bytes(), "Proof"))
    # A credential of the period before, shown in this one.
    old = Request(ONE, ACCOUNT, PERIOD - 1, "plain")
    old = Credential(ONE, old, Response(ONE, old, "plain"))
    cases.append(login_case(Login(old, EPOCH, 0, MESSAGE, "old").bytes(), "Proof"))
    write("login_bad_m2.json", cases)
    two = Configuration(Issuer("two"))
    write("login_bad_issuer.json", [
        login_case(Login(credential(two), EPOCH, 0, MESSAGE, "two").bytes(), "Proof"),
    ])


def re_ups():
    holder = credential(ONE)
    login = Login(holder, EPOCH, 0, MESSAGE, "1 0")
    base = {"configuration": ONE.json(), "login": login.bytes().hex()}
    good = ReUp(holder, login, "plain")
    write("re_up.json", [{**base, "period": PERIOD, "m1": p.scalar(holder.m1).hex(),
                          "u": holder.u.encode().hex(), "mac": holder.mac.encode().hex(),
                          "message": MESSAGE.hex(), "login_randomness": login.randomness,
                          "randomness": good.randomness, "re_up": good.bytes.hex()}])
    other = Login(holder, EPOCH, 0, MESSAGE, "other")
    other.tag = p.inverse(holder.m1 + 1) * ONE.context(EPOCH)

    def case(data, error="Proof"):
        return {**base, "re_up": data.hex(), "error": error}

    write("re_up_bad_identity.json", [
        case(replaced(good.bytes, 40, IDENTITY), "Malformed(Element(Identity))"),
        case(replaced(good.bytes, 72, IDENTITY), "Malformed(Proof(Commitment(Identity)))"),
        case(replaced(good.bytes, 104, IDENTITY), "Malformed(Proof(Commitment(Identity)))"),
    ])
    write("re_up_bad_encoding.json", [
        case(replaced(good.bytes, 40, data), "Malformed(Element(NotCanonical))")
        for data in not_canonical().values()
    ] + [case(replaced(good.bytes, 136, b"\xff" * 32), "Malformed(Proof(Response(NotCanonical)))")])
    write("re_up_bad_length.json", [
        case(good.bytes[:-1], "Malformed(Proof(Length))"), case(good.bytes[:71], "Malformed(Length)"),
    ])
    stranger = 1234567
    write("re_up_bad_proof.json", [
        # Another m1 than the session's; then the forgeries that leaving a commitment out lets in.
        case(ReUp(holder, login, "m1", m1=stranger).bytes),
        case(ReUp(holder, login, "m1", m1=stranger, leave_out=0).bytes),
        case(ReUp(holder, login, "tag", tag=9 * G).bytes),
        case(ReUp(holder, login, "tag", tag=9 * G, leave_out=1).bytes),
        # From a tag that is not the recorded one.
        case(ReUp(holder, login, "from", before=other.tag, m1=holder.m1 + 1).bytes),
    ])
    write("re_up_bad_session.json", [
        case(ReUp(holder, other, "session").bytes, "NoSession"),
        case(replaced(good.bytes, 0, p.number(EPOCH + 2)), "Epoch"),
    ])


SUBJECT = bytes(range(100, 132))


def abouts(limit):
    """Credentials for three verifiers, about one subject."""
    found = []
    for name in ("one", "two", "three"):
        config = Configuration(Issuer(name))
        holder = credential(config)
        holder.config = config.about(SUBJECT, limit)
        found.append((config, holder))
    return found


def together():
    cases, first = [], PERIOD * 5760
    for limit, index in ((1, 0), (3, 2), (25, 24)):
        configs, holders = zip(*abouts(limit))
        shown = Together(holders, first, index, MESSAGE, f"{limit} {index}")
        assert shown.false == [[], [], []]
        cases.append({
            "period": PERIOD, "subject": SUBJECT.hex(), "limit": limit, "index": index,
            "message": MESSAGE.hex(), "randomness": shown.randomness,
            "holders": [{"configuration": c.json(), "period": PERIOD, "m1": p.scalar(h.m1).hex(),
                         "u": h.u.encode().hex(), "mac": h.mac.encode().hex()}
                        for c, h in zip(configs, holders)],
            "showings": [shown.bytes(j).hex() for j in range(3)],
            "tags": [login.tag_id().hex() for login in shown.logins],
        })
    write("together.json", cases)


def wrong_mac(login):
    """Everything but the MAC is right."""
    login.c = login.c + G


def sum_vanishes(login):
    """V + C' = O: nothing that a refutation could be about."""
    _, z, blind = login.witness[:3]
    login.c = blind * G - z * login.config.issuer.public[1]


def opened(config, holder, name, alter=None):
    shown = Login(holder, PERIOD * 5760, 1, MESSAGE, f"open {name}", alter, openly=True)
    assert shown.false == [] and (shown.claimed == shown.v()) == (alter is None)
    return shown


def open_case(config, shown, **more):
    return {"configuration": config.json(), "subject": SUBJECT.hex(), "limit": 3, "period": PERIOD,
            "about": ABOUT.hex(), "showing": (shown.claimed.encode() + shown.bytes()).hex(), **more}


ABOUT = bytes(range(32))


def open_presentations():
    config, holder = abouts(3)[0]
    good = opened(config, holder, "good")
    write("open.json", [open_case(
        config, good, index=1, message=MESSAGE.hex(), randomness=good.randomness,
        m1=p.scalar(holder.m1).hex(), u=holder.u.encode().hex(), mac=holder.mac.encode().hex())])
    shown = [opened(config, holder, "mac", wrong_mac), opened(config, holder, "stranger", no_credential)]
    vanishing = opened(config, holder, "vanishing", sum_vanishes)
    write("open_bad_vanishing.json", [open_case(config, vanishing, error="Proof")])
    made = [Refutation(one, ABOUT, f"good {j}") for j, one in enumerate(shown)]
    assert [one.false for one in made] == [[], []]
    write("refutation.json", [open_case(config, one, refutation=by.bytes.hex(), randomness=by.randomness)
                              for one, by in zip(shown, made)])
    bad_refutations(config, holder, good, shown, made)


def bad_refutations(config, holder, good, shown, made):
    def case(one, data, error="Proof", **more):
        return open_case(config, one, refutation=data.hex(), error=error, **more)

    lies = []
    for lie in range(5):
        # A valid presentation, and a verifier that calls it invalid.
        for out in (None, lie):
            made_up = Refutation(good, ABOUT, f"lie {lie}", lie, out)
            assert made_up.false == [lie], (lie, made_up.false)
            lies.append(case(good, made_up.bytes))
    write("refutation_bad_equation.json", lies)
    first, second = made
    elsewhere = Refutation(shown[0], bytes(32), "elsewhere").bytes
    write("refutation_bad_place.json", [
        # Of another presentation, and in another context.
        case(shown[0], second.bytes), case(good, first.bytes), case(shown[0], elsewhere),
        # About another subject, for which the presentation is none either.
        {**case(shown[0], first.bytes), "subject": bytes(32).hex()},
    ])
    whole = first.bytes
    write("refutation_bad_encoding.json", [
        case(shown[0], data, error) for data, error in (
            (whole[:-1], "Malformed(Length)"), (whole + bytes(1), "Malformed(Length)"),
            (whole[:40], "Malformed(Length)"),
            (replaced(whole, 0, bytes(32)), "Malformed(Element(Identity))"),
            (replaced(whole, 32, bytes(32)), "Malformed(Element(Identity))"),
            (replaced(whole, 64, bytes(32)), "Malformed(Proof(Commitment(Identity)))"),
            (replaced(whole, 352, b"\xff" * 32), "Malformed(Proof(Response(NotCanonical)))"),
        )
    ])


def together_case(place, data, error="Proof", limit=3):
    config = abouts(limit)[place][0]
    return {"configuration": config.json(), "subject": SUBJECT.hex(), "limit": limit,
            "period": PERIOD, "place": place, "showing": data.hex(), "error": error}


def bad_together():
    first = PERIOD * 5760
    holders = [h for _, h in abouts(3)]
    shown = Together(holders, first, 1, MESSAGE, "good")
    other = Together(holders, first, 1, MESSAGE, "other")
    good = [shown.bytes(place) for place in range(3)]
    parts = shown.parts
    write("together_bad_place.json", [
        # What another verifier was sent; its own presentation beside other parts, or in another order.
        together_case(1, good[0]), together_case(0, good[2]),
        together_case(1, parts[2] + parts[0] + shown.logins[1].bytes()),
        together_case(1, other.parts[0] + other.parts[2] + shown.logins[1].bytes()),
        together_case(1, bytes(64) + parts[2] + shown.logins[1].bytes()),
    ])
    # One that was made alone, and one of these as if it were alone.
    alone = Login(holders[1], first, 1, MESSAGE, "alone").bytes()
    write("together_bad_alone.json", [
        together_case(1, parts[0] + parts[2] + alone),
        together_case(1, shown.logins[1].bytes(), "Epoch"),
    ])
    write("together_bad_length.json", [
        together_case(1, good[1][:-1], "Malformed(Proof(Length))"),
        together_case(1, good[1][:100], "Malformed(Length)"),
        together_case(1, good[1] + bytes(1), "Malformed(Proof(Length))"),
    ])
    mixed = [holders[0], Credential(*_stranger()), holders[2]]
    mixed[1].config = holders[1].config

    def beyond_all(logins):
        """Bit 0 is 2 in all of them: an index beyond the limit."""
        for login, holder in zip(logins, holders):
            m1, s = login.witness[0], login.witness[4]
            login.bits[0], login.witness[3] = 2 * G + s * H, 2
            index = sum(b * w for b, w in zip(login.config.bases(), login.witness[3::3]))
            login.tag = p.inverse(m1 + index) * login.config.context(first)

    def lend(logins):
        """The second shows the first one's credential."""
        for field in ("u", "c", "cm", "witness"):
            setattr(logins[1], field, getattr(logins[0], field))

    beyond = Together(holders, first, 2, MESSAGE, "beyond", beyond_all)
    assert beyond.false == [[4]] * 3, beyond.false
    lent = Together(holders, first, 1, MESSAGE, "lent", lend)
    assert lent.false[0] == [] and lent.false[1] != [], lent.false
    strange = Together(mixed, first, 1, MESSAGE, "strange")
    assert strange.false == [[], [1], []], strange.false
    write("together_bad_equation.json", [
        together_case(0, beyond.bytes(0)), together_case(2, beyond.bytes(2)),
        together_case(1, lent.bytes(1)), together_case(1, strange.bytes(1)),
    ])


def _stranger():
    """A credential that another issuer gave."""
    config = Configuration(Issuer("four"))
    return config, *issued(config, "plain")


elements_and_scalars()
together()
bad_together()
issuance()
bad_requests()
bad_responses()
logins()
malformed_logins()
forged_logins()
misused_logins()
re_ups()
open_presentations()
