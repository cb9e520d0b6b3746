//! What a service says that a statement has begun: a reader takes rows of no other query and plan.

use alpheus_policy::ids::PlanId;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;

/// The service says that a statement began another query.
#[derive(Debug, thiserror::Error)]
pub enum OtherQueryError {
    /// It has another name.
    #[error(
        "the service says that `{running}` is running now, but that is not the query in the statement"
    )]
    Name {
        /// The name.
        running: String,
    },
    /// It has several plans for the same owners, or none.
    #[error("the service does not say that it has begun one plan for each group")]
    Groups,
}

/// What the service says it has begun: the query, and a plan for each group. With epochs that is what
/// all lists are made for.
#[derive(Clone, Debug, Deserialize)]
pub struct BegunQuery {
    /// Its name.
    pub name: String,
    /// Its groups.
    #[serde(default)]
    pub groups: Vec<BegunGroup>,
}

/// A group of a query that was begun.
#[derive(Clone, Debug, Deserialize)]
pub struct BegunGroup {
    /// The plan.
    pub plan: PlanId,
    /// The group's values.
    pub group: Vec<(String, String)>,
}

impl BegunQuery {
    /// What an answer's `running` says. If that cannot be read, it names nothing.
    #[must_use]
    pub fn read(running: &Value) -> Self {
        let nothing = || Self { name: String::new(), groups: Vec::new() };
        Self::deserialize(running).unwrap_or_else(|_| nothing())
    }

    /// The plans, one for each group: of several, a service could show the row that it likes.
    pub(super) fn plans(&self) -> Result<Vec<PlanId>, OtherQueryError> {
        let groups: HashSet<_> = self.groups.iter().map(|own| &own.group).collect();
        if groups.is_empty() || groups.len() != self.groups.len() {
            return Err(OtherQueryError::Groups);
        }
        Ok(self.groups.iter().map(|own| own.plan).collect())
    }

    /// The plans whose rows may be read: none if the answer cannot be right.
    pub(super) fn readable(&self) -> Vec<PlanId> {
        self.plans().unwrap_or_default()
    }
}

/// Whether the query that the service says is running now is the one that the statement begins, with one plan
/// for each group.
pub(super) fn check_begun(
    begun: Option<&str>,
    running: Option<&BegunQuery>,
) -> Result<(), OtherQueryError> {
    match running {
        Some(BegunQuery { name, .. }) if begun != Some(name) => {
            Err(OtherQueryError::Name { running: name.clone() })
        }
        _ => running.map_or(Ok(()), |own| own.plans().map(drop)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_names_another_query_than_the_statement_is_refused() {
        let named = |name: &str| BegunQuery {
            name: name.to_owned(),
            groups: vec![BegunGroup { plan: PlanId([1; 32]), group: Vec::new() }],
        };
        let refuses =
            |begun, running: Option<&str>| check_begun(begun, running.map(named).as_ref()).is_err();
        assert!(!refuses(Some("Sums"), Some("Sums")) && !refuses(Some("Sums"), None));
        assert!(refuses(Some("Sums"), Some("Sums_1")) && refuses(Some("Sums"), Some("sums")));
        // A statement that this build cannot read, or one that begins nothing.
        assert!(refuses(None, Some("Sums")) && !refuses(None, None));
    }

    #[test]
    fn a_service_begins_one_plan_for_a_group() {
        let of = |groups: &[(&str, u8)]| {
            let of = |(region, plan): &(&str, u8)| BegunGroup {
                plan: PlanId([*plan; 32]),
                group: vec![("region".to_owned(), (*region).to_owned())],
            };
            let groups = groups.iter().map(of).collect();
            BegunQuery { name: "Sums".to_owned(), groups }.plans()
        };
        let two = [PlanId([1; 32]), PlanId([2; 32])];
        assert!(matches!(of(&[("North", 1), ("South", 2)]), Ok(own) if own == two));
        assert!(matches!(of(&[("North", 1), ("North", 2)]), Err(OtherQueryError::Groups)));
        assert!(matches!(of(&[]), Err(OtherQueryError::Groups)));
        let unread = BegunQuery::read(&serde_json::json!({ "name": "Sums", "groups": 7 }));
        assert!(unread.name.is_empty() && unread.plans().is_err());
        // So no row is read after such an answer.
        assert_eq!(unread.readable(), []);
    }
}
