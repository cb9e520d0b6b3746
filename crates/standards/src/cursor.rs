//! A place in a contract: a part and the path that leads to it.

use crate::tree::Tree;

/// Keys that name what the key `value` beside them says.
pub(crate) const NAMING: &[&str] = &["property", "key", "name"];

/// A part of a contract, with its path.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    tree: &'a Tree,
    path: String,
}

/// Something that a contract says, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause<T> {
    /// What it says.
    pub value: T,
    /// The path to it.
    pub at: String,
}

impl<'a> Cursor<'a> {
    /// The whole contract.
    #[must_use]
    pub fn root(tree: &'a Tree) -> Cursor<'a> {
        Cursor { tree, path: String::new() }
    }

    /// The part itself.
    #[must_use]
    pub fn tree(&self) -> &'a Tree {
        self.tree
    }

    /// Keys and item numbers from the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of a key; `None` if it is missing or null.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Cursor<'a>> {
        let tree = self.tree.get(key).filter(|tree| **tree != Tree::Null)?;
        Some(Cursor { tree, path: self.below(key) })
    }

    /// The value at the end of several keys.
    #[must_use]
    pub fn reach(&self, keys: &[&str]) -> Option<Cursor<'a>> {
        keys.iter().try_fold(self.clone(), |at, key| at.get(key))
    }

    /// The first of these keys that has a value.
    #[must_use]
    pub fn first(&self, keys: &[&str]) -> Option<Cursor<'a>> {
        keys.iter().find_map(|key| self.get(key))
    }

    /// The name and the value that a part such as `{property: pii, value: true}` states, which says what
    /// `pii: true` says.
    #[must_use]
    pub fn named_value(&self) -> Option<(Clause<String>, Cursor<'a>)> {
        Some((self.first(NAMING)?.noted()?, self.get("value")?))
    }

    /// The items of a list; none of anything else.
    #[must_use]
    pub fn items(&self) -> Vec<Cursor<'a>> {
        let Tree::List(items) = self.tree else { return Vec::new() };
        let at = |(place, tree)| Cursor { tree, path: format!("{}[{place}]", self.path) };
        items.iter().enumerate().map(at).collect()
    }

    /// The items of a list, or the single part that stands in place of one.
    #[must_use]
    pub fn one_or_items(&self) -> Vec<Cursor<'a>> {
        match self.tree {
            Tree::List(_) => self.items(),
            _ => vec![self.clone()],
        }
    }

    /// The entries of a map; none of anything else.
    #[must_use]
    pub fn entries(&self) -> Vec<(&'a str, Cursor<'a>)> {
        let Tree::Map(entries) = self.tree else { return Vec::new() };
        let at = |(key, tree): &'a (String, Tree)| {
            (key.as_str(), Cursor { tree, path: self.below(key) })
        };
        entries.iter().map(at).collect()
    }

    /// The text of a scalar, with its path.
    #[must_use]
    pub fn noted(&self) -> Option<Clause<String>> {
        Some(Clause { value: self.tree.text()?.to_owned(), at: self.path.clone() })
    }

    /// The text of the value of a key.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<Clause<String>> {
        self.get(key)?.noted()
    }

    /// Whether the value of a key is true, written as a truth value or as a word.
    #[must_use]
    pub fn flag(&self, key: &str) -> Option<Clause<bool>> {
        let noted = self.text(key)?;
        let value = match noted.value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => true,
            "false" | "no" | "0" => false,
            _ => return None,
        };
        Some(Clause { value, at: noted.at })
    }

    fn below(&self, key: &str) -> String {
        let plain = !key.is_empty()
            && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
        match (plain, self.path.is_empty()) {
            (true, true) => key.to_owned(),
            (true, false) => format!("{}.{key}", self.path),
            (false, _) => format!("{}[{}]", self.path, Tree::quoted(key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_say_which_part_it_is() {
        let tree = Tree::parse("a: {'b.c': [1, {d: yes}], n: }").unwrap();
        let root = Cursor::root(&tree);
        let list = root.reach(&["a", "b.c"]).unwrap();
        assert_eq!(
            list.items()[1].flag("d").unwrap(),
            Clause { value: true, at: r#"a["b.c"][1].d"#.into() }
        );
        assert!(root.reach(&["a", "n"]).is_none());
        assert_eq!(root.get("a").unwrap().entries()[1].1.path(), "a.n");
    }
}
