//! The end of all messages.

use super::{ROUNDS, Simulation};
use crate::tests::simulation::time::HOUR;

impl Simulation {
    /// Waits until all messages are sent. Nothing else happens meanwhile.
    pub(super) async fn empty_outbox(&mut self) {
        for _ in 0..ROUNDS {
            let Some(daemon) = &mut self.daemon else {
                panic!("the daemon failed without a fault");
            };
            daemon.plan_messages().await;
            let (choices, oracle) = (&mut self.choices, &mut self.oracle);
            daemon.send(choices, oracle, true).await;
            let Some(millis) = daemon.until_next_message() else {
                self.oracle.check_messages(&daemon.state).await;
                self.note("all messages are sent".to_owned());
                return;
            };
            self.note(format!("{millis} ms until the next message"));
            assert!(millis <= 2 * HOUR, "a message is held");
            self.time.pass(millis);
        }
        panic!("the outbox is never empty");
    }
}
