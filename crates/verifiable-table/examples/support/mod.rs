//! A server in memory, and an owner that queries it, for the walkthrough and the tests.

use alpheus_verifiable_table::error::{RequestError, VerifyError};
use alpheus_verifiable_table::label::Address;
use alpheus_verifiable_table::layout::{Moment, Row};
use alpheus_verifiable_table::messages::{Block, Manifest, Request};
use alpheus_verifiable_table::owner::{OpenBlock, Owner, Plan};
use alpheus_verifiable_table::planner::Question;
use alpheus_verifiable_table::server::Sum;
use alpheus_verifiable_table::verifier::DecryptedSum;
use chacha20::ChaCha20Rng;
use std::collections::BTreeMap;

pub(crate) type AnyError = Box<dyn std::error::Error>;
pub(crate) type Store = BTreeMap<Vec<u8>, Vec<u8>>;

/// A server's blocks, by address.
pub(crate) struct Server {
    pub(crate) manifest: Manifest,
    pub(crate) blocks: BTreeMap<Address, Block>,
}

impl Server {
    pub(crate) fn new(manifest: &Manifest) -> Self {
        Self { manifest: manifest.clone(), blocks: BTreeMap::new() }
    }

    /// Stores a block. Storing it again changes nothing.
    pub(crate) fn store(&mut self, bytes: &[u8]) -> Result<Address, AnyError> {
        let block = Block::from_bytes(&self.manifest, bytes.to_vec())?;
        let address = block.address();
        self.blocks.entry(address).or_insert(block);
        Ok(address)
    }

    pub(crate) fn answer(&self, request: &Request) -> Result<Vec<u8>, RequestError> {
        let mut sum = Sum::new(&self.manifest, request)?;
        for address in request.runs.iter().flat_map(|run| run.addresses()) {
            let block = self.blocks.get(&address).ok_or(RequestError::Damaged(address.index))?;
            sum.add(block)?;
        }
        Ok(sum.answer().to_bytes(self.manifest.ring()))
    }
}

/// Appends rows, sends the blocks, and acknowledges them.
pub(crate) fn upload(
    owner: &mut Owner,
    store: &mut Store,
    server: &mut Server,
    rows: &[Row],
    rng: &mut ChaCha20Rng,
) -> Result<(), AnyError> {
    for block in owner.append(rows, rng)?.commit(store)? {
        let address = server.store(block.as_bytes())?;
        owner.acknowledge(&address)?.commit(store)?;
    }
    Ok(())
}

/// Asks one question.
pub(crate) fn ask(
    owner: &Owner,
    server: &Server,
    question: &Question,
) -> Result<DecryptedSum, AnyError> {
    let verified = owner.verify(question, &server.answer(question.request())?)?;
    Ok(owner.decrypt(&verified))
}

/// Fetches a block and opens all its columns.
pub(crate) fn fetch(owner: &Owner, server: &Server, index: u64) -> Result<OpenBlock, AnyError> {
    let address = owner.address(index).ok_or("no such block")?;
    let block = server.blocks.get(&address).ok_or("the server lost it")?;
    let opened: Result<OpenBlock, VerifyError> =
        owner.open_block(index, &owner.all_columns(), block.as_bytes());
    Ok(opened?)
}

/// Fetches the blocks at a plan's ends.
pub(crate) fn ends(
    owner: &Owner,
    server: &Server,
    plan: &Plan,
) -> Result<Vec<OpenBlock>, AnyError> {
    plan.parts().iter().map(|part| fetch(owner, server, part.index)).collect()
}

/// Plans, queries, verifies and totals a moment over rows.
pub(crate) fn total(
    owner: &Owner,
    server: &Server,
    moment: Moment,
    from: u64,
    to: u64,
) -> Result<i128, AnyError> {
    let plan = owner.plan(moment, from, to)?;
    let opened = plan.question().map(|question| ask(owner, server, question)).transpose()?;
    let blocks = ends(owner, server, &plan)?;
    let open = |index| blocks.iter().find(|block| block.index() == index);
    Ok(owner.total(&plan, opened.as_ref(), open)?)
}
