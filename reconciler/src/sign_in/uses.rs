//! Records that tokens and sessions are used. Requests are more frequent than commits on a full disk can be, so a use
//! is not submitted again soon after an attempt.

use std::collections::HashMap;

use chrono::NaiveDate;
use model::decide::{NoteUse, SeeSession};
use model::limits::SESSION_SEEN;
use model::{BrowserSession, SessionId, Timestamp, Token, TokenId};
use tokio::time::Instant;

use super::SignIns;
use crate::limits::NOTE_REST;
use crate::supervise::lock;

/// When each use was last submitted.
pub(super) type Uses = HashMap<Use, Instant>;

/// A use to record, with the last recorded use. The latter changes when the use is recorded.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Use {
    Token(TokenId, Option<NaiveDate>),
    Session(SessionId, Timestamp),
}

impl SignIns {
    /// Records in the background that a session is used, unless a use within the last hour is recorded.
    pub fn note_session(&self, session: &BrowserSession) {
        let now = self.state.read(|world| world.time(self.clock.steady()));
        if now - session.seen_at < SESSION_SEEN {
            return;
        }
        if !self.may_submit(Use::Session(session.id, session.seen_at)) {
            return;
        }
        let session = session.id;
        let state = self.state.clone();
        tokio::spawn(async move {
            if let Err(error) = state.submit(SeeSession { session }).await {
                tracing::debug!(%error, "the use of a session is not recorded");
            }
        });
    }

    /// Records in the background that a token is used today.
    pub fn note_use(&self, token: &Token) {
        let now = self.clock.now();
        let day = now.date_naive();
        if token.last_used == Some(day) || !self.may_submit(Use::Token(token.id, token.last_used)) {
            return;
        }
        let note = NoteUse {
            token: token.id,
            day,
        };
        let expiring = token.expires_at.filter(|_| token.expires_soon(now));
        let (state, token) = (self.state.clone(), token.name.clone());
        tokio::spawn(async move {
            match (state.submit(note).await, expiring) {
                (Ok(()), Some(end)) => {
                    tracing::warn!(token, %end, "a token that is in use expires soon");
                }
                (Ok(()), None) => {}
                (Err(error), _) => {
                    tracing::debug!(token, %error, "the use of a token is not recorded");
                }
            }
        });
    }

    /// False if the same use was submitted a moment ago.
    fn may_submit(&self, of: Use) -> bool {
        let now = Instant::now();
        let mut uses = lock(&self.uses);
        uses.retain(|_, submitted| now - *submitted < NOTE_REST);
        let is_first = !uses.contains_key(&of);
        if is_first {
            uses.insert(of, now);
        }
        is_first
    }
}

#[cfg(test)]
mod tests;
