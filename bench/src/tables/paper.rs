//! Figures of the paper, for one ciphertext: its tables 4 and 5, on an Intel Core i5-2415M of
//! 2011, one thread.

use alpheus_verifiable_table::parameters::Set;

/// A row of its tables.
#[derive(Clone, Copy, Debug)]
pub(super) enum Row {
    /// Table 4, ProbGen: encrypt and tag.
    ProbGen,
    /// Table 4, Add.
    Add,
    /// Table 4, Const. Mult.
    ConstMult,
    /// Table 4, Mult.
    Mult,
    /// Table 4, Verify.
    Verify,
    /// Table 5, Compute, for each coefficient.
    Compute,
    /// Table 5, Verify, at any degree.
    VerifyPolynomial,
}

/// Its two parameter sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Security {
    /// 80 bits: n = 5418, log q = 173, 165 slots.
    Eighty,
    /// 128 bits: n = 8820, log q = 272, 275 slots.
    Whole,
}

impl Security {
    /// The set of the paper that one of ours is compared with.
    pub(super) fn of(set: Set) -> Self {
        if set == Set::C80 { Self::Eighty } else { Self::Whole }
    }

    /// Values of a ciphertext.
    pub(super) fn slots(self) -> f64 {
        match self {
            Self::Eighty => 165.0,
            Self::Whole => 275.0,
        }
    }

    /// Microseconds of one ciphertext.
    pub(super) fn raw(self, row: Row) -> f64 {
        let (eighty, whole) = match row {
            Row::ProbGen => (25.0, 75.0),
            Row::Add => (0.15, 0.28),
            Row::ConstMult => (16.0, 28.0),
            Row::Mult => (184.0, 369.0),
            Row::Verify => (70.0, 180.0),
            Row::Compute => (2.0, 4.0),
            Row::VerifyPolynomial => (17.0, 53.0),
        };
        1000.0 * if self == Self::Eighty { eighty } else { whole }
    }
}
