//! The console in a real browser, over a deployment of processes: a consumer asks and sees results
//! come, an owner sees who learned what, decides, and stops it, and an operator watches. Skipped
//! without chromedriver.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod browser;
mod integrity;
mod owner;
#[cfg(feature = "stats")]
mod scene;
#[cfg(feature = "stats")]
mod statistics;

use crate::common::deployment::{QUERY, RunningSite, until};
use crate::common::{Process, get};
use browser::Browser;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;

/// A query with noise, of which each owner's budget allows three windows.
const NOISY: &str = "CREATE STREAM Alarms AS SELECT SUM(alarms) \
    WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters \
    WITH (epsilon = 1, events = 4)";

fn console(running: &RunningSite, who: &str, whom: [&str; 2]) -> (Process, String) {
    let args = ["console", "--identity", who, whom[0], whom[1]];
    let mut process = Process::start(&mut running.place.command(&args));
    let address =
        process.wait_for("address", |line| line.starts_with("http://").then(|| line.to_owned()));
    (process, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_an_owner_and_an_operator_have_their_pages() {
    let Some(browser) = Browser::open().await else { return };
    let running = RunningSite::start();
    running.place.issue("operator", "watch");
    let (page, address) = console(&running, "pki/analyst", ["--server", &running.server]);
    let devices = consumer(&browser, &running, &address).await;
    let (_page, address) = console(&running, "pki/watch", ["--server", &running.server]);
    operator(&browser, &address).await;
    let controller = format!("https://{}", running.hosts[0].0);
    let (mut owners, address) = console(&running, "pki/owner-a", ["--controller", &controller]);
    owner::sees_and_decides(&browser, &running, &address).await;
    owners.kill();
    browser.says("[role=alert]", "This page has lost its program.").await;
    drop((page, devices));
    browser.client.clone().close().await.unwrap();
}

async fn consumer(browser: &Browser, running: &RunningSite, address: &str) -> Vec<Process> {
    browser.client.goto(address).await.unwrap();
    browser.says("#who", "analyst at https://").await;
    browser.says(".empty", "You have no running query.").await;
    browser.is_for_everybody("results-empty").await;
    browser.presses("a[href='#/ask']").await;
    browser
        .writes("#statement", &QUERY.replace("SUM(reading)", "HISTOGRAM(reading, 0, 1, 5)"))
        .await;
    browser.presses("#ask").await;
    browser.says("#answer [role=alert]", "the schema does not support").await;
    browser.writes("#statement", QUERY).await;
    browser.presses("#explain").await;
    browser.says("#answer pre", "revealed in each window").await;
    let running_now = running.place.ask(&running.server, "SHOW QUERIES");
    let running_now = String::from_utf8_lossy(&running_now.stdout).into_owned();
    assert!(!running_now.contains("Readings"), "it was explained, and not run: {running_now}");
    browser.presses("#ask").await;
    browser.says("#answer .note", "Readings is running.").await;
    browser.is_for_everybody("ask").await;
    browser.writes("#statement", NOISY).await;
    browser.presses("#ask").await;
    browser.says("#answer .note", "Alarms is running.").await;
    let devices = running.feed();
    browser.presses("#answer .note a").await;
    noisy_results(browser).await;
    exact_results(browser, running).await;
    browser.presses("a[href='#/service']").await;
    browser.says(".tile", "3 of 3").await;
    browser.says(".bars", "Opened").await;
    browser.is_for_everybody("service").await;
    devices
}

/// Error bars, as long as the row says, and the noise in words.
async fn noisy_results(browser: &Browser) {
    browser.says("[data-query=Alarms] .tile", "noise: ±").await;
    let bars = "return document.querySelectorAll('[data-column=sum_alarms] .error').length";
    assert!(browser.finds(bars).await.as_u64().unwrap() >= 1, "error bars where there is noise");
    browser.says("[data-query=Alarms] [data-integrity]", "random noise").await;
    browser.is_for_everybody("results-noise").await;
}

async fn exact_results(browser: &Browser, running: &RunningSite) {
    browser.decides("div[@aria-label='Queries']", "Readings").await;
    // Readings of 1, 2 and 3, twice in each window.
    browser.says("[data-query=Readings] .tile:first-child .value", "12").await;
    browser.says("[data-query=Readings] .state", "The last window ended").await;
    let drawn = browser
        .finds("return document.querySelectorAll('[data-query=Readings] svg.chart').length")
        .await;
    assert_eq!(drawn, 3, "a chart for each output, and one of the people");
    let axis = browser.finds("return [...document.querySelectorAll('[data-column=sum_reading] text')].map((e) => e.textContent).join(' ')").await;
    let start = browser.finds("return new Date(Date.now()).getHours() % 12").await;
    let hour = |hour: u64| {
        let begin = format!("{}:", (hour + 11) % 12 + 1);
        axis.as_str().unwrap().split(' ').any(|text| text.starts_with(&begin))
    };
    let start = start.as_u64().unwrap();
    assert!(hour(start) || hour(start + 11), "the axis has times of the reader's clock: {axis}");
    browser
        .says("[data-query=Readings] [data-integrity=plain]", "No signature covers a result.")
        .await;
    browser.is_for_everybody("results").await;
    // What is saved is what the command prints.
    let caught = "window.saved = []; const real = URL.createObjectURL;
        URL.createObjectURL = (blob) => { blob.text().then((text) => saved.push(text)); return real(blob); }";
    browser.finds(caught).await;
    browser.decides("section", "Save as CSV").await;
    browser.decides("section", "Save as JSON").await;
    let saved =
        until_found(browser, "return window.saved.length === 2 ? window.saved : null").await;
    let rows: Vec<Value> = serde_json::from_str(saved[1].as_str().unwrap()).unwrap();
    let known = running.place.rows(&running.server);
    assert!(!rows.is_empty() && known.starts_with(&rows), "{rows:?} of {known:?}");
    let read = csv::Reader::from_reader(saved[0].as_str().unwrap().as_bytes()).into_records();
    let lines: Vec<csv::StringRecord> = read.map(Result::unwrap).collect();
    // Windows may have opened between the two.
    assert!(!lines.is_empty() && lines.len() <= rows.len(), "{lines:?} and {rows:?}");
    for (line, row) in lines.iter().zip(&rows) {
        assert_eq!(&line[0], row["window_start"].to_string());
    }
}

async fn until_found(browser: &Browser, script: &str) -> Value {
    let end = std::time::Instant::now() + crate::common::PATIENCE;
    loop {
        let found = browser.finds(script).await;
        if !found.is_null() {
            return found;
        }
        assert!(std::time::Instant::now() < end, "nothing from {script}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

async fn operator(browser: &Browser, address: &str) {
    browser.client.goto(address).await.unwrap();
    browser.says("#who", "watch at https://").await;
    let hosts = browser.says("[aria-label='3 hosts'] table", "host-c").await;
    assert!(hosts.contains("host-a") && hosts.contains("ago"), "{hosts}");
    browser.says(".tile", "3 of 3").await;
    browser.says(".bars", "Opened").await;
    browser.says("figcaption", "Lag behind the clock").await;
    browser.is_for_everybody("operator").await;
    let refused = browser.finds("return fetch('/api/queries', { headers: { authorization: `Bearer ${sessionStorage.getItem('key')}` } }).then((answer) => answer.status)").await;
    assert_eq!(refused, 404, "an operator reads no results");
}

#[test]
fn nobody_without_the_key_learns_anything() {
    let running = RunningSite::start();
    let (_page, address) = console(&running, "pki/analyst", ["--server", &running.server]);
    let place = address.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let place = place.parse().unwrap();
    until("page", || {
        get(place, "/").filter(|(status, text)| *status == 200 && text.contains("<main"))
    });
    for path in [
        "/api/identity",
        "/api/status",
        "/api/statements",
        "/api/queries",
        "/api/queries/Readings/results?after=0",
    ] {
        let (status, text) = get(place, path).unwrap();
        assert_eq!(status, 403, "{path}: {text}");
        assert!(!text.contains("analyst"), "{path}: {text}");
    }
}

/// What the console answers, with its head.
fn answered(place: &str, method: &str, path: &str, key: &str) -> (String, String) {
    let mut stream = TcpStream::connect(place).unwrap();
    let bearer = format!("Authorization: Bearer {key}\r\nContent-Length: 0");
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {place}\r\n{bearer}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

/// An operator sees what `alpheus doctor` would say, with what fixes it.
#[test]
fn an_operator_sees_what_the_doctor_finds() {
    let running = RunningSite::start();
    running.place.issue("operator", "watch");
    let asked = running.place.ask(&running.server, &format!("{QUERY} BETWEEN 3 AND 100"));
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let (_page, address) = console(&running, "pki/watch", ["--server", &running.server]);
    let (place, key) = address.strip_prefix("http://").unwrap().split_once("/#").unwrap();
    let opened: Value =
        serde_json::from_str(&answered(place, "POST", "/api/session", key).1).unwrap();
    let session = opened["session"].as_str().unwrap();
    let (head, body) = answered(place, "GET", "/api/findings", session);
    assert!(head.starts_with("http/1.1 200"), "{head} {body}");
    let found: Vec<Value> = serde_json::from_str(&body).unwrap();
    let brittle = found.iter().find(|own| own["fault"] == "brittle-plan");
    let brittle = brittle.unwrap_or_else(|| panic!("{body}"));
    assert!(brittle["cause"].as_str().unwrap().starts_with("Readings needs 3 owners"), "{body}");
    assert!(brittle["fix"].as_str().unwrap().contains("DROP STREAM Readings"), "{body}");
    assert_eq!(brittle["what"], "One absent owner ends the windows of a query.");
}

/// The address opens one tab. Anyone who has it later learns nothing, and no answer may be kept, framed or
/// run by another page.
#[test]
fn an_address_opens_one_tab_and_every_answer_is_protected() {
    let running = RunningSite::start();
    let (_page, address) = console(&running, "pki/analyst", ["--server", &running.server]);
    let (place, key) = address.strip_prefix("http://").unwrap().split_once("/#").unwrap();
    let (head, body) = answered(place, "POST", "/api/session", key);
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let opened: Value = serde_json::from_str(&body).unwrap();
    let session = opened["session"].as_str().unwrap();
    let refused =
        |method, path, key| answered(place, method, path, key).0.starts_with("http/1.1 403");
    assert!(refused("POST", "/api/session", key), "a second browser");
    assert!(refused("GET", "/api/identity", key) && refused("GET", "/api/identity", ""));
    let (head, body) = answered(place, "GET", "/api/identity", session);
    assert!(head.starts_with("http/1.1 200") && body.contains("analyst"), "{head} {body}");
    for (path, key) in
        [("/", ""), ("/app.js", ""), ("/api/identity", session), ("/api/identity", "")]
    {
        let (head, _) = answered(place, "GET", path, key);
        for line in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "cache-control: no-store",
            "referrer-policy: no-referrer",
            "x-content-type-options: nosniff",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert_eq!(
                head.lines().filter(|own| *own == line).count(),
                1,
                "{path}: {line}\n{head}"
            );
        }
    }
}
