//! Wrong answers for single blocks.

use crate::attacks::words;
use crate::attacks::world::world;
use alpheus_verifiable_table::label::Column;
use alpheus_verifiable_table::parameters::Set;

/// Format, data set, segment, epoch, number.
const HEADER: usize = 45;

#[test]
fn only_the_requested_block_opens() {
    let world = world(Set::L128, 2, 9);
    let all = world.owner.all_columns();
    let [first, second] = [0, 1].map(|index| {
        let address = world.owner.address(index).unwrap();
        world.server.blocks[&address].as_bytes().to_vec()
    });
    assert!(world.owner.open_block(0, &all, &first).is_ok());
    assert!(world.owner.open_block(0, &all, &second).is_err(), "another block");
    let mut renamed = second.clone();
    renamed[..HEADER].copy_from_slice(&first[..HEADER]);
    assert!(world.owner.open_block(0, &all, &renamed).is_err(), "another block relabelled");
    assert!(world.owner.open_block(2, &all, &first).is_err(), "a block that does not exist");
    assert!(world.owner.open_block(0, &all, &first[1..]).is_err(), "cut");

    // Columns swapped together with their tags.
    let column = 32 + 2 * 4096 * 51 / 8 + 2 * 3 * 8;
    let (x, y) = (HEADER..HEADER + column, HEADER + column..HEADER + 2 * column);
    let mut swapped = first.clone();
    swapped[x.clone()].copy_from_slice(&first[y.clone()]);
    swapped[y].copy_from_slice(&first[x]);
    assert!(world.owner.open_block(0, &all, &swapped).is_err(), "columns swapped");

    // The seed, one residue, the tag.
    for at in [HEADER, HEADER + 31, HEADER + column - 1] {
        let mut lie = first.clone();
        lie[at] ^= 1;
        assert!(world.owner.open_block(0, &[Column(0)], &lie).is_err(), "byte {at}");
        assert!(world.owner.open_block(0, &[Column(1)], &lie).is_ok(), "the other column");
    }
    let mut lie = first.clone();
    let (from, to) = (HEADER + 32, HEADER + column - 48);
    let word = words::get(&lie[from..to], 7);
    words::set(&mut lie[from..to], 7, word ^ 1);
    assert!(world.owner.open_block(0, &all, &lie).is_err(), "one residue");
}

/// Two blocks are changed so that the changes cancel in plain sums. The audit's weights
/// detect it.
#[test]
fn an_audit_finds_changes_that_cancel_in_plain_sums() {
    use alpheus_verifiable_table::label::Kind;
    use alpheus_verifiable_table::messages::Block;
    let mut world = world(Set::L128, 3, 10);
    for audit in world.owner.audit(&mut world.rng) {
        let answer = world.answer(audit.request());
        assert!(world.owner.check_audit(&audit, &answer).is_ok());
    }
    let q = 2_251_799_813_554_177;
    for (index, change) in [(0, 1), (2, q - 1)] {
        let address = world.owner.address(index).unwrap();
        let mut bytes = world.server.blocks[&address].as_bytes().to_vec();
        let c0 = &mut bytes[HEADER + 32..];
        let word = words::get(c0, 5);
        words::set(c0, 5, (word + change) % q);
        let block = Block::from_bytes(&world.server.manifest, bytes).unwrap();
        world.server.blocks.insert(address, block);
    }
    let question = world.question(Kind::Column(Column(0)), 0, 3);
    assert!(world.owner.verify(&question, &world.answer(question.request())).is_ok());
    let audits = world.owner.audit(&mut world.rng);
    let checked = audits
        .iter()
        .map(|audit| world.owner.check_audit(audit, &world.answer(audit.request())).is_ok());
    // Only the first column was changed.
    let checked: Vec<bool> = checked.collect();
    assert!(!checked[0] && checked[1], "{checked:?}");
}
