//! Reading a map whose keys are known in advance.

use super::{DocumentError, Node, Problem, Value};

/// The entries of a map, of which only known keys stand.
pub(crate) struct Fields<'a> {
    node: &'a Node,
    entries: &'a [(String, Node)],
}

impl<'a> Fields<'a> {
    /// The map at `node`; a key that is not `known` is refused.
    pub(crate) fn of(
        node: &'a Node,
        known: &'static [&'static str],
    ) -> Result<Fields<'a>, DocumentError> {
        let entries = node.map()?;
        for (key, value) in entries {
            if !known.contains(&key.as_str()) {
                return Err(value.error(Problem::UnknownKey { key: key.clone(), known }));
            }
        }
        Ok(Fields { node, entries })
    }

    /// The value of a key; none where it does not stand or is null.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Node> {
        let found = self.entries.iter().find(|(name, _)| name == key).map(|(_, value)| value);
        found.filter(|value| value.value != Value::Null)
    }

    /// The value of a key that must stand.
    pub(crate) fn required(&self, key: &'static str) -> Result<&'a Node, DocumentError> {
        self.get(key).ok_or_else(|| self.node.error(Problem::MissingKey { key }))
    }

    /// What `read` makes of a key's value, or `default` where it does not stand.
    pub(crate) fn read_or<T>(
        &self,
        key: &str,
        default: T,
        read: impl FnOnce(&'a Node) -> Result<T, DocumentError>,
    ) -> Result<T, DocumentError> {
        self.get(key).map_or(Ok(default), read)
    }

    /// Refuses a key that does not go with something else.
    pub(crate) fn refuse(
        &self,
        key: &'static str,
        with: &'static str,
    ) -> Result<(), DocumentError> {
        match self.get(key) {
            Some(node) => Err(node.error(Problem::Conflict { key, with })),
            None => Ok(()),
        }
    }

    /// The map itself, for errors about it as a whole.
    pub(crate) fn node(&self) -> &'a Node {
        self.node
    }
}
