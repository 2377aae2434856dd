//! When the daemon last answered the session or any worker.
//!
//! The time also counts while the machine sleeps or this process is stopped. After such a pause, the next answer may have arrived
//! before the pause, so each answer first checks the length of the silence before it.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::clock;
use crate::limits::CONTACT_CHECK;

#[derive(Debug, Clone)]
pub(crate) struct Contact {
    heard: watch::Sender<Heard>,
    /// The longest silence before contact is lost.
    limit: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Heard {
    at: Now,
    /// How often a silence was too long so far.
    losses: u64,
}

/// A moment on two clocks: the clock of timers, and a clock that also counts the sleep of the machine.
#[derive(Debug, Clone, Copy)]
struct Now {
    timers: Instant,
    boot: Duration,
}

impl Now {
    fn read() -> Self {
        Self {
            timers: Instant::now(),
            boot: clock::since_boot(),
        }
    }

    fn since(self, earlier: Self) -> Duration {
        let timers = self.timers.duration_since(earlier.timers);
        timers.max(self.boot.saturating_sub(earlier.boot))
    }
}

impl Contact {
    /// The silence begins now.
    pub(crate) fn new(limit: Duration) -> Self {
        let heard = Heard {
            at: Now::read(),
            losses: 0,
        };
        Self {
            heard: watch::Sender::new(heard),
            limit,
        }
    }

    pub(crate) fn heard(&self) {
        let at = Now::read();
        self.heard.send_modify(|heard| {
            if at.since(heard.at) >= self.limit {
                heard.losses += 1;
            }
            heard.at = at;
        });
    }

    /// Waits until no answer has come for this long, counted from now.
    pub(crate) async fn silent(&self, span: Duration) {
        let mut answers = self.heard.subscribe();
        // `self` holds the sender, so only the time ends it.
        while timeout(span, answers.changed()).await.is_ok() {}
    }

    /// Waits until a silence has exceeded the limit, even if answers come again.
    pub(crate) async fn lost(&self) {
        let before = self.heard.borrow().losses;
        loop {
            let Heard { at, losses } = *self.heard.borrow();
            let silent = Now::read().since(at);
            if losses != before || silent >= self.limit {
                return;
            }
            let pause = (self.limit - silent).min(CONTACT_CHECK);
            sleep_until(Instant::now() + pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;
    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(100);

    #[tokio::test(start_paused = true)]
    async fn every_answer_restarts_the_silence() {
        let contact = Contact::new(LIMIT);
        let start = Instant::now();
        let other = contact.clone();
        let answers = async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            other.heard();
        };
        tokio::join!(contact.lost(), answers);
        assert_eq!(start.elapsed(), Duration::from_secs(130));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_counts_from_the_question_and_from_every_answer() {
        let contact = Contact::new(LIMIT);
        advance(Duration::from_secs(50)).await;
        let start = Instant::now();
        let other = contact.clone();
        let answers = async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            other.heard();
        };
        tokio::join!(contact.silent(Duration::from_secs(60)), answers);
        assert_eq!(start.elapsed(), Duration::from_secs(80));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_after_too_long_a_silence_does_not_hide_it() {
        let contact = Contact::new(LIMIT);
        let other = contact.clone();
        let lost = tokio::spawn(async move { other.lost().await });
        yield_now().await;
        // The process is stopped. When it continues, it first reads an answer that arrived long ago.
        advance(Duration::from_secs(300)).await;
        contact.heard();
        lost.await.unwrap();

        // A job that begins now is not affected.
        let start = Instant::now();
        contact.lost().await;
        assert_eq!(start.elapsed(), LIMIT);
    }

    #[test]
    fn the_clock_that_counts_sleep_decides_if_it_shows_more() {
        let now = Now::read();
        let slept = Now {
            boot: now.boot + Duration::from_secs(300),
            ..now
        };
        assert_eq!(slept.since(now), Duration::from_secs(300));
    }
}
