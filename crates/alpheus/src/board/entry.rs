//! How a writer comes in: as a member, by its key, or by a pass that it shows to the
//! doorkeeper, once in an epoch.

use crate::board::card::Opened;
use crate::board::door::same_epochs;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::pass::client::passes::Passes;
use crate::pass::client::passfile::PassFile;
use crate::pass::clock;
use crate::pass::link::{Link, LinkError};
use alpheus_anonymous_board::admission::{Admitted, Doorkeeper, Members};
use alpheus_anonymous_board::configuration::Epoch;
use alpheus_anonymous_board::messages::{Tag, WriteName};
use alpheus_anonymous_credential::holder::Which;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, SessionId};
use alpheus_anonymous_credential::schedule::Epoch as PassEpoch;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sign::{Signature, SigningKey, VerifyingKey};
use alpheus_crypto::signed::Signed;
use axum::http::Method;
use serde::de::DeserializeOwned;

/// What entitles to one write in an epoch.
pub enum Entry<'a> {
    /// A member's key.
    Member(&'a SigningKey),
    /// The doorkeeper's word, and the pass that speaks for the key in it.
    Admitted(Box<ByPass>),
}

/// A writer that was admitted.
pub struct ByPass {
    word: Signed<Admitted>,
    tag: Tag,
    passes: Passes,
    epoch: PassEpoch,
    session: SessionId,
}

/// Why nobody comes in by a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEntry {
    /// Members write to this board.
    #[error("this board takes no passes; give the key of a member with --key")]
    NoDoor,
    /// The file's passes are another service's.
    #[error("the pass is another service's; join with the card of this board's passes")]
    OtherPasses,
    /// The passes' epochs are not the board's.
    #[error(
        "the board's epochs are not those of its passes; do not write to it, and tell its operator"
    )]
    OtherEpochs,
    /// The doorkeeper's word is for another key.
    #[error(
        "the doorkeeper admitted another key than the one that was shown to it; nothing was written"
    )]
    OtherKey,
    /// The pass's schedule has not begun.
    #[error("the first epoch of the passes has not begun by this machine's clock")]
    NoEpoch,
}

impl Entry<'_> {
    /// Whose quota it spends.
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
        // The session is that holder's own, so it signs; zeros are refused.
        signed.unwrap_or_else(|| Signature::from_bytes(&[0; 64]))
    }
}

/// Shows the pass in a file to the board's doorkeeper for the epoch that is open. What was
/// shown in it already is shown again as it was: who was cut off comes in by the same key.
///
/// # Errors
/// The file holds no pass, the doorkeeper refuses or is not reached, or what it says is
/// for another board or epoch.
///
/// # Privacy
/// On a connection of its own. The doorkeeper learns that some holder takes part.
pub async fn by_pass(
    card: &Opened,
    epoch: Epoch,
    file: PassFile,
) -> Result<Entry<'static>, Failure> {
    let door = card.door.as_ref().ok_or(NoEntry::NoDoor).blame(Category::Usage)?;
    let pinned = file.card()?.pinned;
    let fits = pinned.fingerprint() == door.passes;
    fits.then_some(()).ok_or(NoEntry::OtherPasses).blame(Category::Input)?;
    let same = same_epochs(&card.board.schedule, &pinned.schedule);
    same.then_some(()).ok_or(NoEntry::OtherEpochs).blame(Category::Check)?;
    let link = Link::new(door.at.clone(), card.authority.as_deref())?;
    let heard = link.exchange(Method::GET, "/v1/passes", &[], Vec::new()).await?;
    let compared = pinned.compare(&read::<Digest>(&link, &heard)?).blame(Category::Check)?;
    let running = pinned.schedule.epoch_at(clock::now());
    let running = running.ok_or(NoEntry::NoEpoch).blame(Category::Usage)?;
    let mut passes = Passes::new(file, pinned);
    let shown = passes.log_in(running, Which::Running, &compared, &mut entropy::rng()?);
    let shown = shown.blame(Category::Refused)?;
    let own = holder_of(&shown.bytes);
    let said = link.post("/v1/admissions", shown.bytes).await?;
    let word: Signed<Admitted> = read(&link, &said)?;
    let writer = door.keeper(&card.board).check(epoch, &word).blame(Category::Check)?;
    // Otherwise the databases refused the write, and looked guilty.
    (own == Some(writer)).then_some(()).ok_or(NoEntry::OtherKey).blame(Category::Check)?;
    let (tag, session) = (Doorkeeper::tag_of(&writer), shown.session);
    Ok(Entry::Admitted(Box::new(ByPass { word, tag, passes, epoch: running, session })))
}

/// The key that a login is for.
fn holder_of(login: &[u8]) -> Option<VerifyingKey> {
    Login::from_bytes(login, Limit::ONE).ok().map(|login| login.holder)
}

fn read<T: DeserializeOwned>(link: &Link, bytes: &[u8]) -> Result<T, LinkError> {
    postcard::from_bytes(bytes).map_err(|_| LinkError::Malformed(link.base().origin()))
}
