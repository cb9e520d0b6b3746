//! How a writer is admitted: as a member, with its key, or with a pass that it presents to the
//! doorkeeper once per epoch.

use crate::card::{VerifiedCard, same_epochs};
use crate::{keys, links};
use alpheus_anonymous_board::admission::{Doorkeeper, Members, Permit};
use alpheus_anonymous_board::configuration::Epoch;
use alpheus_anonymous_board::messages::{Tag, WriteName};
use alpheus_anonymous_credential::holder::Timing;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, SessionId};
use alpheus_anonymous_credential::schedule::Epoch as PassEpoch;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sign::{Signature, SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::Signed;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::client::{HttpClient, Limits};
use alpheus_node::network::error::RequestError;
use alpheus_pass_service::client::passes::Passes;
use alpheus_pass_service::client::passfile::PassFile;
use axum::http::Method;
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// The right to one write in an epoch.
pub enum Entry {
    /// A member's key.
    Member(Box<SigningKey>),
    /// The doorkeeper's permit, and the pass that signs for the key in it.
    Admitted(Box<ByPass>),
}

/// A writer that the doorkeeper has admitted.
pub struct ByPass {
    word: Signed<Permit>,
    tag: Tag,
    passes: Passes,
    epoch: PassEpoch,
    session: SessionId,
}

/// A member's key, or a pass.
#[derive(Clone, Debug, clap::Args)]
pub struct EntryArgs {
    /// The member's key
    #[arg(long, value_name = "FILE", required_unless_present = "pass", conflicts_with = "pass")]
    key: Option<PathBuf>,
    /// The pass to present, for a board that admits by pass
    #[arg(long, value_name = "FILE", requires = "key_file")]
    pass: Option<PathBuf>,
    /// The key that opens the pass file
    #[arg(long, value_name = "FILE", requires = "pass")]
    key_file: Option<PathBuf>,
}

impl EntryArgs {
    /// The right to one write in this epoch.
    ///
    /// # Errors
    /// If a file cannot be read, or the doorkeeper refuses.
    pub async fn open(&self, card: &VerifiedCard, epoch: Epoch) -> Result<Entry, Failure> {
        match (&self.key, &self.pass, &self.key_file) {
            (Some(key), _, _) => Ok(Entry::Member(Box::new(keys::load(key)?))),
            (None, Some(pass), Some(key_file)) => {
                by_pass(card, epoch, PassFile::open(pass, key_file)?).await
            }
            // Clap rejects this combination.
            _ => Err(EntryError::NoDoor).blame(Category::Usage),
        }
    }
}

/// A pass does not admit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The board admits members only.
    #[error("this board admits members only; give a member's key with --key")]
    NoDoor,
    /// The passes belong to another service.
    #[error("the pass belongs to another service; join with the card of this board's passes")]
    OtherPasses,
    /// The board's epochs differ from the passes' epochs.
    #[error(
        "the board's epochs differ from those of its passes; do not write to it, and inform its operator"
    )]
    OtherEpochs,
    /// The permit is for another key.
    #[error(
        "the doorkeeper admitted a different key than the one in the login; nothing was written"
    )]
    OtherKey,
    /// The passes' schedule has not begun.
    #[error(
        "the first epoch of the passes has not begun by this machine's clock; set the clock, or wait"
    )]
    NoEpoch,
}

impl Entry {
    /// The tag of the quota that it spends.
    #[must_use]
    pub fn tag(&self) -> Tag {
        match self {
            Self::Member(key) => Members::tag_of(&key.verifying_key()),
            Self::Admitted(by) => by.tag,
        }
    }

    /// The ticket for a write.
    pub fn ticket(&mut self, write: &WriteName) -> Vec<u8> {
        match self {
            Self::Member(key) => Members::ticket(key, write),
            Self::Admitted(by) => {
                let signature = by.sign(write);
                Doorkeeper::ticket(&by.word, signature)
            }
        }
    }
}

impl ByPass {
    fn sign(&mut self, write: &WriteName) -> Signature {
        let holder = self.passes.of(self.epoch).ok();
        let signed =
            holder.and_then(|h| h.sign(self.session, labels::BOARD_TICKET, write.0.as_ref()).ok());
        // The session belongs to this holder, so signing works; servers reject zeros.
        signed.unwrap_or_else(|| Signature::from_bytes(&[0; 64]))
    }
}

/// Presents the pass in a file to the board's doorkeeper for the current epoch. If it was already
/// presented in this epoch, the same login is sent again, so a writer that lost its connection is
/// admitted under the same key.
///
/// # Errors
/// The file holds no pass, the doorkeeper refuses or is unreachable, or its permit is for another
/// board or epoch.
///
/// # Privacy
/// Uses a separate connection. The doorkeeper learns that some holder takes part.
async fn by_pass(card: &VerifiedCard, epoch: Epoch, file: PassFile) -> Result<Entry, Failure> {
    let door = card.door.as_ref().ok_or(EntryError::NoDoor).blame(Category::Usage)?;
    let pinned = file.card()?.pinned;
    let fits = pinned.fingerprint() == door.passes;
    fits.then_some(()).ok_or(EntryError::OtherPasses).blame(Category::Input)?;
    let same = same_epochs(&card.board.schedule, &pinned.schedule);
    same.then_some(()).ok_or(EntryError::OtherEpochs).blame(Category::Check)?;
    let link = links::server(door.at.clone(), card.authority.as_deref())?;
    let heard = link.exchange(Method::GET, "/v1/passes", &[], Vec::new(), Limits::SHORT).await;
    let compared = pinned.compare(&read::<Digest>(&link, heard)?).blame(Category::Check)?;
    let running = pinned.schedule.epoch_at(clock::now());
    let running = running.ok_or(EntryError::NoEpoch).blame(Category::Usage)?;
    let mut passes = Passes::new(file, pinned);
    let shown = passes.log_in(running, Timing::Running, &compared, &mut entropy::rng()?);
    let shown = shown.blame(Category::Refused)?;
    let own = holder_of(&shown.bytes);
    let said = link.post("/v1/admissions", shown.bytes).await;
    let word: Signed<Permit> = read(&link, said)?;
    let writer = door.keeper(&card.board).check(epoch, &word).blame(Category::Check)?;
    // Otherwise the databases would refuse the write, and look guilty.
    (own == Some(writer)).then_some(()).ok_or(EntryError::OtherKey).blame(Category::Check)?;
    let (tag, session) = (Doorkeeper::tag_of(&writer), shown.session);
    Ok(Entry::Admitted(Box::new(ByPass { word, tag, passes, epoch: running, session })))
}

/// The key in a login.
fn holder_of(login: &[u8]) -> Option<VerifyingKey> {
    Login::from_bytes(login, Limit::ONE).ok().map(|login| login.holder)
}

fn read<T: DeserializeOwned>(
    link: &HttpClient,
    answer: Result<Vec<u8>, RequestError>,
) -> Result<T, Failure> {
    let answer = answer.map_err(RequestError::into_refusal)?;
    Ok(postcard::from_bytes(&answer).map_err(|_| link.malformed())?)
}
