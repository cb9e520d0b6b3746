//! The used counters of a connection: all those in a window behind the highest, since parallel
//! requests overtake each other.

/// How far behind the highest a counter may be.
pub const WIDTH: u64 = 1024;
const WORDS: usize = 16;

/// Remembers the used counters among the last [`WIDTH`].
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// One more than the highest used counter; zero if none was used.
    next: u64,
    /// Bit `c % WIDTH` is set if counter `c` of the last [`WIDTH`] was used.
    used: [u64; WORDS],
}

impl Window {
    /// Uses a counter. Returns false if it was used before, or is too far behind to know.
    #[must_use]
    pub fn accept(&mut self, counter: u64) -> bool {
        if counter == u64::MAX {
            return false;
        }
        if counter >= self.next {
            self.advance(counter + 1);
        } else if self.next - counter > WIDTH || self.is_used(counter) {
            return false;
        }
        let (word, bit) = place(counter);
        self.used[word] |= bit;
        true
    }

    fn is_used(&self, counter: u64) -> bool {
        let (word, bit) = place(counter);
        self.used[word] & bit != 0
    }

    /// Moves the window up and clears the counters that enter it.
    fn advance(&mut self, next: u64) {
        if next - self.next >= WIDTH {
            self.used = [0; WORDS];
        } else {
            for counter in self.next..next {
                let (word, bit) = place(counter);
                self.used[word] &= !bit;
            }
        }
        self.next = next;
    }
}

fn place(counter: u64) -> (usize, u64) {
    let place = usize::try_from(counter % WIDTH).unwrap_or(0);
    (place / 64, 1 << (place % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        /// Compares with a set that remembers everything.
        #[test]
        fn accepts_each_counter_once_and_nothing_too_old(
            steps in prop::collection::vec((0_u64..2500, any::<bool>()), 1..400),
        ) {
            let (mut window, mut seen, mut highest) = (Window::default(), HashSet::new(), 0);
            let mut base = 0;
            for (step, ahead) in steps {
                let counter = if ahead { base + step } else { base.saturating_sub(step) };
                base = base.max(counter);
                let recent = seen.is_empty() || counter + WIDTH > highest;
                let expected = recent && !seen.contains(&counter);
                prop_assert_eq!(window.accept(counter), expected, "{}", counter);
                if expected {
                    seen.insert(counter);
                    highest = highest.max(counter);
                }
            }
        }
    }

    #[test]
    fn the_last_counter_is_never_used() {
        let mut window = Window::default();
        assert!(!window.accept(u64::MAX));
        assert!(window.accept(u64::MAX - 1) && !window.accept(u64::MAX - 1));
    }
}
