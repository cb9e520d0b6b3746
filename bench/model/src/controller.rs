//! One honest controller, its ledger and its fence, in one window. Each rule is named after the function
//! of `alpheus-encrypted-stream` or `alpheus-streams` that implements it.

/// Two memberships, with two opening sets each: (membership, set). The rules only compare requests for
/// being equal, and two answers are one too many, so more of them show nothing new.
const SETS: [(u8, u8); 4] = [(1, 1), (1, 2), (2, 3), (2, 4)];
const MEMBERSHIPS: [u8; 2] = [1, 2];

/// Which rules hold. All do; tests take one away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `handle_membership` in `controller/tokens.rs`: one M, ever.
    pub one_membership: bool,
    /// `handle_opening_set` in `controller/openings.rs`: one S, ever (`AlreadyOpened`).
    pub one_opening: bool,
    /// The same, and `window_of` in `controller/mod.rs`: a window that had begun before an untrusted
    /// restore counts as released (`CountsAsReleased`).
    pub restored_counts: bool,
    /// `Controller::restore` in `controller/restore.rs`: a ledger that its fence does not show to be the
    /// latest is distrusted.
    pub fence_is_checked: bool,
    /// `ControllerHost::commit` in `controller_host.rs` of `stream-runtime`: the fence moves before messages leave.
    pub fence_before_send: bool,
    /// `Controller::is_latest` in `controller/restore.rs`: each start has a number of its own, which
    /// ledger and fence know. Two histories that are equally long are not taken for each other.
    pub starts_are_known: bool,
    /// `Controller::restore`: a distrusted ledger repeats no answer that its fence may not have seen.
    pub unfenced_is_dropped: bool,
}

impl Rules {
    /// As implemented.
    pub const ALL: Self = Self {
        one_membership: true,
        one_opening: true,
        restored_counts: true,
        fence_is_checked: true,
        fence_before_send: true,
        starts_are_known: true,
        unfenced_is_dropped: true,
    };
}

/// When copies of a ledger are made that are put back later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// While the controller waits for a message.
    AtRest,
    /// At any moment, between a commit and the fence too.
    AnyTime,
}

/// The bounds of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How often an older ledger is put back, or the fence is lost.
    pub restores: u8,
    /// Commits of one history of a ledger, at most. 15 is the most.
    pub commits: u8,
    /// When copies are made.
    pub copies: Copies,
}

/// A durable ledger. 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ledger {
    spent: Answer,
    opened: Answer,
    restored: u8,
    sequence: u8,
    /// The commit with which the last start began, and its number.
    start: (u8, u8),
    /// What the fence had when that start began: sequence number and start.
    before: (u8, u8),
    /// The last commit that the ledger knows to be fenced.
    fenced: u8,
}

/// What was answered, 0 for nothing, and the commit it was answered in.
type Answer = (u8, u8);

/// The file apart from the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Fence {
    restored: u8,
    sequence: u8,
    start: u8,
}

/// What a step releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Message {
    Token,
    Opening(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Process {
    Down,
    Up,
    /// The ledger is written, the fence is not. Without a message: at a start.
    Committed(Option<Message>),
    /// The fence is written, the message is not sent.
    Fenced(Message),
}

/// A controller with all openings that ever left it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Controller {
    disk: Ledger,
    fence: Option<Fence>,
    process: Process,
    /// Every ledger that may be put back, sorted.
    copies: Vec<Ledger>,
    restores: u8,
    /// Opening sets that were answered, as bits.
    openings: u8,
}

/// What happens to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The service sends a membership.
    Membership(u8),
    /// The service sends an opening set.
    OpeningSet(u8),
    /// The fence is written.
    Fence,
    /// The message leaves.
    Send,
    /// The process is killed.
    Crash,
    /// It starts.
    Start,
    /// A copy of its ledger is put back.
    PutBack(Ledger),
    /// The fence is lost.
    LoseFence,
}

impl Controller {
    /// Before the window's first request.
    #[must_use]
    pub fn new() -> Self {
        let disk = Ledger::default();
        let fence = Some(Fence { restored: 0, sequence: 0, start: 0 });
        Self { disk, fence, process: Process::Up, copies: vec![disk], restores: 0, openings: 0 }
    }

    /// Whether it has answered two opening sets.
    #[must_use]
    pub fn has_answered_twice(&self) -> bool {
        self.openings.count_ones() > 1
    }

    /// All that can happen next.
    #[must_use]
    pub fn next(&self, rules: &Rules, bounds: &Bounds) -> Vec<(Event, Self)> {
        let mut next = Vec::new();
        match self.process {
            Process::Up => self.requests(rules, bounds, &mut next),
            Process::Committed(message) => {
                next.push((Event::Fence, self.fenced(message, bounds)));
                if let Some(message) = message.filter(|_| !rules.fence_before_send) {
                    next.push((Event::Send, self.sent(message, bounds)));
                }
            }
            Process::Fenced(message) => next.push((Event::Send, self.sent(message, bounds))),
            Process::Down => {
                self.put_back(bounds, &mut next);
                next.extend(self.started(rules, bounds).map(|after| (Event::Start, after)));
            }
        }
        if self.process != Process::Down {
            next.push((Event::Crash, Self { process: Process::Down, ..self.clone() }));
        }
        next
    }

    fn requests(&self, rules: &Rules, bounds: &Bounds, next: &mut Vec<(Event, Self)>) {
        let Ledger { spent: (spent, _), opened: (opened, _), restored, .. } = self.disk;
        let next_commit = self.disk.sequence + 1;
        let may_be_first = restored == 0 || !rules.restored_counts;
        for membership in MEMBERSHIPS {
            let is_first = (spent == 0 || !rules.one_membership) && may_be_first;
            if spent == membership || is_first {
                let disk = Ledger { spent: (membership, next_commit), ..self.disk };
                let after = self.committed(disk, Some(Message::Token), bounds);
                next.extend(after.map(|after| (Event::Membership(membership), after)));
            }
        }
        for (_, set) in SETS.iter().filter(|(membership, _)| *membership == spent) {
            let is_first = (opened == 0 || !rules.one_opening) && may_be_first;
            if opened == *set || is_first {
                let disk = Ledger { opened: (*set, next_commit), ..self.disk };
                let after = self.committed(disk, Some(Message::Opening(*set)), bounds);
                next.extend(after.map(|after| (Event::OpeningSet(*set), after)));
            }
        }
    }

    /// One commit: what is released is in it.
    fn committed(&self, disk: Ledger, message: Option<Message>, bounds: &Bounds) -> Option<Self> {
        let sequence = disk.sequence + 1;
        // A process that commits again has seen its last commit fenced.
        let fenced = if self.process == Process::Up { self.disk.sequence } else { disk.fenced };
        let disk = Ledger { sequence, fenced, ..disk };
        let mut after = Self { disk, process: Process::Committed(message), ..self.clone() };
        after.copy_if(bounds.copies == Copies::AnyTime);
        (sequence <= bounds.commits).then_some(after)
    }

    fn copy_if(&mut self, is_copied: bool) {
        if is_copied && let Err(at) = self.copies.binary_search(&self.disk) {
            self.copies.insert(at, self.disk);
        }
    }

    fn fenced(&self, message: Option<Message>, bounds: &Bounds) -> Self {
        let Ledger { restored, sequence, start: (_, start), .. } = self.disk;
        let process = message.map_or(Process::Up, Process::Fenced);
        let fence = Some(Fence { restored, sequence, start });
        let mut after = Self { fence, process, ..self.clone() };
        after.copy_if(process == Process::Up || bounds.copies == Copies::AnyTime);
        after
    }

    fn sent(&self, message: Message, bounds: &Bounds) -> Self {
        let mut after = Self { process: Process::Up, ..self.clone() };
        if let Message::Opening(set) = message {
            after.openings |= 1 << set;
        }
        after.copy_if(bounds.copies == Copies::AtRest);
        after
    }

    fn put_back(&self, bounds: &Bounds, next: &mut Vec<(Event, Self)>) {
        if self.restores >= bounds.restores {
            return;
        }
        let restores = self.restores + 1;
        for copy in self.copies.iter().filter(|copy| **copy != self.disk) {
            next.push((Event::PutBack(*copy), Self { disk: *copy, restores, ..self.clone() }));
        }
        if self.fence.is_some() {
            next.push((Event::LoseFence, Self { fence: None, restores, ..self.clone() }));
        }
    }

    /// Each start draws a number, and stores it with what the fence has.
    fn started(&self, rules: &Rules, bounds: &Bounds) -> Option<Self> {
        let number = self.unused_number();
        let held = self.fence.unwrap_or(Fence { restored: 0, sequence: 0, start: 0 });
        let disk = self.disk;
        // Of this history, the fence may have seen more than the ledger knows.
        let is_own = self.fence.is_some() && held.start == disk.start.1;
        let fenced = disk.fenced.max(if is_own { held.sequence } else { 0 }).min(disk.sequence);
        let before = (held.sequence, held.start);
        if self.is_latest(rules) || !rules.fence_is_checked {
            let start = (disk.sequence + 1, number);
            return self.committed(Ledger { start, before, fenced, ..disk }, None, bounds);
        }
        // `distrust`: a history of its own, later than all that are known.
        let restored = disk.restored.max(held.restored) + 1;
        let sequence = disk.sequence.max(held.sequence);
        let start = (sequence + 1, number);
        let kept = |answer: Answer| {
            if answer.1 > fenced && rules.unfenced_is_dropped { (0, 0) } else { answer }
        };
        let (spent, opened) = (kept(disk.spent), kept(disk.opened));
        let disk = Ledger { spent, opened, restored, sequence, start, before, fenced };
        self.committed(disk, None, bounds)
    }

    fn is_latest(&self, rules: &Rules) -> bool {
        let Ledger { start: (from, start), before, sequence, restored, .. } = self.disk;
        self.fence.is_some_and(|fence| {
            let is_known = match fence.sequence >= from {
                true => fence.start == start,
                false => (fence.sequence, fence.start) == before,
            };
            fence.restored == restored
                && fence.sequence <= sequence
                && (is_known || !rules.starts_are_known)
        })
    }

    /// A number that nothing which still exists holds. Real ones are drawn from 2^64.
    fn unused_number(&self) -> u8 {
        let ledgers = || self.copies.iter().chain([&self.disk]);
        let is_used = |number: u8| {
            self.fence.is_some_and(|fence| fence.start == number)
                || ledgers().any(|ledger| ledger.start.1 == number || ledger.before.1 == number)
        };
        (0..u8::MAX).find(|number| !is_used(*number)).unwrap_or(u8::MAX)
    }
}

impl Default for Controller {
    fn default() -> Self {
        Self::new()
    }
}
