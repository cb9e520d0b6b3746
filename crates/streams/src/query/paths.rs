//! Where a service has what belongs to a query.

use std::fmt::Write as _;

/// The path of something of a query, whatever letters its name has.
#[must_use]
pub fn path_of(query: &str, what: &str) -> String {
    let mut path = "/v1/queries/".to_owned();
    for byte in query.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'~' => {
                path.push(char::from(byte))
            }
            // Writing to a string does not fail.
            _ => drop(write!(path, "%{byte:02X}")),
        }
    }
    path.push('/');
    path + what
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_part_of_a_path() {
        assert_eq!(
            path_of("Heart-rate_1", "results?after=0"),
            "/v1/queries/Heart-rate_1/results?after=0"
        );
        assert_eq!(
            path_of("a b/../é?#%", "receipts"),
            "/v1/queries/a%20b%2F%2E%2E%2F%C3%A9%3F%23%25/receipts"
        );
    }
}
