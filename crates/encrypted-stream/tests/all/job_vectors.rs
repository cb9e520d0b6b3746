//! Messages between the service and the Flink job: known answers from an independent script,
//! which the job's Java code must match too (`vectors/jvm-job`).

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::known_answers::{array, bytes, cases, words};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_encrypted_stream::job::{
    DeviceNote, JobMessage, JobMessageError, JobReport, Join, JoinAck, Opening, PlanEnd, PlanView,
    Progress, SetDigest, Tally, TickSummary, Token, WindowSum,
};
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_policy::schema::Frames;
use alpheus_time::{Span, Timestamp};
use serde::Deserialize;
use std::fmt::Debug;

fn digest(words: &[String]) -> SetDigest {
    SetDigest(crate::known_answers::words(words).try_into().unwrap())
}

/// Checks both directions.
pub(super) fn same<M: JobMessage + PartialEq + Debug>(message: &M, encoded: &str) {
    assert_eq!(message.to_bytes(), bytes(encoded));
    assert_eq!(M::from_bytes(&bytes(encoded)).unwrap(), *message);
}

#[derive(Deserialize)]
struct View {
    plan: String,
    window: u64,
    grace: u64,
    from: u64,
    gaps: u32,
    rows: Vec<Vec<u16>>,
    #[serde(default)]
    stream: String,
    #[serde(default)]
    position: u32,
    encoded: String,
}

impl View {
    fn view(&self) -> PlanView {
        PlanView {
            plan: PlanId(array(&self.plan)),
            window: Span(self.window),
            grace: Span(self.grace),
            from: Timestamp(self.from),
            gaps: self.gaps,
            rows: self.rows.clone(),
        }
    }
}

#[derive(Deserialize)]
struct End {
    plan: String,
    encoded: String,
}

#[test]
fn plan_messages_match_the_script() {
    for case in cases::<View>("jvm-job/v1/plan_start.json") {
        same(&case.view(), &case.encoded);
    }
    for case in cases::<View>("jvm-job/v1/join.json") {
        let (stream, plan) = (StreamId(array(&case.stream)), case.view());
        same(&Join { stream, plan, position: case.position }, &case.encoded);
    }
    for case in cases::<End>("jvm-job/v1/plan_end.json") {
        same(&PlanEnd { plan: PlanId(array(&case.plan)) }, &case.encoded);
    }
}

#[derive(Deserialize)]
struct NamedStream {
    stream: String,
    certificate: String,
    key: String,
    encoded: String,
}

#[test]
fn devices_match_the_script() {
    for case in cases::<NamedStream>("jvm-job/v1/device.json") {
        let (stream, certificate) =
            (StreamId(array(&case.stream)), Digest(array(&case.certificate)));
        let key = VerifyingKey::from_bytes(array(&case.key)).unwrap();
        same(&DeviceNote { stream, certificate, key }, &case.encoded);
    }
}

#[derive(Deserialize)]
struct Set {
    plan: String,
    start: u64,
    #[serde(default)]
    streams: Vec<u32>,
    members: Vec<String>,
    stream_digest: Vec<String>,
    controllers: Vec<u32>,
    token_digest: Vec<String>,
    #[serde(default)]
    masked: bool,
    #[serde(default)]
    rows: u32,
    #[serde(default)]
    ciphertexts: Vec<String>,
    #[serde(default)]
    tokens: Vec<String>,
    encoded: String,
}

impl Set {
    /// The plan, the start, and the checked digests of the members.
    fn digests(&self) -> (PlanId, Timestamp, SetDigest, SetDigest) {
        let (plan, start) = (PlanId(array(&self.plan)), Timestamp(self.start));
        let members = self.members.iter().map(|member| StreamId(array(member)));
        let streams = SetDigest::of_streams(&plan, start, members);
        let tokens = SetDigest::of_controllers(&plan, start, &self.controllers);
        assert_eq!((streams, tokens), (digest(&self.stream_digest), digest(&self.token_digest)));
        (plan, start, streams, tokens)
    }
}

#[test]
fn opening_sets_match_the_script() {
    for case in cases::<Set>("jvm-job/v1/opening.json") {
        let (plan, start, stream_digest, token_digest) = case.digests();
        let (streams, controllers) = (case.streams.clone(), case.controllers.clone());
        let (masked, rows) = (case.masked, case.rows);
        let opening = Opening {
            plan,
            start,
            streams,
            stream_digest,
            controllers,
            token_digest,
            masked,
            rows,
        };
        same(&opening, &case.encoded);
    }
}

#[test]
fn window_sums_match_the_script() {
    for case in cases::<Set>("jvm-job/v1/window_sum.json") {
        let (plan, start, streams, controllers) = case.digests();
        let tally = |count: usize, digest| Tally { count: count as u64, digest };
        let sum = WindowSum {
            plan,
            start,
            streams: tally(case.members.len(), streams),
            controllers: tally(case.controllers.len(), controllers),
            ciphertexts: words(&case.ciphertexts),
            tokens: words(&case.tokens),
        };
        same(&sum, &case.encoded);
    }
}

#[derive(Deserialize)]
struct Answer {
    plan: String,
    start: u64,
    controller: u32,
    opens: bool,
    rows: Vec<String>,
    encoded: String,
}

#[test]
fn tokens_match_the_script() {
    for case in cases::<Answer>("jvm-job/v1/token.json") {
        let (plan, start) = (PlanId(array(&case.plan)), Timestamp(case.start));
        let (controller, opens, rows) = (case.controller, case.opens, words(&case.rows));
        same(&Token { plan, start, controller, opens, rows }, &case.encoded);
    }
}

#[derive(Deserialize)]
struct ReachedTime {
    task: u32,
    tasks: u32,
    time: u64,
    encoded: String,
}

#[derive(Deserialize)]
struct TakenUp {
    stream: String,
    plan: String,
    position: u32,
    encoded: String,
}

#[test]
fn progress_and_join_acks_match_the_script() {
    for case in cases::<ReachedTime>("jvm-job/v1/progress.json") {
        let time = Timestamp(case.time);
        let progress = Progress { task: case.task, tasks: case.tasks, time };
        same(&progress, &case.encoded);
        assert_eq!(
            JobReport::from_bytes(&bytes(&case.encoded), Frames::Events),
            Ok(JobReport::Progress(progress))
        );
    }
    for case in cases::<TakenUp>("jvm-job/v1/joined.json") {
        let joined = JoinAck {
            stream: StreamId(array(&case.stream)),
            plan: PlanId(array(&case.plan)),
            position: case.position,
        };
        same(&joined, &case.encoded);
        assert_eq!(
            JobReport::from_bytes(&bytes(&case.encoded), Frames::Events),
            Ok(JobReport::JoinAck(joined))
        );
    }
}

#[derive(Deserialize)]
struct Bad {
    message: String,
    encoded: String,
    error: String,
}

fn error<M: JobMessage>(bytes: &[u8]) -> Option<JobMessageError> {
    M::from_bytes(bytes).err()
}

#[test]
fn invalid_messages_are_rejected_with_a_specific_error() {
    for name in
        ["version", "kind", "truncated", "too_long", "reason", "spelling", "task", "trailing"]
    {
        for case in cases::<Bad>(&format!("jvm-job/v1/messages_bad_{name}.json")) {
            let bytes = bytes(&case.encoded);
            let error = match case.message.as_str() {
                "plan_end" => error::<PlanEnd>(&bytes),
                "opening" => error::<Opening>(&bytes),
                "token" => error::<Token>(&bytes),
                "summary" => JobReport::from_bytes(&bytes, Frames::Events).err(),
                "tick_summary" => error::<TickSummary>(&bytes),
                "device" => error::<DeviceNote>(&bytes),
                "progress" => JobReport::from_bytes(&bytes, Frames::Events).err(),
                "window_sum" => error::<WindowSum>(&bytes),
                other => panic!("unknown message {other}"),
            };
            let error = format!("{:?}", error.unwrap_or_else(|| panic!("{}", case.encoded)));
            assert_eq!(error.split('(').next(), Some(case.error.as_str()), "{}", case.encoded);
        }
    }
}
