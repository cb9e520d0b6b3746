//! The service goes away, and comes back as it was, older, or empty. Time is that of a clock which
//! waits for all processes, so nothing here depends on how fast the machine is.
//!
//! `ALPHEUS_OUTAGES` says how many seconds the service is away, one after the other, and
//! `ALPHEUS_BACKUP_AGE` how many seconds old a restored backup is at least; `drills/outages.sh` has
//! long ones.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::clock::faketime;
use crate::common::copy_folder;
use crate::common::deployment::{HOUSES, QUERY, Site, until};
use crate::common::live::{Live, WINDOW, start_of};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

const EVENTS: &str = "frames: events\n";
const TICKS: &str = "anchor: 4s\n";

fn outages(frames: &str, usual: &[u64]) {
    let seconds = std::env::var("ALPHEUS_OUTAGES").map_or(usual.to_vec(), |given| {
        given.split(' ').map(|seconds| seconds.parse().unwrap()).collect()
    });
    let mut live = Live::start(frames);
    let first = live.whole_window_since(live.now(), "everybody was there");
    for away in seconds {
        live.go_away(away);
        live.come_back();
        let since = live.now();
        live.whole_window_since(since, &format!("{away} s"));
        live.all_are_whole_from(first);
    }
    let status = live.status();
    assert_eq!((status.absent_streams, status.absent_hosts), (0, 0));
    assert_eq!(status.lost_state, None, "nothing was lost");
    assert_eq!(status.frames_refused.get("late"), None);
}

#[test]
fn every_window_is_whole_after_the_service_was_away() {
    outages(EVENTS, &[4, 15]);
}

#[test]
fn every_window_of_ticks_is_whole_after_the_service_was_away() {
    outages(TICKS, &[8, 40]);
}

/// A backup is restored while devices run on. They go on by themselves, the service says so, and
/// windows that were published before are not announced as failures.
fn restored(frames: &str) {
    let mut live = Live::start(frames);
    let (state, backup) =
        (live.running.place.path("run/service"), live.running.place.path("backup"));
    live.go_away(0);
    copy_folder(&state, &backup);
    live.come_back();
    let since = live.now();
    let later = live.whole_window_since(since, "the backup") + 2 * WINDOW;
    live.whole_window_since(later, "some time");
    if let Ok(age) = std::env::var("ALPHEUS_BACKUP_AGE") {
        live.go_away(age.parse().unwrap());
        live.come_back();
        let since = live.now();
        live.whole_window_since(since, "a long time");
    }
    let published: BTreeMap<u64, Value> =
        live.rows().into_iter().map(|row| (start_of(&row), row)).collect();
    live.go_away(0);
    fs::remove_dir_all(&state).unwrap();
    fs::rename(&backup, &state).unwrap();
    live.come_back();
    let since = live.now();
    live.goes_on_whole(since, 1, "the restore");
    let rows = live.rows();
    for failed in rows.iter().filter(|row| row["status"] != "ok") {
        let before = published.get(&start_of(failed));
        assert!(before.is_none_or(|before| before["status"] != "ok"), "{failed}, was {before:?}");
    }
    let lost = live.status().lost_state.unwrap();
    assert!(lost.streams == 3 && lost.windows > 0, "{lost:?}");
    assert!(live.health("/healthz").contains("restored from a backup"));
    assert!(live.health("/metrics").contains("alpheus_stream_state_lost_streams 3"));
    assert!(live.running.service.log().contains("restored from a backup"));
}

#[test]
fn devices_go_on_at_a_service_that_was_restored_from_a_backup() {
    restored(EVENTS);
}

#[test]
fn devices_of_ticks_go_on_at_a_service_that_was_restored_from_a_backup() {
    restored(TICKS);
}

#[test]
fn devices_go_on_at_a_service_that_was_emptied() {
    let mut live = Live::start(EVENTS);
    live.go_away(0);
    fs::remove_dir_all(live.running.place.path("run/service")).unwrap();
    live.come_back();
    live.running.knows_all();
    live.ask(QUERY);
    let since = live.now();
    // Devices learn that they are unknown, and begin new sessions, which takes a loaded machine longer.
    live.goes_on_whole(since, 3, "it was emptied");
    assert_eq!(live.status().lost_state.unwrap().streams, 3);
}

/// The machine of the service is set an hour forward, and then an hour back: windows go on, as
/// long as devices agree with the time that it had.
#[test]
fn a_clock_that_jumps_costs_no_windows() {
    let Some(library) = faketime() else { return };
    let query = QUERY.replace("GRACE PERIOD 1 SECONDS", "GRACE PERIOD 15 SECONDS");
    let live = Live::asked(Site::skewed(TICKS, library), &query);
    let first = live.whole_window_since(0, "the start");
    let mut last = first;
    for by in ["+3600", "+0", "-3600", "+0"] {
        fs::write(live.running.place.path("service.clock"), by).unwrap();
        last = live.whole_window_since(last + 2 * WINDOW, by);
    }
    live.all_are_whole_from(first);
    let log = live.running.service.log();
    assert!(log.contains("clock has jumped") && log.contains("service's time again"), "{log}");
}

/// The authority revokes a device and an owner: both are out while all processes run on.
#[test]
fn a_revoked_device_and_a_revoked_owner_are_out_without_a_restart() {
    let live = Live::start(TICKS);
    let place = &live.running.place;
    let days = live.health("/metrics");
    assert!(days.contains("alpheus_certificate_days_left"), "{days}");
    let log = |house: usize| live.running.owner_does(house, "log", &[]);
    assert!(log(1).status.success());
    let mut revoke = vec!["ca", "revoke", "pki"];
    revoke.extend(["pki/meter-a/tls.pem", "pki/meter-a/device.txt", "pki/owner-b/tls.pem"]);
    place.done(&revoke);
    let hosts = HOUSES.map(|house| format!("host-{house}"));
    for party in hosts.iter().map(String::as_str).chain(["service"]) {
        fs::copy(place.path("pki/revoked.txt"), place.path(&format!("pki/{party}/revoked.txt")))
            .unwrap();
    }
    let refused = until("the owner's refusal", || {
        let output = log(1);
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
    });
    assert!(refused.contains("revoked"), "{refused}");
    assert!(log(2).status.success(), "nobody else is refused");
    let since = live.now();
    until("a window without the revoked device", || {
        let rows = live.rows();
        rows.into_iter().find(|row| row["population"] == 2 && start_of(row) >= since)
    });
}
