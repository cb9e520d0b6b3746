//! What a bounded window costs, beside Prio3 of the `prio` crate for the same statistics, in one run: count,
//! sum and sum of squares of one owner. `bench/README.md` says how to run it.

mod blame;
mod influence;
mod ours;
mod prio3;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Bits of each form, or of each number at Prio3.
pub(crate) const BITS: usize = 32;

/// Processor time of this thread, in milliseconds.
pub(crate) fn processor() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// Milliseconds of the processor that one call takes: the median of some runs.
pub(crate) fn time(runs: usize, mut work: impl FnMut()) -> f64 {
    let mut all: Vec<f64> = (0..runs)
        .map(|_| {
            let begun = processor();
            work();
            processor() - begun
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Says what was found, since all of it takes minutes.
fn found(what: &str, value: Value) -> Value {
    eprintln!("{what}: {value}");
    value
}

fn main() {
    let runs = 9;
    let influence = found("influence", influence::points());
    // With so many members the masks are sparse unless a query says otherwise: one pair in 16.
    let rounds = [(100, 1), (1_000, 16), (1_000, 1)];
    let blame = rounds.map(|(members, one_in)| found("blame", blame::figures(members, one_in)));
    let ours = found("ours", ours::figures(runs));
    let prio3 = found("Prio3", prio3::figures(runs));
    let report = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "prio": "0.18.1",
        "runs": runs,
        "ours": ours,
        "prio3": prio3,
        "blame": blame,
        "influence": influence,
    });
    println!("{report:#}");
}
