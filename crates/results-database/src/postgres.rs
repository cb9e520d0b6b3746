//! The Postgres protocol: logins by SCRAM, and what a role may run.

use crate::database::Database;
use crate::failure::ProgramError;
use crate::gate::{Gate, Guest};
use crate::refusal::{CROWDED, NOT_LOGGED_IN, explain};
use crate::role::{Role, views_as_tables};
use crate::roles::{ITERATIONS, Roles};
use crate::scratch::Scratch;
use crate::statements::{self, Outcome};
use crate::tls::Tls;
use async_trait::async_trait;
use datafusion::common::{DFSchema, ParamValues};
use datafusion::logical_expr::{EmptyRelation, LogicalPlan};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion_postgres::DfSessionService;
use datafusion_postgres::hooks::cursor::CursorStatementHook;
use datafusion_postgres::hooks::set_show::SetShowHook;
use datafusion_postgres::hooks::transactions::TransactionStatementHook;
use datafusion_postgres::hooks::{HookClient, QueryHook};
use datafusion_postgres::pgwire::api::auth::sasl::SASLAuthStartupHandler;
use datafusion_postgres::pgwire::api::auth::sasl::scram::ScramAuth;
use datafusion_postgres::pgwire::api::auth::{DefaultServerParameterProvider, StartupHandler};
use datafusion_postgres::pgwire::api::cancel::{CancelHandler, DefaultCancelHandler};
use datafusion_postgres::pgwire::api::portal::{Format, Portal};
use datafusion_postgres::pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler};
use datafusion_postgres::pgwire::api::results::{FieldInfo, Response, Tag};
use datafusion_postgres::pgwire::api::stmt::QueryParser;
use datafusion_postgres::pgwire::api::store::PortalStore;
use datafusion_postgres::pgwire::api::{
    ClientInfo, ClientPortalStore, ConnectionManager, ErrorHandler, PgWireConnectionState,
    PgWireServerHandlers, Type,
};
use datafusion_postgres::pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use datafusion_postgres::pgwire::messages::response::TransactionStatus;
use datafusion_postgres::pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use datafusion_postgres::pgwire::tokio::process_socket;
use futures::Sink;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::net::TcpListener;

/// What a role may run, beside what the engine runs.
struct OwnStatements(Arc<Role>);

impl OwnStatements {
    async fn run(
        &self,
        statement: &Statement,
        client: &mut dyn HookClient,
    ) -> Option<PgWireResult<Response>> {
        let role = &self.0;
        let (connection, _) = client.pid_and_secret_key();
        let status = client.transaction_status();
        match statement {
            Statement::StartTransaction { .. } if status == TransactionStatus::Idle => {
                role.scratch.begin(connection);
                let scratch = Arc::clone(&role.scratch);
                let open = || OpenTransaction { scratch, connection };
                client.session_extensions().get_or_insert_with(open);
            }
            Statement::Commit { .. } if status != TransactionStatus::Error => {
                role.scratch.commit(connection)
            }
            Statement::Commit { .. } | Statement::Rollback { .. } => {
                role.scratch.roll_back(connection)
            }
            // The hook of transactions refuses it.
            _ if status == TransactionStatus::Error => return None,
            _ => {}
        }
        if let Err(refusal) = statements::check(role, statement).await {
            return Some(Err(refusal.into()));
        }
        if !statements::is_own(statement) {
            return None;
        }
        let transaction = (status == TransactionStatus::Transaction).then_some(connection);
        let done = statements::act(role, statement, transaction).await;
        Some(done.map(response).map_err(PgWireError::from))
    }
}

/// Goes with its connection: a transaction that was not ended is undone.
struct OpenTransaction {
    scratch: Arc<Scratch>,
    connection: i32,
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        self.scratch.roll_back(self.connection);
    }
}

fn response(done: Outcome) -> Response {
    let tag = Tag::new(done.tag);
    Response::Execution(match done.rows {
        Some(rows) if done.tag == "INSERT" => tag.with_oid(0).with_rows(rows),
        Some(rows) => tag.with_rows(rows),
        None => tag,
    })
}

#[async_trait]
impl QueryHook for OwnStatements {
    async fn handle_simple_query(
        &self,
        statement: &Statement,
        _: &SessionContext,
        client: &mut dyn HookClient,
    ) -> Option<PgWireResult<Response>> {
        self.run(statement, client).await
    }

    async fn handle_extended_parse_query(
        &self,
        statement: &Statement,
        _: &SessionContext,
        _: &(dyn ClientInfo + Send + Sync),
    ) -> Option<PgWireResult<LogicalPlan>> {
        if let Err(refusal) = statements::check(&self.0, statement).await {
            return Some(Err(refusal.into()));
        }
        let schema = Arc::new(DFSchema::empty());
        let nothing = EmptyRelation { produce_one_row: false, schema };
        statements::is_own(statement).then(|| Ok(LogicalPlan::EmptyRelation(nothing)))
    }

    async fn handle_extended_query(
        &self,
        statement: &Statement,
        _: &LogicalPlan,
        _: &ParamValues,
        _: &SessionContext,
        client: &mut dyn HookClient,
    ) -> Option<PgWireResult<Response>> {
        self.run(statement, client).await
    }
}

/// A role and what answers its clients.
struct Service {
    role: Arc<Role>,
    inner: DfSessionService,
}

/// What answers one client.
struct Connection {
    handlers: Arc<Handlers>,
    guest: Arc<Guest>,
}

/// What answers all clients. Each is sent to its role's own service.
struct Handlers {
    services: Arc<Services>,
    roles: Arc<Roles>,
    connections: Arc<ConnectionManager>,
    certificate: Option<Vec<u8>>,
}

struct Services {
    by_role: BTreeMap<String, Service>,
    /// Reads what is the same for all roles.
    parser: Arc<Parser>,
}

/// Reads statements of the extended protocol.
struct Parser {
    by_role: BTreeMap<String, (Arc<Role>, Arc<datafusion_postgres::Parser>)>,
    any: Arc<datafusion_postgres::Parser>,
}

type PreparedStatement = <DfSessionService as ExtendedQueryHandler>::Statement;

/// That a client has logged in. The library also reads statements after a login that has failed.
struct LoggedIn;

/// The role of a client that has logged in.
fn user<C: ClientInfo + ?Sized>(client: &C) -> PgWireResult<&str> {
    let is_logged_in = client.session_extensions().get::<LoggedIn>().is_some();
    let name = client.metadata().get("user").filter(|_| is_logged_in);
    name.map(String::as_str).ok_or_else(|| fatal(NOT_LOGGED_IN, "log in first"))
}

/// An error that ends the connection.
fn fatal(code: &str, message: &str) -> PgWireError {
    let info = ErrorInfo::new("FATAL".to_owned(), code.to_owned(), message.to_owned());
    PgWireError::UserError(Box::new(info))
}

impl Services {
    fn of<C: ClientInfo>(&self, client: &C) -> PgWireResult<&Service> {
        self.by_role.get(user(client)?).ok_or(PgWireError::UserNameRequired)
    }
}

/// A login by SCRAM, with a place for those who succeed.
struct Login {
    scram: SASLAuthStartupHandler<DefaultServerParameterProvider>,
    guest: Arc<Guest>,
}

#[async_trait]
impl StartupHandler for Login {
    async fn on_startup<C>(
        &self,
        client: &mut C,
        message: PgWireFrontendMessage,
    ) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let answered = self.scram.on_startup(client, message).await;
        if matches!(answered, Err(PgWireError::InvalidPassword(_))) {
            self.guest.wrong_password().await;
        }
        answered?;
        if matches!(client.state(), PgWireConnectionState::ReadyForQuery) {
            let name = client.metadata().get("user").map(String::as_str).unwrap_or_default();
            self.guest.admit(name).map_err(|why| fatal(CROWDED, &why.to_string()))?;
            client.session_extensions().insert(LoggedIn);
        }
        Ok(())
    }
}

#[async_trait]
impl SimpleQueryHandler for Services {
    async fn do_query<C>(&self, client: &mut C, query: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let service = self.of(client)?;
        service.role.parse(query).await?;
        SimpleQueryHandler::do_query(&service.inner, client, &views_as_tables(query)).await
    }
}

#[async_trait]
impl ExtendedQueryHandler for Services {
    type Statement = PreparedStatement;
    type QueryParser = Parser;

    fn query_parser(&self) -> Arc<Parser> {
        Arc::clone(&self.parser)
    }

    async fn do_query<C>(
        &self,
        client: &mut C,
        portal: &Portal<PreparedStatement>,
        max_rows: usize,
    ) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = PreparedStatement>,
        C::Error: std::fmt::Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let service = self.of(client)?;
        ExtendedQueryHandler::do_query(&service.inner, client, portal, max_rows).await
    }
}

#[async_trait]
impl QueryParser for Parser {
    type Statement = PreparedStatement;

    async fn parse_sql<C>(
        &self,
        client: &C,
        sql: &str,
        types: &[Option<Type>],
    ) -> PgWireResult<Option<PreparedStatement>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        let own = self.by_role.get(user(client)?);
        let (role, parser) = own.ok_or(PgWireError::UserNameRequired)?;
        role.parse(sql).await?;
        parser.parse_sql(client, &views_as_tables(sql), types).await
    }

    fn get_parameter_types(&self, statement: &PreparedStatement) -> PgWireResult<Vec<Type>> {
        self.any.get_parameter_types(statement)
    }

    fn get_result_schema(
        &self,
        statement: &PreparedStatement,
        format: Option<&Format>,
    ) -> PgWireResult<Vec<FieldInfo>> {
        self.any.get_result_schema(statement, format)
    }
}

struct ErrorExplainer;

impl ErrorHandler for ErrorExplainer {
    fn on_error<C: ClientInfo>(&self, _: &C, error: &mut PgWireError) {
        explain(error);
    }
}

impl PgWireServerHandlers for Connection {
    fn simple_query_handler(&self) -> Arc<impl SimpleQueryHandler> {
        Arc::clone(&self.handlers.services)
    }

    fn extended_query_handler(&self) -> Arc<impl ExtendedQueryHandler> {
        Arc::clone(&self.handlers.services)
    }

    fn startup_handler(&self) -> Arc<impl StartupHandler> {
        let shared = &self.handlers;
        let mut scram = ScramAuth::new(Arc::<Roles>::clone(&shared.roles));
        scram.set_iterations(ITERATIONS);
        // Read when the program started, so it is a certificate. Some have algorithms that cannot be bound to.
        if let Some(certificate) = &shared.certificate {
            let _ = scram.configure_certificate(certificate);
        }
        let mut said = DefaultServerParameterProvider::default();
        (said.is_superuser, said.search_path) = (false, "\"$user\", released".to_owned());
        let handler = SASLAuthStartupHandler::new(Arc::new(said)).with_scram(scram);
        let scram = handler.with_connection_manager(Arc::clone(&shared.connections));
        Arc::new(Login { scram, guest: Arc::clone(&self.guest) })
    }

    fn error_handler(&self) -> Arc<impl ErrorHandler> {
        Arc::new(ErrorExplainer)
    }

    fn cancel_handler(&self) -> Arc<impl CancelHandler> {
        Arc::new(DefaultCancelHandler::new(Arc::clone(&self.handlers.connections)))
    }
}

fn services(database: &Database) -> Option<Services> {
    let hooks = |role: &Arc<Role>| -> Vec<Arc<dyn QueryHook>> {
        vec![
            Arc::new(OwnStatements(Arc::clone(role))),
            Arc::new(CursorStatementHook),
            Arc::new(SetShowHook),
            Arc::new(TransactionStatementHook),
        ]
    };
    let service = |role: &Arc<Role>| Service {
        role: Arc::clone(role),
        inner: DfSessionService::new_with_hooks(Arc::clone(&role.engine), hooks(role)),
    };
    let by_role: BTreeMap<String, Service> =
        database.roles().map(|role| (role.name.clone(), service(role))).collect();
    let parsers = by_role.iter().map(|(name, service)| {
        (name.clone(), (Arc::clone(&service.role), service.inner.query_parser()))
    });
    let any = by_role.values().next()?.inner.query_parser();
    let parser = Arc::new(Parser { by_role: parsers.collect(), any });
    Some(Services { by_role, parser })
}

/// Serves clients for as long as the program runs.
pub(crate) async fn serve(
    listener: TcpListener,
    database: &Database,
    roles: Arc<Roles>,
    tls: Option<Tls>,
) -> ProgramError {
    let Some(services) = services(database) else {
        return ProgramError::Serve("there are no roles".to_owned());
    };
    let certificate = tls.as_ref().map(|tls| tls.certificate.clone());
    let connections = Arc::new(ConnectionManager::new());
    let handlers =
        Arc::new(Handlers { services: Arc::new(services), roles, connections, certificate });
    let gate = Gate::default();
    loop {
        let (socket, guest, deadline) = gate.accept(&listener).await;
        let acceptor = tls.as_ref().map(|tls| tls.postgres.clone());
        let handlers = Arc::clone(&handlers);
        tokio::spawn(async move {
            let connection = Connection { handlers, guest: Arc::clone(&guest) };
            tokio::select! {
                // A client that goes without a word is no failure of this program.
                _ = process_socket(socket, acceptor, connection) => {}
                () = deadline.passes(&guest) => {}
            }
        });
    }
}
