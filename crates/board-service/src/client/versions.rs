//! Statements of which servers have received different versions. A server that holds both holds the proof
//! against the server that made them.

use super::Client;
use alpheus_anonymous_board::configuration::Party;
use alpheus_anonymous_board::transcript::Transcript;

impl Client {
    /// Whether a server has received the databases' statements in this transcript by which a complaint is
    /// judged, and whatever else it has, in these versions. Hands on the first of each database of which it has another: together with the
    /// server's own, it is proof. False if the server does not answer.
    pub(super) async fn has_same(&self, via: Party, transcript: &Transcript) -> bool {
        let heard = match self.digests(via, transcript.epoch()).await {
            Ok(heard) => heard,
            Err(error) => {
                tracing::debug!(%error, "cannot compare statements");
                return false;
            }
        };
        let mut same = true;
        for of in self.board.databases().iter().copied().filter(|of| *of != via) {
            let theirs = heard.get(of.index()).map_or(&[][..], Vec::as_slice);
            let differs = transcript.digests(of).zip(theirs).position(|(a, b)| a != *b);
            if let Some(at) = differs {
                self.hand_on(via, of, transcript, at).await;
            }
            same &= differs.is_none()
                && theirs.len() >= transcript.statement_count(of).min(Transcript::JUDGED_BY);
        }
        same
    }

    /// Sends a server the statement that another server made here. Together with the one it received
    /// itself, it is proof.
    pub(super) async fn hand_on(&self, to: Party, of: Party, transcript: &Transcript, at: usize) {
        let path = format!("/v1/statements/{}/{}", transcript.epoch().0, of.index());
        let Some(statement) = transcript.statements(of).nth(at) else { return };
        if let Err(error) = self.send::<()>(to, &path, statement).await {
            tracing::warn!(%error, "cannot hand on a server's statement");
        }
    }
}
