//! What a screen shows to a gate: a login code, bound by its holder's signature
//! to the gate's nonce or to ten seconds. The binding is made anew each time, the
//! code is not.
//!
//! ```text
//! version:8  binding:8  step:64  signature[64]  code…
//! ```
//! `binding` is 0 for a gate's nonce (then `step` is 0), 1 for time.

use crate::error::CodeRefused;
use alpheus_anonymous_credential::codes::Code;
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::error::{HolderRefused, Malformed};
use alpheus_anonymous_credential::holder::{Holder, Outgoing};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::labelled;
use alpheus_crypto::labels;
use alpheus_crypto::sign::Signature;

/// Length of a step, in microseconds.
pub const STEP: u64 = 10_000_000;
const VERSION: u8 = 1;
const HEAD: usize = 1 + 1 + 8 + 64;

/// A gate's fresh nonce.
pub type GateNonce = [u8; 16];

/// What a code is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// One scan at one gate.
    Gate(GateNonce),
    /// So many ten seconds after 1970.
    Step(u64),
}

impl Binding {
    /// To the ten seconds that run.
    #[must_use]
    pub fn now(now: Time) -> Self {
        Self::Step(now.0 / STEP)
    }

    pub(crate) fn challenge(&self) -> [u8; 32] {
        match self {
            Self::Gate(nonce) => labelled(labels::PASS_GATE, &[nonce]).0,
            Self::Step(step) => labelled(labels::PASS_TIME, &[&step.to_be_bytes()]).0,
        }
    }
}

/// A code as it is shown.
///
/// # Errors
/// [`HolderRefused`] if it is not this holder's code.
pub fn present(
    holder: &Holder,
    code: &Outgoing,
    binding: &Binding,
) -> Result<Vec<u8>, HolderRefused> {
    let signature = holder.connect(code.session, &binding.challenge())?.to_bytes();
    let (kind, step) = match binding {
        Binding::Gate(_) => (0, 0),
        Binding::Step(step) => (1, *step),
    };
    Ok([&[VERSION, kind], &step.to_be_bytes()[..], &signature, &code.bytes].concat())
}

/// Reads what was shown, and checks that it was shown here and now. `nonce` is
/// the one that this gate showed, if it shows one: then nothing else is taken.
///
/// # Errors
/// [`CodeRefused`].
pub fn read(
    pinned: &Pinned,
    now: Time,
    nonce: Option<&GateNonce>,
    shown: &[u8],
) -> Result<Code, CodeRefused> {
    let (head, code) = shown.split_first_chunk::<HEAD>().ok_or(Malformed::Length)?;
    let (kind, rest) = head.split_first_chunk::<2>().ok_or(Malformed::Length)?;
    let (step, signature) = rest.split_first_chunk::<8>().ok_or(Malformed::Length)?;
    let step = u64::from_be_bytes(*step);
    let signature = signature.try_into().map_err(|_| Malformed::Length)?;
    let binding = match (kind, nonce) {
        ([VERSION, 0], Some(nonce)) if step == 0 => Binding::Gate(*nonce),
        ([VERSION, 1], None) => Binding::Step(step),
        _ => return Err(CodeRefused::Binding),
    };
    // The step that runs or the one before: at least ten seconds, at most twenty.
    let age = (now.0 / STEP).checked_sub(step);
    if nonce.is_none() && age.is_none_or(|age| age > 1) {
        return Err(CodeRefused::Stale);
    }
    let code = Code::from_bytes(code)?;
    if code.onward.len() as u64 != pinned.schedule.carried_by_code(code.login.epoch) {
        return Err(Malformed::Length.into());
    }
    code.check_signature(pinned, &binding.challenge(), &Signature::from_bytes(signature))
        .map_err(|_| CodeRefused::Signature)?;
    Ok(code)
}
