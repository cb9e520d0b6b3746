//! What verified windows cost beside plain ones, whole: the same devices, events and query, with one
//! controller for all owners.

use super::application::{Application, Release};
use super::ours::{self, Party};
use super::{Cost, WARM_UP, compared, median, same_results};
use crate::BenchError;
use crate::report::{Figure, Goal};
use std::path::Path;

const PRODUCERS: u32 = 100;
const WINDOWS: usize = 21;

/// The service, the devices and the controller, where the query's words are released and where all
/// are.
pub(crate) fn figures(
    directory: &Path,
    mut say: impl FnMut(&str),
) -> Result<Vec<Figure>, BenchError> {
    let application = Application::of("fitness", None)?;
    let (plain, verified) = (application.with_ticks()?, application.verified()?);
    let mut figures = Vec::new();
    for release in [Release::Query, Release::AllWords] {
        let name = format!("{}, {PRODUCERS} producers, {release}", application.name);
        say(&format!("verified: whole windows, {name}"));
        let run = |application: &Application| -> Result<Vec<Cost>, BenchError> {
            let (folder, all) = (tempfile::tempdir_in(directory)?, WARM_UP + WINDOWS);
            let costs = ours::run(folder.path(), application, PRODUCERS, release, Party::One, all)?;
            Ok(costs.into_iter().skip(WARM_UP).collect())
        };
        let (plain, verified) = (run(&plain)?, run(&verified)?);
        same_results(&verified, &plain)?;
        figures.extend(beside(&name, &verified, &plain));
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
