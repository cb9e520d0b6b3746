//! What margins of noise mean for the results of a replay.

use alpheus_policy::query::Create;
use alpheus_stream_runtime::results::{Row, has_opened};
use serde_json::Value;

/// Columns that are mostly noise in most windows, and how to have less of it.
pub(super) fn mostly_noise(create: &Create, rows: &[&Row]) -> Vec<String> {
    let is_full = |row: &&&Row| has_opened(&row.status) && row.population > 0;
    let full: Vec<&Row> = rows.iter().filter(is_full).copied().collect();
    let of_column = |(column, _): &(String, Value)| {
        let noisy = |row: &&&Row| row.mostly_noise.as_ref().is_some_and(|all| all.contains(column));
        let rows: Vec<&Row> = full.iter().filter(noisy).copied().collect();
        (rows.len() * 2 > full.len()).then(|| in_words(create, (column, full.len()), &rows))
    };
    full.first().map_or_else(Vec::new, |row| row.outputs.iter().filter_map(of_column).collect())
}

fn in_words(create: &Create, (column, windows): (&str, usize), noisy: &[&Row]) -> String {
    let margin = |row: &&Row| row.noise.as_ref()?.get(column)?.get("margin_95")?.as_f64();
    let most = noisy.iter().filter_map(margin).reduce(f64::max);
    let why = most.map_or_else(
        || "the noise hides all values".to_owned(),
        |most| format!("the margin of up to ±{} is larger than the value", short(most)),
    );
    let help = match create.settings.accuracy.is_asked() {
        true => "ask over more owners",
        false => "ask with `WITH (error = …)` or over more owners",
    };
    let (noisy, verb) = (noisy.len(), if noisy.len() == 1 { "is" } else { "are" });
    format!("{column}: {noisy} of {windows} windows {verb} mostly noise: {why}; {help}")
}

/// A margin with about three digits.
fn short(margin: f64) -> String {
    match margin {
        100.0.. => format!("{margin:.0}"),
        10.0..100.0 => format!("{margin:.1}"),
        1.0..10.0 => format!("{margin:.2}"),
        _ => format!("{margin:.2e}"),
    }
}

/// What margins do not cover.
pub(super) fn not_covered(refused: u64) -> Option<String> {
    let rows = match refused {
        0 => return None,
        1 => "the 1 row that was".to_owned(),
        many => format!("the {many} rows that were"),
    };
    Some(format!("the margins of noise do not cover {rows} refused, which results lack"))
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn margins_have_few_digits() {
        let texts = [1234.5, 56.78, 2.345, 0.0345].map(short);
        assert_eq!(texts, ["1234", "56.8", "2.35", "3.45e-2"]);
    }
}
