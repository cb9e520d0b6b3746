//! What the page of results says of rows that controllers sign, and of one that they did not.

use super::browser::Browser;
use super::console;
use crate::bounded;
use crate::common::deployment::{QUERY, Running, Site};
use alpheus_stream_runtime::results::Row;

/// What somebody publishes in the place of the sum.
const INVENTED: &str = "918273";

#[tokio::test(flavor = "multi_thread")]
async fn rows_say_who_signed_them_and_one_that_nobody_signed_is_not_shown() {
    let Some(browser) = Browser::open().await else { return };
    let mut running = Running::start_in(Site::with_ticks(), |_, api| api.to_owned());
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
    // The service goes, and comes back with a row that nobody has signed.
    invents(&mut running);
    let refused = "refused: the row differs from what the controllers have signed";
    browser.says("[data-query=Readings] table", refused).await;
    let shown = format!("return document.body.textContent.includes('{INVENTED}')");
    assert_eq!(browser.finds(&shown).await, false, "a number that nobody signed is shown");
    asks(&running, "DROP STREAM Readings");
    asks(&running, bounded::QUERY);
    browser.presses("a[href='#/ask']").await;
    browser.presses("a[href='#/results']").await;
    let mark = browser.says("[data-query=Loads] [data-integrity=bounded]", "Checked").await;
    assert!(mark.contains("as much as its owners' bounds allow, and no further"), "{mark}");
    browser.says("[data-query=Loads] table", bounded::BOUNDED).await;
    browser.is_for_everybody("results-bounded").await;
    drop((page, devices));
    browser.client.clone().close().await.unwrap();
}

fn asks(running: &Running, sql: &str) {
    let asked = running.place.ask(&running.server, sql);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
}

/// The service publishes another number for a window that has a result.
fn invents(running: &mut Running) {
    running.publish(|stored| {
        let opened = |row: &&Row| row.status == "ok" && row.population == 3;
        let mut other = stored.iter().find(opened).unwrap().clone();
        other.outputs[0].1 = INVENTED.into();
        vec![other]
    });
}
