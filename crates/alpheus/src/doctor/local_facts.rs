//! Facts from the caller's own files.

use super::remote_facts::{CardProcess, card_endpoint};
#[cfg(feature = "board")]
use alpheus_board_service::links as board;
use alpheus_doctor::facts::{CardFacts, FolderFacts, IdentityFacts, SchemaFacts};
use alpheus_node::failure::Failure;
#[cfg(feature = "board")]
use alpheus_node::network::base::Base;
use alpheus_node::network::identity::{CERTIFICATE, IdentityFolder, KEY};
use alpheus_node::network::role::Role;
use alpheus_node::service::expiry::seconds_left;
use alpheus_node::service::heartbeat::free_bytes;
use alpheus_node::settings::Settings;
#[cfg(feature = "pass")]
use alpheus_pass_service::links as pass;
use alpheus_policy::schema::Schema;
#[cfg(feature = "stats")]
use alpheus_stats_service::links as stats;
use alpheus_streams::deployment::{DEVICE_SEED, OWNER_SEED};
use alpheus_streams::ingest_keys::DeviceIdentity;
use alpheus_streams::owner::identity::OwnerIdentity;
use alpheus_streams::settings;
use data_encoding::HEXLOWER;
use std::path::{Path, PathBuf};

/// The room in a folder, or in the one that it would be created in.
pub(super) fn folder(path: &Path) -> Option<FolderFacts> {
    let there = path.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let free_bytes = free_bytes(there)?;
    Some(FolderFacts { path: path.display().to_string(), free_bytes })
}

/// The schema that the settings name.
pub(super) fn schema(from: &Settings) -> Result<Option<SchemaFacts>, Failure> {
    let named: Option<PathBuf> = from.value("schema")?;
    named.map(|_| settings::schema(from).map(|schema| schema_facts(&schema))).transpose()
}

pub(super) fn schema_facts(schema: &Schema) -> SchemaFacts {
    let id = HEXLOWER.encode(&schema.id().0);
    SchemaFacts { name: schema.name.clone(), version: schema.version, id }
}

/// An identity folder's certificate, and whether the keys beside it are its own.
pub(super) fn identity(path: &Path, folder: &IdentityFolder) -> IdentityFacts {
    let mut other_keys = Vec::new();
    if !folder.has_own_key() {
        other_keys.push(KEY.to_owned());
    }
    let role = folder.name().role;
    // Of a folder without such a key, its commands say so themselves.
    let has = |seed: &str| folder.path(seed).exists();
    if role == Role::Producer && has(DEVICE_SEED) && DeviceIdentity::open(folder).is_err() {
        other_keys.push(DEVICE_SEED.to_owned());
    }
    if role == Role::Owner && has(OWNER_SEED) && OwnerIdentity::open(folder).is_err() {
        other_keys.push(OWNER_SEED.to_owned());
    }
    IdentityFacts {
        folder: path.display().to_string(),
        role: role.as_str().to_owned(),
        name: folder.name().name.clone(),
        valid_seconds: seconds_left(&folder.path(CERTIFICATE)).unwrap_or(0),
        other_keys,
    }
}

/// A card, and who answers at its addresses.
pub(super) fn card(path: &Path, expected: Option<&str>) -> CardFacts {
    let file = path.display().to_string();
    let Some(read) = read_card(path) else {
        let fault = "not the card of a pass, of statistics or of a board that its operator signed";
        let fault = Some(fault.to_owned());
        return CardFacts { file, fault, is_expected: None, endpoints: Vec::new() };
    };
    let is_expected = match (expected, &read.fingerprint) {
        (Some(expected), Some(own)) => Some(expected.trim().eq_ignore_ascii_case(own)),
        _ => None,
    };
    let ask = |process: &CardProcess| card_endpoint(process, read.authority.as_deref());
    let endpoints = read.processes.iter().filter_map(ask).collect();
    CardFacts { file, fault: None, is_expected, endpoints }
}

/// What a card of any kind says.
struct ReadCard {
    fingerprint: Option<String>,
    processes: Vec<CardProcess>,
    authority: Option<String>,
}

#[cfg_attr(
    not(any(feature = "pass", feature = "stats", feature = "board")),
    expect(unused_variables, reason = "without these parts there is no card")
)]
fn read_card(path: &Path) -> Option<ReadCard> {
    #[cfg(feature = "pass")]
    if let Ok((_, card)) = alpheus_pass_service::card::Card::load(path) {
        let fingerprint = Some(card.fingerprint.to_string());
        let processes: [CardProcess; 2] = [
            (card.issuer, Role::Issuer, pass::issuer),
            (card.gateway, Role::Gateway, pass::gateway),
        ];
        let processes = processes.into();
        return Some(ReadCard { fingerprint, processes, authority: card.authority });
    }
    #[cfg(feature = "stats")]
    if let Ok((_, card)) = alpheus_stats_service::card::Card::load(path) {
        let processes: [CardProcess; 2] = [
            (card.registrar.origin(), Role::Registrar, stats::registrar),
            (card.aggregator.origin(), Role::Aggregator, stats::aggregator),
        ];
        let processes = processes.into();
        return Some(ReadCard { fingerprint: None, processes, authority: card.authority });
    }
    #[cfg(feature = "board")]
    if let Ok((_, card)) = alpheus_board_service::card::Card::load(path) {
        let server = |base: &Base| -> CardProcess { (base.origin(), Role::Board, board::server) };
        let processes = card.at.iter().map(server).collect();
        return Some(ReadCard { fingerprint: None, processes, authority: card.authority });
    }
    None
}
