//! One controller's cost for masks: each window, and each epoch.

use crate::floors;
use crate::measure::Effort;
use crate::plans;
use crate::report::{Figure, Goal};
use aes::Aes128Enc;
use aes::cipher::KeyInit;
use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::mask::epoch::Epoch;
use alpheus_encrypted_stream::mask::params::{self, largest_b};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::mask::{Masker, OwnKey, PairKeys, Storage, Strategy, WindowMembers};
use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_policy::plan::{Fraction, MaskStrategy, Plan};
use alpheus_time::Timestamp;
use std::hint::black_box;

/// δ of the paper's measurements.
const DELTA_EXPONENT: u8 = 7;
/// The controller that is measured.
const OWN: u32 = 500;

/// Measures each strategy at 1,000 and 10,000 controllers, 3 and 683 words.
///
/// A window is both rounds, token and opening, with every controller online;
/// without signatures and storage. As in the paper half of the controllers may
/// collude, δ = 10⁻⁷.
pub(crate) fn figures(effort: Effort, mut say: impl FnMut(&str)) -> Vec<Figure> {
    let mut figures = Vec::new();
    for controllers in [1_000, 10_000] {
        let bits = largest_b(controllers / 2, DELTA_EXPONENT).unwrap_or(1);
        for words in [3, 683] {
            for masks in
                [MaskStrategy::Clique, MaskStrategy::Dream { bits }, MaskStrategy::Epoch { bits }]
            {
                say(&format!("masks: {masks:?}, {controllers} controllers, {words} words"));
                figures.extend(window(effort, controllers, words, masks));
            }
        }
        say(&format!("masks: epoch of {controllers} controllers"));
        figures.push(epoch(effort, controllers, bits));
    }
    figures
}

/// One window, both rounds. The floor of a sparse graph has the neighbours that
/// are expected; for `Dream` also the PRF calls that find them. It makes the
/// calls of our PRF, whose input has 240 bits; the second figure is what they
/// would take with the paper's, one AES call a block.
fn window(effort: Effort, controllers: u32, words: usize, masks: MaskStrategy) -> [Figure; 2] {
    let plan = plan(controllers, masks);
    let full = RosterSet::full(controllers);
    let own = OwnKey::new(&Secret::from_bytes([1; 32]), &plan.id());
    let mut masker = Masker::new(&plan, pairs(controllers, Storage::Expanded), own).ok();
    let mut floor = Floor::new(controllers, words, masks);
    let (membership, opening) = (labelled_hash("M", &[]), labelled_hash("S", &[]));
    let mut number = 0;
    let ours = || {
        // All windows of one epoch. The cost to draw the epoch is a separate figure.
        number = (number + 1) % 256;
        let window = plan.window_at(Timestamp(number * plan.window.0));
        let round = WindowMembers { window, members: &full, membership, pickers: &[] };
        let Some(masker) = &mut masker else { return };
        let token = masker.token(&round, vec![0; words]);
        let _ = black_box((token, masker.opening(&round, &full, &opening, words)));
    };
    let compared = effort.compare(|| floor.run(true), ours);
    let narrow = effort.time(|| floor.run(false));
    let name = format!("{}, one window, {controllers} controllers, {words} words", floor.name);
    let other = format!("{name}: plain AES floor");
    [
        Figure::compared("masks", name, "ns", compared).with_goal(Goal::RatioAtMost(2.0)),
        Figure::alone("masks", other, "ns", narrow),
    ]
}

/// The floor of one window with its inputs.
struct Floor {
    name: &'static str,
    drawn: Vec<[u8; 16]>,
    keys: Vec<Aes128Enc>,
    /// Lists used in turn, so that keys come from memory as far away as ours.
    neighbours: Vec<Vec<u32>>,
    turn: usize,
    token: Vec<u64>,
}

impl Floor {
    fn new(controllers: u32, words: usize, masks: MaskStrategy) -> Floor {
        let (name, degree, drawn, lists) = match masks {
            MaskStrategy::Dream { bits } => ("dream", (controllers - 1) >> bits, true, 256),
            MaskStrategy::Epoch { bits } => ("epoch", (controllers - 1) >> bits, false, 256),
            _ => ("clique", controllers - 1, false, 1),
        };
        let keys: Vec<[u8; 16]> = (1..u128::from(controllers)).map(u128::to_le_bytes).collect();
        let step = (controllers - 1) / degree;
        let list = |shift| (0..degree).map(|i| (i * step + shift) % (controllers - 1)).collect();
        Floor {
            name,
            neighbours: (0..lists).map(list).collect(),
            turn: 0,
            token: vec![0; words],
            drawn: if drawn { keys.clone() } else { vec![] },
            keys: keys.iter().map(|key| Aes128Enc::new(key.into())).collect(),
        }
    }

    fn run(&mut self, wide: bool) {
        // Dream draws its edges with one block each, once for both rounds.
        black_box(self.drawn.iter().map(floors::epoch::draw).fold(0, |all, one| all ^ one));
        self.turn = (self.turn + 1) % self.neighbours.len();
        let neighbours = &self.neighbours[self.turn];
        floors::masks::window(&self.keys, neighbours, black_box(&mut self.token), wide);
    }
}

/// Drawing one epoch, AES key schedules included.
fn epoch(effort: Effort, controllers: u32, bits: u8) -> Figure {
    let pairs = pairs(controllers, Storage::Compact);
    let keys: Vec<[u8; 16]> = (1..u128::from(controllers)).map(u128::to_le_bytes).collect();
    let mut graphs = Epoch::new(PlanId([0; 32]), bits);
    let (mut ends, mut lists, mut number, mut list) = (Vec::new(), Vec::new(), 0, Vec::new());
    let compared = effort.compare(
        || floors::epoch::rounds(black_box(&keys), usize::from(bits), &mut ends, &mut lists),
        || {
            number += params::rounds(bits);
            graphs.neighbours(black_box(&pairs), number, &mut list);
        },
    );
    let name = format!("epoch, drawing {} rounds, {controllers} controllers", params::rounds(bits));
    Figure::compared("masks", name, "ns", compared).with_goal(Goal::RatioAtMost(2.0))
}

fn pairs(controllers: u32, storage: Storage) -> PairKeys {
    let secret = |p: u32| Secret::from_bytes(labelled_hash("bench", &[&p.to_be_bytes()]).0);
    let others: Vec<Secret<32>> = (1..controllers).map(secret).collect();
    PairKeys::from_secrets(OWN, &others, storage)
}

fn plan(controllers: u32, masks: MaskStrategy) -> Plan {
    Plan {
        alpha: Fraction { numerator: 1, denominator: 2 },
        colluders: 1,
        delta_exponent: DELTA_EXPONENT,
        masks,
        roster: (0..controllers)
            .map(|p| ControllerId(labelled_hash("bench", &[&p.to_be_bytes()]).0))
            .collect(),
        ..plans::blank(controllers)
    }
}
