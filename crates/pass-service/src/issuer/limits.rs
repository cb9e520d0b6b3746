//! How often passes may be asked for: from one address, and under one account's name.
//!
//! Each budget is one number, in a table of fixed size: a stranger with many addresses or names
//! costs no memory. Two that share a place in the table share the budget.

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Places of a table.
const PLACES: usize = 1 << 16;
/// Requests of one account in a minute. A subscriber needs two in a period.
const OF_ACCOUNT: u32 = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// Somebody has asked too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// From one address.
    #[error("too many requests for passes from this address; try again in a minute")]
    Address,
    /// Under one account's name.
    #[error("too many requests for this account; try again in a minute")]
    Account,
}

/// The limits of one issuer.
pub struct Limits {
    addresses: Budgets,
    accounts: Budgets,
}

impl Limits {
    /// So many requests in a minute from one address, all at once or one after the other.
    #[must_use]
    pub fn new(of_address: u32, now: Instant) -> Self {
        Self { addresses: Budgets::new(of_address, now), accounts: Budgets::new(OF_ACCOUNT, now) }
    }

    /// Takes a request from an address. Of an IPv6 address the first half counts, since one
    /// person has all addresses that begin with it.
    ///
    /// # Errors
    /// [`RateError::Address`].
    pub fn from(&self, address: IpAddr, now: Instant) -> Result<(), RateError> {
        let network = match address.to_canonical() {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 64) | (1 << 127),
        };
        if self.addresses.take(&network, now) { Ok(()) } else { Err(RateError::Address) }
    }

    /// Takes a request for an account, under the name that is claimed. Upper and lower case are
    /// one: otherwise a name of twenty letters would have a million budgets.
    ///
    /// # Errors
    /// [`RateError::Account`].
    pub fn of(&self, name: &str, now: Instant) -> Result<(), RateError> {
        let taken = self.accounts.take(&name.to_lowercase(), now);
        if taken { Ok(()) } else { Err(RateError::Account) }
    }
}

/// Budgets of so many requests in a minute (the generic cell rate algorithm).
struct Budgets {
    /// When each budget is whole again, in microseconds since the start.
    whole: Mutex<Vec<u64>>,
    start: Instant,
    /// What one request costs, in microseconds.
    cost: u64,
    places: RandomState,
}

impl Budgets {
    fn new(in_a_minute: u32, now: Instant) -> Self {
        let cost = micros(MINUTE) / u64::from(in_a_minute.max(1));
        let whole = Mutex::new(vec![0; PLACES]);
        Self { whole, start: now, cost, places: RandomState::new() }
    }

    fn take(&self, key: &impl Hash, now: Instant) -> bool {
        let now = micros(now.saturating_duration_since(self.start));
        let place = usize::try_from(self.places.hash_one(key) % PLACES as u64).unwrap_or(0);
        let mut budgets = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(whole) = budgets.get_mut(place) else { return false };
        let after = (*whole).max(now).saturating_add(self.cost);
        let may = after - now <= micros(MINUTE);
        if may {
            *whole = after;
        }
        may
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_and_comes_back_in_a_minute() {
        let start = Instant::now();
        let limits = Limits::new(4, start);
        let at = |seconds| start + Duration::from_secs(seconds);
        let from = |address: &str, seconds| limits.from(address.parse().unwrap(), at(seconds));
        let spent = |address: &str, seconds| {
            std::iter::from_fn(|| from(address, seconds).ok()).take(100).count()
        };
        assert_eq!(spent("192.0.2.1", 0), 4);
        assert_eq!(from("192.0.2.1", 14), Err(RateError::Address));
        assert_eq!(spent("192.0.2.1", 15), 1);
        assert_eq!(from("::ffff:192.0.2.1", 15), Err(RateError::Address), "the same address");
        assert_eq!((spent("192.0.2.2", 15), spent("192.0.2.1", 600)), (4, 4));
        // One network, and another.
        assert_eq!(spent("2001:db8::1", 0), 4);
        assert_eq!(from("2001:db8::ffff:0:1", 0), Err(RateError::Address));
        assert_eq!(from("2001:db8:0:1::1", 0), Ok(()));
    }

    #[test]
    fn an_account_has_one_budget_in_upper_and_lower_case() {
        let start = Instant::now();
        let limits = Limits::new(1_000, start);
        for n in 0..OF_ACCOUNT {
            let name = if n % 2 == 0 { "Ada" } else { "aDA" };
            assert_eq!(limits.of(name, start), Ok(()));
        }
        assert_eq!(limits.of("ADA", start), Err(RateError::Account));
        assert_eq!(limits.of("bob", start), Ok(()));
    }
}
