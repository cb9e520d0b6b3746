//! Plans that have ended and are kept, as long as their rows: readers of sealed and verified rows
//! need them, and who asks what noisy rows have cost.
//!
//! Announcements are in the store. In memory is only when each plan ran, so that a request reads
//! the few that it asks for, and old ones are deleted without reading them.

use super::embedded::RuntimeError;
use super::storage::{ENDED, KEPT, PLANS};
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_encrypted_stream::messages::Announcement;
use alpheus_node::ledger::scan_all;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::Plan;
use alpheus_standards::evidence::{EndedPlans, Ran};
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Batch, Error, Space, Store};
use bytes::Bytes;

/// Plans that are deleted at once.
const PAGE: usize = 100;

/// Those in a store. What was kept before ends were noted counts as ended `now`.
pub(super) fn load(
    store: &dyn Store,
    space: &Space,
    deployment: &Deployment,
    now: Timestamp,
) -> Result<EndedPlans, RuntimeError> {
    let mut plans = EndedPlans::default();
    for (key, value) in scan_all(store, space, ENDED)? {
        let plan = key.get(ENDED.len()..).and_then(|id| id.try_into().ok()).map(PlanId);
        let ran = postcard::from_bytes(&value).ok();
        let (plan, ran) = plan.zip(ran).ok_or(RuntimeError::DamagedPlans)?;
        plans.insert(plan, ran);
    }
    if plans.count() == 0 {
        let mut batch = Batch::new();
        for (_, value) in scan_all(store, space, KEPT)? {
            note(&mut plans, (&mut batch, space), &open(&value, deployment)?, now)?;
        }
        store.commit(batch)?;
    }
    Ok(plans)
}

/// Notes, also in a batch, that a plan has ended, whose announcement the batch keeps.
pub(super) fn note(
    plans: &mut EndedPlans,
    (batch, space): (&mut Batch, &Space),
    plan: &Plan,
    now: Timestamp,
) -> Result<(), RuntimeError> {
    let ran = Ran { query: plan.name.clone(), from: plan.from, ended: now };
    let bytes = postcard::to_allocvec(&ran).map_err(|_| RuntimeError::DamagedPlans)?;
    batch.put(space, [ENDED, &plan.id().0].concat(), bytes)?;
    plans.insert(plan.id(), ran);
    Ok(())
}

/// Deletes plans that ended this long ago, at most a page of them.
pub(super) fn forget(
    plans: &mut EndedPlans,
    (store, space): (&dyn Store, &Space),
    (now, keep): (Timestamp, Span),
) -> Result<(), RuntimeError> {
    let old: Vec<(Timestamp, PlanId)> = plans.old(now, keep).take(PAGE).collect();
    if old.is_empty() {
        return Ok(());
    }
    let mut batch = Batch::new();
    for (_, plan) in &old {
        batch.delete(space, [KEPT, &plan.0].concat())?;
        batch.delete(space, [ENDED, &plan.0].concat())?;
    }
    store.commit(batch)?;
    old.into_iter().for_each(|(ended, plan)| plans.remove(ended, plan));
    Ok(())
}

/// A plan's announcement as it is stored, while the plan runs or is kept.
pub(crate) fn announcement(
    store: &dyn Store,
    space: &Space,
    plan: PlanId,
) -> Result<Option<Bytes>, Error> {
    let running = store.get(space, &[PLANS, &plan.0].concat())?;
    if running.is_some() { Ok(running) } else { store.get(space, &[KEPT, &plan.0].concat()) }
}

/// A plan, from its announcement as it is stored.
pub(crate) fn open(stored: &[u8], deployment: &Deployment) -> Result<Plan, RuntimeError> {
    let signed: Option<Signed<Announcement>> = postcard::from_bytes(stored).ok();
    let opened = signed.as_ref().and_then(|signed| signed.open(deployment.service()).ok());
    opened.map(|announced| announced.into_inner().plan).ok_or(RuntimeError::DamagedPlans)
}
