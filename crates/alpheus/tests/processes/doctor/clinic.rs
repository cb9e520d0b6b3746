//! A deployment to make ill, and a doctor who does not know how.

use super::cards::stand_in;
use super::patients::{self, Round};
use crate::common::deployment::{HOUSES, QUERY, RunningSite, Site, free, until};
use crate::common::{Process, clock, without_variables};
use alpheus_node::network::role::Role;
use alpheus_node::service::shutdown::Trigger;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const POLICIES: &str = "\
schema: Meters
service: analyst
default:
  reading: { option: crowd, clients: 1 }
  alarms: { option: noisy, clients: 1 }
";
/// For so many seconds back counts matter here.
const WITHIN: &str = "20";
/// A state in which the doctor has named all faults is looked at again so often.
const AGAIN: usize = 3;
/// How often all of that is tried.
const TRIES: usize = 3;

/// What the doctor's caller has and says.
pub(crate) struct Local {
    pub(crate) identity: String,
    pub(crate) acts_as: String,
    pub(crate) server: Option<String>,
    pub(crate) schema: String,
    pub(crate) card: String,
    pub(crate) query: String,
    pub(crate) binary: Option<PathBuf>,
    pub(crate) is_clock_wrong: bool,
}

impl Default for Local {
    fn default() -> Local {
        Local {
            identity: "pki/analyst".into(),
            acts_as: "consumer".into(),
            server: None,
            schema: "schema.yaml".into(),
            card: "deployment/card.json".into(),
            query: format!("EXPLAIN {}", QUERY.replace("Readings", "Others")),
            binary: None,
            is_clock_wrong: false,
        }
    }
}

/// What came of all examinations.
#[derive(Debug, Default)]
pub(crate) struct Chart {
    examined: usize,
    named: BTreeSet<String>,
    pub(crate) missed: usize,
    pub(crate) false_alarms: usize,
}

impl Chart {
    /// How many states of the deployment were examined.
    pub(crate) fn rounds(&self) -> usize {
        self.examined
    }

    /// What was named where it was expected.
    pub(crate) fn named(&self) -> BTreeSet<&str> {
        self.named.iter().map(String::as_str).collect()
    }

    fn note(&mut self, found: &BTreeSet<String>, expected: &BTreeSet<&str>) {
        let is_expected = |fault: &&String| expected.contains(fault.as_str());
        self.named.extend(found.iter().filter(is_expected).cloned());
        self.false_alarms +=
            found.iter().filter(|fault| !expected.contains(fault.as_str())).count();
        self.missed += expected.iter().filter(|fault| !found.contains(**fault)).count();
    }
}

/// A line that can be cut, and stays cut.
pub(crate) struct Line {
    is_cut: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Line {
    fn to(service: SocketAddr) -> (Line, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (is_cut, streams): (Arc<AtomicBool>, Arc<Mutex<Vec<TcpStream>>>) = Default::default();
        let (cut, kept) = (Arc::clone(&is_cut), Arc::clone(&streams));
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if cut.load(Ordering::Relaxed) {
                    continue;
                }
                let Ok(far) = TcpStream::connect(service) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
                kept.lock().unwrap().extend([near, far]);
            }
        });
        (Line { is_cut, streams }, address)
    }

    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn repair(&self) {
        self.is_cut.store(false, Ordering::Relaxed);
    }
}

/// The deployment.
pub(crate) struct Clinic {
    pub(crate) running: RunningSite,
    pub(crate) line: Line,
    /// A fourth stream, whose device does not run.
    pub(crate) spare: String,
    /// Uploads of a stranger so far.
    pub(crate) uploads: Cell<u64>,
    _devices: Vec<Process>,
    /// What answers at the addresses of the card.
    _card: [Trigger; 2],
}

impl Clinic {
    pub(crate) fn open() -> Clinic {
        // Hosts on a busy machine are late now and then, and that is no fault here.
        Clinic::open_in(Site::with_patience("8"))
    }

    /// A service, three hosts with a stream each, of which the second is behind a line that can be cut, and a
    /// query that runs.
    pub(crate) fn open_in(place: Site) -> Clinic {
        fs::write(place.path("policies.yaml"), POLICIES).unwrap();
        place.issue("operator", "watch");
        let line: Mutex<Option<Line>> = Mutex::default();
        let running = RunningSite::start_in(place, |house, service| {
            if house != HOUSES[1] {
                return service.to_owned();
            }
            let (own, address) = Line::to(service.parse().unwrap());
            *line.lock().unwrap() = Some(own);
            address.to_string()
        });
        let [issuer, gateway] =
            [Role::Issuer, Role::Gateway].map(|role| stand_in(&running.place, role));
        let spare = patients::prepare(&running, &issuer.1, &gateway.1);
        let asked = running.place.ask(&running.server, QUERY);
        assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
        let devices = (0..HOUSES.len()).map(|house| running.live_meter(house)).collect();
        running.row(3);
        let line = line.into_inner().unwrap().unwrap();
        Clinic {
            running,
            line,
            spare,
            uploads: Cell::new(0),
            _devices: devices,
            _card: [issuer.0, gateway.0],
        }
    }

    /// What the doctor names.
    fn diagnosis(&self, own: &Local) -> BTreeSet<String> {
        let server = own.server.clone().unwrap_or_else(|| self.running.server.clone());
        let mut args = vec![
            "doctor".to_owned(),
            "--identity".into(),
            own.identity.clone(),
            "--as".into(),
            own.acts_as.clone(),
            "--server".into(),
            server,
            "--schema".into(),
            own.schema.clone(),
            "--card".into(),
            own.card.clone(),
            "--query".into(),
            own.query.clone(),
        ];
        for (address, _) in &self.running.hosts {
            args.extend(["--controller".into(), format!("https://{address}")]);
        }
        self.faults(own, &args)
    }

    /// What the service itself names, to an operator.
    fn own_diagnosis(&self) -> BTreeSet<String> {
        let server = self.running.server.clone();
        let args = ["doctor", "--identity", "pki/watch", "--as", "operator", "--server", &server];
        self.faults(&Local::default(), &args.map(str::to_owned))
    }

    fn faults(&self, own: &Local, args: &[String]) -> BTreeSet<String> {
        let binary = own.binary.clone().unwrap_or_else(|| env!("CARGO_BIN_EXE_alpheus").into());
        let mut command = Command::new(binary);
        without_variables(&mut command).current_dir(self.running.place.path(""));
        command.args(args).args(["--within", WITHIN, "--format", "json"]);
        if own.is_clock_wrong {
            clock::shift_clock(&mut command, "+7200");
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{args:?}: {said}{log}");
        let found: Vec<serde_json::Value> = serde_json::from_str(&said).unwrap();
        for finding in &found {
            let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
            assert!(!text("cause").is_empty() && !text("fix").is_empty(), "{finding}");
        }
        let expected = i32::from(!found.is_empty());
        assert_eq!(output.status.code(), Some(expected), "{said}{log}");
        found.iter().map(|finding| finding["fault"].as_str().unwrap().to_owned()).collect()
    }

    /// Has the doctor look until he names what is expected, and again.
    pub(crate) fn examine(&self, chart: &mut Chart, own: &Local, expected: &BTreeSet<&str>) {
        self.examine_while(chart, own, expected, &|_| ());
    }

    fn examine_while(
        &self,
        chart: &mut Chart,
        own: &Local,
        expected: &BTreeSet<&str>,
        again: &dyn Fn(&Clinic),
    ) {
        let is_expected = |found: &BTreeSet<String>| {
            found.iter().map(String::as_str).collect::<BTreeSet<&str>>() == *expected
        };
        // A fault may take a window to show, and its cause some seconds to explain others.
        let mut last = BTreeSet::new();
        let shows = || {
            again(self);
            last = self.diagnosis(own);
            eprintln!("  {last:?}");
            is_expected(&last).then_some(())
        };
        until(&format!("diagnosis {expected:?}"), shows);
        chart.examined += 1;
        // A process that stands still for some seconds is a fault that nobody injected, and no line tells
        // it from a loaded machine. So what is said three times in a row counts.
        let mut looks = Vec::new();
        for _ in 0..TRIES {
            looks.clear();
            for _ in 0..AGAIN {
                again(self);
                looks.push(self.diagnosis(own));
            }
            if looks.iter().all(is_expected) {
                break;
            }
            eprintln!("  again: {looks:?}");
        }
        looks.iter().for_each(|found| chart.note(found, expected));
    }

    /// Injects a fault, has the doctor and the service name it, and fixes it.
    pub(crate) fn round(
        &mut self,
        chart: &mut Chart,
        round: Round,
        own: &Local,
        expected: &BTreeSet<&str>,
    ) {
        (round.inject)(self);
        self.examine_while(chart, own, expected, &|clinic| (round.again)(clinic));
        if round.is_seen_by_service {
            let sees = || {
                (round.again)(self);
                let found = self.own_diagnosis();
                eprintln!("  the service: {found:?}");
                (found.len() == 1 && found.contains(round.fault)).then_some(())
            };
            until(&format!("the service's own diagnosis of {}", round.fault), sees);
        }
        (round.fix)(self);
        if round.is_healed {
            until(&format!("health after {}", round.fault), || {
                let found = self.diagnosis(&Local::default());
                eprintln!("  fixing: {found:?}");
                found.is_empty().then_some(())
            });
        }
    }

    /// Starts a host again, at the address where it was.
    pub(crate) fn start_host(&mut self, house: usize) {
        let (server, api) = (self.running.server.clone(), self.running.hosts[house].0.clone());
        assert_ne!(house, 1, "that one is behind the line");
        let host = self.running.place.controller(HOUSES[house], &api, &server);
        self.running.hosts[house].1 = host;
    }

    /// An address at which nobody listens.
    pub(crate) fn nobody() -> String {
        free()
    }
}
