//! `make model`: explores, and prints what was found as Markdown. It takes some gigabytes and minutes.

use alpheus_model::controller::{Bounds, Copies, Rules};
use alpheus_model::explore;
use alpheus_model::sets::{all_share_an_honest_member, least};
use std::process::ExitCode;
use std::time::Instant;

/// The largest roster of which all pairs of sets are compared.
const ROSTER: u32 = 8;
/// When copies are made, and how many restores and commits there are. Copies made at any time have
/// more states: another commit with three restores takes more than eight gigabytes.
const SIZES: [(Copies, u8, u8); 6] = [
    (Copies::AtRest, 1, 8),
    (Copies::AnyTime, 1, 8),
    (Copies::AtRest, 2, 6),
    (Copies::AnyTime, 2, 6),
    (Copies::AtRest, 3, 5),
    (Copies::AnyTime, 3, 4),
];

fn main() -> ExitCode {
    let mut holds = true;
    println!(
        "| copies are made | restores, at most | commits, at most | states | steps | answers two sets | s |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for (copies, restores, commits) in SIZES {
        let (begun, bounds) = (Instant::now(), Bounds { restores, commits, copies });
        let outcome = explore(&Rules::ALL, &bounds);
        let found = if outcome.answered_twice.is_some() { "YES" } else { "never" };
        let (states, steps, seconds) = (outcome.states, outcome.steps, begun.elapsed().as_secs());
        println!(
            "| {copies:?} | {restores} | {commits} | {states} | {steps} | {found} | {seconds} |"
        );
        if let Some(events) = outcome.answered_twice {
            holds = false;
            eprintln!("{copies:?}: {events:?}");
        }
    }
    match all_share_an_honest_member(ROSTER, least) {
        Ok(pairs) => println!(
            "\nRosters of up to {ROSTER}: {pairs} pairs of opening sets, each with an honest member in common."
        ),
        Err(found) => {
            holds = false;
            eprintln!("{found:#?}");
        }
    }
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
