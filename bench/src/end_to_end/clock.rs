//! Processor time: of one thread if it does all the work, otherwise of the
//! whole process, so that the threads of the store and the controllers count.

use rustix::time::{ClockId, clock_gettime};

/// Runs `work`; its result and the milliseconds of processor time that all
/// threads of this process used meanwhile.
pub(super) fn measured<T>(spent: &mut f64, work: impl FnOnce() -> T) -> T {
    measured_by(ClockId::ProcessCPUTime, spent, work)
}

/// The same of this thread alone: what the store does meanwhile with what was
/// appended before is not counted.
pub(super) fn measured_here<T>(spent: &mut f64, work: impl FnOnce() -> T) -> T {
    measured_by(ClockId::ThreadCPUTime, spent, work)
}

fn measured_by<T>(clock: ClockId, spent: &mut f64, work: impl FnOnce() -> T) -> T {
    let now = || {
        let time = clock_gettime(clock);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    let start = now();
    let done = work();
    *spent += now() - start;
    done
}
