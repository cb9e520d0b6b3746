//! How many controllers the lists of epochs had, by group.

use alpheus_policy::ids::SchemaId;
use serde::{Deserialize, Serialize};

/// How many controllers the last lists of a group had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupLists {
    /// The schema.
    pub schema: SchemaId,
    /// The metadata of the group, ascending.
    pub group: Vec<(String, String)>,
    /// How many controllers, oldest first.
    pub sizes: Vec<u32>,
}
