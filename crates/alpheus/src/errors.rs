//! `alpheus errors`: what a failure means, why it is one, and how to fix it.

use crate::generate::profile::ProfileError;
use alpheus_input::tables::{print_json, print_tables};
use alpheus_node::error_ids;
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Category, Failure, NEAREST, printed};
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::settings::Format;
use alpheus_policy::show::Table;
use anstream::AutoStream;
use anstream::ColorChoice;
use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};

const EXAMPLES: &str = "\
Examples:
  alpheus errors
  alpheus errors policy-forbids-window
  alpheus errors server-unreachable --format json";

/// Arguments of `alpheus errors`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The id that a command printed; without it, all are listed
    #[arg(value_name = "ID")]
    id: Option<String>,
}

/// There is no failure of this id.
#[derive(Debug, thiserror::Error)]
#[error("there is no error `{0}`")]
struct UnknownIdError(String);

/// The id of a failure: its own, else that of the first error in its chain of causes that has
/// one, else that of its category.
#[must_use]
pub fn id_of(failure: &Failure) -> ErrorId {
    if let Some(id) = failure.id() {
        return id;
    }
    let mut next: Option<&(dyn Error + 'static)> = Some(failure.error());
    while let Some(error) = next {
        if let Some(id) = of(error) {
            return id;
        }
        next = error.source();
    }
    error_ids::of_category(failure.category())
}

fn of(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    let found = alpheus_streams::error_ids::of(error);
    #[cfg(feature = "board")]
    let found = found.or_else(|| alpheus_board_service::error_ids::of(error));
    #[cfg(feature = "pass")]
    let found = found.or_else(|| alpheus_pass_service::error_ids::of(error));
    #[cfg(feature = "stats")]
    let found = found.or_else(|| alpheus_stats_service::error_ids::of(error));
    #[cfg(feature = "table")]
    let found = found.or_else(|| alpheus_table_service::error_ids::of(error));
    #[cfg(feature = "worker")]
    let found = found.or_else(|| alpheus_worker::error_ids::of(error));
    // What the system says is the last cause, and says least.
    found.or_else(|| own(error)).or_else(|| error_ids::of(error))
}

fn own(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    alpheus_node::error_ids!(error;
        UnknownIdError as _ => ErrorId::CommandLine,
        ProfileError as _ => ErrorId::FileInvalid,
        alpheus_standards::ImportError as _ => ErrorId::ContractInvalid,
    )
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default();
const MORE: Style = Style::new().dimmed();

/// Says on standard error what failed and where its explanation is found; in colour where a
/// terminal has it and `NO_COLOR` is not set.
pub fn report(failure: &Failure) {
    let said = with_pointer(failure);
    print(&coloured(&said));
}

/// Says where the kinds of failures are explained that the command line itself has.
pub fn report_usage() {
    print(&coloured(&pointer(ErrorId::CommandLine)));
}

/// Prints `said` to standard error, without its colours where they would be noise.
fn print(said: &str) {
    match AutoStream::choice(&io::stderr()) {
        ColorChoice::Never => note!("{}", strip_str(said)),
        _ => note!("{said}"),
    }
}

/// Where the explanation of a failure is found.
fn pointer(id: ErrorId) -> String {
    format!("more: alpheus errors {id}")
}

/// A failure's text with its pointer. A query that can be pasted stays the end, so that nothing else
/// is taken along with it.
fn with_pointer(failure: &Failure) -> String {
    let (said, pointer) = (failure.said(), pointer(id_of(failure)));
    match failure.query() {
        Some(query) => format!("{said}\n{pointer}\n{NEAREST}{query}"),
        None => format!("{said}\n{pointer}"),
    }
}

fn coloured(said: &str) -> String {
    let line = |line: &str| {
        for (word, style) in [("error:", ERROR), ("help:", HELP), ("more:", MORE)] {
            if let Some(rest) = line.strip_prefix(word) {
                return format!("{style}{word}{style:#}{rest}");
            }
        }
        line.to_owned()
    };
    said.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[derive(Serialize)]
struct Explained {
    id: &'static str,
    what: &'static str,
    why: &'static str,
    fix: &'static str,
    page: String,
}

impl From<ErrorId> for Explained {
    fn from(id: ErrorId) -> Self {
        let page = format!("docs/reference/errors.md#{id}");
        Self { id: id.id(), what: id.what(), why: id.why(), fix: id.fix(), page }
    }
}

/// Runs the command.
///
/// # Errors
/// There is no failure of the id.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let explained: Vec<Explained> = match &args.id {
        None => ErrorId::ALL.iter().copied().map(Explained::from).collect(),
        Some(id) => match ErrorId::parse(id) {
            Some(known) => vec![known.into()],
            None => return Err(unknown(id)),
        },
    };
    let mut out = io::stdout().lock();
    let written = match globals.format.unwrap_or_default() {
        Format::Json => print_json(&explained, &mut out),
        Format::Csv => print_tables(&[table(&explained, 4)], Format::Csv, &mut out),
        Format::Table if args.id.is_none() => {
            print_tables(&[table(&explained, 2)], Format::Table, &mut out)
        }
        Format::Table => explained.iter().try_for_each(|one| in_words(one, &mut out)),
    };
    printed(written).map(drop)
}

fn unknown(id: &str) -> Failure {
    let shown: String = id.escape_debug().take(64).collect();
    let similar: Vec<&str> = ErrorId::similar(&shown).iter().map(|known| known.id()).collect();
    let help = match similar[..] {
        [] => "`alpheus errors` lists all".to_owned(),
        _ => format!("is it one of these: {}?", similar.join(", ")),
    };
    Failure::new(Category::Usage, UnknownIdError(shown)).with_help(help)
}

/// The first columns of a table of failures.
fn table(explained: &[Explained], columns: usize) -> Table {
    let row = |one: &Explained| [one.id, one.what, one.why, one.fix].map(str::to_owned);
    let some = |cells: [String; 4]| cells.into_iter().take(columns).collect();
    Table {
        title: "Errors".to_owned(),
        columns: some(["id", "what", "why", "fix"].map(str::to_owned)),
        rows: explained.iter().map(row).map(some).collect(),
    }
}

fn in_words(one: &Explained, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}\n\n{}\n", one.id, one.what)?;
    writeln!(out, "Why:  {}\nFix:  {}", one.why, one.fix)?;
    // A user of a package has no checkout, and misses nothing: the page says the same.
    writeln!(out, "Page: {} of the documents, which says the same", one.page)
}

/// The page of the reference: every failure that a command can print.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Errors by id\n\nA command that fails prints what is wrong, often how to fix it, and an id. \
         This page explains each id. `alpheus errors ID` prints the same. Ids do not change between \
         versions, so scripts can rely on them; exit codes are coarser.\n",
    );
    for known in ErrorId::ALL {
        // Writing to a string cannot fail.
        let _ = write!(
            page,
            "\n## {known}\n\n{} {}\n\n**Fix:** {}\n",
            known.what(),
            known.why(),
            known.fix()
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_node::failure::Blame;
    use alpheus_node::network::error::{Problem, RequestError};
    use std::path::Path;

    #[test]
    fn a_failure_finds_its_id_by_its_own_by_its_error_or_by_its_category() {
        let missing: Result<(), _> = Err(io::Error::from(io::ErrorKind::NotFound));
        let failure = missing.blame_io(Path::new("x")).unwrap_err();
        assert_eq!(id_of(&failure), ErrorId::FileMissing);
        let failure = failure.with_id(ErrorId::SchemaInvalid);
        assert_eq!(id_of(&failure), ErrorId::SchemaInvalid);
        let plain = Failure::new(Category::Undecided, "two meanings");
        assert_eq!(id_of(&plain), ErrorId::MustGuess);
    }

    #[test]
    fn only_the_first_word_of_a_line_has_a_colour() {
        let said = coloured("error: x: error: y\nhelp: z\nplain");
        let plain = anstream::adapter::strip_str(&said).to_string();
        assert_eq!(plain, "error: x: error: y\nhelp: z\nplain");
        assert!(said.ends_with("plain") && said.contains(" x: error: y"), "{said:?}");
        assert!(said.starts_with('\x1b'), "{said:?}");
    }

    #[test]
    fn a_query_to_paste_is_the_end() {
        let failure = Failure::new(Category::Refused, "no").at("q.sql").with_help("or ask");
        let failure = failure.with_id(ErrorId::PolicyForbids);
        let said = "error: q.sql: no\nhelp: or ask\nmore: alpheus errors policy-forbids";
        assert_eq!(with_pointer(&failure), said);
        let query = "CREATE STREAM q AS\nSELECT 1;";
        let failure = failure.with_query(query);
        assert_eq!(with_pointer(&failure), format!("{said}\n{NEAREST}{query}"));
        // As the service says it.
        let problem = Problem {
            rule: "policy".to_owned(),
            detail: "no".to_owned(),
            help: None,
            query: Some(query.into()),
            status: 403,
            id: Some("policy-forbids".to_owned()),
        };
        let said = "error: no (policy)\nmore: alpheus errors policy-forbids";
        let failure = Failure::from(RequestError::Refused(problem));
        assert_eq!(with_pointer(&failure), format!("{said}\n{NEAREST}{query}"));
    }

    /// A device logs the lines that it refuses, and a connection to a wrong peer has no answer.
    #[test]
    fn causes_that_no_command_ends_with_have_their_ids() {
        let refused = Failure::new(Category::Input, alpheus_streams::produce::LateLineError);
        assert_eq!(id_of(&refused).id(), "line-refused");
        let peer = alpheus_node::network::peer::WrongPeerError::Revoked;
        assert_eq!(id_of(&Failure::new(Category::Io, peer)).id(), "wrong-peer");
    }

    #[test]
    fn the_page_has_a_heading_for_each_id() {
        let page = page();
        for known in ErrorId::ALL {
            assert_eq!(page.matches(&format!("\n## {known}\n")).count(), 1);
        }
    }
}
