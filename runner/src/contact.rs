//! When the daemon last answered the session or any worker.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The time of the last answer. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Contact(watch::Sender<Instant>);

impl Contact {
    /// The silence counts from now.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Instant::now()))
    }

    /// Records an answer.
    pub(crate) fn heard(&self) {
        self.0.send_replace(Instant::now());
    }

    /// Waits until there was no answer for this long.
    pub(crate) async fn silent_for(&self, silence: Duration) {
        loop {
            let deadline = *self.0.borrow() + silence;
            if deadline <= Instant::now() {
                return;
            }
            sleep_until(deadline).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_answer_starts_the_silence_anew() {
        let contact = Contact::new();
        let start = Instant::now();
        let other = contact.clone();
        let answers = async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            other.heard();
        };
        tokio::join!(contact.silent_for(Duration::from_millis(50)), answers);
        assert_eq!(start.elapsed(), Duration::from_millis(80));
    }
}
