//! Server, controllers, devices, owners and a consumer, each a process.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::deployment::{HOUSES, QUERY, RunningSite, Site, until};
use crate::common::write_secret;

#[test]
fn a_deployment_of_processes_answers_a_query() {
    let running = RunningSite::start();
    let asked = running.place.ask(&running.server, QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let devices = running.feed();
    let row = running.row(3);
    assert_eq!((row["sum_reading"].as_str(), row["count_reading"].as_u64()), (Some("12"), Some(6)));
    let log = running.owner(0, "log");
    assert!(log.contains("`analyst` got `Readings`"), "{log}");
    drop(devices);
    lose_and_restore_the_key(&running.place);
    running.owner(0, "revoke");
    assert!(running.owner(0, "log").contains("you revoked your consent"));
    let asked = format!("EXPLAIN {} BETWEEN 3 AND 100", QUERY.replace("Readings", "Others"));
    until("a service that knows of the withdrawal", || {
        let refused = running.place.ask(&running.server, &asked);
        (refused.status.code() == Some(3)).then_some(())
    });
    erase(&running);
}

/// Of a stream that still runs, and of one whose consent is gone.
fn erase(running: &RunningSite) {
    for house in [0, 1] {
        let device = running.place.path(&format!("{}.device", HOUSES[house]));
        let statement = running.place.path(&format!("erased-{house}.json"));
        assert!(device.exists());
        let files = ["--device", device.to_str().unwrap(), "--statement"];
        let more = [&files[..], &[statement.to_str().unwrap()]].concat();
        let said = running.owner_with(house, "erase", &more);
        assert!(said.contains("has destroyed the key"), "{said}");
        let statement = std::fs::read_to_string(statement).unwrap();
        assert!(!device.exists() && statement.contains(&running.streams[house]));
        assert!(running.owner(house, "log").contains("you had the key of your data destroyed"));
    }
    let other = running.place.path(&format!("{}.device", HOUSES[2]));
    let refused = running.owner_does(1, "erase", &["--device", other.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(other.exists() && said.contains("the file of another stream"), "{said}");
}

/// An owner's folder is gone; a backup brings it back, to revoke with.
fn lose_and_restore_the_key(place: &Site) {
    let folder = format!("pki/owner-{}", HOUSES[0]);
    let device = format!("{}.device", HOUSES[0]);
    let backup = ["owner", "backup", "--identity", &folder, "--device", &device];
    write_secret(&place.path("phrase"), "a passphrase of some length");
    place.done(&[&backup[..], &["--key-file", "phrase", "--to", "backup"]].concat());
    let kept = std::fs::read(place.path(&device)).unwrap();
    std::fs::remove_dir_all(place.path(&folder)).unwrap();
    let restore = ["owner", "restore", "--from", "backup", "--identity", &folder, "--key-file"];
    write_secret(&place.path("other"), "another passphrase of some length");
    let refused = place.run(&[&restore[..], &["other"]].concat());
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(4) && said.contains("another key file"), "{said}");
    place.done(&[&restore[..], &["phrase"]].concat());
    let restored = place.path(&folder).join("devices").join(&device);
    assert_eq!(std::fs::read(restored).unwrap(), kept);
}

#[test]
fn noise_lasts_as_long_as_the_budgets_which_outlive_their_controllers() {
    let mut running = RunningSite::start_in(Site::new().that_waits(), |_, api| api.to_owned());
    let asked = running.place.ask(
        &running.server,
        "CREATE STREAM Alarms AS SELECT SUM(alarms) \
         WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters \
         WITH (epsilon = 1, events = 4)",
    );
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let _devices = running.feed();
    let (rows, spent) = until("a window after the budgets are spent", || {
        let spent = running.owner(0, "budgets");
        let rows = running.place.rows_of(&running.server, "Alarms");
        let closed = "population below the minimum 1: privacy budgets of owners are spent";
        let left_out = rows.last().is_some_and(|row| row["status"] == closed);
        (left_out && spent.contains("100.0 %")).then_some((rows, spent))
    });
    let opened: Vec<_> = rows.iter().filter(|row| row["population"] == 3).collect();
    assert!(!opened.is_empty() && opened.len() <= 3, "{rows:?}");
    for row in opened {
        assert!(row["noise"]["sum_alarms"]["deviation"].as_f64().unwrap() > 1.0, "{row}");
    }
    assert!(spent.contains("alarms"), "{spent}");
    let (api, host) = &mut running.hosts[0];
    host.kill();
    *host = running.place.controller(HOUSES[0], api, &running.server);
    assert_eq!(running.owner(0, "budgets"), spent);
    let said = running.owner_with(0, "budgets", &["--format", "json"]);
    let tables: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(tables[0]["rows"][0][0], "alarms");
}

/// Totals over processes: they go on where they were when a controller, and then the
/// service, is killed, and cost their owners once.
#[test]
fn running_totals_outlive_controllers_and_service() {
    let mut running = RunningSite::start();
    let asked = running.place.ask(
        &running.server,
        "CREATE STREAM Litres AS SELECT SUM(litres) \
         WINDOW CUMULATING (STEP 2 SECONDS, SIZE 40 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters \
         WITH (epsilon = 1, events = 4)",
    );
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let _devices = running.feed();
    let windows = |running: &RunningSite, least: u64| {
        until("so many windows in the totals", || {
            let rows = running.place.rows_of(&running.server, "Litres");
            let opened = |row: &&serde_json::Value| row["status"] == "ok";
            let windows = rows.iter().filter(opened).map(|row| row["windows"].as_u64().unwrap());
            let windows: Vec<u64> = windows.collect();
            windows.last().is_some_and(|last| *last >= least).then_some((windows, rows))
        })
    };
    let (before, _) = windows(&running, 2);
    let spent = running.owner(0, "budgets");
    let (api, host) = &mut running.hosts[0];
    host.kill();
    *host = running.place.controller(HOUSES[0], api, &running.server);
    let (between, _) = windows(&running, before.len() as u64 + 2);
    running.service.kill();
    running.start_service();
    let (after, rows) = windows(&running, between.len() as u64 + 2);
    assert_eq!(after, (1..=after.len() as u64).collect::<Vec<_>>(), "each window once");
    assert_eq!(running.owner(0, "budgets"), spent, "all of them cost what the first did");
    let log = running.owner(0, "log");
    assert_eq!(log.matches("ρ = ").count() + log.matches("ε = ").count(), 1, "{log}");
    for row in rows.iter().filter(|row| row["status"] == "ok") {
        // Five litres twice a window from each of three meters, at most.
        let total: f64 = row["sum_litres"].as_str().unwrap().parse().unwrap();
        let (windows, deviation) = (
            row["windows"].as_f64().unwrap(),
            row["noise"]["sum_litres"]["deviation"].as_f64().unwrap(),
        );
        assert!(total > -6.0 * deviation && total < 30.0 * windows + 6.0 * deviation, "{row}");
    }
}
