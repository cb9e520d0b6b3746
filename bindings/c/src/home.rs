//! Which process a handle belongs to.

use crate::codes::Code;
use crate::refusal::Refusal;

/// The process in which a handle was made. Two copies of a session would use the same pads, and two
/// copies of a pass would present it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home(u32);

impl Home {
    /// This process.
    #[must_use]
    pub fn here() -> Home {
        Home(std::process::id())
    }

    /// Fails in a copy of the process.
    ///
    /// # Errors
    /// [`Code::ProcessCopied`].
    pub fn check(self) -> Result<(), Refusal> {
        if self == Home::here() {
            return Ok(());
        }
        let what = "this handle was made in another process, of which this one is a copy; \
                    make another one here";
        Err(Refusal::new(Code::ProcessCopied, "Copied", what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_of_another_process_is_refused() {
        assert_eq!(Home::here().check(), Ok(()));
        let other = Home(std::process::id() ^ 1).check().unwrap_err();
        assert_eq!((other.code, other.reason.as_str()), (Code::ProcessCopied, "Copied"));
    }
}
