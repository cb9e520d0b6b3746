//! `alpheus owner erase`: destroys a stream's key at the controller and in the device's file.

use super::identity::OwnerIdentity;
use super::{DeviceFile, Owner, StreamArgs};
use crate::deployment::{self, from_hex};
use crate::wire::ControllerView;
use alpheus_crypto::hybrid::HybridPublic;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, Recipient, fingerprint};
use alpheus_encrypted_stream::error::CertificateError;
use alpheus_encrypted_stream::withdrawal::Erasure;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::{Readers, write_new};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::{Name, host_named};
use alpheus_node::note;
use alpheus_policy::ids::StreamId;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(super) struct Erase {
    #[command(flatten)]
    one: StreamArgs,
    /// A device's file to destroy as well; if it is on another machine, remove it there
    #[arg(long, value_name = "FILE")]
    device: Option<PathBuf>,
    /// Where to write the controller's signed statement, as JSON
    #[arg(long, value_name = "FILE")]
    statement: Option<PathBuf>,
}

/// The controller goes first: while it has the key, windows may still include the data.
pub(super) fn erase(args: &Erase) -> Result<(), Failure> {
    let (owner, identity) = Owner::open(&args.one.reach)?;
    let stream = args.one.stream;
    if let Some(path) = &args.device {
        DeviceFile::check(path, &stream)?;
    }
    if let Some(path) = args.statement.as_ref().filter(|path| path.exists()) {
        return Err("the file exists already and is not overwritten").blame_input(path);
    }
    let known = owner.controllers(&identity)?;
    let asked = owner.identity.withdrawal(stream, true);
    let signed: Option<Signed<Erasure>> =
        owner.client.call("/v1/withdrawals", &asked, Duration::ZERO)?;
    let erased = ErasureStatement::of(signed, &known, &owner.identity, &stream)?;
    if let Some(path) = &args.statement {
        write_new(path, erased.statement()?.as_bytes(), Readers::Owner)?;
    }
    if let Some(path) = &args.device {
        DeviceFile::destroy(path)?;
    }
    println!("controller {} has destroyed the key of {stream}", erased.said.controller);
    if args.device.is_none() {
        note!("the device's file holds the key too: remove it with `shred -u` on the device");
    }
    Ok(())
}

/// A controller's statement that it has destroyed a stream's key.
pub struct ErasureStatement {
    said: Erasure,
    signed: Signed<Erasure>,
    certificate: Certificate,
}

impl ErasureStatement {
    /// Checks that one of these controllers has signed it, about a stream of this owner.
    ///
    /// # Errors
    /// If none has.
    pub fn of(
        signed: Option<Signed<Erasure>>,
        known: &[Recipient],
        owner: &OwnerIdentity,
        stream: &StreamId,
    ) -> Result<ErasureStatement, Failure> {
        let wrong = "the controller did not sign that it has erased the stream";
        let signed = signed.ok_or(wrong).blame(Category::Check)?;
        let opened = known.iter().map(Recipient::certificate).find_map(|certificate| {
            let from = (&fingerprint(certificate), &certificate.party.verifying);
            let said = Erasure::open(&signed, from, stream).ok()?.into_inner();
            (said.owner == owner.certified.id()).then(|| (said, certificate.clone().into_inner()))
        });
        let (said, certificate) = opened.ok_or(wrong).blame(Category::Check)?;
        Ok(ErasureStatement { said, signed, certificate })
    }

    /// Everything that is needed to check the statement later, as JSON.
    ///
    /// # Errors
    /// None in practice.
    pub fn statement(&self) -> Result<String, Failure> {
        let ErasureStatement { said, signed, certificate } = self;
        let hex = |bytes: Result<Vec<u8>, postcard::Error>| {
            bytes.map(|bytes| HEXLOWER.encode(&bytes)).blame(Category::Check)
        };
        let statement = json!({
            "stream": said.stream,
            "owner": said.owner,
            "controller": said.controller,
            "at": said.at.0 / 1_000_000,
            "certificate": hex(postcard::to_allocvec(certificate))?,
            "signed": hex(postcard::to_allocvec(signed))?,
        });
        serde_json::to_string_pretty(&statement).blame(Category::Check)
    }
}

/// The controllers of a host, from what it says they are: the authority has certified each for
/// the host that answered, and has not revoked it.
///
/// # Errors
/// If one of them is not.
pub fn certified(
    known: &[ControllerView],
    identity: &IdentityFolder,
    peer: Option<Name>,
) -> Result<Vec<Recipient>, Failure> {
    let deployment = deployment::of(identity)?;
    let check = |known: &ControllerView| {
        let what = "the controller sent something that is not a certificate";
        let certificate = from_hex(&known.certificate).ok_or(what).blame(Category::Check)?;
        let certificate = deployment.controller(&certificate).blame(Category::Check)?;
        if identity.revoked().is_some_and(|revoked| revoked.has(&certificate.digest())) {
            return Err(CertificateError::Revoked).blame(Category::Check);
        }
        if peer.as_ref().is_none_or(|peer| peer.name != host_named(&certificate.party.name)) {
            let what = "the controller presented a certificate of another host";
            return Err(what).blame(Category::Check);
        }
        let what = "the controller sent something that is not a hybrid key";
        let key = HEXLOWER_PERMISSIVE.decode(known.key.as_bytes()).ok();
        let key = key.and_then(|bytes| HybridPublic::try_from(bytes).ok());
        Recipient::new(certificate, key.ok_or(what).blame(Category::Check)?).blame(Category::Check)
    };
    known.iter().map(check).collect()
}
