//! The verifier, who is the owner: prepares a function once, and checks its value over any
//! data set in a time that does not depend on how many blocks it takes.

use super::elements::{Target, base, same_first};
use super::keys::Keys;
use super::messages::{Answer, Function, Shape, Statistic, ValueTag};
use super::planner;
use super::ring::Polynomial;
use super::scalars::Hidden;
use crate::error::{Refusal, Rejected};
use crate::keys::TableKey;
use crate::label::DataSet;
use crate::planner::Margin;
use blstrs::{G1Projective, Scalar};
use ff::Field;
use subtle::Choice;
use zeroize::Zeroizing;

/// Who checks answers about data sets of one key and shape.
pub struct Verifier {
    keys: Keys,
    shape: Shape,
}

/// A function and ρ_f, what its value over the masks is as a polynomial in a and b: the
/// same for every data set. Secret, as masks are.
pub struct Prepared {
    function: Function,
    margin: Margin,
    /// Of a and b.
    linear: Hidden<[Scalar; 2]>,
    /// Of a², ab and b².
    quadratic: Hidden<[Scalar; 3]>,
}

impl Prepared {
    /// What the server is sent.
    #[must_use]
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// How far it is from being refused.
    #[must_use]
    pub fn margin(&self) -> Margin {
        self.margin
    }

    /// ρ_f(a, b).
    fn at(&self, [a, b]: &[Scalar; 2]) -> Hidden<[Scalar; 1]> {
        let ([u, v], [aa, ab, bb]) = (&*self.linear, &*self.quadratic);
        Hidden([*u * a + *v * b + *aa * a.square() + *ab * a * b + *bb * b.square()])
    }
}

/// A value whose tag was right. There is no other way to have one opened.
pub struct Verified {
    sum: Vec<Polynomial>,
}

/// A verified value, decrypted: for each slot the function of its items.
pub struct Opened {
    slots: Zeroizing<Vec<i128>>,
}

impl Opened {
    /// Each slot's value.
    #[must_use]
    pub fn slots(&self) -> &[i128] {
        &self.slots
    }
}

impl Verifier {
    /// Of a key's data sets of a shape.
    #[must_use]
    pub fn new(key: &TableKey, shape: Shape) -> Self {
        Self { keys: Keys::new(key, shape.set), shape }
    }

    /// Computes ρ_f: as long as the function itself takes, once for all data sets.
    ///
    /// # Errors
    /// [`Refusal`], if the value might not decrypt, or leave the exact range.
    pub fn prepare(&self, function: Function) -> Result<Prepared, Refusal> {
        let margin = planner::check(&self.shape, &function)?;
        let inputs = function.columns().map(|column| self.keys.inputs(column));
        // Σ w·u and Σ w·v of either column, and of products.
        let mut sums = [0, 1].map(|_| Hidden([Scalar::ZERO; 2]));
        let mut quadratic = Hidden([Scalar::ZERO; 3]);
        for index in function.from..function.to {
            let weight = function.weight(self.shape.set, index);
            let pairs = inputs.each_ref().map(|inputs| Keys::input(inputs, index));
            for (sum, pair) in sums.iter_mut().zip(&pairs) {
                sum.0.iter_mut().zip(&**pair).for_each(|(sum, x)| *sum += *x * weight);
            }
            let [first, second] = &pairs;
            add_product(&mut quadratic, first, second, &weight);
        }
        let mut linear = Hidden([Scalar::ZERO; 2]);
        match function.of {
            Statistic::Sum(..) => {
                std::mem::swap(&mut linear, &mut sums[0]);
                quadratic.0.fill(Scalar::ZERO);
            }
            Statistic::Products(..) => {}
            Statistic::Covariance(..) => {
                let count = Scalar::from(function.to - function.from);
                quadratic.0.iter_mut().for_each(|x| *x *= count);
                let [first, second] = &sums;
                add_product(&mut quadratic, first, second, &-Scalar::ONE);
            }
        }
        Ok(Prepared { function, margin, linear, quadratic })
    }

    /// Checks an answer about one data set: `T = g^ν` and `g^w = T·X^z`, or of degree two
    /// `T₂ = e(g,h)^ν` and `e(g,h)^w = T₂·X₂'^z·Λ^(z²)`, with `w = ρ_f(a, b)`; in constant
    /// time.
    ///
    /// # Errors
    /// [`Rejected`], whatever is wrong.
    pub fn verify(
        &self,
        prepared: &Prepared,
        data_set: &DataSet,
        answer: &[u8],
    ) -> Result<Verified, Rejected> {
        let answer = Answer::from_bytes(self.shape.set, prepared.function.degree(), answer)?;
        let fine = self.check(prepared, data_set, &answer);
        if bool::from(fine) { Ok(Verified { sum: answer.sum }) } else { Err(Rejected) }
    }

    /// The same of an answer that was read.
    pub(crate) fn check(&self, prepared: &Prepared, data_set: &DataSet, answer: &Answer) -> Choice {
        let Answer { sum, tag } = answer;
        let expected = prepared.at(&self.keys.data_set(data_set));
        let ([w], z, hash) = (&*expected, self.keys.z(), Hidden([self.keys.hash(sum)]));
        let [hash] = &*hash;
        match tag {
            ValueTag::Linear(t, x) => {
                let (t, x) = (G1Projective::from(t), G1Projective::from(x));
                same_first(&base(hash), &t) & same_first(&base(w), &(t + x * z))
            }
            ValueTag::Quadratic(elements) => {
                let [t, x, lambda] = &**elements;
                let right = t.times(&x.times(&lambda.power(z)).power(z));
                Target::base(hash).same(t) & Target::base(w).same(&right)
            }
        }
    }

    /// Decrypts what was verified.
    #[must_use]
    pub fn decrypt(&self, verified: &Verified) -> Opened {
        Opened { slots: self.keys.decrypt(&verified.sum) }
    }
}

/// Adds w·(u·a + v·b)·(u'·a + v'·b), by coefficients of a², ab and b².
fn add_product(
    sum: &mut Hidden<[Scalar; 3]>,
    first: &Hidden<[Scalar; 2]>,
    second: &Hidden<[Scalar; 2]>,
    weight: &Scalar,
) {
    let ([u, v], [x, y], [aa, ab, bb]) = (&**first, &**second, &mut sum.0);
    *aa += *u * x * weight;
    *ab += (*u * y + *v * x) * weight;
    *bb += *v * y * weight;
}
