//! The issuer: one credential for each account, kind and period.

use crate::configuration::PinnedConfiguration;
use crate::error::{IssuerError, MessageError};
use crate::keys::IssuerKey;
use crate::ledger::{Change, DamagedLedgerError, StateOrigin, Step, put};
use crate::messages::{Request, Response};
use crate::schedule::Period;
use crate::statements;
use alpheus_crypto::group::{Element, IdentityError, SecretScalar};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sigma::{Claim, Proof, ProvingError};
use alpheus_time::Timestamp;
use rand_core::CryptoRng;
use std::collections::BTreeMap;

/// The issuer of one configuration. It learns which account gets a credential for which period,
/// and nothing about any presentation.
pub struct Issuer {
    key: IssuerKey,
    pinned: PinnedConfiguration,
    /// H(request) and response, by account and period.
    issued: BTreeMap<(Vec<u8>, Period), (Digest, Vec<u8>)>,
    /// Credentials of earlier periods may be forgotten.
    issues_from: Period,
}

/// Who asks for a credential, as its caller has found out.
#[derive(Clone, Copy)]
pub struct Applicant<'a> {
    /// The account's identifier: one for each account, however its holder spells the name. The
    /// issuer's records are kept under it.
    pub account: &'a [u8],
    /// The name as the holder spells it. The proof of the request is bound to it.
    pub name: &'a [u8],
}

impl<'a> Applicant<'a> {
    /// An account whose name has only one spelling, so that it is the identifier, too.
    #[must_use]
    pub const fn named(name: &'a [u8]) -> Self {
        Self { account: name, name }
    }
}

impl Issuer {
    /// Restores an issuer from its ledger; commit the step to use it. No other issuer may use
    /// the ledger, not even one of another tier: an account has one credential of a kind in a
    /// period, whatever the tier.
    ///
    /// From a [`StateOrigin::Restored`] ledger it repeats recorded answers, and issues new
    /// credentials only for periods that nobody could request yet.
    ///
    /// # Errors
    /// [`IssuerError::OtherKey`] if the key is not the configuration's, [`IssuerError::Ledger`].
    pub fn restore(
        key: IssuerKey,
        pinned: PinnedConfiguration,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
        origin: StateOrigin,
        now: Timestamp,
    ) -> Result<Step<Self>, IssuerError> {
        if *key.public() != pinned.issuer {
            return Err(IssuerError::OtherKey);
        }
        let mut issuer = Self { key, pinned, issued: BTreeMap::new(), issues_from: Period(0) };
        let mut begun = false;
        for (key, value) in records {
            begun |= issuer.read(&key, &value).ok_or(DamagedLedgerError)?;
        }
        match (origin, begun) {
            (StateOrigin::Intact, true) => return Ok(Step::new(Vec::new(), issuer)),
            // An issuer that crashed during its first start begins again.
            (StateOrigin::New, _)
                if issuer.issued.is_empty() && issuer.issues_from == Period(0) => {}
            (StateOrigin::Restored, _) => {
                issuer.issues_from = issuer.issues_from.max(issuer.first_unrequested(now))
            }
            (StateOrigin::New | StateOrigin::Intact, _) => return Err(DamagedLedgerError.into()),
        }
        let from = put(issuer.begun_key(), issuer.issues_from.0.to_be_bytes().to_vec());
        Ok(Step::new(vec![from], issuer))
    }

    /// The first period that nobody could request yet.
    fn first_unrequested(&self, now: Timestamp) -> Period {
        let running = self.pinned.schedule.epoch_at(now);
        let running = running.map_or(0, |epoch| self.pinned.schedule.period_of(epoch).0);
        Period(running.saturating_add(2))
    }

    /// Answers the request of an applicant that the caller has identified. The same request gets
    /// the same answer again; another request of the account gets none, under whatever name.
    ///
    /// # Errors
    /// [`IssuerError`].
    ///
    /// # Privacy
    /// The issuer learns that the account requests a credential, and for which period. E1 hides
    /// m1 perfectly. No value here can be recognised in a presentation.
    pub fn issue(
        &mut self,
        applicant: Applicant<'_>,
        request: &[u8],
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<u8>>, IssuerError> {
        let request = Request::from_bytes(request)?;
        self.check_period(request.period, now)?;
        let place = (applicant.account.to_vec(), request.period);
        let digest = request.digest();
        if let Some((known, response)) = self.issued.get(&place) {
            let same = *known == digest;
            // Stored again, so that it is durable before the answer leaves, even if the first
            // commit has not reached the disk yet.
            let change = change(self.pinned.kind, &place, &digest, response);
            return if same {
                Ok(Step::new(vec![change], response.clone()))
            } else {
                Err(IssuerError::AlreadyIssued)
            };
        }
        if place.1 < self.issues_from {
            return Err(IssuerError::MayHaveForgotten);
        }
        let checked = CheckedRequest::check(&self.pinned, applicant.name, request)?;
        let response = checked.respond(&self.key, &self.pinned, rng)?.to_bytes();
        let change = change(self.pinned.kind, &place, &digest, &response);
        self.issued.insert(place, (digest, response.clone()));
        Ok(Step::new(vec![change], response))
    }

    /// Checks whether a request would be answered, without recording it. For an account that
    /// gets several credentials or none.
    ///
    /// # Errors
    /// Those of [`Issuer::issue`].
    pub fn check(
        &self,
        applicant: Applicant<'_>,
        request: &[u8],
        now: Timestamp,
    ) -> Result<(), IssuerError> {
        let request = Request::from_bytes(request)?;
        self.check_period(request.period, now)?;
        let place = (applicant.account.to_vec(), request.period);
        if let Some((known, _)) = self.issued.get(&place) {
            let same = *known == request.digest();
            return if same { Ok(()) } else { Err(IssuerError::AlreadyIssued) };
        }
        if place.1 < self.issues_from {
            return Err(IssuerError::MayHaveForgotten);
        }
        CheckedRequest::check(&self.pinned, applicant.name, request).map(drop)
    }

    /// Deletes the periods before the last one. It issues nothing for them again, even if the
    /// clock goes back.
    pub fn prune(&mut self, now: Timestamp) -> Step<()> {
        let running = self.pinned.schedule.epoch_at(now);
        let running = running.map_or(0, |epoch| self.pinned.schedule.period_of(epoch).0);
        let first = Period(running.saturating_sub(1));
        let kind = self.pinned.kind;
        let over = |place: &(Vec<u8>, Period)| place.1 < first;
        let gone = self.issued.keys().filter(|place| over(place));
        let mut changes: Vec<Change> =
            gone.map(|place| Change { key: issued_key(kind, place), value: None }).collect();
        if changes.is_empty() {
            return Step::new(changes, ());
        }
        self.issued.retain(|place, _| !over(place));
        self.issues_from = self.issues_from.max(first);
        changes.push(put(self.begun_key(), self.issues_from.0.to_be_bytes().to_vec()));
        Step::new(changes, ())
    }

    /// Accepts the running period and the next one.
    fn check_period(&self, period: Period, now: Timestamp) -> Result<(), IssuerError> {
        let epoch = self.pinned.schedule.epoch_at(now).ok_or(IssuerError::Period)?;
        let running = self.pinned.schedule.period_of(epoch).0;
        let may = period.0 == running || period.0 == running.saturating_add(1);
        if may { Ok(()) } else { Err(IssuerError::Period) }
    }
}

/// A request whose proof was checked. Only these are answered.
struct CheckedRequest(Request);

impl CheckedRequest {
    fn check(
        pinned: &PinnedConfiguration,
        name: &[u8],
        request: Request,
    ) -> Result<Self, IssuerError> {
        let statement = statements::request(pinned, name, request.period, &request.e1);
        let proof = Proof::from_bytes(&request.proof, &statement).map_err(MessageError::from)?;
        if Claim::new(statement, proof).holds() {
            Ok(Self(request))
        } else {
            Err(IssuerError::Proof)
        }
    }

    /// The MAC on (m1, m2), blinded, with its proof.
    fn respond(
        &self,
        key: &IssuerKey,
        pinned: &PinnedConfiguration,
        rng: &mut impl CryptoRng,
    ) -> Result<Response, ProvingError> {
        let vanished = |IdentityError| ProvingError::Identity;
        let b = self.blinding(key, pinned, rng);
        let (t1, t2) = (b.times(&key.x1), b.times(&key.x2));
        let m2 = SecretScalar::from_public(&pinned.attributes(self.0.period));
        let mut response = self.blinded(key, &b, [&t1, &t2, &t2.times(&m2)]).map_err(vanished)?;
        let statement = statements::response(pinned, &self.0, &response).map_err(vanished)?;
        let witness = [&key.x0, &key.x1, &key.x2, &key.xb, &b, &t1, &t2];
        response.proof = statement.prove(&witness, rng)?.to_bytes();
        Ok(response)
    }

    /// b, hedged. With one b for two requests, their two holders could compute x1·U and forge
    /// credentials.
    fn blinding(
        &self,
        key: &IssuerKey,
        pinned: &PinnedConfiguration,
        rng: &mut impl CryptoRng,
    ) -> SecretScalar {
        let (fresh, key) = (Secret::<32>::random(rng), key.expose());
        let (fingerprint, asked) = (pinned.fingerprint(), self.0.digest());
        let parts: [&[u8]; 4] =
            [fresh.expose(), key.expose(), fingerprint.as_bytes(), asked.as_bytes()];
        SecretScalar::from_hash(labels::CREDENTIAL_RESPONSE_SECRET, &parts)
    }

    /// The elements of a response, without the proof.
    fn blinded(
        &self,
        key: &IssuerKey,
        b: &SecretScalar,
        [t1, t2, t2m2]: [&SecretScalar; 3],
    ) -> Result<Response, IdentityError> {
        let (g, h) = (Element::base(), Element::second_base());
        Ok(Response {
            u: g.times(b)?,
            eu: Element::combine(
                &[(&b.times(&key.x0).plus(t2m2), &g), (&b.times(&key.xb), &h), (t1, &self.0.e1)],
                &[],
                &[],
            )?,
            ha: h.times(b)?,
            x0a: h.times(&b.times(&key.xb))?,
            x1a: h.times(t1)?,
            x2a: h.times(t2)?,
            proof: Vec::new(),
        })
    }
}

/// `issued ‖ kind:32 ‖ period:64 ‖ account` → `H(request) ‖ response`.
fn change(kind: u32, place: &(Vec<u8>, Period), digest: &Digest, response: &[u8]) -> Change {
    put(issued_key(kind, place), [digest.as_bytes(), response].concat())
}

fn issued_key(kind: u32, place: &(Vec<u8>, Period)) -> Vec<u8> {
    [ISSUED, &kind.to_be_bytes(), &place.1.0.to_be_bytes(), place.0.as_slice()].concat()
}

const ISSUED: &[u8] = b"issued";
const FROM: &[u8] = b"issues-from";

impl Issuer {
    /// `issues-from ‖ kind:32` → period:64: what every ledger of a kind has.
    fn begun_key(&self) -> Vec<u8> {
        [FROM, &self.pinned.kind.to_be_bytes()].concat()
    }

    /// Reads one record, and returns whether it is the one that every ledger has; `None` if it
    /// is damaged. Records of other kinds are skipped.
    fn read(&mut self, key: &[u8], value: &[u8]) -> Option<bool> {
        if key == self.begun_key() {
            self.issues_from = Period(u64::from_be_bytes(value.try_into().ok()?));
            return Some(true);
        }
        let kind = self.pinned.kind.to_be_bytes();
        let ours = key.strip_prefix(ISSUED).and_then(|rest| rest.strip_prefix(&kind));
        let Some(rest) = ours else { return Some(false) };
        let (period, account) = rest.split_first_chunk()?;
        let (digest, response) = value.split_first_chunk()?;
        let response = Response::from_bytes(response).ok()?.to_bytes();
        let place = (account.to_vec(), Period(u64::from_be_bytes(*period)));
        self.issued.insert(place, (Digest(*digest), response));
        Some(false)
    }
}
