//! Processes that die, stores that are wiped or rolled back, answers that are
//! lost, shards: one session, fail closed, nobody locked out for long.

use crate::common::copy_folder;
use crate::pass::service::Wire;
use crate::pass::town::{Client, Town, until};
use std::time::Duration;

#[test]
fn an_acknowledgement_lost_in_a_crash_is_given_again() {
    let mut town = Town::new("4", 1, &[]);
    std::fs::write(town.path("accounts"), "").unwrap();
    let _issuer = town.issuer(&["--new-state"]);
    let mut verifier = town.verifier(0);
    let wire = Wire::to(town.verifiers[0].clone());
    let _gateway = town.gateway(&format!("https://{}", wire.address), &[]);
    town.subscriber("ada");
    town.copy("ada", "eve");
    // Warm: the shard serves once its first epoch has begun.
    let mut ada = town.connected("ada");
    assert_eq!(ada.get("/").0, 200);
    // Three crashes, each after the verifier got something and before the gateway
    // heard the answer. She sends the same bytes again, on other connections.
    for _ in 0..3 {
        wire.lose(true);
        until("a lost answer", || wire.has_lost().then_some(()));
        verifier.kill();
        verifier = town.verifier(0);
        wire.lose(false);
        until("an answer", || (ada.get("/").0 == 200).then_some(()));
    }
    // All that time it was one session: the log of a friend with a copy says so.
    let mut eve = town.client("eve", &[]);
    eve.process.wait_for("refusal", |line| line.contains("in use").then_some(()));
    assert!(!eve.process.log().contains("\nconnected"));
    // The client itself dies: its pass file says what is burnt, and it goes on.
    ada.process.kill();
    let ada = town.connected("ada");
    assert_eq!(ada.get("/").0, 200);
    town.verifiers.clear();
}

#[test]
fn a_rolled_back_or_wiped_store_serves_from_the_next_epoch_on() {
    let town = Town::new("5", 1, &[]);
    let (_issuer, mut verifiers, _gateway) = town.all();
    ["ada", "bob"].iter().for_each(|name| town.subscriber(name));
    town.copy("ada", "eve");
    let state = town.path("run/shard-0");
    let stop = |mut verifier: crate::common::Process| {
        verifier.terminate();
        assert!(verifier.wait().success());
    };
    // An old copy, from before anybody logged in.
    until("the first epoch", || {
        let said = town.client("bob", &[]).process.wait_for("bob", |line| {
            (line.starts_with("connected") || line.contains("may lack")).then(|| line.to_owned())
        });
        said.starts_with("connected").then_some(())
    });
    stop(verifiers.remove(0));
    let old = town.path("old");
    copy_folder(&state.join("data"), &old);
    let verifier = town.verifier(0);
    let ada = town.connected("ada");
    assert_eq!(ada.get("/").0, 200);
    stop(verifier);
    std::fs::remove_dir_all(state.join("data")).unwrap();
    copy_folder(&old, &state.join("data"));
    // All of this is at the beginning of one epoch: later in it clients log in to the next one.
    let into = Duration::from_micros(town.clock.now().0).as_millis() % 5_000;
    town.clock.skip(Duration::from_millis(5_000 - u64::try_from(into).unwrap()));
    let same_epoch = town.clock.hold();
    let mut verifier = town.verifier(0);
    let doubt = |line: &str| line.contains("serving from epoch ").then_some(());
    verifier.wait_for("doubt", doubt);
    // A friend with a copy is not let in where she may have been.
    let mut eve = town.client("eve", &[]);
    eve.process.wait_for("refusal", |line| line.contains("may lack tags").then_some(()));
    drop(eve);
    drop(same_epoch);
    until("a session of hers again", || (ada.get("/").0 == 200).then_some(()));
    // Wiped altogether, fence and all.
    stop(verifier);
    std::fs::remove_dir_all(&state).unwrap();
    let mut verifier = town.verifier(0);
    verifier.wait_for("doubt", doubt);
    until("a session of hers again", || (ada.get("/").0 == 200).then_some(()));
}

/// A page's requests: all find out that the gateway has forgotten them, and all are
/// answered.
fn asks_all_at_once(client: &Client) {
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..10).map(|_| scope.spawn(|| client.get("/"))).collect();
        for asked in asked {
            let (mut status, mut answer) = asked.join().unwrap();
            if answer.contains("session-over") {
                // An epoch ended before the session could be renewed. No other session resends it.
                (status, answer) = client.get("/");
            }
            assert_eq!(status, 200, "{answer}\n{}", client.process.log());
        }
    });
}

#[test]
fn shards_share_the_work_and_refuse_what_is_sent_astray() {
    let town = Town::new("8", 3, &[]);
    let (_issuer, mut verifiers, mut gateway) = town.all();
    let names = ["ada", "bob", "cy", "dee"];
    names.iter().for_each(|name| town.subscriber(name));
    let clients: Vec<_> = names.iter().map(|name| town.connected(name)).collect();
    // Two borders of epochs under load, with re-ups from shard to shard: each asks
    // for something as soon as it has the last answer, and is never refused.
    let started = town.clock.now();
    let goes_on = || town.clock.since(started) < Duration::from_secs(17);
    std::thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| {
                let mut answers = 0;
                while goes_on() {
                    let (status, answer) = client.get("/");
                    assert_eq!(status, 200, "{answer}\n{}", client.process.log());
                    answers += 1;
                }
                assert!(answers > 40, "{answers} answers are no load");
            });
        }
    });
    for client in &clients {
        assert!(
            !client.process.log().contains("will retry")
                || client.process.log().matches("will retry").count() < 3,
            "{}",
            client.process.log()
        );
    }
    // One shard dies and comes back: its part is there again.
    verifiers[1].kill();
    verifiers[1] = town.verifier(1);
    // The gateway dies: clients reconnect by themselves.
    gateway.kill();
    gateway = town.gateway(&town.urls(), &[]);
    asks_all_at_once(&clients[0]);
    for client in &clients {
        until("an answer", || (client.get("/").0 == 200).then_some(()));
    }
    drop(gateway);
    // A gateway that knows of one verifier only would spend tags on the wrong shard.
    let _gateway = town.gateway(town.urls().split(',').next().unwrap(), &[]);
    town.subscriber("eve");
    let mut eve = town.client("eve", &[]);
    eve.process.wait_for("refusal", |line| line.contains("this is shard 0 of 3").then_some(()));
}
