//! Changes of the state that no request makes.

use std::sync::Arc;

use chrono::TimeDelta;
use http::Method;
use model::channel::{Channel, Sending, SendingStep};
use model::decide::{Command, Decision, Refusal, Urgency};
use model::{Change, MessageId, Moment, RevisionId, WorkflowId, WorkflowRecord, World};
use serde_json::json;

use super::Service;
use crate::client::Call;

/// Makes the newest revision of a workflow unreadable, like a start with a damaged text.
#[derive(Clone)]
struct LoseRevision(WorkflowId);

impl Command for LoseRevision {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let mut record = WorkflowRecord::clone(world.workflow_record(self.0).unwrap());
        let number = record.revision.number + 1;
        record.revision.number = number;
        record.revision.id = RevisionId::derive(self.0, number);
        Ok(Decision {
            changes: vec![Change::Workflow(Arc::new(record))],
            answer: (),
        })
    }
}

/// Makes the message of a channel of the instance wait for its next attempt, like a receiver that is down.
#[derive(Clone)]
struct WaitForRetry(&'static str);

impl Command for WaitForRetry {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, moment: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let name = self.0.to_owned().try_into().unwrap();
        let mut channel = Channel::clone(world.channel_of(None, &name).unwrap());
        channel.sending = Some(Sending {
            message: MessageId::random(moment.entropy),
            at: moment.now,
            planned: moment.order,
            attempt: 1,
            is_repeated: false,
            step: SendingStep::RetryAt {
                at: moment.now + TimeDelta::hours(1),
            },
        });
        Ok(Decision {
            changes: vec![Change::Channel(Arc::new(channel))],
            answer: (),
        })
    }
}

impl Service {
    /// Makes the newest revision of a workflow, named `source/name`, unreadable.
    pub(crate) async fn lose_revision(&self, workflow: &str) {
        let (source, name) = workflow.split_once('/').unwrap();
        let lose = LoseRevision(WorkflowId::derive(&source.parse().unwrap(), name));
        self.handle.state().submit(lose).await.unwrap();
    }

    /// Adds the channel `team` to a project, as `?project=NAME`, or to the instance.
    pub(crate) async fn team(&self, owner: &str) {
        let target = json!({"kind": "ntfy", "server": "https://ntfy.example", "topic": "team"});
        let set = Call::new(Method::PUT, format!("/v0/channels/team{owner}"));
        let set = set.json(&json!({ "target": target }));
        self.admin(set).await.expect(200);
    }

    /// Adds the channel `waiting` to the instance. Its message waits for its next attempt.
    pub(crate) async fn waiting_channel(&self) {
        let body = json!({"target": {"kind": "command", "command": "page"}});
        let set = Call::new(Method::PUT, "/v0/channels/waiting").json(&body);
        self.admin(set).await.expect(200);
        let wait = WaitForRetry("waiting");
        self.handle.state().submit(wait).await.unwrap();
    }
}
