//! Times that are written as an interval from a start to an end.

use super::shape;

/// What stands between them.
const BETWEEN: [&str; 11] = [
    " to ",
    " - ",
    " \u{2013} ",
    " \u{2014} ",
    "/",
    " bis ",
    " tot ",
    " au ",
    " à ",
    " until ",
    " through ",
];

/// The start, what stands behind it, and the end: of one shape, or the end has only the time of day.
pub(super) fn split(text: &str) -> Option<(&str, &'static str, &str)> {
    BETWEEN.iter().find_map(|mark| {
        let (start, end) = text.split_once(mark)?;
        let (start, end) = (start.trim(), end.trim());
        (!end.contains(mark) && is_interval(start, end)).then_some((start, *mark, end))
    })
}

fn is_interval(start: &str, end: &str) -> bool {
    let (Some(first), Some(last)) = (shape::shape_of_one(start), shape::shape_of_one(end)) else {
        return false;
    };
    let date = |format: &String| ["%Y", "%y", "%G"].iter().any(|year| format.contains(year));
    let clock = |format: &String| format.contains("%H") || format.contains("%I");
    let from = shape::formats_of_one(start);
    if !from.iter().any(date) {
        return false;
    }
    let until = || shape::formats_of_one(end);
    first == last || (from.iter().any(clock) && until().iter().any(|own| clock(own) && !date(own)))
}
