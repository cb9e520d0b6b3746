//! A stream that a controller guards: keys, the owner's choices, and whether
//! what the service has of it is what the producer made.

use std::sync::Arc;

use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Verified;
use alpheus_policy::ids::{ControllerId, OwnerId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Release;
use alpheus_policy::policy::{ResolvedOption, ResolvedPolicy};
use alpheus_policy::schema::Schema;
use alpheus_policy::time::{Timestamp, Window};
use zeroize::Zeroizing;

use super::sessions::{Seen, Session, Sessions};
use crate::annotation::Annotation;
use crate::error::{AnnotationRefused, Exclusion, GrantRefused};
use crate::grant::Days;
use crate::keys::{BorderClaim, BorderKind, DAY, MasterSecret, StreamKeys};
use crate::messages::{Segment, SummonedStream};

/// A stream that is handed to a controller: what it shares with the producer.
pub struct HeldStream {
    /// The stream.
    pub stream: StreamId,
    /// Whose it is.
    pub owner: OwnerId,
    /// What its events hold.
    pub schema: Arc<Schema>,
    /// Where that stands.
    pub layout: Arc<Layout>,
    /// Its keys come from this; none once it is destroyed.
    pub master: Option<MasterSecret>,
}

/// An annotation and when the controller took it.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) annotation: Annotation,
    /// In force from then on; the first from when its owner says.
    pub(super) since: Timestamp,
}

/// A stretch of a session that a token covers.
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
pub(super) struct Held {
    pub(super) owner: OwnerId,
    pub(super) schema: Arc<Schema>,
    pub(super) layout: Arc<Layout>,
    /// None once they are erased, which comes with a revocation.
    keys: Option<StreamKeys>,
    annotations: Vec<Taken>,
    /// The owner is known to have chosen what the ledger says, for windows from
    /// then on; none after an untrusted restore, which may have lost a later choice.
    confirmed: Option<Timestamp>,
    /// Since when consent is withdrawn.
    pub(super) revoked: Option<Timestamp>,
    pub(super) sessions: Sessions,
}

/// What a ledger says of a stream.
pub(super) enum Remembered {
    /// An annotation, since when it is in force, and when it was handed in, if
    /// that was after the last untrusted restore.
    Annotation(Box<Verified<Annotation>>, Timestamp, Option<Timestamp>),
    /// Consent was withdrawn then.
    Revoked(Timestamp),
    /// A session was seen.
    Session(Session),
}

impl Remembered {
    /// The ledger is not the latest any more: see [`Held::suspend`].
    pub(super) fn suspend(&mut self) {
        if let Remembered::Annotation(_, _, confirmed) = self {
            *confirmed = None;
        }
    }
}

impl Remembered {
    /// What the owner chose, if it is a choice.
    pub(super) fn choice(&self) -> Option<&Annotation> {
        match self {
            Remembered::Annotation(annotation, ..) => Some(annotation),
            Remembered::Revoked(_) | Remembered::Session(_) => None,
        }
    }
}

impl Held {
    /// `confirmed` is none if a ledger that knew the stream may have been lost.
    pub(super) fn new(stream: HeldStream, confirmed: Option<Timestamp>) -> Self {
        let HeldStream { stream, owner, schema, layout, master } = stream;
        let keys = master.map(|master| StreamKeys::new(&master, stream, schema.id()));
        let (annotations, sessions) = (Vec::new(), Sessions::default());
        Self { owner, schema, layout, keys, annotations, confirmed, revoked: None, sessions }
    }

    /// Takes an annotation if it is the owner's and later than the last, or the
    /// last once more while that waits to be confirmed.
    pub(super) fn annotate(
        &mut self,
        annotation: Verified<Annotation>,
        now: Timestamp,
    ) -> Result<(u32, Timestamp), AnnotationRefused> {
        let annotation = annotation.into_inner();
        if self.revoked.is_some() {
            return Err(AnnotationRefused::Revoked);
        }
        if annotation.owner != self.owner {
            return Err(AnnotationRefused::WrongOwner);
        }
        // A policy of another length was resolved against another schema.
        let attributes = annotation.policy.attributes.len();
        let schema = self.keys.as_ref().map(StreamKeys::schema);
        if Some(annotation.schema) != schema || attributes != self.schema.attributes.len() {
            return Err(AnnotationRefused::WrongSchema);
        }
        let given = annotation.version;
        let waits = self.confirmed.is_none();
        let since = match self.annotations.last() {
            None => annotation.valid_from,
            Some(last) if last.annotation.version < given => now.max(last.since),
            Some(last) if waits && last.annotation == annotation => last.since,
            Some(last) => {
                return Err(AnnotationRefused::NotLater { given, known: last.annotation.version });
            }
        };
        self.confirmed.get_or_insert(now);
        if self.annotations.last().is_none_or(|last| last.annotation.version < given) {
            self.annotations.push(Taken { annotation, since });
        }
        Ok((given, since))
    }

    /// Whatever the owner chose last may be lost: nothing leaves until they have
    /// chosen again.
    pub(super) fn suspend(&mut self) {
        self.confirmed = None;
    }

    /// The secret of one day's key; none once the keys are erased.
    pub(super) fn day_secret(&self, day: u64) -> Option<Secret<16>> {
        self.keys.as_ref().map(|keys| keys.day_secret(day))
    }

    /// Whether no session is known to run on from these days into others: its sums
    /// between would be told by the keys on both sides.
    pub(super) fn parted_at(&self, days: Days) -> Result<(), GrantRefused> {
        let crossed = [days.first, days.last + 1].into_iter().find(|day| {
            let edge = Timestamp(day.saturating_mul(DAY));
            self.sessions.crosses(edge, self.schema.tick)
        });
        crossed.map_or(Ok(()), |day| Err(GrantRefused::SessionCrosses { day }))
    }

    /// Wipes the keys.
    pub(super) fn forget_keys(&mut self) {
        self.keys = None;
    }

    /// Whether nothing leaves before the owner has confirmed the choice.
    pub(super) fn is_suspended(&self) -> bool {
        self.confirmed.is_none()
    }

    /// Whether what the owner chose is known for a whole window.
    pub(super) fn is_confirmed_for(&self, window: Window) -> bool {
        self.confirmed.is_some_and(|confirmed| confirmed <= window.start)
    }

    /// Takes what a ledger kept.
    pub(super) fn remember(&mut self, remembered: Remembered) {
        match remembered {
            Remembered::Annotation(annotation, since, confirmed) => {
                self.remember_choice(*annotation, since, confirmed);
            }
            Remembered::Revoked(at) => self.revoked = Some(at),
            Remembered::Session(session) => self.sessions.remember(session),
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
        self.annotations.push(Taken { annotation: annotation.into_inner(), since });
        self.annotations.sort_by_key(|taken| taken.annotation.version);
    }

    /// All that the owner is known to have chosen.
    pub(super) fn policies(&self) -> impl Iterator<Item = &ResolvedPolicy> {
        self.annotations.iter().map(|taken| &taken.annotation.policy)
    }

    /// The annotation in force now.
    pub(super) fn current(&self) -> Option<&Taken> {
        self.annotations.last()
    }

    /// The annotations that a release of this window must comply with: those in
    /// force throughout it and the one in force now; none if no annotation
    /// covered a part of it.
    pub(super) fn in_force(&self, window: Window, now: Timestamp) -> Option<Vec<&Annotation>> {
        let covers = |taken: &Taken| {
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

    /// Ticks that may be missing from a window, by the strictest of the options
    /// that the owner chose for these attributes.
    fn missing_ticks(&self, attributes: &[u16], window: Window, now: Timestamp) -> u64 {
        let options = self.options(attributes, window, now);
        options.iter().map(|option| u64::from(option.missing_ticks)).min().unwrap_or(0)
    }

    /// Whether the owner trusts a controller not to collude, in every option
    /// chosen for these attributes.
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

    /// The options that the owner chose for these attributes, in every annotation
    /// that a release of the window must comply with: what is allowed later does
    /// not count for a window before.
    fn options(&self, attributes: &[u16], window: Window, now: Timestamp) -> Vec<&ResolvedOption> {
        let in_force = self.in_force(window, now).unwrap_or_default().into_iter();
        let chosen = in_force.flat_map(|annotation| {
            attributes.iter().filter_map(|attribute| annotation.policy.attribute(*attribute))
        });
        chosen.flat_map(|chosen| &chosen.alternatives).collect()
    }

    /// Checks that what the service has of a window is what the producer made:
    /// borders, tiling, sessions, check word, in this order. Says how many data
    /// events it holds and which sessions the ledger is to note.
    pub(super) fn examine(
        &mut self,
        summoned: &SummonedStream,
        window: Window,
        attributes: &[u16],
        now: Timestamp,
    ) -> Result<(Vec<Stretch>, u64, Seen), Exclusion> {
        let stretches = self.check_tiling(&summoned.segments, window, attributes, now)?;
        self.check_borders(&summoned.segments)?;
        let events = summoned.segments.iter().fold(0_u64, |n, s| n.saturating_add(s.events()));
        if events > self.schema.capacity.events {
            return Err(Exclusion::TooManyEvents);
        }
        self.check_word(&stretches, summoned.check_sum)?;
        let seen = self.sessions.admit(&stretches)?;
        Ok((stretches, events, seen))
    }

    /// The segments stand in order, a border on every tick of each, between
    /// them no more ticks than may be missing, and the last ends the window.
    fn check_tiling(
        &self,
        segments: &[Segment],
        window: Window,
        attributes: &[u16],
        now: Timestamp,
    ) -> Result<Vec<Stretch>, Exclusion> {
        let tick = self.schema.tick.0;
        let (mut reached, mut missing) = (window.start, 0_u64);
        let mut stretches = Vec::with_capacity(segments.len());
        for segment in segments {
            let gap = segment.from.0.checked_sub(reached.0).ok_or(Exclusion::NotTiled)?;
            let runs_on = segment.opening.is_none() && segment.from != window.start;
            if gap % tick != 0 || runs_on || segment.borders.is_empty() {
                return Err(Exclusion::NotTiled);
            }
            missing = missing.saturating_add(gap / tick);
            reached = segment.from;
            for border in &segment.borders {
                if reached.0.checked_add(tick) != Some(border.at.0) {
                    return Err(Exclusion::NotTiled);
                }
                reached = border.at;
            }
            stretches.push(stretch_of(segment)?);
        }
        if reached != window.end || segments.is_empty() {
            return Err(Exclusion::NotTiled);
        }
        if missing > 0 && missing > self.missing_ticks(attributes, window, now) {
            return Err(Exclusion::MissingTicks);
        }
        Ok(stretches)
    }

    fn check_borders(&self, segments: &[Segment]) -> Result<(), Exclusion> {
        let keys = self.keys.as_ref().ok_or(Exclusion::Revoked)?;
        for segment in segments {
            let session = segment.session;
            if let Some(tag) = &segment.opening {
                let kind = BorderKind::Opening;
                let claim = BorderClaim { kind, session, t: segment.from, count: 0 };
                keys.verify_border(&claim, tag).map_err(|_| Exclusion::ForgedBorder)?;
            }
            for border in &segment.borders {
                let kind = if border.closing { BorderKind::Closing } else { BorderKind::Interior };
                let claim = BorderClaim { kind, session, t: border.at, count: border.events };
                keys.verify_border(&claim, &border.tag).map_err(|_| Exclusion::ForgedBorder)?;
            }
        }
        Ok(())
    }

    fn check_word(&mut self, stretches: &[Stretch], sum: u64) -> Result<(), Exclusion> {
        let keys = self.keys.as_mut().ok_or(Exclusion::Revoked)?;
        let position = self.layout.check_word();
        let mut opened = sum;
        for stretch in stretches {
            let mut word =
                |t| keys.key_word(stretch.session, t, position).map_err(|_| Exclusion::CheckWord);
            let (from, to) = (word(stretch.from)?, word(stretch.to)?);
            opened = opened.wrapping_add(from).wrapping_sub(to);
        }
        if opened == 0 { Ok(()) } else { Err(Exclusion::CheckWord) }
    }

    /// Adds `R·(K(from) − K(to))` of each stretch to `token`; false if there is
    /// no such key, which [`Held::examine`] has ruled out, or none any more.
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

/// Its ends. Only the last border may close the session.
fn stretch_of(segment: &Segment) -> Result<Stretch, Exclusion> {
    let (last, before) = segment.borders.split_last().ok_or(Exclusion::NotTiled)?;
    if before.iter().any(|border| border.closing) {
        return Err(Exclusion::NotTiled);
    }
    Ok(Stretch {
        session: segment.session,
        from: segment.from,
        to: last.at,
        opened: segment.opening.is_some(),
        closed: last.closing,
    })
}
