//! What became of each column, in words.

use crate::tally::Values;
use crate::understanding::Understanding;

impl Understanding {
    /// What became of each column of the file, in order, in words.
    #[must_use]
    pub fn fates(&self) -> Vec<(String, String)> {
        if let Some(wide) = &self.wide {
            return wide.fates.clone();
        }
        let fate = |(at, name): (usize, &String)| (name.clone(), self.fate(at, name));
        self.names.iter().enumerate().map(fate).collect()
    }

    fn fate(&self, at: usize, name: &str) -> String {
        if self.time.columns.contains(&at) {
            return "the time".to_owned();
        }
        if self.owner.as_deref() == Some(name) {
            return "the owner".to_owned();
        }
        if let Some(own) = self.attributes.iter().find(|own| own.column == name) {
            let unit = own.unit.as_ref().map(|unit| format!(" [{unit}]")).unwrap_or_default();
            return match own.values {
                Values::Text => format!("counted as {}", own.name),
                Values::Boolean => format!("yes and no, as {}: 1 and 0", own.name),
                Values::Number => format!("measured as {}{unit}{}", own.name, own.course.says()),
            };
        }
        if let Some((_, count)) = self.categories.iter().find(|(other, _)| other == name) {
            return match count {
                1 => "not used: it has the same value in all rows".to_owned(),
                _ => format!("not used: a category with {count} different values"),
            };
        }
        match self.left_out.iter().find(|(other, _)| other == name) {
            Some((_, why)) => format!("left out: {why}"),
            None => "left out".to_owned(),
        }
    }
}
