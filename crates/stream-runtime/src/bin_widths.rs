//! How far columns that are read from bins may be off: they are edges of bins, and look exact.

use alpheus_policy::decimal::format_scaled;
use alpheus_policy::plan::Plan;
use alpheus_policy::select::{Bins, HistogramOutput, SelectItem, Statistic};

/// For each such column, which edge it is, and how far the exact value may be from it.
#[must_use]
pub fn in_words(plan: &Plan) -> Vec<String> {
    let noisy = plan.privacy.is_some();
    plan.select.items.iter().filter_map(|item| of_item(item, noisy)).collect()
}

fn of_item(SelectItem { alias, statistic, .. }: &SelectItem, noisy: bool) -> Option<String> {
    let Statistic::Histogram { output, bins } = statistic else { return None };
    let widths = Widths::of(bins);
    if widths.off == 0 && !widths.is_open_below && !widths.is_open_above {
        return None;
    }
    let (bin, off) = (widths.bin(bins.scale), format_scaled(widths.off, bins.scale));
    let what = match output {
        HistogramOutput::Counts => return None,
        // Noise in the counts may choose a bin far from the right one.
        _ if noisy => format!("an edge of a {bin}, chosen by counts with noise"),
        HistogramOutput::Quantile { .. } => {
            format!("the lower edge of a {bin}; the exact one is up to {off} above")
        }
        HistogramOutput::Mode => {
            format!("the lower edge of a {bin}; its readings are up to {off} above")
        }
        HistogramOutput::Top { .. } => {
            format!("the lower edges, each of a {bin}; their readings are up to {off} above")
        }
        HistogramOutput::Min => {
            format!("the least that a {bin} can hold; the exact one is up to {off} above")
        }
        HistogramOutput::Max => {
            format!("the most that a {bin} can hold; the exact one is up to {off} below")
        }
        HistogramOutput::Range => {
            let twice = format_scaled(2 * widths.off, bins.scale);
            format!(
                "from the least to the most that a {bin} can hold; the exact one is up to {twice} less"
            )
        }
    };
    Some(format!("{alias}: {what}{}", widths.ends(bins)))
}

/// How wide bins are, in units of their scale.
struct Widths {
    /// The widest that has both edges.
    most: i128,
    are_equal: bool,
    /// The farthest from its lower edge that a value can be.
    off: i128,
    /// Whether the first or the last bin holds more than the widest.
    is_open_below: bool,
    is_open_above: bool,
}

impl Widths {
    fn of(bins: &Bins) -> Widths {
        let edges = || bins.edges.iter().map(|edge| i128::from(*edge));
        let (min, max) = (i128::from(bins.min), i128::from(bins.max));
        let inner = || edges().zip(edges().skip(1)).map(|(edge, next)| next - edge);
        let (first, last) = (edges().next().unwrap_or(min), edges().next_back().unwrap_or(max));
        let most = inner().max().unwrap_or(max - first + 1);
        Widths {
            most,
            are_equal: inner().all(|width| width == most),
            // Bins often end where the bounds do, and the last then holds the greatest value as well.
            off: if max - last == most { most } else { most - 1 },
            is_open_below: min < first,
            is_open_above: max - last > most,
        }
    }

    fn bin(&self, scale: u8) -> String {
        let most = format_scaled(self.most, scale);
        if self.are_equal { format!("bin {most} wide") } else { format!("bin up to {most} wide") }
    }

    /// Which readings are farther off.
    fn ends(&self, bins: &Bins) -> String {
        let edge =
            |edge: Option<&i64>| format_scaled(edge.copied().unwrap_or_default(), bins.scale);
        let below = format!("below {} are all in the first", edge(bins.edges.first()));
        let above = format!("from {} on are all in the last", edge(bins.edges.last()));
        match (self.is_open_below, self.is_open_above) {
            (false, false) => String::new(),
            (true, false) => format!(". Readings {below}"),
            (false, true) => format!(". Readings {above}"),
            (true, true) => format!(". Readings {below}, and {above}"),
        }
    }
}
