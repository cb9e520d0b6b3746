//! Patterns of a registry, which select fields by their paths.

/// Longest pattern that is compared. A longer one selects all, as the careful answer.
const MAX_PATTERN: usize = 256;

/// A pattern: `*` is any part of a word, `**` any words, `?` a letter.
pub(super) struct Pattern {
    /// None if it is too long.
    signs: Option<Vec<Sign>>,
}

#[derive(Clone, Copy)]
enum Sign {
    Letter(char),
    AnyLetter,
    AnyPart,
    AnyWords,
}

impl Pattern {
    pub(super) fn of(text: &str) -> Pattern {
        if text.len() > MAX_PATTERN {
            return Pattern { signs: None };
        }
        let mut rest = text.chars().peekable();
        let mut signs = Vec::new();
        while let Some(sign) = rest.next() {
            signs.push(match sign {
                '*' if rest.next_if_eq(&'*').is_some() => Sign::AnyWords,
                '*' => Sign::AnyPart,
                '?' => Sign::AnyLetter,
                letter => Sign::Letter(letter),
            });
        }
        Pattern { signs: Some(signs) }
    }

    /// Whether it selects a path, or also one that the path is part of.
    pub(super) fn selects(&self, path: &str, or_above: bool) -> bool {
        let Some(signs) = &self.signs else { return true };
        // Which places in the pattern what was read of the path can lead to, its end as the last.
        let mut places = vec![false; signs.len() + 1];
        reach(signs, 0, &mut places);
        let is_at_end = |places: &[bool]| places.last().is_some_and(|own| *own);
        for letter in path.chars() {
            if or_above && letter == '.' && is_at_end(&places) {
                return true;
            }
            let mut next = vec![false; places.len()];
            for (place, sign) in signs.iter().enumerate() {
                if !places.get(place).is_some_and(|own| *own) {
                    continue;
                }
                match sign {
                    Sign::Letter(own) if *own == letter => reach(signs, place + 1, &mut next),
                    Sign::AnyLetter if letter != '.' => reach(signs, place + 1, &mut next),
                    Sign::AnyPart if letter != '.' => reach(signs, place, &mut next),
                    Sign::AnyWords => reach(signs, place, &mut next),
                    _ => {}
                }
            }
            places = next;
        }
        is_at_end(&places)
    }
}

/// Adds a place, and those behind it that stand for nothing too.
fn reach(signs: &[Sign], mut place: usize, places: &mut [bool]) {
    while let Some(own) = places.get_mut(place).filter(|own| !**own) {
        *own = true;
        if !matches!(signs.get(place), Some(Sign::AnyPart | Sign::AnyWords)) {
            return;
        }
        place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_select_columns() {
        for (pattern, path, selected) in [
            ("**.ssn", "Person.ssn", true),
            ("**.ssn", "Person.home.ssn", true),
            ("**.ssn", "Person.name", false),
            ("Person.*", "Person.name", true),
            ("Person.*", "Person.home.street", false),
            ("Person.name", "Person.name", true),
            ("**", "anything", true),
            ("com.acme.Person.s*", "com.acme.Person.ssn", true),
            ("com.acme.*.ssn", "com.acme.Person.ssn", true),
            ("Person.s?n", "Person.ssn", true),
            ("Person.s", "Person.ssn", false),
            ("*", "a.b", false),
        ] {
            assert_eq!(Pattern::of(pattern).selects(path, false), selected, "{pattern} {path}");
        }
        for (pattern, path, selected) in [
            ("Person.*", "Person.home.street", true),
            ("Person.home", "Person.home.street.name", true),
            ("Person.home", "Person.homes.street", false),
            ("**.home", "a.home.b", true),
        ] {
            assert_eq!(Pattern::of(pattern).selects(path, true), selected, "{pattern} {path}");
        }
        assert!(Pattern::of(&"x".repeat(300)).selects("anything", false));
    }

    #[test]
    fn many_signs_that_match_anything_stand_for_at_least_their_letters() {
        let pattern = Pattern::of(&"*?**?".repeat(50));
        assert!(pattern.selects(&"a".repeat(1_000), false));
        assert!(!pattern.selects("a", false));
    }
}
