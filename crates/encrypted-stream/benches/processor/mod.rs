//! Measures processor time of one thread, so that other processes of the machine do not count.

use criterion::{Bencher, Criterion};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

/// Short runs, since every figure has a floor beside it.
pub(crate) fn config() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Benchmarks `work` in processor time.
pub(crate) fn measure<T>(bencher: &mut Bencher, mut work: impl FnMut() -> T) {
    bencher.iter_custom(|times| {
        let start = now();
        (0..times).for_each(|_| _ = black_box(work()));
        now() - start
    });
}
