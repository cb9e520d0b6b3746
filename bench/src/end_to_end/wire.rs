//! Bytes of one stream in an hour, at two events a second: ours, plaintext JSON, JSON whose fields
//! are encrypted one by one, and reports of DAP. Ours and plaintext are counted, the others computed.

use super::EVENTS;
use super::application::{Application, Release};
use super::ours::{OpenDeployment, Party};
use crate::BenchError;
use crate::report::Figure;
use alpheus_input::rows::Cell;
use alpheus_policy::schema::AttributeKind;
use std::path::Path;

/// Ticks of an hour.
const TICKS: u64 = 360;
const PRODUCERS: u32 = 20;
/// Windows that are counted.
const WINDOWS: usize = 3;
/// The least that a client-side encrypted number takes in BSON: algorithm, key id, type, IV, one
/// block of AES-256-CBC, HMAC-SHA-512 cut to half; and the element's type, length and subtype.
const FIELD: u64 = 1 + 16 + 1 + 16 + 16 + 32 + 7;

/// The four for each application.
pub(crate) fn figures(
    directory: &Path,
    mut say: impl FnMut(&str),
) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    for events in Application::all()? {
        say(&format!("wire: {}", events.name));
        let of = |what: &str, bytes: u64| {
            let name = format!("{}: {what}, a stream and hour", events.name);
            Figure::alone("wire", name, "kB", bytes as f64 / 1e3)
        };
        let words = u64::from(events.layout.words) - 1;
        let found = [
            of("one frame a tick", hour(directory, &events.with_ticks()?)?),
            of("a frame for each event", hour(directory, &events)?),
            of("plaintext JSON", json(&events, |name, value| (name + value) as u64 + 4)),
            of(
                "JSON with encrypted fields (computed)",
                json(&events, |name, _| name as u64 + FIELD),
            ),
            of("DAP, Prio3SumVec, a report a tick (computed)", TICKS * dap(words)),
        ];
        found.iter().for_each(|figure| say(&figure.to_string()));
        figures.extend(found);
    }
    Ok(figures)
}

/// Frames of an hour, by those of some windows of a tick each.
fn hour(directory: &Path, application: &Application) -> Result<u64, BenchError> {
    let folder = tempfile::tempdir_in(directory)?;
    let mut started =
        OpenDeployment::new(folder.path(), application, PRODUCERS, Release::Query, Party::One)?;
    started.window(application, 0)?;
    let bytes = |started: &OpenDeployment| started.embedded.manager.service.counters.bytes;
    let before = bytes(&started);
    for window in 1..=WINDOWS {
        started.window(application, window)?;
    }
    let each = (bytes(&started) - before) / (WINDOWS as u64 * u64::from(PRODUCERS));
    Ok(each * TICKS)
}

/// Events of an hour as JSON objects, one a line, with the stream's id and a time. `field` says
/// what a name and a value of these lengths take.
fn json(application: &Application, field: impl Fn(usize, usize) -> u64) -> u64 {
    let head = r#"{"stream":"00000000000000000000000000000000","t":1700000000000}"#.len() + 1;
    let event = |number: usize| -> u64 {
        let cells = application.event(0, number).iter().zip(&application.schema.attributes);
        let fields = cells.map(|(cell, own)| field(own.name.len(), length(cell, &own.kind)));
        head as u64 + fields.sum::<u64>()
    };
    (0..EVENTS as usize).map(event).sum::<u64>() * TICKS
}

/// Characters of a value.
fn length(cell: &Cell, kind: &AttributeKind) -> usize {
    match (cell, kind) {
        (Cell::Absent, _) => 4,
        (Cell::Number(number), AttributeKind::Number { scale: 1.., .. }) => {
            number.to_string().len() + 1
        }
        (Cell::Number(number), _) => number.to_string().len(),
        (Cell::Boolean(truth), _) => truth.to_string().len(),
        (Cell::Text(text), _) => text.len() + 2,
    }
}

/// A report of DAP to two aggregators over as many sums of 32 bits (RFC drafts of DAP and of
/// VDAF): the leader's share of bits and proof in elements of 16 bytes, the helper's seeds, the
/// public share, and two HPKE ciphertexts.
fn dap(sums: u64) -> u64 {
    let bits = sums * 32;
    let chunk = bits.isqrt().max(1);
    let calls = bits.div_ceil(chunk);
    let proof = 2 * chunk + 2 * ((1 + calls).next_power_of_two() - 1) + 1;
    let (leader, helper, public) = (16 * (bits + proof) + 32, 64, 64);
    let (hpke, head) = (2 * (32 + 16 + 9), 24);
    leader + helper + public + hpke + head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_takes_fewer_bytes_than_its_events() {
        let folder = tempfile::tempdir().unwrap();
        let application = Application::of("car-maintenance", None).unwrap();
        let events = hour(folder.path(), &application).unwrap();
        let ticks = hour(folder.path(), &application.with_ticks().unwrap()).unwrap();
        // One vector a tick, with a digest and two tags, in place of twenty vectors and a border.
        assert!(ticks * 19 < events, "{ticks} and {events} bytes");
        assert!(dap(u64::from(application.layout.words) - 1) * TICKS > ticks);
    }
}
