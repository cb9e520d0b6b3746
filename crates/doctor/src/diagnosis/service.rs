//! What it means that the service has counted something.

use super::finding;
use super::reach::START_HOST;
use crate::facts::{CountFacts, Facts, QueryFacts, Reach, ServiceFacts, Sign};
use crate::fault::{Fault, Finding};

/// What the service tells consumers and operators.
pub(super) fn counted(service: &ServiceFacts, facts: &Facts, found: &mut Vec<Finding>) {
    silent_hosts(service, facts, found);
    service.queries.iter().for_each(|query| brittle(query, found));
    if let Some(counts) = &service.counts {
        state_lost(counts, found);
        left_out(counts, found);
        frames(counts, found);
        presence(counts, service, facts, found);
    }
}

/// Hosts that were not heard from, but for those that were asked directly: these say more.
fn silent_hosts(service: &ServiceFacts, facts: &Facts, found: &mut Vec<Finding>) {
    let answers = |name: &str| {
        facts
            .controllers
            .iter()
            .any(|end| matches!(&end.reach, Reach::Answered(who) if who.name == name))
    };
    let is_known = |name: &str, found: &[Finding]| {
        found.iter().any(|known| known.fault == Fault::Partition && known.cause.starts_with(name))
    };
    for name in &service.silent_hosts {
        if is_known(name, found) {
            continue;
        }
        let (fault, cause, fix) = match answers(name) {
            true => {
                let cause = format!("{name} runs, but the service does not hear from it");
                let fix = format!(
                    "on its machine: curl --verbose --insecure {}/healthz",
                    service.endpoint.address
                );
                (Fault::Partition, cause, fix)
            }
            false => (
                Fault::DeadController,
                format!("the service does not hear from {name}"),
                START_HOST.to_owned(),
            ),
        };
        found.push(finding(fault, cause, fix));
    }
    let unnamed = service.counts.as_ref().map_or(0, |counts| counts.silent_hosts);
    if service.silent_hosts.is_empty() && unnamed > 0 && !is_any_host_gone(found) {
        let cause = format!("the service does not hear from {unnamed} hosts of controllers");
        found.push(finding(Fault::DeadController, cause, START_HOST));
    }
}

fn is_any_host_gone(found: &[Finding]) -> bool {
    found.iter().any(|known| matches!(known.fault, Fault::DeadController | Fault::Partition))
}

fn brittle(query: &QueryFacts, found: &mut Vec<Finding>) {
    let QueryFacts { name, least, streams } = query;
    // With one owner in all, nobody can be absent without the query having nothing to say.
    if *streams > 1 && *least as usize >= *streams {
        let cause =
            format!("{name} needs {least} owners in each window, and has {streams} streams");
        let fix = format!(
            "alpheus query --query 'DROP STREAM {name}', then ask again with a smaller BETWEEN or more owners; \
             alpheus suggest shows what is allowed"
        );
        found.push(finding(Fault::BrittlePlan, cause, fix));
    }
}

fn state_lost(counts: &CountFacts, found: &mut Vec<Finding>) {
    if counts.is_state_lost {
        let cause = "devices or controllers have seen more of the service's state than it has: \
                     it was restored from an older backup, or emptied";
        let fix = "ask queries again that are missing (SHOW QUERIES), and restart the service once devices send: \
                    systemctl restart alpheus-server; take backups more often: alpheus backup";
        found.push(finding(Fault::StaleBackup, cause, fix));
    }
}

/// Why streams are left out of windows.
fn left_out(counts: &CountFacts, found: &mut Vec<Finding>) {
    let kinds = [
        (
            Sign::BudgetSpent,
            Fault::BudgetSpent,
            "their owners' privacy budgets are spent",
            "DROP STREAM the query, or wait for the next period; an owner sees the rest: alpheus owner budgets",
        ),
        (
            Sign::Unconfirmed,
            Fault::LostLedger,
            "a controller was restored from a ledger that may not be the latest, and their owners have not confirmed",
            "each owner submits the policy again: alpheus owner choose",
        ),
        (
            Sign::PolicyForbids,
            Fault::BlockedAttribute,
            "their owners' policies do not allow it",
            "DROP STREAM the query and ask what is allowed: alpheus suggest",
        ),
    ];
    for (sign, fault, why, fix) in kinds {
        if let Some(times) = seen(counts, sign) {
            let cause = format!("streams were left out of windows lately ({times} times): {why}");
            found.push(finding(fault, cause, fix));
        }
    }
}

fn frames(counts: &CountFacts, found: &mut Vec<Finding>) {
    // Devices of a service that lost its state open new sessions by themselves.
    if let Some(times) = seen(counts, Sign::UnknownSession).filter(|_| !counts.is_state_lost) {
        let cause = format!("{times} frames lately are of sessions that the service does not know");
        let fix = "restart the device: it opens a new session; its alpheus_device_frames_refused_total says which one";
        found.push(finding(Fault::UnknownSession, cause, fix));
    }
    if let Some(times) = seen(counts, Sign::Forged) {
        let cause =
            format!("{times} frames or sums lately were not made by the device of their stream");
        let fix = "the log of the service at the level debug names the sender; revoke it: alpheus ca revoke pki FILE";
        found.push(finding(Fault::ForgedFrames, cause, fix));
    }
    if let Some(times) = seen(counts, Sign::FutureFrames) {
        let cause =
            format!("{times} frames lately are from the future: clocks of devices are ahead");
        let fix = "timedatectl set-ntp true, on the devices";
        found.push(finding(Fault::Clock, cause, fix));
    }
}

/// A controller that is there but was not in time. One that is not there explains more.
fn presence(counts: &CountFacts, service: &ServiceFacts, facts: &Facts, found: &mut Vec<Finding>) {
    let direct = |end: &crate::facts::Endpoint| match &end.reach {
        Reach::Answered(answer) => {
            answer.parts.get("service").is_some_and(|state| state != "ready")
        }
        _ => true,
    };
    let is_gone = counts.silent_hosts > 0
        || !service.silent_hosts.is_empty()
        || facts.controllers.iter().any(direct);
    if let Some(times) = seen(counts, Sign::ControllerAbsent).filter(|_| !is_gone) {
        let cause = format!(
            "all hosts of controllers answer, but {times} times lately one was too late for a window"
        );
        let fix = "look at the load of their machines and at the line (ping), or let windows wait longer: \
                    alpheus server --controller-timeout 10";
        found.push(finding(Fault::MissingPresence, cause, fix));
    }
}

fn seen(counts: &CountFacts, sign: Sign) -> Option<u64> {
    counts.recent.get(&sign).copied().filter(|times| *times > 0)
}
