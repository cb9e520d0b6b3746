//! The words and keys that say who may learn a value, and those that do not.

pub(super) const PERSONAL: &[&str] = &[
    "pii",
    "personal",
    "personally",
    "gdpr",
    "ccpa",
    "lgpd",
    "spi",
    "dsgvo",
    "personenbezogen",
    "personenbezogene",
];
/// Parts of words that say the same where words were joined, as in `haspii` or `nonpii`.
pub(super) const JOINED: &[(&str, &str)] = &[
    ("personaldata", "personal"),
    ("personalinfo", "personal"),
    ("personallyidentif", "personal"),
    ("personenbezogen", "personal"),
    ("pii", "pii"),
    ("gdpr", "gdpr"),
    ("dsgvo", "dsgvo"),
    ("hipaa", "hipaa"),
    ("confidential", "confidential"),
    ("vertraulich", "vertraulich"),
    ("topsecret", "secret"),
];
pub(super) const RESTRICTED: &[&str] = &[
    "restricted",
    "confidential",
    "secret",
    "sensitive",
    "private",
    "phi",
    "pci",
    "hipaa",
    "encrypted",
    "encrypt",
    "masked",
    "critical",
    "highly",
    "protected",
    "special",
    "spii",
    "vertraulich",
    "geheim",
    "confidentiel",
    "confidencial",
];
pub(super) const INTERNAL: &[&str] = &["internal", "company", "employees", "intern"];
/// Not `unclassified`: in catalogues that means not classified yet.
pub(super) const PUBLIC: &[&str] = &["public", "open", "unrestricted", "opendata"];
/// Tags that restrict, and texts that anybody may write about anything.
pub(super) const TAGGED: &[&str] = &[
    "biometric",
    "biometrics",
    "medical",
    "ssn",
    "tokenised",
    "tokenized",
    "credit card",
    "health data",
    "health record",
    "health records",
    "special category",
];
/// Words of tags that say who alone may have something, before `only`.
pub(super) const ALONE: &[&str] = &["team", "employee", "employees", "staff", "company", "house"];
/// What texts say of something that is for the house.
pub(super) const HOUSE: &[&str] = &[
    "internal use",
    "internal only",
    "internal purposes",
    "do not share",
    "do not distribute",
    "do not redistribute",
    "not to be shared",
    "not for distribution",
];
/// Words beside "restricted to" if it is people to whom something is.
pub(super) const PEOPLE: &[&str] = &[
    "access",
    "accessible",
    "use",
    "usage",
    "user",
    "users",
    "team",
    "teams",
    "staff",
    "employee",
    "employees",
    "personnel",
    "people",
    "persons",
    "group",
    "groups",
    "department",
    "departments",
    "members",
    "analysts",
    "managers",
    "authorized",
    "authorised",
    "internal",
];
/// Keys whose value `internal` says who it is for. Of most keys it says nothing of the kind.
pub(super) const AUDIENCES: &[&str] = &["audience", "intendedaudience", "exposure", "scope"];
pub(super) const NEGATIONS: &[&str] = &["no", "not", "non", "none", "false", "without", "0", "n"];
/// Those that deny what follows: "Limitations: none PII" denies nothing.
pub(super) const BEFORE: &[&str] = &["no", "not", "non", "without"];
/// Words that say a level only where one is asked for: a critical priority is no secret.
pub(super) const VAGUE: &[&str] = &["critical", "highly", "special"];

/// Keys whose value names a level; only they can say that something is public. An unknown value is
/// taken for the strictest, also of a key that has one of these in it.
pub(super) const CLASSIFICATIONS: &[&str] = &[
    "classification",
    "sensitivity",
    "confidentiality",
    "dataclassification",
    "datasensitivity",
    "sensitivitylevel",
    "securitylevel",
    "securityclassification",
    "privacyclass",
    "privacylevel",
    "classificationlevel",
    "dataclass",
];
/// Keys that may have one of these in them, whose value limits and never opens.
pub(super) const LIMITS: &[&str] = &[
    "classified",
    "securityclass",
    "securitylabel",
    "protectionclass",
    "protectionlevel",
    "accesslevel",
    "accessclass",
    "visibility",
];
/// Keys that have one of these in them, of which any value but a negation says that the plain value
/// is kept back.
pub(super) const PROTECTIONS: &[&str] = &[
    "encrypt",
    "anonymi",
    "mask",
    "tokeniz",
    "tokenis",
    "pseudonymi",
    "policytag",
    "obfuscat",
    "redact",
    "hashing",
    "hashed",
];
/// Words of keys whose texts are tags.
pub(super) const TAGS: &[&str] =
    &["tags", "tag", "labels", "label", "databrickstags", "snowflaketags"];
/// Keys whose texts are for people. Only unmistakable words count there.
pub(super) const NOTES: &[&str] = &["description", "doc", "comment", "businessname", "title"];
/// Keys whose texts are names or syntax: of types, of other parts, of those in charge.
pub(super) const NAMES: &[&str] = &[
    "type",
    "logicaltype",
    "physicaltype",
    "datatype",
    "format",
    "pattern",
    "const",
    "required",
    "aliases",
    "symbols",
    "namespace",
    "id",
    "$id",
    "$ref",
    "$schema",
    "$anchor",
    "unit",
    "owner",
    "domain",
    "tenant",
    "dataproduct",
    "version",
    "apiversion",
    "expression",
    "expr",
    "primarykey",
    "uniquekey",
    "uniquekeys",
    "subject",
    "schematype",
    "group",
];
/// Longest text under an unknown key that is read as a tag is; in a longer one only unmistakable
/// words count.
pub(super) const SHORT: usize = 64;
/// Parts of a column, table or contract that say nothing about its values.
pub(super) const SILENT: &[&str] = &[
    "lineage",
    "authoritativeDefinitions",
    "relationships",
    "default",
    "values",
    "name",
    "physicalName",
    "keys",
    "links",
    "transformSourceObjects",
    "transformLogic",
    "roles",
    "servicelevels",
    "slaProperties",
    "support",
    "price",
    "contact",
    "terms",
    "ruleSet",
    "defaultRuleSet",
    "overrideRuleSet",
    "domainRules",
    "migrationRules",
    "encodingRules",
];
/// Parts with columns of their own, at any depth.
pub(super) const INNER: &[&str] = &["properties", "fields", "items", "columns", "tables"];
