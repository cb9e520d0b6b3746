//! A whole deployment in one process, for the walkthrough and the tests. Parties call each other
//! directly; ledgers are in memory.

mod setting;

pub(crate) use setting::{configuration, generate};

use alpheus_accountable_statistics::aggregator::{self, Aggregator, ExaminationReport, Node};
use alpheus_accountable_statistics::client::{Attempt, Client, Records, Registration};
use alpheus_accountable_statistics::configuration::{KeyEpoch, PinnedConfiguration, SmootherId};
use alpheus_accountable_statistics::definition::{
    AgreedDefinition, ClosingSchedule, Definition, Location, ReleaseRule,
};
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::logarithm::Table;
use alpheus_accountable_statistics::messages::{
    Closing, Deposit, End, Entry, Outcome, Ready, Receipt,
};
use alpheus_accountable_statistics::registrar::Registrar;
use alpheus_accountable_statistics::role_error::{ClosingError, ContributionError, SlotError};
use alpheus_accountable_statistics::smoother::{self, Output, Smoother};
use alpheus_accountable_statistics::threshold::{KeyShare, SharedKey};
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_anonymous_credential::holder::Timing;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_crypto::labels;
use alpheus_crypto::ledger::{StateOrigin, Step};
use alpheus_crypto::onetime::RecipientKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::{Span, Timestamp};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use std::sync::Arc;

pub(crate) type AnyError = Box<dyn std::error::Error>;
pub(crate) type Ledger = Records;

pub(crate) const MINUTE: u64 = 60_000_000;
pub(crate) const DAY: u64 = 24 * 60 * MINUTE;
/// The day that everything happens on.
pub(crate) const TODAY: u64 = 20_000;

/// So many minutes after the day's start.
pub(crate) fn at(minutes: u64) -> Timestamp {
    Timestamp(TODAY * DAY + minutes * MINUTE)
}

/// A deployment.
pub(crate) struct Town {
    pub(crate) pinned: PinnedConfiguration,
    pub(crate) operator: SigningKey,
    pub(crate) registrar: (Registrar, Ledger),
    pub(crate) smoothers: Vec<Smoother>,
    pub(crate) ledgers: Vec<Ledger>,
    pub(crate) aggregator: (Aggregator, Ledger),
    pub(crate) table: Arc<Table>,
    pub(crate) keys: Vec<IssuerKey>,
    pub(crate) shared: SharedKey,
    pub(crate) rng: ChaCha20Rng,
    /// Smoothers whose messages get lost.
    pub(crate) cut_off: Vec<SmootherId>,
}

/// Ready statements with their smoothers.
pub(crate) type Readies = Vec<(SmootherId, Signed<Ready>)>;

/// A client with its ledger.
pub(crate) struct Person {
    pub(crate) client: Client,
    pub(crate) store: Ledger,
}

pub(crate) fn signing(who: u8) -> SigningKey {
    SigningKey::from_seed(&Secret::from_bytes([who; 32]))
}

pub(crate) fn sealing() -> Result<RecipientKey, AnyError> {
    let seed = Secret::from_bytes([201; 32]);
    Ok(RecipientKey::from_seed(labels::STATISTICS_RECIPIENT, &seed)?)
}

const OPERATOR: u8 = 200;
pub(crate) const AGGREGATOR: u8 = 202;
pub(crate) const DEFINER: u8 = 203;

/// A definition as the definer proposes it.
pub(crate) fn proposed(definition: &Definition) -> Signed<Definition> {
    Signed::new(definition, &signing(DEFINER))
}

pub(crate) fn copy(key: &IssuerKey) -> Result<IssuerKey, AnyError> {
    Ok(IssuerKey::from_bytes(&key.expose())?)
}

impl Town {
    pub(crate) fn new(n: u8, t: u16, seed: u8) -> Result<Self, AnyError> {
        let mut rng = ChaCha20Rng::from_seed([seed; 32]);
        let keys = (0..=n).map(|_| IssuerKey::random(&mut rng));
        let keys: Vec<IssuerKey> = keys.collect::<Result<_, _>>()?;
        let operator = signing(OPERATOR);
        let signed = Signed::new(&configuration(n, t, &keys)?, &operator);
        let pinned = PinnedConfiguration::open(&signed, &operator.verifying_key())?;
        let copies = keys.iter().map(copy).collect::<Result<Vec<_>, _>>()?;
        let (registrar, step) = Registrar::restore(&pinned, copies, StateOrigin::New, &[], at(0))?;
        let mut books = Ledger::new();
        step.commit(&mut books)?;
        let (shared, shares) = generate(&pinned)?;
        let aggregator = Self::aggregator_of(&pinned, &keys[0], &Ledger::new())?;
        let mut town = Self {
            pinned,
            operator,
            registrar: (registrar, books),
            smoothers: Vec::new(),
            ledgers: Vec::new(),
            aggregator: (aggregator, Ledger::new()),
            table: Arc::new(Table::new(12)),
            keys,
            shared,
            rng,
            cut_off: Vec::new(),
        };
        town.set_up(n, shares)?;
        Ok(town)
    }

    fn set_up(&mut self, n: u8, shares: Vec<KeyShare>) -> Result<(), AnyError> {
        let mut cards = Endorsed::default();
        for (id, share) in (0..n).zip(shares) {
            let mut ledger = Ledger::new();
            let (mut smoother, step) = self.smoother_of(id, &ledger, StateOrigin::New, at(0))?;
            step.commit(&mut ledger)?;
            let said = smoother.sign_card(KeyEpoch(TODAY), 0, self.shared.clone(), Some(share))?;
            cards.add(smoother.id(), said.commit(&mut ledger)?);
            self.smoothers.push(smoother);
            self.ledgers.push(ledger);
        }
        for (smoother, ledger) in self.smoothers.iter_mut().zip(&mut self.ledgers) {
            smoother.handle_card(&cards, None)?.commit(ledger)?;
        }
        Ok(())
    }

    pub(crate) fn smoother_of(
        &self,
        id: u8,
        ledger: &Ledger,
        origin: StateOrigin,
        now: Timestamp,
    ) -> Result<(Smoother, Step<()>), AnyError> {
        let slots = copy(&self.keys[usize::from(id) + 1])?;
        let identity = smoother::Identity { id: SmootherId(id.into()), key: signing(id), slots };
        let (table, records) = (Arc::clone(&self.table), ledger.clone());
        Ok(Smoother::restore(&self.pinned, identity, table, origin, records, now)?)
    }

    pub(crate) fn aggregator_of(
        pinned: &PinnedConfiguration,
        uploads: &IssuerKey,
        ledger: &Ledger,
    ) -> Result<Aggregator, AnyError> {
        let uploads = copy(uploads)?;
        let identity =
            aggregator::Identity { key: signing(AGGREGATOR), sealing: sealing()?, uploads };
        Ok(Aggregator::restore(pinned, identity, Node::ALONE, ledger.clone())?)
    }

    /// An account's credentials.
    pub(crate) fn person(&mut self, account: &[u8]) -> Result<Person, AnyError> {
        let mut store = Ledger::new();
        let asking =
            Registration::begin(&self.pinned, account, Timing::Running, at(0), &mut self.rng)?;
        let asking = asking.commit(&mut store)?;
        let (registrar, books) = &mut self.registrar;
        let answers = registrar.handle(account, &asking.requests(), at(0), &mut self.rng)?;
        asking.handle(&answers.commit(books)?)?.commit(&mut store)?;
        let period = asking.period().ok_or("no period")?;
        let client =
            Client::restore(&self.pinned, period, store.clone())?.ok_or("no credential")?;
        Ok(Person { client, store })
    }

    /// An aggregate of the hour from minute 60 on.
    pub(crate) fn definition(&self, place: &str, slots: u32) -> Result<Definition, AnyError> {
        Ok(Definition {
            deployment: self.pinned.fingerprint(),
            location: Location::try_from(place.to_owned())?,
            start: at(60),
            end: at(120),
            during: 2,
            quota: Limit::try_from(3)?,
            accounts: 2,
            interval: Interval::new(0, 100, true)?,
            slots,
            expected: slots,
            clients: slots,
            key_epoch: KeyEpoch(TODAY),
            key: *self.shared.key(),
            rule: ReleaseRule::Full,
            closing: ClosingSchedule {
                turn: Span(10 * MINUTE),
                turns: 3,
                settling: Span(MINUTE),
                patience: Span(60 * MINUTE),
            },
        })
    }

    /// All smoothers sign a proposed definition, and all parties adopt it.
    pub(crate) fn define(&mut self, definition: &Definition) -> Result<AgreedDefinition, AnyError> {
        let mut endorsed = Endorsed::default();
        let proposed = proposed(definition);
        for (smoother, ledger) in self.smoothers.iter_mut().zip(&mut self.ledgers) {
            let signed = smoother.handle_proposal(&proposed, at(1))?.commit(ledger)?;
            endorsed.add(smoother.id(), signed);
        }
        self.adopt(&endorsed)
    }

    pub(crate) fn adopt(
        &mut self,
        endorsed: &Endorsed<Definition>,
    ) -> Result<AgreedDefinition, AnyError> {
        for (smoother, ledger) in self.smoothers.iter_mut().zip(&mut self.ledgers) {
            let _ = smoother.handle_definition(endorsed)?.commit(ledger)?;
        }
        let (aggregator, ledger) = &mut self.aggregator;
        Ok(aggregator.handle_definition(endorsed)?.commit(ledger)?)
    }

    /// A whole upload without trouble. Returns the attempt, with its receipts.
    pub(crate) fn upload(
        &mut self,
        person: &mut Person,
        agreed: &AgreedDefinition,
        now: Timestamp,
        contribution: Contribution,
    ) -> Result<Attempt, AnyError> {
        let prover = Prover::new(*agreed.terms());
        let begun = person.client.begin((agreed, &prover), contribution, now, &mut self.rng)?;
        let mut attempt = begun.commit(&mut person.store)?;
        self.ask(person, &mut attempt, now)?;
        self.deposit(person, &mut attempt, now)?;
        Ok(attempt)
    }

    /// Asks keepers until one grants a slot, and signs the entry in it.
    pub(crate) fn ask(
        &mut self,
        person: &mut Person,
        attempt: &mut Attempt,
        now: Timestamp,
    ) -> Result<(), AnyError> {
        loop {
            let (keeper, request) = attempt.request()?;
            let at = usize::from(keeper.0);
            let cut_off = self.cut_off.contains(&keeper);
            match self.smoothers[at].handle_request(&request, now, &mut self.rng) {
                Ok(step) if !cut_off => {
                    let grant = step.commit(&mut self.ledgers[at])?;
                    let (pinned, rng) = (&self.pinned, &mut self.rng);
                    let step = attempt.handle_grant((keeper, &grant), pinned, now, rng)?;
                    return Ok(step.commit(&mut person.store)?);
                }
                Ok(_) | Err(SlotError::Full | SlotError::Lapsed | SlotError::SitsOut) => {
                    attempt.handle_refusal()
                }
                Err(why) => return Err(why.into()),
            }
        }
    }

    /// Sends the deposit to all smoothers that can be reached, collects their receipts, and sends
    /// the resulting certificate.
    pub(crate) fn deposit(
        &mut self,
        person: &mut Person,
        attempt: &mut Attempt,
        now: Timestamp,
    ) -> Result<bool, AnyError> {
        for (to, deposit) in attempt.deposits() {
            if self.cut_off.contains(&to) {
                continue;
            }
            if let Some(receipt) = self.receive(to, deposit, now)? {
                attempt.handle_receipt(&receipt, &self.pinned)?.commit(&mut person.store)?;
            }
        }
        let Some(certificate) = attempt.certificate(&self.pinned) else { return Ok(false) };
        for (smoother, ledger) in self.smoothers.iter_mut().zip(&mut self.ledgers) {
            if !self.cut_off.contains(&smoother.id()) {
                smoother.handle_certificate(&certificate, now)?.commit(ledger)?;
            }
        }
        Ok(true)
    }

    /// One smoother handles a deposit and informs the others. None from one that sits out.
    pub(crate) fn receive(
        &mut self,
        to: SmootherId,
        deposit: Deposit,
        now: Timestamp,
    ) -> Result<Option<Receipt>, SlotError> {
        let at = usize::from(to.0);
        let step = match self.smoothers[at].handle_deposit(deposit, now) {
            Err(SlotError::SitsOut) => return Ok(None),
            other => other?,
        };
        let Ok(receipt) = step.commit(&mut self.ledgers[at]) else { return Ok(None) };
        for (other, ledger) in self.smoothers.iter_mut().zip(&mut self.ledgers) {
            if other.id() == to || self.cut_off.contains(&other.id()) {
                continue;
            }
            if let Ok(step) = other.handle_receipt(&receipt, now) {
                let _ = step.commit(ledger);
            }
        }
        Ok(Some(receipt))
    }

    /// Volunteers fill all slots with dummies.
    pub(crate) fn fill(
        &mut self,
        people: &mut [Person],
        agreed: &AgreedDefinition,
        now: Timestamp,
    ) -> Result<usize, AnyError> {
        let mut dummies = 0;
        for person in people {
            while person.client.left(agreed)? > 0 {
                let attempt = self.upload(person, agreed, now, Contribution::Dummy);
                match attempt.map_err(|failed| failed.downcast::<ContributionError>()) {
                    Ok(_) => dummies += 1,
                    Err(Ok(why)) if *why == ContributionError::Full => return Ok(dummies),
                    Err(Ok(why)) => return Err(why),
                    Err(Err(why)) => return Err(why),
                }
            }
        }
        Ok(dummies)
    }

    /// The aggregator collects what all smoothers release, and examines it.
    pub(crate) fn gather(
        &mut self,
        agreed: &AgreedDefinition,
        now: Timestamp,
    ) -> Result<ExaminationReport, AnyError> {
        let name = agreed.name();
        self.sync(agreed, now)?;
        let (aggregator, _) = &mut self.aggregator;
        for smoother in &self.smoothers {
            if self.cut_off.contains(&smoother.id()) {
                continue;
            }
            let _ = aggregator.handle_release(smoother.release(&name, now)?, smoother.id())?;
        }
        let parts = aggregator.examination(&name)?.split(2);
        let rng = &mut self.rng;
        let parts = parts.into_iter().map(|part| part.run(rng)).collect();
        Ok(ExaminationReport::join(parts, rng).ok_or("nothing")?)
    }

    /// The aggregator closes and sends all smoothers the tuples that count. Returns the ready
    /// statements.
    pub(crate) fn close(
        &mut self,
        examined: ExaminationReport,
        now: Timestamp,
    ) -> Result<(Signed<Closing>, Readies), AnyError> {
        let (aggregator, ledger) = &mut self.aggregator;
        let closing = aggregator.close(examined)?.commit(ledger)?;
        let name = closing.open(&self.pinned.aggregator)?.aggregate;
        let shown = aggregator.shown(&name).ok_or("nothing is shown")?;
        let mut ready = Vec::new();
        for (smoother, ledger) in self.smoothers.iter_mut().zip(&mut self.ledgers) {
            match smoother.handle_tuples(&name, shown.tuples.clone(), now) {
                Ok(verdicts) => {
                    verdicts.into_iter().collect::<Result<(), _>>()?;
                    let verdicts = smoother.handle_disclosures(&name, &shown.disclosed, now)?;
                    verdicts.into_iter().collect::<Result<(), _>>()?;
                }
                Err(ClosingError::SitsOut) => continue,
                Err(ClosingError::Latched) => {}
                Err(why) => return Err(why.into()),
            }
            let said = smoother.handle_closing(&closing, now)?.commit(ledger)?;
            ready.push((smoother.id(), said));
        }
        Ok((closing, ready))
    }

    /// Smoothers exchange ready statements and everything that follows, until nothing does.
    pub(crate) fn open(
        &mut self,
        ready: Readies,
        now: Timestamp,
    ) -> Result<Option<Outcome>, AnyError> {
        let mut said: Vec<(SmootherId, Output)> =
            ready.into_iter().map(|(by, ready)| (by, Output::Ready(ready))).collect();
        let mut published = None;
        while let Some((by, output)) = said.pop() {
            if let Output::Outcome(outcome) = output {
                let (aggregator, ledger) = &mut self.aggregator;
                if let Ok(step) = aggregator.handle_outcome(&outcome, by) {
                    published = step.commit(ledger)?;
                }
                continue;
            }
            for (other, ledger) in self.smoothers.iter_mut().zip(&mut self.ledgers) {
                if self.cut_off.contains(&other.id()) {
                    continue;
                }
                let heard = match &output {
                    Output::Ready(ready) => other.handle_ready(ready, by, now, &mut self.rng),
                    Output::Opening(part) => other.handle_opening(part, by, now, &mut self.rng),
                    Output::Outcome(_) => continue,
                };
                let id = other.id();
                let Ok(step) = heard else { continue };
                said.extend(step.commit(ledger)?.into_iter().map(|output| (id, output)));
            }
        }
        Ok(published)
    }

    /// The smoothers' reports of how an aggregate ended.
    pub(crate) fn ends(&self, agreed: &AgreedDefinition) -> Vec<(SmootherId, End)> {
        let end = |by: &Smoother| Some((by.id(), by.end(&agreed.name())?));
        self.smoothers.iter().filter_map(end).collect()
    }

    /// From the release to the result.
    pub(crate) fn finish(
        &mut self,
        agreed: &AgreedDefinition,
    ) -> Result<Option<Outcome>, AnyError> {
        let now = agreed.release();
        let examined = self.gather(agreed, now)?;
        let (_, ready) = self.close(examined, now)?;
        self.open(ready, now)
    }

    /// Smoothers give each other what the others lack: certificates, receipts, sealed uploads.
    pub(crate) fn sync(
        &mut self,
        agreed: &AgreedDefinition,
        now: Timestamp,
    ) -> Result<(), AnyError> {
        let name = agreed.name();
        let certificates: Vec<_> =
            self.smoothers.iter().flat_map(|s| s.certificates(&name)).collect();
        let receipts: Vec<Receipt> =
            self.smoothers.iter().flat_map(|s| s.receipts(&name)).collect();
        for at in 0..self.smoothers.len() {
            if self.cut_off.contains(&self.smoothers[at].id()) {
                continue;
            }
            for certificate in &certificates {
                self.smoothers[at]
                    .handle_certificate(certificate, now)?
                    .commit(&mut self.ledgers[at])?;
            }
            for receipt in &receipts {
                self.smoothers[at].handle_receipt(receipt, now)?.commit(&mut self.ledgers[at])?;
            }
            for slot in self.smoothers[at].missing_deposits(&name) {
                let kept =
                    self.smoothers.iter().find_map(|s| s.sealed_upload(&name, slot).cloned());
                let kept = kept.ok_or("nobody has it")?;
                self.smoothers[at]
                    .handle_sealed_upload(&name, slot, kept)
                    .commit(&mut self.ledgers[at])?;
            }
        }
        Ok(())
    }

    /// Restarts a smoother from its ledger.
    pub(crate) fn restart(
        &mut self,
        id: u8,
        origin: StateOrigin,
        now: Timestamp,
    ) -> Result<(), AnyError> {
        let at = usize::from(id);
        let (smoother, step) = self.smoother_of(id, &self.ledgers[at], origin, now)?;
        step.commit(&mut self.ledgers[at])?;
        self.smoothers[at] = smoother;
        Ok(())
    }
}

/// The entry of a deposited upload.
pub(crate) fn entry_of(attempt: &Attempt) -> Result<Entry, AnyError> {
    Ok(*attempt.entry().ok_or("not deposited")?)
}
