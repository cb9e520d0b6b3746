//! Figures of the work on one ciphertext, for one set: with the paper's, and
//! for one value.

use super::paper::{Row, Security};
use crate::measure::Effort;
use crate::report::{Figure, Goal};
use std::cell::RefCell;

/// A kind of part of the work, and its runner.
pub(super) struct Bench<'a, P> {
    pub(super) group: &'static str,
    pub(super) effort: Effort,
    /// n.
    pub(super) slots: f64,
    pub(super) security: Security,
    pub(super) run: RefCell<&'a mut dyn FnMut(P)>,
}

impl<P: Copy> Bench<'_, P> {
    /// Runs parts of the work, in order.
    pub(super) fn all(&self, parts: &[P]) {
        let mut run = self.run.borrow_mut();
        parts.iter().for_each(|part| run(*part));
    }

    /// One ciphertext, and one of its values.
    pub(super) fn rows(&self, name: &str, parts: &[P], paper: Option<Row>) -> Vec<Figure> {
        let raw = self.effort.time(|| self.all(parts));
        let figure = Figure::alone(self.group, name.to_owned(), "µs", raw / 1000.0);
        let Some(row) = paper else { return vec![figure] };
        let (theirs, value) = (self.security.raw(row), format!("{name}, a value"));
        let value = Figure::alone(self.group, value, "ns", raw / self.slots);
        vec![
            figure.beside_paper(theirs),
            value.beside_paper(1000.0 * theirs / self.security.slots()),
        ]
    }

    /// The cost of checking, compared with the same work unchecked, in one run.
    pub(super) fn overhead(
        &self,
        name: &str,
        work: &[P],
        checks: &[P],
        most: Option<f64>,
    ) -> Vec<Figure> {
        self.beside(name, work, &[work, checks].concat(), most)
    }

    /// The same if the work differs with checking.
    pub(super) fn beside(
        &self,
        name: &str,
        unchecked: &[P],
        ours: &[P],
        most: Option<f64>,
    ) -> Vec<Figure> {
        let compared = self.effort.compare(|| self.all(unchecked), || self.all(ours));
        let percent = (compared.ratio - 1.0) * 100.0;
        let added = Figure::alone(self.group, format!("{name}: what checking adds"), "%", percent);
        vec![
            Figure::compared(self.group, format!("{name}, beside unchecked"), "ns", compared),
            most.map(Goal::AtMost).into_iter().fold(added, Figure::with_goal),
        ]
    }
}
