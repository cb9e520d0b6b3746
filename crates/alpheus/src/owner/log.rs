//! An owner's log in words.

use super::grant::calendar;
use alpheus_encrypted_stream::grant::Days;
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine};
use alpheus_encrypted_stream::messages::Closed;
use alpheus_policy::schema::Schema;
use alpheus_policy::time::{Timestamp, Window};

/// By time; what happened at one time, by window, a release before its end.
pub(crate) fn in_order(line: &LogLine) -> (Timestamp, Timestamp, u8) {
    let (window, rank) = match &line.event {
        LogEvent::Released { window, .. } => (window.start, 0),
        LogEvent::Ended { window, .. } => (window.start, 1),
        LogEvent::PolicyChanged { .. } | LogEvent::Granted { .. } => (Timestamp::LIMIT, 0),
        LogEvent::KeysHanded { .. } => (Timestamp::LIMIT, 1),
        LogEvent::PlanAccepted { .. } | LogEvent::Revoked => (Timestamp::LIMIT, 1),
        LogEvent::Erased => (Timestamp::LIMIT, 2),
    };
    (line.at, window, rank)
}

/// A line as the owner reads it; `when` puts a window into words.
pub(crate) fn in_words(line: &LogLine, schema: &Schema, when: impl Fn(Window) -> String) -> String {
    match &line.event {
        LogEvent::PlanAccepted { name, consumer, sealed, .. } => {
            format!("`{consumer}`{} asks for `{name}`, and your policy allows it", alone(*sealed))
        }
        LogEvent::Released {
            name,
            consumer,
            sealed,
            window,
            attributes,
            population,
            counted,
            costs,
            ..
        } => {
            let called = |position: &u16| {
                let attribute = schema.attributes.get(usize::from(*position));
                attribute.map_or("?", |attribute| attribute.name.as_str())
            };
            let names: Vec<&str> = attributes.iter().map(called).collect();
            let costs: Vec<String> =
                costs.iter().map(|(at, cost)| format!("{} {cost}", called(at))).collect();
            let noise = match costs.is_empty() {
                true => String::new(),
                false => format!(", with noise; of your budgets it takes {}", costs.join(", ")),
            };
            format!(
                "`{consumer}`{} got `{name}` of {}: your {} among {population} people (at least {counted} of them real){noise}",
                alone(*sealed),
                when(*window),
                names.join(", ")
            )
        }
        LogEvent::Ended { window, outcome, .. } => {
            format!("the service says that {} {}", when(*window), ended(outcome))
        }
        LogEvent::PolicyChanged { version } => {
            format!("you changed your policy; version {version} is in force")
        }
        LogEvent::Granted { reader, days } => granted(reader, *days),
        LogEvent::KeysHanded { reader, days } => format!(
            "`{reader}` got the keys of {}: it reads every event of these days, for ever",
            between(*days)
        ),
        LogEvent::Revoked => "you revoked your consent".to_owned(),
        LogEvent::Erased => "you had the key of your data destroyed".to_owned(),
    }
}

/// What came of a window.
fn ended(outcome: &Closed) -> String {
    match outcome {
        Closed::Opened { population } => format!("opened over {population} people"),
        Closed::Failed(failure) => format!("did not open: {failure}"),
    }
}

/// What an owner lets somebody read.
fn granted(reader: &str, days: Option<Days>) -> String {
    match days {
        Some(days) => format!("you let `{reader}` read every event from {}", between(days)),
        None => format!("you let `{reader}` read no more than it has"),
    }
}

fn between(days: Days) -> String {
    format!("{} to {}", calendar(days.first), calendar(days.last))
}

/// Whether the service reads the result as well.
fn alone(sealed: bool) -> &'static str {
    if sealed { ", and not the service," } else { "" }
}
