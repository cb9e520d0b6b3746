//! A plan whose participants were checked, once for all controllers of a host that are in
//! its roster.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use alpheus_bounded_influence::check::Checker;
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_policy::ids::{ControllerId, OwnerId, PlanId, StreamId};
use alpheus_policy::layout::MAX_WORDS;
use alpheus_policy::plan::{Fraction, Plan};
use alpheus_policy::quorum::min_opening;
use alpheus_policy::schema::Schema;

use crate::bounded_terms::checker_of;
use crate::certificate::{Certificate, Deployment, consumer_id, fingerprint};
use crate::counts::narrow;
use crate::epoch_list::plan_of;
use crate::error::{CertificateError, PlanConsumerError, PlanRefusalError, PlanShapeError};
use crate::ledger::Record;
use crate::mask::params::{self, UnsafeMasksError};
use crate::mask::quorum::Roster;
use crate::messages::{Announcement, EpochCall, List, ListEntry, Listing, MaskKey, ServiceMessage};
use crate::noise::{NoiseError, SeedTables, Shares};

/// Number of honest floors whose tables are kept; a plan's opening sets have few sizes.
const FLOORS_KEPT: usize = 8;

/// A plan that this deployment's service announced, whose roster the authority certified,
/// and whose numbers fit together. Each controller still checks its own streams and
/// policies, which only it knows.
#[derive(Debug)]
pub struct AnnouncedPlan {
    id: PlanId,
    plan: Plan,
    source: Source,
    verifying: Vec<VerifyingKey>,
    agreement: Vec<AgreementPublic>,
    /// The key of the consumer that results are sealed to.
    consumer: Option<AgreementPublic>,
    /// By controller.
    owners: Vec<u32>,
    tolerated: u32,
    authority: VerifyingKey,
    service: VerifyingKey,
    /// Noise tables by honest floor: public, and the same for all controllers of a host.
    shares: Mutex<BTreeMap<u32, Arc<Shares>>>,
    /// Noise tables of running totals: also shared.
    running: OnceLock<Result<Arc<SeedTables>, NoiseError>>,
    /// Keys for pads whose signatures were checked, by position: also shared, since those of an
    /// epoch's plan are new in each window.
    mask_keys: Mutex<BTreeMap<u32, (Signed<MaskKey>, MaskKey)>>,
    /// What checks its windows, if it is bounded: it has the bases of proofs, for all who read rows.
    checker: OnceLock<Option<Arc<Checker>>>,
}

/// What the service has signed of a plan.
#[derive(Clone, Debug)]
enum Source {
    Announced(Signed<Announcement>),
    Listed(Arc<Listing>),
}

impl AnnouncedPlan {
    /// Checks plan and participants.
    ///
    /// # Errors
    /// [`PlanRefusalError`] names the first rule that is broken.
    pub fn check(
        announcement: &Verified<Announcement>,
        signed: &Signed<Announcement>,
        deployment: &Deployment,
    ) -> Result<Self, PlanRefusalError> {
        if announcement.signer() != deployment.service() {
            return Err(PlanRefusalError::NotTheService);
        }
        let Announcement { plan, certificates, consumer } = &**announcement;
        if plan.epoch.is_some() {
            return Err(PlanRefusalError::Malformed(PlanShapeError::Epoch));
        }
        let source = Source::Announced(signed.clone());
        let participants = (certificates.as_slice(), consumer.as_ref());
        Self::with_participants(plan, participants, source, deployment)
    }

    /// The plan of an epoch, from its call and its list.
    ///
    /// # Errors
    /// The plan's id, as far as it is known, and [`PlanRefusalError`], which names the first
    /// rule that is broken.
    pub fn of_list(
        call: &Verified<EpochCall>,
        list: &Verified<List>,
        listing: &Arc<Listing>,
        deployment: &Deployment,
    ) -> Result<Self, (PlanId, PlanRefusalError)> {
        let asked = (list.terms, list.window, list.windows);
        if [call.signer(), list.signer()].iter().any(|by| *by != deployment.service()) {
            return Err((list.terms, PlanRefusalError::NotTheService));
        }
        let malformed = PlanRefusalError::Malformed(PlanShapeError::Epoch);
        if asked != (call.terms.id(), call.window, call.windows) {
            return Err((list.terms, malformed));
        }
        let plan = plan_of(&call.terms, list).map_err(|refused| (list.terms, refused))?;
        let participants = (listing.certificates.as_slice(), listing.consumer.as_ref());
        let source = Source::Listed(Arc::clone(listing));
        let announced = Self::with_participants(&plan, participants, source, deployment)
            .map_err(|refused| (plan.id(), refused))?;
        let other = |(entry, key): (&ListEntry, &AgreementPublic)| entry.agreement != *key;
        match list.entries.iter().zip(&announced.agreement).position(other) {
            None => Ok(announced),
            Some(at) => Err((plan.id(), PlanRefusalError::EntryKey { position: narrow(at) })),
        }
    }

    fn with_participants(
        plan: &Plan,
        (certificates, consumer): (&[Signed<Certificate>], Option<&Signed<Certificate>>),
        source: Source,
        deployment: &Deployment,
    ) -> Result<Self, PlanRefusalError> {
        check_shape(plan).map_err(PlanRefusalError::Malformed)?;
        check_owners(plan)?;
        let roster = check_roster(plan, certificates, deployment)?;
        params::check(plan).map_err(unsafe_masks)?;
        let consumer = check_consumer(plan, consumer, &roster, deployment)
            .map_err(PlanRefusalError::Consumer)?;
        Ok(Self {
            id: plan.id(),
            plan: plan.clone(),
            source,
            verifying: roster.iter().map(|member| member.verifying).collect(),
            agreement: roster.iter().map(|member| member.agreement).collect(),
            consumer,
            owners: Roster::owners_per_controller(plan),
            tolerated: plan.tolerated(),
            authority: *deployment.authority(),
            service: *deployment.service(),
            shares: Mutex::default(),
            running: OnceLock::new(),
            mask_keys: Mutex::default(),
            checker: OnceLock::new(),
        })
    }

    /// What checks the windows of a bounded plan, under its schema. None if the plan is not bounded, or
    /// the schema is another one.
    #[must_use]
    pub fn checker(&self, schema: &Schema) -> Option<Arc<Checker>> {
        if !self.plan.integrity.is_bounded() || schema.id() != self.plan.schema {
            return None;
        }
        self.checker.get_or_init(|| checker_of(&self.plan, schema).map(Arc::new)).clone()
    }

    /// How a controller's share of the plan's noise is drawn if the shares of `honest`
    /// controllers must suffice; `None` if the plan adds no noise.
    ///
    /// # Errors
    /// [`NoiseError`] if it cannot be drawn, or no honest controller is left.
    pub fn shares(&self, honest: u32) -> Result<Option<Arc<Shares>>, NoiseError> {
        let Some(privacy) = &self.plan.privacy else { return Ok(None) };
        let floor = NonZeroU32::new(honest).ok_or(NoiseError::Zero)?;
        let mut known = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shares) = known.get(&honest) {
            return Ok(Some(Arc::clone(shares)));
        }
        let shares = Arc::new(Shares::new(&privacy.noise, floor)?);
        if known.len() >= FLOORS_KEPT {
            known.pop_first();
        }
        known.insert(honest, Arc::clone(&shares));
        Ok(Some(shares))
    }

    /// What the plan's running totals are drawn with; `None` if it has none.
    ///
    /// # Errors
    /// [`NoiseError`] if they cannot be drawn.
    pub fn running(&self) -> Result<Option<Arc<SeedTables>>, NoiseError> {
        let (Some(privacy), Some(horizon)) = (&self.plan.privacy, self.plan.horizon()) else {
            return Ok(None);
        };
        let tables = || SeedTables::new(&privacy.noise, horizon.windows).map(Arc::new);
        self.running.get_or_init(tables).clone().map(Some)
    }

    /// Opens and checks an announcement from a ledger.
    ///
    /// # Errors
    /// [`PlanRefusalError`]; [`PlanRefusalError::NotTheService`] if the signature is invalid.
    pub fn open(
        signed: &Signed<Announcement>,
        deployment: &Deployment,
    ) -> Result<Self, PlanRefusalError> {
        let opened =
            signed.open(deployment.service()).map_err(|_| PlanRefusalError::NotTheService)?;
        Self::check(&opened, signed, deployment)
    }

    /// Opens and checks a list from a ledger or a store.
    ///
    /// # Errors
    /// [`PlanRefusalError`]; [`PlanRefusalError::NotTheService`] if a signature is invalid.
    pub fn open_list(
        listing: &Arc<Listing>,
        deployment: &Deployment,
    ) -> Result<Self, PlanRefusalError> {
        let key = deployment.service();
        let call = listing.call.open(key).map_err(|_| PlanRefusalError::NotTheService)?;
        let list = listing.list.open(key).map_err(|_| PlanRefusalError::NotTheService)?;
        Self::of_list(&call, &list, listing, deployment).map_err(|(_, refused)| refused)
    }

    /// The plan's id.
    #[must_use]
    pub fn id(&self) -> PlanId {
        self.id
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The authority that certified the participants.
    #[must_use]
    pub fn authority(&self) -> &VerifyingKey {
        &self.authority
    }

    /// The service that announced it.
    #[must_use]
    pub fn service(&self) -> &VerifyingKey {
        &self.service
    }

    /// The message that announced the plan, or its list.
    #[must_use]
    pub fn message(&self) -> ServiceMessage {
        match &self.source {
            Source::Announced(signed) => ServiceMessage::Announcement(signed.clone()),
            Source::Listed(listing) => ServiceMessage::List(Arc::clone(listing)),
        }
    }

    /// The list that it follows from, if it is the plan of an epoch.
    #[must_use]
    pub fn listing(&self) -> Option<&Arc<Listing>> {
        match &self.source {
            Source::Announced(_) => None,
            Source::Listed(listing) => Some(listing),
        }
    }

    /// What a host's ledger keeps of it.
    pub(crate) fn record(&self) -> Record {
        let plan = self.id;
        match &self.source {
            Source::Announced(signed) => Record::Announcement { plan, signed: signed.clone() },
            Source::Listed(listing) => Record::Listing { plan, listing: Arc::clone(listing) },
        }
    }

    /// The roster's verifying keys, in its order.
    #[must_use]
    pub fn verifying(&self) -> &[VerifyingKey] {
        &self.verifying
    }

    /// The content of a key for pads, if the controller at this position signed it for this plan.
    pub(crate) fn mask_key(&self, position: u32, signed: &Signed<MaskKey>) -> Option<MaskKey> {
        let known = || self.mask_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let same = known().get(&position).filter(|(own, _)| own == signed).map(|(_, key)| *key);
        if same.is_some() {
            return same;
        }
        let key = signed.open(self.verifying.get(position as usize)?).ok()?.into_inner();
        if key.plan != self.id() || key.controller != position {
            return None;
        }
        known().insert(position, (signed.clone(), key));
        Some(key)
    }

    /// The roster's agreement keys, in its order.
    #[must_use]
    pub fn agreement(&self) -> &[AgreementPublic] {
        &self.agreement
    }

    /// The agreement key of the consumer that results are sealed to, if any.
    #[must_use]
    pub fn consumer(&self) -> Option<&AgreementPublic> {
        self.consumer.as_ref()
    }

    /// N, the number of controllers.
    #[must_use]
    pub fn controllers(&self) -> u32 {
        narrow(self.plan.roster.len())
    }

    /// How many different owners the controller at a position represents.
    #[must_use]
    pub fn owners(&self, controller: u32) -> u32 {
        self.owners.get(controller as usize).copied().unwrap_or(0)
    }

    /// t: controllers that may collude with the service.
    #[must_use]
    pub fn tolerated(&self) -> u32 {
        self.tolerated
    }

    /// t + r: members of a set that count neither for populations nor for noise.
    #[must_use]
    pub fn discounted(&self) -> u32 {
        self.tolerated.saturating_add(self.plan.masks.cut_off())
    }

    /// The minimum |S| for a membership of this size: a majority, so that any two sets
    /// share an honest controller that is not cut off.
    #[must_use]
    pub fn min_opening(&self, members: u32) -> u32 {
        let counted_out = self.discounted().saturating_add(self.plan.masks.cut_off());
        min_opening(self.controllers(), counted_out, members, self.plan.dropout)
    }

    /// Whether the plan has a single controller, whose token opens a window by itself.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.plan.roster.len() == 1
    }

    /// A controller's position in the roster.
    #[must_use]
    pub fn position(&self, controller: &ControllerId) -> Option<u32> {
        self.plan.roster.binary_search(controller).ok().map(narrow)
    }
}

fn unsafe_masks(masks: UnsafeMasksError) -> PlanRefusalError {
    let UnsafeMasksError::TooFewPicks { stated, least, .. } = masks else {
        return PlanRefusalError::UnsafeMasks;
    };
    let (least_picks, least_cut_off) = least.map_or((0, 0), |cuts| (cuts.picks, cuts.cut_off));
    let (picks, cut_off) = (stated.picks, stated.cut_off);
    PlanRefusalError::TooFewPicks { picks, cut_off, least_picks, least_cut_off }
}

fn check_shape(plan: &Plan) -> Result<(), PlanShapeError> {
    let rosters = plan.roster.len();
    if rosters == 0 || u32::try_from(rosters).is_err() || !ascends(&plan.roster, |c| *c) {
        return Err(PlanShapeError::Roster);
    }
    let in_roster = plan.streams.iter().all(|stream| (stream.controller as usize) < rosters);
    let few = u32::try_from(plan.streams.len()).is_ok();
    if !in_roster || !few || !ascends(&plan.streams, |stream| stream.stream) {
        return Err(PlanShapeError::Streams);
    }
    if plan.window.0 == 0 {
        return Err(PlanShapeError::Window);
    }
    let rows = &plan.release.rows;
    if rows.is_empty() || rows.len() > MAX_WORDS + 1 || rows.iter().any(Vec::is_empty) {
        return Err(PlanShapeError::Release);
    }
    if plan.population.min == 0 || plan.population.min > plan.population.max {
        return Err(PlanShapeError::Population);
    }
    if let Some(reason) = plan.not_verifiable() {
        return Err(PlanShapeError::NotVerifiable(reason));
    }
    if let Some(reason) = plan.not_servable() {
        return Err(PlanShapeError::BoundedForm(reason));
    }
    if !plan.selection.is_well_formed() {
        return Err(PlanShapeError::Selection);
    }
    let proper = |f: Fraction| f.denominator > 0 && f.numerator <= f.denominator;
    if !proper(plan.alpha) || !proper(plan.dropout) {
        return Err(PlanShapeError::Fraction);
    }
    Ok(())
}

fn ascends<T, K: Ord>(items: &[T], key: impl Fn(&T) -> K) -> bool {
    items.windows(2).all(|pair| matches!(pair, [a, b] if key(a) < key(b)))
}

/// Populations add up over controllers, so nobody may be at two of them.
fn check_owners(plan: &Plan) -> Result<(), PlanRefusalError> {
    let mut home: HashMap<OwnerId, (u32, StreamId)> = HashMap::new();
    for stream in &plan.streams {
        let (controller, _) =
            *home.entry(stream.owner).or_insert((stream.controller, stream.stream));
        if controller != stream.controller {
            return Err(PlanRefusalError::OwnerSplit { stream: stream.stream });
        }
    }
    Ok(())
}

/// The public keys of a certified controller or consumer.
#[derive(Clone, Copy)]
struct PublicKeys {
    verifying: VerifyingKey,
    agreement: AgreementPublic,
}

impl PublicKeys {
    fn of(certificate: &Certificate) -> Option<PublicKeys> {
        let party = &certificate.party;
        Some(PublicKeys { verifying: party.verifying, agreement: party.agreement? })
    }
}

fn check_roster(
    plan: &Plan,
    certificates: &[Signed<Certificate>],
    deployment: &Deployment,
) -> Result<Vec<PublicKeys>, PlanRefusalError> {
    let mut keys = BTreeSet::new();
    let mut agreements = BTreeMap::new();
    let mut roster = Vec::with_capacity(certificates.len());
    if certificates.len() != plan.roster.len() {
        let position = narrow(certificates.len().min(plan.roster.len()));
        return Err(PlanRefusalError::Certificate { position });
    }
    for (position, (id, signed)) in (0_u32..).zip(plan.roster.iter().zip(certificates)) {
        let certificate = deployment.controller(signed).map_err(|bad| match bad {
            CertificateError::SmallOrder => PlanRefusalError::BadKey { position },
            _ => PlanRefusalError::Certificate { position },
        })?;
        let member = PublicKeys::of(&certificate).filter(|_| fingerprint(&certificate) == *id);
        let member = member.ok_or(PlanRefusalError::Certificate { position })?;
        let fresh = keys.insert(member.verifying)
            && agreements.insert(member.agreement, position).is_none();
        if !fresh {
            return Err(PlanRefusalError::Repeated { position });
        }
        roster.push(member);
    }
    Ok(roster)
}

/// Checks the authority's certificate of the consumer that the plan is sealed to. Otherwise
/// the service could substitute its own key.
fn check_consumer(
    plan: &Plan,
    consumer: Option<&Signed<Certificate>>,
    roster: &[PublicKeys],
    deployment: &Deployment,
) -> Result<Option<AgreementPublic>, PlanConsumerError> {
    let (id, signed) = match (plan.sealed_to, consumer) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(PlanConsumerError::Unwanted),
        (Some(_), None) => return Err(PlanConsumerError::Missing),
        (Some(id), Some(signed)) => (id, signed),
    };
    let certificate = deployment.consumer(signed).map_err(|bad| match bad {
        CertificateError::Role => PlanConsumerError::Role,
        CertificateError::SmallOrder => PlanConsumerError::LowOrder,
        _ => PlanConsumerError::Unsigned,
    })?;
    if consumer_id(&certificate) != id {
        return Err(PlanConsumerError::OtherCertificate);
    }
    if certificate.party.name != plan.consumer {
        return Err(PlanConsumerError::OtherName);
    }
    let keys = PublicKeys::of(&certificate).ok_or(PlanConsumerError::Unsigned)?;
    let shares =
        |other: &PublicKeys| other.agreement == keys.agreement || other.verifying == keys.verifying;
    if roster.iter().any(shares) || keys.verifying == *deployment.service() {
        return Err(PlanConsumerError::SharedKey);
    }
    Ok(Some(keys.agreement))
}
