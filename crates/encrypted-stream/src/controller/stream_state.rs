//! A stream that a controller guards: its keys, its owner's annotations, and the checks
//! that what the service has of it is what the producer made.

use std::sync::Arc;

use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Verified;
use alpheus_policy::ids::{ControllerId, OwnerId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Release;
use alpheus_policy::policy::{ResolvedOption, ResolvedPolicy};
use alpheus_policy::schema::Schema;
use alpheus_time::{Timestamp, Window};
use zeroize::Zeroizing;

use super::sessions::{Session, SessionChanges, Sessions};
use crate::annotation::Annotation;
use crate::error::{AnnotationError, ExclusionError, GrantError};
use crate::grant::Days;
use crate::keys::{BorderClaim, BorderKind, DAY, MasterSecret, StreamKeys};
use crate::messages::{Segment, SummonedStream};

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

/// An annotation and when the controller accepted it.
#[derive(Debug)]
pub(super) struct DatedAnnotation {
    pub(super) annotation: Annotation,
    /// In force from then on; the first one from the time that its owner states.
    pub(super) since: Timestamp,
}

/// A segment of a session that a token covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) session: u64,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// Whether the session opened at `from`.
    pub(super) opened: bool,
    /// Whether it closed at `to`.
    pub(super) closed: bool,
}

/// A stream with its keys.
pub(super) struct StreamState {
    pub(super) owner: OwnerId,
    pub(super) schema: Arc<Schema>,
    pub(super) layout: Arc<Layout>,
    /// `None` once they are erased, which implies a revocation.
    keys: Option<StreamKeys>,
    annotations: Vec<DatedAnnotation>,
    /// The owner is known to have chosen what the ledger states, for windows from this time
    /// on. `None` after an untrusted restore, which may have lost a later choice.
    confirmed: Option<Timestamp>,
    /// When consent was withdrawn.
    pub(super) revoked: Option<Timestamp>,
    pub(super) sessions: Sessions,
}

/// A ledger record about a stream.
pub(super) enum StreamRecord {
    /// An annotation, when it came into force, and when it was submitted if that was after
    /// the last untrusted restore.
    Annotation(Box<Verified<Annotation>>, Timestamp, Option<Timestamp>),
    /// When consent was withdrawn.
    Revoked(Timestamp),
    /// A known session.
    Session(Session),
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
            StreamRecord::Annotation(annotation, ..) => Some(annotation),
            StreamRecord::Revoked(_) | StreamRecord::Session(_) => None,
        }
    }
}

impl StreamState {
    /// `confirmed` is `None` if a ledger that knew the stream may have been lost.
    pub(super) fn new(stream: HeldStream, confirmed: Option<Timestamp>) -> Self {
        let HeldStream { stream, owner, schema, layout, master } = stream;
        let keys = master.map(|master| StreamKeys::new(&master, stream, schema.id()));
        let (annotations, sessions) = (Vec::new(), Sessions::default());
        Self { owner, schema, layout, keys, annotations, confirmed, revoked: None, sessions }
    }

    /// Takes an annotation if it is the owner's and later than the last one. Takes the last
    /// one again if it waits to be confirmed.
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
        let waits = self.confirmed.is_none();
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
            StreamRecord::Annotation(annotation, since, confirmed) => {
                self.remember_choice(*annotation, since, confirmed);
            }
            StreamRecord::Revoked(at) => self.revoked = Some(at),
            StreamRecord::Session(session) => self.sessions.remember(session),
        }
    }

    fn remember_choice(
        &mut self,
        annotation: Verified<Annotation>,
        since: Timestamp,
        confirmed: Option<Timestamp>,
    ) {
        self.confirmed = match (self.confirmed, confirmed) {
            (Some(known), Some(also)) => Some(known.min(also)),
            (known, also) => known.or(also),
        };
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
    fn missing_ticks(&self, attributes: &[u16], window: Window, now: Timestamp) -> u64 {
        let options = self.options(attributes, window, now);
        options.iter().map(|option| u64::from(option.missing_ticks)).min().unwrap_or(0)
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
    /// release of the window must comply with. What a later annotation allows does not
    /// count for an earlier window.
    fn options(&self, attributes: &[u16], window: Window, now: Timestamp) -> Vec<&ResolvedOption> {
        let in_force = self.in_force(window, now).unwrap_or_default().into_iter();
        let chosen = in_force.flat_map(|annotation| {
            attributes.iter().filter_map(|attribute| annotation.policy.attribute(*attribute))
        });
        chosen.flat_map(|chosen| &chosen.alternatives).collect()
    }

    /// Checks that what the service has of a window is what the producer made: borders,
    /// tiling, sessions and check word, in this order. Returns the segments, the number of
    /// data events, and the sessions that the ledger must note.
    pub(super) fn examine(
        &mut self,
        summoned: &SummonedStream,
        window: Window,
        attributes: &[u16],
        now: Timestamp,
    ) -> Result<(Vec<Stretch>, u64, SessionChanges), ExclusionError> {
        let stretches = self.check_tiling(&summoned.segments, window, attributes, now)?;
        self.check_borders(&summoned.segments)?;
        let events = summoned.segments.iter().fold(0_u64, |n, s| n.saturating_add(s.events()));
        if events > self.schema.capacity.events {
            return Err(ExclusionError::TooManyEvents);
        }
        self.check_word(&stretches, summoned.check_sum)?;
        let seen = self.sessions.admit(&stretches)?;
        Ok((stretches, events, seen))
    }

    /// The segments are in order, with a border on every tick of each. No more ticks than
    /// allowed are missing between them, and the last segment ends the window.
    fn check_tiling(
        &self,
        segments: &[Segment],
        window: Window,
        attributes: &[u16],
        now: Timestamp,
    ) -> Result<Vec<Stretch>, ExclusionError> {
        let tick = self.schema.tick.0;
        let (mut reached, mut missing) = (window.start, 0_u64);
        let mut stretches = Vec::with_capacity(segments.len());
        for segment in segments {
            let gap = segment.from.0.checked_sub(reached.0).ok_or(ExclusionError::NotTiled)?;
            let runs_on = segment.opening.is_none() && segment.from != window.start;
            if gap % tick != 0 || runs_on || segment.borders.is_empty() {
                return Err(ExclusionError::NotTiled);
            }
            missing = missing.saturating_add(gap / tick);
            reached = segment.from;
            for border in &segment.borders {
                if reached.0.checked_add(tick) != Some(border.at.0) {
                    return Err(ExclusionError::NotTiled);
                }
                reached = border.at;
            }
            stretches.push(stretch_of(segment)?);
        }
        if reached != window.end || segments.is_empty() {
            return Err(ExclusionError::NotTiled);
        }
        if missing > 0 && missing > self.missing_ticks(attributes, window, now) {
            return Err(ExclusionError::MissingTicks);
        }
        Ok(stretches)
    }

    fn check_borders(&self, segments: &[Segment]) -> Result<(), ExclusionError> {
        let keys = self.keys.as_ref().ok_or(ExclusionError::Revoked)?;
        for segment in segments {
            let session = segment.session;
            if let Some(tag) = &segment.opening {
                let kind = BorderKind::Opening;
                let claim = BorderClaim { kind, session, t: segment.from, count: 0 };
                keys.verify_border(&claim, tag).map_err(|_| ExclusionError::ForgedBorder)?;
            }
            for border in &segment.borders {
                let kind = if border.closing { BorderKind::Closing } else { BorderKind::Interior };
                let claim = BorderClaim { kind, session, t: border.at, count: border.events };
                keys.verify_border(&claim, &border.tag)
                    .map_err(|_| ExclusionError::ForgedBorder)?;
            }
        }
        Ok(())
    }

    fn check_word(&mut self, stretches: &[Stretch], sum: u64) -> Result<(), ExclusionError> {
        let keys = self.keys.as_mut().ok_or(ExclusionError::Revoked)?;
        let position = self.layout.check_word();
        let mut opened = sum;
        for stretch in stretches {
            let mut word = |t| {
                keys.key_word(stretch.session, t, position).map_err(|_| ExclusionError::CheckWord)
            };
            let (from, to) = (word(stretch.from)?, word(stretch.to)?);
            opened = opened.wrapping_add(from).wrapping_sub(to);
        }
        if opened == 0 { Ok(()) } else { Err(ExclusionError::CheckWord) }
    }

    /// Adds `R·(K(from) − K(to))` of each segment to `token`. Returns false if there is no
    /// such key, which [`StreamState::examine`] has ruled out, or if the keys are erased.
    pub(super) fn add_keys(
        &mut self,
        release: &Release,
        stretches: &[Stretch],
        token: &mut [u64],
    ) -> bool {
        let Some(keys) = self.keys.as_mut() else { return false };
        stretches.iter().all(|stretch| {
            let Stretch { session, from, to, .. } = *stretch;
            let Ok(sum) = keys.key_sum(release, session, from, to) else { return false };
            let sum = Zeroizing::new(sum);
            token
                .iter_mut()
                .zip(sum.iter())
                .for_each(|(word, key)| *word = word.wrapping_add(*key));
            true
        })
    }
}

/// The ends of a segment. Only its last border may close the session.
fn stretch_of(segment: &Segment) -> Result<Stretch, ExclusionError> {
    let (last, before) = segment.borders.split_last().ok_or(ExclusionError::NotTiled)?;
    if before.iter().any(|border| border.closing) {
        return Err(ExclusionError::NotTiled);
    }
    Ok(Stretch {
        session: segment.session,
        from: segment.from,
        to: last.at,
        opened: segment.opening.is_some(),
        closed: last.closing,
    })
}
