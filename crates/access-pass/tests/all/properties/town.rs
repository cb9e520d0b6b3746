//! Subscribers of a service in one process.

pub(crate) use crate::support::{LIMITS, Ledger, SECOND, SONG, at};

use crate::support::{NOTHING, Service};
use alpheus_access_pass::client::{AcknowledgedSession, connect};
use alpheus_access_pass::error::GatewayError;
use alpheus_access_pass::messages::Acknowledgement;
use alpheus_access_pass::request::{Stamp, Stamper};
use alpheus_anonymous_credential::holder::{Holder, OutboundMessage, Timing};
use alpheus_anonymous_credential::messages::SessionId;
use alpheus_time::Timestamp;
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

pub(crate) struct Town {
    pub(crate) service: Service,
    pub(crate) rng: ChaCha20Rng,
}

pub(crate) struct Device {
    pub(crate) holder: Holder,
    pub(crate) store: Ledger,
}

impl Device {
    /// The last presentation, as an honest gateway acknowledges it.
    pub(crate) fn served(&self) -> AcknowledgedSession {
        let newest = self.holder.resend(self.holder.newest().unwrap()).unwrap();
        let OutboundMessage { session, epoch, .. } = newest.commit(&mut Ledger::new()).unwrap();
        let sent = OutboundMessage { session, epoch, bytes: Vec::new() };
        AcknowledgedSession::check(&self.holder, &sent, &Acknowledgement { session, epoch })
            .unwrap()
    }
}

impl Town {
    pub(crate) fn new(seed: u8) -> Self {
        let mut rng = ChaCha20Rng::from_seed([seed; 32]);
        Self { service: Service::new(&mut rng).unwrap(), rng }
    }

    pub(crate) fn device(&mut self, account: &[u8]) -> Device {
        let mut store = Ledger::new();
        let holder = self.service.register(account, &mut store, &mut self.rng).unwrap();
        Device { holder, store }
    }

    pub(crate) fn log_in(
        &mut self,
        device: &mut Device,
        timing: Timing,
        now: Timestamp,
    ) -> SessionId {
        let pinned = &self.service.pinned;
        let compared = pinned.compare(&pinned.fingerprint()).unwrap();
        let sent = device.holder.log_in(timing, &compared, &NOTHING, now, &mut self.rng).unwrap();
        let sent = sent.commit(&mut device.store).unwrap();
        self.service.log_in(&sent, now).unwrap().session
    }

    pub(crate) fn re_up(&mut self, device: &mut Device, now: Timestamp) {
        let sent = device.holder.re_up(now, &mut self.rng).unwrap();
        self.service.re_up(&sent.commit(&mut device.store).unwrap(), now).unwrap();
    }

    pub(crate) fn connect(
        &mut self,
        device: &Device,
        now: Timestamp,
    ) -> Result<Stamper, GatewayError> {
        let hello = self.service.gateway.hello(now, &mut self.rng);
        let (message, connecting) =
            connect(&device.holder, &device.served(), &hello, &mut self.rng).unwrap();
        let connected = self.service.gateway.connect(&message, now)?;
        Ok(connecting.finish(&connected).unwrap())
    }

    /// A connected session, one second into the epoch.
    pub(crate) fn connected(&mut self, account: &[u8]) -> (Device, SessionId, Stamper) {
        let mut device = self.device(account);
        let session = self.log_in(&mut device, Timing::Running, at(1));
        let stamper = self.connect(&device, at(1)).unwrap();
        (device, session, stamper)
    }

    /// Sends a request that ends at once.
    pub(crate) fn request(
        &mut self,
        stamp: &Stamp,
        now: Timestamp,
    ) -> Result<Timestamp, GatewayError> {
        let admitted = self.service.gateway.admit(stamp, &SONG, now)?;
        self.service.gateway.finish(admitted.session);
        Ok(admitted.until)
    }
}
