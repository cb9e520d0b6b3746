//! A service that lies to a controller while it runs. It stands before the honest one, and signs with its key.

use super::SIGNED;
use crate::common::deployment::{HOUSES, QUERY, RunningSite, Site, until_or};
use crate::common::relay::{Relay, relay};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::error::{ExclusionError, WindowRefusalError};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{ControllerMessage, Segments, ServiceMessage, Summons};
use alpheus_encrypted_stream::tick::parts::PartialSum;
use alpheus_node::pki::read_seed;
use alpheus_node::service::shutdown::Trigger;
use alpheus_stream_runtime::keys::ServiceKeys;
use alpheus_streams::deployment::SERVICE_SEED;
use alpheus_streams::wire::{Mail, Post};
use alpheus_time::{Timestamp, Window};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The house whose controller is lied to.
const HOUSE: usize = 2;

/// What the service says to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// One bit of one word of a sum is another.
    Sum,
    /// The sums are those of an earlier window.
    OldSums,
    /// The device states another sum than it has.
    Claim,
    /// Each member states an owner more.
    Members,
    /// One of the members is not asked to open.
    Set,
}

/// What the controller must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    LeftOut(ExclusionError),
    Refused(WindowRefusalError),
}

const LIES: [(Lie, Answer); 5] = [
    (Lie::Sum, Answer::LeftOut(ExclusionError::SumMismatch)),
    (Lie::OldSums, Answer::LeftOut(ExclusionError::SumMismatch)),
    (Lie::Claim, Answer::LeftOut(ExclusionError::ForgedBorder)),
    (Lie::Members, Answer::Refused(WindowRefusalError::OwnersMisstated)),
    (Lie::Set, Answer::Refused(WindowRefusalError::BelowQuorum { held: 2, needed: 3 })),
];

/// The liar.
struct Liar {
    key: SigningKey,
    /// About windows that it asks for from now on.
    lie: Mutex<Option<Lie>>,
    /// About each window.
    lies: Mutex<BTreeMap<Timestamp, Option<Lie>>>,
    /// The sums of an honest summons.
    sums: Mutex<Vec<Vec<PartialSum>>>,
    /// The controller's position.
    position: Mutex<u32>,
    /// What the controller has said of windows.
    said: Mutex<Vec<(Timestamp, Answer)>>,
}

impl Liar {
    /// Lies from now on, or no more.
    fn tell(&self, lie: Option<Lie>) {
        *self.lie.lock().unwrap() = lie;
    }

    fn misstates(&self, lie: Option<Lie>, summons: &mut Summons) {
        *self.position.lock().unwrap() = summons.controller;
        let [stream] = &mut summons.streams[..] else { return };
        let Segments::OfTicks { claims, sums, .. } = &mut stream.segments else { return };
        match lie {
            Some(Lie::Sum) => sums[0][0].words[0] ^= 1,
            Some(Lie::OldSums) => sums.clone_from(&self.sums.lock().unwrap()),
            Some(Lie::Claim) => claims[0][0].root.0[0] ^= 1,
            _ => self.sums.lock().unwrap().clone_from(sums),
        }
    }

    /// The lie about a window, which stays the same.
    fn lie(&self, window: Window) -> Option<Lie> {
        let lie = *self.lie.lock().unwrap();
        *self.lies.lock().unwrap().entry(window.start).or_insert(lie)
    }

    fn changes(&self, message: &mut ServiceMessage) {
        match message {
            ServiceMessage::Summons(signed) => {
                let mut own = signed.dangerous_unverified().unwrap();
                self.misstates(self.lie(own.window), &mut own);
                *signed = Signed::new(&own, &self.key);
            }
            ServiceMessage::Membership { membership, .. } => {
                let mut own = membership.dangerous_unverified().unwrap();
                if self.lie(own.window) == Some(Lie::Members) {
                    own.owners.iter_mut().for_each(|owners| *owners += 1);
                }
                *membership = Signed::new(&own, &self.key);
            }
            ServiceMessage::OpeningSet(signed) => {
                let mut own = signed.dangerous_unverified().unwrap();
                if self.lie(own.window) == Some(Lie::Set) {
                    let left_out = (*self.position.lock().unwrap() + 1) % 3;
                    own.set = RosterSet::of(3, (0..3).filter(|at| *at != left_out));
                }
                *signed = Signed::new(&own, &self.key);
            }
            _ => {}
        }
    }
}

impl Relay for Liar {
    fn says(&self, mail: &mut Mail) {
        let mut said = self.said.lock().unwrap();
        for (_, _, message) in &mail.messages {
            match message {
                ControllerMessage::Presence(signed) => {
                    let own = signed.dangerous_unverified().unwrap();
                    let start = own.window.start;
                    let left_out = own.excluded.iter();
                    said.extend(left_out.map(|(_, why)| (start, Answer::LeftOut(*why))));
                }
                ControllerMessage::WindowRefusal(signed) => {
                    let own = signed.dangerous_unverified().unwrap();
                    said.push((own.window.start, Answer::Refused(own.reason)));
                }
                _ => {}
            }
        }
    }

    fn hears(&self, post: &mut Post) {
        post.messages.iter_mut().for_each(|(_, _, message)| self.changes(message));
    }
}

/// A deployment in which the service that one house's controller knows lies on demand.
fn with_liar() -> (RunningSite, Arc<Liar>, Trigger) {
    let place = Site::with_ticks();
    let folder = |name: &str| place.path(&format!("pki/{name}"));
    let folders = (folder("service"), folder("host-c"));
    let keys = ServiceKeys::from_seed(&read_seed(&folders.0.join(SERVICE_SEED)).unwrap());
    let (lie, lies, sums, position, said) = Default::default();
    let liar = Arc::new(Liar { key: keys.into_signing(), lie, lies, sums, position, said });
    let kept = RefCell::new(None);
    let running = RunningSite::start_in(place, |house, api| {
        if house != HOUSES[HOUSE] {
            return api.to_owned();
        }
        let url = format!("https://{api}");
        let (trigger, address) = relay((&folders.0, &folders.1), &url, Arc::clone(&liar));
        *kept.borrow_mut() = Some(trigger);
        address
    });
    (running, liar, kept.into_inner().unwrap())
}

/// Each lie about a window is found out by the controller, which says so in what it signs, and the window has
/// no result. No row ever has another number than the truth, and rows go on once the service is honest.
#[test]
fn a_controller_that_is_lied_to_gives_nothing() {
    let (running, liar, _trigger) = with_liar();
    let verified = format!("{QUERY} WITH (integrity = 'verified', alpha = '1/3')");
    let asked = running.place.ask(&running.server, &verified);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let devices = running.feed();
    truth(&running.row(3));
    let windows = LIES.map(|(lie, answer)| {
        liar.tell(Some(lie));
        let said = || liar.said.lock().unwrap().clone();
        let why = || format!("{lie:?} had no {answer:?}: {:?}\n{}", said(), running.service.log());
        let lies = |start: &Timestamp| liar.lies.lock().unwrap()[start];
        let is_it = |(start, own): &(Timestamp, Answer)| lies(start) == Some(lie) && *own == answer;
        let found = || said().into_iter().find(is_it);
        until_or(why, found).0
    });
    liar.tell(None);
    let last = windows.iter().max().unwrap();
    let start = |row: &Value| Timestamp(row["window_start"].as_u64().unwrap() * 1000);
    let rows = || running.place.rows(&running.server);
    let opened = |row: &Value| row["status"] == "ok" && row["population"] == 3;
    // Who has a token waits long for its opening, so the last one may have no row yet.
    let are_all = |rows: &Vec<Value>| {
        let is_there = |window: &Timestamp| rows.iter().any(|row| start(row) == *window);
        rows.iter().any(|row| opened(row) && start(row) > *last)
            && windows[..4].iter().all(is_there)
    };
    let why = || format!("no row once it is honest: {:#?}\n{}", rows(), running.service.log());
    let rows = until_or(why, || Some(rows()).filter(are_all));
    drop(devices);
    for (window, (lie, _)) in windows.iter().zip(LIES) {
        for lost in rows.iter().filter(|row| start(row) == *window) {
            assert!(lost["sum_reading"].is_null() && lost["status"] != "ok", "{lie:?}: {lost}");
        }
    }
    rows.iter().filter(|row| opened(row)).for_each(truth);
}

/// Readings of 1, 2 and 3, twice in each window.
fn truth(row: &Value) {
    assert_eq!((row["sum_reading"].as_str(), row["count_reading"].as_u64()), (Some("12"), Some(6)));
    assert_eq!(row["integrity"], SIGNED);
}
