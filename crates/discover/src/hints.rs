//! What a person says about a file.

use crate::DiscoverError;
use crate::clock::Region;

/// What a person says about a file, in place of what would be found.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// The column of the owner; `none` for a file of one.
    pub owner: Option<String>,
    /// Each column of numbers is one owner's: what they measure.
    pub wide: Option<String>,
    /// The columns of the time.
    pub time: Vec<String>,
    /// The date of all rows, such as 2024-03-01, if they have only times of day.
    pub date: Option<String>,
    /// Their format: strftime's, or the name of a unit.
    pub time_format: Option<String>,
    /// The zone of times without one.
    pub zone: Option<Region>,
    /// What stands before the decimals.
    pub decimal: Option<char>,
    /// Whether the day stands before the month.
    pub day_first: Option<bool>,
    /// Columns that are measured, whatever their names say.
    pub measure: Vec<String>,
    /// Columns that are not used.
    pub leave_out: Vec<String>,
    /// Whether numbers far from all others are kept, or stand for missing ones.
    pub outliers: Option<OutlierTreatment>,
    /// Whether the times of days far from all others are right.
    pub keep_far_days: bool,
}

/// What becomes of numbers far from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutlierTreatment {
    /// Bounds include them.
    Keep,
    /// They are taken for missing.
    LeaveOut,
}

impl Hints {
    /// Checks that the columns that are named are in the file.
    ///
    /// # Errors
    /// [`DiscoverError::NoColumn`] for the first that is not.
    pub(crate) fn check(&self, names: &[String]) -> Result<(), DiscoverError> {
        let all = || names.iter().map(String::as_str);
        let named = self.measure.iter().chain(&self.leave_out).chain(&self.time);
        let owner = self.owner.iter().filter(|owner| *owner != "none");
        named.chain(owner).try_for_each(|name| self.position(name, all()).map(drop))
    }

    /// The position of a column that was named.
    ///
    /// # Errors
    /// [`DiscoverError::NoColumn`] if there is none of the name.
    pub(crate) fn position<'n>(
        &self,
        name: &str,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Result<usize, DiscoverError> {
        names.clone().position(|other| other == name).ok_or_else(|| DiscoverError::NoColumn {
            name: name.to_owned(),
            meant: nearest(name, names.clone())
                .map_or_else(String::new, |own| format!(": did you mean `{own}`?")),
            columns: names.take(40).collect::<Vec<_>>().join(", "),
        })
    }
}

/// The column whose name is most like what was written, if one is.
fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let wanted = plain(name);
    let distance = |own: &&str| strsim::osa_distance(&wanted, &plain(own));
    let best = names.min_by_key(distance)?;
    (distance(&best) <= (wanted.chars().count() / 2).clamp(1, 3)).then_some(best)
}
