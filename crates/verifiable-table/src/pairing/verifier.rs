//! The verifier, who is the owner: prepares a function once, and checks its value over any
//! data set in a time that does not depend on how many blocks it takes.

use super::elements::{Target, base, same_first};
use super::keys::Keys;
use super::messages::{Answer, BadShape, Function, Shape, Statistic, ValueTag};
use super::planner;
use super::ring::Polynomial;
use super::scalars::Hidden;
use crate::error::{Refusal, Rejected};
use crate::keys::TableKey;
use crate::label::DataSet;
use crate::planner::Margin;
use blstrs::{G1Projective, Scalar};
use ff::Field;
use std::sync::Arc;
use subtle::Choice;
use zeroize::Zeroizing;

/// Who checks answers about data sets of one key and shape.
pub struct Verifier(Arc<Knowledge>);

/// What verifying takes.
struct Knowledge {
    keys: Keys,
    shape: Shape,
}

/// A function and ρ_f, what its value over the masks is as a polynomial in a and b: the
/// same for every data set of the verifier's shape. Secret, as masks are.
pub struct Prepared {
    verifier: Arc<Knowledge>,
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

    /// Checks an answer about one data set: `T = g^ν` and `g^w = T·X^z`, or of degree two
    /// `T₂ = e(g,h)^ν` and `e(g,h)^w = T₂·X₂'^z·Λ^(z²)`, with `w = ρ_f(a, b)`; in constant
    /// time.
    ///
    /// # Errors
    /// [`Rejected`], whatever is wrong.
    pub fn verify(&self, data_set: &DataSet, answer: &[u8]) -> Result<Verified, Rejected> {
        let verifier = Arc::clone(&self.verifier);
        let answer = Answer::from_bytes(verifier.shape.set, self.function.degree(), answer)?;
        if bool::from(self.check(data_set, &answer)) {
            Ok(Verified { verifier, data_set: *data_set, sum: answer.sum })
        } else {
            Err(Rejected)
        }
    }

    /// The same of an answer that was read.
    pub(crate) fn check(&self, data_set: &DataSet, answer: &Answer) -> Choice {
        let (Answer { sum, tag }, Knowledge { keys, shape }) = (answer, &*self.verifier);
        let expected = self.at(&keys.data_set(shape, data_set));
        let ([w], z, hash) = (&*expected, keys.z(), keys.hash(sum));
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
}

/// A value whose tag was right. There is no other way to have one opened.
pub struct Verified {
    verifier: Arc<Knowledge>,
    data_set: DataSet,
    sum: Vec<Polynomial>,
}

impl Verified {
    /// Decrypts it.
    #[must_use]
    pub fn decrypt(&self) -> Opened {
        let Knowledge { keys, shape } = &*self.verifier;
        let secret = keys.secret(shape, &self.data_set);
        Opened { slots: keys.decrypt(&secret, &self.sum) }
    }
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
    /// Of a key's data sets of a shape. What was sealed for another shape verifies under
    /// none: the shape need not be trusted.
    ///
    /// # Errors
    /// [`BadShape`].
    pub fn new(key: &TableKey, shape: Shape) -> Result<Self, BadShape> {
        shape.check()?;
        Ok(Self(Arc::new(Knowledge { keys: Keys::new(key, shape.set), shape })))
    }

    /// Computes ρ_f: as long as the function itself takes, once for all data sets.
    ///
    /// # Errors
    /// [`Refusal`], if the value might not decrypt, or leave the exact range.
    pub fn prepare(&self, function: Function) -> Result<Prepared, Refusal> {
        let Knowledge { keys, shape } = &*self.0;
        let margin = planner::check(shape, &function)?;
        let inputs = function.columns().map(|column| keys.inputs(column));
        // Σ w·u and Σ w·v of either column, and of products.
        let mut sums = [0, 1].map(|_| Hidden([Scalar::ZERO; 2]));
        let mut quadratic = Hidden([Scalar::ZERO; 3]);
        for index in function.from..function.to {
            let weight = function.weight(shape.set, index);
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
        Ok(Prepared { verifier: Arc::clone(&self.0), function, margin, linear, quadratic })
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
