//! End to end: devices, log, sums and the window protocol, compared with the same
//! vectors unencrypted, and with the job that a user without any privacy would
//! run on the raw attributes.
//!
//! Event time does not follow the clock: a window's events arrive as fast as
//! they are accepted. All three jobs get the same values, and their results must
//! agree.

mod application;
mod clock;
mod growth;
mod ours;
mod plain_job;
mod raw_job;
mod vectors;
mod verified_windows;
mod wire;

use crate::BenchError;
use crate::report::{Figure, Goal};
use alpheus_policy::schema::Schema;
pub(super) use application::APPLICATIONS;
use application::{Application, Release};
pub(super) use growth::figures as growth;
use ours::Party;
use plain_job::Job;
use std::path::Path;
pub(super) use verified_windows::figures as verified;
pub(super) use wire::figures as wire;

/// Two events a second and stream in windows of ten seconds.
const EVENTS: u32 = 20;
/// Windows before those that count: they warm caches and draw graphs of masks.
const WARM_UP: usize = 1;

/// The extent of the measurement.
pub(super) struct Extent<'a> {
    /// Only this one of [`APPLICATIONS`].
    pub(super) application: Option<&'a str>,
    /// A schema that has all of that application's and more.
    pub(super) wider: Option<&'a Schema>,
    /// Streams of each deployment.
    pub(super) producers: &'a [u32],
    /// Windows that count.
    pub(super) windows: usize,
}

/// The cost of one window.
#[derive(Debug, Default)]
struct Cost {
    /// Milliseconds of processor time: values to frames.
    devices: f64,
    /// Frames into the log.
    append: f64,
    /// From the log into sums.
    ingest: f64,
    /// From sums to a result row; for ours all work of the service.
    close: f64,
    /// All controllers' part.
    controllers: f64,
    /// Storing the position in the log.
    checkpoint: f64,
    /// Milliseconds from the last border in the log to the durable row.
    delay: f64,
    /// Disk flushes, all stores.
    flushes: f64,
    /// The columns of the result.
    outputs: Vec<(String, serde_json::Value)>,
}

impl Cost {
    /// The service's work on a window's frames.
    fn merge(&self) -> f64 {
        self.ingest + self.close + self.checkpoint
    }

    fn all(&self) -> f64 {
        self.devices + self.append + self.controllers + self.merge()
    }
}

/// Processor time and delay of all applications, sizes and parties.
pub(super) fn figures(
    directory: &Path,
    extent: &Extent<'_>,
    mut say: impl FnMut(&str),
) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    let one = |name| Ok(vec![Application::of(name, extent.wider)?]);
    for application in &extent.application.map_or_else(Application::all, one)? {
        for producers in extent.producers.iter().copied() {
            for release in [Release::Query, Release::AllWords] {
                let name = format!("{}, {producers} producers, {release}", application.name);
                say(&format!("end to end: {name}"));
                let bench = Bench { directory, application, producers, release, extent };
                let found = bench.figures(&name)?;
                found.iter().for_each(|figure| say(&figure.to_string()));
                figures.extend(found);
            }
        }
    }
    Ok(figures)
}

#[derive(Clone, Copy)]
struct Bench<'a> {
    directory: &'a Path,
    application: &'a Application,
    producers: u32,
    release: Release,
    extent: &'a Extent<'a>,
}

impl Bench<'_> {
    fn figures(&self, name: &str) -> Result<Vec<Figure>, BenchError> {
        let plain = self.plain(|release| vectors::Vectors::new(self.application, release))?;
        let raw = self.plain(|release| raw_job::Raw::new(self.application, release))?;
        let one = self.ours(Party::One)?;
        same_results(&one, &plain)?;
        same_results(&one, &raw)?;
        // Before and after ours, so that a drift of the machine's speed is
        // averaged out.
        let after = self.plain(|release| vectors::Vectors::new(self.application, release))?;
        let plain = plain.into_iter().chain(after).collect::<Vec<_>>();
        let ticks = Bench { application: &self.application.with_ticks()?, ..*self };
        let ticks = ticks.ours(Party::One)?;
        same_results(&ticks, &one)?;
        let mut figures = processor_time(name, &one, &plain, &raw);
        figures.extend(one_frame_a_tick(name, &ticks, &raw));
        figures.extend(delay(name, "one controller", &one, &plain, 20.0));
        // A controller for each owner agrees on keys with every other before
        // the first window: seconds that are not measured, so not all of these.
        if self.release == Release::Query || self.application.stands_for_all {
            let many = self.ours(Party::PerOwner)?;
            same_results(&many, &one)?;
            figures.extend(delay(name, "one per owner", &many, &plain, 300.0));
            figures.push(alone(name, "controllers, one per owner, CPU", "ms", &many, |c| {
                c.controllers
            }));
            figures.push(alone(name, "service with one per owner, CPU", "ms", &many, |c| c.close));
        }
        Ok(figures)
    }

    fn ours(&self, party: Party) -> Result<Vec<Cost>, BenchError> {
        let folder = tempfile::tempdir_in(self.directory)?;
        let windows = WARM_UP + self.extent.windows;
        let costs = ours::run(
            folder.path(),
            self.application,
            self.producers,
            self.release,
            party,
            windows,
        )?;
        Ok(costs.into_iter().skip(WARM_UP).collect())
    }

    fn plain<J: Job>(
        &self,
        job: impl FnOnce(alpheus_policy::plan::Release) -> J,
    ) -> Result<Vec<Cost>, BenchError> {
        let folder = tempfile::tempdir_in(self.directory)?;
        let windows = WARM_UP + self.extent.windows;
        let plan = ours::plan_of(self.application, self.producers, self.release)?;
        let job = job(plan.release.clone());
        let costs = plain_job::run(
            folder.path(),
            self.application,
            self.producers,
            &plan.select,
            job,
            windows,
        )?;
        Ok(costs.into_iter().skip(WARM_UP).collect())
    }
}

/// A figure is meaningless if the jobs do not compute the same.
fn same_results(ours: &[Cost], theirs: &[Cost]) -> Result<(), BenchError> {
    let same = ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(ours, theirs)| ours.outputs == theirs.outputs);
    if same { Ok(()) } else { Err(BenchError::Differs) }
}

fn processor_time(name: &str, ours: &[Cost], plain: &[Cost], raw: &[Cost]) -> Vec<Figure> {
    let beside = |what: &str, of: fn(&Cost) -> f64| compared(name, what, ours, plain, of);
    let raw = |what: &str, of: fn(&Cost) -> f64| {
        alone(name, &format!("raw attributes: {what}"), "ms", raw, of)
    };
    vec![
        beside("ingest and merge, CPU a window", Cost::merge).with_goal(Goal::RatioAtMost(1.3)),
        beside("of that, reading and summing", |c| c.ingest),
        beside("of that, from sums to a durable row", |c| c.close + c.checkpoint),
        beside("encoding (and encrypting), CPU a window", |c| c.devices),
        beside("appending to the log, CPU a window", |c| c.append),
        beside("everything, CPU a window", Cost::all),
        raw("ingest and merge, CPU a window", Cost::merge),
        raw("everything, CPU a window", Cost::all),
        alone(name, "controller, CPU a window", "ms", ours, |c| c.controllers),
    ]
}

/// One frame a tick, beside a job that reads the raw attributes of every event.
fn one_frame_a_tick(name: &str, ticks: &[Cost], raw: &[Cost]) -> Vec<Figure> {
    let beside = |what: &str, of: fn(&Cost) -> f64| {
        let what = format!("one frame a tick, beside raw attributes: {what}");
        compared(name, &what, ticks, raw, of)
    };
    vec![
        beside("ingest and merge, CPU a window", Cost::merge).with_goal(Goal::RatioAtMost(0.5)),
        beside("of that, checking and summing", |c| c.ingest),
        beside("of that, from sums to a durable row", |c| c.close + c.checkpoint),
        beside("encoding and encrypting, CPU a window", |c| c.devices),
        beside("appending to the log, CPU a window", |c| c.append),
        beside("everything, CPU a window", Cost::all),
        alone(name, "one frame a tick: controller, CPU a window", "ms", ticks, |c| c.controllers),
    ]
}

/// Delays of both, their difference, and flushes.
fn delay(name: &str, party: &str, ours: &[Cost], plain: &[Cost], most: f64) -> Vec<Figure> {
    let later = median(ours.iter().map(|c| c.delay)) - median(plain.iter().map(|c| c.delay));
    let flushes = median(ours.iter().map(|c| c.flushes));
    let group = "end to end";
    vec![
        compared(name, &format!("{party}: window end to result"), ours, plain, |c| c.delay),
        Figure::alone(
            group,
            format!("{name}: {party}: result later than plaintext's"),
            "ms",
            later,
        )
        .with_goal(Goal::AtMost(most)),
        Figure {
            unit: "flushes",
            ..compared(name, &format!("{party}: a window"), ours, plain, |c| c.flushes)
        },
        Figure::alone(group, format!("{name}: {party}: flushes a second"), "1/s", flushes / 10.0),
    ]
}

fn compared(
    name: &str,
    what: &str,
    ours: &[Cost],
    floor: &[Cost],
    of: impl Fn(&Cost) -> f64,
) -> Figure {
    let (ours, floor) = (median(ours.iter().map(&of)), median(floor.iter().map(&of)));
    let mut figure = alone(name, what, "ms", &[], of);
    (figure.ours, figure.floor, figure.ratio) = (ours, Some(floor), Some(ours / floor));
    figure
}

fn alone(
    name: &str,
    what: &str,
    unit: &'static str,
    costs: &[Cost],
    of: impl Fn(&Cost) -> f64,
) -> Figure {
    Figure::alone("end to end", format!("{name}: {what}"), unit, median(costs.iter().map(of)))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also checks that all three jobs and both parties compute the same.
    #[test]
    fn every_job_arrives_at_the_same_results() {
        // With a controller each, of which eight may collude, ten owners need eighteen.
        let extent = Extent { application: None, wider: None, producers: &[18], windows: 1 };
        let folder = tempfile::tempdir().unwrap();
        let applications = Application::all().unwrap();
        for release in [Release::Query, Release::AllWords] {
            let application = &applications[0];
            let directory = folder.path();
            let bench = Bench { directory, application, producers: 18, release, extent: &extent };
            assert!(!bench.figures("test").unwrap().is_empty());
        }
    }
}
