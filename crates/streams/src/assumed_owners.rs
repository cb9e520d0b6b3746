//! Owners to plan over without a service: those of a recording, or some who do not exist.

use alpheus_input::rows::RecordedStream;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_policy::catalog::{Catalog, CatalogStream};
use alpheus_policy::ids::{ConsumerId, ControllerId, OwnerId, StreamId, labelled_hash};
use alpheus_policy::policy::{Policies, Section};
use alpheus_policy::schema::{MetadataAttribute, Schema};
use alpheus_stream_runtime::embedded_deployment::Controllers;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

const LABEL: &str = "alpheus/invented/v1";

/// The value of a metadata attribute that allows any text, if none is given.
const ANY: &str = "any";

/// Some owners' streams, and the controllers that guard them.
pub struct AssumedOwners {
    streams: Vec<AssumedStream>,
    owners: u32,
    controllers: u32,
}

/// A stream.
struct AssumedStream {
    /// Its owner, as policies may name them, and their position.
    name: String,
    owner: u32,
    metadata: Vec<(String, String)>,
}

impl AssumedOwners {
    /// So many owners who do not exist, with one stream each. Checks that `given`, each
    /// `name=value,value`, are metadata of the schema.
    ///
    /// # Errors
    /// The schema has no such metadata.
    pub fn invented(
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
        let one = |number| AssumedStream {
            name: format!("owner-{number}"),
            owner: number,
            metadata: values(&metadata, number),
        };
        Ok(Self::of((0..owners).map(one).collect(), owners, controllers))
    }

    /// The owners of these recorded streams. They are guarded in the order in which their first
    /// streams come.
    pub fn recorded<'a>(
        streams: impl IntoIterator<Item = &'a RecordedStream>,
        controllers: Controllers,
    ) -> Self {
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut all = Vec::new();
        for stream in streams {
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            let owner = *known.entry(&stream.owner).or_insert(next);
            let metadata = stream.metadata.clone().into_iter().collect();
            all.push(AssumedStream { name: stream.owner.clone(), owner, metadata });
        }
        let owners = u32::try_from(known.len()).unwrap_or(u32::MAX);
        Self::of(all, owners, controllers)
    }

    fn of(streams: Vec<AssumedStream>, owners: u32, controllers: Controllers) -> Self {
        let controllers = match controllers {
            Controllers::PerOwner => owners,
            Controllers::Count(count) => count.min(owners),
        };
        Self { streams, owners, controllers: controllers.max(1) }
    }

    /// How many there are.
    #[must_use]
    pub fn owners(&self) -> u32 {
        self.owners
    }

    /// Who they are if they are invented, in words.
    #[must_use]
    pub fn invented_in_words(&self) -> String {
        let owners = match self.owners {
            1 => "1 owner with one stream".to_owned(),
            many => format!("{many} owners with one stream each"),
        };
        format!("{owners}, {}", self.controllers_in_words())
    }

    /// How many controllers they have, in words.
    #[must_use]
    pub fn controllers_in_words(&self) -> String {
        match self.controllers {
            1 => "at one controller".to_owned(),
            many if many == self.owners => "each with a controller".to_owned(),
            many => format!("at {many} controllers"),
        }
    }

    /// The id of the stream at a position.
    #[must_use]
    pub fn stream(number: usize) -> StreamId {
        let mut stream = StreamId([0; 16]);
        let hash = labelled_hash(LABEL, &[b"stream", &(number as u64).to_be_bytes()]);
        stream.0.copy_from_slice(&hash[..16]);
        stream
    }

    /// A catalogue of the schema, read from this file, and of their streams, as policies choose.
    ///
    /// # Errors
    /// The schema's events cannot be laid out.
    pub fn catalog(
        &self,
        path: &Path,
        schema: Schema,
        policies: &Policies,
    ) -> Result<Catalog, Failure> {
        let mut catalog = Catalog::default();
        let schema = catalog.add_schema(schema).blame(Category::Input);
        let schema = schema.map_err(|failure| failure.at(path.display().to_string()))?;
        for (number, assumed) in self.streams.iter().enumerate() {
            let hash =
                |what: &str, of: u32| labelled_hash(LABEL, &[what.as_bytes(), &of.to_be_bytes()]);
            catalog.put_stream(CatalogStream {
                stream: Self::stream(number),
                owner: OwnerId(hash("owner", assumed.owner)),
                controller: ControllerId(hash("controller", assumed.owner % self.controllers)),
                schema,
                metadata: assumed.metadata.clone(),
                policy: policies.of_owner(&assumed.name).clone(),
            });
        }
        Ok(catalog)
    }

    /// The part of the policies file that decides for each stream.
    #[must_use]
    pub fn sections(&self, policies: &Policies) -> BTreeMap<StreamId, Section> {
        let all = self.streams.iter().enumerate();
        all.map(|(number, own)| (Self::stream(number), policies.section_of(&own.name))).collect()
    }
}

/// One value of each attribute, so that all combinations occur.
fn values(metadata: &[(String, Vec<String>)], number: u32) -> Vec<(String, String)> {
    let mut left = number as usize;
    let mut pick = |(name, values): &(String, Vec<String>)| {
        let value = values.get(left % values.len().max(1))?.clone();
        left /= values.len();
        Some((name.clone(), value))
    };
    metadata.iter().filter_map(&mut pick).collect()
}

/// The certificate of any consumer.
pub fn consumer(name: &str) -> Option<ConsumerId> {
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
