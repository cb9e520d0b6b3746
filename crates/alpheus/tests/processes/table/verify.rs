//! `alpheus table verify` finds what an honest server's disk has lost or damaged, and every command
//! sends again what was damaged before it was acknowledged.

use crate::table::crashes::{leave_a_rewrite, stored, sum};
use crate::table::recover::{said, stored_state};
use crate::table::world::{SCHEMA, World, total};
use alpheus_crypto::ledger::{Change, Ledger};
use alpheus_table_service::save::send_waiting;
use alpheus_table_service::state::TableState;
use alpheus_verifiable_table::owner::APPLICATION;
use std::fs;
use std::path::Path;

fn table() -> World {
    let world = World::new(SCHEMA);
    world.write_rows("counts.csv", 0, 9000);
    world.done("append counts.csv");
    world
}

/// Changes one byte of a file, and returns what the file was.
fn damage(path: &Path, at: usize) -> Vec<u8> {
    let whole = fs::read(path).unwrap();
    let mut bytes = whole.clone();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
    whole
}

#[test]
fn damage_of_a_blocks_header_and_of_the_saved_state_is_found() {
    let world = table();
    let (code, text) = said(&world, "verify");
    assert!(code == Some(0) && text.contains("the saved state 2-"), "{text}");
    // Each part of the header: format, table, start, epoch, number.
    let block = world.table().join(&stored(&world)[1]);
    for at in [0, 5, 20, 36, 44] {
        let whole = damage(&block, at);
        let (code, text) = said(&world, "verify");
        assert!(code == Some(1) && text.contains("damaged"), "byte {at}: {text}");
        fs::write(&block, whole).unwrap();
    }
    let state = stored_state(&world);
    let whole = damage(&state, 200);
    let (code, text) = said(&world, "verify");
    let wrong = "the server's answer is wrong and was rejected";
    assert!(code == Some(1) && text.contains("saved state 2-") && text.contains(wrong), "{text}");
    fs::remove_file(&state).unwrap();
    let (code, text) = said(&world, "verify");
    assert!(code == Some(1) && text.contains("there is no saved state"), "{text}");
    fs::write(&state, whole).unwrap();
    world.done("verify");
}

/// The server's copy was damaged before the owner heard that it was stored. The waiting bytes here are right.
#[test]
fn what_waits_replaces_a_damaged_copy() {
    let world = table();
    let before = stored(&world);
    leave_a_rewrite(&world, 1);
    let mut state = TableState::open(&world.path("ada")).unwrap();
    let remote = world.remote(&state);
    let address = *state.owner.outbox().next().unwrap();
    let bytes = state.ledger.get(&alpheus_verifiable_table::owner::Owner::outbox_key(&address));
    let bytes = bytes.unwrap().unwrap();
    remote.put(address, bytes.clone()).unwrap();
    let new = stored(&world).into_iter().find(|name| !before.contains(name)).unwrap();
    damage(&world.table().join(&new), 3000);
    drop(state);
    assert_eq!(sum(&world), total(9000));
    assert_eq!(fs::read(world.table().join(&new)).unwrap(), bytes);
    world.done("verify");
    // A state, the same way: made, and stored, and not acknowledged.
    state = TableState::open(&world.path("ada")).unwrap();
    let step = state.owner.record(vec![Change::put(vec![APPLICATION + 9], vec![1])]).unwrap();
    state.commit(step).unwrap();
    send_waiting(&mut state, &remote).unwrap();
    assert!(state.save().unwrap());
    let name = state.owner.saved().unwrap();
    let key = alpheus_verifiable_table::owner::Owner::state_key();
    let bytes = state.ledger.get(&key).unwrap().unwrap();
    drop(state);
    remote.save_state(name, bytes.clone()).unwrap();
    let file = |path: &fs::DirEntry| fs::read(path.path()).unwrap() == bytes;
    let stored = fs::read_dir(world.table()).unwrap().map(Result::unwrap).find(file).unwrap();
    damage(&stored.path(), 300);
    world.done("verify");
    assert_eq!(fs::read(stored_state(&world)).unwrap(), bytes);
}

/// The state is too large to be sent, so the one at the server still needs the old blocks.
#[test]
fn old_blocks_are_not_dropped_while_the_state_is_not_saved() {
    let world = table();
    let mut state = TableState::open(&world.path("ada")).unwrap();
    let large = Change::put(vec![APPLICATION + 9], vec![7; 43 << 20]);
    state.ledger.commit(&[large]).unwrap();
    drop(state);
    leave_a_rewrite(&world, 1);
    let (code, text) = said(&world, "prune");
    assert!(code == Some(3) && text.contains("could not be recovered"), "{text}");
    assert_eq!(stored(&world).len(), 3);
    let (code, text) = said(&world, "verify");
    assert!(code == Some(0) && text.contains("the state is not saved at the server"), "{text}");
    world.done("prune --force");
    assert_eq!((stored(&world).len(), sum(&world)), (2, total(9000)));
}

/// A recovery after `prune` misses no block: the saved state knows what was dropped.
#[test]
fn a_state_knows_what_was_pruned() {
    let world = table();
    leave_a_rewrite(&world, 1);
    world.done("prune");
    fs::copy(world.path("ada/table.key"), world.path("key.copy")).unwrap();
    fs::remove_dir_all(world.path("ada")).unwrap();
    let (code, text) = said(&world, "recover --key key.copy");
    assert!(code == Some(0) && !text.contains("warning"), "{text}");
    assert_eq!(sum(&world), total(9000));
}
