//! What narrower bounds and a limit on events leave out of a recording. Noise margins do not count that.

use alpheus_input::rows::Recording;
use alpheus_policy::planner::suggest::Change;
use alpheus_policy::query::Create;
use alpheus_policy::schema::Schema;
use alpheus_streams::replay::bounds::{Outside, share};
use std::collections::BTreeMap;

/// Readings beyond narrower bounds, which devices refuse.
pub(super) fn beyond_bounds(
    change: &Change,
    schema: &Schema,
    recording: &Recording,
) -> Option<String> {
    let Change::Schema { attribute, after, .. } = change else { return None };
    let at = schema.attributes.iter().position(|own| own.name == *attribute)?;
    let share = Outside::of(at, after, schema, recording)?.share()?;
    Some(format!(
        "{share} of the recording's readings of `{attribute}` are beyond these bounds and would be refused; means then lack them"
    ))
}

/// Events of streams with more than the limit in a window, which leave those streams out of it.
pub(super) fn beyond_events(create: &Create, recording: &Recording) -> Option<String> {
    let limit = create.settings.events?;
    let (mut all, mut beyond) = (0u64, 0u64);
    for stream in &recording.streams {
        let mut windows: BTreeMap<u64, u64> = BTreeMap::new();
        for event in stream.events() {
            *windows.entry(event.time.floor(create.window).0).or_default() += 1;
        }
        all += stream.len() as u64;
        beyond += windows.values().filter(|many| **many > limit).sum::<u64>();
    }
    (beyond > 0).then(|| {
        format!(
            "{} of the recording's readings belong to streams with more than {limit} in a window, so results lack them",
            share(beyond, all)
        )
    })
}
