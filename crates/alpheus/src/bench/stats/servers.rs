//! All roles as processes: uploads that are deposited, released, opened, checked by everybody,
//! and decrypted.

use crate::bench::program::processor_seconds;
use crate::bench::report::{Figure, Goal};
use crate::failure::{Blame, Category, Failure};
use crate::pass::serve::block_on;
use crate::stats::plan::Plan;
use crate::stats::replay::drive::Drive;
use crate::stats::replay::samples::{Sample, Samples};
use crate::stats::replay::stage::{Size, Stage};
use alpheus_anonymous_credential::schedule::Time;
use std::time::Instant;

const GROUP: &str = "statistics, behind HTTP";
/// The tables 2 to 4 of the paper, and where they say it.
const PAPER: &str = "statistics, beside tables 2 to 4 of the paper";
const SMOOTHERS: usize = 4;
const QUOTA: u32 = 25;
const HOUR: u64 = 3_600_000_000;
const DAY: u64 = 24 * HOUR;
/// When the hour begins: at noon of some day.
const NOON: u64 = 15_400 * DAY + DAY / 2;

/// What was spent.
struct Spent {
    /// Processor seconds: registrar, aggregator, smoothers.
    processes: Vec<f64>,
    /// Of this process, where the clients are.
    clients: f64,
    /// By the clock on the wall.
    elapsed: f64,
}

fn plan(uploads: u32, clients: u32) -> String {
    format!(
        "place: bench\nattribute: value\ninterval: {{ lowest: 0, highest: 65535 }}\n\
         deviation: true\nevery: 1hr\nduring: 4\nquota: {QUOTA}\naccounts: 2\n\
         slots: {uploads}\nexpected: {uploads}\nclients: {clients}\nrelease: full\n\
         after: {{ turn: 5min, turns: 3, settling: 1min, patience: 6hr }}\n"
    )
}

/// Eight of ten uploads are samples; volunteers give the others.
fn samples(uploads: u32, clients: u32) -> Samples {
    let many = uploads * 8 / 10;
    let sample = |at: u32| {
        let time = Time(NOON + HOUR / u64::from(many) * u64::from(at));
        let (client, value) = ((at % clients) as usize, i64::from(at) * 7919 % 65_536);
        Sample { time, client, value }
    };
    let (clients, starts) = (clients as usize, vec![Time(NOON)]);
    Samples { clients, all: (0..many).map(sample).collect(), starts, refused: 0 }
}

fn run(uploads: u32) -> Result<[Spent; 2], Failure> {
    // As many as a definition asks for, whose quota is five quarters of the slots.
    let clients = (uploads * 10).div_ceil(8 * QUOTA).max(2);
    let plan = Plan::parse(&plan(uploads, clients)).blame(Category::Check)?;
    let samples = samples(uploads, clients);
    let size = Size {
        smoothers: SMOOTHERS,
        threshold: 2,
        clients: samples.clients,
        start: Time(NOON / DAY * DAY - DAY),
        days: 3,
        now: Time(NOON - HOUR),
        first: Time(NOON),
    };
    let start = Instant::now();
    block_on(async {
        let mut drive = Drive::new(Stage::start(size, &plan)?)?;
        let processes = drive.processes();
        let spent = || -> Result<Spent, Failure> {
            let processes = processes.iter().map(|id| processor_seconds(*id));
            let processes = processes.collect::<Result<_, _>>()?;
            let clients = processor_seconds(std::process::id())?;
            Ok(Spent { processes, clients, elapsed: start.elapsed().as_secs_f64() })
        };
        drive.register().await?;
        let before = spent()?;
        drive.play(&plan, &samples).await?;
        let rows = drive.rows().await?;
        let counted = rows.first().and_then(|row| row.count);
        if counted != Some(samples.all.len() as u64) {
            return Err("an aggregate of the bench has another count").blame(Category::Check);
        }
        Ok([before, spent()?])
    })
}

/// Milliseconds for an upload.
///
/// # Errors
/// If a process does not start, or refuses what it should take.
pub(super) fn figures(uploads: u32) -> Result<Vec<Figure>, Failure> {
    let [before, after] = run(uploads)?;
    let each = |from: f64, to: f64| 1000.0 * (to - from) / f64::from(uploads);
    let of: Vec<f64> =
        before.processes.iter().zip(&after.processes).map(|(a, b)| each(*a, *b)).collect();
    let aggregator = of.get(1).copied().unwrap_or(f64::NAN);
    let smoother = of.iter().skip(2).copied().fold(0.0, f64::max);
    let client = each(before.clients, after.clients);
    let named = |what: &str| {
        format!("{uploads} uploads, 16 bit and square, all checked: processor time of {what}, each")
    };
    let goal = Goal::AtMost(1.0);
    let rate = |milliseconds: f64| 60_000.0 / milliseconds;
    let paper = |what: &str, unit, ours, theirs| {
        Figure::alone(PAPER, what.into(), unit, ours).beside_paper(theirs)
    };
    Ok(vec![
        Figure::alone(GROUP, named("the aggregator"), "ms", aggregator).with_goal(goal),
        Figure::alone(GROUP, named("a smoother, one of four"), "ms", smoother).with_goal(goal),
        Figure::alone(GROUP, named("the clients, with their side of HTTP"), "ms", client)
            .with_goal(Goal::AtMost(6.0)),
        Figure::alone(
            GROUP,
            "from the first sample to the result, all on this machine".into(),
            "s",
            after.elapsed - before.elapsed,
        ),
        paper("table 2: upload at the client, laptop (ours: processor time)", "ms", client, 600.0),
        paper(
            "table 3: accountability at the server (ours: the whole upload)",
            "ms",
            aggregator,
            290.0,
        ),
        paper(
            "table 4: upload at the server, latency (ours: processor time)",
            "ms",
            aggregator,
            300.0,
        ),
        paper(
            "table 4: uploads a minute and core, all accountable (aggregator)",
            "",
            rate(aggregator),
            170.0,
        ),
        paper("the same of a smoother, which checks all of it too", "", rate(smoother), 170.0),
    ])
}
