//! `alpheus owner move`: moves a stream from one controller to another. Everything is carried by this
//! command, so a service can neither withhold nor reorder it. If the command was cut short, it is run
//! again: the placement that the first controller has taken stands.

use super::identity::bounds_sets;
use super::{ChoiceArgs, DeviceFile, Owner, version_at};
use crate::deployment::{self, from_hex};
use crate::wire::{
    Arrival, ArrivingKey, ControllerView, Departure, MoveReply, MoveRequest, StreamView,
};
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_encrypted_stream::annotation::{Annotation, ControllerChange, Placement};
use alpheus_encrypted_stream::certificate::{Certificate, Recipient, fingerprint};
use alpheus_encrypted_stream::handover::Purpose;
use alpheus_input::calendar::moment;
use alpheus_input::files::read_schema;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::local_time::local_time;
use alpheus_node::network::answer::EmptyAnswer;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::{Name, Role, host_named};
use alpheus_node::note;
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};
use std::path::PathBuf;
use std::time::Duration;

/// Until the border, so that service and controllers know of the move by then.
const MARGIN: Span = Span::seconds(30);
/// How often a border is moved on that is too early.
const TRIES: usize = 3;

#[derive(Debug, clap::Args)]
pub(super) struct Move {
    /// The owner's identity folder, with the signing key
    #[arg(long, value_name = "FOLDER")]
    identity: PathBuf,
    /// The URL of the controller that guards the stream
    #[arg(long, value_name = "URL", required_unless_present = "lost")]
    controller: Option<String>,
    /// The name on that controller's certificate; by default any
    #[arg(long, value_name = "NAME")]
    controller_name: Option<String>,
    /// The stream
    #[arg(long, value_name = "ID")]
    stream: StreamId,
    /// The URL of the next controller
    #[arg(long, value_name = "URL")]
    to: String,
    /// The name on the next controller's certificate; by default any
    #[arg(long, value_name = "NAME")]
    to_name: Option<String>,
    /// The border, 2026-12-01T06:00 (UTC) or Unix milliseconds: by default the next one that the windows of
    /// all the stream's queries share, which is at midnight (UTC) if the choice limits the sets of a day
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Timestamp>,
    /// The previous controller is gone for good: the key comes from the device's file, and all budgets count
    /// as spent until the border
    #[arg(
        long,
        conflicts_with = "controller",
        requires_all = ["device", "producer", "schema", "policies"]
    )]
    lost: bool,
    /// With --lost: the device's file, which holds the stream's key
    #[arg(long, value_name = "FILE", requires = "lost")]
    device: Option<PathBuf>,
    /// The name on the certificate of the sending device; without --lost, the default is the name that you signed before
    #[arg(long, value_name = "NAME")]
    producer: Option<String>,
    /// With --lost: the stream's schema: YAML or .avsc
    #[arg(long, value_name = "FILE", requires = "lost")]
    schema: Option<PathBuf>,
    /// With --lost: the owner's choices; an entry with the certificate's name applies to this owner
    #[arg(long, value_name = "FILE", requires = "lost")]
    policies: Option<PathBuf>,
    /// With --lost: a public fact about the stream
    #[arg(long, value_name = "NAME=VALUE", requires = "lost")]
    metadata: Vec<String>,
}

/// One of a host's controllers, as the authority certified it, and the owner there.
struct Host {
    owner: Owner,
    certificate: Signed<Certificate>,
    recipient: Recipient,
}

impl Host {
    /// The controller of this id, or the first one.
    fn of(
        owner: Owner,
        id: Option<ControllerId>,
        folder: &IdentityFolder,
    ) -> Result<Host, Failure> {
        let known: Vec<ControllerView> =
            owner.client.get_json("/v1/controllers", Duration::ZERO)?;
        let recipients = super::erasure::certified(&known, folder, owner.client.peer())?;
        let found = known
            .iter()
            .zip(recipients)
            .find(|(_, recipient)| id.is_none_or(|id| id == fingerprint(recipient.certificate())));
        let none = "the controller presented no certificate";
        let (view, recipient) = found.ok_or(none).blame(Category::Check)?;
        let certificate = from_hex(&view.certificate).ok_or(none).blame(Category::Check)?;
        Ok(Host { owner, certificate, recipient })
    }

    fn id(&self) -> ControllerId {
        fingerprint(self.recipient.certificate())
    }

    fn name(&self) -> &str {
        host_named(&self.recipient.certificate().party.name)
    }

    /// Brings a stream here.
    fn take(
        &self,
        placement: Signed<Placement>,
        choice: Signed<Annotation>,
        key: ArrivingKey,
    ) -> Result<(), Failure> {
        let owner = self.owner.identity.certified.certificate().clone();
        let arrival = Arrival { placement, owner, choice, key };
        self.owner.client.call::<EmptyAnswer>("/v1/arrivals", &arrival, Duration::ZERO)?;
        Ok(())
    }
}

pub(super) fn run(args: &Move) -> Result<(), Failure> {
    let folder = open_identity(&args.identity, Role::Owner)?;
    let to = Owner::at((&args.to, args.to_name.as_deref()), &folder)?;
    let to = Host::of(to, None, &folder)?;
    match &args.controller {
        Some(url) => {
            let from = Owner::at((url, args.controller_name.as_deref()), &folder)?;
            move_whole(args, from, &to, &folder)
        }
        None => move_lost(args, &to, &folder),
    }
}

/// The previous controller hands over what the next one needs.
fn move_whole(args: &Move, from: Owner, to: &Host, folder: &IdentityFolder) -> Result<(), Failure> {
    let path = format!("/v1/streams/{}", args.stream);
    let view: StreamView = from.client.get_json(&path, Duration::ZERO)?;
    let from = Host::of(from, Some(view.controller), folder)?;
    let Departure { placement, choice, handed } = leave(args, &from, to, &view)?;
    let stands = opened(&placement, &from.owner, args.stream)?;
    let moved = stands.moved.filter(|moved| moved.from == from.id());
    let (Some(moved), true) = (moved, stands.controller == to.id()) else {
        return Err(format!(
            "the stream has already moved to the controller {}: ask there",
            stands.controller
        ))
        .blame(Category::Check);
    };
    to.take(placement, choice, ArrivingKey::Handed { handed, before: from.certificate.clone() })?;
    let (stream, border) = (args.stream, local_time(moved.at.0 / 1000));
    println!(
        "stream {stream} moves at {border}: `{}` answers for windows that end by then, and `{}` for those that begin from then on",
        from.name(),
        to.name()
    );
    if clock::now() > moved.at {
        note!("windows since {border} that have already ended do not include the stream");
    }
    if view.grants.iter().any(|grant| grant.days.is_some()) {
        note!(
            "readers have no access at `{}`: grant it there for days from the border on, with `alpheus owner grant`",
            to.name()
        );
    }
    Ok(())
}

/// Has the previous controller give the stream away.
fn leave(args: &Move, from: &Host, to: &Host, view: &StreamView) -> Result<Departure, Failure> {
    let schema: Schema = from.owner.client.get_json("/v1/schema", Duration::ZERO)?;
    let (step, producer) = (shared(&schema, view)?, device(args, from, view)?);
    let mut at = args.at.unwrap_or_else(|| next(clock::now().plus(MARGIN), step));
    for _ in 0..TRIES {
        let moved = ControllerChange { from: from.id(), at, lost: false };
        let placement = placed(&from.owner, args.stream, to, producer.clone(), moved);
        let (to, key) = (to.certificate.clone(), to.recipient.key().clone());
        let owner = from.owner.identity.certified.certificate().clone();
        let asked = MoveRequest { placement, owner, to, key };
        let reply: MoveReply = from.owner.client.call("/v1/moves", &asked, Duration::ZERO)?;
        match reply {
            MoveReply::Leaves(left) => return Ok(*left),
            MoveReply::TooEarly { earliest } if args.at.is_some() => {
                let first = local_time(next(earliest, step).0 / 1000);
                return Err(format!(
                    "the border is too early, since windows that end after it may already have been answered; the earliest possible one is {first}"
                ))
                .blame(Category::Usage);
            }
            MoveReply::TooEarly { earliest } => at = next(earliest.plus(MARGIN), step),
        }
    }
    Err("the controller finds every border too early: is this machine's clock right?")
        .blame(Category::Check)
}

/// The device that sends the stream, as the owner has signed it: a host that has the key, and named a device of
/// its own, could send in the owner's name.
fn device(args: &Move, from: &Host, view: &StreamView) -> Result<String, Failure> {
    if let Some(given) = &args.producer {
        Name::new(Role::Producer, given.clone()).blame(Category::Usage)?;
        return Ok(given.clone());
    }
    let unsigned = "the controller shows no placement that you signed with this key: name the sending device with --producer";
    let known = view.placement.as_deref().and_then(from_hex).ok_or(unsigned);
    let known = opened(&known.blame(Category::Check)?, &from.owner, args.stream);
    known.map(|known| known.producer.clone()).map_err(|_| unsigned).blame(Category::Check)
}

/// The owner's statement of where the stream is. A later one has a higher version: versions are Unix seconds.
fn placed(
    owner: &Owner,
    stream: StreamId,
    to: &Host,
    producer: String,
    moved: ControllerChange,
) -> Signed<Placement> {
    let (version, controller) = (version_at(clock::now()), to.id());
    let placement = Placement { stream, version, controller, producer, moved: Some(moved) };
    Signed::new(&placement, &owner.identity.key)
}

/// A placement by which the owner has moved this stream.
fn opened(
    placement: &Signed<Placement>,
    owner: &Owner,
    stream: StreamId,
) -> Result<Verified<Placement>, Failure> {
    let opened = placement.open(owner.identity.certified.key()).ok();
    let opened = opened.filter(|placement| placement.stream == stream);
    opened.ok_or("the controller shows a placement that is not yours").blame(Category::Check)
}

/// The length of which all borders are multiples that the windows of a stream's plans share.
fn shared(schema: &Schema, view: &StreamView) -> Result<Span, Failure> {
    let current = view.choices.last().and_then(|choice| from_hex(&choice.annotation));
    let current = current.and_then(|signed: Signed<Annotation>| signed.dangerous_unverified());
    let is_bounded = current.is_some_and(|choice| bounds_sets(&choice.policy));
    let day = is_bounded.then_some(Span::DAY);
    // Those that have ended too: a query by epochs has another plan for each window.
    let windows = view.plans.iter().map(|plan| plan.window);
    let all = windows.chain(day).try_fold(schema.tick, multiple);
    all.ok_or("the windows of the stream's queries share no border: name one with --at")
        .blame(Category::Usage)
}

/// The least common multiple; none beyond a year.
fn multiple(one: Span, other: Span) -> Option<Span> {
    let (mut a, mut b) = (one.0, other.0);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let all = (one.0 / a.max(1)).checked_mul(other.0)?;
    (all > 0 && all <= 366 * Span::DAY.0).then_some(Span(all))
}

/// The first multiple of a length that is not before a time.
fn next(time: Timestamp, step: Span) -> Timestamp {
    let floor = time.floor(step);
    if floor < time { floor.plus(step) } else { floor }
}

/// The previous controller is gone: what the next one needs comes from the owner.
fn move_lost(args: &Move, to: &Host, folder: &IdentityFolder) -> Result<(), Failure> {
    let needed = "--lost needs --device, --producer, --schema and --policies";
    let (device, producer) =
        args.device.as_ref().zip(args.producer.as_ref()).ok_or(needed).blame(Category::Usage)?;
    let files = args.schema.clone().zip(args.policies.clone());
    let (schema, policies) = files.ok_or(needed).blame(Category::Usage)?;
    let wish = &ChoiceArgs { schema, policies, metadata: args.metadata.clone() };
    Name::new(Role::Producer, producer.clone()).blame(Category::Usage)?;
    let schema = read_schema(&wish.schema)?;
    DeviceFile::check(device, &args.stream)?;
    let (stream, master) = DeviceFile::read(device, &schema)?;
    if let Some(moved) = came_lost(to, stream)? {
        say_lost(stream, moved, to);
        return Ok(());
    }
    let choice = to.owner.choice(wish, &schema, stream, false)?;
    let is_bounded = choice.dangerous_unverified().is_some_and(|own| bounds_sets(&own.policy));
    let step = if is_bounded { Span::DAY } else { schema.tick };
    let at = args.at.unwrap_or_else(|| next(clock::now().plus(MARGIN), step));
    // Nobody can ask the lost one who it was.
    let moved = ControllerChange { from: ControllerId([0; 32]), at, lost: true };
    let placement = placed(&to.owner, stream, to, producer.clone(), moved);
    let purpose = Purpose { stream, schema: schema.id(), owner: to.owner.identity.certified.id() };
    let authority = deployment::of(folder)?.authority().to_owned();
    let sealed = purpose.seal(&authority, &to.recipient, &master, &mut entropy::rng()?);
    let sealed = sealed.blame(Category::Check)?;
    to.take(placement, choice, ArrivingKey::Lost { sealed })?;
    say_lost(stream, moved, to);
    Ok(())
}

/// The move by which a stream has come to a controller from a lost one, if it has.
fn came_lost(to: &Host, stream: StreamId) -> Result<Option<ControllerChange>, Failure> {
    let client = &to.owner.client;
    let known: Vec<String> = client.get_json("/v1/streams", Duration::ZERO)?;
    if !known.contains(&stream.to_string()) {
        return Ok(None);
    }
    let view: StreamView = client.get_json(&format!("/v1/streams/{stream}"), Duration::ZERO)?;
    let Some(placement) = view.placement.as_deref().and_then(from_hex) else { return Ok(None) };
    let placement = opened(&placement, &to.owner, stream)?;
    Ok(placement.moved.filter(|moved| moved.lost && placement.controller == to.id()))
}

fn say_lost(stream: StreamId, moved: ControllerChange, to: &Host) {
    println!(
        "stream {stream} is at `{}`, which answers for windows that begin from {} on; of the time before, all budgets count as spent",
        to.name(),
        local_time(moved.at.0 / 1000)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_border_is_one_that_all_windows_share() {
        let seconds = |n| Span::seconds(n);
        assert_eq!(multiple(seconds(1), seconds(10)), Some(seconds(10)));
        assert_eq!(multiple(seconds(4), seconds(6)), Some(seconds(12)));
        assert_eq!(multiple(seconds(7), Span::DAY), Some(Span(7 * Span::DAY.0)));
        assert_eq!(multiple(Span(u64::MAX), Span(2)), None);
        assert_eq!(multiple(Span(7), Span(400 * Span::DAY.0)), None);
        let at = |n: u64| Timestamp(n * 1_000_000);
        assert_eq!(next(at(12), seconds(4)), at(12));
        assert_eq!(next(at(13), seconds(4)), at(16));
    }
}
