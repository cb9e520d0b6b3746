//! `alpheus owner erase`: destroys a stream's key at the controller and in the device's file.

use super::{DeviceFile, Owner, StreamArgs};
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, fingerprint};
use alpheus_encrypted_stream::withdrawal::Erasure;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::{Readers, write_new};
use data_encoding::HEXLOWER;
use serde_json::json;
use std::path::{Path, PathBuf};
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
    let said = signed.as_ref().and_then(|signed| {
        known.iter().find_map(|certificate| {
            let from = (&fingerprint(certificate), &certificate.party.verifying);
            let said = Erasure::open(signed, from, &stream).ok()?.into_inner();
            let ours = said.owner == owner.identity.certified.id();
            ours.then_some((said, signed, certificate))
        })
    });
    let wrong = "the controller did not sign that it has erased the stream";
    let (said, signed, certificate) = said.ok_or(wrong).blame(Category::Check)?;
    if let Some(path) = &args.statement {
        keep(path, &said, signed, certificate)?;
    }
    if let Some(path) = &args.device {
        DeviceFile::destroy(path)?;
    }
    println!("controller {} has destroyed the key of {stream}", said.controller);
    if args.device.is_none() {
        eprintln!("the device's file holds the key too: remove it with `shred -u` on the device");
    }
    Ok(())
}

/// Writes everything that is needed to check the statement later.
fn keep(
    path: &Path,
    said: &Erasure,
    signed: &Signed<Erasure>,
    certificate: &Certificate,
) -> Result<(), Failure> {
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
    let text = serde_json::to_string_pretty(&statement).blame(Category::Check)?;
    write_new(path, text.as_bytes(), Readers::Owner)
}
