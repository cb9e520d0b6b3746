//! The verifier, who is the owner: prepares a function once, then checks its value over any
//! data set in a time that does not depend on the number of blocks.

use crate::elements::{Target, generator_power, same_first};
use crate::keys::Keys;
use crate::messages::{Answer, Function, Shape, ShapeError, Statistic, ValueTag};
use crate::planner;
use crate::ring::Polynomial;
use crate::scalars::SecretScalars;
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::error::{PlanError, VerifyError};
use alpheus_verifiable_table::label::DataSet;
use alpheus_verifiable_table::planner::Margin;
use blstrs::{G1Projective, Scalar};
use ff::Field;
use std::sync::Arc;
use subtle::Choice;
use zeroize::Zeroizing;

/// The verifier of data sets of one key and shape.
pub struct Verifier(Arc<VerifierKeys>);

struct VerifierKeys {
    keys: Keys,
    shape: Shape,
}

/// A function and ρ_f, its value over the masks as a polynomial in a and b. It is the same for
/// every data set of the verifier's shape, and as secret as the masks.
pub struct PreparedFunction {
    verifier: Arc<VerifierKeys>,
    function: Function,
    margin: Margin,
    /// The coefficients of a and b.
    linear: SecretScalars<[Scalar; 2]>,
    /// The coefficients of a², ab and b².
    quadratic: SecretScalars<[Scalar; 3]>,
}

impl PreparedFunction {
    /// The function to send to the server.
    #[must_use]
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// The distance from the planner's limits.
    #[must_use]
    pub fn margin(&self) -> Margin {
        self.margin
    }

    /// ρ_f(a, b).
    fn at(&self, [a, b]: &[Scalar; 2]) -> SecretScalars<[Scalar; 1]> {
        let ([u, v], [aa, ab, bb]) = (&*self.linear, &*self.quadratic);
        SecretScalars([*u * a + *v * b + *aa * a.square() + *ab * a * b + *bb * b.square()])
    }

    /// Checks an answer about one data set, in constant time: `T = g^ν` and `g^w = T·X^z`, or
    /// for degree two `T₂ = e(g,h)^ν` and `e(g,h)^w = T₂·X₂'^z·Λ^(z²)`, with `w = ρ_f(a, b)`.
    ///
    /// # Errors
    /// [`VerifyError`], whatever is wrong.
    pub fn verify(&self, data_set: &DataSet, answer: &[u8]) -> Result<VerifiedValue, VerifyError> {
        let verifier = Arc::clone(&self.verifier);
        let answer = Answer::from_bytes(verifier.shape.set, self.function.degree(), answer)?;
        if bool::from(self.check(data_set, &answer)) {
            Ok(VerifiedValue { verifier, data_set: *data_set, sum: answer.sum })
        } else {
            Err(VerifyError)
        }
    }

    /// The same for a decoded answer.
    pub(crate) fn check(&self, data_set: &DataSet, answer: &Answer) -> Choice {
        let (Answer { sum, tag }, VerifierKeys { keys, shape }) = (answer, &*self.verifier);
        let expected = self.at(&keys.data_set(shape, data_set));
        let ([w], z, hash) = (&*expected, keys.z(), keys.hash(sum));
        let [hash] = &*hash;
        match tag {
            ValueTag::Linear(t, x) => {
                let (t, x) = (G1Projective::from(t), G1Projective::from(x));
                same_first(&generator_power(hash), &t)
                    & same_first(&generator_power(w), &(t + x * z))
            }
            ValueTag::Quadratic(elements) => {
                let [t, x, lambda] = &**elements;
                let right = t.times(&x.times(&lambda.power(z)).power(z));
                Target::base(hash).same(t) & Target::base(w).same(&right)
            }
        }
    }
}

/// A value with a valid tag. Only a verified value can be decrypted.
pub struct VerifiedValue {
    verifier: Arc<VerifierKeys>,
    data_set: DataSet,
    sum: Vec<Polynomial>,
}

impl VerifiedValue {
    /// Decrypts the value.
    #[must_use]
    pub fn decrypt(&self) -> DecryptedValue {
        let VerifierKeys { keys, shape } = &*self.verifier;
        let secret = keys.secret(shape, &self.data_set);
        DecryptedValue { slots: keys.decrypt(&secret, &self.sum) }
    }
}

/// A verified value, decrypted: the function of the items, for each slot.
pub struct DecryptedValue {
    slots: Zeroizing<Vec<i128>>,
}

impl DecryptedValue {
    /// Each slot's value.
    #[must_use]
    pub fn slots(&self) -> &[i128] {
        &self.slots
    }
}

impl Verifier {
    /// A verifier for a key's data sets of this shape. Blocks sealed for another shape never
    /// verify, so the shape need not be trusted.
    ///
    /// # Errors
    /// [`ShapeError`].
    pub fn new(key: &TableKey, shape: Shape) -> Result<Self, ShapeError> {
        shape.check()?;
        Ok(Self(Arc::new(VerifierKeys { keys: Keys::new(key, shape.set), shape })))
    }

    /// Computes ρ_f, once for all data sets. It takes as long as the function itself.
    ///
    /// # Errors
    /// [`PlanError`] if the value might not decrypt, or might leave the exact range.
    pub fn prepare(&self, function: Function) -> Result<PreparedFunction, PlanError> {
        let VerifierKeys { keys, shape } = &*self.0;
        let margin = planner::check(shape, &function)?;
        let inputs = function.columns().map(|column| keys.inputs(column));
        // Σ w·u and Σ w·v of each column, and of products.
        let mut sums = [0, 1].map(|_| SecretScalars([Scalar::ZERO; 2]));
        let mut quadratic = SecretScalars([Scalar::ZERO; 3]);
        for index in function.from..function.to {
            let weight = function.weight(shape.set, index);
            let pairs = inputs.each_ref().map(|inputs| Keys::input(inputs, index));
            for (sum, pair) in sums.iter_mut().zip(&pairs) {
                sum.0.iter_mut().zip(&**pair).for_each(|(sum, x)| *sum += *x * weight);
            }
            let [first, second] = &pairs;
            add_product(&mut quadratic, first, second, &weight);
        }
        let mut linear = SecretScalars([Scalar::ZERO; 2]);
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
        Ok(PreparedFunction { verifier: Arc::clone(&self.0), function, margin, linear, quadratic })
    }
}

/// Adds w·(u·a + v·b)·(u'·a + v'·b), by coefficients of a², ab and b².
fn add_product(
    sum: &mut SecretScalars<[Scalar; 3]>,
    first: &SecretScalars<[Scalar; 2]>,
    second: &SecretScalars<[Scalar; 2]>,
    weight: &Scalar,
) {
    let ([u, v], [x, y], [aa, ab, bb]) = (&**first, &**second, &mut sum.0);
    *aa += *u * x * weight;
    *ab += (*u * y + *v * x) * weight;
    *bb += *v * y * weight;
}
