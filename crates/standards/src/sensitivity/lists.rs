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
    "personenbezogenen",
    "personenbezogener",
    "personenbezogenes",
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
    "health information",
    "special category",
];
/// Words of texts that keep back what they are about.
pub(super) const SECRETS: &[&str] =
    &["confidential", "hipaa", "vertraulich", "geheim", "confidentiel", "confidencial"];
/// What texts call what is kept back; a star stands for any end of a word.
pub(super) const THINGS: &[&str] = &[
    "protected health",
    "special categor*",
    "sensitive personal",
    "sensitive data",
    "sensitive information",
    "besondere kategorie*",
    "besonderer kategorie*",
];
/// What texts call what is about persons.
pub(super) const PERSONS: &[&str] =
    &["personally identif*", "personal data", "personal information", "personenbezogen*"];
/// Words that stand alone as a mark, as in `[RESTRICTED] salary`.
pub(super) const MARKS: &[&str] =
    &["restricted", "sensitive", "confidential", "vertraulich", "geheim"];
/// Words that a mark may have around it.
pub(super) const INTENSIFIERS: &[&str] =
    &["highly", "very", "strictly", "extremely", "most", "top", "streng"];
/// What a mark may be about.
pub(super) const SUBJECTS: &[&str] = &[
    "this",
    "it",
    "field",
    "column",
    "attribute",
    "property",
    "value",
    "values",
    "data",
    "information",
];
/// Words before `sensitive` that have nothing to do with who may learn what.
pub(super) const UNRELATED: &[&str] =
    &["case", "time", "price", "cost", "accent", "locale", "context", "temperature", "space"];
/// What texts call a level, without what joins its words.
pub(super) const LEVELS: &[&str] = &[
    "classification",
    "sensitivity",
    "confidentiality",
    "sensitivitylevel",
    "securitylevel",
    "privacylevel",
    "confidentialitylevel",
    "klassifizierung",
    "vertraulichkeit",
];
/// Words that may stand between a negation and what it denies.
pub(super) const FILLERS: &[&str] = &[
    "a",
    "an",
    "any",
    "as",
    "be",
    "been",
    "classified",
    "considered",
    "contain",
    "containing",
    "contains",
    "hold",
    "holds",
    "include",
    "includes",
    "longer",
    "the",
    "treated",
];
/// Words that take something out of a negation.
pub(super) const EXCEPTIONS: &[&str] =
    &["apart", "aside", "besides", "except", "excepting", "excluding", "unless"];
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
/// Words of which each of those has one.
pub(super) const HOUSE_WORDS: &[&str] =
    &["internal", "share", "shared", "distribute", "redistribute", "distribution"];
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
pub(super) const BEFORE: &[&str] =
    &["no", "not", "non", "never", "without", "kein", "keine", "keinen", "keiner", "nicht", "ohne"];
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
