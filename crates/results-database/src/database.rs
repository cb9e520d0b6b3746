//! The database: tables of released rows, and the roles that read them.

use crate::failure::ProgramError;
use crate::planner::Planner;
use crate::refusal::StatementError;
use crate::released_tables::ReleasedTables;
use crate::role::Role;
use crate::roles::Roles;
use crate::statements::{self, Outcome};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::DataFrame;
use datafusion::sql::sqlparser::ast::Statement;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All roles.
pub(crate) struct Database {
    roles: BTreeMap<String, Arc<Role>>,
}

/// What a statement gives.
pub(crate) enum Answer {
    /// Rows.
    Rows(Box<DataFrame>),
    /// Something was done.
    Changed(Outcome),
}

impl Database {
    /// A database for these roles, whose queries may use so many bytes together, and as many for tables of each.
    pub(crate) fn new(
        roles: &Roles,
        released: &Arc<ReleasedTables>,
        planner: &Arc<Planner>,
        memory: usize,
    ) -> Result<Database, ProgramError> {
        let limits = RuntimeEnvBuilder::new().with_memory_limit(memory, 1.0);
        let runtime = limits.build_arc().map_err(Box::new)?;
        let known = roles.names().map(|name| {
            let (released, planner) = (Arc::clone(released), Arc::clone(planner));
            let role = Role::new(name, released, planner, (Arc::clone(&runtime), memory));
            Ok((name.clone(), Arc::new(role.map_err(Box::new)?)))
        });
        Ok(Database { roles: known.collect::<Result<_, ProgramError>>()? })
    }

    /// A role by its name.
    pub(crate) fn role(&self, name: &str) -> Option<&Arc<Role>> {
        self.roles.get(name)
    }

    /// All roles.
    pub(crate) fn roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.roles.values()
    }
}

/// Runs a statement, outside of any transaction.
pub(crate) async fn run(role: &Role, statement: &Statement) -> Result<Answer, StatementError> {
    statements::check(role, statement).await?;
    if statements::is_own(statement) {
        return statements::act(role, statement, None).await.map(Answer::Changed);
    }
    let rows = role.engine.sql(&statement.to_string()).await?;
    Ok(Answer::Rows(Box::new(rows)))
}
