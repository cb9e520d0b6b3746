//! `alpheus-database`: released rows as a database, on the consumer's own machine.
//!
//! Clients speak the Postgres protocol or Arrow Flight SQL. They read rows that were released, and make views and
//! tables over them in schemas of their own. Nothing that they do asks a service for more than it has released.
//!
//! - [`feed`]: where rows come from, by [`alpheus`], the program that holds the keys,
//! - [`released_tables`], [`columns`]: rows as tables,
//! - [`scratch`]: a role's own schemas,
//! - [`statements`], [`planner`]: which statements may run, and the answers to those that may not,
//! - [`role`], [`database`]: a role's engine, and all roles,
//! - [`postgres`], [`flight`], [`tls`], [`roles`], [`gate`]: the listeners, and who may connect,
//! - [`refusal`], [`failure`]: errors of statements, and of the program.

mod alpheus;
mod columns;
mod database;
mod failure;
mod feed;
mod flight;
mod gate;
mod planner;
mod postgres;
mod refusal;
mod released_tables;
mod role;
mod roles;
mod scratch;
mod statements;
mod tls;

use alpheus::Alpheus;
use clap::{Parser, Subcommand};
use database::Database;
use failure::ProgramError;
use flight::Flight;
use planner::Planner;
use released_tables::ReleasedTables;
use roles::Roles;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tls::Tls;
use tokio::net::TcpListener;
use tokio::sync::watch;

const EXAMPLES: &str = "\
Examples:
  alpheus-database add-role ann --roles roles
  alpheus-database serve --roles roles --server https://localhost:7400 --identity pki/analyst
  alpheus-database serve --roles roles --rows stats.json
  PGPASSWORD=… psql -h localhost -p 5439 -U ann alpheus -c 'SELECT * FROM stats'";

/// Released rows as a database: the Postgres protocol and Arrow Flight SQL
#[derive(Parser)]
#[command(name = "alpheus-database", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Add a role, or give one another password, and print the password
    AddRole {
        /// The name, which is also that of the role's schema
        name: String,
        /// The file of roles
        #[arg(long, value_name = "FILE")]
        roles: PathBuf,
    },
    /// Serve rows until Ctrl-C
    Serve(Box<Serve>),
}

#[derive(clap::Args)]
struct Serve {
    /// The file of roles
    #[arg(long, value_name = "FILE")]
    roles: PathBuf,
    /// The service whose rows are read, with all queries of the consumer
    #[arg(long, value_name = "URL", requires = "identity")]
    server: Option<String>,
    /// The consumer's identity folder. `alpheus` reads it, this program does not
    #[arg(long, value_name = "FOLDER", requires = "server")]
    identity: Option<PathBuf>,
    /// Rows that were saved as JSON; the table has the file's name. May be repeated
    #[arg(long, value_name = "FILE")]
    rows: Vec<PathBuf>,
    /// Where to listen for the Postgres protocol
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5439")]
    listen: SocketAddr,
    /// Where to listen for Flight SQL
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5440")]
    flight: SocketAddr,
    /// A TLS certificate chain in PEM. Without it, only this machine can connect
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// Its private key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Memory of all queries together, and of each role's tables
    #[arg(long, value_name = "MB", default_value = "1024")]
    memory_megabytes: usize,
    /// The program `alpheus`
    #[arg(long, value_name = "FILE", default_value = "alpheus")]
    alpheus: PathBuf,
}

fn main() -> ExitCode {
    let ended = match Cli::parse().command {
        Command::AddRole { name, roles } => {
            roles::add(&roles, &name).map(|password| println!("{password}"))
        }
        Command::Serve(serve) => run(&serve),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Who started it may have closed what it says.
            let _ = writeln!(io::stderr(), "error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(serve: &Serve) -> Result<(), ProgramError> {
    let runtime = tokio::runtime::Runtime::new();
    runtime.map_err(|error| ProgramError::Serve(error.to_string()))?.block_on(async {
        tokio::select! {
            failure = serve.start() => failure,
            _ = tokio::signal::ctrl_c() => Ok(()),
        }
    })
}

impl Serve {
    async fn start(&self) -> Result<(), ProgramError> {
        let tls = match (&self.tls_certificate, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(Tls::read(certificate, key)?),
            _ => None,
        };
        let open =
            [self.listen, self.flight].into_iter().find(|address| !address.ip().is_loopback());
        if let (Some(address), None) = (open, &tls) {
            return Err(ProgramError::Plain(address));
        }
        let roles = Arc::new(Roles::read(&self.roles)?);
        let alpheus = self.server.clone().zip(self.identity.clone());
        let alpheus = alpheus.map(|(server, identity)| Alpheus {
            program: self.alpheus.clone(),
            server,
            identity,
        });
        if alpheus.is_none() && self.rows.is_empty() {
            return Err(ProgramError::Nothing);
        }
        let released = Arc::new(ReleasedTables::default());
        feed::read_files(&self.rows, &released)?;
        let (ready, mut is_ready) = watch::channel(alpheus.is_none());
        let planner = Arc::new(Planner::new(alpheus.clone()));
        let memory = self.memory_megabytes.saturating_mul(1 << 20);
        let database = Arc::new(Database::new(&roles, &released, &planner, memory)?);
        let follow = async {
            match alpheus {
                Some(alpheus) => feed::follow(alpheus, released, ready).await,
                None => std::future::pending().await,
            }
        };
        let serve = async {
            // The sender lives as long as this.
            let _ = is_ready.wait_for(|ready| *ready).await;
            match self.serve(database, roles, tls).await {
                Ok(never) => never,
                Err(failure) => failure,
            }
        };
        Err(tokio::select! { failure = follow => failure, failure = serve => failure })
    }

    async fn serve(
        &self,
        database: Arc<Database>,
        roles: Arc<Roles>,
        tls: Option<Tls>,
    ) -> Result<ProgramError, ProgramError> {
        let (postgres, flight) = (bind(self.listen).await?, bind(self.flight).await?);
        let at = |listener: &TcpListener| {
            listener.local_addr().map_err(|error| ProgramError::Listen(self.listen, error))
        };
        println!("postgres {}", at(&postgres)?);
        println!("flight {}", at(&flight)?);
        let service = Flight::new(Arc::clone(&database), Arc::clone(&roles))?;
        Ok(tokio::select! {
            failure = postgres::serve(postgres, &database, roles, tls.clone()) => failure,
            failure = flight::serve(flight, service, tls) => failure,
        })
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, ProgramError> {
    TcpListener::bind(address).await.map_err(|error| ProgramError::Listen(address, error))
}
