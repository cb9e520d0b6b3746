//! What words, keys and tags say, in many spellings.

use super::*;
use Level::{Internal, Personal, Public, Restricted};

fn level(yaml: &str) -> Option<Level> {
    let tree = Tree::parse(yaml).unwrap();
    labels(&Cursor::root(&tree)).iter().map(|label| label.level).max()
}

#[test]
fn limits_are_found_in_every_spelling() {
    for (yaml, expected) in [
        ("classification: public", Some(Public)),
        ("classification: Internal", Some(Internal)),
        ("classification: internal use only", Some(Internal)),
        ("classification: restricted", Some(Restricted)),
        ("classification: non-public", Some(Restricted)),
        ("classification: C2", Some(Restricted)),
        ("classification: unclassified", Some(Restricted)),
        ("sensitivity: Unclassified", Some(Restricted)),
        ("pii: true", Some(Personal)),
        ("pii: 'yes'", Some(Personal)),
        ("pii: email", Some(Personal)),
        ("pii: false", None),
        ("tags: ['pii:false', finance]", None),
        ("tags: ['pii:true']", Some(Personal)),
        ("tags: [non-pii]", None),
        ("tags: [PII]", Some(Personal)),
        ("tags: ['classification=secret']", Some(Restricted)),
        ("tags: [uid, orders]", None),
        ("tags: ['schema:public', public]", None),
        ("tags: ['classification:public']", Some(Public)),
        ("confluent:tags: [PRIVATE]", Some(Restricted)),
        ("config: {meta: {contains_pii: true}}", Some(Personal)),
        ("meta: {privacy: {masking: sha256}}", Some(Restricted)),
        ("customProperties: [{property: anonymizationStrategy, value: none}]", None),
        ("customProperties: [{property: pii, value: true}]", Some(Personal)),
        ("encryptedName: enc_id", Some(Restricted)),
        ("description: User first name (PII).", Some(Personal)),
        ("description: This is not PII", None),
        ("description: Not case-sensitive, public", None),
        ("policy_tags: [projects/a/taxonomies/b]", Some(Restricted)),
        ("databricks_tags: {pii: 'true', team: x}", Some(Personal)),
        ("tags: {sensitivity: high}", Some(Restricted)),
        ("quality: [{description: pii}]", None),
    ] {
        assert_eq!(level(yaml), expected, "{yaml}");
    }
}

#[test]
fn keys_and_tags_limit_in_whatever_way_they_are_put_together() {
    for yaml in [
        "sensitivity_label: Highly Confidential",
        "sensitivityLabel: Secret",
        "data_classification_tag: C3",
        "security_class: 3",
        "dataProtectionClass: high",
        "meta: {classification_tag: amber}",
        "meta: {security: {level: high}}",
        "access_level: restricted",
        "visibility: private",
        "visibility: some",
        "classified: true",
        "classification: '***'",
        "is_public: false",
        "protected: true",
        "mask_type: sha256",
        "data_tags: [secret]",
        "tags: [sensitivity/high]",
        "tags: [sensitivity-high]",
        "tags: [high_sensitivity]",
        "tags: [SensitivityHigh]",
        "tags: [masking-sha256]",
        "tags: [topsecret]",
        "anything: strictly confidential",
    ] {
        assert_eq!(level(yaml), Some(Restricted), "{yaml}");
    }
    assert_eq!(level("is_internal: true"), Some(Internal));
}

#[test]
fn flags_and_notes_about_persons_are_found_however_their_words_are_joined_or_denied() {
    for yaml in [
        "hasPIIData: true",
        "PIIFlag: true",
        "GDPRRelevant: yes",
        "PIIType: email",
        "pii2: true",
        "haspii: true",
        "nonpii: false",
        "not_masked_no_export_pii: true",
        "pii: '?'",
        "pii: not none",
        "personaldata: true",
        "tags: [PIIData]",
        "tags: [not-pii-free]",
        "anything: holds PII",
        "description: 'Limitations: none. PII included'",
        "description: 'Limitations: none - PII included'",
        "description: 'Limitations: none PII included'",
        "description: 'Limits: none (PII)'",
        "description: PII free text",
    ] {
        let least = if yaml.contains("masked") { Restricted } else { Personal };
        assert_eq!(level(yaml), Some(least), "{yaml}");
    }
}

#[test]
fn only_a_classification_of_its_own_opens_and_other_words_say_nothing() {
    for yaml in [
        "visibility: public",
        "access_level: public",
        "previous_classification: public",
        "sensitivity_label: public",
        "tags: [classification-public]",
        "public: true",
        "priority: critical",
        "owner: Private Banking",
        "nonpii: true",
        "pii_free: true",
        "access: protected",
        "internal_name: x",
        "description: 'PII: none'",
        "tags: [data-classification]",
    ] {
        assert_eq!(level(yaml), None, "{yaml}");
    }
}

#[test]
fn what_is_for_the_house_is_recognised_in_tags_audiences_and_texts() {
    for yaml in [
        "tags: [internal_use]",
        "tags: [internal-use-only]",
        "tags: [company-internal]",
        "tags: [team-only]",
        "tags: [employees-only]",
        "tags: [proprietary]",
        "audience: internal",
        "description: Internal-only; a view stands between",
        "description: {limitations: For internal use only}",
        "description: {usage: Reports. Do not share}",
        "usage: Do not redistribute",
        "description: Access is restricted to analysts",
        "description: Restricted to the finance team",
    ] {
        assert_eq!(level(yaml), Some(Internal), "{yaml}");
    }
    for yaml in ["tags: [non-public]", "tags: [not-public]", "tags: [nonpublic]"] {
        assert_eq!(level(yaml), Some(Restricted), "{yaml}");
    }
    for yaml in [
        "tags: [not-internal]",
        "tags: ['department:internal audit']",
        "audience: everyone",
        "description: Moved by internal transport",
        "description: Not restricted to members",
        "description: Values restricted to 0-100",
        "description: The team decides. Values are restricted to 0-100",
        "tags: [publications]",
    ] {
        assert_eq!(level(yaml), None, "{yaml}");
    }
}

#[test]
fn tags_for_special_kinds_of_data_restrict() {
    for tag in
        ["health", "medical", "biometric", "ssn", "credit_card", "special_category", "tokenized"]
    {
        assert_eq!(level(&format!("tags: [{tag}]")), Some(Restricted), "{tag}");
    }
    for yaml in [
        "tags: ['category:medical']",
        "tags: [{medical: true}]",
        "tags: {data_category: health}",
        "labels: {biometric: 'true'}",
        "tags: ['access:non-public']",
        "meta: {medical: true}",
        "meta: {data_category: health}",
        "customProperties: [{property: dataCategory, value: credit card}]",
    ] {
        assert_eq!(level(yaml), Some(Restricted), "{yaml}");
    }
    for yaml in ["tags: {medical: false}", "tags: ['owner:health']", "meta: {unit: health}"] {
        assert_eq!(level(yaml), None, "{yaml}");
    }
    for tag in ["health-check", "card", "non-medical"] {
        assert_eq!(level(&format!("tags: [{tag}]")), None, "{tag}");
    }
}

#[test]
fn words_with_parts_and_negations_are_read_as_meant() {
    for (yaml, expected) in [
        ("classification: {level: restricted}", Some(Restricted)),
        ("classification: [public, secret]", Some(Restricted)),
        ("meta: {pii: {category: email}}", Some(Personal)),
        ("meta: {pii: {is_pii: false}}", None),
        ("meta: {masking: {policy: none}}", None),
        ("meta: {masking: {policy: sha256}}", Some(Restricted)),
        ("metadata: {pii: true}", Some(Personal)),
        ("tags: [Personally Identifiable Information]", Some(Personal)),
        ("tags: [personaldata]", Some(Personal)),
        ("tags: [personenbezogen]", Some(Personal)),
        ("tags: [vertraulich]", Some(Restricted)),
        ("tags: [confidential-do-not-share]", Some(Restricted)),
        ("tags: ['PII, not for export']", Some(Personal)),
        ("tags: [pii-free]", None),
        ("tags: [pii_false]", None),
        ("tags: [not_confidential]", None),
        ("customProperties: [{name: pii, value: true}]", Some(Personal)),
        ("customProperties: [{property: pii, value: false}]", None),
        ("customProperties: [{property: x, value: 1, description: has PII}]", Some(Personal)),
        ("meta: {privacy_category: SENSITIVE}", Some(Restricted)),
        ("description: {limitations: Contains PII.}", Some(Personal)),
        ("description: No PII in a, but PII in b", Some(Personal)),
        ("description: Strictly confidential.", Some(Restricted)),
        ("businessName: Mail (PII)", Some(Personal)),
        ("config: {bigqueryPolicyTags: [a/b]}", Some(Restricted)),
        ("meta: {is_pii_data: true}", Some(Personal)),
        ("meta: {non_pii: true}", None),
        ("meta: {non_pii: false}", Some(Personal)),
        ("type: {fields: [{tags: [PII]}]}", None),
        ("server: {description: may hold PII}", Some(Personal)),
        // Readers of one part alone: no option is so narrow.
        ("roles: [{role: x}]", Some(Restricted)),
        ("roles: []", None),
        ("ruleSet: {domainRules: [{tags: [PII]}]}", None),
    ] {
        assert_eq!(level(yaml), expected, "{yaml}");
    }
}

#[test]
fn clear_statements_of_texts_restrict_wherever_they_stand() {
    for (text, expected) in [
        ("'Classification: Restricted'", Some(Restricted)),
        ("'Pay. Data classification: secret (HR)'", Some(Restricted)),
        ("'Sensitivity: high. Pay'", Some(Restricted)),
        ("'Sensitivity level = high'", Some(Restricted)),
        ("'Classification: internal'", Some(Internal)),
        ("'Classification: PII'", Some(Personal)),
        ("'[RESTRICTED] pay'", Some(Restricted)),
        ("RESTRICTED - keep", Some(Restricted)),
        ("'Restricted: pay of staff'", Some(Restricted)),
        ("Pay (sensitive)", Some(Restricted)),
        ("Pay. Sensitive.", Some(Restricted)),
        ("Highly sensitive. Pay of staff", Some(Restricted)),
        ("Top secret", Some(Restricted)),
        ("This field is highly sensitive.", Some(Restricted)),
        ("Holds sensitive data of staff", Some(Restricted)),
        ("GDPR special category (health)", Some(Restricted)),
        ("Classified as highly secret", Some(Restricted)),
        ("HIPAA applies", Some(Restricted)),
        ("Protected health information", Some(Restricted)),
        ("Streng vertraulich", Some(Restricted)),
        ("Personenbezogene Daten", Some(Personal)),
        ("Enthält personenbezogenen Inhalt", Some(Personal)),
        ("Personal  data", Some(Personal)),
        ("Contains no PII except the mail", Some(Personal)),
        ("Not only personal data", Some(Personal)),
        ("No value or personal data", Some(Personal)),
        ("No PII. Mail or personal data", Some(Personal)),
        ("Never share. Personal data", Some(Personal)),
    ] {
        assert_eq!(level(&format!("description: {text}")), expected, "{text}");
    }
}

#[test]
fn denials_and_other_uses_of_such_words_restrict_nothing() {
    for text in [
        "contains no PII",
        "does not contain any PII",
        "contains no personal data",
        "contains no PII or confidential data",
        "Not personal or sensitive information",
        "Keine personenbezogenen Daten",
        "not sensitive",
        "Not considered sensitive.",
        "not classified as secret",
        "This field is not sensitive",
        "non-confidential",
        "no longer confidential",
        "Case-sensitive data",
        "'Classification: NACE code'",
        "'Classification: public'",
        "'Sensitivity: none'",
        "'Type: private'",
        "'One of: open, private, secret'",
        "'Kind of room (private)'",
        "Number of secret messages",
        "Health of the node",
        "\"Visibility:\\n- private\\n- open\"",
    ] {
        assert_eq!(level(&format!("description: {text}")), None, "{text}");
    }
}

#[test]
fn a_denial_ends_where_its_list_ends() {
    for (text, said) in [
        ("'Not masked: customer name or confidential remark'", Restricted),
        ("No special handling for names or confidential remarks", Restricted),
        ("There is no private endpoint and this holds customer or confidential notes", Restricted),
        ("\"Shareable: no\\nPersonal data of the customer\"", Personal),
        ("'Shareable: no personal data of the customer'", Personal),
        ("This is not a PII-free column", Personal),
    ] {
        assert_eq!(level(&format!("description: {text}")), Some(said), "{text}");
    }
}

#[test]
fn the_description_of_a_link_counts_and_its_target_does_not() {
    let links = |own: &str| level(&format!("authoritativeDefinitions: [{{ {own} }}]"));
    let url = "type: classification, url: 'https://x/restricted'";
    assert_eq!(links(url), None);
    assert_eq!(links(&format!("{url}, description: 'PII: this is personal data'")), Some(Personal));
    assert_eq!(links(&format!("{url}, description: Confidential")), Some(Restricted));
    assert_eq!(level("tags: [health-information]"), Some(Restricted));
}
