//! Results of a shard's look-ups that a verifier then proves.

use crate::codes::Code;
use crate::messages::{Login, ReUp};
use alpheus_crypto::group::Element;

/// A login whose tag was unspent when it was looked up.
pub struct UnspentLogin(pub(crate) Box<Login>);

/// A code whose login tag was unspent when it was looked up.
pub struct UnspentCode(pub(crate) Box<Code>);

/// A re-up from the recorded tag of a live session.
pub struct DueReUp {
    pub(crate) re_up: ReUp,
    pub(crate) from: Element,
}
