//! The service's counters, also as metrics.

use super::results::{KeptResults, Row, has_opened};
use alpheus_encrypted_stream::coordinator::Outcome;
use alpheus_encrypted_stream::error::{ExclusionError, ReleaseError};
use alpheus_encrypted_stream::tick::ingest::AuthenticityError;
use alpheus_node::service::metrics::Metrics;
use alpheus_policy::ids::ControllerId;
use alpheus_policy::plan::Plan;
use alpheus_policy::query::Accuracy;
use alpheus_time::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a window that opened has no result.
const UNDECODED: &str = "the result cannot be decoded";

/// What became of checks of proofs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProofCounts {
    /// Proofs that wait or are being checked.
    pub waiting: usize,
    /// Checks for which there was no room.
    pub refused: u64,
    /// Checks that broke off.
    pub broken: u64,
}

/// Counters of the service, for metrics and summaries.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Whether the command that runs the service lists windows without a result itself. Otherwise the log does.
    pub lists_windows: bool,
    /// Frames read from the log.
    pub frames: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Frames refused, by reason.
    pub refused_frames: BTreeMap<String, u64>,
    /// Messages of controllers that were refused, by reason.
    pub refused_messages: BTreeMap<String, u64>,
    /// Windows that opened.
    pub opened: u64,
    /// Windows that did not open, by reason.
    pub failed: BTreeMap<&'static str, u64>,
    /// Windows that were begun in a state that was lost: more controllers than may collude have
    /// settled them, or have given tokens for them. Whether they have a result is not known.
    pub of_lost_state: u64,
    /// Streams left out of windows, by reason.
    pub exclusions: BTreeMap<ExclusionError, u64>,
    /// Those of windows that opened. Consumers do not learn others: with the number of all streams
    /// they would learn how few had data.
    pub exclusions_of_opened: BTreeMap<ExclusionError, u64>,
    /// Complete streams without data, of windows that opened.
    pub silent: u64,
    /// Answers that windows lacked although their controllers had attended, presented or given tokens.
    pub ruined: u64,
    /// Members of bounded windows that were named: their messages did not hold, or they lied.
    pub faults: u64,
    /// Members of bounded windows that did not state their edges, which proves nothing of them.
    pub unstated: u64,
    /// Proofs of bounded windows that are checked apart.
    pub proofs: ProofCounts,
    /// Controllers that ruined windows in this way, and are asked last for a while.
    pub asked_last: BTreeSet<ControllerId>,
    /// Windows in progress.
    pub in_progress: usize,
    /// Jumps of the machine's clock.
    pub clock_jumps: u64,
    /// Streams that are waited for after an outage.
    pub absent_streams: usize,
    /// Hosts of controllers that are waited for after an outage.
    pub absent_hosts: usize,
    /// Hosts of controllers since the start, and those that were heard from lately.
    pub hosts: (usize, usize),
    /// Results in the log, and deleted ones.
    pub results: KeptResults,
    /// Event time that all partitions have reached.
    pub watermark: Option<Timestamp>,
}

impl Counters {
    /// Counts a window. It has a row, unless it may have had one in a state that was lost.
    pub(super) fn row(
        &mut self,
        plan: &Plan,
        outcome: &Outcome,
        asked: Option<&Accuracy>,
    ) -> Option<Row> {
        if outcome.is_of_lost_state() {
            let start = outcome.window.start.0 / 1000;
            tracing::info!(
                window = start,
                "the window began in a state that was lost: it has no row"
            );
            self.of_lost_state += 1;
            return None;
        }
        let row = Row::ended(plan, outcome, asked);
        self.window(outcome, has_opened(&row.status));
        Some(row)
    }

    fn window(&mut self, outcome: &Outcome, opened: bool) {
        let start = outcome.window.start.0 / 1000;
        for (reason, streams) in &outcome.excluded {
            *self.exclusions.entry(*reason).or_default() += u64::from(*streams);
            if opened {
                *self.exclusions_of_opened.entry(*reason).or_default() += u64::from(*streams);
            }
        }
        let excluded = reasons(&outcome.excluded);
        for (controller, why) in &outcome.faults {
            tracing::warn!(window = start, %controller, %why, "a controller is named: what it signed of a bounded window does not hold");
            self.faults += 1;
        }
        for (controller, why) in &outcome.silent {
            tracing::warn!(window = start, %controller, %why, "a bounded row failed, and a controller is left out for some windows, which proves nothing about it");
            self.unstated += 1;
        }
        let is_named = |id: &ControllerId| outcome.faults.iter().any(|(named, _)| named == id);
        let is_silent = |id: &ControllerId| outcome.silent.iter().any(|(silent, _)| silent == id);
        for controller in outcome.unopened.iter().filter(|id| !is_named(id) && !is_silent(id)) {
            tracing::warn!(window = start, %controller, "a controller stopped answering after its attendance, presence or token: the window is lost, and the controller is asked last for some windows");
            self.ruined += 1;
        }
        match &outcome.result {
            Ok(released) if opened => {
                let population = released.population;
                tracing::info!(window = start, population, excluded, "window opened");
                self.opened += 1;
                self.silent += u64::from(released.silent);
            }
            Ok(_) => *self.failed.entry(UNDECODED).or_default() += 1,
            Err(failure) => {
                if self.lists_windows {
                    tracing::info!(window = start, excluded, reason = %failure, "window did not open");
                } else {
                    // Its result is lost.
                    tracing::warn!(window = start, excluded, reason = %failure, "window did not open");
                }
                *self.failed.entry(failure.kind()).or_default() += 1;
            }
        }
    }
}

/// How many streams were left out, and why.
fn reasons(excluded: &BTreeMap<ExclusionError, u32>) -> String {
    let reason = |(reason, streams): (&ExclusionError, &u32)| format!("{streams}: {reason}");
    excluded.iter().map(reason).collect::<Vec<_>>().join(", ")
}

/// The counters after the last round. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Mutex<Counters>>);

impl Watch {
    /// Exports the counters as `alpheus_stream_…`.
    pub fn register(&self, metrics: &Metrics) {
        metrics.with(|registry| registry.register_collector(Box::new(self.clone())));
    }

    pub(super) fn show(&self, counters: &Counters) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(counters);
    }
}

impl Collector for Watch {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let encoder = &mut encoder;
        total(encoder, "stream_frames", "Frames read from the log", counters.frames)?;
        total(encoder, "stream_frame_bytes", "Bytes of frames read from the log", counters.bytes)?;
        total(encoder, "stream_windows_opened", "Windows with a result", counters.opened)?;
        gauge(
            encoder,
            "stream_windows_in_progress",
            "Windows in progress",
            counters.in_progress as f64,
        )?;
        let help = "Jumps of the machine's clock by more than devices' clocks may be off";
        total(encoder, "clock_jumps", help, counters.clock_jumps)?;
        let help = "Streams that are waited for after an outage";
        gauge(encoder, "stream_absent_streams", help, counters.absent_streams as f64)?;
        let help = "Hosts of controllers that are waited for after an outage";
        gauge(encoder, "stream_absent_hosts", help, counters.absent_hosts as f64)?;
        let help = "Hosts of controllers since the start";
        gauge(encoder, "stream_hosts", help, counters.hosts.0 as f64)?;
        let help = "Hosts of controllers that were heard from in the last ten seconds";
        gauge(encoder, "stream_hosts_active", help, counters.hosts.1 as f64)?;
        let watermark = counters.watermark.map_or(0.0, |reached| reached.0 as f64 / 1e6);
        let help = "Event time that every partition has reached, in seconds since the Unix epoch";
        gauge(encoder, "stream_watermark_seconds", help, watermark)?;
        let help = "Results in the log";
        gauge(encoder, "stream_results", help, counters.results.kept as f64)?;
        let help = "Results deleted for their age or their number";
        total(encoder, "stream_results_deleted", help, counters.results.deleted)?;
        let help = "Answers that did not follow controllers' attendances, presences or tokens: each loses a window";
        total(encoder, "stream_openings_missing", help, counters.ruined)?;
        bounded(encoder, &counters)?;
        let help = "Controllers that are asked last since they stopped answering part-way";
        gauge(encoder, "stream_controllers_asked_last", help, counters.asked_last.len() as f64)?;
        let help = "Complete streams without data, of windows with a result";
        total(encoder, "stream_silent", help, counters.silent)?;
        reasons_of(encoder, &counters)
    }
}

/// What is counted by reason.
fn reasons_of(encoder: &mut DescriptorEncoder<'_>, counters: &Counters) -> Result<(), fmt::Error> {
    let (kinds, help) =
        (ReleaseError::KINDS.into_iter().chain([UNDECODED]), "Windows without a result");
    by_reason(encoder, "stream_windows_failed", help, &known(kinds, &counters.failed))?;
    let help = "Frames that became dead letters";
    let forged = [AuthenticityError::BadMac, AuthenticityError::BadSignature];
    let forged = forged.map(|error| error.name().to_owned());
    by_reason(encoder, "stream_frames_refused", help, &known(forged, &counters.refused_frames))?;
    let help = "Messages of controllers that were refused";
    by_reason(encoder, "stream_messages_refused", help, &counters.refused_messages)?;
    let help = "Streams left out of windows";
    by_reason(encoder, "stream_exclusions", help, &known(ExclusionError::ALL, &counters.exclusions))
}

/// Counts by reason, with zeros for reasons that have not come up. An alert compares with what was there
/// before, so it would miss the first of a reason that had no count.
fn known<R: Ord + Clone>(
    reasons: impl IntoIterator<Item = R>,
    counts: &BTreeMap<R, u64>,
) -> BTreeMap<R, u64> {
    let mut all: BTreeMap<R, u64> = reasons.into_iter().map(|reason| (reason, 0)).collect();
    all.extend(counts.iter().map(|(reason, count)| (reason.clone(), *count)));
    all
}

/// What there is of bounded windows alone.
fn bounded(encoder: &mut DescriptorEncoder<'_>, counters: &Counters) -> Result<(), fmt::Error> {
    let help = "Members of bounded windows that were named: what they signed did not hold";
    total(encoder, "stream_bounded_faults", help, counters.faults)?;
    let help = "Members of failed bounded windows that did not state their edges, or whose edges cannot be kept, which proves nothing about them";
    total(encoder, "stream_bounded_silent", help, counters.unstated)?;
    let ProofCounts { waiting, refused, broken } = counters.proofs;
    let help = "Proofs of bounded windows that wait or are being checked";
    gauge(encoder, "stream_proofs_waiting", help, waiting as f64)?;
    let help = "Checks of proofs for which there was no room: each loses a window";
    total(encoder, "stream_proof_checks_refused", help, refused)?;
    let help = "Checks of proofs that crashed, which is a bug: each loses a window";
    total(encoder, "stream_proof_checks_broken", help, broken)
}

fn total(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> Result<(), fmt::Error> {
    let counter = ConstCounter::new(value);
    counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: f64,
) -> Result<(), fmt::Error> {
    let gauge = ConstGauge::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
}

fn by_reason(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: &BTreeMap<impl ToString, u64>,
) -> Result<(), fmt::Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    values.iter().try_for_each(|(reason, value)| {
        let label = [("reason", reason.to_string())];
        ConstCounter::new(*value).encode(family.encode_family(&label)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_bounded_influence::blame::LieError;
    use alpheus_encrypted_stream::coordinator::{
        MemberFaultError, UnstatedEdgesError, WindowResult,
    };
    use alpheus_encrypted_stream::error::WindowRefusalError;
    use alpheus_time::Window;

    fn ended(result: Result<WindowResult, ReleaseError>) -> Outcome {
        Outcome {
            window: Window { start: Timestamp(0), end: Timestamp(1) },
            result,
            excluded: BTreeMap::new(),
            unreported: None,
            refused: BTreeMap::new(),
            unopened: Vec::new(),
            opening_set: None,
            faults: Vec::new(),
            silent: Vec::new(),
        }
    }

    /// A consumer who sees how many streams were left out of a window that did not open could subtract
    /// them from all, and know how few had data.
    #[test]
    fn exclusions_of_windows_that_open_are_counted_by_themselves() {
        let mut counters = Counters::default();
        let excluded = || [(ExclusionError::Policy, 2)].into();
        let outcome = |result| Outcome { excluded: excluded(), ..ended(result) };
        let few = ReleaseError::PopulationTooSmall { counted: 3, needed: 10 };
        let opened = WindowResult {
            outputs: Vec::new(),
            sealed: None,
            population: 10,
            silent: 0,
            members: 1,
            left_out: 0,
            windows: 0,
            lost: 0,
            receipt: None,
            bounded: None,
        };
        counters.window(&outcome(Err(few)), false);
        assert_eq!(counters.exclusions_of_opened, BTreeMap::new());
        counters.window(&outcome(Ok(opened)), true);
        assert_eq!(counters.exclusions[&ExclusionError::Policy], 4);
        assert_eq!(counters.exclusions_of_opened[&ExclusionError::Policy], 2);
    }

    /// A member that is silent proves nothing, and an honest one may be. So it is counted by itself.
    #[test]
    fn silent_and_named_members_are_counted_apart() {
        let mut counters = Counters::default();
        let [named, silent, gone] = [1, 2, 3].map(|id| ControllerId([id; 32]));
        let lie = MemberFaultError::Lie(LieError::Unbalanced);
        let refused = UnstatedEdgesError::Refused(WindowRefusalError::KeysGone);
        let outcome = Outcome {
            unopened: vec![named, silent, gone],
            faults: vec![(named, lie)],
            silent: vec![(silent, UnstatedEdgesError::NoAnswer), (gone, refused)],
            ..ended(Err(ReleaseError::NotTheRow))
        };
        counters.window(&outcome, false);
        assert_eq!((counters.faults, counters.unstated, counters.ruined), (1, 2, 0));
    }

    #[test]
    fn counters_are_exported_by_reason() {
        let (metrics, watch) = (Metrics::new(), Watch::default());
        watch.register(&metrics);
        let proofs = ProofCounts { waiting: 6, refused: 2, broken: 1 };
        let mut counters = Counters {
            opened: 7,
            silent: 4,
            ruined: 3,
            faults: 5,
            unstated: 8,
            proofs,
            ..Counters::default()
        };
        counters.asked_last.insert(ControllerId([1; 32]));
        counters.exclusions.insert(ExclusionError::Policy, 2);
        counters.failed.insert("population below the minimum", 3);
        counters.watermark = Some(Timestamp(1_500_000));
        watch.show(&counters);
        let text = metrics.text();
        assert!(text.contains("alpheus_stream_windows_opened_total 7"), "{text}");
        assert!(text.contains("alpheus_stream_silent_total 4"), "{text}");
        assert!(text.contains("alpheus_stream_openings_missing_total 3"), "{text}");
        assert!(text.contains("alpheus_stream_bounded_faults_total 5"), "{text}");
        assert!(text.contains("alpheus_stream_bounded_silent_total 8"), "{text}");
        assert!(text.contains("alpheus_stream_proofs_waiting 6"), "{text}");
        assert!(text.contains("alpheus_stream_proof_checks_refused_total 2"), "{text}");
        assert!(text.contains("alpheus_stream_proof_checks_broken_total 1"), "{text}");
        assert!(text.contains("alpheus_stream_controllers_asked_last 1"), "{text}");
        let exclusion =
            format!("alpheus_stream_exclusions_total{{reason=\"{}\"}} 2", ExclusionError::Policy);
        assert!(text.contains(&exclusion), "{text}");
        let failed =
            "alpheus_stream_windows_failed_total{reason=\"population below the minimum\"} 3";
        assert!(text.contains(failed), "{text}");
        assert!(text.contains("alpheus_stream_watermark_seconds 1.5"), "{text}");
    }

    /// Alerts ask by how much a count has grown. One that begins at 1 has not grown.
    #[test]
    fn reasons_are_exported_before_they_come_up() {
        let (metrics, watch) = (Metrics::new(), Watch::default());
        watch.register(&metrics);
        let text = metrics.text();
        for series in [
            "windows_failed_total{reason=\"too few controllers answered\"}",
            "windows_failed_total{reason=\"the result cannot be decoded\"}",
            "exclusions_total{reason=\"its controller takes no part in this window\"}",
            "exclusions_total{reason=\"its owner's privacy budget is spent\"}",
            "frames_refused_total{reason=\"bad-mac\"}",
            "frames_refused_total{reason=\"bad-signature\"}",
        ] {
            assert!(text.contains(&format!("alpheus_stream_{series} 0\n")), "{series}: {text}");
        }
    }
}
