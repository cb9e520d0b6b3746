//! A fence, where it lies and what it remembers.

use super::*;

fn fence(sequence: u64) -> Fence {
    let restored = (sequence > 3).then_some(Timestamp(7));
    Fence { sequence, start: sequence / 2, clock: Timestamp(sequence * 10), restored }
}

fn fences(many: u8, sequence: u64) -> Vec<(Owner, Fence)> {
    let fence = fence(sequence);
    (0..many).map(|controller| ([controller; 32], fence)).collect()
}

#[test]
fn one_flush_makes_a_fence_durable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence");
    let mut file = FenceFile::load(&path).unwrap();
    for sequence in 1..=5 {
        file.advance(fences(100, sequence)).unwrap();
        let known = FenceFile::load(&path).unwrap();
        assert_eq!(known.fences, fences(100, sequence).into_iter().collect());
    }
    assert_eq!(file.flushes(), 2 + 4, "only the first makes a file");
    file.advance(fences(100, 5)).unwrap();
    assert_eq!(file.flushes(), 6, "nothing new");
}

#[test]
fn it_grows_with_its_controllers_and_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence");
    for (many, sequence) in [(1, 1), (200, 2), (200, 3), (250, 4)] {
        let mut file = FenceFile::load(&path).unwrap();
        file.advance(fences(many, sequence)).unwrap();
        file.advance(fences(many, sequence + 1)).unwrap();
        assert_eq!(
            FenceFile::load(&path).unwrap().fences,
            fences(many, sequence + 1).into_iter().collect()
        );
    }
}

/// Whatever a crash leaves of the slot that was being written, the fence is
/// the new one or the one before.
#[test]
fn a_torn_write_leaves_the_fence_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence");
    let mut file = FenceFile::load(&path).unwrap();
    (1..=4).for_each(|sequence| file.advance(fences(100, sequence)).unwrap());
    let before = std::fs::read(&path).unwrap();
    file.advance(fences(100, 5)).unwrap();
    let after = std::fs::read(&path).unwrap();
    for torn in (0..=after.len()).step_by(97) {
        let bytes = [&after[..torn], &before[torn..]].concat();
        let (_, known) = decode(&bytes).unwrap();
        let sequence = known[&[0; 32]].sequence;
        assert!([4, 5].contains(&sequence), "{sequence}");
        assert_eq!(known, fences(100, sequence).into_iter().collect());
    }
}

#[test]
fn it_lies_beside_its_state_and_an_earlier_builds_is_moved_there() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let (inside, beside) = (state.join("fence"), folder.path().join("state.fence"));
    assert_eq!((of_state(&state), move_out_of(&state)), (beside.clone(), beside.clone()));
    std::fs::create_dir(&state).unwrap();
    FenceFile::load(&inside).unwrap().advance(fences(1, 5)).unwrap();
    assert_eq!(of_state(&state), inside, "for a backup");
    assert_eq!(move_out_of(&state), beside);
    assert!(FenceFile::load(&beside).unwrap().get(&[0; 32]) == Some(fence(5)));
    // A restored folder brings an older one, which does not count.
    FenceFile::load(&inside).unwrap().advance(fences(1, 4)).unwrap();
    for state in [state.clone(), state.join(""), state.join(".")] {
        assert_eq!((of_state(&state), move_out_of(&state)), (beside.clone(), beside.clone()));
    }
    assert!(FenceFile::load(&beside).unwrap().get(&[0; 32]) == Some(fence(5)));
}

#[test]
fn one_that_nobody_may_watch_lies_in_a_private_folder_beside_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let (inside, beside) = (state.join("fence"), folder.path().join("state.fence"));
    std::fs::create_dir(&state).unwrap();
    FenceFile::load(&inside).unwrap().advance(fences(1, 5)).unwrap();
    let hidden = beside.join("fence");
    assert_eq!(move_to_private_folder(&state).unwrap(), hidden);
    assert_eq!(of_state(&state), hidden, "for a backup");
    assert!(FenceFile::load(&hidden).unwrap().get(&[0; 32]) == Some(fence(5)));
    files::check_private_folder(&beside).unwrap();
    assert!(!inside.exists());
    assert_eq!(move_to_private_folder(&state).unwrap(), hidden, "at the next start");
}

/// As in a container whose state is all that it may write.
#[test]
fn one_that_cannot_be_made_beside_its_state_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    std::fs::create_dir(&state).unwrap();
    let may_write = |mode| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(folder.path(), permissions).unwrap();
    };
    may_write(0o500);
    // The superuser may write anyway.
    let expected = match is_writable(&state) {
        Ok(()) => folder.path().join("state.fence"),
        Err(_) => state.join("fence"),
    };
    assert_eq!(move_out_of(&state), expected);
    may_write(0o700);
    assert_eq!(move_out_of(&state), folder.path().join("state.fence"));
}

#[test]
fn it_never_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence");
    let mut file = FenceFile::load(&path).unwrap();
    file.advance(fences(3, 5)).unwrap();
    let older = Fence { restored: Some(Timestamp(6)), ..fence(9) };
    for behind in [fence(4), older, Fence { restored: None, ..fence(9) }] {
        let given = [([0; 32], fence(6)), ([1; 32], behind)];
        assert!(matches!(file.advance(given), Err(FenceError::Behind { .. })));
        assert_eq!(file.fences, fences(3, 5).into_iter().collect(), "none of them counts");
    }
    file.advance(fences(3, 6)).unwrap();
    assert_eq!(FenceFile::load(&path).unwrap().fences, fences(3, 6).into_iter().collect());
}

#[test]
fn a_failed_write_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("gone");
    std::fs::create_dir(&place).unwrap();
    let mut file = FenceFile::load(&place.join("fence")).unwrap();
    std::fs::remove_dir(&place).unwrap();
    assert!(matches!(file.advance(fences(2, 1)), Err(FenceError::Io { .. })));
    assert_eq!(file.get(&[0; 32]), None);
    std::fs::create_dir(&place).unwrap();
    file.advance(fences(2, 1)).unwrap();
    let written = FenceFile::load(&place.join("fence")).unwrap().fences;
    assert_eq!(written, fences(2, 1).into_iter().collect());
}

#[test]
fn other_content_is_refused() {
    for bytes in [&b""[..], b"ALPHFNC2", &[0; 2 * PAGE], &[7; 96]] {
        assert_eq!(decode(bytes), None);
    }
    let mut slot = encode(3, &fences(2, 9).into_iter().collect());
    slot[40] ^= 1;
    assert_eq!(decode(&[slot.clone(), slot].concat()), None);
}
