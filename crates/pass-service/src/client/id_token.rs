//! ID tokens for an issuer whose accounts a provider knows: a command of the subscriber prints one
//! whenever a pass is fetched, since they are valid for minutes.

use crate::command::{self, CommandError};
use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;
use std::time::Duration;
use zeroize::Zeroizing;

/// How long the command may take. It may ask somebody for a password.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Why there is no ID token.
#[derive(Debug, thiserror::Error)]
pub enum IdTokenError {
    /// The command gives no result.
    #[error("ID tokens are printed by a command: {0}")]
    Command(#[from] CommandError),
    /// It failed.
    #[error("the command that prints ID tokens failed; run it by hand to see why")]
    Failed,
    /// It printed something else.
    #[error("the command did not print an ID token: one line of three parts with dots between")]
    Malformed,
    /// The token is for somebody else.
    #[error(
        "the ID token belongs to another account, not to that of this pass file; log in at the provider as before"
    )]
    OtherAccount,
}

/// An ID token, and whose it is.
pub struct IdToken {
    /// As the provider wrote it.
    pub text: Zeroizing<String>,
    /// Its `sub`. Only the issuer verifies the token.
    pub subject: String,
}

impl IdToken {
    /// Runs the command. Blocks.
    ///
    /// # Errors
    /// [`IdTokenError`].
    pub fn print(command: &str) -> Result<Self, IdTokenError> {
        let printed = command::run(command, "", TIMEOUT)?.ok_or(IdTokenError::Failed)?;
        let text = std::str::from_utf8(&printed).map_err(|_| IdTokenError::Malformed)?;
        Self::read(text.trim()).ok_or(IdTokenError::Malformed)
    }

    fn read(text: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Claims {
            sub: String,
        }
        let mut parts = text.split('.');
        let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
        let claims = Zeroizing::new(BASE64URL_NOPAD.decode(claims.as_bytes()).ok()?);
        let Claims { sub } = serde_json::from_slice(&claims).ok()?;
        let whole = parts.next().is_none() && text.bytes().all(|byte| byte.is_ascii_graphic());
        whole.then(|| Self { text: Zeroizing::new(text.to_owned()), subject: sub })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_prints_a_token_and_its_subject_is_read() {
        let claims = BASE64URL_NOPAD.encode(br#"{"sub":"u-17","name":"Ada"}"#);
        let token = IdToken::print(&format!("echo e30.{claims}.c2ln")).unwrap();
        assert_eq!((token.subject.as_str(), token.text.lines().count()), ("u-17", 1));
        assert!(matches!(IdToken::print("exit 1"), Err(IdTokenError::Failed)));
        let no_subject = BASE64URL_NOPAD.encode(b"{}");
        for bad in ["", "a.b", &claims, &format!("a.{no_subject}.b"), &format!("a.{claims}.b.c")] {
            let refused = IdToken::print(&format!("echo {bad}"));
            assert!(matches!(refused, Err(IdTokenError::Malformed)), "{bad}");
        }
    }
}
