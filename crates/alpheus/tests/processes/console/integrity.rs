//! What the page of results says of rows that controllers sign.

use super::browser::Browser;
use super::console;
use crate::common::deployment::{QUERY, Running, Site};

#[tokio::test(flavor = "multi_thread")]
async fn rows_say_who_signed_them() {
    let Some(browser) = Browser::open().await else { return };
    let running = Running::start_in(Site::with_ticks(), |_, api| api.to_owned());
    asks(&running, &format!("{QUERY} WITH (integrity = 'verified', alpha = '1/3')"));
    let (page, address) = console(&running, "pki/analyst", ["--server", &running.server]);
    browser.client.goto(&address).await.unwrap();
    let mark = browser.says("[data-query=Readings] [data-integrity=verified]", "Checked").await;
    assert!(mark.contains("A row that differs is refused"), "{mark}");
    assert!(mark.contains("all controllers of its window, any of which could"), "{mark}");
    let devices = running.feed();
    let signed = "signed by 3 controllers, any of which could have changed it";
    browser.says("[data-query=Readings] table", signed).await;
    browser.says("[data-query=Readings] .tile:first-child .value", "12").await;
    browser.is_for_everybody("results-verified").await;
    drop((page, devices));
    browser.client.clone().close().await.unwrap();
}

fn asks(running: &Running, sql: &str) {
    let asked = running.place.ask(&running.server, sql);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
}
