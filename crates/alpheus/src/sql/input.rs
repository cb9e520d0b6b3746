//! Statements and commands, from a terminal with history and completion, or from standard input.

use super::complete::{Completer, Names};
use alpheus_node::failure::{Blame, Category, Failure};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

const PROMPT: &str = "alpheus> ";
const MORE: &str = "      -> ";
/// Statements that are kept.
const MAX_HISTORY: usize = 1000;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// A statement, without its `;`.
    Statement(String),
    /// Describe a schema or a query.
    Describe(String),
    /// Rows so far, or live: so many, or until it is interrupted.
    Rows {
        name: String,
        live: Option<Option<usize>>,
    },
    List,
    Help,
    /// A line that begins with a backslash and is no command.
    Unknown(String),
    /// The input ended within a statement, which was not sent.
    Unfinished,
}

/// Where lines come from.
enum Lines {
    Terminal { editor: Box<Editor<Completer, FileHistory>>, history: Option<PathBuf> },
    Pipe(io::Lines<io::StdinLock<'static>>),
}

/// Reads requests.
pub(super) struct Input {
    lines: Lines,
    /// The lines of a statement that has not ended.
    begun: String,
}

impl Input {
    pub(super) fn open(names: Names, remembers: bool) -> Result<Self, Failure> {
        let lines = match io::stdin().is_terminal() {
            false => Lines::Pipe(io::stdin().lock().lines()),
            true => terminal(names, remembers)?,
        };
        Ok(Self { lines, begun: String::new() })
    }

    pub(super) const fn is_terminal(&self) -> bool {
        matches!(self.lines, Lines::Terminal { .. })
    }

    /// From now on these can be completed.
    pub(super) fn complete_from(&mut self, names: Names) {
        if let Lines::Terminal { editor, .. } = &mut self.lines {
            editor.set_helper(Some(Completer::new(names)));
        }
    }

    /// The next request; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Request>, Failure> {
        loop {
            let Some(line) = self.line()? else {
                // A last statement may lack its end.
                let rest = std::mem::take(&mut self.begun);
                let rest = rest.trim();
                return Ok((!rest.is_empty()).then(|| match self.lines {
                    // Somebody who leaves has not ended the statement.
                    Lines::Terminal { .. } => Request::Unfinished,
                    Lines::Pipe(_) => Request::Statement(rest.to_owned()),
                }));
            };
            let line = match plain(&line).filter(|_| self.begun.is_empty()) {
                Some(command) => command.to_owned(),
                None => line,
            };
            if self.begun.is_empty() && line.trim_start().starts_with('\\') {
                match command(line.trim()) {
                    None => return Ok(None),
                    request => return Ok(request),
                }
            }
            self.begun.push_str(&line);
            self.begun.push('\n');
            if let Some(statement) = statement(&mut self.begun) {
                self.remember(&statement);
                return Ok(Some(Request::Statement(statement)));
            }
        }
    }

    fn line(&mut self) -> Result<Option<String>, Failure> {
        match &mut self.lines {
            Lines::Pipe(lines) => lines.next().transpose().blame(Category::Io),
            Lines::Terminal { editor, .. } => {
                let prompt = if self.begun.trim().is_empty() { PROMPT } else { MORE };
                match editor.readline(prompt) {
                    Ok(line) => Ok(Some(line)),
                    // Ctrl-C gives up the statement, Ctrl-D ends.
                    Err(ReadlineError::Interrupted) => {
                        self.begun.clear();
                        Ok(Some(String::new()))
                    }
                    Err(ReadlineError::Eof) => {
                        // The shell's prompt begins on a line of its own.
                        println!();
                        Ok(None)
                    }
                    Err(error) => Err(error).blame(Category::Io),
                }
            }
        }
    }

    fn remember(&mut self, statement: &str) {
        if let Lines::Terminal { editor, history } = &mut self.lines {
            let line = statement.split_whitespace().collect::<Vec<_>>().join(" ") + ";";
            // History is a convenience: without it the prompt still works.
            let _ = editor.add_history_entry(line);
            if let Some(path) = history {
                let _ = editor.save_history(path);
            }
        }
    }
}

fn terminal(names: Names, remembers: bool) -> Result<Lines, Failure> {
    let config = Config::builder().completion_type(CompletionType::List);
    let config = config.max_history_size(MAX_HISTORY).blame(Category::Io)?.build();
    let mut editor = Editor::with_config(config).blame(Category::Io)?;
    editor.set_helper(Some(Completer::new(names)));
    let history = if remembers { history_file() } else { None };
    if let Some(path) = &history {
        // There is none the first time.
        let _ = editor.load_history(path);
    }
    Ok(Lines::Terminal { editor: Box::new(editor), history })
}

/// The file of statements that were asked before, if there is a place for it.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let folder = state.or_else(home)?.join("alpheus");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("sql-history"))
}

/// The command for which a line stands that people write at other prompts.
fn plain(line: &str) -> Option<&'static str> {
    let word = line.trim().trim_end_matches(';').trim_end().to_lowercase();
    match word.as_str() {
        "quit" | "exit" | "\\quit" | "\\exit" => Some("\\q"),
        "help" | "?" | "\\h" | "\\help" => Some("\\?"),
        _ => None,
    }
}

/// The command of a line; none for the one that ends.
fn command(line: &str) -> Option<Request> {
    let words = words(line.trim_end_matches(';'));
    let mut words = words.iter().map(String::as_str);
    let (name, of, most) = (words.next().unwrap_or_default(), words.next(), words.next());
    let unknown = || Request::Unknown(line.chars().take(40).collect());
    let count = most.map(str::parse::<usize>).transpose();
    Some(match (name, of, count, words.next()) {
        ("\\q", None, ..) => return None,
        ("\\?", None, ..) => Request::Help,
        ("\\d", None, ..) => Request::List,
        ("\\d", Some(name), Ok(None), None) => Request::Describe(name.to_owned()),
        ("\\r", Some(name), Ok(None), None) => Request::Rows { name: plain_name(name), live: None },
        ("\\f", Some(name), Ok(most), None) => {
            Request::Rows { name: plain_name(name), live: Some(most) }
        }
        _ => unknown(),
    })
}

/// The words of a line. A name in quotes is one, with its quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars() {
        quoted ^= letter == '"';
        if letter.is_whitespace() && !quoted {
            words.push(std::mem::take(&mut word));
        } else {
            word.push(letter);
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// A name without the quotes that statements need around it.
fn plain_name(name: &str) -> String {
    let inside = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.map_or_else(|| name.to_owned(), |inside| inside.replace("\"\"", "\""))
}

/// Takes the first statement that has ended, without its `;`. A `;` within quotes or a comment
/// ends nothing; a statement of nothing is passed over.
fn statement(text: &mut String) -> Option<String> {
    while let Some(end) = end_of_statement(text) {
        let rest = text.split_off(end);
        let whole = std::mem::replace(text, rest.trim_start_matches(';').trim_start().to_owned());
        if !whole.trim().is_empty() {
            return Some(whole.trim().to_owned());
        }
    }
    if text.trim().is_empty() {
        text.clear();
    }
    None
}

fn end_of_statement(text: &str) -> Option<usize> {
    let (mut quote, mut comment, mut before) = (None, false, ' ');
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            _ if comment => comment = letter != '\n',
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '-') if before == '-' => comment = true,
            (None, ';') => return Some(at),
            _ => {}
        }
        before = letter;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_where_a_semicolon_is_not_quoted() {
        let mut text = "SHOW -- this; that\n SCHEMAS; WHERE a = 'x;y' ;; rest".to_owned();
        assert_eq!(statement(&mut text).unwrap(), "SHOW -- this; that\n SCHEMAS");
        assert_eq!(statement(&mut text).unwrap(), "WHERE a = 'x;y'");
        assert_eq!(statement(&mut text), None);
        assert_eq!(text.trim(), "rest");
    }

    #[test]
    fn what_people_write_elsewhere_is_understood() {
        for line in ["quit", "EXIT;", " exit ", "\\quit"] {
            assert_eq!(plain(line).map(command), Some(None), "{line}");
        }
        assert_eq!(plain("help").map(command), Some(Some(Request::Help)));
        assert_eq!(plain("SHOW SCHEMAS;"), None);
    }

    #[test]
    fn commands_are_lines_with_a_backslash() {
        let rows = |live| Request::Rows { name: "Street".to_owned(), live };
        assert_eq!(command("\\q"), None);
        assert_eq!(command("\\d"), Some(Request::List));
        assert_eq!(command("\\d Street"), Some(Request::Describe("Street".to_owned())));
        assert_eq!(command("\\r Street;"), Some(rows(None)));
        assert_eq!(command("\\f Street"), Some(rows(Some(None))));
        assert_eq!(command("\\f Street 3"), Some(rows(Some(Some(3)))));
        let quoted = Request::Rows { name: "my \"street\"".to_owned(), live: Some(Some(3)) };
        assert_eq!(command("\\f \"my \"\"street\"\"\" 3"), Some(quoted));
        let described = Request::Describe("\"my street\"".to_owned());
        assert_eq!(command("\\d \"my street\";"), Some(described));
        for wrong in ["\\f Street x", "\\x", "\\d a b", "\\"] {
            assert!(matches!(command(wrong), Some(Request::Unknown(_))), "{wrong}");
        }
    }
}
