//! What the page of results says of rows that controllers sign, and of one that they did not.

use super::browser::Browser;
use super::console;
use crate::bounded;
use crate::common::deployment::{QUERY, RunningSite, Site};
use alpheus_stream_runtime::results::Row;

/// What somebody publishes in the place of the sum.
const INVENTED: &str = "918273";

#[tokio::test(flavor = "multi_thread")]
async fn rows_say_who_signed_them_and_one_that_nobody_signed_is_not_shown() {
    let Some(browser) = Browser::open().await else { return };
    let mut running = RunningSite::start_in(Site::with_ticks(), |_, api| api.to_owned());
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
    is_refused(&browser).await;
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

/// The service refuses to give more rows. The page says why, and does not ask for ever.
async fn is_refused(browser: &Browser) {
    let refuses = "const own = window.fetch; window.own = own; window.asked = 0;
        const refusal = () => new Response('{\"detail\": \"these rows are not yours\"}', { status: 403 });
        window.fetch = (path, more) => String(path).includes('/results?')
          ? (window.asked += 1, Promise.resolve(refusal())) : own(path, more);";
    browser.finds(refuses).await;
    let why = browser.says("[data-query=Readings] [role=alert]", "No more rows are read").await;
    assert!(why.contains("these rows are not yours"), "{why}");
    assert_eq!(browser.finds("return window.asked").await, 1);
    browser.finds("window.fetch = window.own").await;
}

fn asks(running: &RunningSite, sql: &str) {
    let asked = running.place.ask(&running.server, sql);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
}

/// The service publishes another number for a window that has a result.
fn invents(running: &mut RunningSite) {
    running.publish(|stored| {
        let opened = |row: &&Row| row.status == "ok" && row.population == 3;
        let mut other = stored.iter().find(opened).unwrap().clone();
        other.outputs[0].1 = INVENTED.into();
        vec![other]
    });
}
