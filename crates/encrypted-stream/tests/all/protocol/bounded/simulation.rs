//! Seeded windows in which a member, a device and the service lie together, messages are lost and sent
//! again, and service and members crash: every row that holds is the truth over its members. The simulation knows
//! what the liar was ordered to do. So it knows who must be named in each window, and why, and which edges must be
//! struck: nobody else and no others ever are.

mod expectations;
mod member;
mod orders;
mod service;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use alpheus_bounded_influence::check::Checker;
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage};
use alpheus_encrypted_stream::receipt::BoundedReceipt;
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use self::orders::Plot;
use super::{Reading, checker, five, net_of, struck, truth, values, world};
use crate::protocol::net::Net;
use crate::protocol::world::{Setup, after};

/// Windows that are played with one deployment.
const WINDOWS: u64 = 12;

#[derive(Clone)]
struct Dice(Rc<RefCell<ChaCha20Rng>>);

impl Dice {
    fn below(&self, most: u32) -> u32 {
        self.0.borrow_mut().next_u32() % most.max(1)
    }

    fn says(&self, one_in: u32) -> bool {
        self.below(one_in) == 0
    }
}

/// What happened in all windows.
#[derive(Debug, Default)]
struct Tally {
    windows: u32,
    opened: u32,
    /// By reason.
    failed: BTreeMap<&'static str, u32>,
    /// Windows in which the liar was named, by reason.
    named: BTreeMap<String, u32>,
    /// Edges that were struck, and windows in which nothing else befell the liar.
    struck: u32,
    hidden: u32,
    /// Failed rows, with a member that did not state its edges.
    silent: u32,
    /// Windows in which the service had one end of an edge leave it out, and both.
    parted: [u32; 2],
    /// Reasons to leave out an edge that no member believed.
    disbelieved: u32,
    /// Windows with an owner that is out of bounds.
    out_of_bounds: u32,
    /// Receipts and rows of a lying service that were refused.
    refused: u32,
}

/// One deployment.
struct Play {
    net: Net,
    dice: Dice,
    checker: Checker,
    /// The member that lies, and the stream whose device does.
    liar: u32,
    device: usize,
    plot: Rc<RefCell<Plot>>,
    /// How much the service had taken when it last started, and was asked aside before this window.
    since: usize,
    aside: usize,
    /// Whether a member was restored in this window.
    restored: bool,
    /// The last receipt that held.
    earlier: Option<BoundedReceipt>,
}

/// Whether the bad device sends more in a window than any could.
fn is_absurd(seed: u64, number: u64) -> bool {
    (seed ^ number.wrapping_mul(0x9e37_79b9)).is_multiple_of(4)
}

/// In half of the windows, all messages of one kind to one member are lost.
fn losses(dice: &Dice) -> fn(u32, &ServiceMessage) -> bool {
    match dice.below(8) {
        0 => |to, message| to == 0 && matches!(message, ServiceMessage::Summons(_)),
        1 => |to, message| to == 1 && matches!(message, ServiceMessage::OpeningSet(_)),
        2 => |to, message| to == 3 && matches!(message, ServiceMessage::Membership { .. }),
        3 => |to, message| to == 4 && matches!(message, ServiceMessage::EdgeRequest(_)),
        _ => |_, _| false,
    }
}

impl Play {
    fn new(seed: u64) -> Self {
        let dice = Dice(Rc::new(RefCell::new(ChaCha20Rng::seed_from_u64(seed))));
        let (liar, device) = (dice.below(5), dice.below(5) as usize);
        let sent = move |stream: usize, number| match stream == device && is_absurd(seed, number) {
            true => vec![Reading::Absurd(i64::MAX)],
            false => values(stream, number),
        };
        let mut net = net_of(world(Setup { windows: WINDOWS, ..five() }, sent));
        let plot = Rc::new(RefCell::new(Plot::default()));
        net.lies = member::lies_of(&net, liar, dice.clone(), plot.clone());
        net.forges = service::forges_of(&net, liar, dice.clone(), plot.clone());
        let checker = checker(&net.world);
        let (since, aside, restored, earlier) = (0, 0, false, None);
        Self { net, dice, checker, liar, device, plot, since, aside, restored, earlier }
    }

    fn window(&mut self, seed: u64, number: u64, tally: &mut Tally) {
        let (first, later) = (self.net.heard.len(), |s| after(number).plus(Span::seconds(s)));
        (self.since, self.aside, self.restored) =
            (self.net.taken.len(), self.net.aside.len(), false);
        let before = struck(&self.net);
        self.plot.borrow_mut().struck = before.iter().flat_map(|(a, b)| [*a, *b]).collect();
        self.net.lost = losses(&self.dice);
        self.net.close(number);
        if self.dice.says(3) {
            if self.net.outcomes.len() as u64 <= number {
                self.since = self.net.taken.len();
            }
            self.net.restart_service(later(1));
        }
        if self.dice.says(6) {
            self.restored = true;
            self.net.restore_controller(self.dice.below(5), later(1), true);
        }
        if self.dice.says(3) && !self.net.taken.is_empty() {
            let any = self.dice.below(u32::try_from(self.net.taken.len()).unwrap());
            let said = self.net.taken[any as usize].clone();
            self.net.replay(later(1), &said);
        }
        self.settle(later(2), number);
        self.check_who(&before, tally);
        service::ask_again(&mut self.net, later(100_000), &self.dice);
        check_said_once(&self.net.heard[first..]);
        let out = is_absurd(seed, number);
        self.check((number, out), tally);
    }

    /// Nothing is lost any more, and all deadlines pass.
    fn settle(&mut self, from: Timestamp, number: u64) {
        let net = &mut self.net;
        net.lost = |_, _| false;
        for seconds in [1, 2, 4, 8, 16, 90_000] {
            if net.outcomes.len() as u64 > number {
                return;
            }
            net.timeout(from.plus(Span::seconds(seconds)));
            if net.coordinator.under_way() == 0 && net.outcomes.len() as u64 <= number {
                // The restarted service did not know the window: nobody had fixed its M.
                net.close_again(from.plus(Span::seconds(seconds)));
            }
        }
        assert_eq!(net.outcomes.len() as u64, number + 1, "window {number} has no outcome");
    }

    fn check(&mut self, (number, is_out): (u64, bool), tally: &mut Tally) {
        let outcome = self.net.outcomes.last().unwrap().clone();
        tally.windows += 1;
        let opened = match &outcome.result {
            Ok(opened) => opened,
            Err(failure) => return *tally.failed.entry(failure.kind()).or_default() += 1,
        };
        let receipt = (**opened.bounded.as_ref().unwrap()).clone();
        let announced = &self.net.world.announced;
        let row = receipt.verify(announced, &self.checker, outcome.window).unwrap();
        row.check(&opened.outputs, opened.population).unwrap();
        let set = outcome.opening_set.as_ref().unwrap();
        let members = set.iter().map(|at| at as usize);
        // One stream at each member. That of the bad device is out of bounds with all that it sends.
        let honest = members.filter(|at| !is_out || *at != self.device);
        assert_eq!(row.cells(), truth(honest, number), "window {number}");
        assert_eq!(row.left_out(), opened.left_out);
        tally.opened += 1;
        tally.out_of_bounds += u32::from(is_out);
        let forger = service::Forger { net: &self.net, checker: &self.checker, liar: self.liar };
        tally.refused += forger.publish(&receipt, self.earlier.as_ref(), &self.dice);
        self.earlier = Some(receipt);
    }
}

/// Whatever it is asked, a controller says one thing of each kind about a window.
fn check_said_once(heard: &[(u32, ControllerMessage)]) {
    let mut said: BTreeMap<(u32, u8), &ControllerMessage> = BTreeMap::new();
    for (from, message) in heard {
        let kind = match message {
            ControllerMessage::Contribution(_) => 0,
            ControllerMessage::BoundedOpening(_) => 1,
            ControllerMessage::Edges(_) => 2,
            _ => continue,
        };
        let first = said.entry((*from, kind)).or_insert(message);
        assert_eq!(*first, message, "controller {from} said two things");
    }
}

fn play_all(seeds: std::ops::Range<u64>) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let mut play = Play::new(seed);
        (0..WINDOWS).for_each(|number| play.window(seed, number, &mut tally));
    }
    tally
}

impl Tally {
    fn with(mut self, other: Self) -> Self {
        let add = |all: &mut u32, more: u32| *all += more;
        add(&mut self.windows, other.windows);
        add(&mut self.opened, other.opened);
        add(&mut self.struck, other.struck);
        add(&mut self.hidden, other.hidden);
        add(&mut self.silent, other.silent);
        add(&mut self.disbelieved, other.disbelieved);
        add(&mut self.out_of_bounds, other.out_of_bounds);
        add(&mut self.refused, other.refused);
        self.parted.iter_mut().zip(other.parted).for_each(|(all, more)| add(all, more));
        for (why, many) in other.failed {
            add(self.failed.entry(why).or_default(), many);
        }
        for (why, many) in other.named {
            add(self.named.entry(why).or_default(), many);
        }
        self
    }

    /// Everything that can happen did, in a share of the windows.
    fn check(&self) {
        let most = self.windows;
        let named = |why: &str| self.named.get(why).copied().unwrap_or(0);
        assert!(self.opened > most / 3 && self.refused > most, "{self:?}");
        assert!(self.out_of_bounds > most / 20, "{self:?}");
        let shares = ["Range", "Owners", "Unbalanced", "Malformed", "TwoStatements", "Disagrees"];
        assert!(shares.iter().all(|why| named(why) > most / 200), "{self:?}");
        assert!(self.struck > most / 50 && self.hidden > most / 200, "{self:?}");
        assert!(self.silent > most / 200 && self.disbelieved > most / 10, "{self:?}");
        assert!(self.parted.iter().all(|many| *many > most / 200), "{self:?}");
    }
}

#[test]
fn a_hundred_windows_with_liars_of_every_kind() {
    let tally = play_all(0..9);
    assert!(tally.windows >= 100, "{tally:?}");
    tally.check();
}

/// `ALPHEUS_BOUNDED_WINDOWS` says how many.
#[test]
#[ignore = "drill: 10,000 windows, half an hour of a processor"]
fn ten_thousand_windows_with_liars_of_every_kind() {
    let wanted = std::env::var("ALPHEUS_BOUNDED_WINDOWS").ok();
    let wanted: u64 = wanted.map_or(10_000, |number| number.parse().unwrap());
    let (first, many) = (1_000, wanted.div_ceil(WINDOWS));
    let half = first + many / 2;
    let tally = std::thread::scope(|scope| {
        let other = scope.spawn(|| play_all(half..first + many));
        play_all(first..half).with(other.join().unwrap())
    });
    println!("{tally:?}");
    assert!(u64::from(tally.windows) >= wanted, "{tally:?}");
    tally.check();
}
