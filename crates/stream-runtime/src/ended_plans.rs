//! Plans that have ended and are kept, as long as their rows: readers of sealed and verified rows
//! need them, and who asks what noisy rows have cost.
//!
//! Announcements are in the store. In memory is only when each plan ran, so that a request reads
//! the few that it asks for, and old ones are deleted without reading them. A plan is old once the
//! logs of rows and receipts start behind where they ended with it. No clock decides that: rows
//! stay longer if the service was away.

use super::error::RuntimeError;
use super::storage::{ENDED, KEPT, PLANS, Topics};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_encrypted_stream::messages::Announcement;
use alpheus_node::ledger::scan_all;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::Plan;
use alpheus_standards::evidence::{EndedPlans, LogPlaces, PlanRun};
use alpheus_time::Timestamp;
use alpheus_transport::{Batch, Error, Offset, Space, Store};
use bytes::Bytes;

/// Plans that are deleted at once.
const PAGE: usize = 100;

/// Those in a store. Plans that were kept before ends were recorded count as ended `now`.
pub(super) fn load(
    store: &dyn Store,
    topics: &Topics,
    deployment: &Deployment,
    now: Timestamp,
) -> Result<EndedPlans, RuntimeError> {
    let (mut plans, space) = (EndedPlans::default(), &topics.service);
    for (key, value) in scan_all(store, space, ENDED)? {
        let plan = key.get(ENDED.len()..).and_then(|id| id.try_into().ok()).map(PlanId);
        let ran = postcard::from_bytes(&value).ok();
        let (plan, ran) = plan.zip(ran).ok_or(RuntimeError::DamagedPlans)?;
        plans.insert(plan, ran);
    }
    if plans.count() == 0 {
        let (mut batch, (_, until)) = (Batch::new(), logs(store, topics)?);
        for (_, value) in scan_all(store, space, KEPT)? {
            note(&mut plans, (&mut batch, space), &open(&value, deployment)?, (now, until))?;
        }
        store.commit(batch)?;
    }
    Ok(plans)
}

/// Where the logs of rows and receipts start and end.
pub(super) fn logs(store: &dyn Store, topics: &Topics) -> Result<(LogPlaces, LogPlaces), Error> {
    let rows = store.bounds(&topics.results.partition(0))?;
    let receipts = store.bounds(&topics.receipts.partition(0))?;
    let places = |rows: Offset, receipts: Offset| LogPlaces { rows: rows.0, receipts: receipts.0 };
    Ok((places(rows.start, receipts.start), places(rows.end, receipts.end)))
}

/// Notes, also in a batch, that a plan has ended, whose announcement the batch keeps.
pub(super) fn note(
    plans: &mut EndedPlans,
    (batch, space): (&mut Batch, &Space),
    plan: &Plan,
    (ended, until): (Timestamp, LogPlaces),
) -> Result<(), RuntimeError> {
    let ran = PlanRun { query: plan.name.clone(), from: plan.from, ended, until };
    let bytes = postcard::to_allocvec(&ran).map_err(|_| RuntimeError::DamagedPlans)?;
    batch.put(space, [ENDED, &plan.id().0].concat(), bytes)?;
    plans.insert(plan.id(), ran);
    Ok(())
}

/// Deletes plans whose rows and receipts are gone, a page of them at once.
pub(super) fn forget(
    plans: &mut EndedPlans,
    (store, topics): (&dyn Store, &Topics),
) -> Result<(), RuntimeError> {
    let (starts, _) = logs(store, topics)?;
    loop {
        let old: Vec<(LogPlaces, PlanId)> = plans.old(starts).take(PAGE).collect();
        if old.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::new();
        for (_, plan) in &old {
            batch.delete(&topics.service, [KEPT, &plan.0].concat())?;
            batch.delete(&topics.service, [ENDED, &plan.0].concat())?;
        }
        store.commit(batch)?;
        old.into_iter().for_each(|(until, plan)| plans.remove(until, plan));
    }
}

/// A plan's announcement as it is stored, while the plan runs or is kept.
///
/// # Errors
/// If the store fails.
pub fn announcement(
    store: &dyn Store,
    space: &Space,
    plan: PlanId,
) -> Result<Option<Bytes>, Error> {
    let running = store.get(space, &[PLANS, &plan.0].concat())?;
    if running.is_some() { Ok(running) } else { store.get(space, &[KEPT, &plan.0].concat()) }
}

/// A plan, from its announcement as it is stored.
///
/// # Errors
/// [`RuntimeError::DamagedPlans`] if this deployment's service has not signed it.
pub fn open(stored: &[u8], deployment: &Deployment) -> Result<Plan, RuntimeError> {
    let signed: Option<Signed<Announcement>> = postcard::from_bytes(stored).ok();
    let opened = signed.as_ref().and_then(|signed| signed.open(deployment.service()).ok());
    opened.map(|announced| announced.into_inner().plan).ok_or(RuntimeError::DamagedPlans)
}
