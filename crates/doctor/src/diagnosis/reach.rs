//! What it means that a process answers, or does not.

use super::{MAX_SKEW_SECONDS, finding, free, is_any_full, renew};
use crate::facts::{Answer, Endpoint, Facts, Reach, Rejection};
use crate::fault::{Fault, Finding};

/// The service at its address.
pub(super) fn endpoint(end: &Endpoint, facts: &Facts, found: &mut Vec<Finding>) {
    let address = &end.address;
    match &end.reach {
        Reach::Answered(answer) => answered(address, answer, facts, found),
        // A full disk has ended it.
        Reach::Refused | Reach::Silent if is_any_full(facts) => {}
        Reach::Refused => {
            let cause = format!("nothing listens at {address}");
            let fix =
                "systemctl status alpheus-server, and compare the port with `api` in its settings";
            found.push(finding(Fault::WrongPort, cause, fix));
        }
        Reach::Silent => {
            let cause = format!(
                "nobody answers at {address}: the network is down, a firewall blocks it, or the process hangs"
            );
            let fix = format!("curl --verbose --connect-timeout 5 --insecure {address}/healthz");
            found.push(finding(Fault::Partition, cause, fix));
        }
        other => certified(address, other, facts, found),
    }
}

/// A host of controllers at its address.
pub(super) fn controller(end: &Endpoint, facts: &Facts, found: &mut Vec<Finding>) {
    let address = &end.address;
    match &end.reach {
        Reach::Answered(answer) => {
            answered(address, answer, facts, found);
            partition(address, answer, facts, found);
        }
        Reach::Refused | Reach::Silent if is_any_full(facts) => {}
        Reach::Refused | Reach::Silent => {
            let cause = format!("the host of controllers at {address} does not answer");
            found.push(finding(Fault::DeadController, cause, START_HOST));
        }
        other => certified(address, other, facts, found),
    }
}

pub(super) const START_HOST: &str =
    "systemctl restart alpheus-controller on its machine; its log says why it ended";

/// A host that runs and has no connection to the service, which others have.
fn partition(address: &str, answer: &Answer, facts: &Facts, found: &mut Vec<Finding>) {
    let is_cut = answer.parts.get("service").is_some_and(|state| state == "starting");
    let service = facts.service.as_ref().map(|service| &service.endpoint);
    let others_reach_it = service.is_some_and(|end| matches!(end.reach, Reach::Answered(_)));
    if is_cut && others_reach_it {
        let cause = format!("{} at {address} runs, but does not reach the service", answer.name);
        let fix = match service {
            Some(end) => {
                format!("on that machine: curl --verbose --insecure {}/healthz", end.address)
            }
            None => String::new(),
        };
        found.push(finding(Fault::Partition, cause, fix));
    }
}

/// What an answer says by itself.
fn answered(address: &str, answer: &Answer, facts: &Facts, found: &mut Vec<Finding>) {
    if let Some(build) = answer.build.as_ref().filter(|build| **build != facts.build) {
        let cause = format!("{address} runs {build}, but this program is {}", facts.build);
        let fix = "install the same version on both: apt install ./alpheus_*.deb";
        found.push(finding(Fault::OldBuild, cause, fix));
    }
    if let Some(ahead) =
        answer.ahead_seconds.filter(|ahead| ahead.unsigned_abs() > MAX_SKEW_SECONDS)
    {
        let cause = format!("the clock at {address} is {ahead} s ahead of the one here");
        let fix = "timedatectl set-ntp true, on the machine whose `timedatectl` shows a wrong time";
        found.push(finding(Fault::Clock, cause, fix));
    }
    // The service's own word on its machine's clock.
    if let Some(note) = answer.notes.get("clock") {
        let fix = "timedatectl set-ntp true, on that machine";
        found.push(finding(Fault::Clock, format!("{address}: {note}"), fix));
    }
    let failed = |part: &str| answer.parts.get(part).is_some_and(|state| state == "failed");
    if failed("space") {
        let cause = format!("the disk of {} at {address} is full", answer.name);
        found.push(finding(Fault::FullDisk, cause, free("the state folder, on that machine")));
    }
    if failed("certificate") {
        let cause = format!("the certificate of {} at {address} has expired", answer.name);
        found.push(finding(Fault::ExpiredCertificate, cause, renew("its folder")));
    }
    not_ready(address, answer, facts, found);
}

/// Parts that no other fault explains.
fn not_ready(address: &str, answer: &Answer, facts: &Facts, found: &mut Vec<Finding>) {
    let Answer { name, parts, notes, .. } = answer;
    let is_full = parts.get("space").is_some_and(|state| state == "failed");
    let is_said = |part: &str| match part {
        "space" | "certificate" => true,
        // A host that does not reach the service: either is named by how the service is reached.
        "service" => facts.service.is_some(),
        _ => is_full,
    };
    for (part, state) in parts.iter().filter(|(part, state)| *state != "ready" && !is_said(part)) {
        let why = notes.get(part).map_or_else(String::new, |note| format!(": {note}"));
        let cause = format!("`{part}` of {name} at {address} is {state}{why}");
        let fix = match part.as_str() {
            "disk" => "dmesg, iostat -x 1, on that machine",
            "engine" => {
                "on that machine, the disk first (iostat -x 1), then the processor (top); its log says more"
            }
            "service" => "its log says why it does not reach the service; give `--server`, too",
            _ => "its log says why: journalctl -u its unit, on that machine",
        };
        found.push(finding(Fault::PartNotReady, cause, fix));
    }
}

/// What an address and certificates say, of either end.
fn certified(address: &str, reach: &Reach, facts: &Facts, found: &mut Vec<Finding>) {
    let own = facts.identity.as_ref();
    let folder = own.map_or("the identity folder", |own| own.folder.as_str());
    // What is wrong with the caller's own files was said already.
    let is_own_fault = own.is_some_and(|own| own.valid_seconds <= 0 || !own.other_keys.is_empty());
    found.extend(match reach {
        Reach::RejectedUs(_) if is_own_fault => None,
        _ => misled(address, reach).or_else(|| refused(address, reach, folder)),
    });
}

/// The address is wrong.
fn misled(address: &str, reach: &Reach) -> Option<Finding> {
    let host = host_of(address);
    let (fault, cause, fix) = match reach {
        Reach::NoSuchHost => {
            let fix = format!("correct the name, or: getent hosts {host}");
            (Fault::WrongName, format!("no host has the name in {address}"), fix)
        }
        Reach::OtherHost => {
            let fix = format!(
                "alpheus ca issue pki --role ROLE --name NAME --host {host}, or use a name in its certificate"
            );
            let cause = format!("the certificate at {address} is for another host name");
            (Fault::WrongName, cause, fix)
        }
        Reach::NotTls => {
            let fix = "compare the port with `api` in the settings of the process".to_owned();
            (Fault::WrongPort, format!("the listener at {address} does not speak TLS"), fix)
        }
        Reach::OtherPeer { role, name, expected } => {
            let fault = if role == expected { Fault::WrongName } else { Fault::WrongRole };
            let cause =
                format!("the {role} {name} is at {address}, but another {expected} was expected");
            (fault, cause, "correct the address".to_owned())
        }
        _ => return None,
    };
    Some(finding(fault, cause, fix))
}

/// A certificate is refused.
fn refused(address: &str, reach: &Reach, folder: &str) -> Option<Finding> {
    let (fault, cause, fix) = match reach {
        Reach::Expired => {
            let cause = format!("the certificate at {address} has expired");
            (Fault::ExpiredCertificate, cause, renew("its folder"))
        }
        Reach::NotYetValid => {
            let cause = format!(
                "the certificate at {address} is not valid yet: one of the clocks is wrong"
            );
            (Fault::Clock, cause, "timedatectl set-ntp true".to_owned())
        }
        Reach::OtherAuthority | Reach::RejectedUs(Rejection::OtherAuthority) => {
            let cause =
                format!("{folder} and the process at {address} are of different authorities");
            let fix = "take the identity folder that this deployment's authority issued: alpheus ca issue";
            (Fault::WrongKey, cause, fix.to_owned())
        }
        Reach::RejectedUs(Rejection::Expired) => {
            let cause = format!("{address} reports that the certificate in {folder} has expired");
            (Fault::ExpiredCertificate, cause, renew(folder))
        }
        Reach::Revoked | Reach::RejectedUs(Rejection::Revoked | Rejection::Other) => {
            let cause = format!(
                "a certificate is refused between {folder} and {address}; the authority may have revoked it"
            );
            (Fault::WrongKey, cause, "alpheus ca issue, under another name".to_owned())
        }
        _ => return None,
    };
    Some(finding(fault, cause, fix))
}

/// The host in a URL.
fn host_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.rsplit_once(':').map_or(rest, |(host, _)| host)
}
