//! Checks the zones of callback servers for the API.

use std::pin::Pin;
use std::sync::Arc;

use api::CallbackChecker;
use callback::check::{Checks, Finding, Outcome};
use model::Clock;
use tokio::sync::Mutex;
use wire::{CallbackCheck, CallbackFinding, CallbackOutcome};

pub(crate) struct Checker {
    checks: Checks,
    clock: Arc<dyn Clock>,
    /// One check at a time asks other servers.
    turn: Mutex<()>,
}

impl Checker {
    pub(crate) fn new(checks: Checks, clock: Arc<dyn Clock>) -> Self {
        Self {
            checks,
            clock,
            turn: Mutex::default(),
        }
    }
}

impl std::fmt::Debug for Checker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.checks.fmt(f)
    }
}

impl CallbackChecker for Checker {
    fn check(&self) -> Pin<Box<dyn Future<Output = CallbackCheck> + Send + '_>> {
        Box::pin(async {
            let _turn = self.turn.lock().await;
            let found = self.checks.run(self.clock.now().into()).await;
            CallbackCheck {
                findings: found.into_iter().map(finding).collect(),
            }
        })
    }
}

fn finding(found: Finding) -> CallbackFinding {
    CallbackFinding {
        zone: found.zone,
        outcome: match found.outcome {
            Outcome::Good => CallbackOutcome::Good,
            Outcome::Bad => CallbackOutcome::Bad,
            Outcome::Unknown => CallbackOutcome::Unknown,
        },
        text: found.text,
    }
}
