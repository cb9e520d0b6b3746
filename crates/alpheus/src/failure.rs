//! How a command fails: whose fault it is, the exit code, and what would mend it.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Whose fault a failure is. Each has its exit code, so that scripts can tell
/// a refusal (working as intended) from a broken file or a full disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The command ran, and what it checked does not hold.
    Check,
    /// The command line does not say what to do.
    Usage,
    /// A policy forbids what was asked.
    Refused,
    /// A file that was given cannot be understood.
    Input,
    /// The machine did not let us read, write, listen or connect.
    Io,
    /// It was asked to stop (Ctrl-C, SIGTERM) and did so in order, before its end.
    Interrupted,
}

impl Category {
    /// The process's exit code; 0 is success.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Check => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Input => 4,
            Self::Io => 5,
            Self::Interrupted => 130,
        }
    }
}

/// Why a command ended without doing what was asked. It carries a typed error
/// from below, where it happened and what to do about it.
///
/// # Privacy
/// It is printed and logged, so an error put into it must not hold a secret or
/// a person's value; the error types of our crates are made so.
#[derive(Debug)]
pub struct Failure {
    category: Category,
    place: Option<String>,
    error: Box<dyn Error + Send + Sync>,
    help: Option<String>,
}

impl Failure {
    /// A failure caused by `error`.
    pub fn new(category: Category, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { category, place: None, error: error.into(), help: None }
    }

    /// Says which file, line or address it happened at.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Says how to mend it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whose fault it is.
    #[must_use]
    pub const fn category(&self) -> Category {
        self.category
    }

    /// Whether whoever read our output has read enough: no failure of a command
    /// that only prints.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        let error = self.error.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The process's exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.category.exit_code())
    }
}

/// `error: place: what: because`, then `help: …` on a line of its own.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: ")?;
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        write_chain(f, self.error.as_ref())?;
        match &self.help {
            Some(help) => write!(f, "\nhelp: {help}"),
            None => Ok(()),
        }
    }
}

/// An error and its causes, leaving out a cause whose text the error repeats.
fn write_chain(f: &mut fmt::Formatter<'_>, error: &dyn Error) -> fmt::Result {
    let mut said = error.to_string();
    write!(f, "{said}")?;
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !said.contains(&text) {
            write!(f, ": {text}")?;
        }
        said = text;
        next = cause.source();
    }
    Ok(())
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.error.as_ref())
    }
}

/// Turns an error from below into a [`Failure`] by saying whose fault it is.
pub trait Blame<T> {
    /// A file that was given cannot be understood.
    ///
    /// # Errors
    /// The error itself, as [`Category::Input`] at `path`.
    fn blame_input(self, path: &Path) -> Result<T, Failure>;

    /// The machine did not let us use `path`.
    ///
    /// # Errors
    /// The error itself, as [`Category::Io`] at `path`.
    fn blame_io(self, path: &Path) -> Result<T, Failure>;

    /// Anyone else.
    ///
    /// # Errors
    /// The error itself, under `category`.
    fn blame(self, category: Category) -> Result<T, Failure>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Blame<T> for Result<T, E> {
    fn blame_input(self, path: &Path) -> Result<T, Failure> {
        self.map_err(|e| Failure::new(Category::Input, e).at(path.display().to_string()))
    }

    fn blame_io(self, path: &Path) -> Result<T, Failure> {
        self.map_err(|e| Failure::new(Category::Io, e).at(path.display().to_string()))
    }

    fn blame(self, category: Category) -> Result<T, Failure> {
        self.map_err(|e| Failure::new(category, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_what_and_how_to_mend() {
        let failed: Result<(), _> = Err(io::Error::other("disk full"));
        let failure =
            failed.blame_io(Path::new("out.csv")).unwrap_err().with_help("free some space");
        assert_eq!(failure.to_string(), "error: out.csv: disk full\nhelp: free some space");
        assert_eq!(failure.category().exit_code(), 5);
    }

    #[derive(Debug)]
    struct Outer(io::Error, bool);
    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            if self.1 { write!(f, "cannot read: {}", self.0) } else { write!(f, "cannot read") }
        }
    }
    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn names_each_cause_once() {
        for repeats in [false, true] {
            let failure = Failure::new(Category::Io, Outer(io::Error::other("gone"), repeats));
            assert_eq!(failure.to_string(), "error: cannot read: gone");
        }
    }
}
