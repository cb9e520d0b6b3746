//! The statistics that a schema supports, as functions of the query language.

use crate::decimal::format_scaled;
use crate::layout::FieldStatistic;
use crate::query::Function::{self, FromHistogram, Histogram, Moments, Percentile, Sum, TopK};
use crate::schema::{Aggregation, Attribute, AttributeKind, Edges, Schema};
use crate::select::MomentOutput;

/// The functions that an attribute's encodings support, in query syntax.
pub(crate) fn offered(schema: &Schema, attribute: &Attribute) -> String {
    let name = crate::query::Word::new(&attribute.name).to_string();
    let mut functions: Vec<String> = Vec::new();
    for aggregation in &attribute.aggregations {
        for function in of(schema, attribute, aggregation) {
            let function = function.replace('$', &name);
            if !functions.contains(&function) {
                functions.push(function);
            }
        }
    }
    functions.join(", ")
}

/// The aggregation that a number needs for a function that it does not support, if its name says all.
pub(crate) fn missing(attribute: &Attribute, function: Function) -> Option<&'static str> {
    let name = match function {
        Sum => "sum",
        Moments(MomentOutput::Mean) => "mean",
        Moments(_) => "var",
        Histogram | Percentile | TopK | FromHistogram(_) => "histogram",
        _ => return None,
    };
    matches!(attribute.kind, AttributeKind::Number { .. }).then_some(name)
}

fn of(schema: &Schema, attribute: &Attribute, aggregation: &Aggregation) -> Vec<String> {
    let own_name = |position: &u16| schema.name_of(*position);
    let all = |functions: &[&str]| functions.iter().map(ToString::to_string).collect();
    match aggregation {
        Aggregation::Count => all(&["COUNT($)"]),
        Aggregation::Sum if attribute.optional => all(&["SUM($)", "COUNT($)"]),
        Aggregation::Sum => all(&["SUM($)"]),
        Aggregation::Mean => all(&["SUM($)", "COUNT($)", "AVG($)"]),
        Aggregation::Variance => all(&["SUM($)", "COUNT($)", "AVG($)", "VAR($)", "STDDEV($)"]),
        Aggregation::Histogram(edges) => {
            let on = [
                "MEDIAN($)",
                "PERCENTILE($, p)",
                "MIN($)",
                "MAX($)",
                "MODE($)",
                "RANGE($)",
                "TOPK($, k)",
            ];
            let mut functions = vec![format!("HISTOGRAM($, {})", grid(edges, &attribute.kind))];
            functions.extend(on.map(str::to_owned));
            functions
        }
        Aggregation::Regression { x, r_squared } => {
            let names: &[&str] = &["REGR_SLOPE", "REGR_INTERCEPT", "COVAR_POP", "REGR_R2"];
            let names = if *r_squared { names } else { &names[..3] };
            names.iter().map(|name| format!("{name}($, {})", own_name(x))).collect()
        }
        Aggregation::By { attribute, order, .. } => ["COUNT_BY", "SUM_BY", "AVG_BY", "VAR_BY"]
            .iter()
            .zip([0, 1, 1, 2])
            .filter(|(_, needed)| needed <= order)
            .map(|(name, _)| format!("{name}($, {})", own_name(attribute)))
            .collect(),
        Aggregation::Threshold { .. } => {
            all(&["COUNT_ABOVE($)", "COUNT_BELOW($)", "SUM_ABOVE($)", "SUM_BELOW($)"])
        }
        Aggregation::Any => all(&["ANY($)"]),
        Aggregation::All => all(&["ALL($)"]),
        Aggregation::Sketch { .. } => all(&["APPROX_DISTINCT($)", "FREQUENCY($, 'item')"]),
    }
}

/// A grid as arguments of `HISTOGRAM`.
pub(super) fn grid(edges: &Edges, kind: &AttributeKind) -> String {
    let scale = match kind {
        AttributeKind::Number { scale, .. } => *scale,
        AttributeKind::Boolean | AttributeKind::Text { .. } => 0,
    };
    match edges {
        Edges::Uniform { lo, width, bins } => {
            format!("{}, {}, {bins}", format_scaled(*lo, scale), format_scaled(*width, scale))
        }
        Edges::Explicit(edges) => {
            let edges: Vec<_> = edges.iter().map(|edge| format_scaled(*edge, scale)).collect();
            format!("EDGES({})", edges.join(", "))
        }
    }
}

/// A description of what the cells of a field sum.
pub(crate) fn in_words(schema: &Schema, statistic: FieldStatistic) -> String {
    let name = |a: u16| schema.name_of(a);
    match statistic {
        FieldStatistic::EventCount => "number of events".to_owned(),
        FieldStatistic::Count(a) => format!("number of values of {}", name(a)),
        FieldStatistic::Sum(a) => format!("sum of {}", name(a)),
        FieldStatistic::SumOfSquares(a) => format!("sum of squares of {}", name(a)),
        FieldStatistic::Histogram(a, _) => format!("number of values of {}", name(a)),
        FieldStatistic::Pair { y, x, moment } => {
            use crate::layout::PairMoment::{Count, X, Xx, Xy, Y, Yy};
            let (x, y) = (name(x), name(y));
            let what = match moment {
                Count => "number of events".to_owned(),
                X => format!("sum of {x}"),
                Y => format!("sum of {y}"),
                Xx => format!("sum of squares of {x}"),
                Xy => format!("sum of {x} times {y}"),
                Yy => format!("sum of squares of {y}"),
            };
            format!("{what} over events with both {x} and {y}")
        }
        FieldStatistic::By { of, by, order, .. } => {
            let what = ["number of values", "sum", "sum of squares"];
            let what = what.get(usize::from(order)).unwrap_or(&"sum");
            format!("{what} of {} by {}", name(of), name(by))
        }
        FieldStatistic::Threshold { of, order: 0, .. } => {
            format!("number of values of {} by threshold", name(of))
        }
        FieldStatistic::Threshold { of, .. } => format!("sum of {} by threshold", name(of)),
        FieldStatistic::Any(a) => format!("whether any {} is true", name(a)),
        FieldStatistic::All(a) => format!("whether all {} are true", name(a)),
        FieldStatistic::Sketch(a, _) => format!("cells of a sketch of {}", name(a)),
    }
}
