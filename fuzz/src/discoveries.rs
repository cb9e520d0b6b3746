//! Unknown files of readings.

use alpheus_discover::write::{FileReport, files};
use alpheus_discover::{Hints, understand};

/// Any bytes are understood or refused, and what is written counts what was read.
pub fn discover(data: &[u8]) {
    let Ok(found) = understand(data, &Hints::default()) else { return };
    let written = files(&found, "data.csv", None);
    assert!(written.source.contains("time:") && written.schema.contains("streamAttributes:"));
    let understood = FileReport::of(&found);
    assert!(understood.attributes.iter().all(|attribute| attribute.count <= understood.rows));
}
