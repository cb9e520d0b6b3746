//! Rows and cells: a release contains exactly what the query needs, once.

use crate::planner::fixture::{World, plain};
use alpheus_policy::columns::columns;
use alpheus_policy::layout::{Layout, Packing};
use alpheus_policy::plan::Plan;
use alpheus_policy::select::{ByOutput, HistogramOutput, Statistic, SumLocation};

const SCHEMA: &str = "
name: MedicalSensor
version: 1
tick: 10s
capacity: { population: 1000, events: 100 }
streamAttributes:
  - name: x
    type: [decimal, optional]
    unit: m
    scale: 2
    min: 0
    max: 1000
    aggregations:
      - var
      - histogram: { lo: 0, width: 10, bins: 12 }
      - regression: { x: y, r2: true }
      - by: { attribute: y, lo: 0, width: 5, bins: 7, statistics: [var] }
      - threshold: 500
  - name: y
    type: integer
    min: -50
    max: 50
    aggregations: [mean]
  - name: ok
    type: boolean
    aggregations: [any, all]
  - name: item
    type: string
    aggregations: [{ sketch: { depth: 3, width: 16 } }]
streamPolicyOptions:
  - { name: plain, option: aggregate, clients: 1, window: 10s, alpha: 0, dropout: 0 }
";

fn world() -> World {
    World::of(SCHEMA).with(2, &plain(1), &[])
}

fn plan(items: &str) -> Plan {
    let text = format!(
        "CREATE STREAM s AS SELECT {items} WINDOW TUMBLING (SIZE 10 SECONDS) FROM MedicalSensor"
    );
    world()
        .plan(&text)
        .unwrap_or_else(|refusal| panic!("{}", refusal.render(&text)))
        .plans
        .remove(0)
}

#[test]
fn items_share_sums_and_nothing_else_is_released() {
    assert_eq!(
        plan("SUM(x)").release.outputs(),
        3,
        "sum, count of an optional attribute, check word"
    );
    assert_eq!(plan("SUM(y)").release.outputs(), 2);
    assert_eq!(plan("SUM(x), COUNT(x), AVG(x)").release.outputs(), 3);
    assert_eq!(plan("SUM(x), COUNT(x), AVG(x), VAR(x), STDDEV(x)").release.outputs(), 4);
    assert_eq!(plan("COVAR_POP(x, y)").release.outputs(), 5);
    assert_eq!(
        plan("COVAR_POP(x, y), REGR_SLOPE(x, y), REGR_INTERCEPT(x, y)").release.outputs(),
        6
    );
    assert_eq!(plan("REGR_R2(x, y)").release.outputs(), 7);
    assert_eq!(plan("ANY(ok), ALL(ok)").release.outputs(), 3);
    assert_eq!(plan("APPROX_DISTINCT(item)").release.outputs(), 17, "one row of the sketch");
    assert_eq!(plan("FREQUENCY(item, 'apple')").release.outputs(), 4, "one cell a row");
    let one = plan("MEDIAN(x), MAX(x), TOPK(x, 2), HISTOGRAM(x)").release.outputs();
    assert_eq!(one, plan("MODE(x)").release.outputs());
    assert_eq!(plan("SUM_ABOVE(x), COUNT_ABOVE(x)").release.outputs(), 4, "and the count of all");
}

#[test]
fn an_item_locks_every_attribute_that_it_derives_from() {
    for (item, attributes) in [
        ("SUM(x)", &[0][..]),
        ("COUNT(y)", &[1]),
        ("REGR_SLOPE(x, y)", &[0, 1]),
        ("SUM_BY(x, y)", &[0, 1]),
        ("SUM(y), FREQUENCY(item, 'a')", &[1, 3]),
    ] {
        assert_eq!(plan(item).attributes, attributes, "{item}");
    }
}

/// A sum over a window in which every cell of a field has its own small number, which fits
/// any digit.
fn sums(layout: &Layout) -> Vec<u64> {
    let mut words = vec![0u64; usize::from(layout.words)];
    for field in &layout.fields {
        for cell in 0..field.cells {
            let place = field.place(cell).unwrap();
            let value = u64::from(cell + 1);
            let shift = match field.packing {
                Packing::Digits { bits, .. } => u32::from(bits) * u32::from(place.digit),
                Packing::Whole | Packing::Limbs => 0,
            };
            words[usize::from(place.word)] += value << shift;
        }
    }
    words
}

fn opened(plan: &Plan, words: &[u64]) -> Vec<u64> {
    let mut rows = vec![0; plan.release.outputs()];
    plan.release.add(words, &mut rows);
    let read = |place: &SumLocation| match *place {
        SumLocation::Whole { row } | SumLocation::Limbs { low: row, .. } => rows[usize::from(row)],
        SumLocation::Digit { row, bits, digit } => {
            rows[usize::from(row)] >> (u32::from(bits) * u32::from(digit)) & ((1 << bits) - 1)
        }
    };
    plan.select.cells.iter().map(read).collect()
}

fn total(cells: &[u16], opened: &[u64]) -> u64 {
    cells.iter().map(|cell| opened[usize::from(*cell)]).sum()
}

#[test]
fn bins_are_the_requested_unions() {
    let world = world();
    let known = world.catalog.schema("MedicalSensor").unwrap();
    let words = sums(&known.layout);
    let plan =
        plan("HISTOGRAM(x, 0, 30, 4), HISTOGRAM(x, EDGES(0, 20, 110)) AS e, PERCENTILE(x, 0.9)");
    let opened = opened(&plan, &words);
    let bins: Vec<Vec<u64>> = plan
        .select
        .items
        .iter()
        .map(|item| match &item.statistic {
            Statistic::Histogram { bins, .. } => {
                bins.cells.iter().map(|cells| total(cells, &opened)).collect()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(bins[0], [1 + 2 + 3, 4 + 5 + 6, 7 + 8 + 9, 10 + 11 + 12]);
    assert_eq!(bins[1], [1 + 2, (3..=11).sum(), 12]);
    assert_eq!(bins[2], (1..=12).collect::<Vec<_>>());
    let Statistic::Histogram { output, bins } = &plan.select.items[2].statistic else { panic!() };
    assert_eq!(*output, HistogramOutput::Quantile { numerator: 9, denominator: 10 });
    assert_eq!((bins.scale, bins.edges[1], bins.max), (2, 1000, 100_000));
}

#[test]
fn buckets_merge_from_the_first_edge() {
    let world = world();
    let words = sums(&world.catalog.schema("MedicalSensor").unwrap().layout);
    let plan = plan("VAR_BY(x, y, 15)");
    let Statistic::By { output, counts, sums, squares, scale } = &plan.select.items[0].statistic
    else {
        panic!()
    };
    let opened = opened(&plan, &words);
    let merged =
        |cells: &[Vec<u16>]| cells.iter().map(|cells| total(cells, &opened)).collect::<Vec<_>>();
    assert_eq!(
        (*output, *scale, counts.edges.as_slice()),
        (ByOutput::Variance, 2, &[0, 15, 30][..])
    );
    for cells in [&counts.cells, sums.as_ref().unwrap(), squares.as_ref().unwrap()] {
        assert_eq!(merged(cells), [1 + 2 + 3, 4 + 5 + 6, 7]);
    }
}

#[test]
fn default_aliases_are_function_and_attribute() {
    let plan = plan("SUM(x), COUNT_BY(x, y), COUNT(*), AVG(y) AS why");
    let aliases: Vec<_> = plan.select.items.iter().map(|item| item.alias.as_str()).collect();
    assert_eq!(aliases, ["sum_x", "count_by_x_y", "count", "why"]);
}

/// Owners read these words, so they come from the cells that leave the streams, whatever a
/// consumer calls its columns.
#[test]
fn columns_say_what_they_are() {
    let world = world();
    let layout = Layout::of(&world.schema).unwrap();
    let what = |item: &str| {
        let plan = plan(&format!("{item} AS harmless"));
        let mut columns = columns(&plan, &world.schema, &layout);
        let column = columns.remove(0);
        assert_eq!((column.name.as_str(), columns.len()), ("harmless", 0));
        (column.what, column.unit, column.edges.len())
    };
    for (item, words, unit, edges) in [
        ("SUM(x)", "total x", "m", 0),
        ("COUNT(x)", "number of readings of x", "", 0),
        ("COUNT(y)", "number of readings", "", 0),
        ("AVG(x)", "average x", "m", 0),
        ("VAR(x)", "variance of x", "m²", 0),
        ("STDDEV(x)", "standard deviation of x", "m", 0),
        ("HISTOGRAM(x)", "distribution of x", "m", 12),
        ("MEDIAN(x)", "median x", "m", 0),
        ("PERCENTILE(x, 0.95)", "value that 95 % of x stay below", "m", 0),
        ("MAX(x)", "highest x", "m", 0),
        ("TOPK(x, 3)", "3 most common ranges of x", "m", 0),
        ("REGR_SLOPE(x, y)", "slope of x over y", "", 0),
        ("REGR_R2(x, y)", "share of x that y explains", "", 0),
        ("AVG_BY(x, y)", "average x by y", "m", 0),
        ("COUNT_BY(x, y)", "number of readings of x by y", "", 0),
        ("SUM_ABOVE(x)", "total x on one side of its threshold", "m", 0),
        ("COUNT_BELOW(x)", "number of readings of x on one side of its threshold", "", 0),
        ("ANY(ok)", "whether any ok is true", "", 0),
        ("ALL(ok)", "whether all ok are true", "", 0),
        ("APPROX_DISTINCT(item)", "number of different values of item", "", 0),
        ("FREQUENCY(item, 'a')", "how often one value of item occurs", "", 0),
    ] {
        assert_eq!(what(item), (words.to_owned(), unit.to_owned(), edges), "{item}");
    }
}
