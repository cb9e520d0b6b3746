//! Accountable statistics as a page.

use super::browser::Browser;
use crate::common;
use crate::common::Process;
use alpheus_accountable_statistics::{
    configuration::SmootherId,
    endorsement::Endorsed,
    messages::{NoResultError, Outcome, PublishedResult},
    publication::Publication,
    tuple::ThresholdKey,
};
use alpheus_crypto::{group::Element, hash::Digest, signed_message::Signed};
use alpheus_node::clock::Clock;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::settings::TlsFiles;
use alpheus_stats_service::{
    card, keys,
    plan::Plan,
    results_reader::{ResultsPage, ShownResult},
};
use alpheus_time::Timestamp;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Aggregates as the only smoother of a deployment has signed them: some with a result, one without, and
/// one that is open. Their ends are signed by the key in `ends_by`.
fn published(folder: &Path, ends_by: &str, sums: &[i128]) -> Vec<u8> {
    let card = card::open(&folder.join("roads/card.json")).unwrap();
    let plan = Plan::open(&folder.join("road.yaml")).unwrap();
    let key_of = |party| keys::signing(&folder.join("roads").join(party).join(keys::SIGNING));
    let (key, ends_by) = (key_of("smoother-1").unwrap(), key_of(ends_by).unwrap());
    let day = 86_400_000_000;
    let noon = Clock::Process.now().0 / day * day + day / 2;
    let full =
        |sum: &i128| PublishedResult::Full { count: 8, sum: *sum, squares: None, uploads: 9 };
    let ends = sums.iter().map(|sum| Some(Ok(full(sum))));
    let ends: Vec<_> = ends.chain([Some(Err(NoResultError::NotFilled)), None]).collect();
    let shown = ends.into_iter().zip(0..).map(|(end, number)| {
        let start = Timestamp(noon + number * 30_000_000);
        let any = ThresholdKey(Element::second_base());
        let definition = Signed::new(&plan.definition(&card.pinned, start, any).unwrap(), &key);
        let mut outcomes = Endorsed::default();
        if let Some(result) = end {
            let outcome = Outcome { aggregate: definition.digest(), result };
            outcomes.add(SmootherId(0), Signed::new(&outcome, &ends_by));
        }
        let mut endorsed = Endorsed::default();
        endorsed.add(SmootherId(0), definition);
        let claimed = end.and_then(Result::err);
        let shown = Publication { definition: endorsed, outcomes, claimed };
        (shown.name().unwrap(), ShownResult::Aggregate(Box::new(shown)))
    });
    let mut results: Vec<(Digest, ShownResult)> = shown.collect();
    results.sort_by_key(|(name, _)| *name);
    let results = results.into_iter().map(|(_, shown)| shown).collect();
    postcard::to_allocvec(&ResultsPage { results, next: None }).unwrap()
}

/// An aggregator by hand, and what it shows.
type RowsPage = Arc<Mutex<Vec<u8>>>;

/// A deployment in a folder, whose aggregator is here.
fn deployment(folder: &Path) -> (Trigger, RowsPage) {
    let run = |script: &str| common::run_script(folder, script);
    run("umask 077; alpheus ca init pki; alpheus ca issue pki --role aggregator --name aggregator");
    let identity = folder.join("pki/aggregator");
    let identity = IdentityFolder::open(&identity, Role::Aggregator).unwrap();
    let tls = TlsFiles { client_ca: None, ..identity.tls() };
    let shown = RowsPage::default();
    let rows = Arc::clone(&shown);
    let rows = axum::routing::get(move || std::future::ready(rows.lock().unwrap().clone()));
    let routes = axum::Router::new().route("/v1/rows", rows);
    let (serving, aggregator) = common::route_server::serve(&tls, routes);
    let nobody = "https://localhost:9";
    run(&format!(
        "alpheus stats init roads --threshold 1 --min-accounts 2 --wasteful-accounts 0 --authority pki/ca.pem --registrar {nobody} --smoother {nobody},{nobody} --aggregator {aggregator}"
    ));
    std::fs::write(folder.join("road.yaml"), common::road(&[])).unwrap();
    (serving, shown)
}

/// An aggregator that signs results itself: they are left out, and the command fails.
#[tokio::test(flavor = "multi_thread")]
async fn results_of_a_lying_aggregator_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (_serving, shown) = deployment(folder.path());
    let results = |ends_by: &str| {
        *shown.lock().unwrap() = published(folder.path(), ends_by, &[4817]);
        let mut command = common::alpheus(["stats", "results", "road.yaml"]);
        let output = command.args(["--card", "roads/card.json"]).current_dir(folder.path());
        let output = output.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, honest, said) = results("smoother-1");
    assert!(code == Some(0) && honest.contains("8 samples, mean 60.21"), "{honest}\n{said}");
    let (code, lies, said) = results("aggregator");
    assert!(code.is_some_and(|code| code != 0), "{lies}\n{said}");
    assert!(said.contains("results that its smoothers have not signed"), "{said}");
    assert!(!lies.contains("60.21") && lies.lines().count() < honest.lines().count(), "{lies}");
}

/// Opens the page of an aggregator that shows these results.
pub(super) async fn open_page(
    browser: &Browser,
    folder: &Path,
    sums: &[i128],
) -> (Process, Trigger) {
    let (serving, shown) = deployment(folder);
    *shown.lock().unwrap() = published(folder, "smoother-1", sums);
    let mut page =
        common::alpheus(["console", "--statistics", "roads/card.json", "--plan", "road.yaml"]);
    let mut page = Process::start(page.current_dir(folder));
    let address =
        page.wait_for("address", |line| line.starts_with("http://").then(|| line.to_owned()));
    browser.client.goto(&address).await.unwrap();
    (page, serving)
}

/// Aggregates of a deployment, as an aggregator by hand says them.
#[tokio::test(flavor = "multi_thread")]
async fn anybody_sees_aggregates_and_why_some_have_no_result() {
    let Some(browser) = Browser::open().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let _serving = open_page(&browser, folder.path(), &[4817]).await;
    browser.says("h1 + .lead", "speed/road, in the unit of its plan").await;
    let shown = browser.says("[aria-label^=Aggregates] table", "60.21").await;
    assert!(shown.contains("result") && shown.contains("open"), "{shown}");
    let failed = browser.says("#failed table", "Not all slots were filled").await;
    assert!(failed.contains('1'), "{failed}");
    browser.says("[role=status]", "1 open, 1 with a result, 1 without.").await;
    browser.says("[data-integrity]", "signed by 1 of 1 smoother;").await;
    assert_eq!(browser.finds("return document.querySelectorAll('svg.chart').length").await, 1);
    browser.is_for_everybody("statistics").await;
    browser.client.clone().close().await.unwrap();
}
