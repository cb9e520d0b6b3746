//! The content of a row: one message, two colliding messages that can be separated, or more, which
//! are lost.
//!
//! A content is length (2 bytes) ‖ message, padded with zeros ‖ 64 random bits ‖ check (6 bytes of
//! a hash). The random bits keep equal messages from cancelling. The check distinguishes a content
//! from a sum of contents. A row with recovery holds the content m, followed by m³ in GF(2^1409).
//! The paper (§III-B) uses m² instead of m³, but in a field of characteristic 2 the sum of squares
//! is the square of the sum and carries no new information.

mod field;

use crate::dpf::{BLOCK, Shape, ShapeError};
use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::labels;
use field::Element;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Bytes of a content besides the message.
pub const OVERHEAD: usize = 16;
/// The longest message in a row with recovery.
pub const MAX_RECOVERED_MESSAGE: u16 = 160;
/// The longest message in a row without recovery.
pub const MAX_MESSAGE: u16 = 4096;
const CUBE: usize = field::BYTES;

/// How rows encode messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// The longest message, in bytes.
    pub max_message: u16,
    /// Whether two messages that collide in one row are recovered.
    pub recovery: bool,
}

/// A decoded row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// No message: nobody wrote here, or only covers did.
    Empty,
    /// One message.
    One(Vec<u8>),
    /// Two messages that collided, in arbitrary order.
    Two([Vec<u8>; 2]),
    /// Too many messages to separate, or something that is not a message.
    Lost,
}

/// The message is too long for this format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message has {length} bytes, but rows of this board hold {max}; shorten it")]
pub struct MessageLengthError {
    /// The message's length in bytes.
    pub length: usize,
    /// The longest message, in bytes.
    pub max: u16,
}

impl Format {
    /// Rows with recovery, for messages of up to 160 bytes.
    pub const RECOVERED: Self = Self { max_message: MAX_RECOVERED_MESSAGE, recovery: true };

    /// The shape of a table with `rows` rows of this format.
    ///
    /// # Errors
    /// [`ShapeError`] if there is no such table, or if messages would exceed
    /// [`MAX_RECOVERED_MESSAGE`] or [`MAX_MESSAGE`].
    pub fn shape(&self, rows: u32) -> Result<Shape, ShapeError> {
        let max = if self.recovery { MAX_RECOVERED_MESSAGE } else { MAX_MESSAGE };
        if self.max_message > max {
            return Err(ShapeError);
        }
        let bytes = self.content() + if self.recovery { CUBE } else { 0 };
        Shape::new(rows, u32::try_from(bytes.div_ceil(BLOCK)).map_err(|_| ShapeError)?)
    }

    /// The number of rows that delivers 95 % of the messages of `writers`, each in an independently
    /// drawn row: 2.82 per writer with recovery, 19.5 without (paper §III-B).
    #[must_use]
    pub fn rows_for(&self, writers: u32) -> u32 {
        // Solves e^(−1/r)·(1 + 1/r) = 0.95 and e^(−1/r) = 0.95, in thousandths, rounded up.
        let thousandths = if self.recovery { 2_815 } else { 19_496 };
        let rows = (u64::from(writers) * thousandths).div_ceil(1000).max(1);
        u32::try_from(rows).unwrap_or(u32::MAX)
    }

    /// Bytes of a content, padded to whole blocks.
    fn content(&self) -> usize {
        (usize::from(self.max_message) + OVERHEAD).next_multiple_of(BLOCK)
    }

    /// Encodes a message as a whole row, which the writer adds to its row. Takes the same time for
    /// all messages of one length.
    ///
    /// # Errors
    /// [`MessageLengthError`].
    pub fn encode(
        &self,
        message: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<Zeroizing<Vec<u8>>, MessageLengthError> {
        let too_long = MessageLengthError { length: message.len(), max: self.max_message };
        let length = u16::try_from(message.len()).ok().filter(|length| *length <= self.max_message);
        let length = length.ok_or(too_long)?;
        let mut content = Zeroizing::new(vec![0; self.content()]);
        content[..2].copy_from_slice(&length.to_be_bytes());
        content[2..2 + message.len()].copy_from_slice(message);
        let tail = content.len() - 14;
        rng.fill_bytes(&mut content[tail..tail + 8]);
        let check = check(&content[..tail + 8]);
        content[tail + 8..].copy_from_slice(&check);
        if self.recovery {
            let cube = Element::from_bytes(&content).map(|m| Zeroizing::new(m.cube().to_bytes()));
            content.extend_from_slice(cube.ok_or(too_long)?.as_slice());
        }
        let whole = content.len().next_multiple_of(BLOCK);
        content.resize(whole, 0);
        Ok(content)
    }

    /// Decodes a row of a published table.
    #[must_use]
    pub fn decode(&self, row: &[u8]) -> Row {
        if row.iter().all(|byte| *byte == 0) {
            return Row::Empty;
        }
        let Some((content, rest)) = row.split_at_checked(self.content()) else { return Row::Lost };
        if !self.recovery {
            return self.message(content).map_or(Row::Lost, Row::One);
        }
        self.recover(content, rest).unwrap_or(Row::Lost)
    }

    /// Decodes one content and its cube, or the sums of two of each.
    fn recover(&self, content: &[u8], rest: &[u8]) -> Option<Row> {
        let (cube, padding) = rest.split_at_checked(CUBE)?;
        if padding.iter().any(|byte| *byte != 0) {
            return None;
        }
        let (sum, cubes) = (Element::from_bytes(content)?, Element::from_bytes(cube)?);
        if sum.is_zero() {
            return None;
        }
        let cube_of_sum = sum.cube();
        if cube_of_sum == cubes {
            return self.message(content).map(Row::One);
        }
        // With a = m + n: m³ + n³ = a³ + m·n·a, and m/a and n/a solve w² + w = m·n/a².
        let inverse = sum.inverse();
        let quotient = cube_of_sum.plus(&cubes).times(&inverse.square().times(&inverse));
        let w = Element::solve(&quotient)?;
        let [m, n] = [sum.times(&w), sum.times(&w.plus_one())].map(|element| {
            let bytes = element.to_bytes();
            let (content, over) = bytes.split_at(self.content());
            if over.iter().any(|byte| *byte != 0) { None } else { self.message(content) }
        });
        Some(Row::Two([m?, n?]))
    }

    /// The message in a content, if the check holds.
    fn message(&self, content: &[u8]) -> Option<Vec<u8>> {
        let (checked, found) = content.split_last_chunk::<6>()?;
        if check(checked) != *found {
            return None;
        }
        let (length, rest) = checked.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes(*length));
        if length > usize::from(self.max_message) {
            return None;
        }
        rest.get(..length).map(<[u8]>::to_vec)
    }
}

/// Six bytes of a hash. The hash is not linear, so a sum of contents passes with probability 2^-48
/// only.
fn check(content: &[u8]) -> [u8; 6] {
    let digest = labelled_hash(labels::BOARD_ROW, &[content]);
    std::array::from_fn(|i| digest.0[i])
}
