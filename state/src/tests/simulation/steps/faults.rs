//! Faults of runners and of the daemon.

use super::Simulation;
use crate::tests::simulation::daemon::Daemon;
use crate::tests::simulation::runners::Runner;
use crate::tests::simulation::time::HOUR;

impl Simulation {
    pub(super) fn disturb_runner(&mut self) {
        let mut at = self.choices.below(self.runners.len());
        if self.choices.percent(50) {
            // Prefer a runner with work.
            at = self.runners.iter().position(Runner::holds).unwrap_or(at);
        }
        let (choice, now) = (self.choices.below(8), self.time.steady());
        let runner = &mut self.runners[at];
        let what = match choice {
            _ if !runner.is_up => {
                runner.start(now);
                "starts"
            }
            _ if runner.is_paused => {
                runner.is_paused = false;
                runner.check_silence(now);
                "continues"
            }
            _ if runner.is_cut_off => {
                runner.is_cut_off = false;
                "is connected again"
            }
            0 | 1 => {
                runner.crash();
                "crashes"
            }
            2 | 3 => {
                runner.is_paused = true;
                "is paused"
            }
            4 | 5 => {
                runner.is_cut_off = true;
                "is cut off"
            }
            _ if runner.is_draining && !runner.holds() => {
                runner.crash();
                "has ended"
            }
            _ => {
                runner.is_draining = true;
                "takes no more jobs"
            }
        };
        self.note(format!("runner {at} {what}"));
    }

    pub(super) async fn disturb_daemon(&mut self) {
        match self.daemon.take() {
            None => self.start_daemon().await,
            Some(daemon) if self.choices.percent(60) => {
                self.note("the daemon crashes".to_owned());
                self.crash(daemon).await;
            }
            Some(daemon) => {
                self.note("the daemon stops".to_owned());
                self.ended_at = self.time.steady();
                daemon.stop().await;
                self.check_remains().await;
            }
        }
    }

    /// Kills the daemon. Its unrecorded knowledge of the clock is lost.
    pub(super) async fn crash(&mut self, daemon: Daemon) {
        if !daemon.is_sure_of_clock() {
            self.oracle.clock_is_unknown();
        }
        self.ended_at = self.time.steady();
        daemon.crash().await;
        self.check_remains().await;
    }

    pub(super) async fn start_daemon(&mut self) {
        self.note("the daemon starts".to_owned());
        // A jump can only be recognized if it is longer than the downtime.
        if self.time.steady() - self.ended_at >= HOUR / 2 {
            self.oracle.clock_is_unknown();
        }
        // The connections to the old process are closed.
        self.late.clear();
        self.begun.clear();
        let seed = self.choices.next();
        self.seen = None;
        self.daemon = Some(Daemon::start(&self.store, &self.time, seed).await);
    }
}
