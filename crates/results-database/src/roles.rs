//! Who may connect. The file of roles has a line for each: its name, and what SCRAM needs to check its password.

use crate::failure::ProgramError;
use async_trait::async_trait;
use data_encoding::HEXLOWER;
use datafusion_postgres::pgwire::api::auth::sasl::scram::gen_salted_password;
use datafusion_postgres::pgwire::api::auth::{AuthSource, LoginInfo, Password};
use datafusion_postgres::pgwire::error::{PgWireError, PgWireResult};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use subtle::ConstantTimeEq;

/// How often a password is hashed. SCRAM's own document asks for this number.
pub(crate) const ITERATIONS: usize = 4096;

/// What a password is compared with.
#[derive(Clone)]
struct SaltedPassword {
    salt: Vec<u8>,
    hash: Vec<u8>,
}

/// The roles of a file.
#[derive(Clone, Default)]
pub(crate) struct Roles {
    known: BTreeMap<String, SaltedPassword>,
    /// A salt for names that nobody has, so that a client does not see that.
    secret: Vec<u8>,
}

impl fmt::Debug for Roles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.known.keys()).finish()
    }
}

/// Schemas that a role could be taken for.
const TAKEN: [&str; 5] = ["released", "about", "public", "pg_catalog", "information_schema"];

/// Whether a role may have this name. It is also the name of its schema.
fn is_name(name: &str) -> bool {
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    let rest =
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    first && rest && name.len() <= 63 && !TAKEN.contains(&name) && !name.starts_with("pg_")
}

impl Roles {
    /// Reads a file that only its user can read.
    pub(crate) fn read(path: &Path) -> Result<Roles, ProgramError> {
        let at = || path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => ProgramError::NoRoles(at()),
            _ => ProgramError::File(at(), error),
        })?;
        let mode = std::fs::metadata(path).map_err(|error| ProgramError::File(at(), error))?;
        if mode.permissions().mode() & 0o077 != 0 {
            return Err(ProgramError::OpenRoles(at()));
        }
        let mut known = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let (name, salted) =
                read_line(line).ok_or_else(|| ProgramError::Roles(at(), number + 1))?;
            known.insert(name, salted);
        }
        if known.is_empty() {
            return Err(ProgramError::NoRoles(at()));
        }
        Ok(Roles { known, secret: random(16)? })
    }

    /// The names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.known.keys()
    }

    /// Whether this is the role's password.
    pub(crate) fn admits(&self, name: &str, password: &str) -> bool {
        let own = self.known.get(name);
        let (salt, hash) = match own {
            Some(own) => (own.salt.as_slice(), own.hash.as_slice()),
            None => (self.secret.as_slice(), [0; 32].as_slice()),
        };
        let same = gen_salted_password(password, salt, ITERATIONS).ct_eq(hash);
        bool::from(same) && own.is_some()
    }
}

fn read_line(line: &str) -> Option<(String, SaltedPassword)> {
    let mut parts = line.split(' ');
    let (name, salt, hash) = (parts.next()?, parts.next()?, parts.next()?);
    let salt = HEXLOWER.decode(salt.as_bytes()).ok()?;
    let hash = HEXLOWER.decode(hash.as_bytes()).ok().filter(|hash| hash.len() == 32)?;
    (is_name(name) && parts.next().is_none())
        .then(|| (name.to_owned(), SaltedPassword { salt, hash }))
}

fn random(bytes: usize) -> Result<Vec<u8>, ProgramError> {
    let mut drawn = vec![0; bytes];
    getrandom::fill(&mut drawn).map_err(|_| ProgramError::Random)?;
    Ok(drawn)
}

/// Adds a role with a new password, and returns it. A role that is there gets another one.
pub(crate) fn add(path: &Path, name: &str) -> Result<String, ProgramError> {
    if !is_name(name) {
        return Err(ProgramError::RoleName(name.to_owned()));
    }
    let at = |error| ProgramError::File(path.display().to_string(), error);
    let others = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(at(error)),
    };
    let (password, salt) = (HEXLOWER.encode(&random(16)?), random(16)?);
    let hash = gen_salted_password(&password, &salt, ITERATIONS);
    let own = format!("{name} ");
    let kept = others.lines().filter(|line| !line.starts_with(&own));
    let line = format!("{own}{} {}", HEXLOWER.encode(&salt), HEXLOWER.encode(&hash));
    let text: String = kept.chain([line.as_str()]).flat_map(|line| [line, "\n"]).collect();
    let beside = path.with_extension("new");
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).create(true).truncate(true).mode(0o600).open(&beside).map_err(at)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(at)?;
    std::fs::rename(&beside, path).map_err(at)?;
    Ok(password)
}

#[async_trait]
impl AuthSource for Roles {
    async fn get_password(&self, login: &LoginInfo) -> PgWireResult<Password> {
        let name = login.user().ok_or(PgWireError::UserNameRequired)?;
        let none = || SaltedPassword { salt: self.secret.clone(), hash: vec![0; 32] };
        let own = self.known.get(name).cloned();
        // Nobody knows what hashes to zeros.
        let SaltedPassword { salt, hash } = own.unwrap_or_else(none);
        Ok(Password::new(Some(salt), hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_the_password_that_was_printed_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("roles");
        let first = add(&path, "ann").unwrap();
        let (other, second) = (add(&path, "bob").unwrap(), add(&path, "ann").unwrap());
        let roles = Roles::read(&path).unwrap();
        assert!(roles.admits("ann", &second) && roles.admits("bob", &other));
        assert!(!roles.admits("ann", &first) && !roles.admits("ann", &other));
        assert!(!roles.admits("eve", &second) && !roles.admits("eve", ""));
        assert!(!std::fs::read_to_string(&path).unwrap().contains(&second));
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("roles");
        add(&path, "ann").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Roles::read(&path), Err(ProgramError::OpenRoles(_))));
        assert!(matches!(Roles::read(&folder.path().join("none")), Err(ProgramError::NoRoles(_))));
    }

    #[test]
    fn a_name_is_one_of_a_schema() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["released", "pg_x", "Ann", "a b", "", "1a", "a;drop"] {
            assert!(add(&folder.path().join("roles"), name).is_err(), "{name:?}");
        }
    }
}
