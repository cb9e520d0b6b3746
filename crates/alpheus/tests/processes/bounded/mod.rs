//! `integrity = 'bounded'` over processes: rows are the truth, a device with absurd values costs its own
//! owner the window, and a controller that lies moves no row and is named.
//!
//! The lying is done here. The product has no way to lie.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

mod declared_bounds;
mod device;
mod guide;
pub(crate) mod lies;
pub(crate) mod middle;
mod replay;

use crate::common::deployment::{HOUSES, RunningSite, until_or};
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};

/// The query of the guide.
pub(crate) const QUERY: &str = "CREATE STREAM Loads AS SELECT SUM(reading), COUNT(reading) \
    WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters \
    WITH (integrity = 'bounded', alpha = '1/3')";

/// What a row says that holds.
pub(crate) const BOUNDED: &str =
    "signed by 3 controllers, each of which could have changed it by its owners' bounds";

/// Waits for a row that is looked for.
pub(crate) fn row_that(running: &RunningSite, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let rows = || running.place.rows_of(&running.server, "Loads");
    let why = || {
        let (rows, log) = (rows(), running.service.log());
        format!("no {what}: {rows:#?}\n{log}")
    };
    until_or(why, || rows().into_iter().find(&is_it))
}

pub(crate) fn opened(row: &Value, population: u64) -> bool {
    row["status"] == "ok" && row["population"] == population
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The number that a house's meter sends.
fn number_of(house: &str) -> i64 {
    1 + i64::try_from(HOUSES.iter().position(|known| *known == house).unwrap()).unwrap()
}
