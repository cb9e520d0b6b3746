//! What the tests of both modes share: one server lies in each of its messages. Whether a write is
//! accepted and the epoch succeeds must not depend on the written row.

use alpheus_anonymous_board::messages::{Body, WriteName};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_crypto::hash::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

/// What everybody can see: whether the victim is in the set, and how the epoch ended.
pub(crate) type Observation = (Option<bool>, String);

/// A change to a server's next statement.
pub(crate) type Lie<S> = fn(&S, &Transcript, &mut Body);

/// A lie by its name, and the result for the victim's write if everybody receives the lie.
pub(crate) type NamedLie<S> = (&'static str, Lie<S>, Option<bool>);

pub(crate) const IN: Option<bool> = Some(true);
pub(crate) const OUT: Option<bool> = Some(false);
pub(crate) const NO_SET: Option<bool> = None;

/// A liar's knowledge.
pub(crate) trait Shadow: Sized + 'static {
    fn victim(&self) -> WriteName;

    /// A change to each statement that servers of both modes make.
    const COMMON_LIES: &'static [NamedLie<Self>] = &[
        ("nothing", |_, _, _| (), IN),
        (
            "the victim is not listed at close",
            |shadow, _, body| {
                if let Body::Close { writes, .. } = body {
                    writes.retain(|write| *write != shadow.victim());
                }
            },
            IN,
        ),
        (
            "a write that nobody made is listed",
            |_, _, body| {
                if let Body::Close { writes, .. } = body {
                    writes.push(WriteName(Digest([255; 32])));
                }
            },
            IN,
        ),
        (
            "the victim is no candidate",
            |shadow, _, body| {
                if let Body::Candidates { writes, .. } = body {
                    writes.retain(|write| *write != shadow.victim());
                }
            },
            NO_SET,
        ),
        (
            "another coin",
            |_, _, body| {
                if let Body::Candidates { coin, .. } = body {
                    coin[0] ^= 1;
                }
            },
            NO_SET,
        ),
        (
            "another commitment",
            |_, _, body| {
                if let Body::Commit { digests, .. } = body {
                    digests.0[0] ^= 1;
                }
            },
            NO_SET,
        ),
        (
            "other candidates committed to",
            |_, _, body| {
                if let Body::Commit { candidates, .. } = body {
                    candidates.0[0] ^= 1;
                }
            },
            NO_SET,
        ),
        (
            "another set",
            |_, _, body| {
                if let Body::Agree { set, .. } = body {
                    set.0[0] ^= 1;
                }
            },
            IN,
        ),
        (
            "another size",
            |_, _, body| {
                if let Body::Agree { size, .. } = body {
                    *size += 1;
                }
            },
            IN,
        ),
        (
            "a latch of another set",
            |_, _, body| {
                if let Body::Latch { set, .. } = body {
                    set.0[0] ^= 1;
                }
            },
            IN,
        ),
        (
            "a latch of another share",
            |_, _, body| {
                if let Body::Latch { share, .. } = body {
                    share.0[0] ^= 1;
                }
            },
            IN,
        ),
        (
            "another table",
            |_, _, body| {
                if let Body::Publish { table, .. } = body {
                    table.0[0] ^= 1;
                }
            },
            IN,
        ),
    ];
}

/// What a liar computes for a row before it lies. It is the same for each lie, and computed once.
pub(crate) struct Foreknowledge<T>(Mutex<BTreeMap<u32, T>>);

impl<T: Clone> Foreknowledge<T> {
    pub(crate) const fn new() -> Self {
        Foreknowledge(Mutex::new(BTreeMap::new()))
    }

    pub(crate) fn of(&self, row: u32, compute: impl FnOnce() -> T) -> T {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(row).or_insert_with(compute).clone()
    }
}

/// Whether the observations differ between rows.
pub(crate) fn differs<T: Ord>(seen: &BTreeMap<u32, BTreeSet<T>>) -> bool {
    seen.values().collect::<BTreeSet<_>>().len() > 1
}

/// The observations of a lie in an epoch for each of these rows.
pub(crate) fn observations<T: Ord>(
    rows: &[u32],
    mut run: impl FnMut(u32) -> T,
) -> BTreeMap<u32, BTreeSet<T>> {
    rows.iter().map(|&row| (row, BTreeSet::from([run(row)]))).collect()
}

/// Each lie, sent to everybody, has its expected effect, which does not depend on the row.
pub(crate) fn assert_no_lie_reveals_the_row<S>(
    lies: &[NamedLie<S>],
    run: impl Fn(Lie<S>, u32) -> Observation,
) {
    for (name, lie, expected) in lies {
        let seen = observations(&[0, 3, 7], |row| {
            let one = run(*lie, row);
            assert_eq!(one.0, *expected, "{name}: the lie has its expected effect");
            one
        });
        assert!(!differs(&seen), "{name}: {seen:?}");
    }
}

/// The effect of each lie, sent to one receiver only, does not depend on the row.
pub(crate) fn assert_no_lie_to_one_reveals_the_row<S, R: Copy + Debug>(
    lies: &[NamedLie<S>],
    receivers: &[R],
    run: impl Fn(Lie<S>, u32, R) -> Observation,
) {
    for (name, lie, _) in lies {
        for receiver in receivers {
            let seen = observations(&[0, 3], |row| run(*lie, row, *receiver));
            assert!(!differs(&seen), "{name}, to {receiver:?}: {seen:?}");
        }
    }
}
