//! What came of all windows of a recording, in words and as an exit code.

use super::inputs::Inputs;
use super::rows::{Counts, Results};
use alpheus_node::failure::{Category, Failure};
use alpheus_node::local_time::local_time;
use alpheus_node::note;
use alpheus_streams::replay::{counted, no_window};

/// Windows without a result.
#[derive(Debug, thiserror::Error)]
#[error("{} no result, the first at {first}", have(.windows))]
struct NoResultError {
    windows: usize,
    first: String,
}

fn have(windows: &usize) -> String {
    let have = if *windows == 1 { "has" } else { "have" };
    format!("{} {have}", counted(*windows as u64, "window"))
}

/// Says how many windows opened, why others did not, and what is missing. Returns the remedy, if there
/// is one: fewer controllers, or longer windows.
pub(super) fn say(inputs: &Inputs, results: &Results) -> Option<String> {
    let Counts { opened, closed, short } = results.counts();
    let (windows, owners) = short;
    if windows > 0 {
        let lack = if windows == 1 { "lacks" } else { "lack" };
        note!(
            "{} {lack} data of owners who have some, {} in all. Owners who withdraw or change a choice are left out of later windows. For other owners, the logs of their devices may say why; a lower --speed gives slow devices more time",
            counted(windows, "window"),
            counted(owners, "time"),
        );
    }
    let not: u64 = closed.values().sum();
    for (reason, count) in closed {
        note!("windows that did not open {count}: {reason}");
    }
    note!("{} opened, {not} did not", counted(opened, "window"));
    let remedy = match &inputs.hint {
        Some(hint) if not > 0 => hint.clone(),
        _ if not > opened => inputs.longer()?.to_string(),
        _ => return None,
    };
    note!("help: {remedy}");
    Some(remedy)
}

/// Fails if no window opened, or some have no result at all.
///
/// # Errors
/// A [`Failure`] with a way out.
pub(super) fn check(results: &Results, remedy: Option<String>) -> Result<(), Failure> {
    if let Some(first) = results.first_lacking() {
        let error = NoResultError { windows: results.lacking(), first: local_time(first / 1000) };
        let help = "run it again with a lower --speed; the logs in the folder of --state may say what failed";
        return Err(Failure::new(Category::Check, error).with_help(help));
    }
    match results.counts().opened {
        0 => Err(no_window(remedy)),
        _ => Ok(()),
    }
}
