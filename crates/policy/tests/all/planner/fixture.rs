//! A small schema, owners with policies, and a planner.

use alpheus_policy::catalog::{Catalog, CatalogStream, RunningQuery};
use alpheus_policy::ids::{ConsumerId, ControllerId, OwnerId, StreamId};
use alpheus_policy::plan::MaskStrategy;
use alpheus_policy::planner::{self, MaskRequest, PlanOptions, PlannedQuery, PlanningError};
use alpheus_policy::policy::Policies;
use alpheus_policy::query::{Create, MaskChoice, Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};

pub(crate) const SCHEMA: &str = "
name: MedicalSensor
version: 1
tick: 10s
capacity: { population: 1000, events: 100 }
metadataAttributes:
  - name: region
    type: string
  - name: ageGroup
    type: [enum, optional]
    symbols: [young, middle-aged, senior]
streamAttributes:
  - name: heart-rate
    type: integer
    min: 0
    max: 300
    aggregations: [var, { histogram: { lo: 0, width: 5, bins: 40 } }]
  - name: hrv
    type: [decimal, optional]
    scale: 1
    min: 0
    max: 500
    aggregations: [mean]
  - name: altitude
    type: decimal
    scale: 1
    min: -500
    max: 9000
    aggregations: [var, { histogram: { lo: 0, width: 5, bins: 60 } }]
  - name: town
    type: [string, optional]
    maxBytes: 20
    aggregations: [{ sketch: { depth: 2, width: 32 } }]
streamPolicyOptions:
  - { name: aggr, option: aggregate, clients: [1, 2, 3, 5, 10, 50, 100], window: [10s, 1hr], alpha: 1/3, colluders: 1, dropout: 0.2 }
  - { name: plain, option: aggregate, clients: [1, 2, 3, 5, 10, 50, 100], window: [10s, 1hr], alpha: 0, dropout: 0 }
  - { name: noisy, option: dp-aggregate, clients: [10], window: 10s, budget: { perWindow: 0.1, total: 10, delta: 1e-9, unit: person-per-window } }
  - { name: coarse, option: aggregate, clients: [1, 10], window: 10s, alpha: 0, dropout: 0, generalise: { attribute: altitude, width: 25 } }
  - { name: wary, option: aggregate, clients: [1, 10, 20], window: 10s }
  - { name: coach, option: stream-aggregate, window: 10s, to: coach.example }
  - { name: priv, option: private }
";

/// `plain` for every attribute, with at least `min` owners, every ten seconds.
pub(crate) fn plain(min: u32) -> String {
    policy(&format!("{{ option: plain, clients: {min}, window: 10s }}"))
}

/// One choice for every attribute.
pub(crate) fn policy(choice: &str) -> String {
    format!("schema: MedicalSensor\nservice: a\ndefault: {{ '*': {choice} }}\n")
}

pub(crate) struct World {
    pub(crate) catalog: Catalog,
    pub(crate) schema: Schema,
    streams: u32,
}

impl World {
    pub(crate) fn of(schema: &str) -> World {
        let schema = Schema::from_yaml(schema).unwrap();
        let mut catalog = Catalog::default();
        catalog.add_schema(schema.clone()).unwrap();
        World { catalog, schema, streams: 0 }
    }

    /// Adds `count` streams with one owner and controller each, under this policies file.
    pub(crate) fn with(mut self, count: u32, policies: &str, metadata: &[(&str, &str)]) -> World {
        let policies = Policies::from_yaml(policies, &self.schema).unwrap();
        for _ in 0..count {
            self.streams += 1;
            let n = self.streams;
            let policy = policies.of_owner(&n.to_string()).clone();
            self.put(n, n, n, policy, metadata);
        }
        self
    }

    pub(crate) fn put(
        &mut self,
        stream: u32,
        owner: u32,
        controller: u32,
        policy: alpheus_policy::policy::ResolvedPolicy,
        metadata: &[(&str, &str)],
    ) {
        fn id<const N: usize>(n: u32) -> [u8; N] {
            let mut id = [0; N];
            id[..4].copy_from_slice(&n.to_be_bytes());
            id
        }
        self.catalog.put_stream(CatalogStream {
            stream: StreamId(id(stream)),
            owner: OwnerId(id(owner)),
            controller: ControllerId(id(controller)),
            schema: self.schema.id(),
            metadata: metadata
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            policy,
        });
    }

    pub(crate) fn plan(&self, text: &str) -> Result<PlannedQuery, PlanningError> {
        self.plan_with(text, &[7; 32])
    }

    pub(crate) fn plan_with(
        &self,
        text: &str,
        nonce: &[u8; 32],
    ) -> Result<PlannedQuery, PlanningError> {
        let create = create(text);
        let planned = planner::plan(&create, &self.catalog, &options(nonce))?;
        for plan in &planned.to_run() {
            let schema = &self.catalog.schema(&create.from.text).unwrap().schema;
            assert_eq!(planner::check_meaning(&create, schema, plan), Ok(()), "{text}");
        }
        Ok(planned)
    }

    /// Expects a refusal, and checks that the suggested query is accepted.
    pub(crate) fn refuse(&self, text: &str) -> (PlanningError, Option<String>) {
        let refusal = self.plan(text).expect_err(text);
        assert!(!refusal.violations.is_empty());
        let nearest = refusal.nearest.as_ref().map(ToString::to_string);
        if let Some(nearest) = &nearest {
            self.plan(nearest)
                .unwrap_or_else(|error| panic!("{text}\nsuggested {nearest}\n{error}"));
        }
        (refusal, nearest)
    }

    pub(crate) fn start(&mut self, text: &str) {
        let PlannedQuery { name, sql, plans, .. } = self.plan(text).unwrap();
        self.catalog.start(RunningQuery { name, sql, plans }).unwrap();
    }
}

pub(crate) fn create(text: &str) -> Create {
    match parse(text) {
        Ok(Statement::Create(create)) => create,
        Ok(other) => panic!("{other}"),
        Err(error) => panic!("{}", error.render(text)),
    }
}

/// A query with these items and this text after `FROM MedicalSensor`.
pub(crate) fn select(items: &str, tail: &str) -> String {
    format!(
        "CREATE STREAM s AS SELECT {items} WINDOW TUMBLING (SIZE 10 SECONDS) FROM MedicalSensor {tail}"
    )
}

pub(crate) fn options(nonce: &[u8; 32]) -> PlanOptions<'_> {
    PlanOptions {
        now: Timestamp(1_700_000_003_000_000),
        from: None,
        nonce,
        consumer: "service",
        readers: &|name| (name != "stranger").then_some(ConsumerId([4; 32])),
        grace: Span::seconds(5),
        mask_delta_exponent: 9,
        masks: &|request: &MaskRequest<'_>| {
            assert!(request.owners.len() > 1);
            Some(match request.wanted {
                Some(MaskChoice::Neighbours) => MaskStrategy::Neighbours { picks: 14, cut_off: 2 },
                _ => MaskStrategy::Clique,
            })
        },
    }
}
