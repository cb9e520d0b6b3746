//! Processor time of the whole process, so that the store's and the
//! controllers' threads count.

use rustix::time::{ClockId, clock_gettime};

/// Runs `work`; its result and the milliseconds of processor time that all
/// threads of this process used meanwhile.
pub(super) fn measured<T>(spent: &mut f64, work: impl FnOnce() -> T) -> T {
    let start = now();
    let done = work();
    *spent += now() - start;
    done
}

fn now() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
