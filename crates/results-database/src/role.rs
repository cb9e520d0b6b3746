//! A role: its engine, whose connections share it, and its schemas.

use crate::planner::Planner;
use crate::refusal::{SYNTAX, StatementError};
use crate::released_tables::{AboutSchema, ReleasedSchema, ReleasedTables};
use crate::scratch::{DATABASE, Scratch};
use datafusion::arrow::array::{BooleanArray, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::config::Dialect;
use datafusion::error::DataFusionError;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{ColumnarValue, Volatility};
use datafusion::prelude::{SessionConfig, SessionContext, create_udf};
use datafusion::sql::sqlparser::ast::Statement;
use datafusion_postgres::datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_postgres::datafusion_pg_catalog::setup_pg_catalog;
use datafusion_postgres::datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use std::sync::Arc;

/// A role.
pub(crate) struct Role {
    pub(crate) name: String,
    pub(crate) engine: Arc<SessionContext>,
    pub(crate) scratch: Arc<Scratch>,
    pub(crate) released: Arc<ReleasedTables>,
    pub(crate) planner: Arc<Planner>,
    parser: PostgresCompatibilityParser,
}

impl Role {
    /// A role, whose queries share the runtime's memory, and whose tables may use so many bytes.
    pub(crate) fn new(
        name: &str,
        released: Arc<ReleasedTables>,
        planner: Arc<Planner>,
        (runtime, room): (Arc<RuntimeEnv>, usize),
    ) -> Result<Role, DataFusionError> {
        let mut config = SessionConfig::new()
            .with_information_schema(true)
            .with_default_catalog_and_schema(DATABASE, name);
        config.options_mut().sql_parser.dialect = Dialect::PostgreSQL;
        config.options_mut().sql_parser.map_string_types_to_utf8view = false;
        let engine = SessionContext::new_with_config_rt(config, runtime);
        let missing = || DataFusionError::Internal("there is no catalog".to_owned());
        let catalog = engine.catalog(DATABASE).ok_or_else(missing)?;
        catalog.register_schema("released", Arc::new(ReleasedSchema(Arc::clone(&released))))?;
        catalog.register_schema("about", Arc::new(AboutSchema(Arc::clone(&released))))?;
        setup_pg_catalog(&engine, DATABASE, EmptyContextProvider).map_err(|error| *error)?;
        add_functions(&engine, name);
        let scratch = Arc::new(Scratch::new(name, Arc::clone(&released), room));
        scratch.attach(&engine)?;
        let parser = PostgresCompatibilityParser::new();
        Ok(Role {
            name: name.to_owned(),
            engine: Arc::new(engine),
            scratch,
            released,
            planner,
            parser,
        })
    }

    /// The statements of a text.
    ///
    /// # Errors
    /// A [`StatementError`] with the planner's words, if it is a question over an encrypted stream in the language of
    /// `alpheus sql`.
    pub(crate) async fn parse(&self, sql: &str) -> Result<Vec<Statement>, StatementError> {
        match self.parser.parse(&views_as_tables(sql)) {
            Ok(statements) => Ok(statements),
            Err(error) => Err(self.unreadable(sql, &error.to_string()).await),
        }
    }

    /// The answer to a text that is not SQL of Postgres.
    async fn unreadable(&self, sql: &str, error: &str) -> StatementError {
        let question = sql.trim().trim_end_matches(';');
        let word = question.split_whitespace().next().unwrap_or_default().to_uppercase();
        match self.released.stream_in(question) {
            Some(stream) if word == "SELECT" || word == "CREATE" => {
                self.planner.refuse(&stream, question).await
            }
            _ => StatementError::new(SYNTAX, error.trim_start_matches("sql parser error: ")),
        }
    }
}

/// Adds functions of Postgres that clients call and the library lacks.
fn add_functions(engine: &SessionContext, role: &str) {
    let own = role.to_owned();
    let first = move |_: &[ColumnarValue]| {
        Ok(ColumnarValue::Array(Arc::new(StringArray::from(vec![own.as_str()]))))
    };
    let (text, fixed) = (DataType::Utf8, Volatility::Immutable);
    engine.register_udf(create_udf("current_schema", Vec::new(), text, fixed, Arc::new(first)));
    // No schema is temporary.
    let never = |arguments: &[ColumnarValue]| {
        let rows = match arguments.first() {
            Some(ColumnarValue::Array(array)) => array.len(),
            _ => 1,
        };
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(vec![false; rows]))))
    };
    let ids = vec![DataType::Int32];
    let name = "pg_is_other_temp_schema";
    engine.register_udf(create_udf(name, ids, DataType::Boolean, fixed, Arc::new(never)));
}

/// `ALTER VIEW … RENAME` as the parser reads it. Names of views and of tables are of one kind here.
pub(crate) fn views_as_tables(sql: &str) -> String {
    let lower = sql.to_ascii_lowercase();
    let Some(at) = lower.find("alter view ") else { return sql.to_owned() };
    // A text in quotes before it may say the same: then the statement stays as it is.
    let is_first = !sql[..at].contains(['\'', '"']) || sql[..at].trim_end().ends_with("*/");
    if !is_first || !lower[at..].contains(" rename to ") {
        return sql.to_owned();
    }
    format!("{}alter table {}", &sql[..at], &sql[at + "alter view ".len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_renamed_as_a_table() {
        let said = "/* {\"app\": \"dbt\"} */\n  alter view \"a\".\"b\" rename to \"c\"";
        let read = "/* {\"app\": \"dbt\"} */\n  alter table \"a\".\"b\" rename to \"c\"";
        assert_eq!(views_as_tables(said), read);
        let text = "select 'alter view a rename to b'";
        assert_eq!(views_as_tables(text), text);
    }
}
