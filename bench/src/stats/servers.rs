//! All roles as processes: uploads that are deposited, released, opened, checked by everybody,
//! and decrypted.

use super::load::Load;
use crate::program::processor_seconds;
use crate::report::{Figure, Goal};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::listeners::block_on;
use alpheus_stats_service::plan::Plan;
use alpheus_stats_service::replay::stage::{Size, Stage};
use alpheus_time::Timestamp;

const GROUP: &str = "statistics, behind HTTP";
/// The tables 2 to 4 of the paper, and where they say it.
const PAPER: &str = "statistics, beside tables 2 to 4 of the paper";
const SMOOTHERS: u16 = 4;
/// At a time: each is a shard of its own.
const AGGREGATES: u32 = 4;
const QUOTA: u32 = 25;
const HOUR: u64 = 3_600_000_000;
const DAY: u64 = 24 * HOUR;
/// When the hour begins: at noon of some day.
const NOON: u64 = 15_400 * DAY + DAY / 2;

/// Processor seconds so far: registrar, aggregator, smoothers, and this process.
struct ProcessorTimes {
    servers: Vec<f64>,
    clients: f64,
}

/// What a run came to.
struct Run {
    before: ProcessorTimes,
    /// When all have receipts.
    deposited: ProcessorTimes,
    /// When there are results.
    after: ProcessorTimes,
}

fn plan(number: u32, slots: u32, clients: u32) -> Result<Plan, Failure> {
    let text = format!(
        "place: bench/{number}\nattribute: value\ninterval: {{ lowest: 0, highest: 65535 }}\n\
         deviation: true\nevery: 1hr\nduring: 4\nquota: {QUOTA}\naccounts: 2\n\
         slots: {slots}\nexpected: {slots}\nclients: {clients}\nrelease: full\n\
         after: {{ turn: 5min, turns: 3, settling: 1min, patience: 6hr }}\n"
    );
    Plan::parse(&text).blame(Category::Check)
}

async fn drive(load: &mut Load, slots: u32) -> Result<Run, Failure> {
    let processes = load.stage.processes();
    let spent = || -> Result<ProcessorTimes, Failure> {
        let servers = processes.iter().map(|id| processor_seconds(*id));
        let servers = servers.collect::<Result<_, _>>()?;
        Ok(ProcessorTimes { servers, clients: processor_seconds(std::process::id())? })
    };
    let before = spent()?;
    load.set(Timestamp(NOON))?;
    // Eight of ten uploads are samples; volunteers give the others.
    let samples = slots * 8 / 10;
    let begun = load.begin(samples, false)?;
    load.give(begun).await?;
    load.set(load.agreed()?.end)?;
    let begun = load.begin(slots - samples, true)?;
    load.give(begun).await?;
    let deposited = spent()?;
    load.set(load.agreed()?.release())?;
    let counts = load.counts().await?;
    if counts != [Some(samples.into()); AGGREGATES as usize] {
        return Err("an aggregate of the bench has another count").blame(Category::Check);
    }
    Ok(Run { before, deposited, after: spent()? })
}

fn run(uploads: u32) -> Result<Run, Failure> {
    let slots = uploads / AGGREGATES;
    // As many as a definition asks for, whose quota is five quarters of the slots.
    let clients = (slots * 10).div_ceil(8 * QUOTA).max(2);
    let plans = (0..AGGREGATES).map(|number| plan(number, slots, clients));
    let plans = plans.collect::<Result<Vec<Plan>, _>>()?;
    let size = Size {
        smoothers: SMOOTHERS.into(),
        threshold: 2,
        clients: clients as usize,
        start: Timestamp(NOON / DAY * DAY - DAY),
        days: 3,
        now: Timestamp(NOON - HOUR),
        first: Timestamp(NOON),
    };
    let first = plans.first().ok_or("no plan").blame(Category::Check)?;
    let stage = Stage::start(size, Some(first))?;
    block_on(async {
        let mut load = Load::new(stage).await?;
        for plan in &plans {
            load.define(plan, Timestamp(NOON)).await?;
        }
        drive(&mut load, slots).await
    })
}

/// Milliseconds for an upload.
///
/// # Errors
/// If a process does not start, or refuses what it should take.
pub(super) fn figures(uploads: u32) -> Result<Vec<Figure>, Failure> {
    let uploads = uploads / AGGREGATES * AGGREGATES;
    let Run { before, deposited, after } = run(uploads)?;
    let each = |from: f64, to: f64| 1000.0 * (to - from) / f64::from(uploads);
    let of = |from: &ProcessorTimes, to: &ProcessorTimes| -> Vec<f64> {
        from.servers.iter().zip(&to.servers).map(|(a, b)| each(*a, *b)).collect()
    };
    let smoothers = |of: &[f64]| of.iter().skip(2).copied().fold(0.0, f64::max);
    let all = of(&before, &after);
    let aggregator = all.get(1).copied().unwrap_or(f64::NAN);
    let smoother = smoothers(&all);
    let client = each(before.clients, after.clients);
    let named = |what: &str| {
        format!(
            "{uploads} uploads to {AGGREGATES} aggregates, 16 bit and square, all checked: processor time of {what}, each"
        )
    };
    let goal = Goal::AtMost(1.0);
    let mut figures = vec![
        Figure::alone(GROUP, named("the aggregator"), "ms", aggregator).with_goal(goal),
        Figure::alone(GROUP, named("a smoother, the busiest of four"), "ms", smoother)
            .with_goal(goal),
        Figure::alone(
            GROUP,
            "of this, until all have receipts".into(),
            "ms",
            smoothers(&of(&before, &deposited)),
        ),
        Figure::alone(
            GROUP,
            named("the clients, with their side of HTTP and TLS handshakes"),
            "ms",
            client,
        )
        .with_goal(Goal::AtMost(6.0)),
    ];
    figures.extend(tables(client, aggregator, smoother));
    Ok(figures)
}

/// The tables 2 to 4 of the paper, with what an upload costs here.
fn tables(client: f64, aggregator: f64, smoother: f64) -> Vec<Figure> {
    let rate = |milliseconds: f64| 60_000.0 / milliseconds;
    let paper = |what: &str, unit, ours, theirs| {
        Figure::alone(PAPER, what.into(), unit, ours).beside_paper(theirs)
    };
    vec![
        paper("table 2: upload at the client, laptop (ours: processor time)", "ms", client, 600.0),
        paper("table 2: the same on a phone (ours: this machine)", "ms", client, 2000.0),
        paper("table 3: accountability at the server (ours: all of it)", "ms", aggregator, 290.0),
        paper("table 4: latency of an upload (ours: processor time)", "ms", aggregator, 300.0),
        paper("table 4: uploads a minute and core, all checked", "", rate(aggregator), 170.0),
        paper("table 4: a fifth checked (ours: all)", "", rate(aggregator), 860.0),
        paper("table 4: none checked (ours: all)", "", rate(aggregator), 2400.0),
        paper("the same of a smoother, which checks all too", "", rate(smoother), 170.0),
    ]
}
