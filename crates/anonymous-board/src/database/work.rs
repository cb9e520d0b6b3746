//! The expensive part of an epoch, apart from the state that decides on it: it
//! may run on any thread, and running it again gives the same.

use crate::coalition::audit::{self, Answer, Held};
use crate::coalition::engine::{Engine, Parity};
use crate::configuration::Epoch;
use crate::dpf::digest::Kappa;
use crate::dpf::pass::{Misfit, Pass, Share};
use crate::dpf::prg::Prgs;
use crate::dpf::{Shape, Side};
use crate::envelope::Opened;
use crate::messages::Audited;
use alpheus_crypto::hash::Digest;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Something to compute. [`Work::run`] takes seconds to minutes.
pub struct Work {
    pub(super) epoch: Epoch,
    pub(super) keys: Keys,
    pub(super) task: Task,
}

/// A share of a table: worth nothing without the others.
pub(super) type TableShare = Zeroizing<Vec<u8>>;

/// What is passed over the table.
pub(super) enum Keys {
    /// Mode 1.
    Tree { prgs: Box<Prgs>, shape: Shape, side: Side, keys: Vec<Arc<Opened>> },
    /// Mode 2.
    Parity { engine: Box<Parity>, keys: Vec<Arc<Held>> },
}

pub(super) enum Task {
    /// What is opened of all candidates, and the share of the table with all of them.
    Audit { kappa: Kappa, drawn: Digest, candidates: Digest },
    /// The share without those that were rejected.
    Remove { table: TableShare },
}

/// What came out.
pub struct Done {
    pub(super) epoch: Epoch,
    pub(super) result: Outcome,
}

pub(super) enum Outcome {
    Audited { candidates: Digest, audited: Openings, table: TableShare },
    Removed { table: TableShare },
}

/// What a server opens of all candidates.
#[derive(Clone)]
pub(super) enum Openings {
    /// Mode 1.
    Digests(Vec<Audited>),
    /// Mode 2.
    Answers(Vec<Answer>),
}

impl Work {
    /// Computes.
    ///
    /// # Errors
    /// [`Misfit`] never comes of keys that a database has accepted.
    pub fn run(self) -> Result<Done, Misfit> {
        let result = match self.task {
            Task::Audit { kappa, drawn, candidates } => {
                let (audited, table) = self.keys.audit(&kappa, &drawn)?;
                Outcome::Audited { candidates, audited, table }
            }
            Task::Remove { mut table } => {
                self.keys.remove(&mut table)?;
                Outcome::Removed { table }
            }
        };
        Ok(Done { epoch: self.epoch, result })
    }
}

impl Keys {
    fn audit(&self, kappa: &Kappa, drawn: &Digest) -> Result<(Openings, TableShare), Misfit> {
        match self {
            Self::Tree { prgs, shape, side, keys } => {
                let mut table = Zeroizing::new(vec![0; shape.bytes()]);
                let pass = Pass::new(prgs, *shape, *side);
                let digests = pass.add_and_digest(&shares(keys), &mut table, kappa)?;
                let pairs = digests.iter().zip(keys);
                let audited = pairs.map(|(d, key)| Audited::new(&d.0, key.shared)).collect();
                Ok((Openings::Digests(audited), table))
            }
            Self::Parity { engine, keys } => {
                let (mut table, places) = (engine.table(), audit::places(drawn.as_ref()));
                let answers = keys.iter().map(|key| key.add(engine, &places, &mut table)).collect();
                Ok((Openings::Answers(answers), table))
            }
        }
    }

    fn remove(&self, table: &mut TableShare) -> Result<(), Misfit> {
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

fn shares(keys: &[Arc<Opened>]) -> Vec<Share<'_>> {
    keys.iter().map(|opened| Share { root: &opened.key.root, words: &opened.key.words }).collect()
}
