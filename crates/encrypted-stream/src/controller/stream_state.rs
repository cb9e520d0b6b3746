//! A stream that a controller guards: its keys and its owner's annotations.

use std::collections::BTreeSet;
use std::sync::Arc;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Verified;
use alpheus_policy::ids::{ControllerId, OwnerId, SchemaId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::policy::{ResolvedOption, ResolvedPolicy};
use alpheus_policy::schema::Schema;
use alpheus_time::{Timestamp, Window};

use super::copies::{Copies, DeviceCopy};
use super::sessions::{Session, Sessions};
use super::tenure::Tenure;
use crate::annotation::Annotation;
use crate::error::{AnnotationError, ExclusionError, GrantError};
use crate::grant::Days;
use crate::keys::{DAY, MasterSecret, StreamKeys};

/// A stream that is handed to a controller: what the controller shares with the producer.
pub struct HeldStream {
    /// The stream.
    pub stream: StreamId,
    /// The owner.
    pub owner: OwnerId,
    /// The schema of its events.
    pub schema: Arc<Schema>,
    /// The layout of its events.
    pub layout: Arc<Layout>,
    /// The source of its keys; `None` once it is destroyed.
    pub master: Option<MasterSecret>,
}

/// Number of an owner's choices for a stream that are kept. Of windows that began before the
/// oldest of them nothing is released.
const MAX_CHOICES: usize = 256;

/// An annotation and when the controller accepted it.
#[derive(Debug)]
pub(super) struct DatedAnnotation {
    pub(super) annotation: Annotation,
    /// In force from then on; the first one from the time that its owner states.
    pub(super) since: Timestamp,
}

/// A stream with its keys.
pub(super) struct StreamState {
    pub(super) owner: OwnerId,
    pub(super) schema: Arc<Schema>,
    pub(super) layout: Arc<Layout>,
    /// `None` once they are erased, which implies a revocation.
    pub(super) keys: Option<StreamKeys>,
    annotations: Vec<DatedAnnotation>,
    /// The owner is known to have chosen what the ledger states, for windows from this time
    /// on. `None` after an untrusted restore, which may have lost a later choice.
    confirmed: Option<Timestamp>,
    /// When consent was withdrawn.
    pub(super) revoked: Option<Timestamp>,
    /// The owner's certificate, as the last annotation came with it.
    certificate: Option<Digest>,
    /// Whether the authority has revoked it.
    pub(super) is_barred: bool,
    /// Proofs that its device has copies.
    pub(super) copies: Copies,
    pub(super) sessions: Sessions,
    /// When this controller guards it.
    pub(super) tenure: Tenure,
}

/// A ledger record about a stream.
pub(super) enum StreamRecord {
    /// An annotation with its owner's certificate, when it came into force, and when it was
    /// submitted if that was after the last untrusted restore.
    Annotation(Box<(Verified<Annotation>, Digest)>, Timestamp, Option<Timestamp>),
    /// When consent was withdrawn.
    Revoked(Timestamp),
    /// A known session.
    Session(Session),
    /// Its device has a copy.
    Copy(DeviceCopy),
    /// When this controller guards it.
    Tenure(Box<Tenure>),
}

impl StreamRecord {
    /// The ledger is not known to be the latest any more: see [`StreamState::suspend`].
    pub(super) fn suspend(&mut self) {
        if let StreamRecord::Annotation(_, _, confirmed) = self {
            *confirmed = None;
        }
    }
}

impl StreamRecord {
    /// The annotation, if it is one.
    pub(super) fn choice(&self) -> Option<&Annotation> {
        match self {
            StreamRecord::Annotation(choice, ..) => Some(&choice.0),
            StreamRecord::Revoked(_)
            | StreamRecord::Session(_)
            | StreamRecord::Copy(_)
            | StreamRecord::Tenure(_) => None,
        }
    }
}

/// The same as [`StreamState::sets_per_day`] for a stream that is not held, from the ledger's records of it.
pub(super) fn sets_per_day(
    records: &[StreamRecord],
    of: (SchemaId, &[u16]),
    day: Window,
) -> Option<u32> {
    let mut choices: Vec<(Timestamp, &Annotation)> = Vec::new();
    let mut revoked = None;
    for record in records {
        match record {
            StreamRecord::Annotation(choice, since, _) => {
                let choice: &Annotation = &choice.0;
                choices.push((*since, choice));
            }
            StreamRecord::Revoked(at) => revoked = Some(*at),
            StreamRecord::Session(_) | StreamRecord::Copy(_) | StreamRecord::Tenure(_) => {}
        }
    }
    choices.sort_by_key(|(_, choice)| choice.version);
    bound_of_day(choices.into_iter(), revoked, of, day)
}

/// The strictest bound on the sets of a day, of all choices, by version, that were in force at any time since
/// the day began. Also of those that were changed, have expired or were withdrawn during it: what was summed under
/// them and what is summed without them differ by their owner.
fn bound_of_day<'a>(
    choices: impl Iterator<Item = (Timestamp, &'a Annotation)>,
    revoked: Option<Timestamp>,
    (schema, attributes): (SchemaId, &[u16]),
    day: Window,
) -> Option<u32> {
    let mut choices = choices.peekable();
    // Then no data of that day is in any sum.
    let is_later = choices.peek().is_none_or(|(since, _)| day.end <= *since);
    if is_later || revoked.is_some_and(|at| at <= day.start) {
        return None;
    }
    let mut least = None;
    while let Some((_, choice)) = choices.next() {
        let until = choices.peek().map(|(next, _)| *next);
        let counts = choice.schema == schema
            && day.start < choice.valid_to
            && until.is_none_or(|until| day.start < until);
        let bound = choice.policy.sets_per_day(attributes).filter(|_| counts);
        least = least.into_iter().chain(bound).min();
    }
    least
}

impl StreamState {
    /// `confirmed` is `None` if a ledger that knew the stream may have been lost.
    pub(super) fn new(stream: HeldStream, confirmed: Option<Timestamp>) -> Self {
        let HeldStream { stream, owner, schema, layout, master } = stream;
        let keys = master.map(|master| StreamKeys::new(&master, stream, schema.id()));
        let (annotations, sessions) = (Vec::new(), Sessions::default());
        let (revoked, certificate, is_barred) = (None, None, false);
        let copies = Copies::default();
        Self {
            owner,
            schema,
            layout,
            keys,
            annotations,
            confirmed,
            revoked,
            certificate,
            is_barred,
            copies,
            sessions,
            tenure: Tenure::default(),
        }
    }

    /// Takes an annotation if it is the owner's and later than the last one. Takes the last
    /// one again if it waits to be confirmed, which also confirms that a copy of the device is
    /// gone.
    pub(super) fn annotate(
        &mut self,
        annotation: Verified<Annotation>,
        now: Timestamp,
    ) -> Result<(u32, Timestamp), AnnotationError> {
        let annotation = annotation.into_inner();
        if self.revoked.is_some() {
            return Err(AnnotationError::Revoked);
        }
        if annotation.owner != self.owner {
            return Err(AnnotationError::WrongOwner);
        }
        // A policy of another length was resolved against another schema.
        let attributes = annotation.policy.attributes.len();
        let schema = self.keys.as_ref().map(StreamKeys::schema);
        if Some(annotation.schema) != schema || attributes != self.schema.attributes.len() {
            return Err(AnnotationError::WrongSchema);
        }
        let version = annotation.version;
        let waits = self.confirmed.is_none() || self.copies.waits();
        let since = match self.annotations.last() {
            None => annotation.valid_from,
            Some(last) if last.annotation.version < version => now.max(last.since),
            Some(last) if waits && last.annotation == annotation => last.since,
            Some(last) => {
                return Err(AnnotationError::NotLater {
                    version,
                    current: last.annotation.version,
                });
            }
        };
        self.confirmed.get_or_insert(now);
        if self.annotations.last().is_none_or(|last| last.annotation.version < version) {
            self.annotations.push(DatedAnnotation { annotation, since });
        }
        Ok((version, since))
    }

    /// Forgets the oldest annotation if there are too many, and returns its version.
    pub(super) fn forget_oldest(&mut self) -> Option<u32> {
        let too_many = self.annotations.len() > MAX_CHOICES;
        too_many.then(|| self.annotations.remove(0).annotation.version)
    }

    /// The last annotation came with this certificate of its owner.
    pub(super) fn note_owner(&mut self, certificate: Digest, revoked: &BTreeSet<Digest>) {
        self.certificate = Some(certificate);
        self.note_revoked(revoked);
    }

    /// The authority has revoked these certificates.
    pub(super) fn note_revoked(&mut self, revoked: &BTreeSet<Digest>) {
        self.is_barred = self.certificate.is_some_and(|own| revoked.contains(&own));
    }

    /// The owner's last choice may be lost: nothing is released until the owner has chosen
    /// again.
    pub(super) fn suspend(&mut self) {
        self.confirmed = None;
    }

    /// The secret of one day's key; `None` once the keys are erased.
    pub(super) fn day_secret(&self, day: u64) -> Option<Secret<16>> {
        self.keys.as_ref().map(|keys| keys.day_secret(day))
    }

    /// Checks that no known session crosses an edge of these days. The keys on both sides
    /// would reveal the session's sums in between.
    pub(super) fn check_day_edges(&self, days: Days) -> Result<(), GrantError> {
        let crossed = [days.first, days.last + 1].into_iter().find(|day| {
            let edge = Timestamp(day.saturating_mul(DAY));
            self.sessions.crosses(edge, self.schema.tick)
        });
        crossed.map_or(Ok(()), |day| Err(GrantError::SessionCrosses { day }))
    }

    /// Wipes the keys.
    pub(super) fn forget_keys(&mut self) {
        self.keys = None;
    }

    /// Whether nothing is released before the owner has confirmed the annotation.
    pub(super) fn is_suspended(&self) -> bool {
        self.confirmed.is_none()
    }

    /// Whether the owner's choice is known for a whole window.
    pub(super) fn is_confirmed_for(&self, window: Window) -> bool {
        self.confirmed.is_some_and(|confirmed| confirmed <= window.start)
    }

    /// Applies a record of the ledger.
    pub(super) fn remember(&mut self, remembered: StreamRecord) {
        match remembered {
            StreamRecord::Annotation(choice, since, confirmed) => {
                self.remember_choice(*choice, since, confirmed);
            }
            StreamRecord::Revoked(at) => self.revoked = Some(at),
            StreamRecord::Session(session) => self.sessions.remember(session),
            StreamRecord::Copy(copy) => self.copies.remember(copy),
            StreamRecord::Tenure(tenure) => self.tenure = *tenure,
        }
    }

    fn remember_choice(
        &mut self,
        (annotation, certificate): (Verified<Annotation>, Digest),
        since: Timestamp,
        confirmed: Option<Timestamp>,
    ) {
        self.confirmed = match (self.confirmed, confirmed) {
            (Some(known), Some(also)) => Some(known.min(also)),
            (known, also) => known.or(also),
        };
        let last = self.current().map(|taken| taken.annotation.version);
        if last.is_none_or(|last| last < annotation.version) {
            self.certificate = Some(certificate);
        }
        self.annotations.push(DatedAnnotation { annotation: annotation.into_inner(), since });
        self.annotations.sort_by_key(|taken| taken.annotation.version);
    }

    /// All policies that the owner is known to have chosen.
    pub(super) fn policies(&self) -> impl Iterator<Item = &ResolvedPolicy> {
        self.annotations.iter().map(|taken| &taken.annotation.policy)
    }

    /// The annotation in force now.
    pub(super) fn current(&self) -> Option<&DatedAnnotation> {
        self.annotations.last()
    }

    /// Checks that the stream waits neither for its owner's confirmation nor because of the owner's
    /// changes.
    pub(super) fn check_waiting(
        &self,
        window: Window,
        is_restless: bool,
    ) -> Result<(), ExclusionError> {
        if !self.is_confirmed_for(window) {
            return Err(ExclusionError::Unconfirmed);
        }
        if is_restless { Err(ExclusionError::Restless) } else { Ok(()) }
    }

    /// When the owner changed the choice, or withdrew. The first choice changes nothing.
    pub(super) fn changes(&self) -> impl Iterator<Item = Timestamp> {
        self.annotations.iter().skip(1).map(|taken| taken.since).chain(self.revoked)
    }

    /// The annotations that a release of this window must comply with: those in force at
    /// any time during it and the one in force now. `None` if no annotation covered a part
    /// of the window.
    pub(super) fn in_force(&self, window: Window, now: Timestamp) -> Option<Vec<&Annotation>> {
        let covers = |taken: &DatedAnnotation| {
            taken.annotation.valid_from <= window.start && window.end <= taken.annotation.valid_to
        };
        let current = self.current().filter(|taken| now < taken.annotation.valid_to)?;
        if self.annotations.first().is_none_or(|first| first.since > window.start) {
            return None;
        }
        let mut in_force = vec![&current.annotation];
        for (place, taken) in self.annotations.iter().enumerate() {
            let until = self.annotations.get(place + 1).map(|next| next.since);
            let overlaps =
                taken.since < window.end && until.is_none_or(|until| window.start < until);
            if overlaps && !covers(taken) {
                return None;
            }
            if overlaps && taken.annotation.version != current.annotation.version {
                in_force.push(&taken.annotation);
            }
        }
        Some(in_force)
    }

    /// Ticks that may be missing from a window, by the strictest option that the owner
    /// chose for these attributes.
    pub(super) fn missing_ticks(&self, attributes: &[u16], window: Window, now: Timestamp) -> u64 {
        let options = self.options(attributes, window, now);
        options.iter().map(|option| u64::from(option.missing_ticks)).min().unwrap_or(0)
    }

    /// Over how many different sets of owners a schema's attributes may be summed on a day; see
    /// [`bound_of_day`].
    pub(super) fn sets_per_day(&self, of: (SchemaId, &[u16]), day: Window) -> Option<u32> {
        let choices = self.annotations.iter().map(|taken| (taken.since, &taken.annotation));
        bound_of_day(choices, self.revoked, of, day)
    }

    /// Whether the owner trusts a controller not to collude, in every option chosen for
    /// these attributes.
    pub(super) fn trusts(
        &self,
        attributes: &[u16],
        controller: &ControllerId,
        window: Window,
        now: Timestamp,
    ) -> bool {
        let options = self.options(attributes, window, now);
        !options.is_empty() && options.iter().all(|option| option.trusted.contains(controller))
    }

    /// The options that the owner chose for these attributes, in every annotation that a
    /// release of the window must comply with. A later annotation does not count for an earlier
    /// window.
    fn options(&self, attributes: &[u16], window: Window, now: Timestamp) -> Vec<&ResolvedOption> {
        let in_force = self.in_force(window, now).unwrap_or_default().into_iter();
        let chosen = in_force.flat_map(|annotation| {
            attributes.iter().filter_map(|attribute| annotation.policy.attribute(*attribute))
        });
        chosen.flat_map(|chosen| &chosen.alternatives).collect()
    }
}
