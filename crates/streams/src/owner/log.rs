//! An owner's log as text.

use alpheus_encrypted_stream::grant::Days;
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine};
use alpheus_encrypted_stream::messages::WindowOutcome;
use alpheus_input::calendar::Day;
use alpheus_policy::schema::Schema;
use alpheus_time::{Timestamp, Window};

/// Sort order: by time, then by window, a release before the window's end.
pub fn in_order(line: &LogLine) -> (Timestamp, Timestamp, u8) {
    let (window, rank) = match &line.event {
        LogEvent::Released { window, .. } => (window.start, 0),
        LogEvent::Ended { window, .. } => (window.start, 1),
        LogEvent::PolicyChanged { .. } | LogEvent::Granted { .. } => (Timestamp::LIMIT, 0),
        LogEvent::KeysHanded { .. } | LogEvent::Cloned { .. } => (Timestamp::LIMIT, 1),
        LogEvent::SmallList { window, .. } | LogEvent::OutOfBounds { window, .. } => {
            (window.start, 0)
        }
        LogEvent::NotSummoned { windows, .. } => (windows.start, 0),
        LogEvent::PlanAccepted { .. }
        | LogEvent::Revoked
        | LogEvent::MovedAway { .. }
        | LogEvent::MovedHere { .. } => (Timestamp::LIMIT, 1),
        LogEvent::Erased => (Timestamp::LIMIT, 2),
    };
    (line.at, window, rank)
}

/// A line as the owner reads it; `when` formats a window.
pub fn in_words(line: &LogLine, schema: &Schema, when: impl Fn(Window) -> String) -> String {
    match &line.event {
        LogEvent::PlanAccepted { name, consumer, sealed, verified, .. } => {
            accepted(name, consumer, *sealed, *verified)
        }
        LogEvent::NotSummoned { name, windows, .. } => unasked(name, &when(*windows)),
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
            let who = format!("`{consumer}`{} got `{name}` for {}", alone(*sealed), when(*window));
            let learned = learned((attributes, costs), (*population, *counted), schema);
            format!("{who}: {learned}")
        }
        LogEvent::SmallList { window, listed, most, .. } => {
            small_list(&when(*window), *listed, *most)
        }
        LogEvent::Ended { window, outcome, .. } => {
            format!("the service reports that {} {}", when(*window), ended(outcome))
        }
        LogEvent::PolicyChanged { version } => changed(*version),
        LogEvent::Granted { reader, days } => granted(reader, *days, schema),
        LogEvent::KeysHanded { reader, days } => handed(reader, *days, schema),
        LogEvent::Revoked => "you revoked your consent".into(),
        LogEvent::Erased => "you had the key of your data destroyed".into(),
        LogEvent::Cloned { border } => copied(&when(tick_before(*border, schema))),
        LogEvent::OutOfBounds { name, window, .. } => out_of_bounds(name, &when(*window)),
        LogEvent::MovedAway { at } => moved_away(&border(*at, when)),
        LogEvent::MovedHere { at, lost } => moved_here(&border(*at, when), *lost),
    }
}

/// What was learned of an owner, among how many people.
fn learned<P: std::fmt::Display, C: std::fmt::Display>(
    (attributes, costs): (&[u16], &[(u16, C)]),
    (population, counted): (P, P),
    schema: &Schema,
) -> String {
    let called = |position: &u16| {
        schema.attributes.get(usize::from(*position)).map_or("?", |it| it.name.as_str())
    };
    let names: Vec<&str> = attributes.iter().map(called).collect();
    let costs: Vec<String> =
        costs.iter().map(|(at, cost)| format!("{} {cost}", called(at))).collect();
    let noise = match costs.is_empty() {
        true => String::new(),
        false => format!(", with noise; it uses {} of your budgets", costs.join(", ")),
    };
    let optional = attributes.iter().filter(|at| schema.is_optional(**at));
    let lacking: Vec<&str> = optional.map(called).collect();
    let proven = proven(counted, lacking.is_empty());
    let (most, lacking) = match lacking.is_empty() {
        true => ("", String::new()),
        false => ("up to ", format!(", since readings may lack {}", lacking.join(", "))),
    };
    format!("your {} among {most}{population} people{lacking}{proven}{noise}", names.join(", "))
}

/// A time, as the beginning of a window that is formatted.
fn border(at: Timestamp, when: impl Fn(Window) -> String) -> String {
    let window = when(Window { start: at, end: at });
    window.split_once(" to ").map_or(window.clone(), |(start, _)| start.to_owned())
}

/// What an owner reads of a stream that they moved from here.
fn moved_away(at: &str) -> String {
    format!(
        "you moved the stream to another controller: this one answers for no window that ends after {at}"
    )
}

/// What an owner reads of a stream that they moved here.
fn moved_here(at: &str, lost: bool) -> String {
    let spent = match lost {
        true => {
            "; the previous controller is lost, so your privacy budgets count as spent until then"
        }
        false => "",
    };
    format!(
        "you moved the stream here: this controller answers for no window that begins before {at}{spent}"
    )
}

/// What an owner reads of a query that their policy allows.
fn accepted(name: &str, consumer: &str, sealed: bool, verified: bool) -> String {
    let seen = if verified { VERIFIED } else { "" };
    let who = alone(sealed);
    format!("`{consumer}`{who} asks for `{name}`, and your policy allows it{seen}")
}

/// What an owner reads of windows that the service did not ask their controller about, or not about them.
fn unasked(name: &str, windows: &str) -> String {
    format!(
        "the service did not ask about you in {windows} for `{name}`: either there is no row, or your devices or your controller were off, or it left you out"
    )
}

/// What an owner reads of a window that their own values keep them out of.
fn out_of_bounds(name: &str, window: &str) -> String {
    format!(
        "you are not in `{name}` for {window}: what your devices sent adds up to more than the query allows of one person; look at them if that cannot be true"
    )
}

/// How many of the people cannot have been made up by the service and who may help it. Where
/// readings may lack what was released, they are people who have any.
fn proven(counted: impl std::fmt::Display, all: bool) -> String {
    let who = if all { "of them are" } else { "with any reading are" };
    format!("; even if the service lies, at least {counted} {who} real")
}

/// What a verified query shows in addition.
const VERIFIED: &str = "; its rows are signed by the controllers, so yours sees your streams' sums";

fn changed(version: u32) -> String {
    format!("you changed your policy; version {version} is in force")
}

/// What an owner has to know about a list that is much shorter than others were.
fn small_list(window: &str, listed: u32, most: u32) -> String {
    format!(
        "the service named only {listed} controllers for {window}, where it had named up to {most} before; if it chooses them, they can learn more"
    )
}

/// What an owner has to do about a device with a copy.
fn copied(tick: &str) -> String {
    format!(
        "your device has a copy: there are two different frames for {tick}. Nothing of this stream is released until you have found the copy and chosen your policy again"
    )
}

/// The tick that ends at a border.
#[must_use]
pub fn tick_before(border: Timestamp, schema: &Schema) -> Window {
    Window { start: Timestamp(border.0.saturating_sub(schema.tick.0)), end: border }
}

/// The outcome of a window.
fn ended(outcome: &WindowOutcome) -> String {
    match outcome {
        WindowOutcome::Opened { population } => format!("opened over {population} people"),
        WindowOutcome::Failed(failure) => format!("did not open: {failure}"),
    }
}

/// What the holder of a day's key can read: what the device has sent. With one frame a tick, that
/// is the tick's sums.
#[must_use]
pub fn readable(schema: &Schema) -> String {
    let units = [
        ("day", 86_400_000_000),
        ("hour", 3_600_000_000),
        ("minute", 60_000_000),
        ("second", 1_000_000),
    ];
    let unit = units.iter().find(|(_, length)| schema.tick.0.is_multiple_of(*length));
    let tick = match unit.map(|(name, length)| (name, schema.tick.0 / length)) {
        Some((name, 1)) => (*name).to_owned(),
        Some((name, many)) => format!("{many} {name}s"),
        None => schema.tick.to_string(),
    };
    match schema.frames.is_events() {
        true => "every single event".to_owned(),
        false => format!("the sums and counts of every {tick}"),
    }
}

/// What a consumer can read from now on.
fn handed(reader: &str, days: Days, schema: &Schema) -> String {
    let what = readable(schema);
    format!(
        "`{reader}` got the keys of {}: it can read {what} of these days, forever",
        between(days)
    )
}

/// What an owner lets a consumer read.
fn granted(reader: &str, days: Option<Days>, schema: &Schema) -> String {
    match days {
        Some(days) => {
            format!("you let `{reader}` read {} from {}", readable(schema), between(days))
        }
        None => format!("you ended the access of `{reader}`; it keeps the keys that it has"),
    }
}

fn between(days: Days) -> String {
    format!("{} to {}", Day(days.first), Day(days.last))
}

/// Says that the service cannot read the result.
fn alone(sealed: bool) -> &'static str {
    if sealed { ", and not the service," } else { "" }
}
