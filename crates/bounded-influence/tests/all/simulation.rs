//! Windows with liars among producers, controllers and the service, from seeds.
//!
//! Whatever happens, a row that is accepted is the sum of what honest controllers' owners have, and
//! of what liars' owners may at most have; and those that are named have lied.

use crate::blame::covered;
use crate::world::{NOISE, RefusedOpenings, Window, World, cell, one_cell};
use alpheus_bounded_influence::blame::Blame;
use alpheus_bounded_influence::commit::Committer;
use alpheus_bounded_influence::terms::Terms;
use alpheus_crypto::group::PublicScalar;
use alpheus_crypto::secret::Secret;
use chacha20::{ChaCha20Rng, rand_core::Rng, rand_core::SeedableRng};

/// What goes wrong in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    Nobody,
    /// A device reports more than its bound; its controller leaves the owner out.
    Producer,
    /// A controller says what it likes of its owners, within their bounds.
    WithinBounds,
    /// A controller commits to more.
    OutOfBounds,
    /// A controller's share is another than its commitments say.
    Share,
    /// The same, and it covers its own equation with what it says of an edge.
    Covered,
    Noise,
    NoProof,
    Copied,
    /// The service publishes another row, or leaves a share out.
    Row,
    /// The service hands out messages of another window.
    Replay,
}

const LIES: [Lie; 11] = [
    Lie::Nobody,
    Lie::Producer,
    Lie::WithinBounds,
    Lie::OutOfBounds,
    Lie::Share,
    Lie::Covered,
    Lie::Noise,
    Lie::NoProof,
    Lie::Copied,
    Lie::Row,
    Lie::Replay,
];

/// How a window ended.
#[derive(Debug, Default)]
struct Ending {
    row: Option<i128>,
    named: Vec<u32>,
    struck: Vec<(u32, u32)>,
    refused: bool,
}

struct Case {
    world: World,
    values: Vec<Vec<i128>>,
    noise: i128,
    liar: u32,
    lie: Lie,
    /// What the row would be if the liar did not lie.
    honest: i128,
    rng: ChaCha20Rng,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut below = |n: u32| rng.next_u32() % n;
        let controllers = 3 + below(2);
        let mut world = World::new(&one_cell(), controllers, seed);
        let values: Vec<Vec<i128>> = (0..controllers)
            .map(|_| (0..below(3)).map(|_| i128::from(below(121)) - 20).collect())
            .collect();
        let liar = below(controllers);
        let left_out = below(2 * controllers);
        world.opened.retain(|p| *p == liar || *p != left_out);
        let noise = i128::from(below(7)) - 3;
        Self { lie: LIES[(seed % 11) as usize], honest: 0, world, values, noise, liar, rng }
    }

    fn truth(&self) -> i128 {
        let of = |p: &u32| self.values[*p as usize].iter().sum::<i128>() - self.noise;
        self.world.opened.iter().map(of).sum()
    }

    fn play(&mut self) -> Ending {
        let liar = self.liar as usize;
        if matches!(self.lie, Lie::OutOfBounds | Lie::NoProof | Lie::Copied | Lie::WithinBounds) {
            self.values[liar] = vec![8, 9];
            self.values[(liar + 1) % 3] = vec![7];
        }
        self.honest = self.truth();
        if self.lie == Lie::Producer {
            self.values[liar].push(101);
        }
        let mut window = self.window();
        self.tamper(&mut window);
        let signed = self.world.signed(&window.contributions);
        let found = self.world.check(&signed);
        if !found.faulty.is_empty() || !found.misplaced.is_empty() {
            let named = found.faulty.iter().map(|faulty| faulty.controller).collect();
            return Ending { named, refused: true, ..Ending::default() };
        }
        self.tamper_openings(&mut window);
        let opened = match self.world.open(&found.bounded, &window.openings) {
            Ok(opened) => opened,
            Err(RefusedOpenings { faulty, .. }) => {
                let named = faulty.iter().map(|faulty| faulty.controller).collect();
                return Ending { named, refused: true, ..Ending::default() };
            }
        };
        match self.world.checker.row(&self.world.opened, &opened, None) {
            Ok(row) => Ending { row: Some(row.values()[0]), ..Ending::default() },
            Err(_) => self.blame(&window, &opened),
        }
    }

    fn window(&self) -> Window {
        let cells: Vec<Vec<&[i128]>> =
            self.values.iter().map(|own| own.iter().map(std::slice::from_ref).collect()).collect();
        let owners: Vec<&[&[i128]]> = cells.iter().map(Vec::as_slice).collect();
        Window::new(&self.world, &owners, &[self.noise])
    }

    fn tamper(&mut self, window: &mut Window) {
        let (liar, world) = (self.liar as usize, &self.world);
        let other = (liar + 1) % 3;
        match self.lie {
            Lie::OutOfBounds => {
                let terms = Terms::new(&[cell(20, 140)], &[], 1000, 10).unwrap();
                let lax = Committer::new(terms, Secret::from_bytes([66; 32]));
                window.contributions[liar] =
                    world.contribution_by(&lax, self.liar, &[&[20], &[101]]);
            }
            Lie::Share | Lie::Covered => {
                let value = &mut window.contributions[liar].share.values[0];
                *value = value.plus(&PublicScalar::of(5));
            }
            Lie::NoProof => window.contributions[liar].owners[0].proof.fill(0),
            Lie::Copied => {
                window.contributions[liar].owners = window.contributions[other].owners.clone();
            }
            Lie::WithinBounds => {
                self.values[liar] = vec![100, 100];
                *window = self.window();
                return;
            }
            _ => return,
        }
        window.open(&self.world);
    }

    fn tamper_openings(&mut self, window: &mut Window) {
        let at = self.world.opened.iter().position(|p| *p == self.liar).unwrap();
        match self.lie {
            Lie::Noise => {
                let mut wide = cell(-20, 100);
                wide.noise = 50;
                let terms = Terms::new(&[wide], &[], 1000, 10).unwrap();
                let lax = Committer::new(terms, Secret::from_bytes([66; 32]));
                let contribution = window.openings[at].contribution;
                window.openings[at] = self.world.opening_by(&lax, self.liar, &contribution, &[40]);
            }
            Lie::Replay => {
                let (scope, set, opened) =
                    (self.world.scope, self.world.set, self.world.opened.clone());
                self.world.at(u64::MAX / 2_000_000);
                let old = self.window();
                (self.world.scope, self.world.set, self.world.opened) = (scope, set, opened);
                window.openings[at] = old.openings[self.liar as usize].clone();
            }
            _ => {}
        }
    }

    fn blame(
        &mut self,
        window: &Window,
        opened: &[alpheus_bounded_influence::check::OpenedContribution],
    ) -> Ending {
        let mut edges = window.edges(&self.world);
        if self.lie == Lie::Covered {
            let own = self.world.opened.iter().position(|p| *p == self.liar).unwrap();
            let others = edges[own].edges.len() as u32;
            let other = edges[own].edges[(self.rng.next_u32() % others) as usize].other;
            covered(&mut edges[own], other, 5);
        }
        let signed: Vec<_> = edges.iter().map(|e| self.world.sign(e.controller, e)).collect();
        let found = Blame::new(1).judge(&self.world.failed(opened), &signed);
        assert!(found.silent.is_empty());
        let (named, struck) =
            (found.named.into_keys().collect(), found.struck.into_iter().collect());
        Ending { named, struck, refused: true, row: None }
    }

    fn check(&mut self, seed: u64) {
        let ending = self.play();
        let (lie, liar) = (self.lie, self.liar);
        let about = format!("seed {seed}, {lie:?}: {ending:?}");
        // No honest member is ever named, and no edge of two honest ones struck.
        assert!(ending.named.iter().all(|name| *name == liar), "{about}");
        assert!(ending.struck.iter().all(|(a, b)| *a == liar || *b == liar), "{about}");
        match lie {
            Lie::Nobody | Lie::Producer => assert_eq!(ending.row, Some(self.honest), "{about}"),
            // The row is within the bounds of the liar's two owners and its noise.
            Lie::WithinBounds => {
                let moved = (ending.row.unwrap() - self.honest).unsigned_abs();
                assert!((1..=2 * 120 + u128::from(NOISE)).contains(&moved), "{about}");
            }
            // What the service publishes is compared with the checked row.
            Lie::Row => assert_ne!(ending.row, Some(self.honest + 1), "{about}"),
            Lie::Replay => assert!(ending.refused && ending.named.is_empty(), "{about}"),
            Lie::Covered => {
                assert!(ending.refused && ending.struck.len() + ending.named.len() == 1, "{about}");
            }
            Lie::OutOfBounds | Lie::Share | Lie::Noise | Lie::NoProof | Lie::Copied => {
                assert!(ending.refused && ending.named == [liar], "{about}");
            }
        }
    }
}

fn windows(seeds: std::ops::Range<u64>) {
    seeds.for_each(|seed| Case::new(seed).check(seed));
}

#[test]
fn liars_are_named_and_nobody_else() {
    windows(0..100);
}

#[test]
#[ignore = "it takes minutes of a machine"]
fn liars_are_named_and_nobody_else_in_many_windows() {
    windows(100..10_100);
}
