//! What differential privacy costs: sensitivity, noise for a given loss, and
//! accounts that refuse what would exceed an owner's budget.
//!
//! Every number that decides is an integer, rounded so that loss is never
//! counted short. `docs/budget.md` has the equations.

mod account;
mod amount;
mod calibrate;
mod convert;
mod error;
mod fit;
mod guarantee;
mod noise;
mod record;
mod refusal;
mod running;
mod sensitivity;
mod spent;
mod standing;

pub use account::{Account, Accounts};
pub use amount::{Epsilon, Rho};
pub use calibrate::{
    Ask, Calibrated, Cost, Horizon, Mechanism, Uncalibrated, calibrate, calibrate_for,
};
pub use convert::{fits, least_epsilon, ln_inverse_delta, most_rho};
pub use error::{
    OutputError, Shared, Spread, expected_errors, most_share_variance, row_spread, share_variance,
};
pub use fit::holds_noise;
pub use guarantee::Guarantee;
pub use noise::{RowNoise, RunningNoise};
pub use record::{BudgetRecord, Charge, Entry, UnreadableBudget};
pub use refusal::{Overspent, Rule};
pub use running::{RunningCalibrated, calibrate_running, column_norm_squared, running_slack_bits};
pub use sensitivity::{Change, RowGroup, Unprotectable, events_of, groups, windows_of};
pub use spent::{Slack, Spent};
pub use standing::Standing;
