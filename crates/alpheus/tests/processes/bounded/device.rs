//! A device that sends what no encoder makes of a reading.

use super::{BOUNDED, QUERY, number_of, opened, row_that, seconds_now, text};
use crate::common::deployment::{HOUSES, RunningSite, Site};
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_encrypted_stream::producer::{EventVector, Start, TickProducer};
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_policy::layout::{FieldStatistic, Layout};
use alpheus_policy::schema::Schema;
use alpheus_streams::ingest_keys::DeviceIdentity;
use alpheus_streams::links;
use alpheus_streams::owner::DeviceFile;
use alpheus_streams::wire::{Receipt, Upload, UploadStatus};
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::time::Duration;

/// Readings, one a second.
const SECONDS: u64 = 16;
/// The window, counted from the first, in which it sends more than any reading could be.
const ABSURD: u64 = 3;
/// The house whose device is bad.
const BAD: &str = HOUSES[1];
/// What it adds to a reading there: 100 readings could be 1000 each.
const BEYOND: u64 = 100_001;

/// The frames of a device of this house, from a second on. If it is bad, its encoder makes the reading of one
/// second more than any reading can be.
fn frames(running: &RunningSite, house: &str, start: u64, is_bad: bool) -> Upload {
    let schema =
        Schema::from_yaml(&std::fs::read_to_string(running.place.path("schema.yaml")).unwrap());
    let schema = schema.unwrap();
    let layout = Layout::of(&schema).unwrap();
    let encoder = Encoder::new(&schema, &layout).unwrap();
    let sum = |field: &&alpheus_policy::layout::Field| field.statistic == FieldStatistic::Sum(0);
    let sum = layout.fields.iter().find(sum).unwrap().first;
    let file = running.place.path(&format!("{house}.device"));
    let (stream, master) = DeviceFile::read(&file, &schema).unwrap();
    let folder = running.place.path(&format!("pki/meter-{house}"));
    let identity = open_identity(&folder, Role::Producer).unwrap();
    let DeviceIdentity { secrets, .. } = DeviceIdentity::open(&identity).unwrap();
    let producer = TickProducer::for_schema(&master, stream, &schema, &layout, secrets).unwrap();
    let (mut rng, mut frames) = (ChaCha20Rng::seed_from_u64(start), Vec::new());
    let mut sink = |frame: &[u8]| frames.push(frame.to_vec());
    let at = |second: u64| Timestamp((start + second) * 1_000_000);
    let opened = producer.open(Start::First, at(0), None, &mut rng, &mut sink);
    let mut session = opened.unwrap_or_else(|_| panic!("no session at {start}"));
    for second in 0..SECONDS {
        let mut coins = ChaCha20Rng::from_rng(&mut rng);
        let encode = |vector: &mut EventVector<'_>| {
            let values = [number_of(house), 1, 5].map(Value::Number);
            encoder.encode(&values, &mut coins, |word, by| vector.add(word, by))?;
            if is_bad && second == 2 * ABSURD {
                vector.add(sum, BEYOND);
            }
            Ok::<(), alpheus_encrypted_stream::encode::EncodeError>(())
        };
        let (tick, time) = (at(second), Timestamp(at(second).0 + 500_000));
        session.advance(tick, &mut rng, &mut sink).unwrap_or_else(|_| panic!("no border"));
        session.event(time, encode).unwrap_or_else(|_| panic!("no event"));
    }
    // So far that all of these windows are over.
    session.advance(at(SECONDS + 4), &mut rng, &mut sink).unwrap_or_else(|_| panic!("no border"));
    Upload { stream, outbox: [7; 16], number: 1, frames }
}

fn send(running: &RunningSite, house: &str, upload: Upload) {
    let folder = running.place.path(&format!("pki/meter-{house}"));
    let identity = open_identity(&folder, Role::Producer).unwrap();
    let client = links::service(&running.server, &identity).unwrap();
    let DeviceIdentity { certificate, .. } = DeviceIdentity::open(&identity).unwrap();
    let () = client.call("/v1/device", &certificate, Duration::ZERO).unwrap();
    let receipt: Receipt = client.call("/v1/events", &vec![upload], Duration::ZERO).unwrap();
    assert_eq!(receipt.uploads, [UploadStatus::Taken]);
}

#[test]
fn absurd_values_cost_their_own_owner_the_window() {
    let running = RunningSite::start_in(Site::with_ticks().that_waits(), |_, api| api.to_owned());
    let asked = running.place.ask(&running.server, QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    // The first window begins at an anchor, every four seconds.
    let start = (seconds_now() + 8).next_multiple_of(4);
    for house in HOUSES {
        send(&running, house, frames(&running, house, start, house == BAD));
    }
    let of_window = |number: u64| {
        let begins = (start + 2 * number) * 1000;
        row_that(&running, "row", |row| {
            row["window_start"] == begins && ["ok"].contains(&text(row, "status"))
        })
    };
    let row = of_window(ABSURD);
    assert!(opened(&row, 2) && row["excluded"] == 1, "{row}");
    assert_eq!((text(&row, "sum_reading"), row["count_reading"].as_u64()), ("8", Some(4)));
    assert_eq!(
        row["integrity"],
        format!("{BOUNDED}; controller {} signed that it left out 1 stream", position(&row))
    );
    for honest in [ABSURD - 1, ABSURD + 1] {
        let row = of_window(honest);
        assert!(opened(&row, 3) && row["excluded"] == 0, "{row}");
        assert_eq!((text(&row, "sum_reading"), row["count_reading"].as_u64()), ("12", Some(6)));
        assert_eq!(row["integrity"], BOUNDED);
    }
    // Its owner reads why. Others read nothing of it.
    let why = "what your devices sent adds up to more than the query allows of one person";
    assert_eq!(running.owner(1, "log").matches(why).count(), 1);
    assert!(!running.owner(0, "log").contains(why) && !running.owner(2, "log").contains(why));
}

/// The position of the controller that a row says has left out a stream.
fn position(row: &serde_json::Value) -> String {
    let after = text(row, "integrity").split("; controller ").nth(1).unwrap_or_default();
    after.chars().take_while(char::is_ascii_digit).collect()
}
