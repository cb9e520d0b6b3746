//! Window sums by many processes: `alpheus worker`. Processes of one consumer group share the partitions
//! of the topic of events. The messages are the Flink job's (`jvm/docs/protocol.md`), so the service, its
//! controllers and devices do not see which of the two adds up.
//!
//! - [`instruction`]: what the service says: plans, opening sets, devices,
//! - [`part`]: the sum over one partition's streams,
//! - [`lane`]: the sums of one partition, in the transformer,
//! - [`journal`]: how a lane continues in another process,
//! - [`joiner`]: adds up partitions' parts, and controllers' answers, and leaves marks of how far,
//! - [`group`]: a process's lanes and joiners, while they are its own,
//! - [`clock`]: a worker's time, beside the brokers',
//! - [`worker`]: the command,
//! - [`error_ids`]: the ids of errors.
//!
//! # Exactly once
//! What a lane does depends on its partition's log, the instructions, and a few numbers: how far both
//! were read in a step, the clock, and the event time reached. Those are in the lane's journal, in the
//! transaction of what the step had to say and of the group's offset. A process that takes over a lane restores
//! its last snapshot and repeats the steps after it: the same frames, with the same clock, so the state is
//! the same to the last bit, and nothing is said twice. Output that is too long for one transaction is sent in
//! several, each with a note of its progress.
//!
//! # Privacy
//! A worker sees what the job sees: ciphertexts, times, counts and masked answers. It holds no key to
//! data.

pub mod clock;
pub mod error_ids;
pub mod group;
pub mod instruction;
pub mod joiner;
pub mod journal;
pub mod lane;
mod meter;
pub mod part;
pub mod worker;

pub use meter::Meter;
pub use worker::{Args, run};
