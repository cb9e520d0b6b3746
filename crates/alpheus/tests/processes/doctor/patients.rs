//! The faults: how each is injected into real processes and files, and fixed.

use super::cards;
use super::clinic::{Clinic, Local};
use crate::common::clock;
use crate::common::deployment::{QUERY, RunningSite, until};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::producer::{OpeningSecrets, Start, TickProducer};
use alpheus_node::BUILD;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_streams::ingest_keys::DeviceIdentity;
use alpheus_streams::wire::{Receipt, Upload};
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A fault of the deployment.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) fault: &'static str,
    pub(crate) inject: fn(&mut Clinic),
    /// What goes on as long as the fault lasts.
    pub(crate) again: fn(&Clinic),
    pub(crate) fix: fn(&mut Clinic),
    /// Whether the service sees it at once.
    pub(crate) is_seen_by_service: bool,
    /// Whether it can be fixed without a restart of everything.
    pub(crate) is_healed: bool,
}

const ROUND: Round = Round {
    fault: "",
    inject: |_| (),
    again: |_| (),
    fix: |_| (),
    is_seen_by_service: true,
    is_healed: true,
};

/// The faults of the deployment. The last one is not fixed.
pub(crate) const ROUNDS: &[Round] = &[
    Round {
        fault: "dead-controller",
        inject: |clinic| clinic.running.hosts[0].1.kill(),
        fix: |clinic| clinic.start_host(0),
        is_seen_by_service: false,
        ..ROUND
    },
    Round {
        fault: "partition",
        inject: |clinic| clinic.line.cut(),
        fix: |clinic| clinic.line.repair(),
        is_seen_by_service: false,
        ..ROUND
    },
    Round {
        fault: "full-disk",
        inject: |clinic| {
            let beat = clinic.running.place.path("run/service/heartbeat");
            fs::remove_file(&beat).unwrap();
            // Its heart may have written it again meanwhile.
            until("room for a disk that is full", || {
                let _ = fs::remove_file(&beat);
                symlink("/dev/full", &beat).ok()
            });
        },
        fix: |clinic| {
            fs::remove_file(clinic.running.place.path("run/service/heartbeat")).unwrap();
        },
        ..ROUND
    },
    Round {
        fault: "lost-ledger",
        inject: |clinic| {
            clinic.running.hosts[2].1.kill();
            fs::remove_file(clinic.running.place.path("run/host-c.fence")).unwrap();
            clinic.start_host(2);
        },
        fix: |clinic| {
            let choice = ["--schema", "schema.yaml", "--policies", "policies.yaml"];
            clinic.running.owner_with(2, "choose", &choice);
        },
        ..ROUND
    },
    Round { fault: "unknown-session", again: |clinic| stray(clinic, false), ..ROUND },
    Round { fault: "forged-frames", again: |clinic| stray(clinic, true), ..ROUND },
    Round {
        fault: "brittle-plan",
        inject: |clinic| {
            ask(clinic, "DROP STREAM Readings");
            ask(clinic, &format!("{QUERY} BETWEEN 4 AND 100"));
        },
        fix: |clinic| {
            ask(clinic, "DROP STREAM Readings");
            ask(clinic, QUERY);
        },
        ..ROUND
    },
    Round {
        fault: "missing-presence",
        again: |clinic| {
            // For longer than a window waits for it.
            clinic.running.hosts[0].1.freeze();
            std::thread::sleep(Duration::from_secs(11));
            clinic.running.hosts[0].1.thaw();
            std::thread::sleep(Duration::from_secs(2));
        },
        ..ROUND
    },
    Round {
        fault: "budget-spent",
        inject: |clinic| ask(clinic, ALARMS),
        fix: |clinic| ask(clinic, "DROP STREAM Alarms"),
        ..ROUND
    },
    Round {
        fault: "stale-backup",
        inject: |clinic| {
            clinic.running.service.kill();
            fs::remove_dir_all(clinic.running.place.path("run/service")).unwrap();
            clinic.running.start_service();
        },
        is_healed: false,
        ..ROUND
    },
];

pub(crate) const ALARMS: &str = "CREATE STREAM Alarms AS SELECT SUM(alarms) \
    WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters \
    WITH (epsilon = 1, events = 4)";

pub(crate) fn ask(clinic: &Clinic, sql: &str) {
    until("an answer to a statement", || {
        let asked = clinic.running.place.ask(&clinic.running.server, sql);
        asked.status.success().then_some(())
    });
}

/// Frames of somebody who has the TLS key of the device that does not run, and nothing else of it: the opening of
/// a session that the device did not sign, or what would follow it. Beside a device that runs they would also
/// look like a second outbox of it.
pub(crate) fn stray(clinic: &Clinic, is_opening: bool) {
    let running = &clinic.running;
    let folder = running.place.path("pki/spare");
    let identity = IdentityFolder::open(&folder, Role::Producer).unwrap();
    let client = BlockingClient::new(&running.server, Role::Server, &identity).unwrap();
    let text = fs::read_to_string(running.place.path("schema.yaml")).unwrap();
    let schema = Schema::from_yaml(&text).unwrap();
    let DeviceIdentity { secrets: genuine, certificate } = DeviceIdentity::open(&identity).unwrap();
    // As the device would at its start, so that the service knows whose signature to expect.
    let () = client.call("/v1/device", &certificate, Duration::ZERO).unwrap();
    let device = SigningKey::from_seed(&Secret::from_bytes([77; 32]));
    let secrets = OpeningSecrets { device, ..genuine };
    let stream = clinic.spare.parse().unwrap();
    let (layout, master) =
        (Layout::of(&schema).unwrap(), MasterSecret::new(Secret::from_bytes([66; 32])));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() * 1_000_000;
    let number = clinic.uploads.get() + 1;
    clinic.uploads.set(number);
    let (mut frames, mut rng) = (Vec::new(), ChaCha20Rng::seed_from_u64(number));
    let producer = TickProducer::for_schema(&master, stream, &schema, &layout, secrets).unwrap();
    let start = Start::Again { now: Timestamp(now) };
    let at = Timestamp(now + 1_000_000);
    let mut sink = |frame: &[u8]| frames.push(frame.to_vec());
    let session = producer.open(start, at, None, &mut rng, &mut sink).unwrap();
    let end = session.next_border();
    session.close(end, &mut rng, &mut sink).unwrap();
    let rest = frames.split_off(1);
    let frames = if is_opening { frames } else { rest };
    let upload = Upload { stream, outbox: [9; 16], number, frames };
    let _: Receipt = client.call("/v1/events", &vec![upload], Duration::ZERO).unwrap();
}

type Change = fn(&Clinic, &mut Local);
/// Makes a caller that sees nothing.
type Blinding = fn(&Clinic) -> Local;

/// Faults of the caller that hide nothing else.
pub(crate) const LOCAL: &[(&str, Change)] = &[
    ("schema-version", |clinic, own| {
        let place = &clinic.running.place;
        let schema = fs::read_to_string(place.path("schema.yaml")).unwrap();
        fs::write(place.path("next.yaml"), schema.replace("version: 1", "version: 2")).unwrap();
        own.schema = "next.yaml".into();
    }),
    ("clock", |_, own| own.is_clock_wrong = true),
    ("wrong-role", |_, own| own.acts_as = "producer".into()),
    ("blocked-attribute", |_, own| {
        own.query = "CREATE STREAM Litres AS SELECT SUM(litres) \
             WINDOW TUMBLING (SIZE 2 SECONDS) FROM Meters"
            .into();
    }),
    ("old-build", |clinic, own| own.binary = Some(clinic.running.place.path("old-alpheus"))),
    ("wrong-card", |_, own| own.card = "foreign/card.json".into()),
];

/// Faults of the caller that keep it from seeing anything else.
pub(crate) const BLINDING: &[(&str, Blinding)] = &[
    ("wrong-key", |clinic| {
        let path = |name: &str| clinic.running.place.path(name);
        let mixed = path("pki/mixed");
        fs::create_dir(&mixed).unwrap();
        for file in fs::read_dir(path("pki/analyst")).unwrap() {
            let file = file.unwrap().path();
            fs::copy(&file, mixed.join(file.file_name().unwrap())).unwrap();
        }
        fs::copy(path("pki/meter-a/tls.key"), mixed.join("tls.key")).unwrap();
        Local { identity: "pki/mixed".into(), ..Local::default() }
    }),
    ("expired-certificate", |clinic| {
        let issue = ["ca", "issue", "pki", "--role", "consumer", "--name", "late", "--days", "1"];
        let mut issue = clinic.running.place.command(&issue);
        // Three days ago.
        clock::shift_clock(&mut issue, "-3d");
        assert!(issue.status().unwrap().success());
        Local { identity: "pki/late".into(), ..Local::default() }
    }),
    ("wrong-port", |_| {
        let server = Some(format!("https://{}", Clinic::nobody()));
        Local { server, ..Local::default() }
    }),
    ("wrong-name", |clinic| {
        let port = clinic.running.server.rsplit(':').next().unwrap().to_owned();
        let server = Some(format!("https://service.invalid:{port}"));
        Local { server, ..Local::default() }
    }),
];

/// Files that faults of the caller need: cards of this deployment and of another one, and a program of an
/// older version. Gives back the stream of a fourth owner, whose device does not run.
pub(crate) fn prepare(running: &RunningSite, issuer: &str, gateway: &str) -> String {
    let place = &running.place;
    assert!(clock::faketime().is_some(), "this needs faketime: apt-get install faketime");
    place.done(&["ca", "init", "other"]);
    for (folder, authority) in [("deployment", "pki/ca.pem"), ("foreign", "other/ca.pem")] {
        cards::pass(place, folder, issuer, gateway, authority);
    }
    let old = place.path("old-alpheus");
    let mut program = fs::read(env!("CARGO_BIN_EXE_alpheus")).unwrap();
    let older = older();
    let mut found = 0;
    for at in memchr_all(&program, BUILD.as_bytes()) {
        program[at..at + older.len()].copy_from_slice(older.as_bytes());
        found += 1;
    }
    assert!(found > 0, "the program does not hold its version as text");
    fs::write(&old, program).unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o700)).unwrap();
    spare(running)
}

fn spare(running: &RunningSite) -> String {
    let place = &running.place;
    let stream = place.add_device("spare", "owner-d", &running.hosts[0].0);
    until("four streams at the service", || {
        let asked = format!("EXPLAIN {QUERY} BETWEEN 4 AND 100");
        place.ask(&running.server, &asked).status.success().then_some(())
    });
    stream
}

/// A version of the same length that was before this one.
fn older() -> String {
    let (name, version) = BUILD.split_once('/').unwrap();
    format!(
        "{name}/{}",
        version.chars().map(|letter| if letter == '.' { '.' } else { '0' }).collect::<String>()
    )
}

fn memchr_all(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    let first = wanted[0];
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == first);
    starts.map(|(at, _)| at).filter(|at| bytes[*at..].starts_with(wanted)).collect()
}
