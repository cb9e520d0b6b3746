//! The steps of the demo, in order.

use super::Args;
use super::cheat::caught;
use super::play::{DemoError, Play, TIMING, broken};
use super::stage::Stage;
use super::world::World;
use alpheus_encrypted_stream::error::ExclusionError;
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine};
use alpheus_encrypted_stream::tick::frame::TickFrame;
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_policy::explain::explain;
use alpheus_policy::ids::StreamId;
use alpheus_policy::planner::PlannedQuery;
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::show::describe;
use alpheus_stream_runtime::query_planner::{QueryContext, plan_query};
use alpheus_streams::owner::log::{in_order, in_words};
use alpheus_transport::{Limits, Offset};
use std::collections::BTreeSet;
use std::time::Instant;

/// Frames that are shown as bytes, and how many bytes of each.
const FRAMES: usize = 4;
const BYTES: usize = 40;
/// Windows of the first query.
const WINDOWS: usize = 9;

/// Plays the demo from start to end.
///
/// # Errors
/// If a step did not end as announced.
pub(super) fn play(args: &Args) -> Result<(), Failure> {
    let stage = Stage::new(args.check);
    stage.say("Alpheus: learn from personal data without ever holding it.")?;
    let world = World::load(args)?;
    stage.say(&format!(
        "{} people ride. Each has a device, which encrypts, and a privacy controller, which holds\n\
         the key and the owner's policy. A service stores and sums what it cannot read.\n\
         Here all of them run in this one process and exchange the messages that they would\n\
         exchange over the network. docs/tour.md runs them as separate processes.",
        world.recording.streams.len()
    ))?;
    let folder = tempfile::tempdir().blame(Category::Io)?;
    let mut play = Play::begin(&world, folder.path(), stage)?;
    let planned = service_view(&mut play)?;
    allowed(&mut play, planned)?;
    forbidden(&mut play)?;
    change_of_mind(&mut play)?;
    dead_controller(&mut play)?;
    caught(&mut play)?;
    compare(play)
}

/// What the service sees, and what it may ask.
fn service_view(play: &mut Play<'_>) -> Result<PlannedQuery, Failure> {
    play.stage.step(
        "What the service sees",
        "Ten seconds have passed. Each device has added up its readings and sent one frame. This is all\n\
         that the service's log contains:",
    )?;
    play.tick()?;
    let frames = shown_frames(play)?;
    play.expect(frames.len() == FRAMES, "frames in the service's log");
    play.stage.quote(&frames.join("\n"))?;
    play.stage.say("\nWhat it may ask, given the owners' options:\n")?;
    let tables =
        describe(&play.embedded.manager.catalog, &play.world.schema.name).blame(Category::Check)?;
    if let Some(policies) = tables.last() {
        play.stage.quote(&policies.to_string())?;
    }
    play.stage
        .say("\nThis query is allowed. EXPLAIN shows what it would reveal, before it runs:\n")?;
    play.stage.quote(&play.world.allowed.text)?;
    play.stage.say("")?;
    let from = play.now()?;
    let planned = play.plan(&play.world.allowed, from)?;
    if let Some(schema) = play.embedded.manager.catalog.schema(&play.world.schema.name) {
        play.stage.quote(&explain(&planned, schema, 0.01, false).to_string())?;
    }
    Ok(planned)
}

/// The first ticks of the service's own store, as bytes.
fn shown_frames(play: &Play<'_>) -> Result<Vec<String>, Failure> {
    let mut shown = Vec::new();
    for partition in 0..play.embedded.topics.partitions {
        let partition = play.embedded.topics.events.partition(partition);
        let fetched = play.embedded.store.read(&partition, Offset(0), Limits::default());
        for record in fetched.map_err(|error| broken(error.into()))? {
            let frame = TickFrame::parse(&record.value, play.world.schema.tick);
            let Ok(TickFrame::Tick(..)) = frame else { continue };
            let tail = record.value.len().saturating_sub(BYTES);
            shown.push(format!(
                "stream {}…  {} bytes  …{}",
                hex(record.key.get(..4).unwrap_or_default()),
                record.value.len(),
                hex(record.value.get(tail..).unwrap_or_default()),
            ));
            if shown.len() == FRAMES {
                return Ok(shown);
            }
        }
    }
    Ok(shown)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A query that policies allow, window by window.
fn allowed(play: &mut Play<'_>, planned: PlannedQuery) -> Result<(), Failure> {
    play.stage.step(
        "An allowed query, live",
        "For each window every controller checks the owner's policy and releases a masked token;\n\
         only all tokens together open the sum, and nothing but the sum. The bars show beats per minute\n\
         from 0 to 200 in steps of 20.",
    )?;
    let plans = play.start(planned)?;
    let asked: BTreeSet<StreamId> =
        plans.iter().flat_map(|plan| &plan.streams).map(|planned| planned.stream).collect();
    let streams = play.embedded.streams.iter().enumerate();
    play.taking_part =
        streams.filter(|(_, stream)| asked.contains(stream)).map(|(at, _)| at).collect();
    let refused = plans
        .iter()
        .any(|plan| play.embedded.manager.service.refusals(&plan.id()).next().is_some());
    play.expect(!refused, "every controller to accept the plan");
    windows(play, 3)
}

fn windows(play: &mut Play<'_>, count: usize) -> Result<(), Failure> {
    (0..count).try_for_each(|_| play.window())
}

/// A query that no policy allows.
fn forbidden(play: &mut Play<'_>) -> Result<(), Failure> {
    play.stage.step(
        "A forbidden query, refused",
        "The planner refuses it. If the service bypassed the planner, every controller would refuse:",
    )?;
    let question = &play.world.forbidden;
    play.stage.quote(&question.text)?;
    play.stage.say("")?;
    let now = play.now()?;
    let Err(refusal) = plan_query(
        &question.create,
        &play.embedded.manager.catalog,
        QueryContext::from(now).with_readers(&|name| play.embedded.reader_named(name)),
        &mut play.rng,
    ) else {
        play.expect(false, "the forbidden query to be refused");
        return Ok(());
    };
    play.stage.quote(&refusal.render(&question.text))?;
    let nearest = refusal.nearest.as_deref().is_some_and(|nearest| {
        let embedded = &play.embedded;
        let readers = |name: &str| embedded.reader_named(name);
        let asking = QueryContext::from(now).with_readers(&readers);
        plan_query(nearest, &embedded.manager.catalog, asking, &mut play.rng).is_ok()
    });
    play.expect(nearest, "the nearest query to be allowed");
    if nearest {
        play.stage.say("\nThat one is indeed allowed: the demo has just planned it.")?;
    }
    Ok(())
}

/// An owner changes the policy, which takes effect in the next window.
fn change_of_mind(play: &mut Play<'_>) -> Result<(), Failure> {
    let (member, now) = (play.somebody(2)?, play.now()?);
    play.stage.step(
        "An owner changes the policy",
        &format!(
            "Owner {member} chooses `private` and signs the choice. Nobody else has to do anything:\n\
             their own controller leaves the stream out from the next window on."
        ),
    )?;
    let owner = play.world.recording.streams.get(member).map_or("", |stream| &stream.owner);
    let policy = ResolvedPolicy::private(&play.world.schema);
    let (before, left_out) = (log(play, member)?, play.left_out(ExclusionError::Policy));
    play.embedded.change_policy(now, member, owner, 2, policy).map_err(broken)?;
    play.taking_part.remove(&member);
    windows(play, 2)?;
    let left_out = play.left_out(ExclusionError::Policy) - left_out;
    play.expect(left_out == 2, "the stream to be left out of two windows by policy");
    play.stage.say(&format!(
        "\nEach window has one person fewer. Left out: 1 stream in {left_out} windows, because {}.",
        ExclusionError::Policy
    ))?;
    show_log(play, member, &before)
}

fn log(play: &Play<'_>, member: usize) -> Result<Vec<LogLine>, Failure> {
    let mut lines = play.embedded.owner_log(member).map_err(broken)?;
    lines.sort_by_key(in_order);
    Ok(lines)
}

/// The owner's log, with new lines marked.
fn show_log(play: &mut Play<'_>, member: usize, before: &[LogLine]) -> Result<(), Failure> {
    let after = log(play, member)?;
    play.stage.say("The owner's log at their controller; new lines start with +:\n")?;
    for line in &after {
        let mark = if before.contains(line) { ' ' } else { '+' };
        play.stage.quote(&format!("{mark} {}", in_words(line, &play.world.schema, seconds)))?;
    }
    let mut gained = after.iter().filter(|line| !before.contains(line));
    let changed = gained.any(|line| matches!(line.event, LogEvent::PolicyChanged { version: 2 }));
    let releases = |lines: &[LogLine]| {
        lines.iter().filter(|line| matches!(line.event, LogEvent::Released { .. })).count()
    };
    play.expect(changed, "the owner's log to record the change");
    play.expect(releases(before) == 3, "the owner's log to record three releases");
    play.expect(releases(&after) == 3, "no release after the change");
    Ok(())
}

/// A controller dies, and windows still open.
fn dead_controller(play: &mut Play<'_>) -> Result<(), Failure> {
    let member = play.somebody(2)?;
    play.stage.step(
        "A controller is killed",
        &format!(
            "The machine of owner {member}'s controller is switched off. After {} seconds the service\n\
             stops waiting and opens the window without that stream. The other masks still cancel.",
            TIMING.presence.0 / 1_000_000
        ),
    )?;
    let (left_out, begun) = (play.left_out(ExclusionError::ControllerAbsent), Instant::now());
    let controller = play.embedded.controller_of.get(member).copied();
    controller.into_iter().for_each(|controller| play.embedded.host.kill(controller));
    play.taking_part.remove(&member);
    windows(play, 2)?;
    let left_out = play.left_out(ExclusionError::ControllerAbsent) - left_out;
    play.expect(left_out == 2, "the dead controller's stream to be left out of two windows");
    play.stage.say(&format!(
        "\nTwo windows in {:.1} s, each without one stream, because {}.",
        begun.elapsed().as_secs_f64(),
        ExclusionError::ControllerAbsent
    ))
}

/// Compares all answers with the plaintext.
fn compare(mut play: Play<'_>) -> Result<(), Failure> {
    play.stage.step(
        "The results compared with the plaintext",
        "Only this program can compare them, since it plays the owners too. Count, mean, variance,\n\
         histogram and population of each window were recomputed from the readings themselves:",
    )?;
    play.expect(play.matched == WINDOWS, "all windows to equal the plaintext");
    let counters = &play.embedded.manager.service.counters;
    let dead = !(counters.refused_frames.is_empty() && counters.refused_messages.is_empty());
    play.stage.say(&format!(
        "    {} of {WINDOWS} windows equal the plaintext to the last digit. The service received {} frames,\n    \
         {} bytes, and could read none of them.",
        play.matched, counters.frames, counters.bytes
    ))?;
    play.expect(!dead, "no event and no message to be refused");
    if play.unmet.is_empty() {
        play.stage.say("\nEvery step succeeded, and every answer equals the plaintext.")
    } else {
        let unmet = DemoError::Unmet(play.unmet);
        Err(Failure::new(Category::Check, unmet).with_id(ErrorId::DemoUnmet))
    }
}

fn seconds(window: alpheus_time::Window) -> String {
    let short = |micros: u64| micros / 1_000_000 % 1000;
    format!("window {} to {} s", short(window.start.0), short(window.end.0))
}
