//! Settings of the server of tables: `table.…` in the settings file, `ALPHEUS_TABLE__…` in the
//! environment, or flags.

use alpheus_node::settings::Part;
use serde::Deserialize;

/// Settings of the server of tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct TableSettings {
    /// The number of bytes that an owner may store.
    pub quota_bytes: Option<u64>,
}

impl Part for TableSettings {
    const KEY: &'static str = "table";
}
