//! Data contracts of other standards.

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
