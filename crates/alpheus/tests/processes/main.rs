//! The program as its users meet it: commands, processes, and the network between them. One binary,
//! because each binary costs a link.

mod alerts;
mod backups;
mod bad_input;
#[cfg(feature = "board")]
mod board;
mod bounded;
#[cfg(feature = "kafka")]
#[allow(dead_code, reason = "the suite of stores uses all of it")]
#[expect(clippy::unwrap_used, reason = "a test's way to fail")]
#[path = "../../../transport/tests/suite/broker.rs"]
mod broker;
mod certified_owners;
mod check;
mod common;
mod common_options;
mod console;
mod copies;
mod day_of_keys;
mod demo;
#[cfg(feature = "pass")]
mod doctor;
mod drills;
mod epochs;
mod errors;
mod evidence;
mod examples;
mod faults;
#[cfg(feature = "kafka")]
mod flink;
mod floods;
mod formats;
mod health;
mod help;
mod hosts;
mod import;
mod init;
mod init_contract;
mod init_questions;
mod init_real;
mod job;
#[cfg(feature = "kafka")]
mod kafka;
mod kill;
mod latecomers;
mod midnight;
mod moves;
mod names;
mod noise;
mod old_ledger;
#[cfg(feature = "otlp")]
mod otlp;
mod outages;
#[cfg(feature = "pass")]
mod pass;
mod pasted;
mod power;
mod processes;
mod prometheus;
mod query;
mod read;
mod real_data;
mod reference;
mod renewals;
mod revocations;
#[cfg(all(feature = "board", feature = "pass", feature = "stats", feature = "table"))]
mod roles;
mod rollover;
mod sealed;
mod service_process;
mod service_tls;
mod sessions;
mod start_clock;
#[cfg(feature = "stats")]
mod stats;
mod strangers;
mod suggest;
mod summaries;
#[cfg(feature = "table")]
mod table;
mod ticks;
mod tour;
mod up;
mod usage;
mod verified;
#[cfg(feature = "kafka")]
mod worker;
