//! Hosts of controllers and the service, without the network between them: what
//! an owner, a stranger or an outage does to them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

mod certificates;
mod choices;
mod ended_plans;
mod endings;
mod engines;
mod epochs;
mod erasure;
mod moves;
mod quotas;
mod retention;
mod revocations;
mod schedules;
mod sea;
mod strangers;
mod withdrawal;
mod world;
