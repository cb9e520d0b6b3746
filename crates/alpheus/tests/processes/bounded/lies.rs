//! A controller that lies: no row says what it wants, and it is named.

use super::middle::{Liar, Lie, known_identity};
use super::{BOUNDED, QUERY, opened, row_that, text};
use crate::common::deployment::{HOUSES, RunningSite, Site};
use crate::revocations::certificate_of;
use alpheus_encrypted_stream::certificate::fingerprint;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_node::service::shutdown::Trigger;
use alpheus_streams::deployment;
use serde_json::Value;
use std::cell::RefCell;
use std::sync::Arc;

/// The house whose controller lies.
const LIAR: usize = 2;

/// A deployment in which one house's controller lies on demand.
pub(crate) fn with_liar(place: Site) -> (RunningSite, Arc<Liar>, Trigger) {
    let key = RefCell::new(Some(known_identity(&place, HOUSES[LIAR])));
    let (service, host) = (place.path("pki/service"), place.path("pki/host-c"));
    let liar = RefCell::new(None);
    let running = RunningSite::start_in(place, |house, api| {
        if house != HOUSES[LIAR] {
            return api.to_owned();
        }
        let (key, url) = (key.borrow_mut().take().unwrap(), format!("https://{api}"));
        let (own, trigger, address) = Liar::start((&service, &host), &url, key);
        *liar.borrow_mut() = Some((own, trigger));
        address
    });
    let (liar, trigger) = liar.into_inner().unwrap();
    (running, liar, trigger)
}

/// The id of the liar's controller, as logs have it.
fn id_of_liar(running: &RunningSite) -> String {
    certificate_of(running, LIAR, "liar.txt");
    let certificate = deployment::read_certificate(&running.place.path("liar.txt")).unwrap();
    let identity = open_identity(&running.place.path("pki/analyst"), Role::Consumer).unwrap();
    let deployment = deployment::of(&identity).unwrap();
    fingerprint(&deployment.controller(&certificate).unwrap()).to_string()
}

/// A row in which one controller is named for this, and no other for anything.
fn names_one(row: &Value, begins: &str, why: &str) -> bool {
    let status = text(row, "status");
    let named: Vec<&str> = status.split("; the service names controller ").skip(1).collect();
    let is_named = |said: &&str| said.get(1..).is_some_and(|said| said == format!(": {why}"));
    status.starts_with(begins) && named.len() == 1 && named.iter().all(is_named)
}

fn honest(row: &Value) -> bool {
    opened(row, 3) && row["integrity"] == BOUNDED
}

fn truth(row: &Value) {
    assert_eq!((text(row, "sum_reading"), row["count_reading"].as_u64()), ("12", Some(6)));
}

fn begun(row: &Value) -> u64 {
    row["window_start"].as_u64().unwrap()
}

fn after(last: u64) -> impl Fn(&Value) -> bool + Copy {
    move |row| honest(row) && begun(row) > last
}

#[test]
fn a_controller_that_lies_is_named_and_moves_no_row() {
    let (mut running, liar, _trigger) = with_liar(Site::with_ticks());
    let asked = running.place.ask(&running.server, QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let _devices = running.feed();
    let first = row_that(&running, "honest row", honest);
    truth(&first);
    // Its share is a thousand more than it has committed to.
    liar.tell(Some(Lie::Share));
    let begins = "the members' commitments do not open to the row";
    let lied = "its share is not what its commitments and its edges add up to";
    let row = row_that(&running, "row that names it", |row| names_one(row, begins, lied));
    assert!(row["sum_reading"].is_null() && row["population"] == 0, "{row}");
    assert_eq!(row["integrity"], "nothing was signed");
    // It has a proof of another window. Two of three are too few to open this one.
    liar.tell(Some(Lie::Proof));
    let unproven = "a range proof of its owners does not hold";
    row_that(&running, "row that names it again", |row| names_one(row, "", unproven));
    // The service's log has its id, and no other controller's.
    let (id, log) = (id_of_liar(&running), running.service.log());
    let named = |line: &&str| line.contains("is named: what it signed of a bounded window");
    let lines: Vec<&str> = log.lines().filter(named).collect();
    assert!(lines.len() >= 2 && lines.iter().all(|line| line.contains(&id)), "{id}: {lines:#?}");
    // It lies, and says nothing when it is asked. That loses windows too, and proves nothing.
    liar.tell(Some(Lie::Silence));
    let silent = "is not named, but it did not state its edges in time";
    let is_silent = |row: &Value| {
        let status = text(row, "status");
        status.starts_with(begins) && status.ends_with(silent) && !names_one(row, begins, lied)
    };
    let row = row_that(&running, "row that says who was silent", is_silent);
    let log = running.service.log();
    let lines = log.lines().filter(|line| line.contains(&id) && line.contains("proves nothing"));
    assert!(lines.count() > 0, "{id}: {log}");
    // Once it is honest again, rows are the truth again.
    liar.tell(None);
    let row = row_that(&running, "honest row after the lies", after(begun(&row)));
    truth(&row);
    crashes(&mut running, begun(&row));
}

/// Crashes of the service and of a controller's host cost windows, and no more.
fn crashes(running: &mut RunningSite, last: u64) {
    running.service.kill();
    let (address, host) = &mut running.hosts[0];
    host.kill();
    *host = running.place.controller(HOUSES[0], address, &running.server);
    running.start_service();
    truth(&row_that(running, "honest row after a crash", after(last + 10_000)));
    let rows = running.place.rows_of(&running.server, "Loads");
    rows.iter().filter(|row| opened(row, 3)).for_each(truth);
}

/// Of five controllers four are enough. A liar without a proof is left out of the row alone, and named; one whose share is
/// a lie costs all of them a window, and is named. Then the others' windows open.
#[test]
fn of_five_controllers_four_open_without_the_liar() {
    let (running, liar, _trigger) = with_liar(Site::of_five_with_ticks());
    let asked = running.place.ask(&running.server, QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let _devices = running.feed();
    let of = |row: &Value| (text(row, "sum_reading").to_owned(), row["count_reading"].as_u64());
    let row = row_that(&running, "row of five", |row| opened(row, 5));
    assert_eq!(of(&row), ("30".into(), Some(10)));
    // It has a proof of another window.
    liar.tell(Some(Lie::Proof));
    let is_without = |row: &Value| opened(row, 4) && row["members_refused"] == 1;
    let row = row_that(&running, "row without the liar", is_without);
    assert_eq!((of(&row), &row["members_left_out"]), (("24".into(), Some(8)), &1.into()), "{row}");
    let signed = BOUNDED.replace('3', "4") + "; 1 other member of the window is not in it";
    assert_eq!(row["integrity"], signed);
    // Its share is a thousand more than it has committed to.
    liar.tell(Some(Lie::Share));
    let begins = "the members' commitments do not open to the row";
    let lied = "its share is not what its commitments and its edges add up to";
    let lost = row_that(&running, "row that names it", |row| names_one(row, begins, lied));
    // Windows that were in progress are lost too. It lies on.
    let opens = |row: &Value| opened(row, 4) && begun(row) > begun(&lost);
    let row = row_that(&running, "row of the other four", opens);
    assert_eq!(of(&row), ("24".into(), Some(8)));
    // The service's log has its id, and no other controller's.
    let (id, log) = (id_of_liar(&running), running.service.log());
    let named = |line: &&str| line.contains("is named: what it signed of a bounded window");
    let lines: Vec<&str> = log.lines().filter(named).collect();
    assert!(lines.len() >= 2 && lines.iter().all(|line| line.contains(&id)), "{id}: {lines:#?}");
    let unproven = "a range proof of its owners does not hold";
    assert!([unproven, lied].iter().all(|why| log.contains(why)), "{log}");
}
