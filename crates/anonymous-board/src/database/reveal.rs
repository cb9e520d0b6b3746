//! Lets the auditor check this database's share, if its coin says so.

use super::Output;
use super::epoch::EpochState;
use crate::configuration::{Board, Party};
use crate::envelope::RevealedKeys;
use crate::messages::Reveal;
use crate::secrets::agreement_seed;
use alpheus_crypto::hybrid::seal_bytes;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::sync::Arc;

/// The reveal of this database's keys of the accepted writes, if the auditor checks its share. It
/// follows from what is durable, so it is the same bytes after a restart.
///
/// # Privacy
/// The auditor learns one key of each accepted write, and nothing that opens an envelope: of a rejected
/// write a complaint may have shown it the other key. It must never learn both keys of a write. So
/// nothing is revealed unless the other's latch names the statement of the auditor that this database
/// has received: it holds a commitment to one coin, which names one side.
pub(super) fn due(
    board: &Board,
    own: Party,
    key: &SigningKey,
    state: &EpochState,
) -> Option<Output> {
    let transcript = &state.transcript;
    let side = transcript.checked_side()?.ok()?;
    if own != Party::Database(side) || !transcript.agreed_settle() || state.has_ended(own) {
        return None;
    }
    let (epoch, seed) = (transcript.epoch(), &state.secrets.as_ref()?.seed);
    let writes = state.contents(board, &transcript.set()?.ok()?.accepted)?;
    let keys = RevealedKeys { agreement: *agreement_seed(seed).expose(), writes }.to_bytes();
    let randomness: Secret<32> = derive(seed.expose(), labels::BOARD_EPOCH, &[b"reveal"]);
    let mut rng = ChaCha20Rng::from_seed(*randomness.expose());
    let (board, number) = (board.fingerprint(), epoch.0.to_be_bytes());
    let context = [board.as_ref(), &number];
    let (to, label) = (transcript.reveal_key()?, labels::BOARD_REVEALED_KEYS);
    let reveal = Reveal {
        board,
        epoch,
        by: own,
        keys: seal_bytes(to, label, &context, &keys, &mut rng).ok()?,
    };
    Some(Output::Reveal(epoch, Arc::new(Signed::new(&reveal, key))))
}
