//! Backups taken of live processes under load, restored elsewhere, go on; one that was cut, changed or made with
//! another key is refused, and leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::deployment::{HOUSES, QUERY, RunningSite, until};
use crate::common::write_secret;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Takes a backup of a process, which goes on; its file's name.
fn back_up(running: &RunningSite, identity: &str, state: &str) -> String {
    let to = format!("{}.backup", state.replace('/', "-"));
    let (identity, state) = (["--identity", identity], ["--state", state]);
    let args = [&["backup"], &identity[..], &state, &["--key-file", "key", "--to", &to]].concat();
    let said = running.place.done(&args);
    assert!(said.contains(": whole: ") && said.contains("entries of a store"), "{said}");
    assert!(said.contains("not in it"), "{said}");
    to
}

/// Restores a backup to a new folder, which then takes the place of the lost one; what was said.
fn restore(
    running: &RunningSite,
    backup: &str,
    (identity, state): (&str, &str),
    more: &[&str],
) -> String {
    let (new_identity, new_state) = (format!("{identity}-elsewhere"), format!("{state}-elsewhere"));
    let args = ["restore", "--from", backup, "--key-file", "key"];
    let places = ["--identity", &new_identity, "--state", &new_state];
    let said = running.place.done(&[&args[..], &places, more].concat());
    for (from, to) in [(&new_identity[..], identity), (&new_state, state)] {
        let (from, to) = (running.place.path(from), running.place.path(to));
        fs::remove_dir_all(&to).unwrap();
        fs::rename(from, to).unwrap();
    }
    said
}

fn later_row(running: &RunningSite, what: &str) {
    let seen = running.place.rows(&running.server).len();
    until(&format!("window of all three after {what}"), || {
        let rows = running.place.rows(&running.server);
        rows.iter().skip(seen).any(|row| row["population"] == 3).then_some(())
    });
}

#[test]
fn a_service_a_controller_and_a_device_go_on_from_backups_that_were_taken_under_load() {
    let mut running = RunningSite::start();
    let asked = running.place.ask(&running.server, QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let mut devices: Vec<_> = (0..3).map(|house| running.live_meter(house)).collect();
    running.row(3);
    let rows = running.place.rows(&running.server);
    let service = back_up(&running, "pki/service", "run/service");
    let device = back_up(&running, "pki/meter-a", "run/meter-a");
    let host = back_up(&running, "pki/host-c", "run/host-c");
    let slots =
        ["backup", "--slots", "run/host-c/slots", "--key-file", "key", "--to", "slots.backup"];
    running.place.done(&slots);
    later_row(&running, "backups");

    // The service: what it had is there, and it opens windows again.
    running.service.kill();
    let said = restore(&running, &service, ("pki/service", "run/service"), &[]);
    assert!(said.contains("server service") && said.contains("nobody has to act"), "{said}");
    running.start_service();
    later_row(&running, "the restore of the service");
    let kept = running.place.rows(&running.server);
    let is_kept = |row: &&serde_json::Value| kept.contains(row);
    assert!(rows.iter().all(|row| is_kept(&row)), "{rows:?}\n{kept:?}");

    // The device: a new session, from what its input still has.
    devices[0].hang_up();
    devices[0].wait();
    let said = restore(&running, &device, ("pki/meter-a", "run/meter-a"), &[]);
    assert!(said.contains("producer meter-a") && said.contains("new session"), "{said}");
    devices[0] = running.live_meter(0);
    later_row(&running, "the restore of a device");

    // The controller: left out until its owner confirms.
    running.hosts[2].1.kill();
    let said =
        restore(&running, &host, ("pki/host-c", "run/host-c"), &["--slots-from", "slots.backup"]);
    assert!(said.contains("controller host-c") && said.contains("alpheus owner choose"), "{said}");
    assert!(said.contains("key file (`key-file`)") && said.contains("of no use"), "{said}");
    let state = running.place.path("run/host-c");
    assert!(state.join("fence.backup").exists() && !state.join("fence").exists());
    let host_api = running.hosts[2].0.clone();
    running.hosts[2].1 = running.place.controller(HOUSES[2], &host_api, &running.server);
    running.service.wait_for("stream that is left out", |line| {
        line.contains("has not confirmed the policy since its controller").then_some(())
    });
    running.owner_with(2, "choose", &["--schema", "schema.yaml", "--policies", "policies.yaml"]);
    later_row(&running, "the restore of a controller");
}

/// A backup is refused, with this exit code and reason, and no folder is left behind.
fn is_refused(running: &RunningSite, file: &str, key: &str, reason: &str) {
    let verify = running.place.run(&["backup", "verify", file, "--key-file", key]);
    let args = ["restore", "--from", file, "--key-file", key, "--state", "run/new"];
    let restored = running.place.run(&[&args[..], &["--identity", "pki/new"]].concat());
    for output in [verify, restored] {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && said.contains(reason), "{file}: {said}");
        assert!(said.contains("more: alpheus errors backup-invalid"), "{said}");
    }
    for folder in ["run/new", "run/new.restoring", "pki/new", "pki/new.restoring"] {
        assert!(!running.place.path(folder).exists(), "{folder} was left behind");
    }
}

/// The same file, changed.
fn changed(from: &Path, to: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(from).unwrap();
    change(&mut bytes);
    fs::write(to, bytes).unwrap();
}

#[test]
fn a_backup_that_was_cut_or_changed_or_has_another_key_is_refused() {
    let running = RunningSite::start();
    let backup = back_up(&running, "pki/host-a", "run/host-a");
    let path = |name: &str| running.place.path(name);
    let whole = path(&backup);
    changed(&whole, &path("cut"), |bytes| bytes.truncate(bytes.len() - 10));
    changed(&whole, &path("changed"), |bytes| {
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
    });
    changed(&whole, &path("longer"), |bytes| bytes.push(0));
    changed(&whole, &path("newer"), |bytes| bytes[7] = b'9');
    write_secret(&path("other"), "another key file of some length");
    is_refused(&running, "cut", "key", "is cut short");
    is_refused(&running, "changed", "key", "was changed after it was made");
    is_refused(&running, "longer", "key", "was changed after it was made");
    is_refused(&running, "newer", "key", "has format 9");
    is_refused(&running, &backup, "other", "not the one that the backup was made with");
    is_refused(&running, "schema.yaml", "key", "not a backup");
    assert_eq!(fs::metadata(&whole).unwrap().permissions().mode() & 0o777, 0o600);
    // The first folder can be made, the second cannot.
    let args = ["restore", "--from", &backup, "--key-file", "key", "--identity", "pki/new"];
    let half = running.place.run(&[&args[..], &["--state", "schema.yaml/new"]].concat());
    assert!(!half.status.success() && !path("pki/new.restoring").exists());
    // What was erased stays erased: no slots came along, and none are made up.
    let args = ["restore", "--from", &backup, "--key-file", "key", "--state", "run/new"];
    let said = running.place.done(&[&args[..], &["--identity", "pki/new"]].concat());
    assert!(said.contains("the host needs its slot file"), "{said}");
    assert!(!path("run/new/slots").exists() && path("run/new/FORMAT").exists());
    // Nothing is overwritten, neither a backup nor a folder.
    let again = running.place.run(&[&args[..], &["--identity", "pki/new"]].concat());
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && said.contains("nothing is overwritten"), "{said}");
    let twice = ["backup", "--state", "run/host-a", "--key-file", "key", "--to", &backup];
    assert!(!running.place.run(&twice).status.success());
    assert_eq!(fs::metadata(&whole).unwrap().len(), fs::read(&whole).unwrap().len() as u64);
}
