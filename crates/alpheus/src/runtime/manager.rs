//! The service's side of a deployment: who is there, what runs, and the plans
//! that a restart must take up again.

use super::embedded::RuntimeError;
use super::service::{Round, Service};
use super::storage::scan_all;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::announced::Announced;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment, fingerprint};
use alpheus_encrypted_stream::messages::Announcement;
use alpheus_policy::catalog::Catalog;
use alpheus_policy::ids::ControllerId;
use alpheus_policy::plan::Plan;
use alpheus_policy::schema::Schema;
use alpheus_policy::time::Timestamp;
use alpheus_transport::Batch;
use std::collections::HashMap;
use std::sync::Arc;

const PLANS: &[u8] = b"announcement/";

/// Policy manager and transformer of one schema's streams. It never holds a key
/// to data.
pub struct Manager {
    /// Sums and windows.
    pub service: Service,
    /// Who is there and what runs.
    pub catalog: Catalog,
    deployment: Deployment,
    key: Arc<SigningKey>,
    certificates: HashMap<ControllerId, Signed<Certificate>>,
}

impl Manager {
    /// A manager that knows of no stream yet. `key` is the service's in the
    /// deployment.
    ///
    /// # Errors
    /// [`RuntimeError`] if the schema has no layout.
    pub fn new(
        service: Service,
        schema: &Schema,
        deployment: Deployment,
        key: Arc<SigningKey>,
    ) -> Result<Manager, RuntimeError> {
        let mut catalog = Catalog::default();
        catalog.add_schema(schema.clone())?;
        Ok(Manager { service, catalog, deployment, key, certificates: HashMap::new() })
    }

    /// Takes note of a controller, so that plans can name it.
    ///
    /// # Errors
    /// [`RuntimeError`] if the deployment's authority has not signed its certificate.
    pub fn know(
        &mut self,
        certificate: &Signed<Certificate>,
    ) -> Result<ControllerId, RuntimeError> {
        let id = fingerprint(&self.deployment.controller(certificate)?);
        self.certificates.insert(id, certificate.clone());
        Ok(id)
    }

    /// Starts plans and keeps them, so that a restart takes them up again. What
    /// comes out announces them.
    ///
    /// # Errors
    /// [`RuntimeError`]; a controller's refusal is no error, see [`Service::refusals`].
    pub fn start(&mut self, now: Timestamp, plans: &[Plan]) -> Result<Round, RuntimeError> {
        let mut batch = Batch::new();
        let mut announced = Vec::with_capacity(plans.len());
        for plan in plans {
            let certificates =
                plan.roster.iter().filter_map(|id| self.certificates.get(id).cloned());
            let announcement =
                Announcement { plan: plan.clone(), certificates: certificates.collect() };
            let signed = Signed::new(&announcement, &self.key);
            let key = [PLANS, &plan.id().0].concat();
            let bytes = postcard::to_allocvec(&signed).map_err(|_| RuntimeError::DamagedPlans)?;
            batch.put(&self.service.topics().service, key, bytes)?;
            announced.push(Arc::new(Announced::open(&signed, &self.deployment)?));
        }
        self.service.store().commit(batch)?;
        for announced in announced {
            self.service.start(now, announced)?;
        }
        Ok(self.service.close_windows(now, Timestamp(0))?)
    }

    /// Takes up again what ran when the process ended.
    ///
    /// # Errors
    /// [`RuntimeError`] if the stored plans cannot be read.
    pub fn resume(&mut self, now: Timestamp) -> Result<(), RuntimeError> {
        let space = &self.service.topics().service;
        for (_, value) in scan_all(self.service.store().as_ref(), space, PLANS)? {
            let signed: Signed<Announcement> =
                postcard::from_bytes(&value).map_err(|_| RuntimeError::DamagedPlans)?;
            let announced = Arc::new(Announced::open(&signed, &self.deployment)?);
            self.service.start(now, announced)?;
        }
        Ok(())
    }
}
