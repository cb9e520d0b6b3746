//! A query by epochs at a service and hosts over real stores: who comes, sleeps, leaves and is
//! restored, and a service that ends at every point between a call and an opening.

use super::world::{Hall, House, Person, Town, at};
use alpheus_encrypted_stream::messages::ServiceMessage;
use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_stream_runtime::controller_host::ToController;
use alpheus_stream_runtime::results::{OK, Row};
use alpheus_stream_runtime::service::ServiceOutput;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::simulation::Machine;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const QUERY: &str = "CREATE STREAM Readings AS SELECT SUM(reading), COUNT(reading) \
    WINDOW TUMBLING (SIZE 2 SECONDS) FROM Meters WITH (membership = 'epochs')";
/// The same with a roster that is fixed with the query.
const FIXED: &str = "CREATE STREAM Readings AS SELECT SUM(reading), COUNT(reading) \
    WINDOW TUMBLING (SIZE 2 SECONDS) FROM Meters WITH (membership = 'fixed')";

pub(super) struct Street {
    pub(super) town: Town,
    pub(super) hall: Hall,
    pub(super) houses: Vec<House>,
    pub(super) people: Vec<Person>,
    /// Messages that nobody has received yet.
    waiting: Vec<ToController>,
    rows: Vec<Row>,
    /// Plans of lists that were sent, by window.
    lists: BTreeMap<Timestamp, BTreeSet<PlanId>>,
    /// Whose owner forbids the query whenever a token is out, and allows it again after that.
    fickle: Option<usize>,
    /// The last version of that owner's choice.
    choice: u32,
}

/// The end of a window, in which a person's readings are in two seconds.
fn end(window: u64) -> Timestamp {
    at(2 * window + 2)
}

/// What a person reads in a second.
fn reading(person: usize, second: u64) -> i64 {
    i64::try_from((person as u64 * 131 + second * 17) % 1000).unwrap()
}

impl Street {
    /// So many houses, with a person each, of whom a query asks.
    pub(super) fn new(houses: u8, query: &str) -> Street {
        let town = Town::new();
        let hall = town.hall(Machine::new());
        let (waiting, rows, lists) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (houses_there, people) = (Vec::new(), Vec::new());
        let (fickle, choice) = (None, 1);
        let mut street = Street {
            town,
            hall,
            houses: houses_there,
            people,
            waiting,
            rows,
            lists,
            fickle,
            choice,
        };
        for number in 1..=houses {
            street.build(number);
        }
        let round = street.hall.ask(query, at(0), &mut street.town.rng);
        street.take(round);
        street
    }

    /// Another house, with a person.
    fn build(&mut self, number: u8) {
        let mut house = self.town.house(&format!("house-{number}"));
        let person = self.town.person(number);
        let handover = self.town.handover(&person, &house);
        house.guard().take(at(0), &person.name, &handover).unwrap();
        house.tell(&mut self.hall, &self.town);
        self.houses.push(house);
        self.people.push(person);
    }

    fn take(&mut self, round: ServiceOutput) {
        for (_, plan, message) in &round.messages {
            if let ServiceMessage::List(listing) = message {
                let key = self.town.deployment.service();
                let window = listing.list.open(key).unwrap().window;
                self.lists.entry(window.start).or_default().insert(*plan);
            }
        }
        self.waiting.extend(round.messages);
        self.rows.extend(round.rows);
    }

    /// Everybody's readings of a window.
    pub(super) fn send(&mut self, window: u64) {
        let people: Vec<usize> = (0..self.people.len()).collect();
        self.send_of(window, &people);
    }

    fn send_of(&mut self, window: u64, people: &[usize]) {
        for second in [2 * window, 2 * window + 1] {
            for number in people {
                let person = &mut self.people[*number];
                self.town.send(&self.hall, person, second, reading(*number, second));
            }
        }
    }

    fn turn(&mut self, now: Timestamp) {
        let round = self.hall.turn(now);
        self.take(round);
    }

    /// Carries what waits to the houses that are awake, once, and what they answer to the
    /// service, unless it is gone.
    fn carry_once(&mut self, now: Timestamp, awake: &[usize]) {
        let mut sorted: BTreeMap<ControllerId, Vec<ToController>> = BTreeMap::new();
        for message in std::mem::take(&mut self.waiting) {
            sorted.entry(message.0).or_default().push(message);
        }
        for number in awake {
            let Some(messages) = sorted.remove(&self.houses[*number].id) else { continue };
            let opens = |message: &ToController| matches!(message.2, ServiceMessage::OpeningSet(_));
            let changes = self.fickle == Some(*number) && messages.iter().any(opens);
            if changes {
                self.choose(*number, 3, now);
            }
            self.houses[*number].guard().answer(now, messages).unwrap();
            if changes {
                self.choose(*number, 1, now);
            }
            let guard = self.houses[*number].guard();
            let going = guard.outgoing_batch();
            guard.arrived(&going);
            let round = self.hall.manager.service.receive(now, now, going.messages).unwrap();
            self.take(round);
        }
    }

    /// A person's owner wants so many others in a window from now on.
    fn choose(&mut self, number: usize, others: u32, now: Timestamp) {
        self.choice += 1;
        let (mut policy, person) = (self.town.policy(), &self.people[number]);
        policy.attributes[0].alternatives[0].min_population = others;
        let choice = self.town.choice(person, self.choice, policy);
        self.houses[number].guard().choose(now, &person.name, &choice).unwrap();
    }

    /// A window from its end to its row, with these awake.
    pub(super) fn window(&mut self, window: u64, awake: &[usize]) -> Row {
        self.finish(window, end(window), awake)
    }

    fn finish(&mut self, window: u64, mut now: Timestamp, awake: &[usize]) -> Row {
        let start = at(2 * window).0 / 1000;
        for _ in 0..40 {
            self.turn(now);
            while !self.waiting.is_empty() {
                self.carry_once(now, awake);
            }
            if let Some(place) = self.rows.iter().position(|row| row.window_start == start) {
                return self.rows.remove(place);
            }
            now = now.plus(Span(500_000));
        }
        panic!("no row of window {window}")
    }

    /// The process of the service ends, and starts again from its disk.
    pub(super) fn restart(&mut self, seed: u64, now: Timestamp) {
        let other = self.town.hall(Machine::new());
        let disk = std::mem::replace(&mut self.hall, other).stop();
        disk.crash(seed);
        self.hall = self.town.hall_at(disk, now);
        self.waiting.clear();
    }

    fn truth(&self, window: u64, people: &[usize]) -> String {
        let seconds = [2 * window, 2 * window + 1];
        let sum: i64 =
            people.iter().flat_map(|who| seconds.map(|second| reading(*who, second))).sum();
        sum.to_string()
    }

    /// The row is the truth over these people.
    pub(super) fn check(&self, row: &Row, window: u64, people: &[usize]) {
        assert_eq!(row.status, OK, "{row:?}");
        assert_eq!(row.window_start, at(2 * window).0 / 1000);
        assert_eq!(row.outputs[0].1, self.truth(window, people), "{row:?}");
        assert_eq!(row.population as usize, people.len());
        assert_eq!(row.excluded as usize, self.people.len() - people.len(), "{row:?}");
    }

    /// No window had two lists.
    fn had_one_list_a_window(&self, windows: usize) {
        assert!(self.lists.values().all(|plans| plans.len() == 1), "{:?}", self.lists);
        assert_eq!(self.lists.len(), windows);
    }
}

pub(super) fn all(houses: usize) -> Vec<usize> {
    (0..houses).collect()
}

#[test]
fn an_owner_who_comes_later_is_in_from_the_next_window() {
    let mut street = Street::new(2, QUERY);
    street.send(0);
    let row = street.window(0, &all(2));
    street.check(&row, 0, &all(2));
    // The third house comes while the query runs.
    street.build(3);
    street.send(1);
    let row = street.window(1, &all(3));
    street.check(&row, 1, &all(3));
    street.had_one_list_a_window(2);
}

/// The same houses, of which nine sleep: a fixed roster opens nothing.
#[test]
fn three_of_twelve_that_are_awake_open_their_windows() {
    let awake = [1, 5, 7];
    let mut street = Street::new(12, QUERY);
    for window in 0..2 {
        street.send(window);
        let row = street.window(window, &awake);
        street.check(&row, window, &awake);
    }
    let mut fixed = Street::new(12, FIXED);
    fixed.carry_once(at(0), &all(12));
    fixed.send(0);
    let row = fixed.window(0, &awake);
    assert_eq!(row.status, "fewer controllers answered than the 7 needed");
}

/// Somebody who takes part in each window and then refuses ruins ever fewer of them.
#[test]
fn who_gives_tokens_and_no_openings_is_listed_last() {
    let mut street = Street::new(4, QUERY);
    street.fickle = Some(1);
    let mut failed = Vec::new();
    for number in 0..7 {
        street.send(number);
        let row = street.window(number, &all(4));
        let counters = &street.hall.manager.service.counters;
        if row.status == OK {
            street.check(&row, number, &[0, 2, 3]);
        } else {
            assert!(row.status.starts_with("a controller refused: "), "{row:?}");
            let asked_last = counters.asked_last.iter().eq([&street.houses[1].id]);
            assert!(asked_last, "{:?}", counters.asked_last);
            failed.push(number);
        }
    }
    assert_eq!(failed, [0, 2], "left out of one window, and then of four");
    assert_eq!(street.hall.manager.service.counters.ruined, 2);
}

/// Nobody may read one who is alone, and the row says why.
#[test]
fn a_window_with_nobody_awake_is_explained() {
    let mut street = Street::new(3, QUERY);
    street.send(0);
    let row = street.window(0, &[]);
    assert_eq!(row.status, "fewer controllers answered than the 1 needed");
    assert_eq!(row.excluded, 0, "with the number of all, it would say how many were awake");
    street.send(1);
    let row = street.window(1, &all(3));
    street.check(&row, 1, &all(3));
}

#[test]
fn an_owner_who_leaves_is_out_from_the_next_window() {
    let mut street = Street::new(3, QUERY);
    street.send(0);
    let row = street.window(0, &all(3));
    street.check(&row, 0, &all(3));
    let request = Town::withdrawal(&street.people[2], false);
    let (house, person) = (&mut street.houses[2], &street.people[2]);
    house.guard().withdraw(at(2), &person.name, &request).unwrap();
    // The service has not heard of it.
    street.send(1);
    let row = street.window(1, &all(3));
    assert_eq!((row.status.as_str(), row.population), (OK, 2));
    assert_eq!(row.outputs[0].1, street.truth(1, &[0, 1]));
}

/// After so many exchanges the service's process is gone, at each of them in turn.
#[test]
fn a_service_that_ends_anywhere_goes_on_with_the_same_list() {
    for exchanges in 0..6 {
        let mut street = Street::new(4, QUERY);
        street.send(0);
        street.turn(end(0));
        for _ in 0..exchanges {
            street.carry_once(end(0), &all(4));
        }
        let before: Vec<Row> = street.rows.drain(..).collect();
        street.restart(exchanges, end(0));
        let row = match before.first() {
            Some(row) => row.clone(),
            None => street.finish(0, end(0), &all(4)),
        };
        street.check(&row, 0, &all(4));
        street.turn(end(0).plus(Span(500_000)));
        assert!(street.rows.is_empty(), "{exchanges}: a second row");
        // It goes on, and nothing of the first epoch is drawn again.
        street.send(1);
        let row = street.window(1, &all(4));
        street.check(&row, 1, &all(4));
        street.had_one_list_a_window(2);
        assert_eq!(street.hall.manager.service.results().unwrap().len(), 2, "{exchanges}");
    }
}

/// Those who were listed sleep when the service comes back, and others are awake: it does not
/// make another list of these.
#[test]
fn a_restarted_service_waits_for_the_listed_and_calls_nobody_else() {
    let mut street = Street::new(4, QUERY);
    street.send(0);
    street.turn(end(0));
    // Two attend, and time is up.
    street.carry_once(end(0), &[0, 1]);
    street.turn(end(0).plus(Span::seconds(1)));
    assert_eq!(street.lists.len(), 1);
    street.restart(1, end(0).plus(Span::seconds(1)));
    let row = street.finish(0, end(0).plus(Span::seconds(1)), &[2, 3]);
    assert_eq!(row.status, "fewer controllers answered than the 2 needed");
    assert_eq!(street.lists[&at(0)].len(), 1);
}

/// The host's disk is an older copy: what it attended and accepted since is lost.
#[test]
fn a_restored_host_attends_no_epoch_that_began_before() {
    let mut street = Street::new(4, QUERY);
    let old = street.houses[3].disk.copy();
    street.send(0);
    let row = street.window(0, &all(4));
    street.check(&row, 0, &all(4));
    street.send(1);
    street.houses[3].guard = None;
    street.houses[3].disk = old;
    let now = end(1);
    let guard = street.town.wake(&street.houses[3], now).unwrap();
    street.houses[3].guard = Some(guard);
    let row = street.window(1, &all(4));
    street.check(&row, 1, &[0, 1, 2]);
    // The owner confirms, and is in from the first window that begins after that.
    let policy = street.town.policy();
    let choice = street.town.choice(&street.people[3], 2, policy);
    let (house, person) = (&mut street.houses[3], &street.people[3]);
    house.guard().choose(now, &person.name, &choice).unwrap();
    for window in 2..4 {
        street.send(window);
        let row = street.window(window, &all(4));
        street.check(&row, window, &all(4));
    }
}

/// A query that was dropped frees its streams for another, at hosts that slept as well.
#[test]
fn another_query_follows_when_the_first_is_dropped() {
    let mut street = Street::new(3, QUERY);
    street.send(0);
    street.turn(end(0));
    while street.rows.is_empty() {
        street.carry_once(end(0), &all(3));
    }
    // That the epoch has ended, and then the query, reaches nobody.
    street.waiting.clear();
    street.rows.clear();
    drop(street.hall.manager.drop_query(end(1), "Readings").unwrap().unwrap());
    street.restart(3, end(0));
    let round = street.hall.ask(&QUERY.replace("Readings", "Again"), at(2), &mut street.town.rng);
    street.take(round);
    street.send(1);
    let row = street.window(1, &all(3));
    street.check(&row, 1, &all(3));
    assert_eq!(row.query, "Again");
}
