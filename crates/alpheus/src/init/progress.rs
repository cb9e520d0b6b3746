//! How far the passes over a large file are, where a person waits at a terminal.

use alpheus_discover::Watch;
use alpheus_node::service::progress::Progress;
use std::io::IsTerminal;

const MEGABYTE: u64 = 1_000_000;

/// Counts megabytes on the terminal's standard error; elsewhere nothing.
pub(super) struct Passes {
    shown: Option<Progress>,
    /// Bytes that all passes have, and those that they have passed over.
    all: u64,
    passed: u64,
}

impl Passes {
    /// Starts counting `what` of.
    pub(super) fn start(what: &'static str) -> Passes {
        let terminal = std::io::stderr().is_terminal();
        let shown = terminal.then(|| Progress::new(what, None));
        Passes { shown, all: 0, passed: 0 }
    }
}

impl Watch for Passes {
    fn expects(&mut self, bytes: u64) {
        self.all += bytes;
        if let Some(shown) = &mut self.shown {
            shown.set_total(self.all.div_ceil(MEGABYTE));
        }
    }

    fn passed(&mut self, bytes: u64) {
        let before = self.passed / MEGABYTE;
        self.passed += bytes;
        if let Some(shown) = &mut self.shown {
            shown.advance(self.passed / MEGABYTE - before);
        }
    }
}
