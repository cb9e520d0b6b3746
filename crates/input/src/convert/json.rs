//! JSON lines, or a list of objects, as delimited text.

use super::{ConvertError, Writer};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;

/// Objects within objects.
const MAX_DEPTH: usize = 16;
/// What stands for a line that is no object: one cell, so that it fits no header of several.
const BROKEN: &str = "\u{fffd}no object";

/// The members of an object, in order, with the texts of their values.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut found = Vec::new();
                while let Some(member) = map.next_entry()? {
                    found.push(member);
                }
                Ok(found)
            }
        }
        input.deserialize_map(InOrder).map(Members)
    }
}

/// The columns of all rows, in order of first appearance.
#[derive(Default)]
struct Columns {
    names: Vec<String>,
    positions: HashMap<String, usize>,
}

impl Columns {
    fn position(&mut self, name: String) -> usize {
        let (next, names) = (self.names.len(), &mut self.names);
        *self.positions.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            next
        })
    }
}

/// Converts a text.
pub(super) fn to_text(text: &str) -> Result<Vec<u8>, ConvertError> {
    let rows = rows(text)?;
    let (mut columns, mut cells) = (Columns::default(), Vec::new());
    let mut good = 0u64;
    // All names must be known before the first row is written.
    for (line, row) in &rows {
        good += u64::from(read(row, *line, &mut columns, &mut cells)?);
    }
    if good * 2 < rows.len() as u64 || good == 0 {
        return Err(ConvertError::NotRows);
    }
    let mut writer = Writer::new();
    writer.row(&columns.names);
    for (line, row) in &rows {
        if read(row, *line, &mut columns, &mut cells)? {
            cells.resize(columns.names.len(), None);
            writer.row(cells.iter().map(|cell| cell.as_deref().unwrap_or_default()));
        } else {
            writer.row([BROKEN]);
        }
    }
    Ok(writer.end())
}

/// The members of one object by their names, with the texts of their cells.
pub(super) fn members(row: &str, line: u64) -> Result<HashMap<String, String>, ConvertError> {
    let (mut columns, mut cells) = (Columns::default(), Vec::new());
    match read(row.trim_start_matches('\u{feff}'), line, &mut columns, &mut cells)? {
        true => Ok(columns.names.into_iter().zip(cells.into_iter().flatten()).collect()),
        false => Err(ConvertError::NotRows),
    }
}

/// The text of each row, with its line, or its place in a list.
fn rows(text: &str) -> Result<Vec<(u64, &str)>, ConvertError> {
    if text.trim_start().starts_with('[') {
        let list: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| ConvertError::NotRows)?;
        return Ok((1..).zip(list.into_iter().map(RawValue::get)).collect());
    }
    let lines = (1..).zip(text.lines());
    Ok(lines.filter(|(_, line)| !line.trim().is_empty()).collect())
}

/// Reads a row's cells; false if it is no object.
fn read(
    row: &str,
    line: u64,
    columns: &mut Columns,
    cells: &mut Vec<Option<String>>,
) -> Result<bool, ConvertError> {
    cells.clear();
    match serde_json::from_str::<Members<'_>>(row) {
        Ok(members) => add(members, "", 0, line, columns, cells).map(|()| true),
        Err(_) => Ok(false),
    }
}

fn add(
    members: Members<'_>,
    within: &str,
    depth: usize,
    line: u64,
    columns: &mut Columns,
    cells: &mut Vec<Option<String>>,
) -> Result<(), ConvertError> {
    if depth > MAX_DEPTH {
        return Err(ConvertError::TooDeep { line });
    }
    for (name, value) in members.0 {
        let name = if within.is_empty() { name } else { format!("{within}.{name}") };
        let text = value.get();
        if text.starts_with('{') {
            let members = serde_json::from_str(text).map_err(|_| ConvertError::NotRows)?;
            add(members, &name, depth + 1, line, columns, cells)?;
            continue;
        }
        let at = columns.position(name);
        if cells.len() <= at {
            cells.resize(at + 1, None);
        }
        let cell = match text.as_bytes().first() {
            Some(b'"') => serde_json::from_str(text).map_err(|_| ConvertError::NotRows)?,
            Some(b'n') => String::new(),
            _ => text.to_owned(),
        };
        if cells[at].replace(cell).is_some() {
            return Err(ConvertError::TwoMembers { line });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Result<String, String> {
        to_text(json)
            .map(|text| String::from_utf8(text).unwrap())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn objects_become_rows_to_the_last_digit() {
        let json = "{\"t\":\"2024-01-01\",\"v\":57.1000000000000000001,\"at\":{\"x\":1e-7,\"on\":true}}\n\n{\"v\":-0.50,\"t\":null,\"say\":\"a,\\n\\\"b\\\"\\u00e9\"}\n";
        let expected = "\"t\",\"v\",\"at.x\",\"at.on\",\"say\"\n\"2024-01-01\",57.1000000000000000001,1e-7,\"true\",\"\"\n\"\",-0.50,\"\",\"\",\"a, \"\"b\"\"é\"\n";
        assert_eq!(text(json).as_deref(), Ok(expected));
        let list = format!("[{}]", json.trim().replace("\n\n", ",\n"));
        assert_eq!(text(&list).as_deref(), Ok(expected));
    }

    #[test]
    fn what_is_no_row_is_refused_alone_or_as_a_whole() {
        let some = text("{\"a\":1,\"b\":2}\n{\"a\":3,\"b\n{\"a\":4,\"b\":5}\n").unwrap();
        assert_eq!(some, format!("\"a\",\"b\"\n1,2\n\"{BROKEN}\"\n4,5\n"));
        for (json, says) in [
            ("{\n\"a\": 1\n}\n", "neither one object per line"),
            ("[{\"a\":1}, 2", "neither one object per line"),
            ("{\"a\":1,\"a\":2}\n", "line 1: two members"),
            ("{\"b\":1}\n{\"a.b\":1,\"a\":{\"b\":2}}\n", "line 2: two members"),
        ] {
            let error = text(json).unwrap_err();
            assert!(error.contains(says), "{json}: {error}");
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(40), "}".repeat(40));
        assert!(text(&deep).unwrap_err().contains("too deep"));
    }
}
