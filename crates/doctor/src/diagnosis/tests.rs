//! Each fault by the facts that show it, and what explains what.

use super::*;
use crate::facts::{
    Answer, CountFacts, Endpoint, FolderFacts, QueryFacts, RefusalFacts, Rejection, ServiceFacts,
    Sign,
};

const BUILD: &str = "alpheus/1.2.3";

fn answer(name: &str) -> Answer {
    let parts = [("service", "ready"), ("store", "ready")];
    let parts = parts.map(|(part, state)| (part.to_owned(), state.to_owned())).into();
    let (build, ahead_seconds) = (Some(BUILD.to_owned()), Some(1));
    Answer { name: name.to_owned(), build, ahead_seconds, parts, notes: [].into() }
}

fn end(address: &str, reach: Reach) -> Endpoint {
    Endpoint { address: address.to_owned(), reach }
}

fn meters(version: u32) -> SchemaFacts {
    SchemaFacts { name: "Meters".into(), version, id: format!("{version:064x}") }
}

/// A deployment in which all is well, as a consumer sees it.
fn well() -> Facts {
    let service = ServiceFacts {
        endpoint: end("https://localhost:7400", Reach::Answered(answer("service"))),
        schema: Some(meters(1)),
        counts: Some(CountFacts::default()),
        silent_hosts: Vec::new(),
        queries: vec![QueryFacts { name: "Readings".into(), least: 2, streams: 3 }],
        found: Vec::new(),
    };
    let identity = IdentityFacts {
        folder: "pki/analyst".into(),
        role: "consumer".into(),
        name: "analyst".into(),
        valid_seconds: 86_400,
        other_keys: Vec::new(),
    };
    let card = CardFacts {
        file: "card.json".into(),
        fault: None,
        is_expected: Some(true),
        endpoints: vec![end("https://localhost:7410", Reach::Answered(answer("issuer")))],
    };
    Facts {
        build: BUILD.into(),
        acts_as: Some("consumer".into()),
        identity: Some(identity),
        schema: Some(meters(1)),
        folders: vec![FolderFacts { path: "run/service".into(), free_bytes: 1 << 30 }],
        card: Some(card),
        service: Some(service),
        controllers: vec![end("https://localhost:7401", Reach::Answered(answer("host")))],
        refusal: None,
    }
}

fn service(facts: &mut Facts) -> &mut ServiceFacts {
    facts.service.as_mut().unwrap_or_else(|| unreachable!("it is there"))
}

fn identity(facts: &mut Facts) -> &mut IdentityFacts {
    facts.identity.as_mut().unwrap_or_else(|| unreachable!("it is there"))
}

fn service_answer(facts: &mut Facts) -> &mut Answer {
    answering(&mut service(facts).endpoint.reach, "service")
}

fn host_answer(facts: &mut Facts) -> &mut Answer {
    answering(&mut facts.controllers[0].reach, "host")
}

/// The answer of a process, which answers from now on.
fn answering<'a>(reach: &'a mut Reach, name: &str) -> &'a mut Answer {
    if !matches!(reach, Reach::Answered(_)) {
        *reach = Reach::Answered(answer(name));
    }
    match reach {
        Reach::Answered(answer) => answer,
        _ => unreachable!("it answers"),
    }
}

fn unreached(facts: &mut Facts, reach: Reach) {
    let service = service(facts);
    service.endpoint.reach = reach;
    (service.schema, service.counts) = (None, None);
    service.queries.clear();
}

fn count(facts: &mut Facts, sign: Sign) {
    if let Some(counts) = &mut service(facts).counts {
        counts.recent.insert(sign, 3);
    }
}

type Change = fn(&mut Facts);

fn other_peer(role: &str) -> Reach {
    Reach::OtherPeer { role: role.into(), name: "host".into(), expected: "server".into() }
}

/// Each way in which a fault shows.
const SHOWN: &[(Fault, Change)] = &[
    (Fault::WrongKey, |facts| identity(facts).other_keys.push("tls.key".into())),
    (Fault::WrongKey, |facts| unreached(facts, Reach::OtherAuthority)),
    (Fault::WrongKey, |facts| unreached(facts, Reach::RejectedUs(Rejection::OtherAuthority))),
    (Fault::WrongKey, |facts| unreached(facts, Reach::RejectedUs(Rejection::Revoked))),
    (Fault::WrongKey, |facts| facts.controllers[0].reach = Reach::Revoked),
    (Fault::SchemaVersion, |facts| facts.schema = Some(meters(2))),
    (Fault::SchemaVersion, |facts| {
        facts.schema = Some(SchemaFacts { id: "ab".repeat(32), ..meters(1) });
    }),
    (Fault::Clock, |facts| service_answer(facts).ahead_seconds = Some(-7_200)),
    (Fault::Clock, |facts| host_answer(facts).ahead_seconds = Some(61)),
    (Fault::Clock, |facts| {
        service_answer(facts).notes.insert("clock".into(), "it has jumped".into());
    }),
    (Fault::Clock, |facts| count(facts, Sign::FutureFrames)),
    (Fault::Clock, |facts| unreached(facts, Reach::NotYetValid)),
    (Fault::LostLedger, |facts| count(facts, Sign::Unconfirmed)),
    (Fault::DeadController, |facts| facts.controllers[0].reach = Reach::Refused),
    (Fault::DeadController, |facts| facts.controllers[0].reach = Reach::Silent),
    (Fault::DeadController, |facts| service(facts).silent_hosts.push("other".into())),
    (Fault::DeadController, |facts| {
        if let Some(counts) = &mut service(facts).counts {
            counts.silent_hosts = 1;
        }
    }),
    (Fault::PartNotReady, |facts| {
        host_answer(facts).parts.insert("disk".into(), "failed".into());
    }),
    (Fault::ExpiredCertificate, |facts| identity(facts).valid_seconds = 0),
    (Fault::ExpiredCertificate, |facts| unreached(facts, Reach::Expired)),
    (Fault::ExpiredCertificate, |facts| unreached(facts, Reach::RejectedUs(Rejection::Expired))),
    (Fault::ExpiredCertificate, |facts| {
        service_answer(facts).parts.insert("certificate".into(), "failed".into());
    }),
    (Fault::Partition, |facts| {
        host_answer(facts).parts.insert("service".into(), "starting".into());
    }),
    (Fault::Partition, |facts| service(facts).silent_hosts.push("host".into())),
    (Fault::Partition, |facts| unreached(facts, Reach::Silent)),
    (Fault::FullDisk, |facts| facts.folders[0].free_bytes = MIN_FREE_BYTES - 1),
    (Fault::FullDisk, |facts| {
        service_answer(facts).parts.insert("space".into(), "failed".into());
    }),
    (Fault::FullDisk, |facts| {
        host_answer(facts).parts.insert("space".into(), "failed".into());
    }),
    (Fault::WrongRole, |facts| facts.acts_as = Some("producer".into())),
    (Fault::WrongRole, |facts| unreached(facts, other_peer("controller"))),
    (Fault::WrongPort, |facts| unreached(facts, Reach::Refused)),
    (Fault::WrongPort, |facts| unreached(facts, Reach::NotTls)),
    (Fault::WrongName, |facts| unreached(facts, Reach::NoSuchHost)),
    (Fault::WrongName, |facts| unreached(facts, Reach::OtherHost)),
    (Fault::WrongName, |facts| unreached(facts, other_peer("server"))),
    (Fault::StaleBackup, |facts| {
        if let Some(counts) = &mut service(facts).counts {
            counts.is_state_lost = true;
        }
    }),
    (Fault::UnknownSession, |facts| count(facts, Sign::UnknownSession)),
    (Fault::ForgedFrames, |facts| count(facts, Sign::Forged)),
    (Fault::BrittlePlan, |facts| service(facts).queries[0].least = 3),
    (Fault::MissingPresence, |facts| count(facts, Sign::ControllerAbsent)),
    (Fault::BlockedAttribute, |facts| count(facts, Sign::PolicyForbids)),
    (Fault::BlockedAttribute, |facts| {
        let (id, detail) = ("policy-forbids-private".into(), "all keep it private".into());
        facts.refusal = Some(RefusalFacts { id, detail });
    }),
    (Fault::BudgetSpent, |facts| count(facts, Sign::BudgetSpent)),
    (Fault::OldBuild, |facts| service_answer(facts).build = Some("alpheus/1.2.2".into())),
    (Fault::OldBuild, |facts| host_answer(facts).build = Some("alpheus/1.3.0".into())),
    (Fault::WrongCard, |facts| card(facts).fault = Some("not signed by its operator".into())),
    (Fault::WrongCard, |facts| card(facts).is_expected = Some(false)),
    (Fault::WrongCard, |facts| card(facts).endpoints[0].reach = Reach::OtherAuthority),
];

fn card(facts: &mut Facts) -> &mut CardFacts {
    facts.card.as_mut().unwrap_or_else(|| unreachable!("it is there"))
}

fn faults(facts: &Facts) -> Vec<Fault> {
    diagnose(facts).iter().map(|known| known.fault).collect()
}

#[test]
fn nothing_is_found_where_nothing_is_wrong_or_nothing_was_seen() {
    assert_eq!(diagnose(&well()), []);
    assert_eq!(diagnose(&Facts::default()), []);
}

#[test]
fn each_fault_is_found_alone_by_each_way_in_which_it_shows() {
    for (at, (fault, change)) in SHOWN.iter().enumerate() {
        let mut facts = well();
        change(&mut facts);
        let found = diagnose(&facts);
        assert!(matches!(&found[..], [one] if one.fault == *fault), "{at}: {fault}: {found:?}");
        assert!(found.iter().all(|one| !one.cause.is_empty() && !one.fix.is_empty()), "{found:?}");
    }
    let shown = |fault: &&Fault| SHOWN.iter().any(|(known, _)| known == *fault);
    assert_eq!(Fault::ALL.iter().filter(shown).count(), Fault::ALL.len(), "all are in the table");
}

/// Two faults of which neither explains the other are both found, whatever the order.
#[test]
fn faults_are_found_among_others() {
    let sees_nothing = |change: &Change| {
        let mut facts = well();
        change(&mut facts);
        service(&mut facts).schema.is_none()
    };
    let open: Vec<_> = SHOWN.iter().filter(|(_, change)| !sees_nothing(change)).collect();
    for (first, change) in &open {
        for (second, other) in &open {
            let explained = [
                (Fault::StaleBackup, Fault::UnknownSession),
                (Fault::DeadController, Fault::MissingPresence),
                (Fault::Partition, Fault::MissingPresence),
            ];
            let is_explained = |cause: Fault, fault: Fault| explained.contains(&(cause, fault));
            let mut facts = well();
            change(&mut facts);
            other(&mut facts);
            if is_explained(*first, *second) || is_explained(*second, *first) {
                continue;
            }
            let found = faults(&facts);
            // Some changes replace each other: of one process, or one file.
            let both = [*first, *second].iter().filter(|fault| found.contains(fault)).count();
            assert!(both > 0, "{first}, {second}: {found:?}");
            // A host that cannot be asked either is as good as dead.
            let is_asked = matches!(facts.controllers[0].reach, Reach::Answered(_));
            let looks_dead = !is_asked && [first, second].contains(&&Fault::Partition);
            let is_named = |known: &Fault| {
                [*first, *second].contains(known) || (looks_dead && *known == Fault::DeadController)
            };
            assert!(found.iter().all(is_named), "{first}, {second}: {found:?}");
        }
    }
}

#[test]
fn what_another_fault_explains_is_not_named() {
    let mut full = well();
    full.folders[0].free_bytes = 0;
    unreached(&mut full, Reach::Refused);
    assert_eq!(faults(&full), [Fault::FullDisk], "the process has ended for that");
    let mut emptied = well();
    count(&mut emptied, Sign::UnknownSession);
    if let Some(counts) = &mut service(&mut emptied).counts {
        counts.is_state_lost = true;
    }
    assert_eq!(faults(&emptied), [Fault::StaleBackup], "devices open new sessions");
    let mut dead = well();
    count(&mut dead, Sign::ControllerAbsent);
    dead.controllers[0].reach = Reach::Refused;
    assert_eq!(faults(&dead), [Fault::DeadController]);
    let mut cut = well();
    count(&mut cut, Sign::ControllerAbsent);
    host_answer(&mut cut).parts.insert("service".into(), "starting".into());
    service(&mut cut).silent_hosts.push("host".into());
    assert_eq!(faults(&cut), [Fault::Partition], "once, although two say so");
    let mut own = well();
    identity(&mut own).valid_seconds = -1;
    unreached(&mut own, Reach::RejectedUs(Rejection::Other));
    assert_eq!(faults(&own), [Fault::ExpiredCertificate]);
}

#[test]
fn each_part_that_is_not_ready_is_named_with_its_reason() {
    let mut hangs = well();
    let answer = service_answer(&mut hangs);
    answer.parts.insert("disk".into(), "failed".into());
    answer.notes.insert("disk".into(), "a flush of the disk has not returned for 9 s".into());
    answer.parts.insert("engine".into(), "failed".into());
    let found = diagnose(&hangs);
    assert_eq!(faults(&hangs), [Fault::PartNotReady; 2]);
    assert!(
        found[0]
            .cause
            .starts_with("`disk` of service at https://localhost:7400 is failed: a flush")
    );
    assert!(found[1].cause.starts_with("`engine` of service"), "{found:?}");
    // A full disk explains the rest of its process, and how the service is reached a host's `service`.
    service_answer(&mut hangs).parts.insert("space".into(), "failed".into());
    assert_eq!(faults(&hangs), [Fault::FullDisk]);
    let mut alone = well();
    alone.service = None;
    host_answer(&mut alone).parts.insert("service".into(), "starting".into());
    assert_eq!(faults(&alone), [Fault::PartNotReady]);
}

#[test]
fn what_the_service_found_itself_is_named_once() {
    let mut facts = well();
    count(&mut facts, Sign::BudgetSpent);
    let found = diagnose(&facts);
    service(&mut facts).found = found.clone();
    assert_eq!(diagnose(&facts), found);
}
