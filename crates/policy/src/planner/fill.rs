//! Fills in the plan of a group once its members are known.

use super::attempt::item_at;
use super::error::RuleError;
use super::finding::Finding;
use super::population::{Candidate, Numbers};
use super::{MaskRequest, PlanOptions};
use crate::fraction::Fraction;
use crate::ids::{ControllerId, labelled_hash};
use crate::plan::{MaskStrategy, Plan, PlannedStream};
use crate::query::Create;
use std::collections::BTreeSet;

/// The metadata values of a group's streams, in the order of `GROUP BY`.
pub(super) type Group = Vec<(String, String)>;

/// The part that all groups of a query share.
pub(super) struct Query<'a> {
    pub(super) create: &'a Create,
    pub(super) options: &'a PlanOptions<'a>,
    pub(super) template: &'a Plan,
}

impl Query<'_> {
    /// The plan of the group at `index`, with these members, in stream order, and numbers.
    pub(super) fn plan(
        &self,
        index: u64,
        group: Group,
        members: &[Candidate<'_>],
        numbers: Numbers,
    ) -> Result<Plan, Box<Finding>> {
        let roster: BTreeSet<ControllerId> =
            members.iter().map(|member| member.stream.controller).collect();
        let roster: Vec<ControllerId> = roster.into_iter().collect();
        let mut plan = Plan {
            nonce: self.nonce(index),
            group,
            population: numbers.bounds,
            alpha: numbers.alpha,
            colluders: numbers.colluders,
            streams: streams(&roster, members),
            roster,
            ..self.template.clone()
        };
        plan.masks = self.masks(&plan.owners_per_controller(), numbers)?;
        plan.dropout = self.dropout(numbers, plan.masks);
        Ok(plan)
    }

    /// The share that may drop out. If few others mask with a controller, dropouts cost more,
    /// so the default is lower.
    fn dropout(&self, numbers: Numbers, masks: MaskStrategy) -> Fraction {
        let asked = self.create.settings.dropout.is_some();
        match masks {
            MaskStrategy::Neighbours { .. } if !asked => numbers.dropout.min(Fraction::TENTH),
            _ => numbers.dropout,
        }
    }

    fn masks(&self, owners: &[u32], numbers: Numbers) -> Result<MaskStrategy, Box<Finding>> {
        if owners.len() == 1 {
            return Ok(MaskStrategy::Single);
        }
        let controllers = u32::try_from(owners.len()).unwrap_or(u32::MAX);
        let tolerated = numbers.tolerated(controllers);
        let request = MaskRequest {
            wanted: self.create.settings.masks,
            owners,
            tolerated,
            min_population: numbers.bounds.min,
            delta_exponent: self.template.delta_exponent,
        };
        (self.options.masks)(&request).ok_or_else(|| {
            Box::new(Finding::plain(
                item_at(self.create),
                RuleError::NoMasks { controllers, tolerated },
            ))
        })
    }

    fn nonce(&self, index: u64) -> [u8; 16] {
        let parts: [&[u8]; 2] = [self.options.nonce, &index.to_be_bytes()];
        let hash = labelled_hash("alpheus/plan-nonce/v1", &parts);
        hash.first_chunk().copied().unwrap_or_default()
    }
}

fn streams(roster: &[ControllerId], members: &[Candidate<'_>]) -> Vec<PlannedStream> {
    let position = |host: &ControllerId| u32::try_from(roster.binary_search(host).ok()?).ok();
    members
        .iter()
        .filter_map(|member| {
            let known = member.stream;
            let controller = position(&known.controller)?;
            Some(PlannedStream { stream: known.stream, owner: known.owner, controller })
        })
        .collect()
}
