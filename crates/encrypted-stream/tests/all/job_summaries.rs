//! Summaries of the Flink job: known answers from an independent script (`vectors/jvm-job`).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::job_vectors::same;
use crate::known_answers::{array, bytes, cases, word};
use alpheus_crypto::mac::Tag;
use alpheus_encrypted_stream::job::{
    JobMessage, JobMessageError, JobReport, Summary, TickSegments, TickSummary,
};
use alpheus_encrypted_stream::messages::{Segment, SegmentBorder};
use alpheus_encrypted_stream::tick::claim::{Claim, ClaimKind, RootPrefix};
use alpheus_encrypted_stream::transformer::IncompleteError;
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_policy::schema::Frames;
use alpheus_time::{Span, Timestamp};
use serde::Deserialize;

const TICKS: Frames = Frames::Ticks { anchor: Span::seconds(60) };

#[derive(Deserialize)]
struct Stretches {
    stream: String,
    plan: String,
    start: u64,
    position: u32,
    check_sum: String,
    why: Option<String>,
    segments: Vec<Stretch>,
    encoded: String,
}

#[derive(Deserialize)]
struct Stretch {
    session: String,
    from: u64,
    opening: Option<String>,
    borders: Vec<Border>,
}

#[derive(Deserialize)]
struct Border {
    at: u64,
    closing: bool,
    events: u64,
    tag: String,
}

impl Stretch {
    fn segment(&self) -> Segment {
        let border = |border: &Border| SegmentBorder {
            at: Timestamp(border.at),
            closing: border.closing,
            events: border.events,
            tag: Tag(array(&border.tag)),
        };
        Segment {
            session: word(&self.session),
            from: Timestamp(self.from),
            opening: self.opening.as_ref().map(|tag| Tag(array(tag))),
            borders: self.borders.iter().map(border).collect(),
        }
    }
}

/// The reason with this name.
fn reason(name: &str) -> IncompleteError {
    use IncompleteError::{
        BeforePlan, BrokenChain, Duplicate, Gap, MissingBorder, Offline, OverCapacity, SessionDied,
        WrongLength,
    };
    let all = [
        Gap,
        Duplicate,
        BrokenChain,
        MissingBorder,
        SessionDied,
        Offline,
        OverCapacity,
        WrongLength,
        BeforePlan,
    ];
    all.into_iter().find(|why| why.name() == name).unwrap()
}

#[test]
fn summaries_match_the_script() {
    for case in cases::<Stretches>("jvm-job/v1/summary.json") {
        let segments = case.segments.iter().map(Stretch::segment).collect();
        let judgement = case.why.as_deref().map_or(Ok(segments), |why| Err(reason(why)));
        let summary: Summary = Summary {
            stream: StreamId(array(&case.stream)),
            plan: PlanId(array(&case.plan)),
            start: Timestamp(case.start),
            position: case.position,
            check_sum: word(&case.check_sum),
            judgement,
        };
        same(&summary, &case.encoded);
        let encoded = bytes(&case.encoded);
        assert_eq!(
            JobReport::from_bytes(&encoded, Frames::Events),
            Ok(JobReport::Summary(summary.for_summons()))
        );
        assert_eq!(JobReport::from_bytes(&encoded, TICKS), Err(JobMessageError::Kind(6)));
    }
}

#[derive(Deserialize)]
struct OfTicks {
    stream: String,
    plan: String,
    start: u64,
    position: u32,
    check_sum: String,
    why: Option<String>,
    claims: Vec<Vec<StatedSummary>>,
    conflict: Vec<StatedSummary>,
    encoded: String,
}

#[derive(Deserialize)]
struct StatedSummary {
    kind: String,
    session: String,
    from: u64,
    to: u64,
    masked_count: String,
    root: String,
    tag: String,
}

impl StatedSummary {
    fn claim(&self) -> Claim {
        let kind = match self.kind.as_str() {
            "opening" => ClaimKind::Opening,
            "tick" => ClaimKind::Tick,
            "gap" => ClaimKind::Gap,
            "closing_tick" => ClaimKind::ClosingTick,
            "closing_gap" => ClaimKind::ClosingGap,
            other => panic!("unknown kind {other}"),
        };
        Claim {
            kind,
            session: word(&self.session),
            from: Timestamp(self.from),
            to: Timestamp(self.to),
            masked_count: word(&self.masked_count),
            root: RootPrefix(array(&self.root)),
            tag: Tag(array(&self.tag)),
        }
    }
}

#[test]
fn summaries_of_ticks_match_the_script() {
    for case in cases::<OfTicks>("jvm-job/v1/tick_summary.json") {
        let of = |claims: &Vec<StatedSummary>| {
            claims.iter().map(StatedSummary::claim).collect::<Vec<_>>()
        };
        let conflict: Option<[Claim; 2]> = of(&case.conflict).try_into().ok();
        let claims = case.claims.iter().map(of).collect();
        let segments = TickSegments { claims, conflict: conflict.map(Box::new) };
        let judgement = case.why.as_deref().map_or(Ok(segments), |why| Err(reason(why)));
        let summary = TickSummary {
            stream: StreamId(array(&case.stream)),
            plan: PlanId(array(&case.plan)),
            start: Timestamp(case.start),
            position: case.position,
            check_sum: word(&case.check_sum),
            judgement,
        };
        same(&summary, &case.encoded);
        let encoded = bytes(&case.encoded);
        let report = JobReport::Summary(summary.for_summons());
        assert_eq!(JobReport::from_bytes(&encoded, TICKS), Ok(report));
        let other = JobReport::from_bytes(&encoded, Frames::Events);
        assert_eq!(other, Err(JobMessageError::Kind(14)));
    }
}

#[derive(Deserialize)]
struct BadBytes {
    encoded: String,
    error: String,
}

#[test]
fn invalid_summaries_of_ticks_are_rejected_with_a_specific_error() {
    for case in cases::<BadBytes>("jvm-job/v1/tick_summary_bad_bytes.json") {
        let error = TickSummary::from_bytes(&bytes(&case.encoded)).unwrap_err();
        let name = format!("{error:?}");
        assert_eq!(name.split('(').next(), Some(case.error.as_str()), "{}", case.encoded);
    }
}
