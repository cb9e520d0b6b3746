//! Every fault raises its alert within a minute, and nothing does so where all is well: a real Prometheus with the
//! shipped rules looks at a deployment as often as the manual says.

use super::faults::{Fault, Instance, ROUNDS};
use crate::bounded;
use crate::bounded::lies::with_liar;
use crate::bounded::middle::Lie;
use crate::common::clock::faketime;
use crate::common::deployment::{Site, until};
use crate::common::machine;
use crate::doctor::clinic::Clinic;
use crate::prometheus::{Prometheus, deploy};
use alpheus_test_support::skip;
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a deployment without a fault is looked at.
const CALM: Duration = Duration::from_secs(60);
/// Alerts are looked for so often.
const LOOK: Duration = Duration::from_millis(500);
/// Alerts that come later are not waited for.
const GIVE_UP: Duration = Duration::from_secs(300);
/// Alerts that real processes do not raise here, and why.
const NOT_SHOWN: &[(&str, &str)] = &[
    ("EventTimeStands", "by its meaning it waits for more than ten minutes"),
    ("ProofsUnchecked", "65,536 proofs that wait, or a bug, would be its fault"),
    ("PartitionsIdle", "workers need Kafka"),
    ("WorkersRejoin", "workers need Kafka"),
    ("WorkerFramesRefused", "workers need Kafka"),
    ("WindowsGivenUp", "by its meaning it waits for a week"),
    ("PartitionsNotRead", "workers need Kafka"),
];

/// An alert that is waited for.
struct ComingAlert {
    fault: &'static str,
    alert: &'static str,
    instance: SocketAddr,
    begun: Instant,
    most: u64,
}

/// Looks at alerts.
struct Watch {
    prometheus: Prometheus,
    /// What came too late.
    late: Vec<String>,
}

impl Watch {
    /// Looks at these processes from now on, once each has been seen.
    fn start(folder: &Path, processes: &[SocketAddr]) -> Watch {
        let prometheus = Prometheus::start(folder, &config(processes));
        until("a look at each process", || {
            (prometheus.finds("up == 1") == processes.len()).then_some(())
        });
        Watch { prometheus, late: Vec::new() }
    }

    /// Alerts in a state, each with its process.
    fn alerts(&self, state: &str) -> BTreeSet<(String, String)> {
        let answer = self.prometheus.ask("/api/v1/alerts");
        let alerts = answer["alerts"].as_array().unwrap().iter();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let alerts = alerts.filter(|alert| alert["state"] == state).map(|alert| &alert["labels"]);
        alerts.map(|labels| (text(&labels["alertname"]), text(&labels["instance"]))).collect()
    }

    /// Whether an alert waits or is raised.
    fn is_active(&self, alert: &str, instance: SocketAddr) -> bool {
        let own = (format!("Alpheus{alert}"), instance.to_string());
        ["pending", "firing"].iter().any(|state| self.alerts(state).contains(&own))
    }

    /// No alert is raised for a while.
    fn sees_nothing(&self) {
        let begun = Instant::now();
        while begun.elapsed() < CALM {
            let firing = self.alerts("firing");
            assert!(firing.is_empty(), "without any fault: {firing:?}");
            std::thread::sleep(LOOK);
        }
        println!("figure: seconds without a fault and without an alert = {}", CALM.as_secs());
    }

    /// Notes how long each alert takes, while something goes on.
    fn wait_for(&mut self, mut awaited: Vec<ComingAlert>, again: impl Fn()) {
        let begun = Instant::now();
        while !awaited.is_empty() && begun.elapsed() < GIVE_UP {
            again();
            let firing = self.alerts("firing");
            let is_raised = |one: &ComingAlert| {
                firing.contains(&(format!("Alpheus{}", one.alert), one.instance.to_string()))
            };
            let (raised, rest) = awaited.into_iter().partition(is_raised);
            Vec::into_iter(raised).for_each(|one| self.note(&one, true));
            awaited = rest;
            std::thread::sleep(LOOK);
        }
        awaited.iter().for_each(|one| self.note(one, false));
    }

    fn note(&mut self, one: &ComingAlert, is_raised: bool) {
        let seconds = Instant::now().saturating_duration_since(one.begun).as_secs_f64();
        let ComingAlert { fault, alert, most, .. } = one;
        let said = if is_raised { format!("{seconds:.0} s") } else { "none".to_owned() };
        println!("figure: {alert} after {fault} = {said}");
        // One before its fault is as wrong as one that is late.
        let is_in_time = is_raised && one.begun < Instant::now() && seconds <= *most as f64;
        if !is_in_time {
            self.late.push(format!("{alert} after {fault}: {said}, and not within {most} s"));
        }
    }

    fn end(self) {
        assert!(self.late.is_empty(), "{:#?}", self.late);
    }
}

/// The configuration that the manual recommends, for these processes.
fn config(processes: &[SocketAddr]) -> String {
    let manual = include_str!("../../../../../docs/operating.md");
    let config = manual.split("```yaml\nscrape_configs:").nth(1).unwrap();
    let config = config.split("```").next().unwrap();
    let processes: Vec<String> = processes.iter().map(|at| format!("\"{at}\"")).collect();
    let rules = deploy("prometheus/alerts.yaml").display().to_string();
    [
        ("\"127.0.0.1:7490\", \"127.0.0.1:7491\"", processes.join(", ")),
        ("/usr/share/alpheus/prometheus/alerts.yaml", rules),
    ]
    .into_iter()
    .fold(format!("scrape_configs:{config}"), |config, (from, to)| {
        assert!(config.contains(from), "no {from} in {config}");
        config.replace(from, &to)
    })
}

/// Injects faults together, waits for the alerts of all of them, and fixes them.
fn round(watch: &mut Watch, clinic: &mut Clinic, faults: &[Fault]) {
    for fault in faults {
        for (alert, place) in fault.alerts {
            let instance = place.address(clinic);
            let calm = || (!watch.is_active(alert, instance)).then_some(());
            until(&format!("calm before {}: {alert}", fault.name), calm);
        }
        (fault.prepare)(clinic);
    }
    let mut awaited = Vec::new();
    for fault in faults {
        println!("injected: {}", fault.name);
        let begun = Instant::now() + fault.after;
        (fault.inject)(clinic);
        awaited.extend(fault.alerts.iter().map(|(alert, place)| {
            let (instance, most) = (place.address(clinic), fault.most);
            ComingAlert { fault: fault.name, alert, instance, begun, most }
        }));
    }
    watch.wait_for(awaited, || faults.iter().for_each(|fault| (fault.again)(clinic)));
    faults.iter().for_each(|fault| (fault.fix)(clinic));
}

fn has_tools() -> bool {
    skip::has_program("prometheus") && skip::has_program("cc") && faketime().is_some()
}

/// `FAULT` names a part of one fault's name: then its round is the only one.
#[test]
#[ignore = "ten minutes; `drills/alerts.sh` runs it"]
fn each_fault_raises_its_alert_within_a_minute() {
    if !has_tools() {
        return;
    }
    let only = std::env::var("FAULT").unwrap_or_default();
    let is_chosen = |faults: &&&[Fault]| faults.iter().any(|fault| fault.name.contains(&only));
    let mut clinic = Clinic::open_in(machine::fragile(Site::with_patience("8").watched()));
    let all = [Instance::Service, Instance::Host(0), Instance::Host(1), Instance::Host(2)];
    let all = all.map(|place| place.address(&clinic));
    let mut watch = Watch::start(&clinic.running.place.path(""), &all);
    watch.sees_nothing();
    for faults in ROUNDS.iter().filter(is_chosen) {
        round(&mut watch, &mut clinic, faults);
    }
    watch.end();
}

#[test]
#[ignore = "minutes; `drills/alerts.sh` runs it"]
fn a_controller_that_lies_raises_its_alert_within_a_minute() {
    if !has_tools() {
        return;
    }
    let (running, liar, _trigger) = with_liar(Site::with_ticks().watched());
    let asked = running.place.ask(&running.server, bounded::QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let _devices = running.feed();
    bounded::row_that(&running, "honest row", |row| bounded::opened(row, 3));
    let instance = running.place.health("run/service");
    let mut watch = Watch::start(&running.place.path(""), &[instance]);
    watch.sees_nothing();
    let begun = Instant::now();
    liar.tell(Some(Lie::Share));
    let (fault, alert) = ("a controller that lies", "ControllerNamed");
    watch.wait_for(vec![ComingAlert { fault, alert, instance, begun, most: 60 }], || ());
    watch.end();
}

#[test]
fn each_alert_is_in_a_drill_or_it_is_said_why_not() {
    let rules = fs::read_to_string(deploy("prometheus/alerts.yaml")).unwrap();
    let alerts = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: Alpheus"));
    let faults = ROUNDS.iter().flat_map(|faults| faults.iter());
    let shown = faults.flat_map(|fault| fault.alerts.iter().map(|(alert, _)| *alert));
    let others = NOT_SHOWN.iter().map(|(alert, _)| *alert).chain(["ControllerNamed"]);
    let known: BTreeSet<&str> = shown.chain(others).collect();
    assert_eq!(alerts.collect::<BTreeSet<&str>>(), known);
}
