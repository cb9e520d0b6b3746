//! Worlds in which suggestions are compared with all changes.

use crate::planner::fixture::{World, create};
use alpheus_policy::catalog::Catalog;
use alpheus_policy::ids::{ConsumerId, StreamId};
use alpheus_policy::plan::MaskStrategy;
use alpheus_policy::planner::suggest::{Advice, Owners, suggest};
use alpheus_policy::planner::{MaskRequest, PlanOptions, plan};
use alpheus_policy::policy::{Policies, Section};
use alpheus_policy::query::Create;
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};
use std::collections::BTreeMap;

/// A splitmix generator.
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    pub(crate) fn at_most(&mut self, n: u64) -> usize {
        usize::try_from(self.below(n + 1)).unwrap()
    }
}

pub(crate) fn options() -> PlanOptions<'static> {
    PlanOptions {
        now: Timestamp(1_700_000_003_000_000),
        from: None,
        nonce: &[7; 32],
        consumer: "service",
        readers: &|_| Some(ConsumerId([4; 32])),
        grace: Span::seconds(5),
        mask_delta_exponent: 9,
        masks: &|_: &MaskRequest<'_>| Some(MaskStrategy::Clique),
    }
}

pub(crate) struct Small {
    pub(crate) schema: Schema,
    pub(crate) policies: Policies,
    pub(crate) catalog: Catalog,
    sections: BTreeMap<StreamId, Section>,
}

impl Small {
    /// A world of so many owners, each with the controller that `host` names, and how many are in
    /// each part of the policies file.
    pub(crate) fn of(
        schema: &str,
        policies: &str,
        owners: u32,
        host: fn(u32) -> u32,
    ) -> (Small, [u32; 2]) {
        let mut world = World::of(schema);
        let schema = world.schema.clone();
        let policies = Policies::from_yaml(policies, &schema).unwrap();
        let (mut sections, mut counts) = (BTreeMap::new(), [0, 0]);
        for n in 1..=owners {
            let name = n.to_string();
            let section = policies.section_of(&name);
            counts[usize::from(section == Section::Mix(0))] += 1;
            world.put(n, n, host(n), policies.of_owner(&name).clone(), &[]);
            let mut id = [0; 16];
            id[..4].copy_from_slice(&n.to_be_bytes());
            sections.insert(StreamId(id), section);
        }
        (Small { schema, policies, catalog: world.catalog, sections }, counts)
    }

    pub(crate) fn advice(&self, asked: &str) -> Advice {
        let owners =
            Owners { catalog: &self.catalog, policies: &self.policies, sections: &self.sections };
        suggest(&create(asked), owners, &options())
    }

    /// Whether the planner answers a query under other policies.
    pub(crate) fn is_answered(&self, policies: &Policies, query: &Create) -> bool {
        let mut catalog = self.catalog.clone();
        for mut stream in self.catalog.streams().cloned() {
            stream.policy = policies.of_section(self.sections[&stream.stream]).clone();
            catalog.put_stream(stream);
        }
        plan(query, &catalog, &options()).is_ok()
    }
}
