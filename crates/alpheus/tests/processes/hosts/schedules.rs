//! Outages drawn from a seed: the service, hosts of controllers and devices are killed or cut off
//! for seconds up to an hour, one after the other or at once. Every window opens once. It holds
//! what the devices kept of it, of everybody who could have been in it, and of nobody else.
//!
//! Time is the test's: an hour passes in steps of ten seconds.

use super::sea::{Meter, STEP, Sea};
use crate::common::recording::Draw;
use std::collections::BTreeMap;

/// Seconds of a window: two ticks.
pub(super) const WINDOW: u64 = 60;
/// Outages begin in this time, in seconds.
const SPAN: u64 = 7_200;
/// An outage takes at most this long, and at least a step.
const LONGEST: u64 = 3_600;
/// How long everybody is there before the first outage, and after the last.
const CALM: u64 = 300;
const OUTAGES: u64 = 5;

/// Who is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Away {
    /// The service: killed.
    Service,
    /// A host of controllers: killed.
    Host(usize),
    /// A device that goes on, and cannot reach the service.
    CutOff(usize),
    /// A device that is killed, and loses its open tick.
    Device(usize),
}

/// Outages: who, from when, and to when.
pub(super) struct Schedule(Vec<(Away, u64, u64)>);

impl Schedule {
    fn drawn(draw: &mut Draw) -> Schedule {
        let outage = |draw: &mut Draw| {
            let who = usize::try_from(draw.below(3)).unwrap();
            let away = match draw.below(5) {
                0 | 1 => Away::Service,
                2 => Away::Host(who),
                3 => Away::CutOff(who),
                _ => Away::Device(who),
            };
            // As many short ones as long ones.
            let most = STEP << draw.below(9);
            let long = (STEP + draw.below(most)).min(LONGEST);
            let from = CALM + draw.below(SPAN);
            (away, from / STEP * STEP, (from + long).next_multiple_of(STEP))
        };
        Schedule((0..OUTAGES).map(|_| outage(draw)).collect())
    }

    pub(super) fn is_away(&self, who: Away, at: u64) -> bool {
        self.0.iter().any(|(away, from, to)| *away == who && (*from..*to).contains(&at))
    }

    /// Whether somebody was away at any time from `start` to `end`, or had just come back.
    fn meets(&self, who: Away, start: u64, end: u64) -> bool {
        let meets = |from: u64, to: u64| from <= end && start <= to + 2 * STEP;
        self.0.iter().any(|(away, from, to)| *away == who && meets(*from, *to))
    }

    fn end(&self) -> u64 {
        self.0.iter().map(|(.., to)| *to).max().unwrap_or(0) + CALM
    }
}

/// What a window held: of each meter, whether it was in and what it says; and when it opened.
struct Row {
    sums: [u64; 3],
    population: u32,
    status: String,
    at: u64,
}

fn rows_of(sea: &Sea) -> BTreeMap<u64, Row> {
    let row = |(start, (row, at)): (&u64, &(alpheus_stream_runtime::results::Row, u64))| {
        let sum: u64 = row.outputs[0].1.as_str().map_or(0, |sum| sum.parse().unwrap());
        let sums = [0, 1, 2].map(|meter| sum / Meter::scale(meter) % 1000);
        let (population, status) = (row.population, row.status.clone());
        (*start, Row { sums, population, status, at: *at })
    };
    sea.rows.iter().map(row).collect()
}

/// Holds a window to what its meters kept. Returns how many of them are in it.
fn check(sea: &Sea, schedule: &Schedule, start: u64, row: &Row, about: &str) -> usize {
    let (end, at) = (start + WINDOW, row.at);
    let about = format!("{about}, window {start}, opened at {at}: {}, {:?}", row.status, row.sums);
    let truth = [0, 1, 2].map(|meter| sea.meters[meter].kept_in(start, end));
    let has_host = |meter: &usize| !schedule.meets(Away::Host(*meter), end, at);
    let could = |meter: &usize| {
        let is_there = |away| !schedule.meets(away, start, at);
        truth[*meter].is_some()
            && has_host(meter)
            && is_there(Away::CutOff(*meter))
            && is_there(Away::Device(*meter))
    };
    let all: Vec<usize> = (0..3).filter(could).collect();
    if row.status != "ok" {
        let hosts = (0..3).filter(has_host).count();
        assert!(hosts < 2 || all.is_empty(), "{about}: it could have opened");
        assert_eq!(row.sums, [0; 3], "{about}");
        return 0;
    }
    let within: Vec<usize> = (0..3).filter(|meter| row.sums[*meter] > 0).collect();
    for meter in &within {
        assert_eq!(truth[*meter], Some(row.sums[*meter]), "{about}: meter {meter}");
    }
    assert!(all.iter().all(|meter| within.contains(meter)), "{about}: {all:?} could be in it");
    assert_eq!(row.population as usize, within.len(), "{about}");
    within.len()
}

/// Runs a schedule. Returns the number of windows, and of those that held everybody.
fn run(seed: u64) -> (usize, usize) {
    let mut draw = Draw(seed);
    let schedule = Schedule::drawn(&mut draw);
    let mut sea = Sea::new(seed);
    while sea.second() < schedule.end() {
        sea.step(&schedule, &mut draw);
    }
    let about = format!("seed {seed}, {:?}", schedule.0);
    let rows = rows_of(&sea);
    let starts: Vec<u64> = rows.keys().copied().collect();
    assert!(starts.is_sorted_by(|one, next| one + WINDOW == *next), "{about}: {starts:?}");
    let (first, last) = (starts[0], starts[starts.len() - 1]);
    assert!(first <= 2 * WINDOW && last + 3 * WINDOW >= sea.second(), "{about}: {starts:?}");
    let whole =
        rows.iter().filter(|(start, row)| check(&sea, &schedule, **start, row, &about) == 3);
    (rows.len(), whole.count())
}

fn run_all(seeds: std::ops::Range<u64>) {
    let (mut windows, mut whole) = (0, 0);
    for seed in seeds {
        let found = run(seed);
        (windows, whole) = (windows + found.0, whole + found.1);
    }
    println!("{windows} windows, {whole} of them with everybody");
    assert!(whole * 2 > windows, "{whole} of {windows} windows are whole");
}

#[test]
fn after_any_outage_each_window_holds_what_the_devices_kept() {
    run_all(0..10);
}

#[test]
#[ignore = "drill: four minutes of one core"]
fn a_hundred_schedules_of_outages() {
    run_all(0..100);
}
