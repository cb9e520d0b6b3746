//! Data contracts of other standards, and metrics of OpenTelemetry.

use alpheus_otlp::capture::{Survey, requests};
use alpheus_otlp::draft::{DraftError, draft};
use alpheus_standards::ImportError;
use std::collections::HashSet;

/// A contract becomes files that their parsers read, and no part of it is in both lists.
pub fn contract(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match alpheus_standards::import(text, None) {
        Ok(import) => {
            let left: HashSet<&str> =
                import.report.not_carried.iter().map(|entry| entry.path.as_str()).collect();
            assert!(import.report.carried.iter().all(|entry| !left.contains(entry.path.as_str())));
        }
        Err(error) => assert!(!matches!(error, ImportError::Invalid { .. }), "{error}"),
    }
}

/// Captured metrics become files that their parsers read; each point either has amounts or a reason.
pub fn metrics(data: &[u8]) {
    let Ok(requests) = requests(data) else { return };
    let mut seen = Survey::default();
    requests.iter().for_each(|request| seen.look(request));
    match draft(&seen, "Fuzz") {
        Ok(draft) => assert!(!draft.mapping.metrics.is_empty()),
        Err(error) => assert!(matches!(error, DraftError::Nothing), "{error}"),
    }
}
