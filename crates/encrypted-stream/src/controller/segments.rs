//! The checks that what the service has of a stream's window is what the producer made.

use alpheus_policy::plan::{Plan, Release};
use alpheus_time::{Timestamp, Window};
use zeroize::Zeroizing;

use super::sessions::SessionChanges;
use super::stream_state::StreamState;
use crate::error::ExclusionError;
use crate::keys::{BorderClaim, BorderKind, StreamKeys};
use crate::messages::{Segment, Segments, SummonedStream};
use crate::tick::claim::{Claim, ClaimKind};
use crate::tick::parts::NeededBlocks;
use crate::tick::segment::{self, CheckedSegment, SegmentError};

/// Two times of a session between which a token opens the sum. Where devices sleep there are
/// several in a [`Stretch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeySpan {
    pub(super) session: u64,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

/// What the segments of a window show, once they are checked.
pub(super) struct ExaminedSegments {
    /// What the token covers.
    pub(super) spans: Vec<KeySpan>,
    /// Number of data events.
    pub(super) events: u64,
    /// Sessions that the ledger must note.
    pub(super) seen: SessionChanges,
    /// In a verified plan: the released words of the window's ciphertexts, as the device added
    /// them up. Otherwise nothing.
    pub(super) sum: Vec<u64>,
}

/// In a verified plan: the blocks of sums that it needs, and what it releases.
pub(super) type SumDemand<'a> = Option<(&'a NeededBlocks, &'a Release)>;

/// What follows from claims or borders, before check word and sessions are checked.
struct Tiling {
    stretches: Vec<Stretch>,
    spans: Vec<KeySpan>,
    events: u64,
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

impl StreamState {
    /// Checks that what the service has of a window is what the producer made: tiling,
    /// borders or claims, sums, check word and sessions, in this order. `wanted` is the plan's
    /// attributes, what it needs of sums, and whether no tick may be missing whatever policies
    /// tolerate. None may be either where members decide what a row says: a service that says that
    /// a session died would cut ticks before the next one's beginning.
    pub(super) fn examine(
        &mut self,
        summoned: &SummonedStream,
        window: Window,
        (attributes, wanted, whole): (&[u16], SumDemand<'_>, bool),
        now: Timestamp,
    ) -> Result<ExaminedSegments, ExclusionError> {
        let whole = whole || wanted.is_some();
        let tolerated = || if whole { 0 } else { self.missing_ticks(attributes, window, now) };
        let Tiling { stretches, spans, events } = match &summoned.segments {
            Segments::OfEvents(segments) if self.schema.frames.is_events() => {
                let stretches = self.check_tiling(segments, window, tolerated)?;
                self.check_borders(segments)?;
                let events = segments.iter().fold(0_u64, |n, s| n.saturating_add(s.events()));
                let spans = stretches.iter().map(|stretch| stretch.span()).collect();
                Tiling { stretches, spans, events }
            }
            Segments::OfTicks { claims, .. } if !self.schema.frames.is_events() => {
                if claims.iter().flatten().any(|claim| self.copies.contains(claim.session)) {
                    return Err(ExclusionError::Cloned);
                }
                self.check_claims(claims, window, (tolerated, wanted.is_none()))?
            }
            _ => return Err(ExclusionError::NotTiled),
        };
        if events > self.schema.capacity.events {
            return Err(ExclusionError::TooManyEvents);
        }
        let sum = match wanted {
            Some(wanted) => self.released_sum(&summoned.segments, wanted)?,
            None => Vec::new(),
        };
        // The last row is the check word alone.
        let check_sum = sum.last().copied().unwrap_or(summoned.check_sum);
        self.check_word(&spans, check_sum)?;
        let seen = self.sessions.admit(&stretches)?;
        Ok(ExaminedSegments { spans, events, seen, sum })
    }

    /// R·Σ C over a window, from the sums that the device stated in its claims, which are checked.
    fn released_sum(
        &self,
        segments: &Segments,
        (needed, release): (&NeededBlocks, &Release),
    ) -> Result<Vec<u64>, ExclusionError> {
        let Segments::OfTicks { claims, sums, .. } = segments else {
            return Err(ExclusionError::SumMismatch);
        };
        let anchor = self.schema.frames.anchor().ok_or(ExclusionError::SumMismatch)?;
        if claims.len() != sums.len() {
            return Err(ExclusionError::SumMismatch);
        }
        let mut released = vec![0; release.outputs()];
        for (claims, sums) in claims.iter().zip(sums) {
            let wanted = segment::claims_with_sums(claims, anchor);
            if wanted.len() != sums.len() {
                return Err(ExclusionError::SumMismatch);
            }
            for ((claim, at_start), part) in wanted.into_iter().zip(sums) {
                let checked = needed.check(part, &claim.root);
                let checked = checked.map_err(|_| ExclusionError::SumMismatch)?;
                match at_start {
                    true => checked.subtract_from(release, &mut released),
                    false => checked.add_to(release, &mut released),
                }
            }
        }
        Ok(released)
    }

    /// Two different claims of the device for one border prove that the device has a copy.
    /// Returns one of them.
    pub(super) fn copied_claim(&self, conflict: Option<&[Claim; 2]>) -> Option<Claim> {
        let keys = self.keys.as_ref()?;
        let [one, other] = conflict?;
        let same = one.session == other.session && one.to == other.to && one.tag != other.tag;
        let own = |claim| keys.open_claim(claim).is_ok();
        (same && own(one) && own(other)).then_some(*one)
    }

    /// The claims of each session are the device's and leave nothing out. The sessions are in
    /// order, no more ticks than allowed are missing between them, and the last ends the
    /// window. If it died before, the next one's opening may, but where members decide what rows
    /// say: a service that waits could cut ticks so that nobody lacks.
    fn check_claims(
        &self,
        sessions: &[Vec<Claim>],
        window: Window,
        (tolerated, may_end_early): (impl Fn() -> u64, bool),
    ) -> Result<Tiling, ExclusionError> {
        let keys = self.keys.as_ref().ok_or(ExclusionError::Revoked)?;
        let anchor = self.schema.frames.anchor().ok_or(ExclusionError::NotTiled)?;
        let tick = self.schema.tick.0;
        let (mut reached, mut missing) = (window.start, 0_u64);
        let mut tiling = Tiling { stretches: Vec::new(), spans: Vec::new(), events: 0 };
        for (place, claims) in sessions.iter().enumerate() {
            let is_last = place + 1 == sessions.len();
            if is_last
                && may_end_early
                && let Some(last) = tiling.stretches.last()
                && let [opening] = claims.as_slice()
                && opening.to >= window.end
            {
                missing =
                    missing.saturating_add(missing_at_end(keys, opening, last, window, tick)?);
                reached = window.end;
                break;
            }
            // A session that died ends at its last claim.
            let end = claims.last().filter(|_| !is_last).map_or(window.end, |last| last.to);
            let part = Window { start: window.start, end: end.min(window.end) };
            let checked = segment::check(keys, claims, part, anchor).map_err(excluded)?;
            let CheckedSegment { session, covers, opened, closed, events, spans } = checked;
            let gap = covers.start.0.checked_sub(reached.0).ok_or(ExclusionError::NotTiled)?;
            if gap % tick != 0 || (!opened && covers.start != window.start) {
                return Err(ExclusionError::NotTiled);
            }
            missing = missing.saturating_add(gap / tick);
            reached = covers.end;
            let (from, to) = (covers.start, covers.end);
            tiling.stretches.push(Stretch { session, from, to, opened, closed });
            let spans = spans.iter();
            tiling.spans.extend(spans.map(|s| KeySpan { session, from: s.start, to: s.end }));
            tiling.events = tiling.events.saturating_add(events);
        }
        if reached != window.end || sessions.is_empty() {
            return Err(ExclusionError::NotTiled);
        }
        if missing > 0 && missing > tolerated() {
            return Err(ExclusionError::MissingTicks);
        }
        Ok(tiling)
    }

    /// The segments are in order, with a border on every tick of each. No more ticks than
    /// allowed are missing between them, and the last segment ends the window.
    fn check_tiling(
        &self,
        segments: &[Segment],
        window: Window,
        tolerated: impl Fn() -> u64,
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
        if missing > 0 && missing > tolerated() {
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

    fn check_word(&mut self, spans: &[KeySpan], sum: u64) -> Result<(), ExclusionError> {
        let keys = self.keys.as_mut().ok_or(ExclusionError::Revoked)?;
        let position = self.layout.check_word();
        let mut opened = sum;
        for span in spans {
            let mut word =
                |t| keys.key_word(span.session, t, position).map_err(|_| ExclusionError::CheckWord);
            let (from, to) = (word(span.from)?, word(span.to)?);
            opened = opened.wrapping_add(from).wrapping_sub(to);
        }
        if opened == 0 { Ok(()) } else { Err(ExclusionError::CheckWord) }
    }

    /// In a bounded plan: what a stream releases of a window, in the clear, which is its sum under its keys.
    pub(super) fn opened(
        &mut self,
        plan: &Plan,
        spans: &[KeySpan],
        sum: &[u64],
    ) -> Result<Option<Zeroizing<Vec<u64>>>, ExclusionError> {
        if !plan.integrity.is_bounded() {
            return Ok(None);
        }
        let mut words = Zeroizing::new(sum.to_vec());
        let opens = self.add_keys(&plan.release, spans, &mut words);
        if opens { Ok(Some(words)) } else { Err(ExclusionError::Revoked) }
    }

    /// Adds `R·(K(from) − K(to))` of each span to `token`. Returns false if there is no
    /// such key, which [`StreamState::examine`] has ruled out, or if the keys are erased.
    pub(super) fn add_keys(
        &mut self,
        release: &Release,
        spans: &[KeySpan],
        token: &mut [u64],
    ) -> bool {
        let Some(keys) = self.keys.as_mut() else { return false };
        spans.iter().all(|span| {
            let KeySpan { session, from, to } = *span;
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

impl Stretch {
    /// All of it, where the service has every tick.
    fn span(&self) -> KeySpan {
        KeySpan { session: self.session, from: self.from, to: self.to }
    }
}

/// How many ticks are missing at the window's end. The opening of another session, after the end,
/// shows that the last one died.
fn missing_at_end(
    keys: &StreamKeys,
    opening: &Claim,
    last: &Stretch,
    window: Window,
    tick: u64,
) -> Result<u64, ExclusionError> {
    keys.open_claim(opening).map_err(|_| ExclusionError::ForgedBorder)?;
    let other = opening.kind == ClaimKind::Opening && opening.session != last.session;
    match window.end.0.checked_sub(last.to.0) {
        Some(gap) if other && gap > 0 && gap % tick == 0 => Ok(gap / tick),
        _ => Err(ExclusionError::NotTiled),
    }
}

/// Why a stream is left out whose claims do not check out.
fn excluded(error: SegmentError) -> ExclusionError {
    match error {
        SegmentError::Forged(_) => ExclusionError::ForgedBorder,
        _ => ExclusionError::NotTiled,
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
