//! What an owner sees of a stream: its device, their choices and readers, and the plans that use it.

use super::{Guard, GuardError};
use crate::controller::keystore::KeyStoreError;
use crate::deployment::to_hex;
use crate::wire::{GrantView, Notice, PlanView, SignedChoice, StreamView};
use alpheus_encrypted_stream::controller::{Controller, StatedGrant};
use alpheus_encrypted_stream::ledger::{Record, StampedRecord, annotations_prefix};
use alpheus_node::ledger::scan_all;
use alpheus_policy::columns::columns;
use alpheus_policy::ids::{ControllerId, StreamId};
use alpheus_policy::plan::Plan;
use data_encoding::HEXLOWER;

impl Guard {
    /// What the owner of a stream may know of it. Choices are as the owner signed them, so that
    /// the owner need not believe this host.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn view(&self, owner_name: &str, stream: &StreamId) -> Result<StreamView, GuardError> {
        let id = self.of(owner_name, stream)?.controller;
        let key = self.keys.stream_of(stream)?.ok_or(GuardError::NotYours)?;
        let own: &Controller = self.host.controller(&id).ok_or(GuardError::OtherController)?;
        let registered = match self.notices.of(stream)? {
            Some(Notice::Registered(registration)) => Some(registration.placement),
            _ => None,
        };
        let placement = registered.as_ref().or_else(|| own.last_move(stream)).map(to_hex);
        let holds = own.holds_on(stream).unwrap_or_default();
        let plan = |(plan, ended): (&Plan, bool)| PlanView {
            plan: plan.id(),
            name: plan.name.clone(),
            consumer: plan.consumer.clone(),
            window: plan.window,
            columns: columns(plan, &self.schema, &self.layout),
            ended,
        };
        Ok(StreamView {
            device: key.producer,
            controller: id,
            placement,
            revoked: holds.revoked,
            erased: holds.erased,
            copied: holds.copied,
            unconfirmed: holds.unconfirmed,
            choices: self.choices(id, stream)?,
            grants: own.grants_of(*stream).map(grant).collect(),
            plans: own.plans_of(*stream).map(plan).collect(),
        })
    }

    fn choices(
        &self,
        controller: ControllerId,
        stream: &StreamId,
    ) -> Result<Vec<SignedChoice>, GuardError> {
        let prefix = annotations_prefix(controller, stream);
        let records = scan_all(self.store.as_ref(), &self.spaces.ledger, &prefix)?;
        let mut choices = Vec::with_capacity(records.len());
        for (_, value) in &records {
            let stamped = StampedRecord::read(value).map_err(|_| KeyStoreError::Damaged)?;
            let Record::Annotation { since, signed, .. } = stamped.record else { continue };
            let bytes = postcard::to_allocvec(&signed).map_err(|_| KeyStoreError::Damaged)?;
            choices.push(SignedChoice { since, annotation: HEXLOWER.encode(&bytes) });
        }
        Ok(choices)
    }
}

fn grant(stated: StatedGrant<'_>) -> GrantView {
    let StatedGrant { reader, name, certificate, days, handed } = stated;
    GrantView { reader, name: name.to_owned(), certificate: to_hex(certificate), days, handed }
}
