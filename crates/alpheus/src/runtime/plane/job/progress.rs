//! How far the job's tasks are.

use alpheus_encrypted_stream::job::Progress;
use alpheus_policy::time::Timestamp;
use std::collections::BTreeMap;

/// What its tasks have last told.
#[derive(Default)]
pub(super) struct Reached {
    /// How many they are.
    tasks: u32,
    times: BTreeMap<u32, Timestamp>,
}

impl Reached {
    /// Takes what a task tells, which is no later than `latest`.
    pub(super) fn hear(&mut self, latest: Timestamp, told: Progress) {
        if told.tasks != self.tasks {
            // It runs with another number of tasks now, which have other streams.
            *self = Reached { tasks: told.tasks, times: BTreeMap::new() };
        }
        self.times.insert(told.task, told.time.min(latest));
    }

    /// All that the job has to say of windows that ended, with their grace, by then is said;
    /// the beginning of time before each task has spoken.
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
    fn it_is_as_far_as_the_last_of_its_tasks() {
        let mut reached = Reached::default();
        assert_eq!(reached.by(), Timestamp(0));
        let mut tell = |task, tasks, time| {
            reached.hear(Timestamp(100), Progress { task, tasks, time: Timestamp(time) });
            reached.by().0
        };
        assert_eq!(tell(1, 2, 50), 0, "the other has not spoken");
        assert_eq!(tell(0, 2, 70), 50);
        assert_eq!(tell(1, 2, 60), 60);
        assert_eq!(tell(1, 2, 40), 40, "it started anew");
        assert_eq!(tell(1, 2, 1 << 60), 70);
        assert_eq!(tell(0, 2, 1 << 60), 100, "no later than the clock allows");
        assert_eq!(tell(2, 3, 90), 0, "it was rescaled");
        assert_eq!((tell(1, 3, 91), tell(0, 3, 92)), (0, 90));
        assert_eq!(tell(0, 1, 80), 80);
    }
}
