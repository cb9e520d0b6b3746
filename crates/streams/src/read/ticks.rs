//! Rows of ticks, of a schema with one frame a tick.

use super::Events;
use super::sessions::EndlessReadError;
use alpheus_encrypted_stream::error::RawReadError;
use alpheus_encrypted_stream::tick::claim::Claim;
use alpheus_encrypted_stream::tick::frame::TickFrame;
use alpheus_time::Span;
use serde_json::Value;

impl Events {
    /// A tick's end and columns; none for a tick without events, a gap, an opening, and a frame
    /// that was there before. Ticks of days without a key and frames of other streams give none
    /// either and are counted.
    pub(super) fn tick_row(
        &mut self,
        bytes: &[u8],
        tick: Span,
    ) -> Result<Option<Vec<Value>>, EndlessReadError> {
        let frame = match TickFrame::parse(bytes, tick) {
            Ok(frame) => frame,
            Err(_) => {
                self.foreign += 1;
                return Ok(None);
            }
        };
        let (claim, words) = match &frame {
            TickFrame::Opening(opening) => (opening.claim(), None),
            TickFrame::Gap(claim) => (*claim, None),
            TickFrame::Tick(claim, words) => (*claim, Some(words)),
        };
        let read = words.map(|words| self.keys.read_tick(&claim, words));
        if matches!(read, Some(Err(RawReadError::CheckWord | RawReadError::Length { .. }))) {
            self.foreign += 1;
            return Ok(None);
        }
        if self.is_repeated(&claim, matches!(read, Some(Ok(_)))) {
            return Ok(None);
        }
        self.sessions.note((&claim).into())?;
        self.asleep += u64::from(claim.kind.is_gap());
        match read {
            None => Ok(None),
            Some(Err(_)) => {
                self.without_key += 1;
                Ok(None)
            }
            Some(Ok(sum)) if sum.iter().all(|word| *word == 0) => Ok(None),
            Some(Ok(sum)) => Ok(self.columns(claim.to, &sum)),
        }
    }

    /// Whether the log has the frame twice. Nothing that is not read for certain hides a tick
    /// that is: openings and gaps cannot be checked here.
    fn is_repeated(&mut self, claim: &Claim, is_read: bool) -> bool {
        if !is_read {
            return self.sessions.has(claim.into());
        }
        let before = self.read_to.insert(claim.session, claim.to);
        let repeated = before.filter(|before| claim.to <= *before);
        self.read_to.extend(repeated.map(|before| (claim.session, before)));
        repeated.is_some()
    }
}
