//! What verified windows cost beside plain ones, whole: the same devices, events and query, with one
//! controller for all owners.

use super::application::{Application, Release};
use super::ours::{self, Party};
use super::{Cost, WARM_UP, compared, median, same_results};
use crate::BenchError;
use crate::report::{Figure, Goal};
use std::path::Path;

const PRODUCERS: u32 = 100;
/// Ticks of a window and how many windows count, in each round.
const WINDOWS: [(u32, usize); 5] = [(1, 21), (6, 9), (10, 9), (60, 3), (360, 1)];
/// Plain and verified windows take turns, so that a drift of the machine's speed affects both.
const ROUNDS: usize = 3;
/// Events of a stream in a tick. The service adds up ticks, whatever is in them.
const EVENTS: u32 = 2;

/// The service, the devices and the controller, where the query's words are released and where all
/// are.
pub(crate) fn figures(
    directory: &Path,
    quick: bool,
    mut say: impl FnMut(&str),
) -> Result<Vec<Figure>, BenchError> {
    let fitness = Application::of("fitness", None)?;
    let (mut figures, rounds) = (Vec::new(), if quick { 1 } else { ROUNDS });
    for (ticks, windows) in WINDOWS {
        for release in [Release::Query, Release::AllWords] {
            let name = format!("{}, {PRODUCERS} producers, {release}", fitness.name);
            let name = format!("{name}, {ticks} ticks a window");
            say(&format!("verified: whole windows, {name}"));
            let run = |application: &Application| -> Result<Vec<Cost>, BenchError> {
                let (folder, all) = (tempfile::tempdir_in(directory)?, WARM_UP + windows);
                let path = folder.path();
                let costs = ours::run(path, application, PRODUCERS, release, Party::One, all)?;
                Ok(costs.into_iter().skip(WARM_UP).collect())
            };
            let (mut plain, mut verified) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                let own = || fitness.in_windows_of(ticks, EVENTS);
                let (one, other) = (run(&own()?)?, run(&own()?.verified())?);
                same_results(&other, &one)?;
                plain.extend(one);
                verified.extend(other);
            }
            figures.extend(beside(&name, &verified, &plain));
        }
    }
    Ok(figures)
}

fn beside(name: &str, verified: &[Cost], plain: &[Cost]) -> [Figure; 4] {
    let beside = |what: &str, of: fn(&Cost) -> f64| {
        let what = format!("verified beside plain: {what}");
        Figure { group: "verified", ..compared(name, &what, verified, plain, of) }
    };
    let each =
        |costs: &[Cost]| median(costs.iter().map(|cost| cost.controllers)) / f64::from(PRODUCERS);
    let more = format!("{name}: controller, more for each stream and window");
    let more = Figure::alone("verified", more, "ms", each(verified) - each(plain));
    [
        beside("service, CPU a window", Cost::merge).with_goal(Goal::RatioAtMost(1.15)),
        beside("devices, CPU a window", |cost| cost.devices),
        beside("controller, CPU a window", |cost| cost.controllers),
        more.with_goal(Goal::AtMost(0.2)),
    ]
}
