//! Reads maps whose keys are known in advance.

use super::{ContentError, DocumentError, Node, Value};

/// The entries of a map that has only known keys.
pub(crate) struct Fields<'a> {
    node: &'a Node,
    entries: &'a [(String, Node)],
}

impl<'a> Fields<'a> {
    /// The map at `node`. A key that is not `known` is an error.
    pub(crate) fn of(
        node: &'a Node,
        known: &'static [&'static str],
    ) -> Result<Fields<'a>, DocumentError> {
        let entries = node.map()?;
        for (key, value) in entries {
            if !known.contains(&key.as_str()) {
                return Err(value.error(ContentError::UnknownKey { key: key.clone(), known }));
            }
        }
        Ok(Fields { node, entries })
    }

    /// The value of a key, or `None` if it is missing or null.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Node> {
        let found = self.entries.iter().find(|(name, _)| name == key).map(|(_, value)| value);
        found.filter(|value| value.value != Value::Null)
    }

    /// The value of a required key.
    pub(crate) fn required(&self, key: &'static str) -> Result<&'a Node, DocumentError> {
        self.get(key).ok_or_else(|| self.node.error(ContentError::MissingKey { key }))
    }

    /// The value of a key as parsed by `read`, or `default` if it is missing.
    pub(crate) fn read_or<T>(
        &self,
        key: &str,
        default: T,
        read: impl FnOnce(&'a Node) -> Result<T, DocumentError>,
    ) -> Result<T, DocumentError> {
        self.get(key).map_or(Ok(default), read)
    }

    /// Rejects a key that cannot be used with something else.
    pub(crate) fn refuse(
        &self,
        key: &'static str,
        with: &'static str,
    ) -> Result<(), DocumentError> {
        match self.get(key) {
            Some(node) => Err(node.error(ContentError::Conflict { key, with })),
            None => Ok(()),
        }
    }

    /// The map itself, for errors about the whole map.
    pub(crate) fn node(&self) -> &'a Node {
        self.node
    }
}
