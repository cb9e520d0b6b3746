//! A fingerprint of files and flags: a state folder can be continued only with the same.

use super::Args;
use super::inputs::read_queries;
use alpheus_node::failure::{Blame, Failure};
use alpheus_policy::ids::labelled_hash;
use std::path::PathBuf;

const LABEL: &str = "alpheus/replay-input/v1";
const HASH: usize = 32;

/// A hash of each input of a run, in the order of [`Fingerprint::NAMES`].
pub(super) struct Fingerprint(Vec<u8>);

impl Fingerprint {
    const NAMES: [&str; 9] = [
        "--schema",
        "--source",
        "--input",
        "--policies",
        "--query",
        "--controllers",
        "--masks",
        "--membership",
        "--tick",
    ];

    /// # Errors
    /// If a file cannot be read.
    pub(super) fn of(args: &Args) -> Result<Self, Failure> {
        let flags = [
            format!("{:?}", args.controllers),
            format!("{:?}", args.masks),
            format!("{:?}", args.membership),
            format!("{:?}", args.tick),
        ];
        let mut hashes = [&args.schema, &args.source, &args.input]
            .into_iter()
            .map(|path| files(std::slice::from_ref(path)))
            .collect::<Result<Vec<_>, _>>()?;
        hashes.push(files(args.policies.as_slice())?);
        let queries = read_queries(&args.query)?;
        let texts: Vec<&[u8]> = queries.iter().map(|query| query.text.as_bytes()).collect();
        hashes.push(labelled_hash(LABEL, &texts));
        hashes.extend(flags.iter().map(|flag| labelled_hash(LABEL, &[flag.as_bytes()])));
        Ok(Fingerprint(hashes.concat()))
    }

    /// As it is stored.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The inputs that are not those of the run that stored `known`.
    pub(super) fn differences(&self, known: &[u8]) -> Vec<&'static str> {
        let pairs = Self::NAMES.iter().zip(self.0.chunks(HASH).zip(known.chunks(HASH)));
        pairs.filter(|(_, (ours, theirs))| ours != theirs).map(|(name, _)| *name).collect()
    }
}

fn files(paths: &[PathBuf]) -> Result<[u8; HASH], Failure> {
    let read = |path: &PathBuf| std::fs::read(path).blame_io(path);
    let contents = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let parts: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
    Ok(labelled_hash(LABEL, &parts))
}
