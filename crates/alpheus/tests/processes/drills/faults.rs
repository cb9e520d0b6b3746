//! Faults of a deployment, and the alerts that each must raise.

use crate::common::deployment::HOUSES;
use crate::common::{clock, ended_well};
use crate::doctor::clinic::Clinic;
use crate::doctor::patients::{ALARMS, ROUNDS as DOCTORS, Round, ask, stray};
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_streams::links;
use alpheus_streams::wire::{Receipt, Upload};
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

/// A process of the deployment.
#[derive(Clone, Copy)]
pub(super) enum Instance {
    Service,
    /// The host of a house.
    Host(usize),
}

impl Instance {
    /// Where Prometheus looks at it.
    pub(super) fn address(self, clinic: &Clinic) -> SocketAddr {
        clinic.running.place.health(&match self {
            Instance::Service => "run/service".to_owned(),
            Instance::Host(house) => format!("run/host-{}", HOUSES[house]),
        })
    }
}

/// Something that goes wrong, and what must be heard of it.
#[derive(Clone, Copy)]
pub(super) struct Fault {
    pub(super) name: &'static str,
    /// What takes time before the fault.
    pub(super) prepare: fn(&Clinic),
    pub(super) inject: fn(&mut Clinic),
    /// It begins so long after it is injected.
    pub(super) after: Duration,
    /// What goes on as long as the fault lasts.
    pub(super) again: fn(&Clinic),
    pub(super) fix: fn(&mut Clinic),
    /// Names without `Alpheus`.
    pub(super) alerts: &'static [(&'static str, Instance)],
    /// How many seconds they may take at most.
    pub(super) most: u64,
}

const FAULT: Fault = Fault {
    name: "",
    prepare: |_| (),
    inject: |_| (),
    after: Duration::ZERO,
    again: |_| (),
    fix: |_| (),
    alerts: &[],
    most: 60,
};

/// What the doctor's tests do to have this fault.
fn doctors(fault: &str) -> &'static Round {
    DOCTORS.iter().find(|round| round.fault == fault).unwrap()
}

/// Faults that are injected together: none hides the alerts of another one.
pub(super) const ROUNDS: &[&[Fault]] = &[
    &[ENDING, HALF_REPLACED, FORGED, SPENT, LOST_WINDOWS, REFUSED],
    &[DEAD_CONTROLLER, CUT_LINE, FEW_FILES],
    &[FROZEN, FULL_DISK, LOST_LEDGER],
    &[SLOW_DISK, EXPIRED],
    &[HUNG_DISK],
    &[CLOCK_JUMP],
    &[DEAD_SERVICE],
    &[ABSENT_HOST, STRAY_FRAMES],
    &[EMPTIED],
];

/// Five days are left of thirty.
const ENDING: Fault = Fault {
    name: "a certificate that ends soon",
    inject: |clinic| renew(clinic, 0, "-25d", "30"),
    fix: |clinic| renew(clinic, 0, "+0", "90"),
    alerts: &[("CertificateExpires", Instance::Host(0)), ("CertificateEnds", Instance::Host(0))],
    ..FAULT
};

const HALF_REPLACED: Fault = Fault {
    name: "a certificate's file that is half replaced",
    inject: |clinic| {
        let file = clinic.running.place.path("pki/host-b/tls.pem");
        let text = fs::read(&file).unwrap();
        fs::write(file.with_extension("whole"), &text).unwrap();
        fs::write(&file, &text[..text.len() / 2]).unwrap();
    },
    fix: |clinic| {
        let file = clinic.running.place.path("pki/host-b/tls.pem");
        fs::rename(file.with_extension("whole"), file).unwrap();
    },
    alerts: &[("CertificateUnread", Instance::Host(1))],
    ..FAULT
};

const FORGED: Fault = Fault {
    name: "a forged frame",
    inject: |clinic| stray(clinic, true),
    alerts: &[("FramesForged", Instance::Service)],
    ..FAULT
};

const SPENT: Fault = Fault {
    name: "budgets that are spent",
    // An account has three windows' worth, and a meter sends five readings in a window.
    inject: |clinic| ask(clinic, &ALARMS.replace("events = 4", "events = 9")),
    fix: |clinic| (doctors("budget-spent").fix)(clinic),
    alerts: &[("StreamsLeftOut", Instance::Service)],
    ..FAULT
};

const LOST_WINDOWS: Fault = Fault {
    name: "windows that do not open",
    inject: |clinic| (doctors("brittle-plan").inject)(clinic),
    fix: |clinic| (doctors("brittle-plan").fix)(clinic),
    alerts: &[("WindowsLost", Instance::Service)],
    ..FAULT
};

const REFUSED: Fault = Fault {
    name: "requests that are refused",
    again: |clinic| {
        let folder = clinic.running.place.path("pki/meter-a");
        let identity = IdentityFolder::open(&folder, Role::Producer).unwrap();
        let service = links::service(&clinic.running.server, &identity).unwrap();
        for _ in 0..3 {
            assert_eq!(service.http().probe().get("/v1/diagnosis").unwrap().status, 403);
        }
    },
    alerts: &[("Refusals", Instance::Service)],
    ..FAULT
};

const DEAD_CONTROLLER: Fault = Fault {
    name: "a dead controller",
    inject: |clinic| (doctors("dead-controller").inject)(clinic),
    fix: |clinic| (doctors("dead-controller").fix)(clinic),
    alerts: &[
        ("ProcessDown", Instance::Host(0)),
        ("HostsSilent", Instance::Service),
        ("ControllersLate", Instance::Service),
    ],
    ..FAULT
};

const CUT_LINE: Fault = Fault {
    name: "a host that does not reach the service",
    inject: |clinic| (doctors("partition").inject)(clinic),
    fix: |clinic| (doctors("partition").fix)(clinic),
    alerts: &[("NotReady", Instance::Host(1))],
    ..FAULT
};

const FEW_FILES: Fault = Fault {
    name: "a low limit on open files",
    inject: |clinic| {
        let host = clinic.running.hosts[2].1.id();
        let open = fs::read_dir(format!("/proc/{host}/fd")).unwrap().count();
        limit_files(host, open + 2);
    },
    fix: |clinic| limit_files(clinic.running.hosts[2].1.id(), 1_024),
    alerts: &[("FilesRunOut", Instance::Host(2))],
    ..FAULT
};

const FROZEN: Fault = Fault {
    name: "a host that hangs",
    inject: |clinic| clinic.running.hosts[0].1.freeze(),
    fix: |clinic| clinic.running.hosts[0].1.thaw(),
    alerts: &[("ProcessDown", Instance::Host(0))],
    ..FAULT
};

const FULL_DISK: Fault = Fault {
    name: "a full disk",
    inject: |clinic| (doctors("full-disk").inject)(clinic),
    fix: |clinic| (doctors("full-disk").fix)(clinic),
    alerts: &[("DiskFull", Instance::Service)],
    ..FAULT
};

const LOST_LEDGER: Fault = Fault {
    name: "a lost ledger",
    inject: |clinic| (doctors("lost-ledger").inject)(clinic),
    fix: |clinic| (doctors("lost-ledger").fix)(clinic),
    alerts: &[("OwnersToConfirm", Instance::Host(2))],
    ..FAULT
};

const SLOW_DISK: Fault = Fault {
    name: "a slow disk",
    inject: |clinic| slow_disk(clinic, "1500"),
    fix: |clinic| slow_disk(clinic, "0"),
    alerts: &[("DiskSlow", Instance::Service)],
    ..FAULT
};

/// It begins when the certificate's last second is over.
const EXPIRED: Fault = Fault {
    name: "a certificate that has expired",
    // A day of which all but these seconds are over.
    inject: |clinic| renew(clinic, 1, "-86370", "1"),
    after: Duration::from_secs(29),
    fix: |clinic| renew(clinic, 1, "+0", "90"),
    alerts: &[("CertificateExpired", Instance::Host(1))],
    ..FAULT
};

/// So many devices ask the service at once, so often each: as often as one certificate may. Some 500 requests wait for
/// the disk itself, and the others for the engine.
const ASKING: (usize, usize) = (90, 16);

const HUNG_DISK: Fault = Fault {
    name: "a disk that hangs, while many ask",
    prepare: |clinic| {
        (0..ASKING.0).for_each(|many| clinic.running.place.issue("producer", &format!("p{many}")));
    },
    inject: |clinic| {
        slow_disk(clinic, "3600000");
        (0..ASKING.0).for_each(|number| ask_at_once(clinic, &format!("pki/p{number}")));
    },
    fix: |clinic| slow_disk(clinic, "0"),
    alerts: &[
        ("DiskHangs", Instance::Service),
        ("EngineStands", Instance::Service),
        ("RequestsWait", Instance::Service),
        ("NotReady", Instance::Service),
    ],
    ..FAULT
};

const CLOCK_JUMP: Fault = Fault {
    name: "a clock that jumps",
    inject: |clinic| fs::write(clinic.running.place.path("service.clock"), "7200").unwrap(),
    fix: |clinic| fs::write(clinic.running.place.path("service.clock"), "0").unwrap(),
    alerts: &[("ClockJumped", Instance::Service)],
    ..FAULT
};

const DEAD_SERVICE: Fault = Fault {
    name: "a dead service",
    inject: |clinic| clinic.running.service.kill(),
    fix: |clinic| clinic.running.start_service(),
    alerts: &[("ProcessDown", Instance::Service)],
    ..FAULT
};

const ABSENT_HOST: Fault = Fault {
    name: "a host that does not come back after an outage",
    inject: |clinic| {
        clinic.running.hosts[0].1.kill();
        clinic.running.service.kill();
        clinic.running.start_service();
    },
    alerts: &[("HostsAbsent", Instance::Service)],
    ..FAULT
};

/// The alert waits: a device that comes back after a while sends frames that are refused, once.
const STRAY_FRAMES: Fault = Fault {
    name: "frames that are refused",
    again: |clinic| (0..6).for_each(|_| stray(clinic, false)),
    alerts: &[("FramesRefused", Instance::Service)],
    most: 240,
    ..FAULT
};

const EMPTIED: Fault = Fault {
    name: "a service whose state is lost",
    inject: |clinic| (doctors("stale-backup").inject)(clinic),
    alerts: &[("StateLost", Instance::Service)],
    ..FAULT
};

/// Renews the certificate of a house's host by a clock that is off by so much.
fn renew(clinic: &Clinic, house: usize, off: &str, days: &str) {
    let folder = format!("pki/host-{}", HOUSES[house]);
    let mut renew = clinic.running.place.command(&["ca", "renew", "pki", &folder, "--days", days]);
    clock::shift_clock(&mut renew, off);
    ended_well(&mut renew);
}

/// Sets how many files a process may have open.
fn limit_files(process: u32, files: usize) {
    let (process, files) = (process.to_string(), format!("--nofile={files}:"));
    assert!(Command::new("prlimit").args(["--pid", &process, &files]).status().unwrap().success());
}

/// From now on a flush of the service takes so many milliseconds.
fn slow_disk(clinic: &Clinic, milliseconds: &str) {
    fs::write(clinic.running.place.path("service.slow"), milliseconds).unwrap();
}

/// Asks the service as often at once as a device may, and waits for answers for two minutes, in a thread of its own.
fn ask_at_once(clinic: &Clinic, folder: &str) {
    let identity =
        IdentityFolder::open(&clinic.running.place.path(folder), Role::Producer).unwrap();
    let client = BlockingClient::new(&clinic.running.server, Role::Server, &identity).unwrap();
    for _ in 0..ASKING.1 {
        let client = client.clone();
        std::thread::spawn(move || {
            // No answer is as good: the disk hangs.
            let _ = client.call::<Receipt>(
                "/v1/events",
                &Vec::<Upload>::new(),
                Duration::from_secs(120),
            );
        });
    }
}
