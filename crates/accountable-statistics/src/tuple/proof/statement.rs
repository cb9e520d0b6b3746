//! The equations of a tuple, built in the same way by prover and checker.
//!
//! From R_v = r_v·B, C_v = v'·M + r_v·P and the like for c: well-formed. From C_c = c·C_c + s_c·P:
//! c(1−c) = 0, because nobody knows M's logarithm. From C_v = c·C_v + s_v·P: v'(1−c) = 0. From C_q
//! = v'·C_v + r_q·P, R_q = v'·R_v + r_q·B: (R_q, C_q) encrypts v'² under the blinding v'·r_v +
//! r_q.

use crate::interval::Interval;
use crate::tuple::{Binding, Ciphertexts, Pair, Terms, message_base};
use alpheus_crypto::group::Element;
use alpheus_crypto::labels;
use alpheus_crypto::sigma::{ElementIndex, Statement};

/// Numbers of secrets and equations, without squares and with.
const PLAIN: (usize, usize) = (6, 6);
const SQUARED: (usize, usize) = (7, 8);

/// Bytes of the proof for an interval's tuples.
pub(crate) fn length(interval: &Interval) -> usize {
    let (secrets, equations) = if interval.square() { SQUARED } else { PLAIN };
    Element::LENGTH * (secrets + equations)
}

/// The statement about a tuple. Its witness is v', r_v, c, r_c, s_c, s_v and, with squares, r_q.
pub(crate) fn statement(terms: &Terms, binding: &Binding, tuple: &Ciphertexts) -> Statement {
    places(terms, binding, tuple).0
}

/// The same, with the positions of R_v and B in it.
pub(crate) fn places(
    terms: &Terms,
    binding: &Binding,
    tuple: &Ciphertexts,
) -> (Statement, ElementIndex, ElementIndex) {
    let binding = binding.digest();
    let fields: [&[u8]; 2] = [terms.digest().as_bytes(), binding.as_bytes()];
    about(&fields, &terms.key().0, tuple)
}

/// A statement of the interval's shape about nothing, for decoding a proof.
pub(crate) fn shape(interval: &Interval) -> Statement {
    let any = Element::base();
    let pair = Pair { r: any, c: any };
    let square = interval.square().then_some(pair);
    about(&[], &any, &Ciphertexts { value: pair, count: pair, square }).0
}

fn about(
    fields: &[&[u8]],
    key: &Element,
    tuple: &Ciphertexts,
) -> (Statement, ElementIndex, ElementIndex) {
    let mut s = Statement::new(labels::STATISTICS_TUPLE, fields);
    let [v, r_v, c, r_c, s_c, s_v] = std::array::from_fn(|_| s.secret());
    let [base, message, key] =
        [Element::base(), message_base(), *key].map(|element| s.element(&element));
    let [rv, cv, rc, cc] = [tuple.value.r, tuple.value.c, tuple.count.r, tuple.count.c]
        .map(|element| s.element(&element));
    s.equation(rv, &[(1, r_v, base)]);
    s.equation(cv, &[(1, v, message), (1, r_v, key)]);
    s.equation(rc, &[(1, r_c, base)]);
    s.equation(cc, &[(1, c, message), (1, r_c, key)]);
    s.equation(cc, &[(1, c, cc), (1, s_c, key)]);
    s.equation(cv, &[(1, c, cv), (1, s_v, key)]);
    if let Some(square) = &tuple.square {
        let r_q = s.secret();
        let [rq, cq] = [square.r, square.c].map(|element| s.element(&element));
        s.equation(cq, &[(1, v, cv), (1, r_q, key)]);
        s.equation(rq, &[(1, v, rv), (1, r_q, base)]);
    }
    (s, rv, base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_match_the_statements() {
        for square in [false, true] {
            let interval = Interval::new(0, 9, square).unwrap();
            assert_eq!(shape(&interval).proof_length(), length(&interval));
        }
    }
}
