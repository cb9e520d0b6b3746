//! A plan whose participants have been checked: once, for all controllers of a
//! host that are in its roster.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::{Signed, Verified};
use alpheus_policy::ids::{ControllerId, OwnerId, PlanId, StreamId};
use alpheus_policy::layout::MOST_WORDS;
use alpheus_policy::plan::{Fraction, Plan};
use alpheus_policy::quorum::least_opening;

use crate::certificate::{Certificate, Deployment, consumer_id, fingerprint};
use crate::error::{BadCertificate, ConsumerFault, PlanFault, PlanRefused};
use crate::mask::params::{self, UnsafeMasks};
use crate::mask::quorum::Roster;
use crate::messages::Announcement;
use crate::noise::{Running, Shares, Unfit};

/// Honest floors whose tables are kept; opening sets of a plan have few sizes.
const FLOORS_KEPT: usize = 8;

/// A plan that this deployment's service announced, whose roster are parties
/// that the authority vouches for, and whose numbers fit together. What is left
/// to check is what only each controller knows: its own streams and policies.
#[derive(Debug)]
pub struct Announced {
    id: PlanId,
    plan: Plan,
    signed: Signed<Announcement>,
    verifying: Vec<VerifyingKey>,
    agreement: Vec<AgreementPublic>,
    /// The key of the consumer that results are sealed to.
    consumer: Option<AgreementPublic>,
    /// By controller.
    owners: Vec<u32>,
    tolerated: u32,
    authority: VerifyingKey,
    service: VerifyingKey,
    /// Tables of the noise by honest floor: public, and the same for all of a host.
    shares: Mutex<BTreeMap<u32, Arc<Shares>>>,
    /// Tables of the noise of running totals: the same.
    running: OnceLock<Result<Arc<Running>, Unfit>>,
}

impl Announced {
    /// Checks plan and participants.
    ///
    /// # Errors
    /// [`PlanRefused`] names the first rule that is broken.
    pub fn check(
        announcement: &Verified<Announcement>,
        signed: &Signed<Announcement>,
        deployment: &Deployment,
    ) -> Result<Self, PlanRefused> {
        if announcement.signer() != deployment.service() {
            return Err(PlanRefused::NotTheService);
        }
        let plan = &announcement.plan;
        check_shape(plan).map_err(PlanRefused::Malformed)?;
        check_owners(plan)?;
        let certificates = check_roster(plan, &announcement.certificates, deployment)?;
        params::check(plan).map_err(unsafe_masks)?;
        let consumer = check_consumer(announcement, &certificates, deployment)
            .map_err(PlanRefused::Consumer)?;
        Ok(Self {
            id: plan.id(),
            plan: plan.clone(),
            signed: signed.clone(),
            verifying: certificates.iter().map(|certificate| certificate.verifying).collect(),
            agreement: certificates.iter().map(|certificate| certificate.agreement).collect(),
            consumer,
            owners: Roster::owners_per_controller(plan),
            tolerated: narrow(plan.tolerated()),
            authority: *deployment.authority(),
            service: *deployment.service(),
            shares: Mutex::default(),
            running: OnceLock::new(),
        })
    }

    /// How a controller's share of the plan's noise is drawn where `honest` others
    /// with it must suffice; none if the plan adds no noise.
    ///
    /// # Errors
    /// [`Unfit`], where it cannot be drawn, or nobody honest is left.
    pub fn shares(&self, honest: u32) -> Result<Option<Arc<Shares>>, Unfit> {
        let Some(privacy) = &self.plan.privacy else { return Ok(None) };
        let floor = NonZeroU32::new(honest).ok_or(Unfit::Zero)?;
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

    /// What the plan's running totals are drawn with; none if it has none.
    ///
    /// # Errors
    /// [`Unfit`], where they cannot be drawn.
    pub fn running(&self) -> Result<Option<Arc<Running>>, Unfit> {
        let (Some(privacy), Some(horizon)) = (&self.plan.privacy, self.plan.horizon()) else {
            return Ok(None);
        };
        let tables = || Running::new(&privacy.noise, horizon.windows).map(Arc::new);
        self.running.get_or_init(tables).clone().map(Some)
    }

    /// Opens and checks an announcement that a ledger kept.
    ///
    /// # Errors
    /// [`PlanRefused`]; [`PlanRefused::NotTheService`] if the signature fails.
    pub fn open(
        signed: &Signed<Announcement>,
        deployment: &Deployment,
    ) -> Result<Self, PlanRefused> {
        let opened = signed.open(deployment.service()).map_err(|_| PlanRefused::NotTheService)?;
        Self::check(&opened, signed, deployment)
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> PlanId {
        self.id
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whose word the certificates rest on.
    #[must_use]
    pub fn authority(&self) -> &VerifyingKey {
        &self.authority
    }

    /// Who announced it.
    #[must_use]
    pub fn service(&self) -> &VerifyingKey {
        &self.service
    }

    /// As the service signed it.
    #[must_use]
    pub fn signed(&self) -> &Signed<Announcement> {
        &self.signed
    }

    /// The roster's keys for signatures, in its order.
    #[must_use]
    pub fn verifying(&self) -> &[VerifyingKey] {
        &self.verifying
    }

    /// The roster's keys for agreement, in its order.
    #[must_use]
    pub fn agreement(&self) -> &[AgreementPublic] {
        &self.agreement
    }

    /// The agreement key of the consumer that results are sealed to, if to any.
    #[must_use]
    pub fn consumer(&self) -> Option<&AgreementPublic> {
        self.consumer.as_ref()
    }

    /// N.
    #[must_use]
    pub fn controllers(&self) -> u32 {
        narrow(self.plan.roster.len())
    }

    /// How many different owners the controller at a position stands for.
    #[must_use]
    pub fn owners(&self, controller: u32) -> u32 {
        self.owners.get(controller as usize).copied().unwrap_or(0)
    }

    /// t: controllers that may collude with the service.
    #[must_use]
    pub fn tolerated(&self) -> u32 {
        self.tolerated
    }

    /// t + r: members of a set that nobody counts on, neither for populations nor for
    /// noise.
    #[must_use]
    pub fn discounted(&self) -> u32 {
        self.tolerated.saturating_add(self.plan.masks.cut_off())
    }

    /// The least |S| for a membership of this many: a majority in which any two sets
    /// share an honest controller that is not cut off.
    #[must_use]
    pub fn least_opening(&self, members: u32) -> u32 {
        let counted_out = self.discounted().saturating_add(self.plan.masks.cut_off());
        least_opening(self.controllers(), counted_out, members, self.plan.dropout)
    }

    /// Whether its only controller's token opens a window by itself.
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

/// Positions in a plan are `u32`; [`check_shape`] has seen to it that they fit.
pub(crate) fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn unsafe_masks(masks: UnsafeMasks) -> PlanRefused {
    let UnsafeMasks::TooFewPicks { stated, least, .. } = masks else {
        return PlanRefused::UnsafeMasks;
    };
    let (least_picks, least_cut_off) = least.map_or((0, 0), |cuts| (cuts.picks, cuts.cut_off));
    let (picks, cut_off) = (stated.picks, stated.cut_off);
    PlanRefused::TooFewPicks { picks, cut_off, least_picks, least_cut_off }
}

fn check_shape(plan: &Plan) -> Result<(), PlanFault> {
    let rosters = plan.roster.len();
    if rosters == 0 || u32::try_from(rosters).is_err() || !ascends(&plan.roster, |c| *c) {
        return Err(PlanFault::Roster);
    }
    let in_roster = plan.streams.iter().all(|stream| (stream.controller as usize) < rosters);
    let few = u32::try_from(plan.streams.len()).is_ok();
    if !in_roster || !few || !ascends(&plan.streams, |stream| stream.stream) {
        return Err(PlanFault::Streams);
    }
    if plan.window.0 == 0 {
        return Err(PlanFault::Window);
    }
    let rows = &plan.release.rows;
    if rows.is_empty() || rows.len() > MOST_WORDS + 1 || rows.iter().any(Vec::is_empty) {
        return Err(PlanFault::Release);
    }
    if plan.population.min == 0 || plan.population.min > plan.population.max {
        return Err(PlanFault::Population);
    }
    let proper = |f: Fraction| f.denominator > 0 && f.numerator <= f.denominator;
    if !proper(plan.alpha) || !proper(plan.dropout) {
        return Err(PlanFault::Fraction);
    }
    Ok(())
}

fn ascends<T, K: Ord>(items: &[T], key: impl Fn(&T) -> K) -> bool {
    items.windows(2).all(|pair| matches!(pair, [a, b] if key(a) < key(b)))
}

/// Counts add up over controllers, so nobody may be at two of them.
fn check_owners(plan: &Plan) -> Result<(), PlanRefused> {
    let mut home: HashMap<OwnerId, (u32, StreamId)> = HashMap::new();
    for stream in &plan.streams {
        let (controller, _) =
            *home.entry(stream.owner).or_insert((stream.controller, stream.stream));
        if controller != stream.controller {
            return Err(PlanRefused::OwnerSplit { stream: stream.stream });
        }
    }
    Ok(())
}

fn check_roster(
    plan: &Plan,
    certificates: &[Signed<Certificate>],
    deployment: &Deployment,
) -> Result<Vec<Verified<Certificate>>, PlanRefused> {
    let mut keys = BTreeSet::new();
    let mut agreements = BTreeMap::new();
    let mut opened = Vec::with_capacity(certificates.len());
    if certificates.len() != plan.roster.len() {
        let position = narrow(certificates.len().min(plan.roster.len()));
        return Err(PlanRefused::Certificate { position });
    }
    for (position, (id, signed)) in (0_u32..).zip(plan.roster.iter().zip(certificates)) {
        let certificate = deployment.controller(signed).map_err(|bad| match bad {
            BadCertificate::SmallOrder => PlanRefused::BadKey { position },
            _ => PlanRefused::Certificate { position },
        })?;
        if fingerprint(&certificate) != *id {
            return Err(PlanRefused::Certificate { position });
        }
        let fresh = keys.insert(certificate.verifying)
            && agreements.insert(certificate.agreement, position).is_none();
        if !fresh {
            return Err(PlanRefused::Repeated { position });
        }
        opened.push(certificate);
    }
    Ok(opened)
}

/// The consumer that the plan is sealed to is who it says, by the authority's word.
/// Otherwise the service could put in a key of its own.
fn check_consumer(
    announcement: &Announcement,
    roster: &[Verified<Certificate>],
    deployment: &Deployment,
) -> Result<Option<AgreementPublic>, ConsumerFault> {
    let plan = &announcement.plan;
    let (id, signed) = match (plan.sealed_to, &announcement.consumer) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(ConsumerFault::Unwanted),
        (Some(_), None) => return Err(ConsumerFault::Missing),
        (Some(id), Some(signed)) => (id, signed),
    };
    let certificate = deployment.consumer(signed).map_err(|bad| match bad {
        BadCertificate::Role => ConsumerFault::Role,
        BadCertificate::SmallOrder => ConsumerFault::LowOrder,
        _ => ConsumerFault::Unsigned,
    })?;
    if consumer_id(&certificate) != id {
        return Err(ConsumerFault::OtherCertificate);
    }
    if certificate.name != plan.consumer {
        return Err(ConsumerFault::OtherName);
    }
    let shares = |other: &Certificate| {
        other.agreement == certificate.agreement || other.verifying == certificate.verifying
    };
    if roster.iter().any(|controller| shares(controller))
        || certificate.verifying == *deployment.service()
        || certificate.agreement == *deployment.service_agreement()
    {
        return Err(ConsumerFault::SharedKey);
    }
    Ok(Some(certificate.agreement))
}
