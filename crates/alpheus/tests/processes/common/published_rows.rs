//! Rows that a service publishes though nobody has made them from data.

use super::deployment::RunningSite;
use alpheus_stream_runtime::results::Row;
use alpheus_stream_runtime::storage::Topics;
use alpheus_transport::{Batch, Limits, NewRecord, Offset, local};
use serde_json::Value;

impl RunningSite {
    /// The service is stopped, publishes more rows, which somebody makes from those in its store, and
    /// starts again.
    pub(crate) fn publish(&mut self, made_from: impl FnOnce(&[Row]) -> Vec<Row>) {
        self.service.kill();
        {
            let folder = self.place.path("run/service");
            let store = local::open(&folder, &local::Options::default()).unwrap();
            let partition = Topics::new(4).unwrap().results.partition(0);
            let fetched = store.read(&partition, Offset(0), Limits::default()).unwrap();
            let stored: Vec<Row> =
                fetched.map(|record| serde_json::from_slice(&record.value).unwrap()).collect();
            let mut batch = Batch::new();
            for row in made_from(&stored) {
                let value = serde_json::to_vec(&row).unwrap();
                let record = NewRecord { value: &value, ..Default::default() };
                batch.append(&partition, &record).unwrap();
            }
            store.commit(batch).unwrap();
        }
        self.start_service();
    }
}

/// All the rows of the window that another row is of, in the order of the service.
pub(crate) fn of_window<const N: usize>(
    rows: impl IntoIterator<Item = Value>,
    other: &Value,
) -> [Value; N] {
    let same = rows.into_iter().filter(|row| row["window_start"] == other["window_start"]);
    same.collect::<Vec<_>>().try_into().unwrap()
}
