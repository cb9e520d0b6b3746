//! What a screen shows to a gate: a login code, which its holder's signature binds to the gate's
//! nonce or to a step of ten seconds. The code stays the same; the binding is fresh each time.
//!
//! ```text
//! version:8  binding:8  step:64  signature[64]  code…
//! ```
//! `binding` is 0 for a gate's nonce (then `step` is 0), 1 for time.

use crate::error::CodeError;
use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::error::{HolderError, MessageError};
use alpheus_anonymous_credential::holder::{Holder, OutboundMessage};
use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::labels;
use alpheus_crypto::sign::Signature;
use alpheus_time::{Span, Timestamp};

/// Length of a step.
pub const STEP: Span = Span::seconds(10);
const VERSION: u8 = 1;
const HEAD: usize = 1 + 1 + 8 + 64;

/// A gate's fresh nonce.
pub type GateNonce = [u8; 16];

/// What a code is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// One scan at one gate.
    Gate(GateNonce),
    /// The number of the step of ten seconds since 1970.
    Step(u64),
}

impl Binding {
    /// Binds to the running step.
    #[must_use]
    pub fn now(now: Timestamp) -> Self {
        Self::Step(now.0 / STEP.0)
    }

    pub(crate) fn challenge(&self) -> [u8; 32] {
        match self {
            Self::Gate(nonce) => labelled_hash(labels::PASS_GATE, &[nonce]).0,
            Self::Step(step) => labelled_hash(labels::PASS_TIME, &[&step.to_be_bytes()]).0,
        }
    }
}

/// A code in the form that the screen shows.
///
/// # Errors
/// [`HolderError`] if it is not this holder's code.
pub fn present(
    holder: &Holder,
    code: &OutboundMessage,
    binding: &Binding,
) -> Result<Vec<u8>, HolderError> {
    let signature = holder.connect(code.session, &binding.challenge())?.to_bytes();
    let (kind, step) = match binding {
        Binding::Gate(_) => (0, 0),
        Binding::Step(step) => (1, *step),
    };
    Ok([&[VERSION, kind], &step.to_be_bytes()[..], &signature, &code.bytes].concat())
}

/// Decodes a code from a screen, and checks that it is meant for this gate and time. `nonce` is
/// the gate's own, if it displays one; then no other binding is accepted.
///
/// # Errors
/// [`CodeError`].
pub fn read(
    pinned: &PinnedConfiguration,
    nonce: Option<&GateNonce>,
    shown: &[u8],
    now: Timestamp,
) -> Result<Code, CodeError> {
    let (head, code) = shown.split_first_chunk::<HEAD>().ok_or(MessageError::Length)?;
    let (kind, rest) = head.split_first_chunk::<2>().ok_or(MessageError::Length)?;
    let (step, signature) = rest.split_first_chunk::<8>().ok_or(MessageError::Length)?;
    let step = u64::from_be_bytes(*step);
    let signature = signature.try_into().map_err(|_| MessageError::Length)?;
    let binding = match (kind, nonce) {
        ([VERSION, 0], Some(nonce)) if step == 0 => Binding::Gate(*nonce),
        ([VERSION, 1], None) => Binding::Step(step),
        _ => return Err(CodeError::Binding),
    };
    // The running step or the one before, so a code is valid for ten to twenty seconds.
    let age = (now.0 / STEP.0).checked_sub(step);
    if nonce.is_none() && age.is_none_or(|age| age > 1) {
        return Err(CodeError::Stale);
    }
    let code = Code::from_bytes(code)?;
    if code.onward.len() as u64 != pinned.schedule.carried_by_code(code.login.epoch) {
        return Err(MessageError::Length.into());
    }
    code.check_signature(pinned, &binding.challenge(), &Signature::from_bytes(signature))
        .map_err(|_| CodeError::Signature)?;
    Ok(code)
}
