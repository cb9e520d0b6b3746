//! Progress of the job's tasks.

use alpheus_encrypted_stream::job::Progress;
use alpheus_time::Timestamp;
use std::collections::BTreeMap;

/// The latest reports of the tasks.
#[derive(Default)]
pub(super) struct TaskTimes {
    /// Number of tasks.
    tasks: u32,
    times: BTreeMap<u32, Timestamp>,
}

impl TaskTimes {
    /// Takes a task's report, limited to `latest`.
    pub(super) fn update(&mut self, latest: Timestamp, report: Progress) {
        if report.tasks != self.tasks {
            // The job now has another number of tasks, which have other streams.
            *self = TaskTimes { tasks: report.tasks, times: BTreeMap::new() };
        }
        self.times.insert(report.task, report.time.min(latest));
    }

    /// The time up to which the job has reported everything about windows that ended, with
    /// their grace period. Zero until every task has reported.
    pub(super) fn by(&self) -> Timestamp {
        let all = self.times.len() == self.tasks as usize;
        let least = all.then(|| self.times.values().min()).flatten();
        least.copied().unwrap_or(Timestamp(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_that_of_the_slowest_task() {
        let mut reached = TaskTimes::default();
        assert_eq!(reached.by(), Timestamp(0));
        let mut report = |task, tasks, time| {
            reached.update(Timestamp(100), Progress { task, tasks, time: Timestamp(time) });
            reached.by().0
        };
        assert_eq!(report(1, 2, 50), 0, "the other has not reported");
        assert_eq!(report(0, 2, 70), 50);
        assert_eq!(report(1, 2, 60), 60);
        assert_eq!(report(1, 2, 40), 40, "it restarted");
        assert_eq!(report(1, 2, 1 << 60), 70);
        assert_eq!(report(0, 2, 1 << 60), 100, "no later than the clock allows");
        assert_eq!(report(2, 3, 90), 0, "it was rescaled");
        assert_eq!((report(1, 3, 91), report(0, 3, 92)), (0, 90));
        assert_eq!(report(0, 1, 80), 80);
    }
}
