//! The service skeleton as a process: real sockets, real signals.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common;
use crate::common::Process;
use alpheus_node::service::health::Health;
use alpheus_node::service::metrics::Metrics;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::service::{MayRead, Monitor, log, run};
use alpheus_node::settings::Settings;
use alpheus_node::settings::layers::Layers;
use alpheus_transport::{Batch, Space};
use axum::Router;
use axum::routing::{get, post};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROLE: &str = "PLAY_SERVICE";

/// Not a test by itself: a service that counts durably and can be slow.
#[test]
fn service() {
    let Ok(config) = std::env::var(ROLE) else { return };
    let layers = Layers::default().file(Some(Path::new(&config))).unwrap();
    let layers = layers.environment(std::env::vars());
    let settings = Settings::load(layers, &[]).unwrap();
    log::start(settings.log.as_deref().unwrap_or("info"), settings.log_format.unwrap_or_default())
        .unwrap();
    let (health, metrics) = (Health::new(), Metrics::new());
    let store = match alpheus_node::service::open_store(&settings, &health, &metrics) {
        Ok(store) => store,
        Err(error) => return println!("refused: {}", alpheus_node::failure::Failure::from(error)),
    };
    let space = Space::new("counts").unwrap();
    store.ensure_space(&space).unwrap();
    let count = move || {
        let now = store.get(&space, b"count").unwrap().map_or(0, |value| value[0]);
        let mut batch = Batch::new();
        batch.put(&space, "count", vec![now + 1]).unwrap();
        store.commit(batch).unwrap();
        format!("{}", now + 1)
    };
    let slow = |milliseconds: axum::extract::Path<u64>| async move {
        println!("slow");
        tokio::time::sleep(Duration::from_millis(milliseconds.0)).await;
        "done"
    };
    let router = Router::new()
        .route("/count", post(move || std::future::ready(count())))
        .route("/slow/{milliseconds}", get(slow));
    let (started, never) = (|address| println!("serving {address}"), Trigger::new());
    let (routes, watched) = ((router, Arc::new(|_: &[u8]| true) as MayRead), (&health, &metrics));
    let drained = run(&settings, routes, watched, never.shutdown(), started).unwrap();
    println!("drained {drained:?}");
}

struct Site(tempfile::TempDir);

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let text = format!(
            "listen = '127.0.0.1:0'\nstate = '{}'\nlog-format = 'json'\n",
            dir.path().join("state").display()
        );
        std::fs::write(dir.path().join("service.toml"), text).unwrap();
        Self(dir)
    }

    /// Requests that run when it is asked to stop have so many seconds.
    fn spawn(&self, drain: &str) -> Process {
        let config = self.0.path().join("service.toml");
        let mut command =
            common::myself("service_process::service", ROLE, config.to_str().unwrap());
        Process::start(command.env("ALPHEUS_DRAIN_SECONDS", drain))
    }

    fn start(&self) -> (Process, SocketAddr) {
        self.start_draining("1")
    }

    fn start_draining(&self, seconds: &str) -> (Process, SocketAddr) {
        let mut process = self.spawn(seconds);
        let address = process.wait_for_prefix("serving ").parse().unwrap();
        process.wait_healthy(address);
        (process, address)
    }
}

fn ask(address: SocketAddr, line: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{line} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .unwrap();
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    // A connection that is cut may end with a reset.
    let _ = stream.read_to_string(&mut text);
    text.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned())
}

#[test]
fn it_tells_its_health_and_what_it_counts() {
    let place = Site::new();
    let (mut process, address) = place.start();
    let (status, body) = common::get(address, "/healthz").unwrap();
    assert_eq!((status, body.as_str()), (200, r#"{"ready":true,"parts":{"store":"ready"}}"#));
    let (status, body) = common::get(address, "/metrics").unwrap();
    assert_eq!(status, 200);
    assert!(body.contains("alpheus_store_syncs_total 1\n"), "{body}");
    assert_eq!(common::get(address, "/nothing").unwrap().0, 404);
    let logged = |line: &str| line.starts_with('{') && line.contains("\"serving\"");
    process.wait_for("log line in JSON", |line| logged(line).then_some(()));
}

#[test]
fn asked_to_stop_it_finishes_what_it_has_begun_and_takes_nothing_new() {
    let place = Site::new();
    let (mut process, address) = place.start_draining("300");
    let begun = ask(address, "GET /slow/400");
    process.wait_for_prefix("slow");
    process.terminate();
    process.wait_for("the end of listening", |line| line.contains("stopping").then_some(()));
    let until = Instant::now() + common::PATIENCE;
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < until, "it still listens");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(answer(begun), "done");
    assert!(process.wait().success());
    assert!(process.log().contains("drained All"), "{}", process.log());
}

#[test]
fn what_does_not_finish_in_time_is_cut_off_and_counted() {
    let place = Site::new();
    let (mut process, address) = place.start();
    let begun = ask(address, "GET /slow/3600000");
    process.wait_for_prefix("slow");
    let start = Instant::now();
    process.terminate();
    assert!(process.wait().success());
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(900) && took < common::PATIENCE, "{took:?}");
    assert_eq!(answer(begun), "");
    assert!(process.log().contains("drained Cut(1)"), "{}", process.log());
}

#[test]
fn kill_nine_keeps_what_was_answered() {
    let place = Site::new();
    let mut expected = 0;
    for _ in 0..3 {
        let (mut process, address) = place.start();
        for _ in 0..3 {
            expected += 1;
            assert_eq!(answer(ask(address, "POST /count")), expected.to_string());
        }
        process.kill();
    }
}

#[test]
fn a_frozen_process_keeps_its_store_and_a_dead_one_does_not() {
    let place = Site::new();
    let (mut first, address) = place.start();
    first.freeze();
    let mut second = place.spawn("1");
    let refusal = second.wait_for_prefix("refused: ");
    assert!(refusal.contains("another process has this store open"), "{refusal}");
    assert!(second.wait().success());
    assert!(second.log().contains("help: stop the other process"), "{}", second.log());
    first.thaw();
    first.wait_healthy(address);
    first.kill();
    place.start();
}

#[test]
fn a_command_that_works_for_a_while_can_be_watched_meanwhile() {
    let (health, metrics) = (Health::new(), Metrics::new());
    let part = health.part("replay");
    let off = Monitor::start(&Settings::default(), &health, &metrics).unwrap();
    assert!(off.is_none());
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let settings = Settings { listen, ..Settings::default() };
    let monitor = Monitor::start(&settings, &health, &metrics).unwrap().unwrap();
    let address = monitor.address();
    let (status, body) = common::get(address, "/healthz").unwrap();
    assert_eq!((status, body.as_str()), (503, r#"{"ready":false,"parts":{"replay":"starting"}}"#));
    part.set(alpheus_node::service::health::State::Ready);
    assert_eq!(common::get(address, "/healthz").unwrap().0, 200);
    let taken = Settings { listen: Some(address), ..Settings::default() };
    let refused = Monitor::start(&taken, &health, &metrics).unwrap_err();
    assert!(refused.to_string().contains(&address.to_string()), "{refused}");
    drop(monitor);
    assert!(common::get(address, "/healthz").is_none());
}
