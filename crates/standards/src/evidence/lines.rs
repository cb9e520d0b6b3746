//! The lines of a statement. Amounts of privacy loss are texts, since they have more digits than
//! some readers of JSON keep.

use alpheus_policy::budget::{Cost, RowNoise};
use alpheus_policy::columns::Column;
use alpheus_policy::ids::ControllerId;
use alpheus_policy::layout::FieldStatistic;
use alpheus_policy::plan::Fraction;
use alpheus_policy::policy::ResolvedOption;
use alpheus_policy::privacy::Privacy;
use alpheus_policy::schema::{Budget, Generalisation, Schema};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::hash::{Hash, Hasher};

/// One line.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Line<'a> {
    Head(&'a Head),
    Schema(SchemaLine<'a>),
    Policy(PolicyLine<'a>),
    Query(Value),
    Plan(Box<PlanLine<'a>>),
    Withdrawals(Withdrawals),
    Revocations(Revocations),
    Release(Release),
    Spent(AccountCharge),
}

impl Line<'_> {
    /// As text, with its end.
    pub(super) fn text(&self) -> String {
        // Plain data with texts as keys, so writing cannot fail.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Who states what, to whom, and about when.
#[derive(Debug, Serialize)]
pub struct Head {
    /// Of the lines.
    pub format: u32,
    /// Windows that start from here on, Unix milliseconds.
    pub from: u64,
    /// And before this.
    pub until: u64,
    /// By the service's clock, Unix milliseconds.
    pub made: u64,
    /// Who asked.
    pub consumer: String,
    /// The service's program and its version.
    pub software: &'static str,
    /// The key of the deployment's authority.
    pub authority: String,
    /// The service's key.
    pub service: String,
    /// Controllers whose certificates the service knows.
    pub controllers: usize,
    /// Streams that may take part in the next query.
    pub streams: usize,
    /// Their owners.
    pub owners: usize,
}

/// The schema, with the hash that plans are bound to.
#[derive(Serialize)]
pub(super) struct SchemaLine<'a> {
    pub(super) id: String,
    pub(super) schema: &'a Schema,
}

/// How many streams allow this of an attribute, now.
#[derive(Serialize)]
pub(super) struct PolicyLine<'a> {
    pub(super) attribute: &'a str,
    #[serde(flatten)]
    pub(super) allowed: AllowedUse<'a>,
    pub(super) streams: usize,
    pub(super) owners: usize,
}

/// What an option allows. Options that are the same in all of this are one line. It lacks over how
/// many sets of a day an owner may be summed: that is the owner's own, and only makes it stricter.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct AllowedUse<'a> {
    pub(super) option: &'a str,
    pub(super) allows: &'static str,
    pub(super) window_us: u64,
    pub(super) min_population: u32,
    /// The finest buckets.
    pub(super) generalise: &'a [Generalisation],
    pub(super) budget: Option<Budget>,
    /// Who may receive results; anyone if it is empty.
    pub(super) to: &'a [String],
    pub(super) alpha: Fraction,
    pub(super) colluders: u32,
    pub(super) dropout: Fraction,
    pub(super) missing_ticks: u32,
    pub(super) split_populations: bool,
    #[serde(serialize_with = "texts")]
    pub(super) trusted: &'a [ControllerId],
    pub(super) verified: bool,
}

impl<'a> From<&'a ResolvedOption> for AllowedUse<'a> {
    fn from(option: &'a ResolvedOption) -> AllowedUse<'a> {
        AllowedUse {
            option: &option.name,
            allows: option.kind.name(),
            window_us: option.window.0,
            min_population: option.min_population,
            generalise: &option.generalise,
            budget: option.budget,
            to: &option.to,
            alpha: option.alpha,
            colluders: option.colluders,
            dropout: option.dropout,
            missing_ticks: option.missing_ticks,
            split_populations: option.split_populations,
            trusted: &option.trusted,
            verified: option.verified,
        }
    }
}

/// What owners choose. The rest follows from the schema, so it rarely differs.
impl Hash for AllowedUse<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.option, self.allows, self.window_us, self.min_population).hash(state);
    }
}

fn texts<S: Serializer>(ids: &&[ControllerId], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ids.iter().map(ToString::to_string))
}

/// A plan of one of the consumer's queries.
#[derive(Serialize)]
pub(super) struct PlanLine<'a> {
    pub(super) id: String,
    pub(super) query: &'a str,
    pub(super) consumer: &'a str,
    pub(super) running: bool,
    /// Members are fixed for each epoch, so the plan states none.
    pub(super) epochs: bool,
    pub(super) sealed: bool,
    pub(super) integrity: &'static str,
    pub(super) group: &'a [(String, String)],
    pub(super) window_us: u64,
    pub(super) from_us: u64,
    pub(super) population: [u32; 2],
    pub(super) alpha: Fraction,
    pub(super) colluders: u32,
    pub(super) dropout: Fraction,
    /// Controllers that may collude with the service without learning more than results.
    pub(super) tolerated: u32,
    pub(super) controllers: usize,
    pub(super) streams: usize,
    pub(super) owners: usize,
    pub(super) columns: Vec<Column>,
    pub(super) noise: Option<NoiseLine<'a>>,
    /// The digest of its announcement; none by epochs.
    pub(super) announcement: Option<String>,
}

/// What the noise of a plan is, what it follows from, and what it costs.
#[derive(Serialize)]
pub(super) struct NoiseLine<'a> {
    pub(super) asked: &'a Privacy,
    pub(super) groups: Vec<GroupLine>,
    /// By attribute, for a window; of running totals, for all of them together.
    pub(super) charges: Vec<ChargeLine>,
    /// −log2 of what samplers omit.
    pub(super) slack_bits: u32,
}

/// Rows that one event moves together, how far, and their noise.
#[derive(Serialize)]
pub(super) struct GroupLine {
    pub(super) rows: Vec<u16>,
    pub(super) statistic: FieldStatistic,
    /// Those that are charged for it.
    pub(super) attributes: Vec<u16>,
    pub(super) l1: String,
    pub(super) l2_squared: String,
    pub(super) noise: Option<RowNoise>,
}

/// What an attribute is charged.
#[derive(Clone, Serialize)]
pub(super) struct ChargeLine {
    pub(super) attribute: u16,
    #[serde(flatten)]
    pub(super) cost: CostLine,
}

/// ε in units of 10^−18, or ρ in units of 10^−24.
#[derive(Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CostLine {
    Epsilon(String),
    Rho(String),
}

impl From<Cost> for CostLine {
    fn from(cost: Cost) -> CostLine {
        match cost {
            Cost::Pure(epsilon) => CostLine::Epsilon(epsilon.0.to_string()),
            Cost::Concentrated(rho) => CostLine::Rho(rho.0.to_string()),
        }
    }
}

/// Streams whose owners have withdrawn them for good, by when the service was informed.
#[derive(Default, Serialize)]
pub(super) struct Withdrawals {
    pub(super) before: u64,
    pub(super) within: u64,
    pub(super) after: u64,
    pub(super) unknown: u64,
}

/// Certificates that the authority has revoked, as far as the service knows.
#[derive(Serialize)]
pub(super) struct Revocations {
    pub(super) version: u64,
    pub(super) certificates: usize,
}

/// A row as it was published, with what it costs.
#[derive(Serialize)]
pub(super) struct Release {
    pub(super) query: String,
    /// None of rows from before plans were noted.
    pub(super) plan: Option<String>,
    pub(super) row: Map<String, Value>,
    /// None if the plan is not known.
    pub(super) cost: Option<Vec<ChargeLine>>,
    /// The digest of its receipt.
    pub(super) receipt: Option<String>,
}

/// The most that the account of one owner was charged for an attribute by these releases, under a
/// budget that is in force.
#[derive(Serialize)]
pub(super) struct AccountCharge {
    pub(super) attribute: u16,
    pub(super) budget: Budget,
    pub(super) releases: u64,
    pub(super) epsilon: String,
    pub(super) rho_of_pure: String,
    pub(super) rho: String,
    pub(super) slack: String,
    /// The least ε of all of it at the budget's δ; none if there is no such ε.
    pub(super) epsilon_at_delta: Option<String>,
}
