//! Why the program ends.

use std::io;
use std::net::SocketAddr;

/// Why the program ends. Each says how to fix it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("{0}: {1}")]
    File(String, #[source] io::Error),
    #[error("{0}: there are no roles; `alpheus-database add-role NAME --roles {0}` adds one")]
    NoRoles(String),
    #[error("{0}: others can read this file of passwords; `chmod 600 {0}` fixes that")]
    OpenRoles(String),
    #[error("{0}: line {1} is not a role; delete it and run `alpheus-database add-role`")]
    Roles(String, usize),
    #[error(
        "`{0}` cannot be the name of a role: use lower-case letters, digits and `_`, with a letter first, and \
         no name of a schema such as `released`"
    )]
    RoleName(String),
    #[error("the operating system returned no random numbers")]
    Random,
    #[error(
        "{0}: line {1} is not a row; save rows with `alpheus query --results NAME --format json`"
    )]
    Row(String, usize),
    #[error("give --server and --identity, or --rows")]
    Nothing,
    #[error("cannot listen at {0}: {1}")]
    Listen(SocketAddr, #[source] io::Error),
    #[error(
        "{0} can be reached from other machines, so passwords and rows need TLS: give --tls-certificate and --tls-key"
    )]
    Plain(SocketAddr),
    #[error("the TLS certificate and key cannot be used: {0}")]
    Tls(String),
    #[error("cannot run `{0}`: {1}; --alpheus says where the program is")]
    Program(String, #[source] io::Error),
    #[error("`alpheus` could not read rows:\n{0}")]
    Feed(String),
    #[error("the engine cannot start: {0}")]
    Engine(#[from] Box<datafusion::error::DataFusionError>),
    #[error("serving ended: {0}")]
    Serve(String),
}
