//! Which statements may run, and those that change a role's own schemas.

use crate::refusal::{FORBIDDEN, READ_ONLY, SYNTAX, StatementError, UNSUPPORTED};
use crate::role::Role;
use crate::scratch::{DATABASE, Entry, Name, Scratch};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::common::TableReference;
use datafusion::prelude::DataFrame;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    AlterTable, AlterTableOperation, CreateTable, CreateView, Delete, FromTable, Ident, ObjectName,
    ObjectType, Query, RenameTableNameKind, SchemaName, Set, SetExpr, Statement, TableFactor,
    TableObject, TableWithJoins, Truncate, visit_relations_mut,
};
use std::ops::ControlFlow;

/// What a statement has done: its name, and how many rows it concerned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) tag: &'static str,
    pub(crate) rows: Option<usize>,
}

impl Outcome {
    const fn tag(tag: &'static str) -> Outcome {
        Outcome { tag, rows: None }
    }
}

/// Whether a statement is carried out here, and not by the engine.
pub(crate) const fn is_own(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateTable(_)
            | Statement::CreateView(_)
            | Statement::CreateSchema { .. }
            | Statement::AlterTable(_)
            | Statement::Drop { .. }
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Truncate(_)
            | Statement::Comment { .. }
            | Statement::Discard { .. }
            | Statement::Deallocate { .. }
    )
}

/// Refuses a statement that may not run, and one that asks for what was not released.
pub(crate) async fn check(role: &Role, statement: &Statement) -> Result<(), StatementError> {
    match statement {
        Statement::Query(query) => only_reads(query)?,
        Statement::Explain { statement, .. } => match statement.as_ref() {
            Statement::Query(query) => only_reads(query)?,
            _ => return Err(unsupported("EXPLAIN of anything but a SELECT")),
        },
        Statement::Set(set) => check_set(set)?,
        Statement::ShowVariable { .. }
        | Statement::ShowStatus { .. }
        | Statement::ShowCatalogs { .. }
        | Statement::ShowTables { .. }
        | Statement::ShowColumns { .. }
        | Statement::StartTransaction { .. }
        | Statement::Commit { .. }
        | Statement::Rollback { .. }
        | Statement::Declare { .. }
        | Statement::Fetch { .. }
        | Statement::Close { .. } => {}
        own if is_own(own) => {}
        Statement::Copy { .. } => return Err(unsupported("COPY")),
        Statement::Grant { .. } | Statement::Revoke { .. } => {
            return Err(unsupported("GRANT and REVOKE"));
        }
        _ => return Err(unsupported("this statement")),
    }
    check_tables(role, statement).await
}

fn unsupported(what: &str) -> StatementError {
    StatementError::new(
        UNSUPPORTED,
        format!("{what} is not supported: released rows are read-only"),
    )
    .with_hint("SELECT reads them; views and tables can be made in your own schema")
}

/// Settings of the engine concern all connections, and its limits.
fn check_set(set: &Set) -> Result<(), StatementError> {
    match set.to_string().to_lowercase().contains("datafusion.") {
        true => Err(StatementError::new(FORBIDDEN, "settings of the engine cannot be changed")),
        false => Ok(()),
    }
}

fn only_reads(query: &Query) -> Result<(), StatementError> {
    let reads = match query.body.as_ref() {
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => false,
        SetExpr::Select(select) => select.into.is_none(),
        _ => true,
    };
    let parts = query.with.iter().flat_map(|with| &with.cte_tables);
    parts.map(|part| &part.query).try_for_each(|query| only_reads(query))?;
    if reads {
        return Ok(());
    }
    Err(StatementError::new(READ_ONLY, "a SELECT that writes is not supported")
        .with_hint("use CREATE TABLE … AS SELECT … in your own schema"))
}

/// A statement that names an encrypted stream gets the planner's words.
async fn check_tables(role: &Role, statement: &Statement) -> Result<(), StatementError> {
    let mut streams = Vec::new();
    for reference in references(role, statement)? {
        if role.engine.table_provider(reference.clone()).await.is_ok() {
            continue;
        }
        if let Some(stream) = role.released.stream(reference.table()) {
            streams.push((reference, stream));
        }
    }
    let Some((_, first)) = streams.first() else { return Ok(()) };
    Err(role.planner.refuse(first, &as_asked(statement, &streams)).await)
}

/// The statement as the planner reads it: with the schemas' own names, wherever they stand.
fn as_asked(statement: &Statement, streams: &[(TableReference, String)]) -> String {
    let mut asked = statement.clone();
    let _ = visit_relations_mut(&mut asked, |name| {
        let named = parts(name).unwrap_or_default();
        let is_named = |own: &TableReference| {
            [own.catalog(), own.schema(), Some(own.table())].into_iter().flatten().eq(&named)
        };
        if let Some((_, stream)) = streams.iter().find(|(own, _)| is_named(own)) {
            *name = ObjectName::from(vec![Ident::new(stream)]);
        }
        ControlFlow::<()>::Continue(())
    });
    match asked {
        Statement::CreateTable(CreateTable { query: Some(query), .. }) => query.to_string(),
        Statement::CreateView(CreateView { query, .. }) => query.to_string(),
        Statement::Explain { statement, .. } => statement.to_string(),
        other => other.to_string(),
    }
}

/// The tables that a statement names.
fn references(role: &Role, statement: &Statement) -> Result<Vec<TableReference>, StatementError> {
    let parsed = Parsed::Statement(Box::new(statement.clone()));
    Ok(role.engine.state().resolve_table_references(&parsed)?)
}

/// The tables that a query reads, by schema.
fn reads(role: &Role, query: &Query) -> Result<Vec<Name>, StatementError> {
    let all = references(role, &Statement::Query(Box::new(query.clone())))?.into_iter();
    let name = |reference: TableReference| {
        let resolved = reference.resolve(DATABASE, &role.name);
        let schema = resolved.schema.to_string();
        Name { schema, table: resolved.table.to_string() }
    };
    Ok(all.map(name).collect())
}

/// Carries out a statement that changes a role's own schemas.
pub(crate) async fn act(
    role: &Role,
    statement: &Statement,
    transaction: Option<i32>,
) -> Result<Outcome, StatementError> {
    match statement {
        Statement::CreateTable(create) => create_table(role, create, transaction).await,
        Statement::CreateView(create) => create_view(role, create, transaction).await,
        Statement::CreateSchema { schema_name, if_not_exists, .. } => {
            let (SchemaName::Simple(name) | SchemaName::NamedAuthorization(name, _)) = schema_name
            else {
                return Err(unsupported("a schema without a name"));
            };
            let name = last(name)?;
            role.scratch.add_schema(&name, *if_not_exists).map(|()| Outcome::tag("CREATE SCHEMA"))
        }
        Statement::AlterTable(alter) => rename(role, alter, transaction),
        Statement::Drop { .. } => drop_all(role, statement, transaction),
        Statement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => {
                change(role, name, statement, ("INSERT", transaction)).await
            }
            _ => Err(unsupported("INSERT into anything but a table")),
        },
        Statement::Update(update) => {
            change(role, named(&update.table)?, statement, ("UPDATE", transaction)).await
        }
        Statement::Delete(delete) => {
            change(role, emptied(delete)?, statement, ("DELETE", transaction)).await
        }
        Statement::Truncate(truncate) => empty_all(role, truncate, transaction).await,
        Statement::Comment { .. } => Ok(Outcome::tag("COMMENT")),
        Statement::Discard { .. } => Ok(Outcome::tag("DISCARD ALL")),
        Statement::Deallocate { .. } => Ok(Outcome::tag("DEALLOCATE")),
        _ => Err(unsupported("this statement")),
    }
}

fn drop_all(
    role: &Role,
    statement: &Statement,
    transaction: Option<i32>,
) -> Result<Outcome, StatementError> {
    let Statement::Drop { object_type, if_exists, names, cascade, .. } = statement else {
        return Err(unsupported("this statement"));
    };
    names.iter().try_for_each(|name| {
        drop_one(role, (object_type, name), (*if_exists, *cascade), transaction)
    })?;
    Ok(Outcome::tag(match object_type {
        ObjectType::Table => "DROP TABLE",
        ObjectType::Schema => "DROP SCHEMA",
        _ => "DROP VIEW",
    }))
}

async fn empty_all(
    role: &Role,
    truncate: &Truncate,
    transaction: Option<i32>,
) -> Result<Outcome, StatementError> {
    for target in &truncate.table_names {
        let none = format!("SELECT * FROM {} WHERE false", target.name);
        let name = role.scratch.own(&parts(&target.name)?)?;
        role.scratch.copied(&name, None)?;
        let (entry, _) = role.scratch.fill(role.engine.sql(&none).await?).await?;
        role.scratch.put(name, Some(entry), transaction);
    }
    Ok(Outcome::tag("TRUNCATE TABLE"))
}

/// The table that a DELETE concerns.
fn emptied(delete: &Delete) -> Result<&ObjectName, StatementError> {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    match (from.as_slice(), &delete.using) {
        ([table], None) => named(table),
        _ => Err(unsupported("DELETE with several tables")),
    }
}

async fn create_table(
    role: &Role,
    create: &CreateTable,
    transaction: Option<i32>,
) -> Result<Outcome, StatementError> {
    if create.external
        || create.like.is_some()
        || create.clone.is_some()
        || create.location.is_some()
    {
        return Err(unsupported("a table of this kind"));
    }
    let name = role.scratch.own(&parts(&create.name)?)?;
    let (tag, query) = match &create.query {
        Some(query) => ("SELECT", query.to_string()),
        None => ("CREATE TABLE", empty(create)?),
    };
    if role.scratch.get(&name).is_some() && create.if_not_exists {
        return Ok(Outcome::tag("CREATE TABLE"));
    }
    if !create.or_replace {
        role.scratch.free(&name)?;
    }
    let (entry, rows) = role.scratch.fill(role.engine.sql(&query).await?).await?;
    role.scratch.put(name, Some(entry), transaction);
    Ok(Outcome { tag, rows: create.query.as_ref().map(|_| rows) })
}

/// A query without rows that has the columns of a table.
fn empty(create: &CreateTable) -> Result<String, StatementError> {
    if create.columns.is_empty() {
        return Err(StatementError::new(SYNTAX, "a table needs columns"));
    }
    let column = |own: &datafusion::sql::sqlparser::ast::ColumnDef| {
        format!("CAST(NULL AS {}) AS {}", own.data_type, own.name)
    };
    let columns: Vec<String> = create.columns.iter().map(column).collect();
    Ok(format!("SELECT {} WHERE false", columns.join(", ")))
}

async fn create_view(
    role: &Role,
    create: &CreateView,
    transaction: Option<i32>,
) -> Result<Outcome, StatementError> {
    if create.materialized {
        return Err(unsupported("a materialised view"));
    }
    let name = role.scratch.own(&parts(&create.name)?)?;
    match role.scratch.get(&name) {
        Some(_) if create.if_not_exists => return Ok(Outcome::tag("CREATE VIEW")),
        Some(Entry::View(..)) if create.or_replace => {}
        _ => role.scratch.free(&name)?,
    }
    if !create.columns.is_empty() {
        return Err(unsupported("a view with a list of columns; name them in the SELECT"));
    }
    let sql = create.query.to_string();
    only_reads(&create.query)?;
    // What cannot be planned now could not be read either.
    role.engine.state().create_logical_plan(&sql).await?;
    let view = role.scratch.view(&name, sql, reads(role, &create.query)?)?;
    role.scratch.put(name, Some(view), transaction);
    Ok(Outcome::tag("CREATE VIEW"))
}

fn rename(
    role: &Role,
    alter: &AlterTable,
    transaction: Option<i32>,
) -> Result<Outcome, StatementError> {
    let [AlterTableOperation::RenameTable { table_name }] = alter.operations.as_slice() else {
        return Err(unsupported("ALTER TABLE of anything but a name"));
    };
    let (RenameTableNameKind::As(to) | RenameTableNameKind::To(to)) = table_name;
    let from = role.scratch.own(&parts(&alter.name)?)?;
    let to = Name { schema: from.schema.clone(), table: last(to)? };
    let Some(entry) = role.scratch.get(&from) else {
        return if alter.if_exists {
            Ok(Outcome::tag("ALTER TABLE"))
        } else {
            Err(Scratch::missing(&from))
        };
    };
    role.scratch.free(&to)?;
    role.scratch.check_rename(&to, &entry)?;
    role.scratch.put(from, None, transaction);
    role.scratch.put(to, Some(entry), transaction);
    Ok(Outcome::tag("ALTER TABLE"))
}

fn drop_one(
    role: &Role,
    (kind, name): (&ObjectType, &ObjectName),
    (if_exists, cascade): (bool, bool),
    transaction: Option<i32>,
) -> Result<(), StatementError> {
    if *kind == ObjectType::Schema {
        let schema = last(name)?;
        return match role.scratch.owns(&schema) {
            true => role.scratch.drop_schema(&schema, cascade),
            false if if_exists => Ok(()),
            false => Err(StatementError::new(
                FORBIDDEN,
                format!("`{schema}` is not a schema of `{}`", role.name),
            )),
        };
    }
    if !matches!(kind, ObjectType::Table | ObjectType::View | ObjectType::MaterializedView) {
        return Err(unsupported("DROP of this kind"));
    }
    let name = role.scratch.own(&parts(name)?)?;
    if role.scratch.get(&name).is_none() {
        return if if_exists { Ok(()) } else { Err(Scratch::missing(&name)) };
    }
    for reader in role.scratch.readers(&name) {
        if !cascade {
            let what = format!("the view `{reader}` reads `{name}`");
            return Err(StatementError::new(crate::refusal::DEPENDED_ON, what)
                .with_hint("DROP … CASCADE drops both"));
        }
        let view = ObjectName::from(vec![
            Ident::with_quote('"', &reader.schema),
            Ident::with_quote('"', &reader.table),
        ]);
        drop_one(role, (&ObjectType::View, &view), (true, true), transaction)?;
    }
    role.scratch.put(name, None, transaction);
    Ok(())
}

/// Changes rows of a table of the role.
async fn change(
    role: &Role,
    name: &ObjectName,
    statement: &Statement,
    (tag, transaction): (&'static str, Option<i32>),
) -> Result<Outcome, StatementError> {
    let name = role.scratch.own(&parts(name)?)?;
    role.scratch.copied(&name, transaction)?;
    let rows = count(role.engine.sql(&statement.to_string()).await?).await?;
    Ok(Outcome { tag, rows: Some(rows) })
}

/// How many rows a statement says that it has changed.
async fn count(changed: DataFrame) -> Result<usize, StatementError> {
    let batches = changed.collect().await?;
    let counts = batches
        .iter()
        .filter_map(|batch| batch.columns().first()?.as_primitive_opt::<UInt64Type>());
    let sum: u64 = counts.flat_map(|own| own.iter().flatten()).sum();
    Ok(usize::try_from(sum).unwrap_or(usize::MAX))
}

fn named(table: &TableWithJoins) -> Result<&ObjectName, StatementError> {
    match (&table.relation, table.joins.as_slice()) {
        (TableFactor::Table { name, .. }, []) => Ok(name),
        _ => Err(unsupported("changing anything but a table")),
    }
}

/// The parts of a name. Those that are not quoted are in lower case.
fn parts(name: &ObjectName) -> Result<Vec<String>, StatementError> {
    let part = |part: &datafusion::sql::sqlparser::ast::ObjectNamePart| {
        let ident = part.as_ident()?;
        Some(if ident.quote_style.is_some() {
            ident.value.clone()
        } else {
            ident.value.to_lowercase()
        })
    };
    let all: Option<Vec<String>> = name.0.iter().map(part).collect();
    all.ok_or_else(|| StatementError::new(SYNTAX, format!("`{name}` is not a name")))
}

fn last(name: &ObjectName) -> Result<String, StatementError> {
    parts(name)?.pop().ok_or_else(|| StatementError::new(SYNTAX, "a name is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    #[test]
    fn the_planner_reads_the_schemas_own_names() {
        let streams = [
            (TableReference::bare("meters"), "Meters".to_owned()),
            (TableReference::partial("ann", "pipes"), "Pipes".to_owned()),
        ];
        for (said, asked) in [
            ("SELECT avg(a) FROM meters", "SELECT avg(a) FROM Meters"),
            (
                "SELECT 1 FROM load JOIN METERS AS m ON true",
                "SELECT 1 FROM load JOIN Meters AS m ON true",
            ),
            ("SELECT 1 FROM load, meters, ann.pipes", "SELECT 1 FROM load, Meters, Pipes"),
            (
                "CREATE TABLE t AS SELECT 'FROM meters' FROM \"meters\"",
                "SELECT 'FROM meters' FROM Meters",
            ),
            (
                "SELECT (SELECT max(b) FROM meters) FROM ann.meters",
                "SELECT (SELECT max(b) FROM Meters) FROM ann.meters",
            ),
        ] {
            let statement = Parser::parse_sql(&PostgreSqlDialect {}, said).unwrap().remove(0);
            assert_eq!(as_asked(&statement, &streams), asked);
        }
    }
}
