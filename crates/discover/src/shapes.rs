//! The cells of a column that have one shape of times.

use crate::clock::Format;

/// The cells of one shape of times.
#[derive(Clone, Debug)]
pub(crate) struct ShapeCount {
    /// How many there are.
    pub count: u64,
    /// Each format that may read them, with the number that it cannot read.
    pub formats: Vec<(Format, u64)>,
    /// Whether all are at midnight.
    pub midnight: bool,
    /// The last of them. Cells below one another are often the same, and read once.
    last: String,
    /// The positions of the formats that cannot read it.
    failing: Vec<usize>,
}

impl ShapeCount {
    pub(crate) fn of(formats: Vec<(Format, u64)>) -> ShapeCount {
        let (last, failing) = (String::new(), Vec::new());
        ShapeCount { count: 0, formats, midnight: true, last, failing }
    }

    /// Reads a cell with each format.
    pub(crate) fn read(&mut self, cell: &str) {
        if self.last != cell {
            cell.clone_into(&mut self.last);
            self.failing.clear();
            for (at, (format, _)) in self.formats.iter().enumerate() {
                match format.read(cell) {
                    Some(moment) => self.midnight &= moment.time_of_day() == 0,
                    None => self.failing.push(at),
                }
            }
        }
        for at in &self.failing {
            self.formats[*at].1 += 1;
        }
    }
}
