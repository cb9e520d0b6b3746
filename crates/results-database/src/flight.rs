//! Arrow Flight SQL: the same statements as by the Postgres protocol, with rows as Arrow batches.

use crate::database::{self, Answer, Database};
use crate::failure::ProgramError;
use crate::gate::{Connection, Gate, Guest};
use crate::refusal::{SYNTAX, StatementError};
use crate::role::Role;
use crate::roles::Roles;
use crate::scratch::DATABASE;
use crate::statements;
use crate::tls::Tls;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::server::{FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest,
    ActionCreatePreparedStatementResult, CommandGetCatalogs, CommandGetDbSchemas,
    CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, CommandStatementQuery, CommandStatementUpdate, ProstMessageExt,
    SqlInfo, TicketStatementQuery,
};
use arrow_flight::{
    Action, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest, HandshakeResponse,
    IpcMessage, SchemaAsIpc, Ticket,
};
use data_encoding::{BASE64_NOPAD, HEXLOWER};
use datafusion::arrow::array::Int64Array;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::ipc::writer::IpcWriteOptions;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::TableType;
use datafusion::sql::sqlparser::ast::Statement;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use prost::Message;
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

/// What clients call.
#[derive(Clone)]
pub(crate) struct Flight {
    database: Arc<Database>,
    roles: Arc<Roles>,
    /// What a client shows after its login, by role. They end with the program.
    tokens: Arc<BTreeMap<String, String>>,
    about: Arc<SqlInfoData>,
}

type Batches = Pin<Box<dyn Stream<Item = Result<RecordBatch, FlightError>> + Send>>;
type Rows = Response<<Flight as FlightService>::DoGetStream>;

fn internal(error: impl std::fmt::Display) -> Status {
    Status::internal(error.to_string())
}

fn denied() -> Status {
    Status::unauthenticated("log in with the name and the password of a role")
}

impl Flight {
    pub(crate) fn new(database: Arc<Database>, roles: Arc<Roles>) -> Result<Flight, ProgramError> {
        let token = |role: &Arc<Role>| {
            let mut drawn = [0; 32];
            getrandom::fill(&mut drawn).map_err(|_| ProgramError::Random)?;
            Ok((role.name.clone(), HEXLOWER.encode(&drawn)))
        };
        let tokens = database.roles().map(token).collect::<Result<_, ProgramError>>()?;
        let mut about = SqlInfoDataBuilder::new();
        about.append(SqlInfo::FlightSqlServerName, "Alpheus results database");
        about.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
        about.append(SqlInfo::FlightSqlServerArrowVersion, datafusion::arrow::ARROW_VERSION);
        about.append(SqlInfo::FlightSqlServerReadOnly, false);
        about.append(SqlInfo::FlightSqlServerTransaction, 0i32);
        let about = about.build().map_err(|error| ProgramError::Serve(error.to_string()))?;
        Ok(Flight { database, roles, tokens: Arc::new(tokens), about: Arc::new(about) })
    }

    /// Who calls. A wrong password is refused after a while.
    fn role<'a, T>(
        &'a self,
        request: &Request<T>,
    ) -> impl Future<Output = Result<&'a Arc<Role>, Status>> + Send + use<'a, T> {
        let guest = request.extensions().get::<Arc<Guest>>().cloned();
        let found = self.shown(request.metadata());
        async move {
            let (Some(guest), Some((name, is_right))) = (guest, found) else {
                return Err(denied());
            };
            if !is_right {
                guest.wrong_password().await;
                return Err(denied());
            }
            let role = self.database.role(&name).ok_or_else(denied)?;
            guest.admit(&name).map_err(|why| Status::resource_exhausted(why.to_string()))?;
            Ok(role)
        }
    }

    /// The name that a client shows, and whether it is right: by what it got after its login, or by its password.
    fn shown(&self, metadata: &MetadataMap) -> Option<(String, bool)> {
        let shown = metadata.get("authorization")?.to_str().ok()?;
        let (kind, shown) = shown.split_once(' ')?;
        if kind.eq_ignore_ascii_case("bearer") {
            let same = |own: &String| bool::from(own.as_bytes().ct_eq(shown.as_bytes()));
            return self
                .tokens
                .iter()
                .find(|(_, own)| same(own))
                .map(|(name, _)| (name.clone(), true));
        }
        // Drivers in Go leave the padding out.
        let login = BASE64_NOPAD.decode(shown.trim_end_matches('=').as_bytes()).ok()?;
        let login = String::from_utf8(login).ok()?;
        let (name, password) = login.split_once(':')?;
        Some((name.to_owned(), self.roles.admits(name, password)))
    }

    /// The one statement of a text.
    async fn statement(role: &Role, sql: &str) -> Result<Statement, Status> {
        let mut all = role.parse(sql).await?;
        match (all.pop(), all.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => Err(StatementError::new(SYNTAX, "send one statement at a time").into()),
        }
    }

    /// The columns of what a text would give. Nothing runs.
    async fn columns(role: &Role, sql: &str) -> Result<SchemaRef, Status> {
        let statement = Self::statement(role, sql).await?;
        statements::check(role, &statement).await?;
        if statements::is_own(&statement) {
            return Ok(changed());
        }
        let rows = role.engine.sql(&statement.to_string()).await.map_err(StatementError::from)?;
        Ok(Arc::new(rows.schema().as_arrow().clone()))
    }

    /// Runs a text.
    async fn run(role: &Role, sql: &str) -> Result<(SchemaRef, Batches), Status> {
        let statement = Self::statement(role, sql).await?;
        match database::run(role, &statement).await? {
            Answer::Changed(done) => {
                let rows = done.rows.and_then(|rows| i64::try_from(rows).ok());
                let column = Arc::new(Int64Array::from(vec![rows]));
                let batch =
                    RecordBatch::try_new(changed(), vec![column]).map_err(FlightError::from);
                Ok((changed(), stream::iter([batch]).boxed()))
            }
            Answer::Rows(rows) => {
                let batches = rows.execute_stream().await.map_err(StatementError::from)?;
                let schema = batches.schema();
                let own = |error| FlightError::from(Status::from(StatementError::from(error)));
                Ok((schema, batches.map_err(own).boxed()))
            }
        }
    }

    /// Runs what changes something, and says how many rows it concerned.
    async fn update(role: &Role, sql: &str) -> Result<i64, Status> {
        let statement = Self::statement(role, sql).await?;
        match database::run(role, &statement).await? {
            Answer::Changed(done) => {
                Ok(done.rows.and_then(|rows| i64::try_from(rows).ok()).unwrap_or(-1))
            }
            Answer::Rows(_) => {
                Err(Status::invalid_argument("this statement gives rows: run it as a query"))
            }
        }
    }
}

/// The column of a statement that changes something.
fn changed() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("rows", DataType::Int64, true)]))
}

fn sent((schema, batches): (SchemaRef, Batches)) -> Rows {
    let encoded = FlightDataEncoderBuilder::new().with_schema(schema).build(batches);
    Response::new(Box::pin(encoded.map_err(Status::from)))
}

fn one(batch: Result<RecordBatch, impl std::fmt::Display>) -> Result<Rows, Status> {
    let batch = batch.map_err(internal)?;
    Ok(sent((batch.schema(), stream::iter([Ok(batch)]).boxed())))
}

/// Where the rows of a command are: here.
fn info(
    command: &impl ProstMessageExt,
    schema: &Schema,
    from: FlightDescriptor,
) -> Result<Response<FlightInfo>, Status> {
    let ticket = Ticket { ticket: command.as_any().encode_to_vec().into() };
    let info = FlightInfo::new().try_with_schema(schema).map_err(internal)?;
    let info = info.with_endpoint(FlightEndpoint::new().with_ticket(ticket)).with_descriptor(from);
    Ok(Response::new(info))
}

fn text(bytes: &[u8]) -> Result<&str, Status> {
    std::str::from_utf8(bytes)
        .map_err(|_| Status::invalid_argument("this handle is not of this server"))
}

#[tonic::async_trait]
impl FlightSqlService for Flight {
    type FlightService = Flight;

    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<
        Response<Pin<Box<dyn Stream<Item = Result<HandshakeResponse, Status>> + Send>>>,
        Status,
    > {
        let role = self.role(&request).await?;
        let token = self.tokens.get(&role.name).cloned().unwrap_or_default();
        let said = HandshakeResponse { protocol_version: 0, payload: token.clone().into() };
        let said: Pin<Box<dyn Stream<Item = _> + Send>> = Box::pin(stream::iter([Ok(said)]));
        let mut response = Response::new(said);
        let header = MetadataValue::try_from(format!("Bearer {token}")).map_err(internal)?;
        response.metadata_mut().append("authorization", header);
        Ok(response)
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let role = self.role(&request).await?;
        let schema = Self::columns(role, &query.query).await?;
        let ticket = TicketStatementQuery { statement_handle: query.query.into() };
        info(&ticket, &schema, request.into_inner())
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        let role = self.role(&request).await?;
        Self::run(role, text(&ticket.statement_handle)?).await.map(sent)
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let role = self.role(&request).await?;
        let schema = Self::columns(role, &query.query).await?;
        let options = IpcWriteOptions::default();
        let encode = |schema: &Schema| -> Result<IpcMessage, Status> {
            IpcMessage::try_from(SchemaAsIpc::new(schema, &options)).map_err(internal)
        };
        Ok(ActionCreatePreparedStatementResult {
            dataset_schema: encode(&schema)?.0,
            parameter_schema: encode(&Schema::empty())?.0,
            prepared_statement_handle: query.query.into(),
        })
    }

    async fn do_action_close_prepared_statement(
        &self,
        _: ActionClosePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        self.role(&request).await.map(drop)
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let role = self.role(&request).await?;
        let schema = Self::columns(role, text(&query.prepared_statement_handle)?).await?;
        info(&query, &schema, request.into_inner())
    }

    async fn do_get_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        let role = self.role(&request).await?;
        Self::run(role, text(&query.prepared_statement_handle)?).await.map(sent)
    }

    async fn do_put_statement_update(
        &self,
        update: CommandStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        Self::update(self.role(&request).await?, &update.query).await
    }

    async fn do_put_prepared_statement_update(
        &self,
        update: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        Self::update(self.role(&request).await?, text(&update.prepared_statement_handle)?).await
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.role(&request).await?;
        info(&query, &query.into_builder().schema(), request.into_inner())
    }

    async fn do_get_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        self.role(&request).await?;
        let mut catalogs = query.into_builder();
        catalogs.append(DATABASE);
        one(catalogs.build())
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.role(&request).await?;
        let schema = query.clone().into_builder().schema();
        info(&query, &schema, request.into_inner())
    }

    async fn do_get_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        let role = self.role(&request).await?;
        let mut schemas = query.into_builder();
        let catalog = role.engine.catalog(DATABASE);
        catalog
            .iter()
            .flat_map(|own| own.schema_names())
            .for_each(|name| schemas.append(DATABASE, name));
        one(schemas.build())
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.role(&request).await?;
        let schema = query.clone().into_builder().schema();
        info(&query, &schema, request.into_inner())
    }

    async fn do_get_tables(
        &self,
        query: CommandGetTables,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        let role = self.role(&request).await?;
        let mut tables = query.into_builder();
        let Some(catalog) = role.engine.catalog(DATABASE) else {
            return Err(internal("no catalog"));
        };
        for name in catalog.schema_names().into_iter().filter(|name| name != "pg_catalog") {
            let Some(schema) = catalog.schema(&name) else { continue };
            for table in schema.table_names() {
                let found = schema.table(&table).await.map_err(StatementError::from)?;
                let Some(found) = found else { continue };
                let kind = if found.table_type() == TableType::View { "VIEW" } else { "TABLE" };
                tables.append(DATABASE, &name, &table, kind, &found.schema()).map_err(internal)?;
            }
        }
        one(tables.build())
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.role(&request).await?;
        info(&query, &query.into_builder().schema(), request.into_inner())
    }

    async fn do_get_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        self.role(&request).await?;
        let mut kinds = query.into_builder();
        ["TABLE", "VIEW"].into_iter().for_each(|kind| kinds.append(kind));
        one(kinds.build())
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        self.role(&request).await?;
        let schema = query.clone().into_builder(&self.about).schema();
        info(&query, &schema, request.into_inner())
    }

    async fn do_get_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<Ticket>,
    ) -> Result<Rows, Status> {
        self.role(&request).await?;
        one(query.into_builder(&self.about).build())
    }

    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}

/// Calls of one client that run at once. Others wait.
const CALLS: usize = 32;

/// Serves clients for as long as the program runs.
pub(crate) async fn serve(listener: TcpListener, flight: Flight, tls: Option<Tls>) -> ProgramError {
    let mut server = Server::builder().concurrency_limit_per_connection(CALLS);
    if let Some(tls) = tls {
        server = match server.tls_config(tls.flight) {
            Ok(server) => server,
            Err(error) => return ProgramError::Tls(error.to_string()),
        };
    }
    let service = server.add_service(FlightServiceServer::new(flight));
    let clients = stream::unfold((listener, Gate::default()), |(listener, gate)| async move {
        let client = Connection::new(gate.accept(&listener).await);
        Some((Ok::<_, io::Error>(client), (listener, gate)))
    });
    match service.serve_with_incoming(clients.boxed()).await {
        Ok(()) => ProgramError::Serve("the listener was closed".to_owned()),
        Err(error) => ProgramError::Serve(error.to_string()),
    }
}
