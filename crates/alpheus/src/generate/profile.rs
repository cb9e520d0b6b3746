//! A profile: how the attributes of generated data behave.

use alpheus_input::source::parser_message;
use alpheus_policy::schema::{AttributeKind, Schema};
use serde::Deserialize;
use std::collections::BTreeMap;
use thiserror::Error;

/// A profile as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Profile {
    /// How many streams.
    pub streams: u32,
    /// How long, in minutes.
    pub minutes: u32,
    /// Milliseconds from one event of a stream to its next.
    pub interval_ms: u64,
    /// First time, in seconds since the Unix epoch.
    pub start: u64,
    /// Metadata attribute → its values, assigned at random.
    #[serde(default)]
    pub metadata: BTreeMap<String, Vec<String>>,
    /// Attribute → how it behaves.
    pub attributes: BTreeMap<String, Behaviour>,
}

/// How an attribute's values come about. Numbers are in natural units and are
/// kept within the schema's bounds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum Behaviour {
    /// Starts between two values and then wanders by at most `step`.
    Walk {
        /// Range of the first value.
        start: [f64; 2],
        /// Maximum change from one event to the next.
        step: f64,
    },
    /// Uniformly distributed between two values.
    Uniform([f64; 2]),
    /// Small numbers are common: `0` most of all, up to the given one.
    Skewed(u32),
    /// True with this probability.
    Chance(f64),
    /// One of these texts; earlier ones are more likely.
    Choice(Vec<String>),
}

/// Why a profile cannot be used.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// Not YAML of the right shape.
    #[error("{0}")]
    Syntax(String),
    /// An attribute has no behaviour.
    #[error("profile does not describe attribute {0:?}; add it under `attributes:`")]
    Missing(String),
    /// A name that the schema does not have.
    #[error("profile describes {0:?}, which the schema does not define")]
    Unknown(String),
    /// A behaviour that does not fit the attribute's type.
    #[error("profile: the behaviour of attribute {0:?} does not fit its type")]
    WrongType(String),
    /// Mandatory metadata without values.
    #[error("profile gives no values for metadata {0:?}; add them under `metadata:`")]
    NoValues(String),
    /// A value that the schema does not allow.
    #[error(
        "profile: the schema does not allow {value:?} for metadata {name:?}; use one of its symbols"
    )]
    UnknownSymbol {
        /// The metadata attribute.
        name: String,
        /// As written.
        value: String,
    },
    /// Nothing to draw from, or no time to pass.
    #[error("profile: {0} must not be empty or zero")]
    Empty(String),
}

impl Profile {
    /// Reads a profile and checks it against the schema.
    ///
    /// # Errors
    /// A [`ProfileError`] that says how to fix it.
    pub fn parse(text: &str, schema: &Schema) -> Result<Profile, ProfileError> {
        let profile: Profile = serde_saphyr::from_str(text)
            .map_err(|error| ProfileError::Syntax(parser_message(&error)))?;
        if profile.interval_ms == 0 {
            return Err(ProfileError::Empty("intervalMs".to_owned()));
        }
        profile.check_metadata(schema)?;
        for attribute in &schema.attributes {
            let behaviour = profile
                .attributes
                .get(&attribute.name)
                .ok_or_else(|| ProfileError::Missing(attribute.name.clone()))?;
            behaviour.check(&attribute.name, &attribute.kind)?;
        }
        let known = |name: &&String| {
            schema.attributes.iter().any(|a| a.name == **name)
                || schema.metadata.iter().any(|m| m.name == **name)
        };
        match profile.attributes.keys().chain(profile.metadata.keys()).find(|name| !known(name)) {
            Some(name) => Err(ProfileError::Unknown(name.clone())),
            None => match profile.metadata.iter().find(|(_, values)| values.is_empty()) {
                Some((name, _)) => Err(ProfileError::Empty(name.clone())),
                None => Ok(profile),
            },
        }
    }
}

impl Profile {
    /// Generated metadata must be valid under the schema.
    fn check_metadata(&self, schema: &Schema) -> Result<(), ProfileError> {
        for attribute in &schema.metadata {
            let values = self.metadata.get(&attribute.name);
            if values.is_none() && attribute.symbols.is_empty() && !attribute.optional {
                return Err(ProfileError::NoValues(attribute.name.clone()));
            }
            let known = |value: &&String| !attribute.symbols.contains(value);
            let listed = values.filter(|_| !attribute.symbols.is_empty());
            if let Some(value) = listed.into_iter().flatten().find(known) {
                let (name, value) = (attribute.name.clone(), value.clone());
                return Err(ProfileError::UnknownSymbol { name, value });
            }
        }
        Ok(())
    }
}

impl Behaviour {
    fn check(&self, name: &str, kind: &AttributeKind) -> Result<(), ProfileError> {
        let fits = matches!(
            (self, kind),
            (
                Behaviour::Walk { .. } | Behaviour::Uniform(_) | Behaviour::Skewed(_),
                AttributeKind::Number { .. }
            ) | (Behaviour::Chance(_), AttributeKind::Boolean)
                | (Behaviour::Choice(_), AttributeKind::Text { .. })
        );
        match self {
            _ if !fits => Err(ProfileError::WrongType(name.to_owned())),
            Behaviour::Choice(texts) if texts.is_empty() => {
                Err(ProfileError::Empty(name.to_owned()))
            }
            _ => Ok(()),
        }
    }
}
