//! How a command fails: the category, the exit code, and how to fix it.

use crate::errors::ErrorId;
use std::error::Error;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

/// The category of a failure. Each has its exit code, so that scripts can distinguish a
/// refusal (working as intended) from a broken file or a full disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The command ran, and a check failed.
    Check,
    /// The command line is wrong.
    Usage,
    /// A policy forbids the request.
    Refused,
    /// An input file cannot be parsed.
    Input,
    /// I/O or permission error.
    Io,
    /// The command would have to guess what matters.
    Undecided,
    /// The command was asked to stop (Ctrl-C, SIGTERM) and did so cleanly before its end.
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
            Self::Undecided => 6,
            Self::Interrupted => 130,
        }
    }
}

/// Why a command failed: a typed error, where it happened and what to do about it. It is a
/// report for people and, like other reports, no `std::error::Error` itself.
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
    id: Option<ErrorId>,
    query: Option<String>,
}

/// What stands before the query that would be allowed, at the end of a failure's text.
pub const NEAREST: &str = "The nearest query that would be allowed:\n";

impl Failure {
    /// A failure caused by `error`.
    pub fn new(category: Category, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let error = error.into();
        Self { category, place: None, error, help: None, id: None, query: None }
    }

    /// Says which file, line or address it happened at.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Says how to fix it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says more about how to fix it.
    #[must_use]
    pub fn with_more_help(mut self, more: &str) -> Self {
        self.help = Some(match self.help {
            Some(help) => format!("{help}; {more}"),
            None => more.to_owned(),
        });
        self
    }

    /// Has the nearest query that would be allowed, as SQL that can be pasted.
    #[must_use]
    pub fn with_query(mut self, query: impl Into<String>) -> Self {
        self.query = Some(query.into());
        self
    }

    /// The nearest query that would be allowed, if one was found.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// Its text without that query, so that more can be said before it.
    #[must_use]
    pub fn said(&self) -> impl fmt::Display + '_ {
        FailureText(self)
    }

    /// Says which kind of failure it is, where the type of the error does not.
    #[must_use]
    pub fn with_id(mut self, id: ErrorId) -> Self {
        self.id = Some(id);
        self
    }

    /// The kind of failure, where it was said.
    #[must_use]
    pub const fn id(&self) -> Option<ErrorId> {
        self.id
    }

    /// The error, whose type and causes tell its kind where it was not said.
    #[must_use]
    pub fn error(&self) -> &(dyn Error + 'static) {
        self.error.as_ref()
    }

    /// The category.
    #[must_use]
    pub const fn category(&self) -> Category {
        self.category
    }

    /// Whether the reader of the output closed the pipe, which is no failure of a command
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

/// `error: place: what: because`, then `help: …` on a line of its own, then the nearest query.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.said())?;
        match &self.query {
            Some(query) => write!(f, "\n{NEAREST}{query}"),
            None => Ok(()),
        }
    }
}

/// A failure's text without its query.
struct FailureText<'a>(&'a Failure);

impl fmt::Display for FailureText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Failure { place, error, help, .. }) = self;
        write!(f, "error: ")?;
        if let Some(place) = place {
            write!(f, "{place}: ")?;
        }
        write_chain(f, error.as_ref())?;
        match help {
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

/// Turns an error into a [`Failure`] of a category.
pub trait Blame<T> {
    /// An input file cannot be parsed.
    ///
    /// # Errors
    /// The error itself, as [`Category::Input`] at `path`.
    fn blame_input(self, path: &Path) -> Result<T, Failure>;

    /// I/O or permission error at `path`.
    ///
    /// # Errors
    /// The error itself, as [`Category::Io`] at `path`.
    fn blame_io(self, path: &Path) -> Result<T, Failure>;

    /// Any other category.
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

/// The result of printing: `Break` if the reader closed the pipe, which is no failure of a
/// command that only prints.
///
/// # Errors
/// Anything else that keeps standard output from being written.
pub fn printed(written: io::Result<()>) -> Result<ControlFlow<()>, Failure> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        other => other.blame(Category::Io).map(ControlFlow::Continue),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_what_and_how_to_fix_it() {
        let failed: Result<(), _> = Err(io::Error::other("disk full"));
        let failure =
            failed.blame_io(Path::new("out.csv")).unwrap_err().with_help("free some space");
        assert_eq!(failure.to_string(), "error: out.csv: disk full\nhelp: free some space");
        assert_eq!(failure.category().exit_code(), 5);
        let failure = failure.with_query("SELECT 1;");
        assert_eq!(failure.said().to_string(), "error: out.csv: disk full\nhelp: free some space");
        assert!(failure.to_string().ends_with(&format!("space\n{NEAREST}SELECT 1;")));
    }

    #[derive(Debug)]
    struct OuterError(io::Error, bool);
    impl fmt::Display for OuterError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            if self.1 { write!(f, "cannot read: {}", self.0) } else { write!(f, "cannot read") }
        }
    }
    impl Error for OuterError {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn names_each_cause_once() {
        for repeats in [false, true] {
            let failure = Failure::new(Category::Io, OuterError(io::Error::other("gone"), repeats));
            assert_eq!(failure.to_string(), "error: cannot read: gone");
        }
    }
}
