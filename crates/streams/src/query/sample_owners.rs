//! Sample owners to plan over, who do not exist.

use crate::runtime::embedded::Controllers;
use alpheus_node::failure::{Category, Failure};
use alpheus_policy::catalog::CatalogStream;
use alpheus_policy::ids::{ConsumerId, ControllerId, OwnerId, SchemaId, StreamId, labelled_hash};
use alpheus_policy::policy::{Policies, Section};
use alpheus_policy::schema::{MetadataAttribute, Schema};
use std::collections::BTreeMap;

const LABEL: &str = "alpheus/invented/v1";

/// The value of a metadata attribute that allows any text, if none is given.
const ANY: &str = "any";

/// A number of owners with one stream each.
pub(super) struct SampleOwners {
    owners: u32,
    controllers: u32,
    /// Name and values of each metadata attribute.
    metadata: Vec<(String, Vec<String>)>,
}

impl SampleOwners {
    /// Checks that `given`, each `name=value,value`, are metadata of the schema.
    pub(super) fn new(
        owners: u32,
        controllers: Controllers,
        schema: &Schema,
        given: &[String],
    ) -> Result<Self, Failure> {
        let mut metadata: Vec<_> = schema.metadata.iter().map(declared).collect();
        for text in given {
            let (name, values) = text.split_once('=').unwrap_or((text, ""));
            let Some(known) = metadata.iter_mut().find(|(known, _)| known == name) else {
                return Err(unknown(name, schema));
            };
            known.1 = values.split(',').map(str::to_owned).collect();
        }
        let controllers = match controllers {
            Controllers::PerOwner => owners,
            Controllers::Count(count) => count.min(owners),
        };
        Ok(Self { owners, controllers: controllers.max(1), metadata })
    }

    /// Their streams, as their policies choose.
    pub(super) fn streams<'a>(
        &'a self,
        schema: SchemaId,
        policies: &'a Policies,
    ) -> impl Iterator<Item = CatalogStream> + 'a {
        (0..self.owners).map(move |number| {
            let (name, stream) = named(number);
            let hash = |what: &str, of: &[u8]| labelled_hash(LABEL, &[what.as_bytes(), of]);
            let controller = number % self.controllers;
            CatalogStream {
                stream,
                owner: OwnerId(hash("owner", name.as_bytes())),
                controller: ControllerId(hash("controller", &controller.to_be_bytes())),
                schema,
                metadata: self.values(number),
                policy: policies.of_owner(&name).clone(),
            }
        })
    }

    /// The part of the policies file that decides for each stream.
    pub(super) fn sections(&self, policies: &Policies) -> BTreeMap<StreamId, Section> {
        let of = |(name, stream): (String, StreamId)| (stream, policies.section_of(&name));
        (0..self.owners).map(named).map(of).collect()
    }

    /// One value of each attribute, so that all combinations occur.
    fn values(&self, number: u32) -> Vec<(String, String)> {
        let mut left = number as usize;
        let mut pick = |(name, values): &(String, Vec<String>)| {
            let value = values.get(left % values.len().max(1))?.clone();
            left /= values.len();
            Some((name.clone(), value))
        };
        self.metadata.iter().filter_map(&mut pick).collect()
    }
}

/// The name and the stream of an owner.
fn named(number: u32) -> (String, StreamId) {
    let name = format!("owner-{number}");
    let mut stream = StreamId([0; 16]);
    let hash = labelled_hash(LABEL, &[b"stream", name.as_bytes()]);
    stream.0.copy_from_slice(&hash[..16]);
    (name, stream)
}

/// The certificate of any consumer.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere a consumer may be unknown")]
pub(super) fn consumer(name: &str) -> Option<ConsumerId> {
    Some(ConsumerId(labelled_hash(LABEL, &[b"consumer", name.as_bytes()])))
}

fn declared(attribute: &MetadataAttribute) -> (String, Vec<String>) {
    let any = || vec![ANY.to_owned()];
    let values = if attribute.symbols.is_empty() { any() } else { attribute.symbols.clone() };
    (attribute.name.clone(), values)
}

fn unknown(name: &str, schema: &Schema) -> Failure {
    let names: Vec<&str> = schema.metadata.iter().map(|known| known.name.as_str()).collect();
    let message = format!("`{}` has no metadata attribute `{name}`", schema.name);
    let help = match names.is_empty() {
        true => "the schema declares none".to_owned(),
        false => format!("it has {}", names.join(", ")),
    };
    Failure::new(Category::Usage, message).at("--metadata").with_help(help)
}
