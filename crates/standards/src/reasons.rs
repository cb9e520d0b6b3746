//! Why a part of a contract is not carried, if no reader had a use for it: by its nearest key
//! that is known.

use crate::access;

/// If no key on the way to a part is known.
const UNKNOWN: &str = "this key is not known here: review it";

const NO_PLACE: &str = "known, but a schema or a policy has no place for it";
const CUSTOM: &str = "a statement of the contract's own that is not known here: review it";

const TEXT: &str = "text for people; a schema keeps no descriptions";
const PLACE: &str = "says where and how the data are stored; a schema does not";
const PEOPLE: &str = "says who answers for the contract; a schema names nobody";
const VERSION: &str =
    "identifies the contract or a part of it; keys are bound to the written schema's own hash";
const SERVICE: &str = "a promise about the service, which a policy does not make";
const EXAMPLES: &str = "examples; a schema holds no values";
const TERMS: &str = "terms for people; a policy limits what can be computed, and nothing else";
const FORMAT: &str = "the form of a text, of which at most the number of values is released";
const VALUES: &str = "one of several allowed values: an attribute has bounds and no set of values, so at most the least and the greatest number are kept";
const KEY: &str = "says how rows are identified, ordered or joined; an event has no key";
const LINEAGE: &str = "says where the data come from; a schema does not";
const RULE: &str =
    "belongs to a rule that sums do not answer, or says how to judge what they answer";
const TAG: &str = "the word says nothing known about who may learn what";
const PRICE: &str = "a price; nothing is charged here";
pub(crate) const ACCESS: &str =
    "says who may read or write rows; nobody does here, and policies limit who receives statistics";
const TYPE: &str = "details of a type that is not carried";

/// Keys and the reason for all that is below them.
const KEYS: &[(&[&str], &str)] = &[
    (
        &[
            "description",
            "doc",
            "title",
            "businessName",
            "comment",
            "purpose",
            "transformDescription",
            "dataGranularityDescription",
            "docs",
            "displayName",
            "synonyms",
            "context",
            "verifiedStatements",
            "label",
        ],
        TEXT,
    ),
    (&["usage", "limitations", "policies", "billing", "noticePeriod", "terms"], TERMS),
    (
        &[
            "servers",
            "infrastructure",
            "physicalName",
            "location",
            "database",
            "dataset",
            "host",
            "materialized",
            "config",
            "partitioned",
            "partitionKeyPosition",
            "loader",
            "alias",
        ],
        PLACE,
    ),
    (&["team", "contact", "owner", "stakeholders", "members", "group"], PEOPLE),
    (
        &[
            "id",
            "version",
            "apiVersion",
            "kind",
            "status",
            "dataContractSpecification",
            "info",
            "name",
            "domain",
            "dataProduct",
            "tenant",
            "namespace",
            "aliases",
            "schemaType",
            "subject",
            "contractCreatedTs",
            "uuid",
            "$schema",
            "$id",
        ],
        VERSION,
    ),
    (
        &["servicelevels", "slaProperties", "slaDefaultElement", "support", "freshness", "sla"],
        SERVICE,
    ),
    (&["examples", "example", "default"], EXAMPLES),
    (&["pattern", "format", "minLength", "maxLength"], FORMAT),
    (&["enum", "const", "symbols"], VALUES),
    (
        &[
            "primaryKey",
            "primaryKeyPosition",
            "primary",
            "unique",
            "relationships",
            "references",
            "foreignKey",
            "order",
            "criticalDataElement",
            "uniqueItems",
        ],
        KEY,
    ),
    (
        &[
            "lineage",
            "transformLogic",
            "transformSourceObjects",
            "authoritativeDefinitions",
            "links",
            "inputFields",
            "depends_on",
        ],
        LINEAGE,
    ),
    (
        &[
            "quality",
            "tests",
            "data_tests",
            "constraints",
            "rules",
            "ruleSet",
            "domainRules",
            "migrationRules",
            "encodingRules",
            "defaultRuleSet",
            "overrideRuleSet",
        ],
        RULE,
    ),
    (&["tags", "confluent:tags", "labels"], TAG),
    (
        &[
            "deprecated",
            "exposures",
            "unit_tests",
            "semantic_models",
            "metrics",
            "latest_version",
            "versions",
            "nullable",
            "required",
            "readOnly",
            "writeOnly",
            "semanticType",
            "quote",
            "quoting",
            "loaded_at_field",
            "encryptedName",
            "precision",
            "scale",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "minimumExclusive",
            "maximumExclusive",
            "unit",
            "minProperties",
            "maxProperties",
            "dialect",
            "timezone",
            "defaultTimezone",
        ],
        NO_PLACE,
    ),
    (&["customProperties", "meta"], CUSTOM),
    (&["price"], PRICE),
    (&["roles", "access", "grants"], ACCESS),
    (
        &[
            "items",
            "logicalTypeOptions",
            "keys",
            "values",
            "physicalType",
            "logicalType",
            "type",
            "data_type",
            "minItems",
            "maxItems",
            "oneOf",
            "anyOf",
            "allOf",
            "additionalProperties",
            "patternProperties",
            "multipleOf",
        ],
        TYPE,
    ),
    (
        &["pii", "contains_pii", "classification", "criticalData"],
        "adds no limit to who may learn what",
    ),
    (
        &["definitions", "$defs"],
        "a definition that no property uses, or a part that has no use there",
    ),
];

/// Keys that stand in many places and say something only where no other key does.
const COMMON: &[&str] = &[
    "id", "name", "type", "kind", "version", "status", "owner", "group", "items", "keys", "values",
    "default", "order", "format", "config", "location", "alias",
];

/// Why the part at the end of these keys is not carried.
#[must_use]
pub(crate) fn of(keys: &[&str]) -> &'static str {
    let reason = |key: &&str| {
        let known = KEYS.iter().find(|(known, _)| known.contains(key)).map(|(_, reason)| *reason);
        known.or_else(|| access::is_about_readers(key).then_some(ACCESS))
    };
    let telling = keys.iter().rev().filter(|key| !COMMON.contains(key)).find_map(reason);
    telling.or_else(|| keys.iter().rev().find_map(reason)).unwrap_or(UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_known_key_decides() {
        assert_eq!(of(&["servers", "production", "description"]), TEXT);
        assert_eq!(of(&["servers", "production", "anything"]), PLACE);
        assert_eq!(of(&["servers", "type"]), PLACE);
        assert_eq!(of(&["name"]), VERSION);
        assert_eq!(of(&["anything", "else"]), UNKNOWN);
        for key in ["readers", "allowedGroups", "accessControl", "accessRoles", "denyList"] {
            assert_eq!(of(&["meta", key, "anything"]), ACCESS);
        }
        assert_eq!(of(&["properties", "readOnly"]), NO_PLACE);
        assert_eq!(of(&["properties", "customProperties", "value"]), CUSTOM);
    }

    #[test]
    fn no_key_has_two_reasons() {
        let mut all: Vec<_> = KEYS.iter().flat_map(|(keys, _)| keys.iter()).collect();
        let listed = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), listed);
    }
}
