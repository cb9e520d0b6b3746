//! The scene of the pictures in docs/pages: six people with watches, a company that asks, a doctor whom
//! one of them lets read, and an operator. `make pictures` plays it and keeps what the browser shows.

use super::browser::Browser;
use super::statistics;
use crate::common::deployment::{free, until};
use crate::common::{Process, alpheus, bash};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SCHEMA: &str = "\
name: FitnessTracker
version: 1
tick: 5s
capacity: { population: 100, eventsPerSecond: 2, window: 1min }
streamAttributes:
  - name: heart_rate
    type: integer
    unit: bpm
    min: 40
    max: 200
    aggregations: [mean, { histogram: { lo: 40, width: 10, bins: 16 } }]
  - { name: steps, type: integer, min: 0, max: 4, aggregations: [sum] }
  - { name: altitude, type: [integer, optional], unit: m, min: -500, max: 9000, aggregations: [mean] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [3, 10], window: 5s, alpha: 0, dropout: 1/3 }
  - name: noisy
    option: dp-aggregate
    clients: [3, 10]
    window: 5s
    alpha: 0
    dropout: 1/3
    budget: { perWindow: 5, total: 1500, unit: person-per-window }
";
const POLICIES: &str = "\
schema: FitnessTracker
service: FitCo
default:
  heart_rate: { option: crowd, clients: 3 }
  steps: { option: noisy, clients: 3 }
";
const HEART_RATE: &str = "CREATE STREAM HeartRate AS \
    SELECT AVG(heart_rate), COUNT(heart_rate), HISTOGRAM(heart_rate, 40, 10, 16) \
    WINDOW TUMBLING (SIZE 5 SECONDS, GRACE PERIOD 1 SECOND) FROM FitnessTracker BETWEEN 3 AND 100";
/// Needs all six, which the doctor warns of.
const STEPS: &str = "CREATE STREAM Steps AS SELECT SUM(steps) \
    WINDOW TUMBLING (SIZE 5 SECONDS, GRACE PERIOD 1 SECOND) FROM FitnessTracker BETWEEN 6 AND 100 \
    WITH (epsilon = 5, events = 10)";

const PEOPLE: [&str; 6] = ["alice", "bob", "carol", "dan", "erin", "frank"];
const HOSTS: [&str; 3] = ["north", "south", "west"];
/// Windows that charts have: some minutes.
const WINDOWS: usize = 36;
/// Seconds after the start in which one watch is off.
const OFF: (u32, u32) = (90, 112);

/// A folder with everybody's files, and the processes.
struct Scene {
    folder: tempfile::TempDir,
    server: String,
    hosts: Vec<String>,
    running: Vec<Process>,
}

impl Scene {
    fn command(&self, line: &str) -> Command {
        let mut command = alpheus(line.split_whitespace());
        command.current_dir(self.folder.path());
        command
    }

    fn done(&self, line: &str) {
        let output = self.command(line).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn serve(&mut self, line: &str) {
        let mut process = Process::start(&mut self.command(line));
        process.wait_for_prefix("serving at ");
        self.running.push(process);
    }

    fn start() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let api = free();
        let server = format!("https://{api}");
        let mut scene = Scene { folder, server, hosts: Vec::new(), running: Vec::new() };
        let path = |name: &str| scene.folder.path().join(name);
        fs::write(path("schema.yaml"), SCHEMA).unwrap();
        fs::write(path("policies.yaml"), POLICIES).unwrap();
        fs::write(path("key"), "a key file of some length").unwrap();
        fs::set_permissions(path("key"), Permissions::from_mode(0o600)).unwrap();
        scene.done("ca init pki");
        for (role, name) in [
            ("server", "service"),
            ("consumer", "FitCo"),
            ("consumer", "dr-meier"),
            ("operator", "ops"),
        ] {
            scene.done(&format!("ca issue pki --role {role} --name {name}"));
        }
        scene.serve(&format!("server --identity pki/service --schema schema.yaml --state run/service --api {api} --idle-timeout 5"));
        HOSTS.iter().for_each(|host| scene.open_host(host));
        PEOPLE.iter().enumerate().for_each(|(at, person)| scene.settle(at, person));
        scene
    }

    fn open_host(&mut self, host: &str) {
        let api = free();
        self.done(&format!("ca issue pki --role controller --name host-{host}"));
        self.done(&format!("controller init --identity pki/host-{host} --state run/host-{host} --key-file key --ca pki"));
        self.serve(&format!(
            "controller run --identity pki/host-{host} --state run/host-{host} --key-file key --schema schema.yaml --server {} --api {api}",
            self.server
        ));
        self.hosts.push(api);
    }

    fn settle(&self, at: usize, person: &str) {
        let controller = &self.hosts[at % self.hosts.len()];
        self.done(&format!("ca issue pki --role owner --name {person}"));
        self.done(&format!("ca issue pki --role producer --name watch-{person}"));
        self.done(&format!("owner add --identity pki/{person} --controller https://{controller} --schema schema.yaml --policies policies.yaml --producer watch-{person} --device {person}.device"));
    }

    /// Each watch sends a heart rate and steps once a second, half a minute ahead. One is off for a while.
    fn feed(&mut self) {
        let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 4;
        for (at, person) in PEOPLE.iter().enumerate() {
            let (from, to) = if *person == "frank" { OFF } else { (0, 0) };
            let script = format!(
                "RANDOM={at}; rate={}; for step in {{0..3600}}; do \
                 while (( EPOCHSECONDS + 20 < {start} + step )); do sleep 0.5; done; \
                 rate=$((rate + RANDOM % 5 - 2)); \
                 (( rate < 52 )) && rate=52; (( rate > 165 )) && rate=165; \
                 (( step >= {from} && step < {to} )) && continue; \
                 echo '{{\"heart_rate\": '$rate', \"steps\": '$((RANDOM % 4))', \"at\": '$(({start} + step))'500}}'; \
                 done | alpheus produce --identity pki/watch-{person} --device {person}.device \
                 --state run/watch-{person} --schema schema.yaml --server {} --input - --time-column at",
                66 + 11 * at,
                self.server
            );
            self.running
                .push(Process::start_script(bash(self.folder.path()).args(["-c", &script])));
        }
    }

    fn ask(&self, sql: &str) -> bool {
        let mut command =
            self.command(&format!("query --server {} --identity pki/FitCo", self.server));
        command.args(["--query", sql]).output().unwrap().status.success()
    }

    /// Rows of a query that have a result.
    fn opened(&self, name: &str) -> usize {
        let line = format!(
            "query --server {} --identity pki/FitCo --results {name} --format json",
            self.server
        );
        let rows = self.command(&line).output().unwrap().stdout;
        String::from_utf8(rows).unwrap().matches("\"status\":\"ok\"").count()
    }

    /// Opens somebody's page.
    async fn opens(&mut self, browser: &Browser, line: &str) {
        let mut page = Process::start(&mut self.command(&format!("console {line}")));
        let address =
            page.wait_for("address", |line| line.starts_with("http://").then(|| line.to_owned()));
        self.running.push(page);
        browser.client.goto(&address).await.unwrap();
    }
}

/// Plays the scene. Pictures of all pages go to `CONSOLE_PICTURES`, those of the guide to
/// `GUIDE_PICTURES`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; `make pictures` runs it"]
async fn the_guide_has_pictures() {
    let Some(browser) = Browser::open().await else { return };
    let mut scene = Scene::start();
    until("streams of all", || scene.ask(&format!("EXPLAIN {STEPS}")).then_some(()));
    asks(&browser, &mut scene).await;
    assert!(scene.ask(HEART_RATE) && scene.ask(STEPS), "both queries run");
    scene.feed();
    until("first windows", || (scene.opened("Steps") > 0).then_some(()));
    gives_access(&browser, &mut scene).await;
    while scene.opened("HeartRate") < WINDOWS {
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let desk = consumer(&browser, &mut scene).await;
    operator(&browser, &mut scene).await;
    let phone = owner(&browser, &mut scene).await;
    kept("readme", &browser.beside([&phone, &desk], (360 + 24 + 1100, 860)).await);
    let folder = tempfile::tempdir().unwrap();
    // A road's speeds, slower once a jam begins.
    let speeds: Vec<i128> =
        (0..22i128).map(|at| 4900 - 60 * (at - 11).max(0) + 97 * at % 170).collect();
    let _page = statistics::open_page(&browser, folder.path(), &speeds).await;
    browser.says("[role=status]", "1 open, 22 with a result, 1 without.").await;
    browser.is_for_everybody("guide-statistics").await;
    kept("statistics", &browser.top((1280, 1100), "light").await);
    browser.client.clone().close().await.unwrap();
}

/// Alice lets a doctor read, so that the page has what this looks like.
async fn gives_access(browser: &Browser, scene: &mut Scene) {
    let controller = scene.hosts[0].clone();
    scene.opens(browser, &format!("--identity pki/alice --controller https://{controller}")).await;
    browser.says("article h2", "watch-alice").await;
    let certificate = fs::read_to_string(scene.folder.path().join("pki/dr-meier/consumer.txt"));
    browser.decides("article", "Let somebody read").await;
    browser.writes("#certificate", certificate.unwrap().trim()).await;
    browser.says("#reader", "This is dr-meier, certified").await;
    browser.is_for_everybody("guide-grant").await;
    browser.ticks("#sure").await;
    browser.decides("dialog", "Sign and give").await;
    let said = "dr-meier may read the sums and counts of every 5 seconds";
    browser.says("article .note.warn", said).await;
}

async fn asks(browser: &Browser, scene: &mut Scene) {
    let server = scene.server.clone();
    scene.opens(browser, &format!("--identity pki/FitCo --server {server}")).await;
    browser.presses("a[href='#/ask']").await;
    browser.writes("#statement", HEART_RATE).await;
    browser.presses("#explain").await;
    browser.says("#answer pre", "revealed in each window").await;
    browser.is_for_everybody("guide-ask").await;
}

/// What a consumer sees; the picture of its charts.
async fn consumer(browser: &Browser, scene: &mut Scene) -> Vec<u8> {
    let server = scene.server.clone();
    scene.opens(browser, &format!("--identity pki/FitCo --server {server}")).await;
    browser.decides("div[@aria-label='Queries']", "Steps").await;
    browser.says("[data-query=Steps] .tile", "noise: ±").await;
    browser.is_for_everybody("guide-steps").await;
    kept("results", &browser.top((1280, 1240), "light").await);
    browser.decides("div[@aria-label='Queries']", "HeartRate").await;
    browser.says("[data-query=HeartRate] .tile", "bpm").await;
    browser.is_for_everybody("guide-heart-rate").await;
    browser.top((1100, 860), "dark").await
}

async fn operator(browser: &Browser, scene: &mut Scene) {
    let server = scene.server.clone();
    scene.opens(browser, &format!("--identity pki/ops --server {server}")).await;
    browser.says("[aria-label='3 hosts'] table", "host-west").await;
    browser.says(".wrong", "To fix it:").await;
    // So that the lag has a course.
    tokio::time::sleep(Duration::from_secs(25)).await;
    browser.is_for_everybody("guide-operator").await;
    kept("operator", &browser.top((1280, 1180), "dark").await);
}

/// What an owner sees; the picture of the top of it.
async fn owner(browser: &Browser, scene: &mut Scene) -> Vec<u8> {
    let controller = scene.hosts[0].clone();
    scene.opens(browser, &format!("--identity pki/alice --controller https://{controller}")).await;
    browser.says(".timeline", "learned the average heart rate in bpm").await;
    browser.says(".gauge", "of 1,500").await;
    browser.is_for_everybody("guide-owner").await;
    kept("owner", &browser.top((360, 1900), "light").await);
    browser.top((360, 860), "light").await
}

/// Keeps a picture for the guide, where these are wanted.
fn kept(name: &str, picture: &[u8]) {
    let Some(folder) = std::env::var_os("GUIDE_PICTURES") else { return };
    fs::write(Path::new(&folder).join(format!("{name}.png")), picture).unwrap();
}
