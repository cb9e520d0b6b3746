//! Resolves select items against a schema: which sums they need.

use super::bins::{self, Alignment, AlignmentError, Values};
use super::error::RuleError;
use super::finding::{Finding, Fix};
use super::rows::{NotEncodedError, Rows};
use crate::decimal::{format_scaled, parse_exact};
use crate::layout::{FieldStatistic, Layout, PairMoment};
use crate::plan::Release;
use crate::query::{BinRequest, Call, Decimal, Function, Item, Word, nearest};
use crate::schema::{Aggregation, Attribute, AttributeKind, Edges, Schema};
use crate::select::{
    Bins, ByOutput, CellRef, HistogramOutput, MomentOutput, RegressionOutput, ReleasePlan,
    SelectItem, Statistic,
};
use crate::sketch::{SketchHash, number_item};

/// A query's items, resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResolvedItems {
    pub(super) release: Release,
    pub(super) select: ReleasePlan,
    pub(super) attributes: Vec<u16>,
}

/// The columns of these items alone. `None` if the schema does not encode one of them.
#[must_use]
pub fn columns(items: &[Item], schema: &Schema, layout: &Layout) -> Option<(Release, ReleasePlan)> {
    let (resolved, findings) = resolve(items, schema, layout);
    findings.is_empty().then_some((resolved.release, resolved.select))
}

/// Resolves every item. If one cannot be resolved, it continues, so that all errors are
/// reported at once.
pub(super) fn resolve(
    items: &[Item],
    schema: &Schema,
    layout: &Layout,
) -> (ResolvedItems, Vec<Finding>) {
    let mut rows = Rows::new(layout);
    let (mut columns, mut findings) = (Vec::new(), Vec::new());
    for (position, item) in items.iter().enumerate() {
        let mut resolver = Resolver { schema, rows: &mut rows, item, position };
        match resolver.statistic() {
            Ok(statistic) => columns.push(SelectItem { alias: item.alias.clone(), statistic }),
            Err(finding) => findings.push(*finding),
        }
    }
    let (release, cells, attributes) = rows.finish();
    (ResolvedItems { release, select: ReleasePlan { cells, items: columns }, attributes }, findings)
}

type ItemResult<T> = Result<T, Box<Finding>>;

struct Resolver<'a, 'b> {
    schema: &'a Schema,
    rows: &'b mut Rows<'a>,
    item: &'a Item,
    position: usize,
}

impl<'a> Resolver<'a, '_> {
    fn statistic(&mut self) -> ItemResult<Statistic> {
        match &self.item.call {
            Call::Events => self.events(),
            Call::Of(function, word) => self.of_one(*function, word),
            Call::Histogram(word, request) => self.histogram(word, request),
            Call::Percentile(word, numerator, denominator) => {
                let output =
                    HistogramOutput::Quantile { numerator: *numerator, denominator: *denominator };
                self.read_off(word, output)
            }
            Call::TopK(word, k) => self.read_off(word, HistogramOutput::Top { k: *k }),
            Call::Pair(function, y, x) => self.pair(*function, y, x),
            Call::By(function, of, by, width) => self.by(*function, of, by, *width),
            Call::Frequency(word, item) => self.frequency(word, item),
        }
    }

    fn events(&mut self) -> ItemResult<Statistic> {
        let count = self.rows.single(FieldStatistic::EventCount).map_err(|NotEncodedError| {
            Box::new(Finding::drop(
                self.item.at.0,
                RuleError::NoEventCount { schema: self.schema.name.clone() },
                self.position,
            ))
        })?;
        Ok(Statistic::Count { count, of: None })
    }

    fn of_one(&mut self, function: Function, word: &Word) -> ItemResult<Statistic> {
        if let Function::FromHistogram(output) = function {
            return self.read_off(word, output);
        }
        let (a, attribute) = self.attribute(word)?;
        match function {
            Function::Count => {
                let count = self.single(self.schema.count_of(a), word)?;
                Ok(Statistic::Count { count, of: None })
            }
            Function::Sum => {
                let scale = self.number(attribute, word)?.scale;
                let sum = self.single(FieldStatistic::Sum(a), word)?;
                let count = attribute
                    .optional
                    .then(|| self.single(self.schema.count_of(a), word))
                    .transpose()?;
                Ok(Statistic::Sum { sum, count, scale })
            }
            Function::Moments(output) => self.moments(output, a, attribute, word),
            Function::Side { above, sum } => self.side(above, sum, a, attribute, word),
            Function::Any => {
                Ok(Statistic::Any { cell: self.single(FieldStatistic::Any(a), word)? })
            }
            Function::All => {
                Ok(Statistic::All { cell: self.single(FieldStatistic::All(a), word)? })
            }
            Function::Distinct => self.distinct(a, attribute, word),
            // The parser returns these as other calls.
            Function::Histogram
            | Function::Percentile
            | Function::TopK
            | Function::FromHistogram(_)
            | Function::Regression(_)
            | Function::By(_)
            | Function::Frequency => Err(self.not_offered(word)),
        }
    }

    fn moments(
        &mut self,
        output: MomentOutput,
        a: u16,
        attribute: &Attribute,
        word: &Word,
    ) -> ItemResult<Statistic> {
        let scale = self.number(attribute, word)?.scale;
        let count = self.single(self.schema.count_of(a), word)?;
        let sum = self.single(FieldStatistic::Sum(a), word)?;
        let squares = match output {
            MomentOutput::Mean => None,
            MomentOutput::Variance | MomentOutput::Deviation => {
                Some(self.single(FieldStatistic::SumOfSquares(a), word)?)
            }
        };
        Ok(Statistic::Moments { output, count, sum, squares, scale })
    }

    fn side(
        &mut self,
        above: bool,
        sum: bool,
        a: u16,
        attribute: &Attribute,
        word: &Word,
    ) -> ItemResult<Statistic> {
        let scale = self.number(attribute, word)?.scale;
        let offers =
            |offered: &&(u16, &Aggregation)| matches!(offered.1, Aggregation::Threshold { .. });
        let aggregation =
            self.aggregations(attribute).find(|offered| offers(&offered)).map(|(k, _)| k);
        let aggregation = aggregation.ok_or_else(|| self.not_offered(word))?;
        let cells = |order| FieldStatistic::Threshold { of: a, aggregation, order };
        let side = if above { 0..1 } else { 1..2 };
        let count = self.one(cells(0), side.clone(), word)?;
        if sum {
            let sum = self.one(cells(1), side, word)?;
            return Ok(Statistic::SideSum { sum, count, scale });
        }
        // With no value on this side, the result is 0. With no value at all, it is null, if the
        // schema counts them.
        let of = self.rows.single(self.schema.count_of(a)).ok();
        Ok(Statistic::Count { count, of })
    }

    fn distinct(&mut self, a: u16, attribute: &Attribute, word: &Word) -> ItemResult<Statistic> {
        let (k, _, width) = self.sketch(attribute, word)?;
        let cells = (0..width)
            .map(|cell| self.one(FieldStatistic::Sketch(a, k), cell..cell + 1, word))
            .collect::<ItemResult<_>>()?;
        Ok(Statistic::Distinct { cells })
    }

    fn frequency(&mut self, word: &Word, item: &str) -> ItemResult<Statistic> {
        let (a, attribute) = self.attribute(word)?;
        let (k, depth, width) = self.sketch(attribute, word)?;
        let item = match &attribute.kind {
            AttributeKind::Text { .. } => item.as_bytes().to_vec(),
            kind => {
                let number = item_number(kind, item);
                let rule = || RuleError::NotAnItem { attribute: attribute.name.clone() };
                let number = number.ok_or_else(|| Box::new(Finding::plain(word.at, rule())))?;
                number_item(number).to_vec()
            }
        };
        let mut positions = Vec::new();
        SketchHash::new(&self.schema.id(), a, k).columns(&item, depth, width, |row, column| {
            positions.push(u16::from(row).saturating_mul(width).saturating_add(column));
        });
        let cells = positions
            .into_iter()
            .map(|cell| self.one(FieldStatistic::Sketch(a, k), cell..cell.saturating_add(1), word))
            .collect::<ItemResult<_>>()?;
        Ok(Statistic::Frequency { cells })
    }

    fn histogram(&mut self, word: &Word, request: &BinRequest) -> ItemResult<Statistic> {
        let (a, attribute) = self.attribute(word)?;
        let values = self.number(attribute, word)?;
        let grids = self.grids(attribute);
        // Use the coarsest grid that fits. If none fits, report the finest.
        let mut tries: Vec<_> =
            grids.iter().map(|(k, grid)| (*k, *grid, bins::align(request, grid, values))).collect();
        if request != &BinRequest::Native {
            tries.sort_by_key(|(_, grid, aligned)| (aligned.is_err(), grid.bins()));
        }
        let finest = grids.iter().map(|(_, grid)| *grid).max_by_key(|grid| grid.bins());
        let (Some((k, _, aligned)), Some(finest)) = (tries.into_iter().next(), finest) else {
            return Err(self.not_offered(word));
        };
        let aligned = aligned.map_err(|not| {
            let near = Call::Histogram(word.clone(), bins::nearest(request, finest, values));
            self.misaligned(not, word, attribute, values, near)
        })?;
        let bins = self.bins(FieldStatistic::Histogram(a, k), &aligned, values, word)?;
        Ok(Statistic::Histogram { output: HistogramOutput::Counts, bins })
    }

    /// A statistic of the finest histogram.
    fn read_off(&mut self, word: &Word, output: HistogramOutput) -> ItemResult<Statistic> {
        let (a, attribute) = self.attribute(word)?;
        let values = self.number(attribute, word)?;
        let finest = self.grids(attribute).into_iter().rev().max_by_key(|(_, grid)| grid.bins());
        let (k, grid) = finest.ok_or_else(|| self.not_offered(word))?;
        let bins = self.bins(FieldStatistic::Histogram(a, k), &bins::native(grid), values, word)?;
        Ok(Statistic::Histogram { output, bins })
    }

    fn pair(&mut self, function: Function, y_word: &Word, x_word: &Word) -> ItemResult<Statistic> {
        let Function::Regression(output) = function else { return Err(self.not_offered(y_word)) };
        let ((y, y_attribute), (x, x_attribute)) =
            (self.attribute(y_word)?, self.attribute(x_word)?);
        let y_scale = self.number(y_attribute, y_word)?.scale;
        let x_scale = self.number(x_attribute, x_word)?.scale;
        let mut moment = |moment| self.single(FieldStatistic::Pair { y, x, moment }, y_word);
        let [count, x, y, xy] = [
            moment(PairMoment::Count)?,
            moment(PairMoment::X)?,
            moment(PairMoment::Y)?,
            moment(PairMoment::Xy)?,
        ];
        let line = output != RegressionOutput::Covariance;
        let xx = line.then(|| moment(PairMoment::Xx)).transpose()?;
        let yy =
            (output == RegressionOutput::RSquared).then(|| moment(PairMoment::Yy)).transpose()?;
        Ok(Statistic::Regression { output, count, x, y, xx, xy, yy, x_scale, y_scale })
    }

    fn by(
        &mut self,
        function: Function,
        word: &Word,
        by_word: &Word,
        width: Option<Decimal>,
    ) -> ItemResult<Statistic> {
        let Function::By(output) = function else { return Err(self.not_offered(word)) };
        let ((of, attribute), (by, by_attribute)) =
            (self.attribute(word)?, self.attribute(by_word)?);
        let scale = self.number(attribute, word)?.scale;
        let values = self.number(by_attribute, by_word)?;
        let needed = match output {
            ByOutput::Count => 0,
            ByOutput::Sum | ByOutput::Mean => 1,
            ByOutput::Variance => 2,
        };
        let mut tries: Vec<_> = self
            .aggregations(attribute)
            .filter_map(|(k, offered)| match offered {
                Aggregation::By { attribute, edges, order }
                    if *attribute == by && *order >= needed =>
                {
                    Some((k, edges, bins::buckets(width, edges, values)))
                }
                _ => None,
            })
            .collect();
        tries.sort_by_key(|(.., aligned)| aligned.is_err());
        let (aggregation, grid, aligned) =
            tries.into_iter().next().ok_or_else(|| self.not_offered(word))?;
        let aligned = aligned.map_err(|not| {
            let width = width.and_then(|width| bins::nearest_width(width, grid, values));
            let near = Call::By(function, word.clone(), by_word.clone(), width);
            self.misaligned(not, by_word, by_attribute, values, near)
        })?;
        let field = |order| FieldStatistic::By { of, by, aggregation, order };
        let counts = self.bins(field(0), &aligned, values, word)?;
        let sums = (needed >= 1).then(|| self.unions(field(1), &aligned, word)).transpose()?;
        let squares = (needed >= 2).then(|| self.unions(field(2), &aligned, word)).transpose()?;
        Ok(Statistic::By { output, counts, sums, squares, scale })
    }

    // Lookups.

    fn attribute(&mut self, word: &Word) -> ItemResult<(u16, &'a Attribute)> {
        let position = self.schema.position(&word.text);
        let found = position.and_then(|a| Some((a, self.schema.attributes.get(usize::from(a))?)));
        let Some((a, attribute)) = found else { return Err(self.unknown(word)) };
        self.rows.name(a);
        Ok((a, attribute))
    }

    fn unknown(&self, word: &Word) -> Box<Finding> {
        let names = || self.schema.attributes.iter().map(|attribute| attribute.name.as_str());
        let suggestion = nearest(&word.text, names());
        let metadata = self.schema.metadata.iter().any(|metadata| metadata.name == word.text);
        let known = names().collect::<Vec<_>>().join(", ");
        let fix = suggestion
            .as_ref()
            .map(|name| Fix::Call(self.position, renamed(&self.item.call, word, name)));
        let (word_text, schema) = (word.text.clone(), self.schema.name.clone());
        let rule = match metadata {
            true => RuleError::IsMetadata { word: word_text },
            false => RuleError::UnknownAttribute { word: word_text, schema, suggestion, known },
        };
        Box::new(Finding { at: word.at, rule, fix: fix.or(Some(Fix::Drop(self.position))) })
    }

    fn aggregations<'c>(
        &self,
        attribute: &'c Attribute,
    ) -> impl Iterator<Item = (u16, &'c Aggregation)> + use<'c> {
        (0u16..).zip(&attribute.aggregations)
    }

    fn grids<'c>(&self, attribute: &'c Attribute) -> Vec<(u16, &'c Edges)> {
        self.aggregations(attribute)
            .filter_map(|(k, offered)| match offered {
                Aggregation::Histogram(edges) => Some((k, edges)),
                _ => None,
            })
            .collect()
    }

    fn sketch(&self, attribute: &Attribute, word: &Word) -> ItemResult<(u16, u8, u16)> {
        let sketch = |(k, offered): (u16, &Aggregation)| match offered {
            Aggregation::Sketch { depth, width } => Some((k, *depth, *width)),
            _ => None,
        };
        self.aggregations(attribute).find_map(sketch).ok_or_else(|| self.not_offered(word))
    }

    fn number(&self, attribute: &Attribute, word: &Word) -> ItemResult<Values> {
        Values::of(&attribute.kind).ok_or_else(|| self.not_offered(word))
    }

    fn single(&mut self, statistic: FieldStatistic, word: &Word) -> ItemResult<CellRef> {
        self.rows.single(statistic).map_err(|NotEncodedError| self.not_offered(word))
    }

    /// A union of cells that are not packed with others.
    fn one(
        &mut self,
        statistic: FieldStatistic,
        cells: std::ops::Range<u16>,
        word: &Word,
    ) -> ItemResult<CellRef> {
        match self.rows.union(statistic, cells).as_deref() {
            Ok([cell]) => Ok(*cell),
            _ => Err(self.not_offered(word)),
        }
    }

    fn unions(
        &mut self,
        statistic: FieldStatistic,
        bins: &Alignment,
        word: &Word,
    ) -> ItemResult<Vec<Vec<CellRef>>> {
        let union = |cells: &std::ops::Range<u16>| self.rows.union(statistic, cells.clone());
        bins.cells
            .iter()
            .map(union)
            .collect::<Result<_, _>>()
            .map_err(|NotEncodedError| self.not_offered(word))
    }

    fn bins(
        &mut self,
        statistic: FieldStatistic,
        bins: &Alignment,
        values: Values,
        word: &Word,
    ) -> ItemResult<Bins> {
        let cells = self.unions(statistic, bins, word)?;
        Ok(Bins {
            edges: bins.edges.clone(),
            cells,
            min: values.min,
            max: values.max,
            scale: values.scale,
        })
    }

    fn not_offered(&self, word: &Word) -> Box<Finding> {
        let attribute = self
            .schema
            .position(&word.text)
            .and_then(|a| self.schema.attributes.get(usize::from(a)));
        let offered = attribute
            .map(|attribute| super::offers::offered(self.schema, attribute))
            .unwrap_or_default();
        let asked = Function::named(self.item.name);
        let missing =
            attribute.zip(asked).and_then(|(own, (_, of))| super::offers::missing(own, of));
        let rule = RuleError::NotOffered {
            function: self.item.name,
            attribute: word.text.clone(),
            offered,
            missing,
        };
        Box::new(Finding::drop(word.at, rule, self.position))
    }

    fn misaligned(
        &self,
        not: AlignmentError,
        word: &Word,
        attribute: &Attribute,
        values: Values,
        near: Call,
    ) -> Box<Finding> {
        let name = attribute.name.clone();
        let rule = match not {
            AlignmentError::Edge(edge) => {
                RuleError::NotOnGrid { edge: format_scaled(edge, values.scale), attribute: name }
            }
            AlignmentError::TooFine(edge) => {
                RuleError::TooFine { edge: edge.to_string(), attribute: name, places: values.scale }
            }
            AlignmentError::TooLarge => RuleError::TooLarge { attribute: name },
        };
        Box::new(Finding { at: word.at, rule, fix: Some(Fix::Call(self.position, near)) })
    }
}

fn item_number(kind: &AttributeKind, item: &str) -> Option<i64> {
    match kind {
        AttributeKind::Number { scale, .. } => parse_exact(item, *scale).ok(),
        AttributeKind::Boolean => item.parse::<bool>().ok().map(i64::from),
        AttributeKind::Text { .. } => None,
    }
}

/// The call with one of its names replaced.
fn renamed(call: &Call, wrong: &Word, name: &str) -> Call {
    let mut call = call.clone();
    let words: Vec<&mut Word> = match &mut call {
        Call::Events => vec![],
        Call::Of(_, x)
        | Call::Histogram(x, _)
        | Call::Percentile(x, ..)
        | Call::TopK(x, _)
        | Call::Frequency(x, _) => {
            vec![x]
        }
        Call::Pair(_, y, x) => vec![y, x],
        Call::By(_, x, by, _) => vec![x, by],
    };
    words
        .into_iter()
        .filter(|word| *word == wrong)
        .for_each(|word| name.clone_into(&mut word.text));
    call
}
