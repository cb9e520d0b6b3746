//! Whether the machine's clock can be right, before a process touches its state.
//!
//! A machine without a battery starts in 1970, and one whose clock was set wrong years ahead. Records made
//! under such a time stay: old results would be deleted, sessions and epochs begin in years. So
//! a process does not start then. Certificates know the time roughly. A clock that shows too early a
//! time is waited for, since machines ask for the time while they start.

use crate::local_time::iso_time;
use crate::network::identity::{CERTIFICATE, IdentityFolder};
use crate::network::role::Role;
use crate::service::expiry::validity_of;
use crate::settings::Settings;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The start of 2026: no clock that is right shows an earlier time.
const EARLIEST: Duration = Duration::from_secs(1_767_225_600);
/// How long after the end of its certificate a process starts that only calls others: a device continues
/// to note what it measures, and says that it needs another.
const CALLERS: Duration = Duration::from_secs(400 * 86_400);
/// How long a clock that shows too early a time is waited for, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(500);

/// The machine's clock, and why it cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the machine's clock shows {shown}, {why}")]
pub struct WrongClockError {
    shown: String,
    why: ReasonError,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum ReasonError {
    #[error("which is before this program was built")]
    Early,
    #[error("and the certificate in {} is not valid before {at}", file.display())]
    Before { file: PathBuf, at: String },
    #[error("and the certificate in {} ended at {at}", file.display())]
    Over { file: PathBuf, at: String },
}

/// Checks the clock that a process with these settings starts under, and waits if it shows too early a
/// time.
///
/// # Errors
/// [`WrongClockError`].
pub(crate) fn check(settings: &Settings) -> Result<(), WrongClockError> {
    let (since, mut said) = (Instant::now(), false);
    loop {
        match check_now(settings) {
            Err(wrong)
                if !matches!(wrong.why, ReasonError::Over { .. }) && since.elapsed() < PATIENCE =>
            {
                if !std::mem::replace(&mut said, true) {
                    tracing::error!(%wrong, "the process waits for the right time before it starts");
                }
                std::thread::sleep(LOOK);
            }
            checked => return checked,
        }
    }
}

fn check_now(settings: &Settings) -> Result<(), WrongClockError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let folder = settings.identity.as_deref();
    let own =
        folder.and_then(|path| IdentityFolder::open_one_of(path, (Role::Server, &Role::ALL)).ok());
    let file = own.as_ref().map(|own| own.path(CERTIFICATE));
    let serves = own.is_some_and(|own| own.name().role.serves());
    check_at(now, file.as_deref(), if serves { Duration::ZERO } else { CALLERS })
}

fn check_at(now: Duration, file: Option<&Path>, late: Duration) -> Result<(), WrongClockError> {
    let text = |time: Duration| iso_time(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let wrong = |why| Err(WrongClockError { shown: text(now), why });
    if now < EARLIEST {
        return wrong(ReasonError::Early);
    }
    let Some((file, (start, end))) = file.and_then(|file| Some((file, validity_of(file)?))) else {
        return Ok(());
    };
    match file.to_owned() {
        file if now < start => wrong(ReasonError::Before { file, at: text(start) }),
        file if now > end.saturating_add(late) => wrong(ReasonError::Over { file, at: text(end) }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki;

    #[test]
    fn a_clock_that_cannot_be_right_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let pki = folder.path().join("pki");
        pki::make(&pki, &[(Role::Server, "service")]).unwrap();
        let file = pki.join("service").join(CERTIFICATE);
        let (start, end) = validity_of(&file).unwrap();
        let said = |now, late| match check_at(now, Some(&file), late) {
            Ok(()) => String::new(),
            Err(wrong) => wrong.to_string(),
        };
        let [zero, second] = [0, 1].map(Duration::from_secs);
        assert!(said(second, zero).starts_with("the machine's clock shows 1970-01-01T00:00:01"));
        assert!(said(second, zero).ends_with("before this program was built"));
        assert!(said(start - second, zero).contains("is not valid before"));
        assert_eq!(said(start, zero) + &said(end, zero), "");
        assert!(said(end + second, zero).contains("ended at"));
        assert_eq!(said(end + CALLERS, CALLERS), "");
        assert!(said(end + CALLERS + second, CALLERS).contains("ended at"));
        assert_eq!(check_at(EARLIEST, None, zero), Ok(()), "nothing else is known");
    }
}
