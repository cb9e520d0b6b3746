//! From facts to findings.
//!
//! A finding is reported only where the facts leave no other cause. Where one fault explains another, the cause
//! alone is named.

mod reach;
mod service;

#[cfg(test)]
mod tests;

use crate::facts::{CardFacts, Facts, IdentityFacts, Reach, SchemaFacts};
use crate::fault::{Fault, Finding};

/// Folders with less room than this are full: a store sets as much aside for its journal.
pub const MIN_FREE_BYTES: u64 = 64 << 20;
/// Clocks that differ by more are wrong: frames from further ahead are refused.
pub const MAX_SKEW_SECONDS: u64 = 60;

/// What is wrong, each cause once, in the order of the faults. Nothing if nothing is.
#[must_use]
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    folders(facts, &mut found);
    if let Some(identity) = &facts.identity {
        own_identity(identity, facts.acts_as.as_deref(), &mut found);
    }
    if let Some(card) = &facts.card {
        own_card(card, &mut found);
    }
    facts.controllers.iter().for_each(|host| reach::controller(host, facts, &mut found));
    if let Some(service) = &facts.service {
        reach::endpoint(&service.endpoint, facts, &mut found);
        schema(facts.schema.as_ref(), service.schema.as_ref(), &mut found);
        service::counted(service, facts, &mut found);
    }
    if let Some(refusal) = facts.refusal.as_ref().filter(|refusal| is_policy(&refusal.id)) {
        let fix = "alpheus errors ".to_owned() + &refusal.id;
        found.push(finding(Fault::BlockedAttribute, refusal.detail.clone(), fix));
    }
    found.extend(facts.service.iter().flat_map(|service| service.found.clone()));
    found.sort();
    // The service and its caller may see the same.
    found.dedup_by(|next, first| next.fault == first.fault && next.cause == first.cause);
    found
}

fn finding(fault: Fault, cause: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { fault, cause: cause.into(), fix: fix.into() }
}

/// Whether an error's id is a refusal that only owners can change.
fn is_policy(id: &str) -> bool {
    id.starts_with("policy-forbids-") || id == "policy-requires-noise"
}

fn folders(facts: &Facts, found: &mut Vec<Finding>) {
    for folder in facts.folders.iter().filter(|folder| folder.free_bytes < MIN_FREE_BYTES) {
        let cause = format!("{} has room for {} bytes", folder.path, folder.free_bytes);
        found.push(finding(Fault::FullDisk, cause, free(&folder.path)));
    }
}

fn free(path: &str) -> String {
    format!(
        "df -h {path}; make room, then start the process again: nothing that was confirmed is lost"
    )
}

/// Whether a folder of this machine is full: its process has ended, or will.
fn is_any_full(facts: &Facts) -> bool {
    facts.folders.iter().any(|folder| folder.free_bytes < MIN_FREE_BYTES)
}

fn own_identity(identity: &IdentityFacts, acts_as: Option<&str>, found: &mut Vec<Finding>) {
    let IdentityFacts { folder, role, name, valid_seconds, other_keys } = identity;
    for file in other_keys {
        let cause = format!("{folder}/{file} is not the key of the certificate next to it");
        let fix = format!(
            "put back the file that was made with the certificate, or make another identity: \
             alpheus ca issue pki --role {role} --name {name}"
        );
        found.push(finding(Fault::WrongKey, cause, fix));
    }
    if *valid_seconds <= 0 {
        let cause = format!("the certificate in {folder} has expired");
        found.push(finding(Fault::ExpiredCertificate, cause, renew(folder)));
    }
    if let Some(wanted) = acts_as.filter(|wanted| wanted != role) {
        let cause = format!("{folder} is for the role {role}, not for {wanted}");
        let fix = format!("alpheus ca issue pki --role {wanted} --name {name}");
        found.push(finding(Fault::WrongRole, cause, fix));
    }
}

fn renew(what: &str) -> String {
    format!("alpheus ca renew pki {what}")
}

fn schema(own: Option<&SchemaFacts>, served: Option<&SchemaFacts>, found: &mut Vec<Finding>) {
    let (Some(own), Some(served)) = (own, served) else { return };
    if own.id == served.id {
        return;
    }
    let named = |schema: &SchemaFacts| format!("{} version {}", schema.name, schema.version);
    let cause = match named(own) == named(served) {
        true => {
            format!(
                "the schema here is {}, but the service's schema of that name differs",
                named(own)
            )
        }
        false => {
            format!("the schema here is {}, but the service serves {}", named(own), named(served))
        }
    };
    let fix = "take the service's: its file is the one that `alpheus server --schema` names";
    found.push(finding(Fault::SchemaVersion, cause, fix));
}

fn own_card(card: &CardFacts, found: &mut Vec<Finding>) {
    let fix = "ask the operator for the deployment's card, and compare its fingerprint: alpheus pass card card.json";
    let mut say = |cause: String| found.push(finding(Fault::WrongCard, cause, fix));
    if let Some(fault) = &card.fault {
        return say(format!("{}: {fault}", card.file));
    }
    if card.is_expected == Some(false) {
        return say(format!("{} does not have the fingerprint that was expected", card.file));
    }
    let other = |reach: &Reach| matches!(reach, Reach::OtherAuthority | Reach::OtherPeer { .. });
    if let Some(end) = card.endpoints.iter().find(|end| other(&end.reach)) {
        let address = &end.address;
        say(format!("{} is not of the deployment that answers at {address}", card.file));
    }
}
