//! For how long the certificate of a process is still valid: a metric, and a part of its health.

use super::health::{Finding, Health};
use super::metrics::Metrics;
use crate::clock;
use alpheus_time::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// Exports how many days the certificate in a PEM file is still valid, less than zero if it has
/// expired, as `alpheus_certificate_days_left`. The report on health says so from three weeks before
/// the end, and once it has expired the process is not ready. Without such a file there is neither.
pub fn watch_certificate(metrics: &Metrics, health: &Health, path: &Path) {
    let expiry = Expiry(path.to_owned());
    metrics.with(|registry| registry.register_collector(Box::new(expiry)));
    let path = path.to_owned();
    health.watch("certificate", move || finding(end_of(&path), clock::now()));
}

fn finding(end: Option<Duration>, now: Timestamp) -> Finding {
    match end.map(|end| days_left(end, now)) {
        Some(left) if left <= 0.0 => Finding::Broken(
            "the TLS certificate has expired: issue another, and restart the process".into(),
        ),
        Some(left) if left <= NOTED_DAYS => {
            Finding::Noteworthy(format!("days until the TLS certificate ends: {}", left.ceil()))
        }
        _ => Finding::Fine,
    }
}

/// For so many days before the end the report on health says when it is.
const NOTED_DAYS: f64 = 21.0;

#[derive(Debug)]
struct Expiry(PathBuf);

impl Collector for Expiry {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(end) = end_of(&self.0) else { return Ok(()) };
        let days = ConstGauge::new(days_left(end, clock::now()));
        let help = "Days for which this process's TLS certificate is still valid";
        let kind = days.metric_type();
        days.encode(encoder.encode_descriptor("certificate_days_left", help, None, kind)?)
    }
}

/// The end of the first certificate's validity.
fn end_of(path: &Path) -> Option<Duration> {
    let der = CertificateDer::from_pem_file(path).ok()?;
    let certificate = Certificate::from_der(&der).ok()?;
    Some(certificate.tbs_certificate().validity().not_after.to_unix_duration())
}

fn days_left(end: Duration, now: Timestamp) -> f64 {
    let now = Duration::from_micros(now.0);
    let days = |time: Duration| time.as_secs_f64() / 86_400.0;
    days(end) - days(now)
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
        assert!(report.ready && report.notes["certificate"].ends_with(": 1"), "{report:?}");
        let text = metrics.text();
        let line = text.lines().find(|line| line.starts_with("alpheus_certificate_days_left "));
        let days: f64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        assert!(days > 0.9 && days <= 1.0, "{days}");
        let (missing, health) = (Metrics::new(), Health::new());
        watch_certificate(&missing, &health, &pki.join("none"));
        assert!(health.report().ready);
        assert!(!missing.text().contains("certificate_days_left"));
        assert!(days_left(Duration::from_secs(86_400), Timestamp(2 * 86_400_000_000)) < 0.0);
    }

    #[test]
    fn a_process_whose_certificate_has_expired_is_not_ready() {
        let days = |days: u64| Timestamp(days * 86_400_000_000);
        let end = Some(Duration::from_secs(30 * 86_400));
        assert_eq!(finding(end, days(8)), Finding::Fine);
        assert!(
            matches!(finding(end, days(9)), Finding::Noteworthy(text) if text.ends_with(": 21"))
        );
        assert!(matches!(finding(end, days(30)), Finding::Broken(_)));
        assert_eq!(finding(None, days(30)), Finding::Fine);
    }
}
