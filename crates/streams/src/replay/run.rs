//! One replay from start to end.

use super::Args;
use super::bounds;
use super::feed::Feed;
use super::fingerprint::Fingerprint;
use super::inputs::{Inputs, QueryFile};
use super::limits;
use super::output;
use super::windows;
use alpheus_input::refusals::Refusals;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::service::health::State;
use alpheus_node::service::progress::Progress;
use alpheus_node::service::shutdown::{self, Shutdown};
use alpheus_node::settings::path_flag;
use alpheus_policy::catalog::RunningQuery;
use alpheus_policy::explain::explain;
use alpheus_policy::plan::Plan;
use alpheus_policy::planner::PlannedQuery;
use alpheus_policy::query::MaskChoice;
use alpheus_stream_runtime::embedded_deployment::{EmbeddedDeployment, Pace};
use alpheus_stream_runtime::error::RuntimeError;
use alpheus_stream_runtime::query_planner;
use alpheus_stream_runtime::storage::{reach, reached};
use alpheus_time::{Span, Timestamp};
use alpheus_transport::Batch;
use chacha20::ChaCha20Rng;
use std::path::Path;

const RUN: &[u8] = b"run";
/// Ticks are committed together up to about this many bytes.
const CHUNK_BYTES: usize = 2 << 20;
/// Maximum number of ticks committed together.
const CHUNK_TICKS: usize = 64;

/// Replays a recording and writes its results.
///
/// # Errors
/// A [`Failure`] that says what is at fault and how to fix it.
pub(super) fn replay(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let outputs = output::paths(&args.output, &output::names(&args.query)?, globals.format)?;
    output::check(&outputs, args.query.len() > 1)?;
    let state = globals.settings(vec![("state", path_flag(args.state.as_ref()))])?.state;
    let stop = shutdown::on_signal().blame(Category::Io)?;
    let inputs = Inputs::read(args)?;
    limits::check_rows(&inputs, args)?;
    let temporary = tempfile::tempdir().blame(Category::Io)?;
    let folder = state.clone().unwrap_or_else(|| temporary.path().to_owned());
    let mut rng = entropy::rng()?;
    let members = inputs.members();
    let mut embedded = EmbeddedDeployment::open(
        &folder,
        &inputs.schema,
        &members,
        &inputs.policies,
        args.controllers.0,
        Pace::Recorded,
        &mut rng,
    )
    .map_err(store_failure)?;
    embedded.watch(&globals.metrics);
    let resume = begin(&mut embedded, &inputs, args, &mut rng)?;
    globals.health.part("replay").set(State::Ready);
    let Some(refused) = feed(&mut embedded, &inputs, resume, &stop, &mut rng)? else {
        return Err(interrupted(state.as_deref()));
    };
    let rows = embedded.results().map_err(store_failure)?;
    let all_refused = inputs.recording.refused.total() + refused.total();
    let shown = windows::WindowReport::of(&inputs, &rows, all_refused, args);
    output::write(&outputs, &inputs, rows, globals.format)?;
    // If standard error is closed, nobody can be notified.
    let counters = &embedded.manager.service.counters;
    let _ = output::report(&mut note::lines(), &inputs, counters, &refused)
        .and_then(|()| shown.write(&mut note::lines()));
    // A run that goes on where another stopped may have all results already.
    if resume.is_some() { Ok(()) } else { limits::check_windows(counters, &shown) }
}

fn interrupted(state: Option<&Path>) -> Failure {
    let help = match state {
        Some(_) => "run the same command again to continue where this run stopped",
        None => "with --state, an interrupted run can be continued",
    };
    Failure::new(
        Category::Interrupted,
        "interrupted before the end of the recording; no results were written",
    )
    .with_help(help)
}

/// Plans the queries, unless an earlier run did; returns how far that run came.
fn begin(
    embedded: &mut EmbeddedDeployment,
    inputs: &Inputs,
    args: &Args,
    rng: &mut ChaCha20Rng,
) -> Result<Option<Timestamp>, Failure> {
    let run = Fingerprint::of(args)?;
    for query in &inputs.queries {
        let (name, asked) = (&query.create.name.text, query.create.settings.accuracy);
        embedded.manager.service.expect(name, asked);
    }
    let stored = get(embedded, RUN)?;
    match stored.as_deref() {
        Some(known) if known != run.bytes() => {
            let other = run.differences(known).join(", ");
            return Err(Failure::new(
                Category::Usage,
                format!("the state belongs to a replay with other files or flags: {other}"),
            )
            .at("--state")
            .with_help("name another folder, or use the original files and flags"));
        }
        Some(_) if !embedded.running().is_empty() => {}
        _ => {
            let mut queries = Vec::new();
            for query in &inputs.queries {
                queries.push(plan(embedded, query, inputs, args, rng)?);
            }
            // A run that was killed between these two steps has no plan yet.
            put(embedded, RUN, run.bytes())?;
            for (plans, masks) in queries {
                let begins = inputs.recording.begins();
                embedded.start_masked(begins, &plans, masks).map_err(store_failure)?;
            }
        }
    }
    for running in embedded.running() {
        if let Some((controller, refused)) = embedded.manager.service.refusals(&running).next() {
            return Err(Failure::new(
                Category::Refused,
                format!("controller {controller} refuses the plan: {refused}"),
            ));
        }
    }
    reached(embedded.store.as_ref(), &embedded.topics).map_err(|error| store_failure(error.into()))
}

fn plan(
    embedded: &mut EmbeddedDeployment,
    query: &QueryFile,
    inputs: &Inputs,
    args: &Args,
    rng: &mut ChaCha20Rng,
) -> Result<(Vec<Plan>, Option<MaskChoice>), Failure> {
    let mut create = query.create.clone();
    if let Some(masks) = args.masks {
        create.settings.masks = Some(masks.into());
    }
    if let Some(membership) = args.membership {
        create.settings.membership = Some(membership.into());
    }
    let refused = |error: String| Failure::new(Category::Refused, error).at(query.place.clone());
    // Running totals have bounded length, so they begin with the recording.
    let begins = inputs.recording.begins();
    let from = create.cumulating.map_or(Timestamp(0), |_| begins.floor(create.window));
    let planned = query_planner::plan_query(
        &create,
        &embedded.manager.catalog,
        query_planner::QueryContext::from(from).with_readers(&|name| embedded.reader_named(name)),
        rng,
    )
    .map_err(|refusal| {
        let known = embedded.manager.catalog.schema(&create.from.text);
        let (schema, file) = (known.map(|known| &known.schema), args.policies.as_deref());
        let failure =
            crate::policy_refusal::failure(&refusal, (&query.text, &query.place), file, schema);
        let beyond = bounds::beyond(&refusal, &inputs.schema, &inputs.recording);
        beyond.iter().fold(failure, |failure, what| failure.with_more_help(what))
    })?;
    for left in &planned.excluded {
        let (name, fitting) = (&planned.name, planned.fitting);
        note!("{} of {fitting} streams do not take part in {name}: {}", left.streams, left.reason);
    }
    let raised = planned.raised();
    for what in raised.iter().chain(&planned.accuracy).chain(&lacking(&planned, embedded)) {
        note!("{}: {what}", planned.name);
    }
    let (plans, masks) = (planned.to_run(), planned.masks);
    let running = RunningQuery { name: planned.name, sql: planned.sql, plans: plans.clone() };
    embedded.manager.catalog.start(running).map_err(|error| refused(error.to_string()))?;
    Ok((plans, masks))
}

/// What the results do not hide, as EXPLAIN says it, if readings may lack what they are of: fewer
/// owners than the minimum may be in them.
fn lacking(planned: &PlannedQuery, embedded: &EmbeddedDeployment) -> Option<String> {
    let plan = planned.plans.first()?;
    let known = embedded.manager.catalog.schemas().find(|known| known.id == plan.schema)?;
    plan.attributes.iter().find(|at| known.schema.is_optional(**at))?;
    let warnings = explain(planned, known, 0.0, true).warnings;
    warnings.into_iter().find(|warning| warning.contains("events may lack"))
}

/// Feeds the recording in chunks of ticks: a chunk's events are durable as a
/// whole before any window over them closes. Returns none if it was asked to stop
/// before the end.
fn feed(
    embedded: &mut EmbeddedDeployment,
    inputs: &Inputs,
    resume: Option<Timestamp>,
    stop: &Shutdown,
    rng: &mut ChaCha20Rng,
) -> Result<Option<Refusals>, Failure> {
    let windows: Vec<Span> = inputs.queries.iter().map(|query| query.create.window).collect();
    let mut feed = Feed::new(&inputs.recording, inputs.schema.tick, &windows, resume);
    let mut refused = Refusals::default();
    let total = feed.end().0.saturating_sub(feed.next_tick().unwrap_or(feed.end()).0);
    let mut progress = Progress::new("ticks", Some(total / inputs.schema.tick.0.max(1)));
    // Stored by an interrupted run, but not processed.
    if let Some(clock) = resume {
        embedded.pump(clock).map_err(store_failure)?;
    }
    let mut stopped = false;
    while feed.next_tick().is_some() && !stopped {
        let (mut batch, from) = (Batch::new(), feed.next_tick());
        for _ in 0..CHUNK_TICKS {
            if batch.bytes() >= CHUNK_BYTES || feed.next_tick().is_none() || stopped {
                break;
            }
            if stop.is_stopping() {
                feed.stop();
                stopped = true;
            }
            feed.step(&mut embedded.devices, &embedded.encoder, rng, &mut batch, &mut refused)
                .map_err(|error| Failure::new(Category::Check, error))?;
        }
        let reached = feed.next_tick().unwrap_or(feed.end());
        reach(&mut batch, &embedded.topics, reached)
            .and_then(|()| embedded.store.commit(batch).map(|_| ()))
            .map_err(|error| store_failure(error.into()))?;
        let clock = clock(embedded, inputs, &feed);
        embedded.pump(clock).map_err(store_failure)?;
        let passed = reached.0.saturating_sub(from.unwrap_or(reached).0);
        progress.advance(passed / inputs.schema.tick.0.max(1));
    }
    if feed.next_tick().is_some() {
        return Ok(None);
    }
    let end = feed.end().plus(longest_grace(inputs));
    embedded.manager.service.seal(end);
    embedded.pump(end).map_err(store_failure)?;
    Ok(Some(refused))
}

/// The controllers' clock: the watermark, or the end of the recording.
fn clock(embedded: &mut EmbeddedDeployment, inputs: &Inputs, feed: &Feed<'_>) -> Timestamp {
    let reached = feed.next_tick().unwrap_or(feed.end().plus(longest_grace(inputs)));
    embedded.manager.service.watermark().max(reached)
}

fn longest_grace(inputs: &Inputs) -> Span {
    inputs.queries.iter().filter_map(|query| query.create.grace).max().unwrap_or(Span(0))
}

fn get(embedded: &EmbeddedDeployment, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    let value = embedded.store.get(&embedded.topics.progress, key);
    Ok(value.map_err(|error| store_failure(error.into()))?.map(|bytes| bytes.to_vec()))
}

fn put(embedded: &EmbeddedDeployment, key: &[u8], value: &[u8]) -> Result<(), Failure> {
    let mut batch = Batch::new();
    batch
        .put(&embedded.topics.progress, key.to_vec(), value.to_vec())
        .and_then(|()| embedded.store.commit(batch).map(|_| ()))
        .map_err(|error| store_failure(error.into()))
}

fn store_failure(error: RuntimeError) -> Failure {
    Failure::new(Category::Io, error)
}
