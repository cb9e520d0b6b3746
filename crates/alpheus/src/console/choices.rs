//! What an owner may allow and has allowed, for the page; and what the page sends back.

use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::Annotation;
use alpheus_node::network::answer::ApiError;
use alpheus_policy::budget::Epsilon;
use alpheus_policy::columns::label;
use alpheus_policy::ids::StreamId;
use alpheus_policy::policy::{Policies, ResolvedOption, ResolvedPolicy};
use alpheus_policy::schema::{Budget, OptionKind, PolicyOption, PrivacyUnit, Schema};
use alpheus_streams::wire::StreamView;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// An attribute: what the owner allows of it, and what the schema offers.
#[derive(Serialize)]
pub(super) struct AttributeChoice {
    name: String,
    label: String,
    unit: String,
    chosen: Vec<Value>,
    offers: Vec<Value>,
}

/// The attributes of a schema under a policy.
pub(super) fn attributes(schema: &Schema, policy: &ResolvedPolicy) -> Vec<AttributeChoice> {
    let attribute = |(position, attribute): (u16, &alpheus_policy::schema::Attribute)| {
        let offered = |option: &&PolicyOption| {
            option.kind != OptionKind::Private && option.attributes.contains(&position)
        };
        let own = policy.attribute(position).map(|own| own.alternatives.as_slice());
        AttributeChoice {
            name: attribute.name.clone(),
            label: label(&attribute.name),
            unit: attribute.unit.clone(),
            chosen: own.unwrap_or_default().iter().map(chosen).collect(),
            offers: schema.options.iter().filter(offered).map(offer).collect(),
        }
    };
    (0..).zip(&schema.attributes).map(attribute).collect()
}

fn offer(option: &PolicyOption) -> Value {
    json!({
        "name": option.name,
        "kind": option.kind.name(),
        "windows": option.windows.iter().map(|window| window.0).collect::<Vec<_>>(),
        "clients": option.clients,
        "named": option.named_clients,
        "to": option.to,
        "coarse": !option.generalise.is_empty(),
        "budget": option.budget.as_ref().map(budget),
    })
}

fn chosen(option: &ResolvedOption) -> Value {
    json!({
        "name": option.name,
        "kind": option.kind.name(),
        "window": option.window.0,
        "clients": option.min_population,
        "setsPerDay": option.sets_per_day,
        "to": option.to,
        "coarse": !option.generalise.is_empty(),
        "budget": option.budget.as_ref().map(budget),
    })
}

fn budget(budget: &Budget) -> Value {
    json!({
        "window": Epsilon::from_micro(budget.window_micro_epsilon).to_string(),
        "total": Epsilon::from_micro(budget.total_micro_epsilon).to_string(),
        "unit": unit(budget.unit),
    })
}

/// `event`, `window`, or a length in microseconds.
pub(super) fn unit(unit: PrivacyUnit) -> Value {
    match unit {
        PrivacyUnit::Event => json!("event"),
        PrivacyUnit::PersonPerWindow => json!("window"),
        PrivacyUnit::PersonPerPeriod(length) => json!(length.0),
    }
}

/// What the page sends for each attribute.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wish {
    attributes: BTreeMap<String, Vec<WishedOption>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WishedOption {
    option: String,
    clients: Option<u32>,
    /// In microseconds.
    window: Option<u64>,
    /// What the choice had before: the page does not change it.
    #[serde(rename = "setsPerDay")]
    sets_per_day: Option<u32>,
}

impl Wish {
    /// The policy, read as a file of policies is.
    pub(super) fn policy(&self, schema: &Schema) -> Result<ResolvedPolicy, ApiError> {
        let has_crowd = |name: &str| {
            let option = schema.options.iter().find(|option| option.name == name);
            option.is_some_and(|option| option.clients.len() > 1)
        };
        let entry = |wished: &WishedOption| {
            let mut entry = Map::from_iter([("option".to_owned(), json!(wished.option))]);
            if let Some(clients) = wished.clients.filter(|_| has_crowd(&wished.option)) {
                entry.insert("clients".to_owned(), json!(clients));
            }
            if let Some(window) = wished.window {
                entry.insert("window".to_owned(), json!(format!("{window}us")));
            }
            if let Some(sets) = wished.sets_per_day {
                entry.insert("setsPerDay".to_owned(), json!(sets));
            }
            Value::Object(entry)
        };
        let some = self.attributes.iter().filter(|(_, options)| !options.is_empty());
        let choices: Map<String, Value> = some
            .map(|(name, options)| (name.clone(), options.iter().map(entry).collect()))
            .collect();
        let document = json!({ "schema": schema.name, "default": choices }).to_string();
        let policies = Policies::from_yaml(&document, schema);
        let policies = policies.map_err(|error| ApiError::malformed(error.to_string()))?;
        Ok(policies.of_owner("").clone())
    }
}

/// The owner's own choices, of those that a controller says are.
pub(super) struct OwnChoices(Vec<Annotation>);

impl OwnChoices {
    /// Of an owner who has not chosen.
    #[cfg(test)]
    pub(super) fn none() -> OwnChoices {
        OwnChoices(Vec::new())
    }

    /// Those that this owner has signed for this stream and schema, oldest first.
    pub(super) fn of(
        view: &StreamView,
        (key, stream): (&VerifyingKey, &StreamId),
        schema: &Schema,
    ) -> OwnChoices {
        let open = |digits: &str| {
            let bytes = HEXLOWER.decode(digits.as_bytes()).ok()?;
            let signed: Signed<Annotation> = postcard::from_bytes(&bytes).ok()?;
            let opened = signed.open(key).ok()?.into_inner();
            (opened.schema == schema.id() && opened.stream == *stream).then_some(opened)
        };
        let opened = view.choices.iter().filter_map(|choice| open(&choice.annotation));
        let mut own: Vec<Annotation> = opened.collect();
        own.sort_by_key(|annotation| annotation.version);
        OwnChoices(own)
    }

    /// The choice in force.
    pub(super) fn current(&self) -> Option<&Annotation> {
        self.0.last()
    }

    /// The last choice that allows something and that the schema still offers.
    pub(super) fn last_sharing(&self, schema: &Schema) -> Option<&Annotation> {
        let shares =
            |own: &&Annotation| !is_private(&own.policy) && schema.offers(&own.policy).is_ok();
        self.0.iter().rev().find(shares)
    }
}

/// Whether a policy allows nothing.
pub(super) fn is_private(policy: &ResolvedPolicy) -> bool {
    policy.attributes.iter().all(|own| own.alternatives.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_crypto::secret::Secret;
    use alpheus_crypto::sign::SigningKey;
    use alpheus_policy::ids::{ControllerId, OwnerId};
    use alpheus_streams::wire::SignedChoice;
    use alpheus_time::Timestamp;

    const SCHEMA: &str = "\
name: Meters
version: 1
tick: 1s
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 1000, aggregations: [mean] }
  - { name: other_one, type: integer, min: 0, max: 1000, aggregations: [mean] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [10, 20], window: [1m, 1h], attributes: [reading] }
  - { name: nothing, option: private }
";

    fn schema() -> Schema {
        Schema::from_yaml(SCHEMA).unwrap()
    }

    fn wished(text: &str) -> Result<ResolvedPolicy, ApiError> {
        serde_json::from_str::<Wish>(text).unwrap().policy(&schema())
    }

    fn crowd() -> ResolvedPolicy {
        wished(
            r#"{"attributes": {"reading": [{"option": "crowd", "clients": 10, "window": 60000000}], "other_one": []}}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_wish_becomes_a_policy_that_the_schema_offers() {
        let policy = crowd();
        assert_eq!(schema().offers(&policy), Ok(()));
        let chosen = &policy.attributes[0].alternatives[0];
        assert_eq!((chosen.min_population, chosen.window.0), (10, 60_000_000));
        assert!(policy.attributes[1].alternatives.is_empty());
        let bounded = wished(
            r#"{"attributes": {"reading": [{"option": "crowd", "clients": 10, "window": 60000000, "setsPerDay": 4}]}}"#,
        );
        assert_eq!(bounded.unwrap().attributes[0].alternatives[0].sets_per_day, Some(4));
        assert!(is_private(&wished(r#"{"attributes": {}}"#).unwrap()));
        for refused in [
            r#"{"attributes": {"other_one": [{"option": "crowd", "clients": 10, "window": 60000000}]}}"#,
            r#"{"attributes": {"reading": [{"option": "crowd", "clients": 3, "window": 60000000}]}}"#,
            r#"{"attributes": {"reading": [{"option": "everything", "clients": null, "window": null}]}}"#,
        ] {
            assert!(wished(refused).is_err(), "{refused}");
        }
        let shown = serde_json::to_value(attributes(&schema(), &policy)).unwrap();
        assert_eq!(shown[1]["label"], "other one");
        assert_eq!(shown[0]["chosen"][0]["clients"], 10);
        assert_eq!(shown[0]["offers"][0]["clients"], json!([10, 20]));
        assert_eq!(shown[1]["offers"], json!([]));
    }

    /// A controller that lies cannot have an owner sign what the owner has never signed.
    #[test]
    fn only_own_choices_for_this_stream_count() {
        let key = |seed| SigningKey::from_seed(&Secret::from_bytes([seed; 32]));
        let (own, other) = (key(1), key(2));
        let choice = |key: &SigningKey, stream: u8, version, policy: &ResolvedPolicy| {
            let annotation = Annotation {
                stream: StreamId([stream; 16]),
                owner: OwnerId([1; 32]),
                schema: schema().id(),
                version,
                valid_from: Timestamp(0),
                valid_to: Timestamp::LIMIT,
                metadata: Vec::new(),
                policy: policy.clone(),
            };
            let bytes = postcard::to_allocvec(&Signed::new(&annotation, key)).unwrap();
            SignedChoice { since: Timestamp(0), annotation: HEXLOWER.encode(&bytes) }
        };
        let private = ResolvedPolicy::private(&schema());
        let known = |choices: Vec<SignedChoice>| {
            let view = StreamView {
                device: "meter".to_owned(),
                controller: ControllerId([2; 32]),
                placement: None,
                revoked: false,
                erased: false,
                copied: false,
                unconfirmed: false,
                choices,
                grants: Vec::new(),
                plans: Vec::new(),
            };
            OwnChoices::of(&view, (&own.verifying_key(), &StreamId([9; 16])), &schema())
        };
        let (signed, forged) = (choice(&own, 9, 1, &crowd()), choice(&other, 9, 8, &crowd()));
        let (moved, paused) = (choice(&own, 8, 7, &crowd()), choice(&own, 9, 2, &private));
        let lies = known(vec![forged.clone(), moved.clone(), paused.clone()]);
        assert!(lies.last_sharing(&schema()).is_none() && lies.current().unwrap().version == 2);
        let truth = known(vec![paused, signed, forged, moved]);
        assert_eq!(truth.current().map(|current| current.version), Some(2));
        assert_eq!(truth.last_sharing(&schema()).map(|last| last.version), Some(1));
    }
}
