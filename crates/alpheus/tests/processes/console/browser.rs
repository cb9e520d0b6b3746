//! A real browser (headless Chromium, driven over WebDriver), and what every page must be in it.

use crate::common::deployment::free;
use crate::common::{PATIENCE, Process};
use alpheus_test_support::skip;
use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::elements::Element;
use fantoccini::key::Key;
use fantoccini::{Client, ClientBuilder, Locator};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Where `make browser` leaves axe-core.
const AXE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/axe/axe.min.js");
/// A phone and a desk, in pixels.
const WIDTHS: [u32; 2] = [360, 1280];
const SCHEMES: [&str; 2] = ["light", "dark"];

/// What axe-core finds that keeps people out, with the first elements of each.
const FAULTS: &str = "const done = arguments[0];
    axe.run(document).then(({ violations }) => done(violations
      .filter((found) => ['serious', 'critical'].includes(found.impact))
      .map((found) => [found.id, ...found.nodes.slice(0, 3).map((node) => node.html)])),
      (error) => done(String(error)))";

/// How many can have the focus; those in closed details, and behind a dialog, cannot.
const FOCUSABLE: &str = "const root = document.querySelector('dialog[open]') ?? document;
    return [...root.querySelectorAll(
      'a[href], button, input, select, textarea, summary, [tabindex=\"0\"]')]
    .filter((one) => !one.disabled && one.checkVisibility({ visibilityProperty: true })).length";

/// Takes the focus away, as on a page that has just come.
const UNFOCUS: &str = "window.seen = new Set(); window.last = undefined;
    const start = document.querySelector('dialog[open]') ?? document.body;
    start.tabIndex = -1;
    start.focus();
    start.removeAttribute('tabindex');
    scrollTo(0, 0)";

/// What has the focus, whether one sees that it has, and whether it had it before. Some have
/// several stops, such as a date.
const FOCUS: &str = "const one = document.activeElement;
    if (!one || one === document.body) return null;
    const again = window.seen.has(one) && window.last !== one;
    const first = !window.seen.has(one);
    window.seen.add(one);
    window.last = one;
    const style = getComputedStyle(one);
    const visible = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
    return [one.outerHTML.slice(0, 120), visible, again, first]";

/// Shows two pictures side by side, at the ends of the window.
const BESIDE: &str = "const done = arguments[2];
    document.body.style = 'margin: 0; display: flex; justify-content: space-between';
    const shown = [arguments[0], arguments[1]].map((bytes) => {
      const picture = new Image();
      picture.src = URL.createObjectURL(new Blob([new Uint8Array(bytes)], { type: 'image/png' }));
      document.body.append(picture);
      return picture.decode();
    });
    Promise.all(shown).then(() => done(true))";

/// A browser and what drives it.
pub(super) struct Browser {
    pub(super) client: Client,
    driver: (String, Process),
    session: String,
    axe: String,
}

impl Browser {
    /// None where no browser can be driven on this machine, or axe-core is missing.
    pub(super) async fn open() -> Option<Browser> {
        if !skip::has_program("chromedriver") {
            return None;
        }
        let Ok(axe) = std::fs::read_to_string(AXE) else {
            skip::skip("there is no target/axe/axe.min.js (`make browser` fetches it)");
            return None;
        };
        let address = free();
        let port = address.rsplit_once(':').unwrap().1.to_owned();
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
        // On a loaded machine a look at a page takes a while.
        let patience = PATIENCE.as_millis();
        let options = json!({
            "goog:chromeOptions": { "args": arguments },
            "timeouts": { "script": patience, "pageLoad": patience },
        });
        let wanted = options.as_object().unwrap().clone();
        let client = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(wanted)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap();
        let session = client.session_id().await.unwrap().unwrap();
        Some(Browser { client, driver: (format!("127.0.0.1:{port}"), driver), session, axe })
    }

    /// Gives Chromium a command of its own protocol, which WebDriver has no word for.
    fn command(&self, name: &str, parameters: &Value) {
        let body = json!({ "cmd": name, "params": parameters }).to_string();
        let (address, path) =
            (&self.driver.0, format!("/session/{}/goog/cdp/execute", self.session));
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        // It keeps the connection, so its end is not waited for.
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{name}: {answer}");
    }

    /// Shows pages at this size and in this colour scheme.
    fn looks(&self, (width, height): (u32, u32), scheme: &str) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.command("Emulation.setDeviceMetricsOverride", &size);
        let scheme = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.command("Emulation.setEmulatedMedia", &scheme);
    }

    /// Waits until the page says this.
    pub(super) async fn says(&self, css: &str, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
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
            assert!(Instant::now() < end, "no {text:?} at {css}:\n{page}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the page has this.
    async fn found(&self, what: Locator<'_>) -> Element {
        self.client.wait().at_most(PATIENCE).for_element(what).await.unwrap()
    }

    /// Waits until the page has this, and presses Enter on it, as people without a mouse do.
    pub(super) async fn presses(&self, css: &str) {
        self.found(Locator::Css(css)).await.send_keys(&Key::Enter.to_string()).await.unwrap();
    }

    /// Presses the button of this text.
    pub(super) async fn decides(&self, within: &str, text: &str) {
        let path = format!("//{within}//button[starts-with(normalize-space(), '{text}')]");
        self.found(Locator::XPath(&path)).await.send_keys(&Key::Enter.to_string()).await.unwrap();
    }

    /// Ticks a box by keyboard.
    pub(super) async fn ticks(&self, css: &str) {
        self.found(Locator::Css(css)).await.send_keys(" ").await.unwrap();
    }

    pub(super) async fn writes(&self, css: &str, text: &str) {
        let area = self.found(Locator::Css(css)).await;
        area.clear().await.unwrap();
        area.send_keys(text).await.unwrap();
    }

    /// What a script gives.
    pub(super) async fn finds(&self, script: &str) -> Value {
        self.client.execute(script, vec![]).await.unwrap()
    }

    /// The page in front is for everybody: on a phone and on a desk, in light and dark, by eye, by
    /// ear and by keyboard. Nothing came from elsewhere.
    pub(super) async fn is_for_everybody(&self, name: &str) {
        for (width, scheme) in
            WIDTHS.iter().flat_map(|width| SCHEMES.map(|scheme| (*width, scheme)))
        {
            self.looks((width, 900), scheme);
            let wide = self.finds("return document.documentElement.scrollWidth - innerWidth").await;
            assert!(wide.as_i64().unwrap() <= 0, "{name} scrolls by {wide} at {width}");
            let dark = self.finds("return getComputedStyle(document.body).backgroundColor").await;
            let dark = dark.as_str().unwrap().contains("(1");
            assert_eq!(dark, scheme == "dark", "{name} in {scheme}");
            self.finds(&self.axe).await;
            let faults = self.client.execute_async(FAULTS, vec![]).await.unwrap();
            assert_eq!(faults, json!([]), "{name} at {width}, {scheme}");
            self.picture(&format!("{name}-{width}-{scheme}.png"), width, scheme).await;
        }
        self.goes_by_keyboard(name).await;
        let foreign = self
            .finds(
                "return performance.getEntriesByType('resource').map((e) => e.name)
                 .filter((name) => !name.startsWith(location.origin))",
            )
            .await;
        assert_eq!(foreign, json!([]));
        let bare = self.finds("return document.querySelectorAll('table:not(:has(caption)), th:not([scope])').length").await;
        assert_eq!(bare, 0);
    }

    /// The tabulator reaches all that can be used, shows where it is, and comes to an end. On a page,
    /// the first stop leads past the navigation. A page that changes on the way is walked again.
    async fn goes_by_keyboard(&self, name: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let (reached, wanted) = self.walks_by_keyboard(name).await;
            if reached >= wanted {
                return;
            }
            let why = || format!("{name}: the tabulator reached {reached} of {wanted}");
            assert!(Instant::now() < end, "{}", why());
        }
    }

    /// How many stops the tabulator reaches, and how many there are.
    async fn walks_by_keyboard(&self, name: &str) -> (u64, u64) {
        self.finds(UNFOCUS).await;
        let has_dialog = self.finds("return document.querySelector('dialog[open]') !== null").await;
        let wanted = self.finds(FOCUSABLE).await.as_u64().unwrap();
        let mut reached = 0;
        for _ in 0..4 * wanted + 8 {
            let key = char::from(Key::Tab);
            let tab = KeyActions::new("keys".to_owned())
                .then(KeyAction::Down { value: key })
                .then(KeyAction::Up { value: key });
            self.client.perform_actions(tab).await.unwrap();
            let Value::Array(focus) = self.finds(FOCUS).await else { break };
            let [Value::String(html), visible, again, first] = &focus[..] else { break };
            if *again == true {
                break;
            }
            assert!(has_dialog == true || reached > 0 || html.contains("skip"), "{name}: {html}");
            assert!(*visible == true, "{name}: no visible focus on {html}");
            reached += u64::from(*first == true);
        }
        (reached, wanted)
    }

    /// Keeps a picture of the whole page for anyone who wants to see it.
    async fn picture(&self, name: &str, width: u32, scheme: &str) {
        let Ok(folder) = std::env::var("CONSOLE_PICTURES") else { return };
        let height = self.finds("return document.documentElement.scrollHeight").await;
        let height = u32::try_from(height.as_u64().unwrap()).unwrap().clamp(400, 3000);
        std::fs::write(Path::new(&folder).join(name), self.shot((width, height), scheme).await)
            .unwrap();
        self.looks((width, 900), scheme);
    }

    /// The page at this size, as a picture.
    async fn shot(&self, size: (u32, u32), scheme: &str) -> Vec<u8> {
        self.looks(size, scheme);
        tokio::time::sleep(Duration::from_millis(300)).await;
        self.client.screenshot().await.unwrap()
    }

    /// The top of the page at this size, with no focus in it.
    pub(super) async fn top(&self, size: (u32, u32), scheme: &str) -> Vec<u8> {
        self.finds("document.activeElement?.blur(); scrollTo(0, 0)").await;
        self.shot(size, scheme).await
    }

    /// Two pictures of this size together, side by side.
    pub(super) async fn beside(&self, pictures: [&[u8]; 2], size: (u32, u32)) -> Vec<u8> {
        self.client.goto("about:blank").await.unwrap();
        self.client
            .execute_async(BESIDE, vec![json!(pictures[0]), json!(pictures[1])])
            .await
            .unwrap();
        self.shot(size, "light").await
    }
}
