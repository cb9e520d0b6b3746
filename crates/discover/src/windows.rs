//! The lengths of windows that a first query may have.

/// A length of windows: in schemas, in queries, and in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub name: &'static str,
    pub sql: &'static str,
    pub seconds: i64,
}

pub(crate) const WINDOWS: [Window; 7] = [
    Window { name: "10s", sql: "10 SECONDS", seconds: 10 },
    Window { name: "1min", sql: "1 MINUTE", seconds: 60 },
    Window { name: "10min", sql: "10 MINUTES", seconds: 600 },
    Window { name: "1hr", sql: "1 HOUR", seconds: 3600 },
    Window { name: "1d", sql: "1 DAY", seconds: 86_400 },
    Window { name: "7d", sql: "7 DAYS", seconds: 604_800 },
    Window { name: "28d", sql: "28 DAYS", seconds: 2_419_200 },
];
