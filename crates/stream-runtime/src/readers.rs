//! Consumers of an embedded deployment: it acts as the consumers that `RELEASE TO` names,
//! so that their sealed results can be read locally.

use super::embedded_deployment::EmbeddedDeployment;
use super::error::RuntimeError;
use super::results::Row;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_encrypted_stream::consumer::{Consumer, Reader};
use alpheus_policy::ids::{ConsumerId, PlanId};
use alpheus_policy::plan::Plan;
use std::collections::HashMap;
use std::sync::Arc;

impl EmbeddedDeployment {
    /// The certificate by which plans name the consumer of this name.
    #[must_use]
    pub fn reader_named(&self, name: &str) -> Option<ConsumerId> {
        self.consumer(name).ok().map(|(consumer, _)| consumer.id())
    }

    fn consumer(&self, name: &str) -> Result<(Consumer, Signed<Certificate>), RuntimeError> {
        let secrets = self.root.consumer(name);
        let certificate = self.root.certify(secrets.request(name));
        Ok((secrets.certified(&certificate, &self.deployment)?, certificate))
    }

    /// Registers the consumers that plans are sealed to at the service.
    pub(super) fn introduce_readers(&mut self, plans: &[Plan]) -> Result<(), RuntimeError> {
        for plan in plans.iter().filter(|plan| plan.sealed_to.is_some()) {
            let (_, certificate) = self.consumer(&plan.consumer)?;
            self.manager.register_consumer(&plan.consumer, &certificate)?;
        }
        Ok(())
    }

    /// All result rows, in the order in which windows ended. Sealed rows are opened as
    /// their consumers would open them.
    ///
    /// # Errors
    /// [`RuntimeError`] if the store fails.
    pub fn results(&self) -> Result<Vec<Row>, RuntimeError> {
        let mut rows = self.manager.service.results()?;
        let mut readers: HashMap<PlanId, Option<Reader>> = HashMap::new();
        for row in &mut rows {
            row.sealed.take_if(|sealed| sealed.sum.is_none());
            let Some(Ok(sum)) = row.sealed_sum() else { continue };
            let reader = match readers.entry(sum.plan) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(place) => {
                    place.insert(self.reader(&sum.plan)?)
                }
            };
            if let Some(reader) = reader {
                row.open(reader, &sum);
            }
        }
        Ok(rows)
    }

    fn reader(&self, plan: &PlanId) -> Result<Option<Reader>, RuntimeError> {
        let Some(signed) = self.manager.announcement(plan)? else { return Ok(None) };
        let announced = Arc::new(AnnouncedPlan::open(&signed, &self.deployment)?);
        let (consumer, _) = self.consumer(&announced.plan().consumer)?;
        Ok(consumer.reader(&announced).ok())
    }
}
