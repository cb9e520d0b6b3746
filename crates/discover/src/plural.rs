//! Numbers of things in sentences.

/// `1 row`, or `7 rows`.
#[must_use]
pub fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// The first word for one thing, else the second: `is` and `are`.
pub(crate) fn verb<'w>(count: u64, one: &'w str, many: &'w str) -> &'w str {
    if count == 1 { one } else { many }
}
