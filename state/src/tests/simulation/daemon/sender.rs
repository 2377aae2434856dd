//! A short form of the sender: it asks for plans, makes attempts, and records their results.

use std::sync::Arc;

use model::channel::Channel;
use model::condition::Subject;
use model::decide::{EndAttempt, Look, Measure, PlanDeliveries};
use model::event::Event;
use model::outbox::{DeliveryRecord, SendResult, Suppressed};

use super::Daemon;
use crate::tests::simulation::choices::Choices;
use crate::tests::simulation::oracle::Oracle;

/// No decision to plan is followed by so many others without a pause.
const PLANS: usize = 1_000;

/// An attempt that is not recorded yet.
pub(super) struct Attempt {
    channel: Arc<Channel>,
    /// Absent until the receiver has answered.
    result: Option<SendResult>,
}

impl Daemon {
    /// Opens and closes the conditions of subjects whose time has come, and of lost runners.
    pub(in crate::tests::simulation) async fn keep_conditions(&mut self) {
        let now = self.time.wall();
        let (due, runners) = self.state.read(|world| {
            let runners: Vec<_> = world.runners().map(|runner| runner.id).collect();
            (world.conditions_due(now), runners)
        });
        for subject in due {
            drop(self.submit(Look { subject }).await);
        }
        for runner in runners {
            let lost = self.is_silent(runner);
            let measure = Measure {
                subject: Subject::Runner { runner },
                problems: lost
                    .then_some(model::condition::Problem::RunnerLost)
                    .into_iter()
                    .collect(),
            };
            if self.state.read(|world| measure.is_news(world)) {
                drop(self.submit(measure).await);
            }
        }
    }

    /// Plans messages until nothing is due.
    pub(in crate::tests::simulation) async fn plan_messages(&mut self) {
        for _ in 0..PLANS {
            let now = self.time.wall();
            let plan = PlanDeliveries {
                at_start: self.is_new_sender,
            };
            let due = self.state.read(|world| plan.due(world, now));
            if due.is_none() && self.is_new_sender {
                self.is_new_sender = false;
                continue;
            }
            if due.is_none_or(|due| due > now) {
                return;
            }
            let Ok(begun) = self.submit(plan).await else {
                return;
            };
            let attempts = begun.into_iter().map(|channel| Attempt {
                channel,
                result: None,
            });
            self.attempts.extend(attempts);
        }
        panic!("plans never end");
    }

    /// Continues the attempts. Receivers that fail do so at random, unless it is calm.
    pub(in crate::tests::simulation) async fn send(
        &mut self,
        choices: &mut Choices,
        oracle: &mut Oracle,
        is_calm: bool,
    ) {
        for mut attempt in std::mem::take(&mut self.attempts) {
            if !is_calm && choices.percent(30) {
                self.attempts.push(attempt);
                continue;
            }
            if attempt.result.is_none() {
                attempt.result = Some(self.attempt(&attempt.channel, choices, oracle, is_calm));
                // The daemon may die before it records the result.
                if !is_calm && choices.percent(30) {
                    self.attempts.push(attempt);
                    continue;
                }
            }
            let (channel, result) = (&attempt.channel, attempt.result.clone());
            let (Some(sending), Some(result)) = (&channel.sending, result) else {
                panic!("{channel:?} sends nothing");
            };
            let end = EndAttempt {
                record: DeliveryRecord {
                    at: self.time.wall(),
                    message: sending.message,
                    channel: channel.id,
                    channel_name: channel.name.clone(),
                    project: channel.project,
                    attempt: sending.attempt,
                    is_repeated: sending.is_repeated,
                    result,
                    title: String::new(),
                    events: Vec::new(),
                    event_count: 0,
                    jobs: Vec::new(),
                },
                after: None,
                is_gone: false,
                spread: 0.5,
            };
            if self.submit(end).await.is_err() {
                self.attempts.push(attempt);
            }
        }
    }

    /// One attempt: the message arrives, or it does not.
    fn attempt(
        &self,
        channel: &Channel,
        choices: &mut Choices,
        oracle: &mut Oracle,
        is_calm: bool,
    ) -> SendResult {
        let (mut events, mut suppressed) = (self.message(channel), None);
        events.retain(|(event, is_repeat)| {
            let unwanted = is_repeat.then(|| self.unwanted(event)).flatten();
            if unwanted == Some(Suppressed::Acknowledged) {
                oracle.repeat_was_suppressed(channel, event);
            }
            suppressed = unwanted.or(suppressed);
            unwanted.is_none()
        });
        if let Some(reason) = suppressed.filter(|_| events.is_empty()) {
            return SendResult::Suppressed { reason };
        }
        let (reason, at) = ("503".to_owned(), self.time.wall());
        if !is_calm && choices.percent(40) {
            return SendResult::Retry { reason, at };
        }
        if channel.name.as_str() == "refuses" && choices.percent(30) {
            return SendResult::Failed { reason };
        }
        oracle.message_arrived(channel, &events, self.time.steady());
        let reply = "200".to_owned();
        SendResult::Delivered { reply }
    }

    /// Why a condition is not reported again.
    fn unwanted(&self, event: &Event) -> Option<Suppressed> {
        let now = self.time.wall();
        self.state.read(|world| {
            let condition = world.condition(event.what.condition()?)?;
            let is_silenced = condition.silenced_until.is_some_and(|until| until > now);
            if condition.acknowledged.is_some() {
                return Some(Suppressed::Acknowledged);
            }
            is_silenced.then_some(Suppressed::Silenced)
        })
    }

    /// The events of the message that a channel sends, oldest first, each with whether it is a repeat.
    fn message(&self, channel: &Channel) -> Vec<(Event, bool)> {
        let at = channel.sending.as_ref().unwrap().at;
        let mut events = Vec::new();
        self.state.read(|world| {
            let mut due: Vec<_> = world.due_for(channel.id, at).collect();
            due.sort_by_key(|outgoing| outgoing.order);
            // A record is found once for each of its deliveries.
            due.dedup_by_key(|outgoing| outgoing.id);
            for outgoing in due {
                let deliveries = outgoing.deliveries.iter().flatten();
                for delivery in deliveries.filter(|delivery| delivery.is_in(channel)) {
                    let sent = outgoing.events.iter();
                    let sent = sent.filter(|event| delivery.events.contains(&event.id));
                    events.extend(sent.map(|event| (event.clone(), delivery.due.is_repeat())));
                }
            }
        });
        events
    }

    /// Until the next message is due, in milliseconds; none if only repeats are left and nothing is being sent.
    pub(in crate::tests::simulation) fn until_next_message(&self) -> Option<i64> {
        let now = self.time.wall();
        let plan = PlanDeliveries { at_start: false };
        self.state.read(|world| {
            let is_sending = world.channels().any(|channel| channel.sending.is_some());
            let mut outbox = world.outbox();
            let is_settled = outbox.all(|outgoing| {
                let mut deliveries = outgoing.deliveries.iter().flatten();
                outgoing.deliveries.is_some() && deliveries.all(|it| it.due.is_repeat())
            });
            if is_settled && !is_sending {
                return None;
            }
            let due = plan.due(world, now);
            Some(due.map_or(0, |due| (due - now).num_milliseconds().max(0)))
        })
    }
}
