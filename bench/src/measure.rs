//! Timing: ours and its floor alternating, in processor time of this thread.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Duration and number of samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Minimum processor time of one sample.
    pub(crate) sample: Duration,
    /// Samples; their median is reported.
    pub(crate) repeats: usize,
}

/// Nanoseconds of processor time per run, medians over the samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    /// The floor.
    pub(crate) floor: f64,
    /// Ours.
    pub(crate) ours: f64,
    /// Median of the ratios of neighbouring samples, so that a drift of the
    /// machine's speed affects both.
    pub(crate) ratio: f64,
}

impl Comparison {
    /// Of samples of the floor and ours.
    #[must_use]
    pub(crate) fn of(samples: &[(f64, f64)]) -> Comparison {
        Comparison {
            floor: median(samples.iter().map(|(floor, _)| *floor)),
            ours: median(samples.iter().map(|(_, ours)| *ours)),
            ratio: median(samples.iter().map(|(floor, ours)| ours / floor)),
        }
    }

    /// Of one of `parts` equal parts of what was measured.
    #[must_use]
    pub(crate) fn per(self, parts: usize) -> Comparison {
        let parts = parts as f64;
        Comparison { floor: self.floor / parts, ours: self.ours / parts, ratio: self.ratio }
    }
}

/// Processor time that this thread has used.
#[must_use]
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

impl Effort {
    /// Median processor time of one run of `work`, in nanoseconds.
    pub(crate) fn time(self, mut work: impl FnMut()) -> f64 {
        let runs = self.calibrate(&mut work);
        median((0..self.repeats).map(|_| sample(runs, &mut work)))
    }

    /// Measures `floor` and `ours` alternating.
    pub(crate) fn compare(self, mut floor: impl FnMut(), mut ours: impl FnMut()) -> Comparison {
        let (floor_runs, our_runs) = (self.calibrate(&mut floor), self.calibrate(&mut ours));
        let turn = |_| (sample(floor_runs, &mut floor), sample(our_runs, &mut ours));
        Comparison::of(&(0..self.repeats).map(turn).collect::<Vec<_>>())
    }

    /// The same for long runs, one to a sample, where each run of `ours` needs
    /// something `fresh` whose making is not measured.
    pub(crate) fn compare_after<T>(
        self,
        mut floor: impl FnMut(),
        mut fresh: impl FnMut() -> T,
        mut ours: impl FnMut(&mut T),
    ) -> Comparison {
        let turn = |_| {
            let mut state = fresh();
            (sample(1, &mut floor), sample(1, &mut || ours(&mut state)))
        };
        Comparison::of(&(0..self.repeats).map(turn).collect::<Vec<_>>())
    }

    /// Runs that fill a sample. These runs also warm caches.
    fn calibrate(self, work: &mut impl FnMut()) -> u32 {
        let mut runs = 1_u32;
        loop {
            let spent = sample(runs, work) * f64::from(runs);
            if spent >= self.sample.as_secs_f64() * 1e9 || runs > u32::MAX / 2 {
                return runs;
            }
            runs *= 2;
        }
    }
}

/// Nanoseconds a run, over `runs` of them.
fn sample(runs: u32, work: &mut impl FnMut()) -> f64 {
    let start = processor_time();
    (0..runs).for_each(|_| work());
    (processor_time() - start).as_secs_f64() * 1e9 / f64::from(runs)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn twice_the_work_takes_longer() {
        let effort = Effort { sample: Duration::from_millis(2), repeats: 5 };
        let work = |n: u64| (0..n).fold(0, |sum, i| black_box(sum + i));
        let compared = effort.compare(|| _ = black_box(work(1_000)), || _ = black_box(work(4_000)));
        assert!(compared.ratio > 1.5, "{compared:?}");
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert!(median(std::iter::empty()).is_nan());
    }
}
