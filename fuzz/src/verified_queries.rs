//! What a consumer reads of a verified query, from a service that says anything: receipts, and files of
//! `alpheus verify` with plans and rows. Those who make them have no controller's key.

use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::receipt::WindowReceipt;
use alpheus_policy::ids::PlanId;
use alpheus_streams::query::receipts::open_plan;
use alpheus_streams::query::verification::{Evidence, NotedQuery, Trust, Verifier};
use alpheus_time::{Timestamp, Window};
use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::json;
use std::sync::{Arc, LazyLock};

/// The first of the vectors, whose receipt holds.
#[derive(Deserialize)]
struct Case {
    authority: String,
    service: String,
    announcement: String,
    receipt: String,
    start: u64,
    end: u64,
}

/// A window that four controllers have signed.
struct Honest {
    case: Case,
    deployment: Deployment,
    announced: Arc<AnnouncedPlan>,
    window: Window,
    words: Vec<u64>,
}

static HONEST: LazyLock<Option<Honest>> = LazyLock::new(|| {
    let text = include_str!("../../vectors/receipts/v2/receipts.json");
    let case = serde_json::from_str::<Vec<Case>>(text).ok()?.into_iter().next()?;
    let bytes = |digits: &str| HEXLOWER.decode(digits.as_bytes()).ok();
    let authority = VerifyingKey::from_bytes(bytes(&case.authority)?.try_into().ok()?).ok()?;
    let service: Signed<Certificate> = postcard::from_bytes(&bytes(&case.service)?).ok()?;
    let deployment = Deployment::new(authority, &service).ok()?;
    let announced = open_plan(&case.announcement, &deployment).ok()?;
    let window = Window { start: Timestamp(case.start), end: Timestamp(case.end) };
    let receipt = WindowReceipt::from_bytes(&bytes(&case.receipt)?).ok()?;
    let words = receipt.verify(&announced, None, window).ok()?.words().to_vec();
    Some(Honest { case, deployment, announced, window, words })
});

/// A receipt is checked against a plan: its own list's, or the one that it may be of. It holds for no other row than
/// the one that was signed.
pub fn signed_row(data: &[u8]) {
    let Some(honest) = HONEST.as_ref() else { return };
    let Ok(receipt) = WindowReceipt::from_bytes(data) else { return };
    let checked = match receipt.listed_plan(&honest.deployment) {
        None => receipt.verify(&honest.announced, None, honest.window),
        Some(Ok(announced)) => receipt.verify(&announced, None, honest.window),
        Some(Err(error)) => {
            return assert!(!error.to_string().is_empty(), "an error has a message");
        }
    };
    match checked {
        Ok(row) => assert_eq!(row.words(), honest.words, "nobody has signed another row"),
        Err(error) => assert!(!error.to_string().is_empty(), "an error has a message"),
    }
}

/// What the consumer of the file may have asked for.
const STATEMENT: &str = "CREATE STREAM sums AS SELECT COUNT(x) \
    WINDOW TUMBLING (SIZE 10 SECONDS) FROM Test WITH (integrity = 'verified')";

/// A file of `alpheus verify` is read and checked, no matter who has made it. A row that holds is of the plan and the window
/// that somebody has signed.
pub fn verification(data: &[u8]) {
    let Some(honest) = HONEST.as_ref() else { return };
    let Ok(text) = std::str::from_utf8(data) else { return };
    let evidence = match Evidence::from_json(text) {
        Ok(evidence) => evidence,
        Err(error) => return assert!(!error.to_string().is_empty(), "an error has a message"),
    };
    let noted = NotedQuery { sql: STATEMENT.to_owned(), plans: None };
    for noted in [None, Some(noted)] {
        let trust = Trust { deployment: &honest.deployment, noted, revoked: None };
        let mut verifier = Verifier::new(&evidence, trust);
        for row in &evidence.rows {
            if let Ok(Some(holds)) = verifier.verify(row) {
                assert!(holds.starts_with("signed by "), "{holds}");
                let start = honest.window.start.0 / 1000;
                assert_eq!(row.get("window_start"), Some(&start.into()), "nobody signed another");
                let _ = verifier.new_meaning(row);
            }
        }
        for gap in verifier.withheld() {
            assert!(!gap.to_string().is_empty(), "a gap is named");
        }
    }
}

/// A file whose one row holds, and one with rows that do not.
#[must_use]
pub fn verifications() -> Vec<Vec<u8>> {
    HONEST.as_ref().map_or_else(Vec::new, |honest| {
        let row = |plan: &PlanId, start: u64, population: u32| {
            json!({
                "window_start": start / 1000, "window_end": honest.window.end.0 / 1000,
                "population": population, "silent": 0, "excluded": 0, "status": "ok",
                "integrity": "verified", "plan": plan.to_string(),
            })
        };
        let (plan, start) = (honest.announced.id(), honest.window.start.0);
        let file = |rows: serde_json::Value| {
            let (plans, receipts) = ([&honest.case.announcement], [&honest.case.receipt]);
            let file = json!({
                "format": Evidence::FORMAT, "query": "sums", "schema": null, "read": 0,
                "running": true, "plans": plans, "receipts": receipts, "rows": rows,
            });
            file.to_string().into_bytes()
        };
        let mut late = row(&plan, start, 4);
        late["window_start"] = u64::MAX.into();
        let closed = json!({ "window_start": start / 1000 + 20_000, "status": "too few" });
        let other = row(&PlanId([1; 32]), start, 4);
        let good = json!([row(&plan, start, 4)]);
        vec![file(good), file(json!([row(&plan, start, 5), late, closed, other])), file(json!([]))]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else the targets test nothing.
    #[test]
    fn the_first_seeds_hold() {
        let honest = HONEST.as_ref().unwrap();
        let files = verifications();
        let evidence = Evidence::from_json(std::str::from_utf8(&files[0]).unwrap()).unwrap();
        let trust = Trust { deployment: &honest.deployment, noted: None, revoked: None };
        let held = Verifier::new(&evidence, trust).verify(&evidence.rows[0]);
        assert!(held.as_ref().is_ok_and(Option::is_some), "{held:?}");
    }
}
