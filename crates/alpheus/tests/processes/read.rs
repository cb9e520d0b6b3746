//! Raw access over real processes: the reader that an owner names reads the days that it
//! names and no other, once they have passed, until the owner says no more.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::deployment::{HOUSES, RunningSite, Site, until};
use serde_json::Value;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};
use time::{Date, Duration};

const DAY: u64 = 86_400;

/// Whole days since the Unix epoch.
fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / DAY
}

/// A day as the command line takes it.
fn written(day: u64) -> String {
    let epoch = Date::from_ordinal_date(1970, 1).unwrap();
    (epoch + Duration::days(day.try_into().unwrap())).to_string()
}

/// The last events of each of the days before today, the last so many, and some of today:
/// two a day, of the last minute and the first.
fn events(days: u64) -> Vec<(u64, u64)> {
    let last = today();
    let of = |at: u64| {
        let day = last - days + at;
        [(day * DAY + 30, 10 * (at + 1)), ((day + 1) * DAY - 30, 10 * (at + 1) + 1)]
    };
    (0..days).flat_map(of).filter(|(at, _)| at / DAY < last).collect()
}

/// What is read, or what the command says instead.
fn read(running: &RunningSite, identity: &str) -> Result<Vec<(u64, u64)>, String> {
    read_column(running, identity, "reading")
}

/// The same of this column.
fn read_column(
    running: &RunningSite,
    identity: &str,
    column: &str,
) -> Result<Vec<(u64, u64)>, String> {
    let (api, stream) = (format!("https://{}", running.hosts[0].0), running.streams[0].clone());
    let ran = running.place.run(&[
        "read",
        "--identity",
        identity,
        "--controller",
        &api,
        "--server",
        &running.server,
        "--stream",
        &stream,
        "--schema",
        "schema.yaml",
        "--format",
        "json",
    ]);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    if !ran.status.success() {
        return Err(said);
    }
    let text = String::from_utf8(ran.stdout).unwrap();
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = row[column].as_str();
        let reading = text.map_or_else(|| row[column].as_u64(), |text| text.parse().ok()).unwrap();
        (row["at"].as_u64().unwrap() / 1000, reading)
    };
    Ok(text.lines().map(row).collect())
}

fn grant(running: &RunningSite, more: &[&str]) {
    running.owner_with(0, "grant", &[&["--reader", "pki/analyst/consumer.txt"], more].concat());
}

/// With a frame for each event, the reader gets single events.
#[test]
fn days_that_an_owner_grants_are_read_and_no_other() {
    let mut running = RunningSite::start_in(Site::with_events(), |_, api| api.to_owned());
    running.place.issue("consumer", "eve");
    let sent = events(3);
    let line =
        |(at, reading): &(u64, u64)| format!("{{\"reading\": {reading}, \"at\": {}}}\n", at * 1000);
    let lines = running.place.path("a.json");
    fs::write(&lines, sent.iter().map(line).collect::<String>()).unwrap();
    let _device = running.place.device(HOUSES[0], &running.server, &lines);
    let refused = read(&running, "pki/analyst").unwrap_err();
    assert!(refused.contains("grants this reader nothing"), "{refused}");
    // Two days of three, and one that has not passed.
    let (first, last) = (today() - 2, today() + 5);
    let granted = |from: u64, to: u64| -> Vec<(u64, u64)> {
        sent.iter().copied().filter(|(at, _)| (from..=to).contains(&(at / DAY))).collect()
    };
    grant(&running, &["--from", &written(first), "--to", &written(last)]);
    until("two days' events", || {
        (read(&running, "pki/analyst") == Ok(granted(first, last))).then_some(())
    });
    assert_eq!(granted(first, last).len(), 4);
    let refused = read(&running, "pki/eve").unwrap_err();
    assert!(refused.contains("grants this reader nothing"), "{refused}");
    let log = running.owner(0, "log");
    for part in [
        format!(
            "you let `analyst` read every single event from {} to {}",
            written(first),
            written(last)
        ),
        format!("`analyst` got the keys of {} to {}", written(first), written(today() - 1)),
    ] {
        assert!(log.contains(&part), "{part}\n{log}");
    }
    assert_eq!(log.matches("got the keys").count(), 1, "asked again, it fills no log");
    narrower(&running, &granted);
    outlives(&mut running, &granted);
    withdrawn(&running);
}

/// With one frame a tick, the reader gets sums of ticks.
#[test]
fn ticks_of_days_that_an_owner_grants_are_read() {
    let running = RunningSite::start_in(Site::with_ticks(), |_, api| api.to_owned());
    let sent = events(2);
    // Two readings within one tick.
    let line = |(at, reading): &(u64, u64)| {
        let reading = |more: u64| {
            let at = at * 1000 + 250 * (more + 1);
            format!("{{\"reading\": {}, \"at\": {at}}}\n", reading + more)
        };
        reading(0) + &reading(1)
    };
    let lines = running.place.path("a.json");
    fs::write(&lines, sent.iter().map(line).collect::<String>()).unwrap();
    let _device = running.place.device(HOUSES[0], &running.server, &lines);
    let day = today() - 1;
    grant(&running, &["--from", &written(day), "--to", &written(day)]);
    let own = sent.iter().filter(|(at, _)| at / DAY == day);
    let sums: Vec<(u64, u64)> = own.map(|(at, reading)| (at + 1, 2 * reading + 1)).collect();
    assert_eq!(sums.len(), 2);
    until("a day's ticks", || {
        (read_column(&running, "pki/analyst", "sum_reading") == Ok(sums.clone())).then_some(())
    });
    let counts = sums.iter().map(|(at, _)| (*at, 2)).collect();
    assert_eq!(read_column(&running, "pki/analyst", "count_reading"), Ok(counts));
    let log = running.owner(0, "log");
    let said = "you let `analyst` read the sums and counts of every second from ";
    assert!(log.contains(said), "{log}");
}

/// A day less is a day less.
fn narrower(running: &RunningSite, granted: &dyn Fn(u64, u64) -> Vec<(u64, u64)>) {
    let day = today() - 2;
    std::thread::sleep(std::time::Duration::from_millis(1100));
    grant(running, &["--from", &written(day), "--to", &written(day)]);
    assert_eq!(read(running, "pki/analyst"), Ok(granted(day, day)));
}

/// The grant outlives a controller that is killed; `--stop` ends it.
fn outlives(running: &mut RunningSite, granted: &dyn Fn(u64, u64) -> Vec<(u64, u64)>) {
    let (api, host) = &mut running.hosts[0];
    host.kill();
    *host = running.place.controller(HOUSES[0], api, &running.server);
    let day = today() - 2;
    assert_eq!(read(running, "pki/analyst"), Ok(granted(day, day)));
    std::thread::sleep(std::time::Duration::from_millis(1100));
    grant(running, &["--stop"]);
    let refused = read(running, "pki/analyst").unwrap_err();
    assert!(refused.contains("grants this reader nothing"), "{refused}");
}

/// Nor does anything come of a grant once consent is withdrawn and the key destroyed.
fn withdrawn(running: &RunningSite) {
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let day = written(today() - 1);
    grant(running, &["--from", &day, "--to", &day]);
    assert!(read(running, "pki/analyst").is_ok());
    running.owner(0, "erase");
    let refused = read(running, "pki/analyst").unwrap_err();
    assert!(refused.contains("consent for the stream was withdrawn"), "{refused}");
    let more = ["--reader", "pki/analyst/consumer.txt", "--from", &day, "--to", &day];
    let refused = running.owner_does(0, "grant", &more);
    assert!(!refused.status.success());
}
