//! A real Kafka broker in a separate process, which tests can kill.
//!
//! `make broker` fetches it. `ALPHEUS_TEST_BROKER_CLASSPATH` can name another file with
//! its class path. Without a broker these tests are skipped.

use alpheus_test_support::skip;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// A broker, which stops with this process at the latest.
pub(crate) struct Broker {
    pub(crate) open: String,
    pub(crate) secured: String,
    orders: Mutex<Orders>,
}

struct Orders {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Broker {
    /// A broker shared by all tests that neither stop nor restart it.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Broker>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// Starts a separate broker.
    pub(crate) fn start() -> Option<Self> {
        let classpath = classpath()?;
        let mut child = Command::new("java")
            .args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp", &classpath])
            .arg("alpheus.broker.BrokerOnDemand")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut orders = Orders { child, input, output };
        let addresses = orders.answer();
        let (open, secured) = addresses.split_once(' ').unwrap();
        let (open, secured) = (open.to_owned(), secured.to_owned());
        Some(Self { open, secured, orders: Mutex::new(orders) })
    }

    /// Sends an order: `kill`, `start` or `allow PREFIX`.
    pub(crate) fn order(&self, order: &str) {
        let mut orders = self.orders.lock().unwrap();
        writeln!(orders.input, "{order}").unwrap();
        assert_eq!(orders.answer(), "done", "{order}");
    }
}

impl Orders {
    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A unique prefix for the names of a store.
pub(crate) fn prefix() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("test{}.{}.", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn classpath() -> Option<String> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../jvm/test-broker/target/classpath");
    skip::class_path("ALPHEUS_TEST_BROKER_CLASSPATH", default)
}
