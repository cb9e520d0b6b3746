//! The statements of the four proofs. Prover and verifier build them from the same public
//! values; `docs/protocol.md` has the equations and every byte.

use crate::configuration::PinnedConfiguration;
use crate::messages::{Login, ReUp, Request, Response};
use crate::schedule::Period;
use alpheus_crypto::group::{Element, IdentityError, SecretScalar};
use alpheus_crypto::labels;
use alpheus_crypto::sigma::{ElementIndex, OwnCounts, SecretIndex, Statement, Term};

/// Secrets (m1, r1): E1 = m1·G + r1·H. Bound to configuration, period and account.
pub(crate) fn request(
    pinned: &PinnedConfiguration,
    account: &[u8],
    period: Period,
    e1: &Element,
) -> Statement {
    let fingerprint = pinned.fingerprint();
    let fields: [&[u8]; 3] = [fingerprint.as_bytes(), &period.0.to_be_bytes(), account];
    let mut s = Statement::new(labels::CREDENTIAL_REQUEST, &fields);
    let (m1, r1) = (s.secret(), s.secret());
    let (g, h) = (s.element(&Element::base()), s.element(&Element::second_base()));
    let e1 = s.element(e1);
    s.equation(e1, &[(1, m1, g), (1, r1, h)]);
    s
}

/// Secrets (x0, x1, x2, xb, b, t1, t2): the response was made from this request with the pinned
/// keys and the public m2.
pub(crate) fn response(
    pinned: &PinnedConfiguration,
    request: &Request,
    response: &Response,
) -> Result<Statement, IdentityError> {
    let (fingerprint, asked) = (pinned.fingerprint(), request.digest());
    let fields: [&[u8]; 2] = [fingerprint.as_bytes(), asked.as_bytes()];
    let mut s = Statement::new(labels::CREDENTIAL_RESPONSE, &fields);
    let [x0, x1, x2, xb, b, t1, t2] = std::array::from_fn(|_| s.secret());
    let public = &pinned.issuer;
    let m2 = SecretScalar::from_public(&pinned.attributes(request.period));
    let m2 = Element::base().times(&m2)?;
    let (g, h) = (s.element(&Element::base()), s.element(&Element::second_base()));
    let [px0, px1, px2] = [&public.x0, &public.x1, &public.x2].map(|element| s.element(element));
    let (e1, m2) = (s.element(&request.e1), s.element(&m2));
    let Response { u, eu, ha, x0a, x1a, x2a, .. } = response;
    let [u, eu, ha, x0a, x1a, x2a] = [u, eu, ha, x0a, x1a, x2a].map(|element| s.element(element));
    s.equation(px0, &[(1, x0, g), (1, xb, h)]);
    s.equation(px1, &[(1, x1, h)]);
    s.equation(px2, &[(1, x2, h)]);
    s.equation(u, &[(1, b, g)]);
    s.equation(ha, &[(1, b, h)]);
    s.equation(x0a, &[(1, xb, ha)]);
    s.equation(x1a, &[(1, b, px1)]);
    s.equation(x1a, &[(1, t1, h)]);
    s.equation(x2a, &[(1, b, px2)]);
    s.equation(x2a, &[(1, t2, h)]);
    s.equation(eu, &[(1, b, px0), (1, t1, e1), (1, t2, m2)]);
    Ok(s)
}

/// Secrets (m1, z, r) and, for each bit, (b_j, s_j, s'_j): the holder has a credential of the
/// epoch's period, and the tag belongs to an index below the limit. V = z·X1 − r·G for the
/// holder; the verifier computes it with its key.
pub(crate) fn presentation(
    pinned: &PinnedConfiguration,
    login: &Login,
    v: &Element,
) -> Presentation {
    let fingerprint = pinned.fingerprint();
    let fields: [&[u8]; 5] = [
        fingerprint.as_bytes(),
        &login.epoch.0.to_be_bytes(),
        &pinned.limit.get().to_be_bytes(),
        login.holder.as_bytes(),
        login.message.as_bytes(),
    ];
    let mut s = Statement::new(labels::CREDENTIAL_PRESENTATION, &fields);
    let (m1, z, r) = (s.secret(), s.secret(), s.secret());
    let (g, h) = (s.element(&Element::base()), s.element(&Element::second_base()));
    let (x1, t) = (s.element(&pinned.issuer.x1), s.element(&pinned.context(login.epoch)));
    let u = s.element(&login.u);
    s.element(&login.c); // In no equation except through V, but bound.
    let (cm, v, tag) = (s.element(&login.cm), s.element(v), s.element(&login.tag));
    s.equation(cm, &[(1, m1, u), (1, z, h)]);
    s.equation(v, &[(1, z, x1), (-1, r, g)]);
    let bits: Vec<[SecretIndex; 3]> =
        login.bits.iter().map(|_| std::array::from_fn(|_| s.secret())).collect();
    let index = bits.iter().zip(pinned.limit.bases());
    let index = index.map(|([bit, ..], base)| -> Term { (i64::from(base), *bit, tag) });
    let terms: Vec<Term> = std::iter::once((1, m1, tag)).chain(index).collect();
    s.equation(t, &terms);
    let mut committed = Vec::with_capacity(bits.len());
    for (element, [bit, blind, square]) in login.bits.iter().zip(bits) {
        let d = s.element(element);
        s.equation(d, &[(1, bit, g), (1, blind, h)]);
        s.equation(d, &[(1, bit, d), (1, square, h)]);
        committed.push(d);
    }
    Presentation { statement: s, bases: (g, h), bits: committed }
}

/// The part that presentations of several credentials with the same index do not share: (m1, z,
/// r), and the equations of Cm, V and T.
pub(crate) const OWN: OwnCounts = OwnCounts { secrets: 3, equations: 3 };

/// The statement of a presentation, and the positions of G, H and the D_j in it.
pub(crate) struct Presentation {
    pub(crate) statement: Statement,
    pub(crate) bases: (ElementIndex, ElementIndex),
    pub(crate) bits: Vec<ElementIndex>,
}

/// Secret m1: T_t = m1·τ and T_{t+1} = m1·τ'. `from` is the session's recorded tag, of the
/// previous epoch.
pub(crate) fn re_up(pinned: &PinnedConfiguration, from: &Element, re_up: &ReUp) -> Statement {
    let (fingerprint, epoch) = (pinned.fingerprint(), re_up.epoch);
    let session = re_up.session.0.0;
    let fields: [&[u8]; 3] = [fingerprint.as_bytes(), &epoch.0.to_be_bytes(), session.as_bytes()];
    let mut s = Statement::new(labels::CREDENTIAL_RE_UP, &fields);
    let m1 = s.secret();
    let before = pinned.context(crate::schedule::Epoch(epoch.0.saturating_sub(1)));
    let (t, next) = (s.element(&before), s.element(&pinned.context(epoch)));
    let (from, tag) = (s.element(from), s.element(&re_up.tag));
    s.equation(t, &[(1, m1, from)]);
    s.equation(next, &[(1, m1, tag)]);
    s
}
