//! Names of columns that number what somebody does.

use crate::owner_words::{NUMBERS, is_vague};
use crate::words::words;

/// Words of what somebody does or buys, or of what is done with somebody: one person may have several.
const EVENTS: &[&str] = &[
    "activity",
    "appointment",
    "article",
    "batch",
    "besuch",
    "booking",
    "buchung",
    "call",
    "check",
    "claim",
    "delivery",
    "drive",
    "encounter",
    "entry",
    "event",
    "exam",
    "fahrt",
    "flight",
    "game",
    "invoice",
    "item",
    "job",
    "journey",
    "log",
    "match",
    "measurement",
    "message",
    "messung",
    "observation",
    "order",
    "payment",
    "product",
    "purchase",
    "reading",
    "record",
    "request",
    "reservation",
    "result",
    "ride",
    "row",
    "run",
    "sale",
    "sample",
    "scan",
    "session",
    "shift",
    "shipment",
    "song",
    "stay",
    "survey",
    "task",
    "test",
    "ticket",
    "tour",
    "track",
    "trajet",
    "transaction",
    "treatment",
    "trip",
    "viaggio",
    "viaje",
    "visit",
    "workout",
];

/// Whether a name says so: no other word of it says whose a row is, or the last one does, before `id`.
pub(crate) fn names_event(name: &str) -> bool {
    let known = |word: &str| EVENTS.contains(&word);
    let event = |word: &String| known(word) || word.strip_suffix("id").is_some_and(known);
    let mut words = words(name);
    words.retain(|word| !NUMBERS.contains(&word.as_str()));
    if is_vague(name) { words.iter().any(event) } else { words.last().is_some_and(event) }
}
