//! What stands in a row: one message, or two that met and can be told apart, or
//! more, which are lost.
//!
//! Content is length (2 bytes) ‖ message, filled up with zeros ‖ 64 random bits ‖
//! check (6 bytes of a hash). The random bits keep equal messages from cancelling;
//! the check tells a content from a sum of contents. A row with recovery holds
//! content m and, behind it, m³ in GF(2^1409) (paper §III-B, with m³ for m²: in a
//! field of characteristic 2 the sum of squares is the square of the sum and
//! tells nothing new).

mod field;

use crate::dpf::{BLOCK, BadShape, Shape};
use alpheus_crypto::hash::labelled;
use alpheus_crypto::labels;
use field::Element;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Bytes of a content beside the message.
pub const OVERHEAD: usize = 16;
/// The longest message of a row with recovery.
pub const LONGEST_RECOVERED: u16 = 160;
/// The longest message of a row without.
pub const LONGEST: u16 = 4096;
const CUBE: usize = field::BYTES;

/// How rows hold messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// The longest message, in bytes.
    pub message: u16,
    /// Whether two messages that meet in one row are recovered.
    pub recovery: bool,
}

/// What a row holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// Nobody wrote here, or covers did.
    Empty,
    /// One message.
    One(Vec<u8>),
    /// Two messages that met, in no order that means anything.
    Two([Vec<u8>; 2]),
    /// More than can be told apart, or something that is no message.
    Lost,
}

/// A message that rows of this format do not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message has {length} bytes; rows of this board hold {most}: shorten it")]
pub struct TooLong {
    /// Its bytes.
    pub length: usize,
    /// The longest message.
    pub most: u16,
}

impl Format {
    /// Rows with recovery, of messages of 160 bytes.
    pub const RECOVERED: Self = Self { message: LONGEST_RECOVERED, recovery: true };

    /// A table of so many rows of this format.
    ///
    /// # Errors
    /// [`BadShape`] if there is none, or messages would be longer than
    /// [`LONGEST_RECOVERED`] or [`LONGEST`].
    pub fn shape(&self, rows: u32) -> Result<Shape, BadShape> {
        let most = if self.recovery { LONGEST_RECOVERED } else { LONGEST };
        if self.message > most {
            return Err(BadShape);
        }
        let bytes = self.content() + if self.recovery { CUBE } else { 0 };
        Shape::new(rows, u32::try_from(bytes.div_ceil(BLOCK)).map_err(|_| BadShape)?)
    }

    /// The rows that deliver 95 % of the messages of `writers`, each in a row drawn
    /// by itself: 2.82 times as many with recovery, 19.5 times without (paper §III-B).
    #[must_use]
    pub fn rows_for(&self, writers: u32) -> u32 {
        // From e^(−1/r)·(1 + 1/r) = 0.95 and e^(−1/r) = 0.95, in thousandths, rounded up.
        let thousandths = if self.recovery { 2_815 } else { 19_496 };
        let rows = (u64::from(writers) * thousandths).div_ceil(1000).max(1);
        u32::try_from(rows).unwrap_or(u32::MAX)
    }

    /// Bytes of a content, filled up to whole blocks.
    fn content(&self) -> usize {
        (usize::from(self.message) + OVERHEAD).next_multiple_of(BLOCK)
    }

    /// What a writer adds to its row, of the length of a row. Takes the same time
    /// for messages of one length.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn encode(
        &self,
        message: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<Zeroizing<Vec<u8>>, TooLong> {
        let too_long = TooLong { length: message.len(), most: self.message };
        let length = u16::try_from(message.len()).ok().filter(|length| *length <= self.message);
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

    /// Reads a row of a published table.
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

    /// One content and its cube, or two of each added up.
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
        // With a = m + n: m³ + n³ = a³ + m·n·a, and m/a, n/a solve w² + w = m·n/a².
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

    /// The message of one content, if its check holds.
    fn message(&self, content: &[u8]) -> Option<Vec<u8>> {
        let (checked, found) = content.split_last_chunk::<6>()?;
        if check(checked) != *found {
            return None;
        }
        let (length, rest) = checked.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes(*length));
        if length > usize::from(self.message) {
            return None;
        }
        rest.get(..length).map(<[u8]>::to_vec)
    }
}

/// Six bytes of a hash, which is not linear: a sum of contents fails it but with
/// a chance of 2^-48.
fn check(content: &[u8]) -> [u8; 6] {
    let digest = labelled(labels::BOARD_ROW, &[content]);
    std::array::from_fn(|i| digest.0[i])
}
