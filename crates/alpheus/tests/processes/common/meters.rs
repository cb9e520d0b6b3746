//! Meters of a deployment's houses: processes that send readings.

use super::deployment::RunningSite;
use super::{Process, bash};
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

impl RunningSite {
    /// Each house's meter sends its number twice in each window of two seconds, for as long as a
    /// test runs: half a minute ahead, since the service refuses what is more than a minute ahead.
    pub(crate) fn feed(&self) -> Vec<Process> {
        self.feed_of(0..self.place.houses.len())
    }

    /// The same of some houses. The others' meters are off.
    pub(crate) fn feed_of(&self, houses: impl IntoIterator<Item = usize>) -> Vec<Process> {
        let start = seconds_now() + 4;
        let meter = |house: usize| {
            let readings = format!(
                "for step in {{0..3600}}; do \
                 while (( EPOCHSECONDS + 30 < {start} + step )); do sleep 0.5; done; \
                 echo '{{\"reading\": {}, \"alarms\": 1, \"litres\": 5, \"at\": '$(({start} + step))'500}}'; \
                 done",
                house + 1
            );
            self.piped_meter(house, &format!("{readings} |"), "--time-column at")
        };
        houses.into_iter().map(meter).collect()
    }

    /// The same for some seconds, from so many seconds on, all sent at once: a meter that starts
    /// later misses readings.
    pub(crate) fn feed_in(&self, seconds: u64, readings: u64) -> Vec<Process> {
        let start = seconds_now() + seconds;
        let feed = |(number, house): (usize, &&str)| {
            let line = |step: u64| {
                let at = (start + step) * 1000 + 500;
                format!(
                    "{{\"reading\": {}, \"alarms\": 1, \"litres\": 5, \"at\": {at}}}\n",
                    number + 1
                )
            };
            let lines = self.place.path(&format!("{house}.json"));
            fs::write(&lines, (0..readings).map(line).collect::<String>()).unwrap();
            self.place.device(house, &self.server, &lines)
        };
        self.place.houses.iter().enumerate().map(feed).collect()
    }

    /// A house's meter that says its number as it comes, on the clock.
    pub(crate) fn live_meter(&self, house: usize) -> Process {
        self.live_meter_under(house, "")
    }

    /// The same under what sets its clock, by the file `device.clock`.
    pub(crate) fn live_meter_by_clock(&self, house: usize, library: &Path) -> Process {
        let faked = format!(
            "env LD_PRELOAD={} FAKETIME_TIMESTAMP_FILE={} FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1",
            library.display(),
            self.place.path("device.clock").display()
        );
        self.live_meter_under(house, &faked)
    }

    fn live_meter_under(&self, house: usize, wrapper: &str) -> Process {
        let reading = house + 1;
        let readings =
            format!("while echo '{{\"reading\": {reading}, \"alarms\": 1}}'; do sleep 0.4; done");
        self.piped_meter(house, &format!("{readings} | {wrapper}"), "")
    }

    /// A house's meter that sends what a script prints. It ends with a pipe into the program.
    fn piped_meter(&self, house: usize, readings: &str, flags: &str) -> Process {
        let (name, folder) = (self.place.houses[house], self.place.path(""));
        let script = format!(
            "{readings} alpheus produce --identity pki/meter-{name} --device {name}.device \
             --state run/meter-{name} --schema schema.yaml --server {} --input - {flags}",
            self.server
        );
        Process::start_script(bash(&folder).args(["-c", &script]))
    }
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}
