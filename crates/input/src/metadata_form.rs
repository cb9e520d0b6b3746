//! How a source file says where metadata come from.

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;

/// Where a metadata value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metadata {
    /// A column; the stream's first row decides.
    Column(String),
    /// The same for every stream.
    Constant(String),
    /// The stream's key.
    StreamKey,
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Metadata, D::Error> {
        input.deserialize_any(OneValue)
    }
}

/// Reads where one value comes from.
struct OneValue;

impl<'de> Visitor<'de> for OneValue {
    type Value = Metadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`{ column: NAME }`, `{ constant: TEXT }` or `streamKey`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Metadata, E> {
        if text == "streamKey" {
            return Ok(Metadata::StreamKey);
        }
        Err(E::custom(format_args!(
            "{text:?} does not say where the value comes from; write `{{ column: {text:?} }}` if it is the name of a column, or `{{ constant: {text:?} }}` if it is the value of every stream"
        )))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Metadata, A::Error> {
        let found = match entries.next_key::<String>()?.as_deref() {
            Some("column") => Metadata::Column(entries.next_value()?),
            Some("constant") => Metadata::Constant(entries.next_value()?),
            Some(other) => return Err(A::Error::unknown_variant(other, &["column", "constant"])),
            None => return Err(A::Error::custom("give one of `column` and `constant`")),
        };
        match entries.next_key::<String>()? {
            None => Ok(found),
            Some(_) => Err(A::Error::custom("give only one of `column` and `constant`")),
        }
    }
}

/// Reads the metadata of a source file, by their names.
pub(crate) fn all_metadata<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<BTreeMap<String, Metadata>, D::Error> {
    input.deserialize_any(AllMetadata)
}

struct AllMetadata;

impl AllMetadata {
    fn unnamed<E: Error>() -> E {
        E::custom(
            "`metadata` takes the name of each metadata attribute of the schema, with where its value comes from, such as `metadata: { area: { column: \"Area\" } }`",
        )
    }
}

impl<'de> Visitor<'de> for AllMetadata {
    type Value = BTreeMap<String, Metadata>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names of metadata attributes, each with where its value comes from")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(BTreeMap::new())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(AllMetadata::unnamed())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        Err(AllMetadata::unnamed())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut found = BTreeMap::new();
        while let Some((name, own)) = entries.next_entry()? {
            found.insert(name, own);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn read(metadata: &str) -> Result<BTreeMap<String, Metadata>, String> {
        let text = format!("schema: S\ntime: {{ column: t }}\nstream: who\n{metadata}\n");
        let read = serde_saphyr::from_str::<Source>(&text);
        read.map(|source| source.metadata).map_err(|error| error.to_string())
    }

    #[test]
    fn a_value_comes_from_a_column_a_constant_or_the_key() {
        let found =
            read("metadata: { a: { column: x }, b: { constant: 7 }, c: streamKey }").unwrap();
        let expected = [
            ("a", Metadata::Column("x".to_owned())),
            ("b", Metadata::Constant("7".to_owned())),
            ("c", Metadata::StreamKey),
        ];
        assert_eq!(found, expected.map(|(name, own)| (name.to_owned(), own)).into());
        assert_eq!(read("metadata:").unwrap().len() + read("").unwrap().len(), 0);
    }

    #[test]
    fn what_is_no_place_of_a_value_is_refused_with_what_to_write() {
        for (metadata, says) in [
            ("metadata: { area: Supply Area }", "write `{ column: \"Supply Area\" }` if"),
            ("metadata:\n  area: Area", "or `{ constant: \"Area\" }` if it is the value"),
            ("metadata: { area: 7 }", "expected `{ column: NAME }`"),
            ("metadata: { area: [Area] }", "expected `{ column: NAME }`"),
            ("metadata: { area: }", "expected `{ column: NAME }`"),
            ("metadata: { area: {} }", "give one of `column` and `constant`"),
            ("metadata: { area: { column: a, constant: b } }", "give only one of"),
            ("metadata: { area: { colum: a } }", "unknown variant `colum`"),
            ("metadata: Area", "`metadata: { area: { column: \"Area\" } }`"),
            ("metadata: [Area]", "`metadata: { area: { column: \"Area\" } }`"),
        ] {
            let error = read(metadata).unwrap_err();
            assert!(error.contains(says), "{metadata}: {error}");
            assert!(error.contains("line "), "{error}");
        }
    }

    #[test]
    fn two_values_on_one_line_are_refused_with_what_to_write() {
        let schema = "name: S\nstreamAttributes: [{ name: v, type: integer, min: 0, max: 9 }]\n";
        let schema = alpheus_policy::schema::Schema::from_yaml(schema).unwrap();
        let text = "schema: S\ntime: { column: t }\nstream: who\nmetadata: area: Area\n";
        let error = Source::parse(text, &schema).unwrap_err().to_string();
        assert!(error.starts_with("line 4, column 15"), "{error}");
        assert!(error.contains("`key: value` cannot stand here: write it in braces"), "{error}");
    }
}
