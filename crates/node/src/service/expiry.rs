//! For how long the certificate of a process is still valid: a metric, and a part of its health. It is
//! the certificate in use, whatever the file holds by now.

use super::health::{Finding, Health};
use super::metrics::Metrics;
use super::reload::{InUse, in_use_of};
use crate::clock;
use alpheus_time::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// Exports how many days the certificate in a PEM file is still valid, less than zero if it has
/// expired, as `alpheus_certificate_days_left`; how many it is valid in all, as
/// `alpheus_certificate_days_valid`; and whether its files changed to something that cannot
/// be used, as `alpheus_certificate_reload_failed`. The report on health says so, and from three weeks
/// before the end when it is, unless it is never valid for as long; once it has expired the process is not ready. Without such a file there
/// is none of it.
pub fn watch_certificate(metrics: &Metrics, health: &Health, path: &Path) {
    let expiry = Expiry(path.to_owned());
    metrics.with(|registry| registry.register_collector(Box::new(expiry)));
    let path = path.to_owned();
    health.watch("certificate", move || finding(in_use_of(&path), clock::now()));
}

fn finding(known: InUse, now: Timestamp) -> Finding {
    let unused = "the TLS files cannot be used, and the previous ones stay in use: see the log";
    let nearness = known.validity.map(|validity| {
        let (left, all) = days_of(validity, now);
        (Stage::of(left, all), left)
    });
    match (nearness, known.failed) {
        (Some((Stage::Over, _)), failed) => {
            let expired = "the TLS certificate has expired: `alpheus ca renew` extends it";
            let why = if failed { format!("{expired}; {unused}") } else { expired.into() };
            Finding::Broken(why)
        }
        (_, true) => Finding::Noteworthy(unused.into()),
        (Some((Stage::Noted | Stage::Urgent, left)), _) => {
            Finding::Noteworthy(format!("days until the TLS certificate ends: {}", left.ceil()))
        }
        _ => Finding::Fine,
    }
}

/// For so many days before the end the report on health says when it is, and the log says it once.
const NOTED_DAYS: f64 = 21.0;
/// So many days before the end the log says it once more.
const URGENT_DAYS: f64 = 7.0;

/// Seconds in a day.
const DAY: f64 = 86_400.0;

/// How near the end of a certificate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Far,
    Noted,
    Urgent,
    Over,
}

impl Stage {
    /// Of a certificate that is valid for `all` days, of which so many are `left`. One that is never
    /// valid for longer than a stage begins is not near its end for that alone.
    fn of(left: f64, all: f64) -> Stage {
        let within = |days: f64| left <= days && all > days;
        match () {
            () if left <= 0.0 => Stage::Over,
            () if within(URGENT_DAYS) => Stage::Urgent,
            () if within(NOTED_DAYS) => Stage::Noted,
            () => Stage::Far,
        }
    }
}

/// When a certificate's validity starts, and when it ends.
pub(crate) type Validity = (Duration, Duration);

/// What the log has reported for each file: the end of the certificate, and how near it was.
pub(super) type ReportedExpiries = BTreeMap<PathBuf, (Duration, Stage)>;

/// Warns once 21 days and once 7 days before the end of the certificate that was read from a file, and
/// when it is over.
pub(super) fn warn(file: &Path, validity: Option<Validity>, warned: &mut ReportedExpiries) {
    let Some(validity) = validity else { return };
    let (days, all) = days_of(validity, clock::now());
    let news = news(file, (validity.1, Stage::of(days, all)), warned);
    let (file, days_left) = (file.display(), days.ceil());
    match news {
        Some(Stage::Over) => {
            tracing::error!(%file, "the TLS certificate has expired: `alpheus ca renew` extends it");
        }
        Some(Stage::Urgent | Stage::Noted) => {
            tracing::warn!(%file, days_left, "the TLS certificate ends soon: `alpheus ca renew` extends it");
        }
        Some(Stage::Far) | None => {}
    }
}

/// The stage, if it is later than the one reported for the same certificate.
fn news(
    file: &Path,
    (end, stage): (Duration, Stage),
    warned: &mut ReportedExpiries,
) -> Option<Stage> {
    let last = warned.insert(file.to_owned(), (end, stage));
    let same = last.filter(|(known, _)| *known == end).map(|(_, stage)| stage);
    (same.is_none_or(|last| last < stage) && stage > Stage::Far).then_some(stage)
}

#[derive(Debug)]
struct Expiry(PathBuf);

impl Collector for Expiry {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let known = in_use_of(&self.0);
        let Some(validity) = known.validity else { return Ok(()) };
        let failed = ConstGauge::new(i64::from(known.failed));
        let help = "Whether changed TLS files cannot be used";
        let kind = failed.metric_type();
        let name = "certificate_reload_failed";
        failed.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
        let (left, all) = days_of(validity, clock::now());
        let left = ConstGauge::new(left);
        let help = "Days for which this process's TLS certificate is still valid";
        let kind = left.metric_type();
        left.encode(encoder.encode_descriptor("certificate_days_left", help, None, kind)?)?;
        let all = ConstGauge::new(all);
        let help = "Days from the beginning of this process's TLS certificate to its end";
        let kind = all.metric_type();
        all.encode(encoder.encode_descriptor("certificate_days_valid", help, None, kind)?)
    }
}

/// Seconds until the first certificate in a PEM file is over, less than zero if it is; none without one.
#[must_use]
pub fn seconds_left(path: &Path) -> Option<i64> {
    let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let end = seconds(validity_of(path)?.1);
    Some(end - seconds(Duration::from_micros(clock::now().0)))
}

/// When the first certificate's validity starts, and when it ends.
pub(crate) fn validity_of(path: &Path) -> Option<Validity> {
    let der = CertificateDer::from_pem_file(path).ok()?;
    let certificate = Certificate::from_der(&der).ok()?;
    let validity = certificate.tbs_certificate().validity();
    Some((validity.not_before.to_unix_duration(), validity.not_after.to_unix_duration()))
}

/// For how many days a certificate is still valid, and for how many it is in all.
fn days_of((start, end): Validity, now: Timestamp) -> (f64, f64) {
    let days = |time: Duration| time.as_secs_f64() / DAY;
    (days(end) - days(Duration::from_micros(now.0)), days(end) - days(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::role::Role;
    use crate::pki;

    #[test]
    fn the_days_left_are_exported() {
        let folder = tempfile::tempdir().unwrap();
        let pki = folder.path().join("pki");
        pki::make(&pki, &[(Role::Server, "service")]).unwrap();
        let (metrics, health) = (Metrics::new(), Health::new());
        watch_certificate(&metrics, &health, &pki.join("service/tls.pem"));
        let report = health.report();
        assert!(report.ready && !report.notes.contains_key("certificate"), "{report:?}");
        let text = metrics.text();
        let exported = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.rsplit(' ').next().unwrap().parse().unwrap()
        };
        let days = exported("alpheus_certificate_days_left ");
        assert!(days > 0.9 && days <= 1.0, "{days}");
        assert!(exported("alpheus_certificate_days_valid ") >= 1.0);
        let (missing, health) = (Metrics::new(), Health::new());
        watch_certificate(&missing, &health, &pki.join("none"));
        assert!(health.report().ready);
        assert!(!missing.text().contains("certificate_days_left"));
        let day = Duration::from_secs(86_400);
        assert_eq!(days_of((Duration::ZERO, day), Timestamp(2 * 86_400_000_000)), (-1.0, 1.0));
    }

    #[test]
    fn the_log_warns_once_at_each_stage_and_again_of_another_certificate() {
        let (mut warned, file, end) =
            (BTreeMap::new(), Path::new("tls.pem"), Duration::from_secs(9));
        let mut hear = |days, end| news(file, (end, Stage::of(days, 90.0)), &mut warned);
        for (days, expected) in [
            (21.5, None),
            (21.0, Some(Stage::Noted)),
            (20.0, None),
            (7.0, Some(Stage::Urgent)),
            (6.0, None),
            (0.0, Some(Stage::Over)),
            (-1.0, None),
        ] {
            assert_eq!(hear(days, end), expected, "{days}");
        }
        let renewed = Duration::from_secs(10);
        assert_eq!(hear(90.0, renewed), None);
        assert_eq!(hear(20.0, renewed), Some(Stage::Noted));
        assert_eq!(hear(20.0, Duration::from_secs(11)), Some(Stage::Noted));
    }

    #[test]
    fn a_certificate_of_days_or_hours_is_not_near_its_end_all_the_time() {
        assert_eq!(Stage::of(0.5, 1.0), Stage::Far);
        assert_eq!(Stage::of(6.0, 14.0), Stage::Urgent);
        assert_eq!(Stage::of(13.0, 14.0), Stage::Far);
        assert_eq!(Stage::of(0.0, 1.0), Stage::Over);
    }

    #[test]
    fn a_process_whose_certificate_has_expired_is_not_ready() {
        let days = |days: u64| Timestamp(days * 86_400_000_000);
        let validity = Some((Duration::ZERO, Duration::from_secs(30 * 86_400)));
        let (good, failed) = (InUse { validity, failed: false }, InUse { validity, failed: true });
        assert_eq!(finding(good, days(8)), Finding::Fine);
        assert!(
            matches!(finding(good, days(9)), Finding::Noteworthy(text) if text.ends_with(": 21"))
        );
        assert!(matches!(finding(good, days(30)), Finding::Broken(_)));
        let none = InUse { validity: None, failed: false };
        assert_eq!(finding(none, days(30)), Finding::Fine);
        let says = |found, text: &str| match found {
            Finding::Noteworthy(said) | Finding::Broken(said) => said.contains(text),
            Finding::Fine => false,
        };
        assert!(says(finding(failed, days(8)), "stay in use"));
        assert!(says(finding(failed, days(30)), "has expired"));
    }
}
