//! Names that queries can use, from names that contracts use.

use std::collections::{HashMap, HashSet};

/// Longest name in a schema.
const MAX_BYTES: usize = 64;

/// Names that were given out, so that none is given twice.
#[derive(Debug, Default)]
pub struct Names {
    given: HashSet<String>,
    /// The number that a name gets which was given before.
    next: HashMap<String, usize>,
}

impl Names {
    /// A name for a query, as near to `wanted` as possible, that differs from all before.
    pub fn give(&mut self, wanted: &str, otherwise: &str) -> String {
        let base = plain(wanted, otherwise);
        let mut name = base.clone();
        let number = self.next.entry(folded(&base)).or_insert(2);
        while self.given.contains(&folded(&name)) {
            let ending = format!("_{number}");
            let kept: String = base.chars().take(MAX_BYTES - ending.len()).collect();
            name = kept + &ending;
            *number += 1;
        }
        self.given.insert(folded(&name));
        name
    }
}

/// Case, and `-` and `_`, do not distinguish names in queries.
fn folded(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

fn plain(wanted: &str, otherwise: &str) -> String {
    let mut name = String::new();
    for c in wanted.trim().chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => name.push(c),
            'ä' => name.push_str("ae"),
            'ö' => name.push_str("oe"),
            'ü' => name.push_str("ue"),
            'Ä' => name.push_str("Ae"),
            'Ö' => name.push_str("Oe"),
            'Ü' => name.push_str("Ue"),
            'ß' => name.push_str("ss"),
            _ if name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    if !name.chars().any(|c| c.is_ascii_alphanumeric()) {
        return otherwise.to_owned();
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name.truncate(MAX_BYTES);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_distinct() {
        let mut names = Names::default();
        for (wanted, given) in [
            ("order_id", "order_id"),
            ("Order-ID", "Order_ID_2"),
            ("1_Merkmal", "_1_Merkmal"),
            ("Größe (m²)", "Groesse_m_"),
            ("address.street", "address_street"),
            ("日本", "column"),
            ("", "column_2"),
        ] {
            assert_eq!(names.give(wanted, "column"), given);
        }
        let long = names.give(&"x".repeat(100), "column");
        assert_eq!(names.give(&"x".repeat(100), "column").len(), long.len());
    }
}
