//! All targets in one program, so that one build and one link serve all.

use std::sync::OnceLock;

/// A check, by the name of its target.
type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("access_pass", crate::access_pass),
    ("annotation", crate::annotation),
    ("backup", crate::backup),
    ("board", crate::board),
    ("bounded", crate::bounded),
    ("certificate", crate::certificate),
    ("contract", crate::contract),
    ("credential", crate::credential),
    ("discover", crate::discover),
    ("document_json", crate::document_json),
    ("document_yaml", crate::document_yaml),
    ("frame", crate::frame),
    ("id_token", crate::id_token),
    ("job_message", crate::job_message),
    ("messages", crate::messages),
    ("metrics", crate::metrics),
    ("pairing_table", crate::pairing_table),
    ("peer_bodies", crate::peer_bodies),
    ("policies", crate::policies),
    ("proof", crate::proof),
    ("query", crate::query),
    ("raw_access", crate::raw_access),
    ("receipt", crate::receipt),
    ("rows", crate::rows),
    ("saved_write", crate::saved_write),
    ("schema_avsc", crate::schema_avsc),
    ("schema_yaml", crate::schema_yaml),
    ("sealed_sum", crate::sealed_sum),
    ("signed_row", crate::signed_row),
    ("statistics", crate::statistics),
    ("stream_bodies", crate::stream_bodies),
    ("table", crate::table),
    ("table_bodies", crate::table_bodies),
    ("tick_frame", crate::tick_frame),
    ("verification", crate::verification),
];

/// Runs the check that the environment names in `ALPHEUS_FUZZ_TARGET`.
///
/// # Panics
/// If it names none.
#[expect(clippy::panic, reason = "a fuzzer's way to fail")]
pub fn named(data: &[u8]) {
    static CHOSEN: OnceLock<Option<Target>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let name = std::env::var("ALPHEUS_FUZZ_TARGET").ok()?;
        TARGETS.iter().copied().find(|(target, _)| *target == name)
    });
    match chosen {
        Some((_, check)) => check(data),
        None => panic!("ALPHEUS_FUZZ_TARGET must name a target"),
    }
}
