//! Messages to the person at the terminal, on standard error: whole lines.
//!
//! Standard error has no buffer: each part of a formatted message is written by itself, and processes
//! that share a terminal or a log would mix in the middle of a line.

use std::fmt::Arguments;
use std::io::{self, LineWriter, Stderr, Write};

/// Longer lines are written in parts.
const LINE: usize = 8 << 10;

/// Prints a line to standard error in one write. Its arguments are those of `format!`.
#[macro_export]
macro_rules! note {
    ($($message:tt)*) => {
        $crate::note::print(::core::format_args!($($message)*))
    };
}

/// Prints `message` and a newline in one write: what `note!` calls. A reader that has gone away is no failure.
pub fn print(message: Arguments<'_>) {
    let _ = write_line(&mut io::stderr(), message);
}

fn write_line(out: &mut impl Write, message: Arguments<'_>) -> io::Result<()> {
    out.write_all(format!("{message}\n").as_bytes())
}

/// Standard error that is written line by line, for a report that is written in parts.
#[must_use]
pub fn lines() -> LineWriter<Stderr> {
    LineWriter::with_capacity(LINE, io::stderr())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was written, write by write.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_message_of_many_parts_is_one_write() {
        let mut out = Writes::default();
        write_line(&mut out, format_args!("{} samples, {} lines dropped", 3, 0)).unwrap();
        assert_eq!(out.0, [b"3 samples, 0 lines dropped\n"]);
    }
}
