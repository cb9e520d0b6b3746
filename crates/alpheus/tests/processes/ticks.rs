//! Streams with one frame a tick: a recording gives what it gives with a frame for each event,
//! processes agree with the truth, strangers end nothing, and an emptied service recovers.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::clock::faketime;
use crate::common::deployment::{HOUSES, QUERY, RunningSite, Site, until};
use crate::common::{Process, alpheus, ended_well};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::producer::{OpeningSecrets, Start, TickProducer, TickSession};
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_policy::ids::StreamId;
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::refused_frames::{RefusalReason, RefusedFrame};
use alpheus_streams::ingest_keys::DeviceIdentity;
use alpheus_streams::wire::{Receipt, Upload};
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn fitness() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fitness")
}

/// Rows of a replay in files of both schemas.
fn replayed(folder: &Path, schema: &str) -> String {
    let file = |name: &str| fitness().join(name).to_str().unwrap().to_owned();
    let (source, policies) = (file("source.yaml"), file("policies.yaml"));
    let (query, output) = (file("queries/heart-rate.sql"), format!("{schema}.csv"));
    let files = ["--source", &source, "--policies", &policies, "--query", &query];
    let more = ["--input", "riders.csv", "--controllers", "per-owner", "--output", &output];
    let schema = ["replay", "--schema", schema];
    ended_well(alpheus([&schema[..], &files, &more].concat()).current_dir(folder));
    fs::read_to_string(folder.join(output)).unwrap()
}

#[test]
fn a_replay_of_ticks_has_the_rows_of_a_replay_of_events() {
    let folder = tempfile::tempdir().unwrap();
    let schema = fs::read_to_string(fitness().join("schema.yaml")).unwrap();
    for (file, line) in
        [("events", "frames: events\n"), ("ticks", ""), ("anchored", "anchor: 30s\n")]
    {
        let path = folder.path().join(format!("{file}.yaml"));
        fs::write(path, format!("{line}{schema}")).unwrap();
    }
    let profile = fitness().join("profile.yaml").to_str().unwrap().to_owned();
    let generate = ["generate", "--schema", "events.yaml", "--profile", &profile];
    let more = ["--streams", "20", "--minutes", "2", "--output", "riders.csv"];
    ended_well(alpheus([&generate[..], &more].concat()).current_dir(folder.path()));
    let rows = replayed(folder.path(), "events.yaml");
    assert_eq!(replayed(folder.path(), "ticks.yaml"), rows);
    assert_eq!(replayed(folder.path(), "anchored.yaml"), rows);
    assert!(rows.lines().count() > 10 && rows.contains(",ok\n"), "{rows}");
}

fn runtime_rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(5)
}

/// The tick that begins in some seconds.
fn soon(seconds: u64) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp((now.as_secs() + seconds) * 1_000_000)
}

/// What opens sessions for a meter's stream, or pretends to.
struct Stranger {
    schema: Schema,
    stream: StreamId,
    client: BlockingClient,
    uploads: u64,
}

impl Stranger {
    /// Somebody who has the meter's TLS key, and nothing else of it.
    fn of(running: &RunningSite, house: usize) -> (Stranger, OpeningSecrets) {
        let folder = running.place.path(&format!("pki/meter-{}", HOUSES[house]));
        let identity = IdentityFolder::open(&folder, Role::Producer).unwrap();
        let client = BlockingClient::new(&running.server, Role::Server, &identity).unwrap();
        let text = fs::read_to_string(running.place.path("schema.yaml")).unwrap();
        let schema = Schema::from_yaml(&text).unwrap();
        let stream = running.streams[house].parse().unwrap();
        let secrets = DeviceIdentity::open(&identity).unwrap().secrets;
        (Stranger { schema, stream, client, uploads: 0 }, secrets)
    }

    /// A session that opens soon, under a key of the stranger's, with its first frames.
    fn session(&self, secrets: OpeningSecrets) -> (TickSession, Vec<Vec<u8>>) {
        self.session_at(soon(1), secrets)
    }

    fn session_at(&self, at: Timestamp, secrets: OpeningSecrets) -> (TickSession, Vec<Vec<u8>>) {
        let layout = Layout::of(&self.schema).unwrap();
        let master = MasterSecret::new(Secret::from_bytes([66; 32]));
        let producer =
            TickProducer::for_schema(&master, self.stream, &self.schema, &layout, secrets);
        let (mut frames, rng) = (Vec::new(), &mut runtime_rng());
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        let now = Timestamp(at.0 - 1_000_000);
        let session = producer.unwrap().open(Start::Again { now }, at, None, rng, sink).unwrap();
        (session, frames)
    }

    fn send(&mut self, frames: Vec<Vec<u8>>) -> Vec<RefusedFrame> {
        self.uploads += 1;
        let (stream, number) = (self.stream, self.uploads);
        let upload = Upload { stream, outbox: [9; 16], number, frames };
        let receipt: Receipt =
            self.client.call("/v1/events", &vec![upload], Duration::ZERO).unwrap();
        receipt.refused.into_iter().filter(|frame| frame.stream == stream).collect()
    }

    /// Sends frames until an answer names a reason. The device, whose stream it is, may hear of it first.
    fn is_refused(&mut self, frames: &[Vec<u8>], reason: &RefusalReason) {
        until(&format!("{reason:?}"), || {
            let refused = self.send(frames.to_vec());
            refused.iter().any(|frame| frame.reason == *reason).then_some(())
        });
    }

    /// Sends frames of one session. Answers to what was sent before may come with this one's.
    fn is_taken(&mut self, frames: Vec<Vec<u8>>) {
        let session = u64::from_le_bytes(frames[0][1..9].try_into().unwrap());
        let refused = self.send(frames);
        assert!(refused.iter().all(|frame| frame.session != session), "{refused:?}");
    }
}

#[test]
fn processes_agree_with_the_truth_and_strangers_end_nothing() {
    let running = RunningSite::start_in(Site::with_ticks(), |_, api| api.to_owned());
    let asked = running.place.ask(&running.server, QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let _devices = running.feed();
    let row = running.row(3);
    assert_eq!((row["sum_reading"].as_str(), row["count_reading"].as_u64()), (Some("12"), Some(6)));
    let (mut stranger, genuine) = Stranger::of(&running, 0);
    // An opening and a closing frame that the device did not sign.
    let device = SigningKey::from_seed(&Secret::from_bytes([77; 32]));
    let (session, mut frames) = stranger.session(OpeningSecrets { device, ..genuine });
    let at = session.next_border();
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    session.close(at, &mut runtime_rng(), sink).unwrap();
    // Nobody learns of the opening.
    stranger.is_refused(&frames, &RefusalReason::UnknownSession);
    let named = |frame: &RefusedFrame| frame.reason.name() == "bad-signature";
    assert!(!stranger.send(frames).iter().any(named));
    // Somebody else's certificate.
    let (_, genuine) = Stranger::of(&running, 0);
    let (_, frames) = stranger.session(OpeningSecrets { certificate: Digest([1; 32]), ..genuine });
    stranger.is_taken(frames);
    // A key that is sealed to nobody here.
    let (_, genuine) = Stranger::of(&running, 0);
    let key = SealingKey::from_seed(&Secret::from_bytes([8; 32]));
    let other = OpeningSecrets { ingest: Digest([2; 32]), ingest_key: key.public(), ..genuine };
    let (_, frames) = stranger.session(other);
    stranger.is_refused(&frames, &RefusalReason::UnknownIngestKey);
    // An opening that nobody has signed, of a session that runs: its device goes on in it.
    let (_, genuine) = Stranger::of(&running, 0);
    let (_, frames) = stranger.session_at(soon(45), genuine);
    stranger.is_taken(frames.clone());
    let mut forged = frames[0].clone();
    forged[9..].fill(0);
    stranger.is_taken(vec![forged]);
    later_windows(&running);
}

/// Two windows of all three meters, after the next one.
fn later_windows(running: &RunningSite) {
    let seen = running.place.rows(&running.server).len();
    until("later windows of all three", || {
        let rows = running.place.rows(&running.server);
        let later = rows.iter().skip(seen + 1).filter(|row| row["population"] == 3);
        (later.count() > 1).then_some(())
    });
}

/// The service lost everything. Controllers and devices go on, without a restart.
#[test]
fn devices_open_new_sessions_at_a_service_that_lost_its_state() {
    let mut running = RunningSite::start_in(Site::with_ticks(), |_, api| api.to_owned());
    let ask = |running: &RunningSite| {
        until("a query that is accepted", || {
            running.place.ask(&running.server, QUERY).status.success().then_some(())
        });
    };
    ask(&running);
    let _meters: Vec<Process> = (0..3).map(|house| running.live_meter(house)).collect();
    running.row(3);
    // Somebody with the device's key, but without the stream's, opens a session: it ends nothing.
    let (mut stranger, genuine) = Stranger::of(&running, 0);
    let (_, frames) = stranger.session(genuine);
    stranger.is_taken(frames);
    later_windows(&running);
    running.service.kill();
    fs::remove_dir_all(running.place.path("run/service")).unwrap();
    running.start_service();
    running.knows_all();
    ask(&running);
    let row = running.row(3);
    // One, two and three, equally often but for the ends.
    let (sum, count) = (row["sum_reading"].as_str().unwrap(), row["count_reading"].as_u64());
    assert!(sum.parse::<f64>().unwrap() >= 6.0 && count.unwrap() >= 3, "{row}");
}

/// A device's clock is set an hour forward, and back.
#[test]
fn a_device_goes_on_when_its_clock_is_set_forward_and_back() {
    let Some(library) = faketime() else { return };
    let running = RunningSite::start_in(Site::with_ticks(), |_, api| api.to_owned());
    until("a query that is accepted", || {
        running.place.ask(&running.server, QUERY).status.success().then_some(())
    });
    let clock = running.place.path("device.clock");
    fs::write(&clock, "+0").unwrap();
    let _others = [0, 1].map(|house| running.live_meter(house));
    let device = running.live_meter_by_clock(2, &library);
    running.row(3);
    fs::write(&clock, "+3600").unwrap();
    until("a frame that is ahead of the service", || {
        device.log().contains("\"future\"").then_some(())
    });
    fs::write(&clock, "+0").unwrap();
    later_windows(&running);
    let log = device.log();
    // By about an hour: ticks are whole seconds.
    let notice =
        ["this device's clock was set back by 35", "this device's clock was set back by 36"];
    assert!(notice.iter().any(|notice| log.contains(notice)), "{log}");
}

#[test]
fn a_script_leaves_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = crate::common::bash(folder.path());
    let mut script =
        Process::start_script(script.args(["-c", "sleep 600 & echo started $!; wait"]));
    let child: u32 = script.wait_for_prefix("started ").parse().unwrap();
    let stat = format!("/proc/{child}/stat");
    assert!(fs::exists(&stat).unwrap());
    drop(script);
    until("its end", || {
        // Nobody may have asked yet how it ended.
        let stat = fs::read_to_string(&stat).unwrap_or_else(|_| "0 (sleep) Z".to_owned());
        stat.contains(") Z").then_some(())
    });
}
