//! The surroundings of a walkthrough: the authority that certifies everybody, the planner's
//! settings, and a network that delivers at once.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::sync::Arc;

use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::annotation::Annotation;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::{
    Certificate, CertifiedOwner, Deployment, Party, Role, Subject,
};
use alpheus_encrypted_stream::controller::{Controller, IdentitySecrets};
use alpheus_encrypted_stream::coordinator::{Coordinator, Outcome, Output, Timing};
use alpheus_encrypted_stream::inbox::Inbox;
use alpheus_encrypted_stream::ledger::Step;
use alpheus_encrypted_stream::mask::{params, quorum::Roster};
use alpheus_encrypted_stream::messages::Announcement;
use alpheus_encrypted_stream::transformer::Transformer;
use alpheus_policy::catalog::{Catalog, CatalogStream};
use alpheus_policy::ids::{ControllerId, SchemaId, StreamId};
use alpheus_policy::plan::{MaskStrategy, Plan};
use alpheus_policy::planner::{MaskRequest, PlanOptions, plan};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::query::{Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};

/// Ledgers in memory, keys by number, certificates by controller.
pub(crate) struct Town {
    pub(crate) ledger: BTreeMap<Vec<u8>, Vec<u8>>,
    authority: SigningKey,
    service: Arc<SigningKey>,
    deployment: Deployment,
    certificates: BTreeMap<ControllerId, Signed<Certificate>>,
    catalog: Catalog,
}

/// Any error.
pub(crate) type AnyError = Box<dyn Error>;

impl Town {
    pub(crate) fn new(schema: &Schema) -> Result<Self, AnyError> {
        let mut catalog = Catalog::default();
        catalog.add_schema(schema.clone())?;
        let (authority, service) = (key(1), Arc::new(key(2)));
        let certificate = Party::signing(Role::Service, "health", service.verifying_key())
            .certify(Subject([0; 16]), &authority);
        let deployment = Deployment::new(authority.verifying_key(), &certificate)?;
        let (ledger, certificates) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { ledger, authority, service, deployment, certificates, catalog })
    }

    /// A new controller with a new ledger, certified by the authority.
    pub(crate) fn controller(
        &mut self,
        seed: &Secret<32>,
        name: &str,
    ) -> Result<Controller, AnyError> {
        let secrets = IdentitySecrets::from_seed(seed);
        let certificate = secrets.request(name).certify(Subject([0; 16]), &self.authority);
        let identity = secrets.certified(&certificate, &self.deployment)?;
        self.certificates.insert(identity.id(), certificate);
        let (controller, step) =
            Controller::create(identity, self.deployment.clone(), Timestamp(0));
        step.commit(&mut self.ledger)?;
        Ok(controller)
    }

    /// An owner, certified by the authority.
    pub(crate) fn owner(&self, person: u8, key: &SigningKey) -> Result<CertifiedOwner, AnyError> {
        let party = Party::signing(Role::Owner, person.to_string(), key.verifying_key());
        Ok(self.deployment.owner(&party.certify(Subject([person; 16]), &self.authority))?)
    }

    /// The owner signs an annotation: the controller complies with it, and the service
    /// plans with it.
    pub(crate) fn annotate(
        &mut self,
        controller: &mut Controller,
        stream: StreamId,
        schema: SchemaId,
        policy: ResolvedPolicy,
        (owner, key): (&CertifiedOwner, &SigningKey),
    ) -> Result<(), AnyError> {
        let annotation = Annotation {
            stream,
            owner: owner.id(),
            schema,
            version: 1,
            valid_from: Timestamp(0),
            valid_to: Timestamp::LIMIT,
            metadata: vec![],
            policy,
        };
        let signed = Signed::new(&annotation, key);
        let step = controller.annotate(&signed, owner, Timestamp(0))?;
        step.commit(&mut self.ledger)?;
        let Annotation { stream, owner, schema, metadata, policy, .. } = annotation;
        let controller = controller.id();
        let known = CatalogStream { stream, owner, controller, schema, metadata, policy };
        self.catalog.put_stream(known);
        Ok(())
    }

    /// The plan of a query, or why there is none.
    pub(crate) fn plan(&self, sql: &str) -> Result<Plan, AnyError> {
        let Statement::Create(create) = parse(sql)? else { return Err("not a query".into()) };
        let options = PlanOptions {
            now: Timestamp(0),
            from: None,
            nonce: &[9; 32],
            consumer: "health",
            readers: &|_| None,
            grace: Span::seconds(1),
            mask_delta_exponent: 9,
            masks: &masks,
        };
        let mut planned = plan(&create, &self.catalog, &options)?;
        Ok(planned.plans.remove(0))
    }

    /// The service's side of a plan, with all certificates.
    pub(crate) fn coordinator(&self, plan: &Plan) -> Result<Coordinator, AnyError> {
        let certificates = plan.roster.iter().map(|id| self.certificates[id].clone()).collect();
        let announcement = Announcement { plan: plan.clone(), certificates, consumer: None };
        let signed = Signed::new(&announcement, &self.service);
        let announced = Arc::new(AnnouncedPlan::open(&signed, &self.deployment)?);
        Ok(Coordinator::new(announced, self.service.clone(), Timing::default()))
    }

    /// Commits and delivers until nothing is left; returns how windows ended.
    pub(crate) fn deliver(
        &mut self,
        now: Timestamp,
        step: Step<Vec<Output>>,
        coordinator: &mut Coordinator,
        controllers: &mut BTreeMap<ControllerId, Controller>,
        sums: &Transformer,
    ) -> Result<Vec<Outcome>, AnyError> {
        let roster = coordinator.plan().roster.clone();
        let mut inbox = Inbox::new(self.deployment.clone());
        let (mut outcomes, mut steps) = (vec![], VecDeque::from([step]));
        while let Some(step) = steps.pop_front() {
            for output in step.commit(&mut self.ledger)? {
                let (message, to) = match output {
                    Output::Send { to, message } => (message, vec![to]),
                    Output::Broadcast(message) => (message, (0..).take(roster.len()).collect()),
                    Output::Outcome(outcome) => {
                        outcomes.push(*outcome);
                        continue;
                    }
                    Output::Answered { .. } | Output::ToAdder(_) => continue,
                };
                let heard = inbox.open(&message)?;
                for to in to {
                    let id = &roster[usize::try_from(to)?];
                    let controller = controllers.get_mut(id).ok_or("no such controller")?;
                    for answer in controller.handle(&heard, now).commit(&mut self.ledger)? {
                        let answer = coordinator.verify(&answer, to)?;
                        steps.push_back(coordinator.handle(&answer, now, sums)?);
                    }
                }
            }
        }
        Ok(outcomes)
    }
}

/// A key for the demonstration.
pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&Secret::from_bytes([seed; 32]))
}

fn masks(ask: &MaskRequest<'_>) -> Option<MaskStrategy> {
    let roster = Roster::new(ask.owners, ask.tolerated, ask.min_population);
    params::choose(None, &roster, ask.delta_exponent).ok()
}
