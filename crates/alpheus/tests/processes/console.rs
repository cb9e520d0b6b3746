//! The console in a real browser (headless Chromium, driven over WebDriver),
//! over a deployment of processes: a consumer asks and sees results come, an owner
//! sees who learnt what and stops it. Skipped without chromedriver.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common;
use crate::common::deployment::{QUERY, Running, free, until};
use crate::common::{Process, get};
#[cfg(feature = "stats")]
use alpheus_accountable_statistics::{
    configuration::SmootherId,
    endorsed::Endorsed,
    messages::{NoResultError, Outcome, PublishedResult},
    publication::Publication,
    tuple::ThresholdKey,
};
#[cfg(feature = "stats")]
use alpheus_crypto::{group::Element, signed::Signed};
#[cfg(feature = "stats")]
use alpheus_node::clock::Clock;
#[cfg(feature = "stats")]
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::settings::TlsFiles;
#[cfg(feature = "stats")]
use alpheus_stats_service::{card, keys, plan::Plan, published::ShownResult};
use alpheus_test_support::skip;
#[cfg(feature = "stats")]
use alpheus_time::Timestamp;
use fantoccini::key::Key;
use fantoccini::{Client, ClientBuilder, Locator};
use std::path::Path;
use std::process::Command;
#[cfg(feature = "stats")]
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A browser and what drives it.
struct Browser {
    client: Client,
    _driver: Process,
}

impl Browser {
    /// None where no browser can be driven on this machine.
    async fn open() -> Option<Browser> {
        if !skip::has_program("chromedriver") {
            return None;
        }
        let port = free().rsplit_once(':').unwrap().1.to_owned();
        let mut driver = Process::start(Command::new("chromedriver").arg(format!("--port={port}")));
        driver
            .wait_for("browser driver", |line| line.contains("started successfully").then_some(()));
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1000,1400",
        ];
        let options = serde_json::json!({ "goog:chromeOptions": { "args": arguments } });
        let wanted = options.as_object().unwrap().clone();
        let client = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(wanted)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap();
        Some(Browser { client, _driver: driver })
    }

    /// Waits until the page says this.
    async fn says(&self, css: &str, text: &str) -> String {
        let end = std::time::Instant::now() + common::PATIENCE;
        loop {
            let mut shown = String::new();
            for element in self.client.find_all(Locator::Css(css)).await.unwrap() {
                // What is replaced meanwhile is looked for again.
                shown += &element.text().await.unwrap_or_default();
            }
            if shown.contains(text) {
                return shown;
            }
            let page = self.client.find(Locator::Css("body")).await.unwrap().text().await.unwrap();
            assert!(std::time::Instant::now() < end, "no {text:?} at {css}:\n{page}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn click(&self, css: &str) {
        self.client.find(Locator::Css(css)).await.unwrap().click().await.unwrap();
    }

    async fn ask(&self, sql: &str) {
        let area = self.client.find(Locator::Css("#statement")).await.unwrap();
        area.clear().await.unwrap();
        area.send_keys(sql).await.unwrap();
        self.click("#ask").await;
    }

    /// What a script gives.
    async fn finds(&self, script: &str) -> serde_json::Value {
        self.client.execute(script, vec![]).await.unwrap()
    }

    /// Everything that can be used has a name, and nothing came from elsewhere.
    async fn is_for_everybody(&self) {
        let nameless = self
            .finds(
                "return [...document.querySelectorAll('button, textarea, [role=img], section')]
                 .filter((e) => !(e.textContent.trim() || e.ariaLabel || (e.labels && e.labels.length)))
                 .map((e) => e.outerHTML)",
            )
            .await;
        assert_eq!(nameless, serde_json::json!([]));
        let foreign = self
            .finds(
                "return performance.getEntriesByType('resource').map((e) => e.name)
                 .filter((name) => !name.startsWith(location.origin))",
            )
            .await;
        assert_eq!(foreign, serde_json::json!([]));
        let bare = self.finds("return document.querySelectorAll('table:not(:has(caption)), th:not([scope])').length").await;
        assert_eq!(bare, 0);
    }

    /// Keeps a picture of it for anyone who wants to see it.
    async fn picture(&self, name: &str) {
        if let Ok(folder) = std::env::var("CONSOLE_PICTURES") {
            let picture = self.client.screenshot().await.unwrap();
            std::fs::write(std::path::Path::new(&folder).join(name), picture).unwrap();
        }
    }
}

fn console(running: &Running, who: &str, whom: [&str; 2]) -> (Process, String) {
    let args = ["console", "--identity", who, whom[0], whom[1]];
    let mut process = Process::start(&mut running.place.command(&args));
    let address =
        process.wait_for("address", |line| line.starts_with("http://").then(|| line.to_owned()));
    (process, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_sees_results_and_an_owner_stops_them() {
    let Some(browser) = Browser::open().await else { return };
    let running = Running::start();
    let (_page, address) = console(&running, "pki/analyst", ["--server", &running.server]);
    consumer(&browser, &running, &address).await;
    let controller = format!("https://{}", running.hosts[0].0);
    let (_page, address) = console(&running, "pki/owner-a", ["--controller", &controller]);
    owner(&browser, &running, &address).await;
    browser.client.clone().close().await.unwrap();
}

async fn consumer(browser: &Browser, running: &Running, address: &str) {
    browser.client.goto(address).await.unwrap();
    browser.says("#who", "analyst at https://").await;
    browser.says("#queries", "No query is running.").await;
    browser.ask(&QUERY.replace("SUM(reading)", "HISTOGRAM(reading, 0, 1, 5)")).await;
    browser.says("#answer [role=alert]", "the schema does not support").await;
    browser.ask(QUERY).await;
    browser.says("#answer pre", "revealed in each window").await;
    let devices = running.feed();
    // By keyboard alone: the button of the running query.
    browser.says("#queries", "Show Readings").await;
    browser.click("#queries button").await;
    browser.says("[data-query=Readings] figcaption", "now 12").await;
    browser.says("[data-query=Readings] [role=status]", "Last window ended").await;
    let drawn =
        browser.finds("return document.querySelectorAll('[data-query=Readings] svg').length").await;
    assert_eq!(drawn, 2, "a chart for each output");
    let health = browser.says("#health table", "hosts of controllers").await;
    assert!(health.contains("lag behind the clock") && health.contains("3 of 3"), "{health}");
    browser.is_for_everybody().await;
    browser.picture("results.png").await;
    drop(devices);
}

async fn owner(browser: &Browser, running: &Running, address: &str) {
    browser.client.goto(address).await.unwrap();
    browser.says("#who", "owner-a at https://").await;
    let lines = browser.says("section table", "`analyst` got `Readings`").await;
    assert!(lines.contains("asks for `Readings`") && lines.contains("people"), "{lines}");
    browser.says("[data-budgets] table", "alarms").await;
    browser.is_for_everybody().await;
    browser.picture("streams.png").await;
    let button = browser.client.find(Locator::Css("section button")).await.unwrap();
    button.send_keys(&Key::Enter.to_string()).await.unwrap();
    browser.client.accept_alert().await.unwrap();
    browser.says("section [role=status]", "Revoked.").await;
    browser.says("section table", "you revoked your consent").await;
    assert!(running.owner(0, "log").contains("you revoked your consent"));
}

/// Three aggregates as the only smoother of a deployment has signed them: one with a result, one
/// without, and one that is open.
#[cfg(feature = "stats")]
fn published(folder: &Path) -> Vec<u8> {
    let card = card::open(&folder.join("roads/card.json")).unwrap();
    let plan = Plan::open(&folder.join("road.yaml")).unwrap();
    let key = keys::signing(&folder.join("roads/smoother-1").join(keys::SIGNING)).unwrap();
    let day = 86_400_000_000;
    let noon = Clock::Process.now().0 / day * day + day / 2;
    let full = PublishedResult::Full { count: 8, sum: 4817, squares: None, uploads: 9 };
    let ends = [Some(Ok(full)), Some(Err(NoResultError::NotFilled)), None];
    let shown = ends.into_iter().zip(0..).map(|(end, number)| {
        let start = Timestamp(noon + number * 30_000_000);
        let any = ThresholdKey(Element::second_base());
        let definition = Signed::new(&plan.definition(&card.pinned, start, any).unwrap(), &key);
        let mut outcomes = Endorsed::default();
        if let Some(result) = end {
            let outcome = Outcome { aggregate: definition.digest(), result };
            outcomes.add(SmootherId(0), Signed::new(&outcome, &key));
        }
        let mut endorsed = Endorsed::default();
        endorsed.add(SmootherId(0), definition);
        let claimed = end.and_then(Result::err);
        let shown = Publication { definition: endorsed, outcomes, claimed };
        ShownResult::Aggregate(Box::new(shown))
    });
    postcard::to_allocvec(&shown.collect::<Vec<_>>()).unwrap()
}

/// Aggregates of a deployment, as an aggregator by hand says them.
#[cfg(feature = "stats")]
#[tokio::test(flavor = "multi_thread")]
async fn anybody_sees_aggregates_and_why_some_have_no_result() {
    let Some(browser) = Browser::open().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let run = |script: &str| common::run_script(folder.path(), script);
    run("umask 077; alpheus ca init pki; alpheus ca issue pki --role aggregator --name aggregator");
    let identity = folder.path().join("pki/aggregator");
    let identity = IdentityFolder::open(&identity, Role::Aggregator).unwrap();
    let tls = TlsFiles { client_ca: None, ..identity.tls() };
    let shown = Arc::new(Mutex::new(Vec::new()));
    let rows = Arc::clone(&shown);
    let rows = axum::routing::get(move || std::future::ready(rows.lock().unwrap().clone()));
    let routes = axum::Router::new().route("/v1/rows", rows);
    let (_serving, aggregator) = common::serving::serve(&tls, routes);
    let nobody = "https://localhost:9";
    run(&format!(
        "alpheus stats init roads --threshold 1 --min-accounts 2 --wasteful-accounts 0 --authority pki/ca.pem --registrar {nobody} --smoother {nobody},{nobody} --aggregator {aggregator}"
    ));
    std::fs::write(folder.path().join("road.yaml"), common::road(&[])).unwrap();
    *shown.lock().unwrap() = published(folder.path());
    let mut page =
        common::alpheus(["console", "--statistics", "roads/card.json", "--plan", "road.yaml"]);
    let mut page = Process::start(page.current_dir(folder.path()));
    let address =
        page.wait_for("address", |line| line.starts_with("http://").then(|| line.to_owned()));
    browser.client.goto(&address).await.unwrap();
    browser.says("#who", "speed/road, in the unit of its plan").await;
    let shown = browser.says("#aggregates table", "60.2125").await;
    assert!(shown.contains("result") && shown.contains("open"), "{shown}");
    let failed = browser.says("#failed table", "not all slots were filled").await;
    assert!(failed.contains('1'), "{failed}");
    browser.says("[role=status]", "1 open, 1 with a result, 1 without.").await;
    browser.is_for_everybody().await;
    browser.picture("aggregates.png").await;
    browser.client.clone().close().await.unwrap();
}

#[test]
fn nobody_without_the_key_learns_anything() {
    let running = Running::start();
    let (_page, address) = console(&running, "pki/analyst", ["--server", &running.server]);
    let place = address.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let place = place.parse().unwrap();
    until("page", || {
        get(place, "/").filter(|(status, text)| *status == 200 && text.contains("<main"))
    });
    for path in
        ["/api/identity", "/api/status", "/api/statements", "/api/queries/Readings/results?after=0"]
    {
        let (status, text) = get(place, path).unwrap();
        assert_eq!(status, 403, "{path}: {text}");
        assert!(!text.contains("analyst"), "{path}: {text}");
    }
}
