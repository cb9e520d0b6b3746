//! `policies.yaml` and `query.sql`: what owners release by default, and the first question.

use super::{Draft, comment, noise};
use crate::Attribute;
use crate::tally::Values;
use crate::windows::{WINDOWS, Window};
use std::fmt::Write as _;
use std::iter;

/// What the default means for the owners, in plain words.
pub(super) fn says(draft: &Draft<'_>) -> String {
    if draft.noise.is_some() {
        return says_noise();
    }
    let (owners, window) = (draft.found.tally.owners, draft.shortest.name);
    match (&draft.found.owner, owners) {
        (None, _) if draft.least > owners => format!(
            "Whose the rows are is an open question. Until `--owner` answers it, a result needs at least {} owners, so none is released.",
            draft.least
        ),
        (None, _) => format!(
            "The file names no owner, so all its rows are one stream. There is no crowd to hide in: anyone who reads a result learns this stream's totals for each {window}. If the rows are about people, name their column with `--owner`. A longer `window` reveals less."
        ),
        (Some(_), 1) => format!(
            "The file has one owner. There is no crowd to hide in: anyone who reads a result learns this owner's totals for each {window}. Choose a longer `window` to release less, or `nothing`."
        ),
        (Some(_), 2..=9) => format!(
            "The file has {owners} owners. A total over so few says much about each of them, so it is released only if all {owners} have data in a window of {window} or longer. Choose `nothing` to release nothing.{}",
            says_sparse(draft)
        ),
        _ => format!(
            "The file has {owners} owners. Results are totals over at least {} of them who have data in a window, of {window} or longer. For a window with fewer, the result says only that there are fewer.{}",
            draft.least,
            says_sparse(draft)
        ),
    }
}

/// The same of attributes that rows may lack.
fn says_sparse(draft: &Draft<'_>) -> String {
    let names = |wanted: &dyn Fn(&&Attribute) -> bool| -> Vec<String> {
        let all = draft.found.attributes.iter().filter(|own| own.crowd.sparse).filter(wanted);
        all.map(|own| format!("`{}`", own.name)).collect()
    };
    let withheld = names(&|own| draft.is_withheld(own));
    let released = names(&|own| !draft.is_withheld(own));
    let mut text = String::new();
    if !released.is_empty() {
        let _ = write!(
            text,
            " Rows may lack {}: their totals cover only the owners who have a value, who may be fewer.",
            released.join(", ")
        );
    }
    if !withheld.is_empty() {
        let _ = write!(
            text,
            " The query does not ask for {}: fewer than {} have a value in some of its windows. No owner releases that, unless policies.yaml names windows that are long enough.",
            withheld.join(", "),
            draft.least
        );
    }
    text
}

/// The shortest windows in which enough owners have a value of an attribute, if there are any.
pub(super) fn safe(draft: &Draft<'_>, own: &Attribute) -> Option<Window> {
    let from = own.crowd.safe_from().and_then(|at| WINDOWS.get(at..)).unwrap_or_default();
    from.iter().find(|own| own.is_multiple_of(draft.shortest)).copied()
}

/// The choices of attributes that rows may lack: nothing, or only so long windows that enough
/// owners have a value in each.
fn sparse(draft: &Draft<'_>, option: &str) -> String {
    let mut lines = String::new();
    for own in draft.found.attributes.iter().filter(|own| own.crowd.sparse && !draft.is_said(own)) {
        let (name, least) = (&own.name, draft.least);
        match safe(draft, own) {
            Some(safe) if safe.seconds > draft.shortest.seconds => {
                let window = safe.name;
                let _ = writeln!(
                    lines,
                    "  # In shorter windows, fewer may have a value.\n  {name}: {{ option: {option}, clients: {least}, window: {window} }}"
                );
            }
            None if draft.is_withheld(own) => {
                let _ = writeln!(
                    lines,
                    "  # In some windows, fewer have a value.\n  {name}: {{ option: nothing }}"
                );
            }
            _ => {}
        }
    }
    lines
}

/// What the budget that is written says of one owner.
const NOISE_HIDES: &str = "At ε = 5, a result may be up to 150 times (e^5) as likely if one owner has data in a window as if not. That blurs single readings, but is not a strong guarantee. Over all windows, up to ε = 100 for each attribute, hardly anything is guaranteed. Ask for a smaller ε, such as 0.5, to hide each owner better; results are then less exact.";

/// The same of results with noise.
fn says_noise() -> String {
    format!(
        "Results are released only with noise (differential privacy), at ε = {} or less for each window and attribute, and {} for each attribute in all. After that, no further window is released. What a query takes of several attributes adds up for each person. {NOISE_HIDES}",
        noise::EPSILON,
        noise::TOTAL_EPSILON
    )
}

/// What a line that is shortened means, and what decides it.
pub(super) fn says_open(draft: &Draft<'_>) -> String {
    let longest = WINDOWS.iter().rev().find(|own| own.is_multiple_of(draft.shortest));
    let clients = match clients(draft).last() {
        Some(most) if *most > draft.least => {
            format!(", and without `clients` at least {most} owners")
        }
        _ => String::new(),
    };
    format!(
        "A line without `window` means windows of at least {}{clients}: the largest value that schema.yaml offers applies.",
        longest.map_or(draft.shortest.name, |own| own.name)
    )
}

/// How many owners a result may need to cover at least, for owners to choose from.
pub(super) fn clients(draft: &Draft<'_>) -> Vec<u64> {
    const MORE: u64 = 100;
    let more = (draft.least >= 10).then_some(MORE);
    iter::once(draft.least).chain(more).collect()
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
    let choice = |option: &str| {
        let (least, window) = (draft.least, draft.shortest.name);
        format!("  \"*\": {{ option: {option}, clients: {least}, window: {window} }}\n")
    };
    // What too few owners have a value of matters to exact totals alone.
    let sparse = sparse(&draft.without_noise(), "crowd");
    // A line of an attribute would stay in force beside another line for all.
    let those = if sparse.is_empty() { "" } else { " of all lines under `default`" };
    let (chosen, other, instead) = match draft.noise {
        None => (
            "crowd",
            "noisy",
            format!(
                "With noise (differential privacy): use this line instead{those}, and the second query in query.sql in place of the first. {NOISE_HIDES}"
            ),
        ),
        Some(_) if sparse.is_empty() => {
            ("noisy", "crowd", "Exact totals: use this line instead.".to_owned())
        }
        Some(_) => ("noisy", "crowd", "Exact totals: use all these lines instead.".to_owned()),
    };
    let (sparse, sparse_other) = match draft.noise {
        None => (sparse, String::new()),
        Some(_) => (String::new(), sparse.lines().map(|line| format!("#{line}\n")).collect()),
    };
    format!(
        "# What is released for owners of {} who have not chosen themselves.\n{}{}schema: {}\ndefault:\n{}{}#{}{sparse_other}",
        comment(draft.file),
        wrapped(&says(draft), "#"),
        wrapped(&says_open(draft), "#"),
        draft.name,
        choice(chosen) + &sparse,
        wrapped(&instead, "#"),
        choice(other),
    )
}

/// The query, and as a comment another one.
pub(super) fn queries(draft: &Draft<'_>) -> String {
    let (exact, noisy) = (exact(&draft.without_noise()), noise::query(draft));
    let commented =
        |text: &str| text.lines().map(|line| format!("-- {line}\n")).collect::<String>();
    let error = "with noise: 95 of 100 results have at most this error. `typical` is the expected mean, `values` the number of readings of an owner in a window, and `events` its maximum. `alpheus suggest` says what else is possible.";
    match draft.noise {
        None => format!(
            "{}{exact}\n{}{}",
            wrapped(&intent(draft), "--"),
            wrapped(
                &format!("The mean {error} Owners must choose `noisy` in policies.yaml."),
                "--"
            ),
            commented(&noisy)
        ),
        Some(_) => format!(
            "{}{noisy}\n{}{}",
            wrapped(&format!("The mean every {}, {error}", draft.noisy.sql.to_lowercase()), "--"),
            wrapped("Exact totals. Owners must choose `crowd` in policies.yaml.", "--"),
            commented(&exact)
        ),
    }
}

/// What the exact query asks.
fn intent(draft: &Draft<'_>) -> String {
    let mut text = format!(
        "The number of readings, their sum and their mean, every {}.",
        draft.window.sql.to_lowercase()
    );
    let has = |wanted: fn(&Attribute) -> bool| draft.asked().any(wanted);
    if has(|own| own.values == Values::Boolean) {
        text.push_str(" Yes is 1 and no is 0, so the mean is the share of yes.");
    }
    if has(|own| !own.course.adds_up()) {
        text.push_str(
            " Meter readings, running totals and balances are only counted, since their sum has no meaning.",
        );
    }
    text
}

fn exact(draft: &Draft<'_>) -> String {
    let mut items = Vec::new();
    for Attribute { name, values, course, .. } in draft.asked() {
        match values {
            Values::Number | Values::Boolean if course.adds_up() => {
                items.push(format!("COUNT({name}), SUM({name}), AVG({name})"));
            }
            _ => items.push(format!("COUNT({name})")),
        }
    }
    format!(
        "CREATE STREAM First{name} AS\nSELECT {}\nWINDOW TUMBLING (SIZE {})\nFROM {name} BETWEEN {} AND {};\n",
        items.join(",\n       "),
        draft.window.sql,
        draft.least,
        draft.population,
        name = draft.name,
    )
}
