//! Reads parts of a map: one key, or all keys but some. Errors keep their position in the file.

use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, IntoDeserializer, MapAccess,
    Visitor,
};
use std::fmt;
use std::marker::PhantomData;

/// The value of one key, if present.
pub(super) fn one<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    key: &str,
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_map(One(key, PhantomData))
}

/// A value from all keys but these.
pub(super) fn everything_but<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    keys: &[&str],
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_map(EverythingBut(keys, PhantomData))
}

struct One<'k, T>(&'k str, PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for One<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut value = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == self.0 {
                value = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(value)
    }
}

struct EverythingBut<'k, T>(&'k [&'k str], PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for EverythingBut<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(FilteredMap { map, without: self.0 }))
    }
}

struct FilteredMap<'k, A> {
    map: A,
    without: &'k [&'k str],
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for FilteredMap<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            if !self.without.contains(&key.as_str()) {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            self.map.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}
