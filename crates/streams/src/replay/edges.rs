//! Windows that a recording covers in part: the first may begin before its readings, and the last
//! may end after them.

use alpheus_input::rows::RecordedStream;
use alpheus_node::local_time::local_time;
use alpheus_policy::query::Create;
use alpheus_stream_runtime::results::{Row, has_opened};

/// A window that lacks less than one part in so many is taken as whole.
const SMALL: u64 = 20;

/// Says if the first or the last window with a result is covered in part only.
pub(super) fn partly_covered(
    create: &Create,
    rows: &[&Row],
    streams: &[&RecordedStream],
) -> Option<String> {
    if create.cumulating.is_some() {
        return None;
    }
    let Readings { first, last, apart } = Readings::of(streams)?;
    let opened = || rows.iter().filter(|row| has_opened(&row.status) && row.population > 0);
    let start = opened().map(|row| row.window_start).min()?;
    let end = opened().map(|row| row.window_end).max()?;
    // The last of daily readings is a day before the end of its window, which is whole.
    let window = create.window.0 / 1000;
    let small = (window / SMALL).max(apart.saturating_mul(2));
    let begins_in = first.saturating_sub(start) > small;
    let ends_in = end.saturating_sub(last) > small;
    let which = match (begins_in, ends_in) {
        (false, false) => return None,
        _ if end - start == window => "window covers",
        (true, true) => "first and the last window cover",
        (true, false) => "first window covers",
        (false, true) => "last window covers",
    };
    Some(format!(
        "readings are from {} to {}, so the {which} a part of that length only",
        local_time(first),
        local_time(last)
    ))
}

/// When readings were made, in milliseconds as rows have them.
struct Readings {
    first: u64,
    last: u64,
    /// How far those of half of the streams are apart, on average.
    apart: u64,
}

impl Readings {
    fn of(streams: &[&RecordedStream]) -> Option<Readings> {
        let (mut first, mut last, mut apart) = (u64::MAX, 0, Vec::new());
        for stream in streams {
            let Some((from, to)) = stream.range() else { continue };
            let (from, to) = (from.0 / 1000, to.0 / 1000);
            if let Some(gaps) = (stream.len() as u64).checked_sub(1).filter(|gaps| *gaps > 0) {
                apart.push((to - from) / gaps);
            }
            (first, last) = (first.min(from), last.max(to));
        }
        let middle = apart.len() / 2;
        let (_, apart, _) =
            apart.get_mut(..).filter(|all| !all.is_empty())?.select_nth_unstable(middle);
        Some(Readings { first, last, apart: *apart })
    }
}
