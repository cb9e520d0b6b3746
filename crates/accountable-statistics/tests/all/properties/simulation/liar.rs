//! What a lying smoother sends instead. Its keys are its own: nobody else's are forged.

use super::{Letter, Party, World};
use crate::support::signing;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::messages::{
    Deposit, Entry, Grant, Opening, Ready, Receipt, Release, SlotRequest,
};
use alpheus_accountable_statistics::smoother::Output;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;

impl World {
    fn lies(&mut self, id: SmootherId, percent: u32) -> bool {
        self.liar == Some(id) && self.happens(percent)
    }

    /// Grants the same slot to everybody who asks.
    pub(super) fn lie_of_grant(
        &mut self,
        id: SmootherId,
        request: &SlotRequest,
        grant: Signed<Grant>,
    ) -> Signed<Grant> {
        if !self.lies(id, 15) {
            return grant;
        }
        let key = signing(u8::try_from(id.0).unwrap());
        let honest = grant.open(&key.verifying_key()).unwrap().into_inner();
        let slots = 0..self.agreed.slots;
        let mut kept =
            slots.filter(|slot| self.agreed.keeper(&self.town.pinned, *slot, honest.turn) == id);
        let slot = kept.next().unwrap();
        let lie = Grant { slot, revision: 5, ephemeral: request.ephemeral, ..honest };
        Signed::new(&lie, &key)
    }

    /// Signs anything that it receives, for one of the others alone.
    pub(super) fn lie_of_receipt(&mut self, id: SmootherId, deposit: &Deposit) {
        if !self.lies(id, 40) {
            return;
        }
        let keeper = signing(u8::try_from(deposit.keeper.0).unwrap()).verifying_key();
        let Ok(grant) = deposit.grant.open(&keeper) else { return };
        let entry = Entry::of(&grant, self.agreed.key_epoch, deposit.content, &deposit.sealed);
        let entry = Signed::new(&entry, &signing(u8::try_from(id.0).unwrap()));
        let to = (usize::from(id.0) + 1) % 4;
        self.send(Party::Smoother(to), Letter::Receipt(Receipt { by: id, entry }));
    }

    /// Releases half of the slots.
    pub(super) fn lie_of_release(&mut self, id: SmootherId, mut release: Release) -> Release {
        if self.lies(id, 60) {
            release.slots.retain(|listed| listed.entry.slot % 2 == 0);
        }
        release
    }

    pub(super) fn lie(&mut self, id: SmootherId, output: Output) -> Output {
        if !self.lies(id, 50) {
            return output;
        }
        let key = signing(u8::try_from(id.0).unwrap());
        match output {
            Output::Ready(ready) => {
                let ready = ready.open(&key.verifying_key()).unwrap().into_inner();
                let other = Ready { tuples: Digest([9; 32]), ..ready };
                Output::Ready(Signed::new(&other, &key))
            }
            Output::Opening(opening) => {
                let honest = opening.open(&key.verifying_key()).unwrap().into_inner();
                let mut partial = honest.partial.clone();
                partial[50] ^= 1;
                Output::Opening(Signed::new(&Opening { partial, ..honest }, &key))
            }
            Output::Outcome(outcome) => Output::Outcome(outcome),
        }
    }
}
