//! The expensive part of an epoch, apart from the state that decides on it: it
//! may run on any thread, and running it again gives the same.

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
    pub(super) prgs: Prgs,
    pub(super) shape: Shape,
    pub(super) side: Side,
    pub(super) keys: Vec<Arc<Opened>>,
    pub(super) task: Task,
}

/// A share of a table: worth nothing without the other one.
pub(super) type TableShare = Zeroizing<Vec<u8>>;

pub(super) enum Task {
    /// The digests of all candidates, and the share of the table with all of them.
    Audit { kappa: Kappa, candidates: Digest },
    /// The share without those that were rejected.
    Remove { table: TableShare },
}

/// What came out.
pub struct Done {
    pub(super) epoch: Epoch,
    pub(super) result: Outcome,
}

pub(super) enum Outcome {
    Audited { candidates: Digest, audited: Vec<Audited>, table: TableShare },
    Removed { table: TableShare },
}

impl Work {
    /// Computes.
    ///
    /// # Errors
    /// [`Misfit`] never comes of keys that a database has accepted.
    pub fn run(self) -> Result<Done, Misfit> {
        let pass = Pass::new(&self.prgs, self.shape, self.side);
        let writes: Vec<Share<'_>> = self
            .keys
            .iter()
            .map(|opened| Share { root: &opened.key.root, words: &opened.key.words })
            .collect();
        let result = match self.task {
            Task::Audit { kappa, candidates } => {
                let mut table = Zeroizing::new(vec![0; self.shape.bytes()]);
                let digests = pass.add_and_digest(&writes, &mut table, &kappa)?;
                let pairs = digests.into_iter().zip(&self.keys);
                let audited =
                    pairs.map(|(digest, key)| Audited { digest, shared: key.shared }).collect();
                Outcome::Audited { candidates, audited, table }
            }
            Task::Remove { mut table } => {
                pass.add(&writes, &mut table)?;
                Outcome::Removed { table }
            }
        };
        Ok(Done { epoch: self.epoch, result })
    }
}
