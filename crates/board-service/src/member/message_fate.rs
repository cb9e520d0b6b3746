//! What becomes of a message once its epoch is over. A message must not come back if somebody may have
//! read it alone, and it comes back only so often: each time shows that its writer was there.

use super::report;
use super::store::{MemberFolder, Outcome};
use crate::client::BoardError;
use alpheus_anonymous_board::configuration::Epoch;
use alpheus_anonymous_board::reader::{ReadError, Reading};
use alpheus_anonymous_board::writer::Fate;
use alpheus_node::failure::Failure;

/// Notes what became of an epoch, and of the message in its write, which may be repeated so often
/// after losses.
pub(super) fn note(
    folder: &MemberFolder,
    repeats: u32,
    epoch: Epoch,
    message: Option<&str>,
    settled: Result<(Reading, Vec<Fate>), BoardError>,
) -> Result<(), Failure> {
    let (text, fate) = match settled {
        Ok((reading, fates)) => {
            let fate = fates.first().copied().unwrap_or(Fate::LeftOut);
            (format!("in a crowd of at most {}", reading.size), Some(fate))
        }
        Err(BoardError::NotRead(ReadError::Burnt(why))) if !why.warns() => {
            // Nobody has read the table: the message stays where it is in the queue.
            folder.forget(epoch)?;
            return report(epoch, &format!("burnt: {why}"));
        }
        Err(error) => (format!("not published: {error}"), None),
    };
    if let Some(name) = message {
        note_message(folder, repeats, epoch, name, fate)?;
    }
    folder.forget(epoch)?;
    report(epoch, &text)
}

fn note_message(
    folder: &MemberFolder,
    repeats: u32,
    epoch: Epoch,
    name: &str,
    fate: Option<Fate>,
) -> Result<(), Failure> {
    let Some(mut message) = folder.message(name)? else { return Ok(()) };
    match fate {
        Some(Fate::Delivered | Fate::Recovered) => folder.end(name, Outcome::Delivered(epoch.0)),
        Some(Fate::Lost) if message.lost < repeats => {
            message.lost += 1;
            folder.put_message(name, &message)
        }
        Some(Fate::Lost) => folder.end(name, Outcome::Lost(epoch.0)),
        Some(Fate::LeftOut | Fate::Covered) | None => folder.end(name, Outcome::Unsafe(epoch.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_anonymous_board::configuration::Party;
    use alpheus_anonymous_board::dpf::Side;
    use alpheus_anonymous_board::messages::{BurnReason, Fault};
    use alpheus_anonymous_board::transcript::Crowd;

    const EPOCH: Epoch = Epoch(7);
    const REPEATS: u32 = 2;
    const BY: Party = Party::Database(Side::First);

    fn published(fates: &[Fate]) -> Result<(Reading, Vec<Fate>), BoardError> {
        let reading = Reading {
            epoch: EPOCH,
            size: 3,
            crowd: Crowd { listed: 3, accepted: 3, came: 3 },
            messages: Vec::new(),
            alone: 0,
            recovered: 0,
            illegible: 0,
            flagged: false,
            thinned: None,
        };
        Ok((reading, fates.to_vec()))
    }

    /// What becomes of a message that was lost so often before: it waits, and how often it was lost by
    /// then; or its outcome.
    fn after(lost: u32, settled: Result<(Reading, Vec<Fate>), BoardError>) -> Result<u32, Outcome> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("member");
        let member = MemberFolder::open(&path).unwrap();
        member.queue(b"text").unwrap();
        let name = member.queued().unwrap().remove(0);
        let mut message = member.message(&name).unwrap().unwrap();
        message.lost = lost;
        member.put_message(&name, &message).unwrap();
        std::fs::write(path.join(format!("writes/{:020}", EPOCH.0)), b"kept").unwrap();
        note(&member, REPEATS, EPOCH, Some(&name), settled).unwrap();
        assert!(member.writes().unwrap().is_empty(), "the epoch's write is forgotten");
        match (member.message(&name).unwrap(), member.ended().unwrap().as_slice()) {
            (Some(waits), []) => Ok(waits.lost),
            (None, [(ended, outcome)]) if *ended == name => Err(*outcome),
            (waits, ended) => panic!("waits: {}, {ended:?}", waits.is_some()),
        }
    }

    /// A message comes back after a collision, and only so often. It never comes back if a server left
    /// its write out.
    #[test]
    fn a_message_comes_back_after_a_collision_alone() {
        for fate in [Fate::Delivered, Fate::Recovered] {
            assert_eq!(after(0, published(&[fate])), Err(Outcome::Delivered(7)));
        }
        assert_eq!(after(0, published(&[Fate::Lost])), Ok(1));
        assert_eq!(after(REPEATS - 1, published(&[Fate::Lost])), Ok(REPEATS));
        assert_eq!(after(REPEATS, published(&[Fate::Lost])), Err(Outcome::Lost(7)));
        for fates in [&[Fate::LeftOut][..], &[Fate::Covered], &[]] {
            assert_eq!(after(0, published(fates)), Err(Outcome::Unsafe(7)), "{fates:?}");
        }
    }

    /// After an epoch that was burnt before anybody could read it, the message waits as before. After
    /// one that some server may have read alone, or whose end is not known, it never comes back.
    #[test]
    fn a_message_comes_back_only_if_nobody_can_have_read_it() {
        let burnt = |why| after(1, Err(ReadError::Burnt(why).into()));
        for why in [
            BurnReason::Blamed(BY, Fault::Share),
            BurnReason::Contradiction,
            BurnReason::TooFew,
            BurnReason::Thinned(BY),
            BurnReason::Late,
            BurnReason::Killed,
            BurnReason::Reported(BY),
            BurnReason::Dwindled,
            BurnReason::Unchecked(BY),
        ] {
            assert_eq!(burnt(why), Ok(1), "{why}");
        }
        for why in [BurnReason::Withheld(BY), BurnReason::Unshared, BurnReason::Restored] {
            assert_eq!(burnt(why), Err(Outcome::Unsafe(7)), "{why}");
        }
        for error in [ReadError::NotPublished, ReadError::Contradiction, ReadError::OtherTable] {
            assert_eq!(after(0, Err(error.into())), Err(Outcome::Unsafe(7)), "{error}");
        }
        assert_eq!(after(0, Err(BoardError::NoEpoch)), Err(Outcome::Unsafe(7)));
    }
}
