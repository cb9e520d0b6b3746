//! Certificates of controllers, owners, devices and consumers by an authority for trials. The command
//! `alpheus ca` has them issued.

use crate::deployment::{self, AUTHORITY_SEED};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{self as protocol, Certificate, Party, Subject};
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_text;
use alpheus_node::network::role::{Name, Role};
use alpheus_node::note;
use alpheus_node::pki::{Folder, read_seed};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use std::path::Path;

/// Certifies a party that the authority has not certified before.
///
/// # Errors
/// If the authority's seed cannot be read.
pub fn sign_new(authority: &Folder, request: Party) -> Result<Signed<Certificate>, Failure> {
    let subject = Subject::random(&mut entropy::rng()?);
    Ok(request.certify(subject, &authority_key(authority)?))
}

/// The key of the authority in a folder.
///
/// # Errors
/// If its seed cannot be read.
pub fn authority_key(authority: &Folder) -> Result<SigningKey, Failure> {
    Ok(SigningKey::from_seed(&read_seed(&authority.path(AUTHORITY_SEED))?))
}

/// Signs the request of the controller or owner `name` as a new party with the authority in
/// `folder`, and prints on standard error what it signs.
///
/// # Errors
/// If the request is for another name or role, or the authority's seed cannot be read.
pub fn certify(folder: &Path, request: &Party, name: &str) -> Result<Signed<Certificate>, Failure> {
    check_request(request, name)?;
    sign_new(&Folder::existing(folder), request.clone())
}

/// Signs the request of a party that has a certificate, which it replaces.
///
/// # Errors
/// As [`certify`], and if the certificate is another party's or authority's.
pub fn renewed(
    folder: &Path,
    request: &Party,
    name: &str,
    before: &Path,
) -> Result<Signed<Certificate>, Failure> {
    check_request(request, name)?;
    let key = authority_key(&Folder::existing(folder))?;
    let known = deployment::from_hex(&read_text(before)?);
    let known =
        known.and_then(|signed: Signed<Certificate>| signed.open(&key.verifying_key()).ok());
    let known = known.ok_or("not a certificate of this authority").blame_input(before)?;
    if (known.party.role, known.party.name.as_str()) != (request.role, name) {
        return Err("the certificate is for another role or name than the request")
            .blame_input(before);
    }
    Ok(request.clone().certify(known.subject, &key))
}

fn check_request(request: &Party, name: &str) -> Result<(), Failure> {
    let kind = match request.role {
        protocol::Role::Controller => {
            let (host, rest) = name.split_once('/').unwrap_or((name, "x"));
            for part in [host, rest] {
                Name::new(Role::Controller, part).blame(Category::Usage)?;
            }
            "controller"
        }
        protocol::Role::Owner => {
            Name::new(Role::Owner, name).blame(Category::Usage)?;
            "owner"
        }
        _ => {
            return Err("the request is for neither a controller nor an owner; others are not certified here")
                .blame(Category::Check);
        }
    };
    if request.name != name {
        // The author of the request chose this text.
        let asked: String = request.name.escape_debug().take(64).collect();
        let help = "certify it under that name only if the requester is entitled to it";
        return Err(format!("the request is for the name `{asked}`, not for `{name}`"))
            .blame(Category::Check)
            .map_err(|failure| failure.with_help(help));
    }
    note!("certifying the {kind} `{name}`, key {}", HEXLOWER.encode(request.verifying.as_bytes()));
    Ok(())
}

/// A request as text.
#[must_use]
pub fn request_text(request: &Party) -> String {
    HEXLOWER.encode(&postcard::to_allocvec(request).unwrap_or_default()) + "\n"
}

/// Reads the request of a controller or an owner.
///
/// # Errors
/// If it cannot be read, or is none.
pub fn read_request(path: &Path) -> Result<Party, Failure> {
    let text = read_text(path)?;
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok();
    let request = bytes.and_then(|bytes| postcard::from_bytes(&bytes).ok());
    request
        .ok_or("not a request of `alpheus controller init` or `alpheus owner request`")
        .blame_input(path)
}
