//! What the planner of the service says of a question that is not over released rows.
//!
//! The question is sent as `EXPLAIN`, by `alpheus query`. It begins no query and spends no budget. The
//! question names an encrypted stream, so the service learns it, as with any `EXPLAIN`.

use crate::alpheus::Alpheus;
use crate::refusal::{FORBIDDEN, SYNTAX, StatementError, UNREACHABLE, UNSUPPORTED};
use std::process::Output;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How many questions are with the service at once.
const AT_ONCE: usize = 4;
/// How long the service may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the planner asks for if a question has no window. With one it can say more.
const WINDOW: &str = "WINDOW TUMBLING (SIZE 1 HOUR)";
/// How the answer begins if running queries are in the way.
const NOT_NOW: &str = "This query could not be started now";
/// The exit code of a question that policies forbid.
const REFUSED: i32 = 3;

/// Asks the planner. Without a service, nobody can be asked.
#[derive(Debug)]
pub(crate) struct Planner {
    alpheus: Option<Alpheus>,
    room: Semaphore,
}

/// What the planner has said.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Allowed,
    Refused { code: &'static str, words: String, help: Option<String> },
}

impl Planner {
    pub(crate) fn new(alpheus: Option<Alpheus>) -> Planner {
        Planner { alpheus, room: Semaphore::new(AT_ONCE) }
    }

    /// Why a question over an encrypted stream is not answered here.
    pub(crate) async fn refuse(&self, stream: &str, sql: &str) -> StatementError {
        let here = format!(
            "`{stream}` is a stream of encrypted events, and only released rows can be read here"
        );
        let verdict = match self.ask(sql).await {
            Ok(verdict) => verdict,
            Err(refusal) => return refusal,
        };
        match verdict {
            Verdict::Allowed => StatementError::new(UNSUPPORTED, format!("{here}; policies would allow this question"))
                .with_hint(format!(
                    "ask it with `alpheus sql`, as CREATE STREAM name AS …{}. That may spend owners' budget; nothing \
                     here does. Its rows then become a table here",
                    if has_window(sql) { String::new() } else { format!(" {WINDOW} FROM {stream}") }
                )),
            Verdict::Refused { code, words, help } => {
                let help = help.map(|help| format!("{help}. ")).unwrap_or_default();
                StatementError::new(code, format!("{here}; the planner says: {words}"))
                    .with_hint(format!("{help}Nothing was asked, and no budget was spent"))
            }
        }
    }

    /// A question without a window is asked again with one, so that policies have a say.
    async fn ask(&self, sql: &str) -> Result<Verdict, StatementError> {
        let first = self.explain(sql).await?;
        match (&first, with_window(sql)) {
            (Verdict::Refused { words, .. }, Some(with_window))
                if words.contains("has no WINDOW") =>
            {
                self.explain(&with_window).await
            }
            _ => Ok(first),
        }
    }

    async fn explain(&self, sql: &str) -> Result<Verdict, StatementError> {
        let unreachable = |why: &str| {
            StatementError::new(UNREACHABLE, format!("the planner cannot be asked: {why}"))
                .with_hint("`about.queries` lists the queries whose rows are here")
        };
        let Some(alpheus) = &self.alpheus else {
            return Err(unreachable("this program was started without --server"));
        };
        let _room = self.room.acquire().await.map_err(|_| unreachable("it is stopping"))?;
        let asked = alpheus.command(&["--query", &format!("EXPLAIN {sql}")]).output();
        match timeout(PATIENCE, asked).await {
            Ok(Ok(output)) => Ok(read(&output)),
            Ok(Err(_)) => Err(unreachable("`alpheus` does not run")),
            Err(_) => Err(unreachable("the service does not answer")),
        }
    }
}

fn has_window(sql: &str) -> bool {
    word(sql, "WINDOW").is_some()
}

/// The same question about hours.
fn with_window(sql: &str) -> Option<String> {
    let (select, rest) = sql.split_at(word(sql, "FROM")?);
    (!has_window(sql)).then(|| format!("{}\n{WINDOW} {rest}", select.trim_end()))
}

/// Where a word of the language first stands, in whatever case. Texts, names in quotes, comments and
/// parentheses may have the same word.
fn word(sql: &str, wanted: &str) -> Option<usize> {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(first) = sql[at..].chars().next() {
        let rest = &sql[at..];
        let end = match first {
            '\'' | '"' | '`' => rest[1..].find(first).map(|end| end + 2),
            '-' if rest.starts_with("--") => rest.find('\n'),
            '/' if rest.starts_with("/*") => rest.find("*/").map(|end| end + 2),
            _ if is_part(first) => {
                Some(rest.find(|char: char| !is_part(char)).unwrap_or(rest.len()))
            }
            _ => Some(first.len_utf8()),
        };
        let own = &rest[..end?];
        if depth == 0 && own.eq_ignore_ascii_case(wanted) {
            return Some(at);
        }
        depth = match first {
            '(' => depth + 1,
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        at += own.len();
    }
    None
}

/// Reads what `alpheus query` has printed.
fn read(output: &Output) -> Verdict {
    let said = String::from_utf8_lossy(&output.stderr);
    let code = match output.status.code() {
        Some(0) => return allowed(&String::from_utf8_lossy(&output.stdout)),
        Some(REFUSED) => FORBIDDEN,
        _ => SYNTAX,
    };
    words(&said, code)
}

/// That policies would allow it; where running queries are in its way, the first line says so.
fn allowed(said: &str) -> Verdict {
    match said.lines().next().filter(|first| first.starts_with(NOT_NOW)) {
        Some(first) => Verdict::Refused { code: FORBIDDEN, words: first.to_owned(), help: None },
        None => Verdict::Allowed,
    }
}

/// The message and the help of a failure.
fn words(said: &str, code: &'static str) -> Verdict {
    let from = said.find("error: ").map_or(0, |at| at + "error: ".len());
    let (mut message, mut help) = (Vec::new(), Vec::new());
    for line in said[from..].lines() {
        match line.strip_prefix("help: ") {
            _ if line.starts_with("more: ") => break,
            Some(own) => help.push(own),
            None if help.is_empty() => message.push(line),
            None => help.push(line),
        }
    }
    let words = message.join("\n");
    let words = words.trim().trim_start_matches("the service refused: ").to_owned();
    Verdict::Refused {
        code,
        words,
        help: (!help.is_empty()).then(|| help.join("\n").trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_read_as_message_and_help() {
        let said = "warning: x\nerror: no window\n  |\n1 | a\nhelp: use an hour\nmore: alpheus errors id\n";
        let expected = Verdict::Refused {
            code: FORBIDDEN,
            words: "no window\n  |\n1 | a".to_owned(),
            help: Some("use an hour".to_owned()),
        };
        assert_eq!(words(said, FORBIDDEN), expected);
    }

    #[test]
    fn what_running_queries_are_in_the_way_of_is_refused_in_the_planners_words() {
        assert_eq!(allowed("query_1 from Meters\n  revealed"), Verdict::Allowed);
        let first = "This query could not be started now (policy-released-once): drop `Load`.";
        let refused = allowed(&format!("{first}\n\nquery_1 from Meters\n"));
        let expected = Verdict::Refused { code: FORBIDDEN, words: first.to_owned(), help: None };
        assert_eq!(refused, expected);
    }

    #[test]
    fn a_question_without_a_window_gets_one() {
        let with = with_window("SELECT avg(a) FROM T").unwrap();
        assert_eq!(with, "SELECT avg(a)\nWINDOW TUMBLING (SIZE 1 HOUR) FROM T");
        assert_eq!(with_window(&with), None);
        assert_eq!(with_window("select avg(a) window tumbling (size 1 hour) from T"), None);
        for (asked, expected) in [
            ("select avg(a)\nfrom T where from_day > 1", "from T where from_day > 1"),
            ("SELECT window_start, avg(\"a FROM b\") From T", "From T"),
            ("select extract(hour from t), ' from ' -- from here\n\tfrom T", "from T"),
            ("select 1 /* from WINDOW */ from T", "from T"),
        ] {
            let with = with_window(asked).unwrap();
            assert!(with.ends_with(&format!("{WINDOW} {expected}")), "{with}");
        }
        for none in ["SELECT 1", "SELECT 'FROM", "SELECT (1 FROM T)", "", "/* FROM"] {
            assert_eq!(with_window(none), None, "{none}");
        }
    }
}
