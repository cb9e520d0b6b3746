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
    /// `ControllerHost::commit` in `runtime/controller_host.rs`: the fence moves before messages leave.
    pub fence_before_send: bool,
}

impl Rules {
    /// As implemented.
    pub const ALL: Self = Self {
        one_membership: true,
        one_opening: true,
        restored_counts: true,
        fence_is_checked: true,
        fence_before_send: true,
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
    spent: u8,
    opened: u8,
    restored: u8,
    sequence: u8,
}

/// The file apart from the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Fence {
    restored: u8,
    sequence: u8,
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
    /// The ledger is written, the fence is not. Without a message: at an untrusted start.
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
        let fence = Some(Fence { restored: 0, sequence: 0 });
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
        let Ledger { spent, opened, restored, .. } = self.disk;
        let may_be_first = restored == 0 || !rules.restored_counts;
        for membership in MEMBERSHIPS {
            let is_first = (spent == 0 || !rules.one_membership) && may_be_first;
            if spent == membership || is_first {
                let disk = Ledger { spent: membership, ..self.disk };
                let after = self.committed(disk, Some(Message::Token), bounds);
                next.extend(after.map(|after| (Event::Membership(membership), after)));
            }
        }
        for (_, set) in SETS.iter().filter(|(membership, _)| *membership == spent) {
            let is_first = (opened == 0 || !rules.one_opening) && may_be_first;
            if opened == *set || is_first {
                let disk = Ledger { opened: *set, ..self.disk };
                let after = self.committed(disk, Some(Message::Opening(*set)), bounds);
                next.extend(after.map(|after| (Event::OpeningSet(*set), after)));
            }
        }
    }

    /// One commit: what is released is in it.
    fn committed(&self, disk: Ledger, message: Option<Message>, bounds: &Bounds) -> Option<Self> {
        let sequence = disk.sequence + 1;
        let disk = Ledger { sequence, ..disk };
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
        let Ledger { restored, sequence, .. } = self.disk;
        let process = message.map_or(Process::Up, Process::Fenced);
        let fence = Some(Fence { restored, sequence });
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

    fn started(&self, rules: &Rules, bounds: &Bounds) -> Option<Self> {
        let is_latest = self.fence.is_some_and(|fence| {
            fence.restored == self.disk.restored && fence.sequence <= self.disk.sequence
        });
        if is_latest || !rules.fence_is_checked {
            return Some(Self { process: Process::Up, ..self.clone() });
        }
        // `distrust`: a history of its own, later than all that are known.
        let fence = self.fence.unwrap_or(Fence { restored: 0, sequence: 0 });
        let restored = self.disk.restored.max(fence.restored) + 1;
        let sequence = self.disk.sequence.max(fence.sequence);
        self.committed(Ledger { restored, sequence, ..self.disk }, None, bounds)
    }
}

impl Default for Controller {
    fn default() -> Self {
        Self::new()
    }
}
