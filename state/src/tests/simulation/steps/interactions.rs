//! What strangers send to a callback server.

use std::sync::Arc;

use model::callback::{Heard, NewInteraction, Planted, PlantedBy, Request};
use model::decide::{CreateCallback, RecordInteractions};
use model::{Actor, ProjectId};
use workflow::notify::NotifyName;

use super::Simulation;
use crate::tests::simulation::daemon::Daemon;
use crate::tests::simulation::scenario::source;

pub(super) async fn set_server(daemon: &mut Daemon) {
    let create = CreateCallback {
        project: ProjectId::of_source(&source()),
        name: NotifyName::new("shop").unwrap(),
        keep_days: None,
        actor: Actor::Daemon,
    };
    daemon.submit(create).await.unwrap();
}

impl Simulation {
    /// The server records interactions. Jobs have made some of the names.
    pub(super) async fn hear(&mut self) {
        let jobs = self.oracle.newest_jobs(10);
        let count = self.choices.between(1, 5);
        let new = (0..count).map(|_| {
            let job = self.choices.one_of(&jobs).cloned();
            let by = job
                .filter(|_| self.choices.percent(50))
                .map(|job| PlantedBy::from(&*job));
            NewInteraction {
                heard: Heard {
                    at: self.time.wall(),
                    peer: "203.0.113.9:5353".parse().unwrap(),
                    tag: None,
                    request: Request::Dns {
                        transport: "udp".to_owned(),
                        name: "a.example".to_owned(),
                        qtype: "A".to_owned(),
                        client_subnet: None,
                    },
                    answer: String::new(),
                    rule: None,
                },
                planted: Planted {
                    job: by,
                    ..Planted::default()
                },
                left_out: 0,
                repeats: 0,
                raw: vec![0; 8],
            }
        });
        let new: Vec<_> = new.collect();
        self.note(format!("{count} interactions"));
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        let server = daemon
            .state
            .read(|world| world.callbacks().next().map(|it| it.id));
        let Some(server) = server else {
            return;
        };
        let record = RecordInteractions {
            server,
            new: Arc::new(new),
            left_out: 0,
            unknown_tags: 0,
        };
        daemon.record(record).await;
    }
}
