//! Differential privacy: sensitivity, noise for a given privacy loss, and accounts that
//! refuse a release beyond an owner's budget.
//!
//! Every number that affects a decision is an integer, rounded so that loss is never
//! underestimated. `docs/budget.md` has the equations.

mod account;
mod account_transfer;
mod amount;
mod assumed_sums;
mod budget_error;
mod budget_standing;
mod calibrate;
mod convert;
mod expected_error;
mod expected_errors;
mod fit;
mod loss;
mod noise;
mod record;
mod running_totals;
mod sensitivity;

pub use account::{Account, Accounts};
pub use amount::{Epsilon, Rho};
pub(crate) use assumed_sums::statistic_of;
pub use assumed_sums::{assumed_sums, farthest};
pub use budget_error::{BudgetError, Rule};
pub use budget_standing::BudgetStanding;
pub use calibrate::{
    Calibration, CalibrationError, Cost, Horizon, Mechanism, NoiseRequest, calibrate, calibrate_for,
};
pub use convert::{fits, ln_inverse_delta, max_rho, min_epsilon};
pub use expected_error::{
    NoiseShares, OutputError, Spread, max_share_variance, row_spread, share_variance,
};
pub use expected_errors::{expected_errors, rank_margin};
pub use fit::check_noise_fits;
pub use loss::{PrivacyLoss, Slack};
pub use noise::{RowNoise, RunningNoise};
pub use record::{BudgetRecord, BudgetRecordError, Charge, Entry};
pub use running_totals::{
    RunningCalibration, calibrate_running, column_norm_squared, running_slack_bits,
};
pub use sensitivity::{Change, RowGroup, SensitivityError, events_of, groups, windows_of};

pub(crate) use sensitivity::{bounds, square};
