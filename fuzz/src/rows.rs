//! Files of rows that people bring.

use alpheus_input::convert::{cells_of_line, to_text};

/// JSON and Parquet become text with as many cells in each row as there are names, or are refused.
pub fn rows(data: &[u8]) {
    // Of a panic that is caught, as those of Parquet's library are, libFuzzer must not hear. It sees
    // all others.
    #[cfg(feature = "libfuzzer")]
    {
        static QUIET: std::sync::Once = std::sync::Once::new();
        QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    }
    if let Ok(line) = std::str::from_utf8(data) {
        let _ = cells_of_line(line, 1);
    }
    match to_text(data.to_vec()) {
        // Other files pass as they are.
        Ok(text) => assert!(!text.is_empty() || data.is_empty(), "names at least"),
        Err(error) => assert!(!error.to_string().is_empty(), "an error has a message"),
    }
}
