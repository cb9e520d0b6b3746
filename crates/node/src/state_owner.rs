//! Whose a state folder is. Settings of one process that are used for another would mix two states.

use crate::files::{Readers, replace};
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The file that says it, in the state folder.
const FILE: &str = "belongs-to";

/// The state is another process's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} is the state of {whose}, but this is {own}: name another folder, or remove the file `{FILE}` in it if the process was renamed", folder.display()
)]
pub struct OtherStateError {
    folder: PathBuf,
    whose: String,
    own: String,
}

/// Notes in a state folder whose it is, by an identity folder, or checks it. Without an identity nothing is known.
///
/// # Errors
/// It is another's. That it cannot be noted is logged.
pub(crate) fn check(state: &Path, identity: Option<&Path>) -> Result<(), OtherStateError> {
    let own = identity.map(|path| IdentityFolder::open_one_of(path, (Role::Server, &Role::ALL)));
    let Some(Ok(own)) = own else { return Ok(()) };
    let (own, file) = (own.name().to_string(), state.join(FILE));
    let noted: io::Result<()> = match fs::read_to_string(&file) {
        Ok(whose) if whose.trim() == own => Ok(()),
        Ok(whose) => {
            let (folder, whose) = (state.to_owned(), whose.trim().to_owned());
            return Err(OtherStateError { folder, whose, own });
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            replace(&file, format!("{own}\n"), Readers::Owner)
        }
        Err(error) => Err(error),
    };
    if let Err(error) = noted {
        tracing::warn!(%error, "the owner of the state folder could not be recorded");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki;

    #[test]
    fn a_state_of_another_role_or_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pki = folder.path().join("pki");
        let (server, first) = ((Role::Server, "service"), (Role::Controller, "first"));
        pki::make(&pki, &[server, first, (Role::Controller, "second")]).unwrap();
        let state = folder.path().join("state");
        fs::create_dir(&state).unwrap();
        let of = |name: &str| check(&state, Some(&pki.join(name)));
        assert_eq!(check(&state, None), Ok(()));
        assert_eq!((of("first"), of("first")), (Ok(()), Ok(())));
        for other in ["second", "service"] {
            let said = of(other).unwrap_err().to_string();
            assert!(said.contains("alpheus://controller/first") && said.contains(other), "{said}");
        }
        fs::remove_file(state.join(FILE)).unwrap();
        assert_eq!(of("second"), Ok(()));
    }
}
