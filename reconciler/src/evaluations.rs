//! Evaluates expressions outside of the committer (docs/decisions/0012), one at a time. Projects take turns by the cost
//! of their past evaluations. So a project with many costly expressions delays only its own evaluations.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use model::ProjectId;
use state::SubmitError;
use tokio::sync::oneshot;

use crate::supervise::lock;

/// The purpose of an evaluation. Within a project, claims come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// A runner waits for it.
    Claim,
    Trigger,
}

/// The project whose turn it is, and the waiting projects.
#[derive(Default)]
pub(crate) struct Evaluations(Mutex<Queues>);

#[derive(Default)]
struct Queues {
    is_taken: bool,
    /// The cost of the last served project before its turn.
    served: u64,
    projects: BTreeMap<ProjectId, Queue>,
    count: u64,
}

#[derive(Default)]
struct Queue {
    /// The cost of its evaluations. A project that returns starts with at least the cost of the last served project.
    spent: u64,
    waiting: BTreeMap<(Purpose, u64), oneshot::Sender<Turn>>,
}

/// The right to evaluate. When it is dropped, the next waiting project gets it.
pub(crate) struct Turn {
    /// None if the receiver was dropped.
    evaluations: Option<Arc<Evaluations>>,
    project: ProjectId,
    cost: u64,
}

impl Turn {
    pub(crate) const fn charge(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
    }

    /// Evaluates on a blocking thread, and passes the turn on.
    pub(crate) async fn evaluate<T: Send + 'static>(
        self,
        evaluate: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SubmitError> {
        let evaluate = move || {
            let evaluated = evaluate();
            drop(self);
            evaluated
        };
        let evaluating = tokio::task::spawn_blocking(evaluate);
        evaluating.await.map_err(|_| defect())
    }
}

/// Runs a part of an evaluation. A panic (already logged) becomes the defect of this part only.
pub(crate) fn unless_panic<T>(part: impl FnOnce() -> T) -> Result<T, SubmitError> {
    catch_unwind(AssertUnwindSafe(part)).map_err(|_| defect())
}

pub(crate) fn defect() -> SubmitError {
    SubmitError::Defect {
        command: "an expression".to_owned(),
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(evaluations) = self.evaluations.take() {
            let mut queues = evaluations.queues();
            queues.is_taken = false;
            if let Some(queue) = queues.projects.get_mut(&self.project) {
                queue.spent = queue.spent.saturating_add(self.cost.max(1));
            }
            queues.serve(&evaluations);
        }
    }
}

impl Evaluations {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        lock(&self.0)
    }

    pub(crate) async fn turn(self: &Arc<Self>, project: ProjectId, purpose: Purpose) -> Turn {
        loop {
            let (give, turn) = oneshot::channel();
            {
                let mut queues = self.queues();
                let (served, place) = (queues.served, (purpose, queues.count));
                queues.count += 1;
                let queue = queues.projects.entry(project).or_default();
                if queue.waiting.is_empty() {
                    queue.spent = queue.spent.max(served);
                }
                queue.waiting.insert(place, give);
                queues.serve(self);
            }
            if let Ok(turn) = turn.await {
                return turn;
            }
        }
    }
}

impl Queues {
    /// Gives the turn to the waiting project with the lowest cost, unless the turn is taken.
    fn serve(&mut self, evaluations: &Arc<Evaluations>) {
        while !self.is_taken {
            let waiting = self.projects.iter_mut();
            let waiting = waiting.filter(|(_, queue)| !queue.waiting.is_empty());
            let Some((project, queue)) = waiting.min_by_key(|(_, queue)| queue.spent) else {
                // No project waits, so past costs are forgotten.
                self.projects.clear();
                return;
            };
            self.served = queue.spent;
            let Some((_, give)) = queue.waiting.pop_first() else {
                return;
            };
            let turn = Turn {
                evaluations: Some(evaluations.clone()),
                project: *project,
                cost: 0,
            };
            match give.send(turn) {
                Ok(()) => self.is_taken = true,
                // The receiver was dropped.
                Err(mut turn) => turn.evaluations = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt;
    use uuid::Uuid;

    use super::*;

    fn project(number: u128) -> ProjectId {
        ProjectId::from_uuid(Uuid::from_u128(number))
    }

    /// The order in which waiting evaluations are served. The first turn is held until all others wait.
    async fn served(waiting: &[(u128, Purpose, u64)]) -> Vec<(u128, u64)> {
        let evaluations = Arc::<Evaluations>::default();
        let first = evaluations.turn(project(99), Purpose::Trigger).await;
        let order = Mutex::new(Vec::new());
        let all = waiting.iter().map(|(number, purpose, cost)| {
            let (evaluations, order) = (&evaluations, &order);
            async move {
                let mut turn = evaluations.turn(project(*number), *purpose).await;
                order.lock().unwrap().push((*number, *cost));
                turn.charge(*cost);
            }
        });
        let all = futures_util::future::join_all(all);
        tokio::join!(all, async move {
            tokio::task::yield_now().await;
            drop(first);
        });
        order.into_inner().unwrap()
    }

    #[tokio::test]
    async fn many_costly_expressions_delay_only_their_own_project() {
        let mut waiting = vec![(1, Purpose::Trigger, 1_000_000); 300];
        waiting.extend([(2, Purpose::Trigger, 10); 20]);
        let order = served(&waiting).await;
        let last = order.iter().rposition(|(project, _)| *project == 2);
        // One costly expression may run first.
        assert!(last.unwrap() <= 20, "{last:?}");
        assert_eq!(order.len(), 320);
    }

    #[tokio::test]
    async fn projects_take_turns_by_cost_and_claims_come_first() {
        let order = served(&[
            (1, Purpose::Trigger, 20),
            (1, Purpose::Trigger, 21),
            (1, Purpose::Claim, 22),
            (2, Purpose::Trigger, 10),
            (2, Purpose::Trigger, 11),
            (2, Purpose::Trigger, 12),
        ])
        .await;
        let expected = [(1, 22), (2, 10), (2, 11), (2, 12), (1, 20), (1, 21)];
        assert_eq!(order, expected);
    }

    #[tokio::test]
    async fn an_unclaimed_turn_goes_to_the_next_project() {
        let evaluations = Arc::<Evaluations>::default();
        let first = evaluations.turn(project(1), Purpose::Trigger).await;
        let gone = evaluations.turn(project(1), Purpose::Claim);
        let stays = evaluations.turn(project(1), Purpose::Trigger);
        tokio::pin!(stays);
        {
            tokio::pin!(gone);
            assert!((&mut gone).now_or_never().is_none());
            assert!((&mut stays).now_or_never().is_none());
        }
        drop(first);
        drop(stays.await);
        // The turn is given, but its receiver is dropped.
        let first = evaluations.turn(project(1), Purpose::Trigger).await;
        {
            let given = evaluations.turn(project(1), Purpose::Trigger);
            tokio::pin!(given);
            assert!((&mut given).now_or_never().is_none());
            drop(first);
        }
        drop(evaluations.turn(project(1), Purpose::Trigger).await);
    }
}
