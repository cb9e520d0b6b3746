//! `policies.yaml` and `query.sql`: what owners release by default, and the first question.

use super::{Draft, comment};
use crate::tally::Values;
use std::fmt::Write as _;

/// What the default means for the owners, in plain words.
pub(super) fn says(draft: &Draft<'_>) -> String {
    let (owners, window) = (draft.found.tally.owners, draft.window.name);
    match (&draft.found.owner, owners) {
        (None, _) => format!(
            "The file names no owner, so all its rows are one stream. There is no crowd to hide in: anyone who reads a result learns this stream's totals of each {window}. If the rows are about people, name their column with `--owner`."
        ),
        (Some(_), 1) => format!(
            "The file has one owner. There is no crowd to hide in: anyone who reads a result learns this owner's totals of each {window}. Choose `nothing` to release nothing."
        ),
        (Some(_), 2..=9) => format!(
            "The file has {owners} owners. A total over so few says much about each of them, so it is released only if all {owners} have data in a window of {window} or longer. Choose `nothing` to release nothing."
        ),
        _ => format!(
            "The file has {owners} owners. Nobody learns anything about fewer than {} of them together, or about less than {window}.",
            draft.least
        ),
    }
}

/// A text as comment lines.
fn wrapped(text: &str, mark: &str) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if line.len() + word.len() > 90 {
            let _ = writeln!(lines, "{mark}{line}");
            line.clear();
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(lines, "{mark}{line}");
    lines
}

pub(super) fn policies(draft: &Draft<'_>) -> String {
    format!(
        "# What the owners of {} release who have not chosen themselves.\n{}schema: {}\ndefault:\n  \"*\": {{ option: crowd, clients: {}, window: {} }}\n",
        comment(draft.file),
        wrapped(&says(draft), "#"),
        draft.name,
        draft.least,
        draft.window.name
    )
}

pub(super) fn query(draft: &Draft<'_>) -> String {
    let mut items = Vec::new();
    for attribute in draft.asked() {
        let name = &attribute.name;
        match attribute.values {
            Values::Number => {
                items.push(format!("COUNT({name}), SUM({name}), AVG({name})"));
            }
            Values::Boolean | Values::Text => items.push(format!("COUNT({name})")),
        }
    }
    let range = format!(" BETWEEN {} AND {}", draft.least, draft.population);
    format!(
        "-- How many readings there are, their sum and their mean, every {}.\nCREATE STREAM First{} AS\nSELECT {}\nWINDOW TUMBLING (SIZE {})\nFROM {}{};\n",
        draft.window.sql.to_lowercase(),
        draft.name,
        items.join(",\n       "),
        draft.window.sql,
        draft.name,
        range
    )
}
