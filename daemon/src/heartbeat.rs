//! Asks the address of an outside monitor while all is well, so that somebody notices a daemon that is dead.

use std::time::Duration;

use model::condition::Subject;
use model::decide::Look;
use reconciler::Handle;
use std::sync::Arc;
use tokio::time::{sleep, timeout};

use crate::limits::{COMMIT_WITHIN, LONGEST_BEAT_PAUSE};

#[derive(Debug)]
pub(crate) struct Heartbeat {
    pub(crate) url: String,
    pub(crate) every: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beat {
    Answered,
    /// The monitor did not answer well.
    Failed,
    /// The daemon is not well.
    Held,
}

impl Heartbeat {
    /// Runs until it is dropped. Nothing waits for it.
    pub(crate) async fn keep(self, handle: Handle, delivery: Arc<delivery::Settings>) {
        let (mut last, mut failures) = (None, 0);
        loop {
            let (beat, why) = self.beat(&handle, &delivery.outbound).await;
            if last.replace(beat) != Some(beat) {
                match beat {
                    Beat::Answered => tracing::info!("the monitor answers heartbeats"),
                    Beat::Failed => tracing::warn!(why, "the heartbeat fails; it is retried"),
                    Beat::Held => tracing::warn!(why, "the heartbeat stops until this is over"),
                }
            }
            failures = if beat == Beat::Failed {
                failures + 1
            } else {
                0
            };
            sleep(pause(self.every, failures)).await;
        }
    }

    async fn beat(&self, handle: &Handle, outbound: &outbound::Outbound) -> (Beat, String) {
        // The committer has it done only after everything before it, and refuses it on a full disk. It changes nothing.
        let subject = Subject::Instance;
        let done = timeout(COMMIT_WITHIN, handle.state().submit(Look { subject }));
        match done.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return (Beat::Held, error.to_string()),
            Err(_) => return (Beat::Held, "changes are not committed".to_owned()),
        }
        match outbound.get(&self.url, handle.now()).await {
            Ok(answer) if answer.status.is_success() => (Beat::Answered, String::new()),
            Ok(answer) => (
                Beat::Failed,
                format!("it is answered with {}", answer.status),
            ),
            Err(error) => (Beat::Failed, error.to_string()),
        }
    }
}

/// Doubles after each failure.
fn pause(every: Duration, failures: u32) -> Duration {
    let doubled = every.saturating_mul(2_u32.saturating_pow(failures));
    doubled.min(LONGEST_BEAT_PAUSE.max(every))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_to_five_minutes_and_is_never_shorter_than_asked() {
        let pauses = |every, failures| pause(Duration::from_secs(every), failures).as_secs();
        assert_eq!(
            [0, 1, 2, 9].map(|failures| pauses(60, failures)),
            [60, 120, 240, 300]
        );
        assert_eq!(
            [0, 1, 99].map(|failures| pauses(3_600, failures)),
            [3_600; 3]
        );
    }
}
