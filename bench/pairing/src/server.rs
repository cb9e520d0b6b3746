//! The server: evaluates a function over stored blocks. It holds no key and is not trusted.
//!
//! Linear parts of a tag add up in G1. A product has `T₂ = e(T₁, U₂)`,
//! `X₂' = e(X₁, U₂)·e(X₂, U₁)` and `Λ = e(X₁, Y₂)` (section 5.1).

use crate::elements::Target;
use crate::messages::{Answer, Block, Function, Shape, Statistic, ValueTag};
use crate::parameters::PairingSet;
use crate::ring::{Polynomial, plus};
use crate::tag::Tag;
use alpheus_verifiable_table::baseline::check_size;
use alpheus_verifiable_table::error::RequestError;
use alpheus_verifiable_table::label::{DataSet, Kind};
use alpheus_verifiable_table::messages::Weights;
use blstrs::{G1Affine, G1Projective, G2Projective, Scalar};
use ff::Field;
use group::{Curve, Group};

/// An unfinished evaluation. Blocks are added in order, each once.
pub struct Evaluation<'a> {
    shape: Shape,
    function: &'a Function,
    /// The first block's data set.
    data_set: Option<DataSet>,
    next: u64,
    linear: [Linear; 2],
    products: Products,
}

/// An evaluation that the server refuses. The client is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// As for any other scheme's request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The number of weights is not the number of blocks.
    #[error("{count} weights for blocks up to {to}: send one weight for each block")]
    Weights {
        /// The number of weights.
        count: u64,
        /// One past the last block.
        to: u64,
    },
    /// A block does not match the function or the blocks before it.
    #[error(
        "block {0} belongs to another data set or shape: add blocks of one data set, in the function's shape"
    )]
    Mixed(u64),
}

/// A sum of ciphertexts and their tags.
#[derive(Clone)]
pub(crate) struct Linear {
    pub(crate) sum: [Polynomial; 2],
    t: G1Projective,
    u: G2Projective,
    x: G1Projective,
    y: G2Projective,
}

impl Linear {
    pub(crate) fn zero(set: PairingSet) -> Self {
        let zero = vec![Scalar::ZERO; set.ring().degree()];
        let (first, second) = (G1Projective::identity(), G2Projective::identity());
        Self { sum: [zero.clone(), zero], t: first, u: second, x: first, y: second }
    }

    /// Adds a ciphertext times a weight.
    pub(crate) fn add(&mut self, c: &[Polynomial; 2], weight: &Scalar) {
        for (sum, c) in self.sum.iter_mut().zip(c) {
            if *weight == Scalar::ONE {
                plus(sum, c);
            } else {
                sum.iter_mut().zip(c).for_each(|(sum, c)| *sum += *c * weight);
            }
        }
    }

    /// Adds T and X of the tag, raised to the weight.
    pub(crate) fn add_tag(&mut self, tag: &Tag, weight: &Scalar) {
        let one = *weight == Scalar::ONE;
        let scaled = |p: &G1Affine| if one { p.into() } else { *p * weight };
        self.t += scaled(&tag.t);
        self.x += scaled(&tag.x);
    }

    /// Adds a ciphertext and its whole tag, for a product of sums.
    pub(crate) fn add_whole(&mut self, c: &[Polynomial; 2], tag: &Tag) {
        self.add(c, &Scalar::ONE);
        self.add_tag(tag, &Scalar::ONE);
        self.u += tag.u;
        self.y += tag.y;
    }

    fn tag(&self) -> Tag {
        let (t, x) = (self.t.to_affine(), self.x.to_affine());
        Tag { t, u: self.u.to_affine(), x, y: self.y.to_affine() }
    }
}

/// A sum of products: values of the unreduced ciphertext, and Miller loops.
#[derive(Clone)]
pub(crate) struct Products {
    pub(crate) sum: [Polynomial; 3],
    t: Target,
    x: Target,
    lambda: Target,
}

impl Products {
    pub(crate) fn zero(set: PairingSet) -> Self {
        let zero = vec![Scalar::ZERO; 2 * set.ring().degree()];
        let one = Target::one();
        Self { sum: [zero.clone(), zero.clone(), zero], t: one, x: one, lambda: one }
    }

    pub(crate) fn add(&mut self, set: PairingSet, [a, b]: [&[Polynomial; 2]; 2], weight: &Scalar) {
        let ring = set.ring();
        let [mut a0, mut a1] = a.each_ref().map(|c| ring.wide_values(c));
        let [b0, b1] = b.each_ref().map(|c| ring.wide_values(c));
        if *weight != Scalar::ONE {
            [&mut a0, &mut a1].into_iter().flatten().for_each(|x| *x *= weight);
        }
        let [d0, d1, d2] = &mut self.sum;
        for (at, ((a0, a1), (b0, b1))) in a0.iter().zip(&a1).zip(b0.iter().zip(&b1)).enumerate() {
            d0[at] += *a0 * b0;
            d1[at] += *a0 * b1 + *a1 * b0;
            d2[at] += *a1 * b1;
        }
    }

    /// Adds the tag of a product, raised to the weight.
    pub(crate) fn add_tags(&mut self, [first, second]: [&Tag; 2], weight: &Scalar) {
        let scaled = |p: &G1Affine| {
            if *weight == Scalar::ONE { *p } else { (*p * weight).to_affine() }
        };
        let [t, x, other] = [&first.t, &first.x, &second.x].map(scaled);
        self.t = self.t.times(&Target::pair(&t, &second.u));
        let other = Target::pair(&other, &first.u);
        self.x = self.x.times(&Target::pair(&x, &second.u)).times(&other);
        self.lambda = self.lambda.times(&Target::pair(&x, &second.y));
    }

    pub(crate) fn answer(self, set: PairingSet) -> Answer {
        let sum = self.sum.map(|values| set.ring().wide_coefficients(values)).to_vec();
        let tag = [self.t, self.x, self.lambda].map(|loops| loops.final_exponentiation());
        Answer { sum, tag: ValueTag::Quadratic(Box::new(tag)) }
    }
}

impl<'a> Evaluation<'a> {
    /// An empty evaluation.
    ///
    /// # Errors
    /// [`EvaluationError`].
    pub fn new(shape: &Shape, function: &'a Function) -> Result<Self, EvaluationError> {
        let kind = function.kind();
        if function.columns().iter().any(|column| column.0 >= shape.columns) {
            return Err(RequestError::Kind(kind).into());
        }
        let (from, to) = (function.from, function.to);
        if from >= to {
            return Err(RequestError::Runs.into());
        }
        check_size(to - from, function.weights())?;
        if let Weights::Each(first, weights) = function.weights() {
            let count = weights.len() as u64;
            if from < *first || to - first != count {
                return Err(EvaluationError::Weights { count, to });
            }
        }
        let (linear, products) = (Linear::zero(shape.set), Products::zero(shape.set));
        let linear = [linear.clone(), linear];
        Ok(Self { shape: *shape, function, data_set: None, next: from, linear, products })
    }

    /// Adds the next block.
    ///
    /// # Errors
    /// [`RequestError::Runs`] if it is not the next block, [`EvaluationError::Mixed`] if it
    /// belongs to another data set or shape.
    pub fn add(&mut self, block: &Block) -> Result<(), EvaluationError> {
        if block.index != self.next || block.index >= self.function.to {
            return Err(RequestError::Runs.into());
        }
        let other = self.data_set.is_some_and(|data_set| data_set != block.data_set);
        if other || block.shape != self.shape {
            return Err(EvaluationError::Mixed(block.index));
        }
        let (damaged, set) = (RequestError::Damaged(block.index), self.shape.set);
        let [a, b] = self.function.columns();
        let (first, tag) = block.ciphertext(a).ok_or(damaged)?;
        let weight = self.function.weight(set, block.index);
        match self.function.kind() {
            Kind::Column(_) => {
                self.linear[0].add(&first, &weight);
                self.linear[0].add_tag(tag, &weight);
            }
            Kind::Product(..) => {
                let (second, other) = block.ciphertext(b).ok_or(damaged)?;
                self.products.add(set, [&first, &second], &weight);
                self.products.add_tags([tag, other], &weight);
                if matches!(self.function.of, Statistic::Covariance(..)) {
                    let [x, y] = &mut self.linear;
                    x.add_whole(&first, tag);
                    y.add_whole(&second, other);
                }
            }
        }
        self.data_set = Some(block.data_set);
        self.next += 1;
        Ok(())
    }

    /// The answer.
    ///
    /// # Errors
    /// [`RequestError::Runs`] if blocks are missing.
    pub fn answer(self) -> Result<Answer, EvaluationError> {
        if self.next != self.function.to {
            return Err(RequestError::Runs.into());
        }
        let ([first, second], set) = (&self.linear, self.shape.set);
        Ok(match self.function.of {
            Statistic::Sum(..) => {
                let Tag { t, x, .. } = first.tag();
                Answer { sum: first.sum.to_vec(), tag: ValueTag::Linear(t, x) }
            }
            Statistic::Products(..) => self.products.answer(set),
            Statistic::Covariance(..) => {
                let count = Scalar::from(self.function.to - self.function.from);
                let mut means = Products::zero(set);
                let tags = [first, second].map(Linear::tag);
                means.add(set, [&first.sum, &second.sum], &-Scalar::ONE);
                means.add_tags(tags.each_ref(), &-Scalar::ONE);
                covariance(self.products, &count, means, set)
            }
        })
    }
}

/// count·products + means.
fn covariance(mut products: Products, count: &Scalar, means: Products, set: PairingSet) -> Answer {
    for (sum, mean) in products.sum.iter_mut().zip(&means.sum) {
        sum.iter_mut().zip(mean).for_each(|(sum, mean)| *sum = *sum * count + mean);
    }
    let joined = |a: Target, b: Target| {
        a.final_exponentiation().power(count).times(&b.final_exponentiation())
    };
    let (t, x) = (joined(products.t, means.t), joined(products.x, means.x));
    let tag = [t, x, joined(products.lambda, means.lambda)];
    let sum = products.sum.map(|values| set.ring().wide_coefficients(values)).to_vec();
    Answer { sum, tag: ValueTag::Quadratic(Box::new(tag)) }
}
