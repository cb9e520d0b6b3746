//! What the process itself takes: processor time, memory, descriptors. From `/proc`, so on Linux alone.

use super::metrics::Metrics;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::process::{Resource, getrlimit};
use std::fmt;

/// Clock ticks of the kernel in a second, as Linux shows them to programs on every architecture.
const TICKS: f64 = 100.0;

/// Exports `alpheus_process_cpu_seconds_total`, `…_resident_bytes`, `…_open_files` and `…_open_files_limit`.
/// Not for a process whose load is secret.
pub fn register(metrics: &Metrics) {
    metrics.with(|registry| registry.register_collector(Box::new(Process)));
}

#[derive(Debug)]
struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        if let Some(seconds) = cpu_seconds(&stat) {
            let counter = ConstCounter::new(seconds);
            let (help, kind) = ("Processor time that the process has taken", counter.metric_type());
            counter.encode(encoder.encode_descriptor(
                "process_cpu_seconds",
                help,
                None,
                kind,
            )?)?;
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let open = std::fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64);
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        for (name, help, value) in [
            ("process_resident_bytes", "Memory that the process takes", resident_bytes(&status)),
            ("process_open_files", "Descriptors that the process has open", Some(open)),
            ("process_open_files_limit", "Descriptors that it may have open", Some(limit)),
        ] {
            let Some(value) = value else { continue };
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            let kind = gauge.metric_type();
            gauge.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
        }
        Ok(())
    }
}

/// User and system time in `/proc/self/stat`, whose second field may hold spaces.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let rest = stat.rsplit_once(") ")?.1;
    let mut times = rest.split(' ').skip(11).map_while(|field| field.parse::<f64>().ok());
    Some((times.next()? + times.next()?) / TICKS)
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let stat = "12 (a b) c) S 1 12 12 0 -1 4194560 1 0 0 0 250 150 0 0 20 0 9 0 5";
        assert_eq!(cpu_seconds(stat), Some(4.0));
        assert_eq!(resident_bytes("VmPeak:\t 9 kB\nVmRSS:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!((cpu_seconds(""), resident_bytes("")), (None, None));
    }

    #[test]
    fn this_process_takes_something() {
        let metrics = Metrics::new();
        register(&metrics);
        let text = metrics.text();
        for name in ["process_cpu_seconds_total", "process_resident_bytes", "process_open_files"] {
            assert!(text.contains(&format!("alpheus_{name} ")), "{name}: {text}");
        }
    }
}
