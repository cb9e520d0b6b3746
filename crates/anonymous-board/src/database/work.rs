//! The expensive part of an epoch, separate from the state that decides on it. It may run on any
//! thread, and running it again produces the same result.

use crate::coalition::audit::{self, Answer, CheckedPart};
use crate::coalition::engine::{Engine, Parity};
use crate::configuration::Epoch;
use crate::dpf::digest::Kappa;
use crate::dpf::pass::{Pass, Share, SizeError};
use crate::dpf::prg::Prgs;
use crate::dpf::{Shape, Side};
use crate::envelope::UnsealedKey;
use crate::messages::WriteDigest;
use alpheus_crypto::hash::Digest;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A computation. [`Work::run`] takes seconds to minutes.
pub struct Work {
    pub(super) epoch: Epoch,
    pub(super) keys: Keys,
    pub(super) task: Task,
}

/// A share of a table. It is useless without the others.
pub(super) type TableShare = Zeroizing<Vec<u8>>;

/// The keys for a pass over the table.
pub(super) enum Keys {
    /// Mode 1.
    Tree { prgs: Box<Prgs>, shape: Shape, side: Side, keys: Vec<Arc<UnsealedKey>> },
    /// Mode 2.
    Parity { engine: Box<Parity>, keys: Vec<Arc<CheckedPart>> },
}

pub(super) enum Task {
    /// Computes the openings of all candidates, and the share of the table with all of them.
    Audit { kappa: Kappa, randomness: Digest, candidates: Digest },
    /// Removes the rejected writes from the share.
    Remove { table: TableShare },
}

/// The result of a computation.
pub struct WorkResult {
    pub(super) epoch: Epoch,
    pub(super) result: Outcome,
}

pub(super) enum Outcome {
    Audited { candidates: Digest, audited: Openings, table: TableShare },
    Removed { table: TableShare },
}

/// The openings of all candidates.
#[derive(Clone)]
pub(super) enum Openings {
    /// Mode 1.
    Digests(Vec<WriteDigest>),
    /// Mode 2.
    Answers(Vec<Answer>),
}

impl Work {
    /// Runs the computation.
    ///
    /// # Errors
    /// [`SizeError`]: never with keys that a database has accepted.
    pub fn run(self) -> Result<WorkResult, SizeError> {
        let result = match self.task {
            Task::Audit { kappa, randomness, candidates } => {
                let (audited, table) = self.keys.audit(&kappa, &randomness)?;
                Outcome::Audited { candidates, audited, table }
            }
            Task::Remove { mut table } => {
                self.keys.remove(&mut table)?;
                Outcome::Removed { table }
            }
        };
        Ok(WorkResult { epoch: self.epoch, result })
    }
}

impl Keys {
    fn audit(
        &self,
        kappa: &Kappa,
        randomness: &Digest,
    ) -> Result<(Openings, TableShare), SizeError> {
        match self {
            Self::Tree { prgs, shape, side, keys } => {
                let mut table = Zeroizing::new(vec![0; shape.bytes()]);
                let pass = Pass::new(prgs, *shape, *side);
                let digests = pass.add_and_digest(&shares(keys), &mut table, kappa)?;
                let pairs = digests.into_iter().zip(keys);
                let audited =
                    pairs.map(|(digest, key)| WriteDigest { digest, shared: key.shared }).collect();
                Ok((Openings::Digests(audited), table))
            }
            Self::Parity { engine, keys } => {
                let (mut table, points) =
                    (engine.table(), audit::evaluation_points(randomness.as_ref()));
                let answers = keys.iter().map(|key| key.add(engine, &points, &mut table)).collect();
                Ok((Openings::Answers(answers), table))
            }
        }
    }

    fn remove(&self, table: &mut TableShare) -> Result<(), SizeError> {
        match self {
            Self::Tree { prgs, shape, side, keys } => {
                Pass::new(prgs, *shape, *side).add(&shares(keys), table)
            }
            Self::Parity { engine, keys } => {
                keys.iter().for_each(|key| key.add_only(engine, table));
                Ok(())
            }
        }
    }
}

fn shares(keys: &[Arc<UnsealedKey>]) -> Vec<Share<'_>> {
    keys.iter().map(|opened| Share { root: &opened.key.root, words: &opened.key.words }).collect()
}
