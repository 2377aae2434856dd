//! The channels and their rules, and the end of all messages.

use model::channel::{Offered, Target};
use model::decide::{Precondition, SetChannel, SetRule};
use model::{Actor, ProjectId, SealingKey, SecretValue};
use workflow::notify::{DEFAULT_EVENTS, EventName, NotifyName, Quiet, Rule};

use super::{ROUNDS, Simulation};
use crate::tests::fixture::Seeded;
use crate::tests::simulation::daemon::Daemon;
use crate::tests::simulation::scenario::source;
use crate::tests::simulation::time::HOUR;

/// The quiet hours of the channel `night`, in minutes of the day.
pub(in crate::tests::simulation) const QUIET: [u32; 2] = [12 * 60 + 10, 12 * 60 + 40];

/// The rules; each has the name of its channel. The other channels have none.
pub(in crate::tests::simulation) fn rules() -> [Rule; 2] {
    let rule = |name| Rule {
        repeat: Some("5m".to_owned()),
        ..Rule::of(NotifyName::new(name).unwrap())
    };
    let usual = DEFAULT_EVENTS.into_iter().filter(|it| !it.is_of_instance());
    let [from, to] = QUIET.map(|minute| format!("{:02}:{:02}", minute / 60, minute % 60));
    let often = Rule {
        after: 2,
        ..rule("often")
    };
    let night = Rule {
        events: usual
            .chain([EventName::SlotMissed, EventName::Interaction])
            .collect(),
        quiet: Some(Quiet {
            from,
            to,
            timezone: "UTC".to_owned(),
        }),
        ..rule("night")
    };
    [often, night]
}

pub(super) async fn set_channels(daemon: &mut Daemon) {
    let project = Some(ProjectId::of_source(&source()));
    for (name, is_of_project, target) in [
        ("all", false, Target::Discord),
        ("own", true, Target::Slack),
        ("refuses", true, Target::Slack),
        ("often", true, Target::Slack),
        ("night", true, Target::Slack),
    ] {
        let set = SetChannel {
            project: project.filter(|_| is_of_project),
            name: NotifyName::new(name).unwrap(),
            offered: if is_of_project {
                Offered::default()
            } else {
                Offered::All
            },
            target,
            secret: Some(SecretValue::new("https://hooks.example/in".to_owned())),
            key: Some(SealingKey::random(&mut Seeded(7))),
            actor: Actor::Daemon,
            expects: Precondition::Anything,
        };
        daemon.submit(set).await.unwrap();
    }
    for rule in rules() {
        daemon.submit(SetRule { project, rule }).await.unwrap();
    }
}

impl Simulation {
    /// Waits until all messages are sent, except for repeats that are not due. Nothing else happens meanwhile.
    pub(super) async fn empty_outbox(&mut self) {
        // Repeats go on while quiet hours hold other messages.
        for _ in 0..10 * ROUNDS {
            // The first commit may meet a fault that no commit has met before.
            self.check().await;
            if self.daemon.is_none() {
                self.start_daemon().await;
            }
            let Some(daemon) = &mut self.daemon else {
                continue;
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
            // The clock may have been set back during quiet hours.
            assert!(millis <= 24 * HOUR, "a message is held");
            self.time.pass(millis);
        }
        panic!("the outbox is never empty");
    }
}
