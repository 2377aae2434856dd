//! Evaluates expressions for successes that their scans have not considered yet, outside of the committer
//! (docs/decisions/0012).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use model::decide::{
    Consider, Considered, Evaluate, Evaluated, ExplainedTrigger, PreparedExpression,
};
use model::limits::EVALUATIONS_COST;
use model::{ProjectId, ScanKey, World};
use state::SubmitError;
use tokio::task::JoinSet;
use workflow::Sandbox;

use super::{Failed, checked};
use crate::evaluations::{Purpose, Turn, defect, unless_panic};
use crate::handle::Handle;
use crate::limits::{AT_ONCE, EVALUATED_BESIDE, TRIGGER_REST, TURN_COST};

/// The projects whose expressions are evaluated or wait for their turn.
#[derive(Default)]
pub(super) struct Considering {
    busy: HashSet<ProjectId>,
    turns: JoinSet<Considerations>,
    /// The last scan of a project that was considered. The next turn begins after this scan, so that each scan gets a turn.
    last: HashMap<ProjectId, ScanKey>,
}

/// The result of one turn of a project.
struct Considerations {
    project: ProjectId,
    last: Option<ScanKey>,
    failed: Vec<Failed>,
}

impl Considering {
    /// Queues a turn for every project with unseen successes.
    pub(super) fn begin(
        &mut self,
        handle: &Handle,
        unseen: impl IntoIterator<Item = (ProjectId, Vec<ScanKey>)>,
    ) {
        for (project, mut scans) in unseen {
            if self.busy.insert(project) {
                if let Some(last) = self.last.get(&project) {
                    let next = scans.partition_point(|scan| scan <= last);
                    scans.rotate_left(next);
                }
                let handle = handle.clone();
                self.turns
                    .spawn(async move { consider(&handle, project, scans).await });
            }
        }
    }

    /// Waits for the end of a turn, or forever if no turn is pending. Returns the scans that could not be checked.
    pub(super) async fn ended(&mut self) -> Vec<Failed> {
        match self.turns.join_next().await {
            Some(Ok(done)) => {
                self.busy.remove(&done.project);
                match done.last {
                    Some(last) => self.last.insert(done.project, last),
                    None => self.last.remove(&done.project),
                };
                done.failed
            }
            Some(Err(ended)) => std::panic::resume_unwind(ended.into_panic()),
            None => std::future::pending().await,
        }
    }
}

/// The scans with unseen successes, by project, without scans that wait after a failure.
pub(super) fn unseen(
    world: &World,
    is_resting: impl Fn(&ScanKey) -> bool,
) -> BTreeMap<ProjectId, Vec<ScanKey>> {
    let mut projects: BTreeMap<ProjectId, Vec<ScanKey>> = BTreeMap::new();
    for scan in world.unseen() {
        if let Some(record) = world.workflow_record(scan.workflow)
            && !is_resting(&scan)
        {
            projects.entry(record.project).or_default().push(scan);
        }
    }
    projects
}

/// As many triggers as one turn may evaluate.
fn first(world: &World, scans: &[ScanKey]) -> Vec<ExplainedTrigger> {
    let unseen = scans.iter().filter(|scan| world.is_unseen(scan));
    let mut left = TURN_COST;
    unseen
        .filter_map(|scan| ExplainedTrigger::of(world, scan))
        .enumerate()
        .map_while(|(place, trigger)| {
            let rest = left.checked_sub(trigger.cost());
            left = rest.unwrap_or(0);
            (place == 0 || rest.is_some()).then_some(trigger)
        })
        .collect()
}

/// A scan and the evaluated expression for its decision.
type Ready = (ScanKey, Result<Evaluate<Evaluated>, SubmitError>);

/// Evaluates as many expressions as fit into a turn of their project, and commits the decisions whose inputs are
/// unchanged. After some attempts, the committer evaluates the expressions.
async fn consider(handle: &Handle, project: ProjectId, scans: Vec<ScanKey>) -> Considerations {
    let state = handle.state();
    let mut done = Considerations {
        project,
        last: None,
        failed: Vec::new(),
    };
    let mut left = scans;
    for attempt in 0..=EVALUATED_BESIDE {
        let mut turn = handle.evaluations().turn(project, Purpose::Trigger).await;
        let triggers = state.read(|world| first(world, &left));
        let Some(last) = triggers.last() else {
            return done;
        };
        done.last = Some(last.scan().clone());
        left = if attempt < EVALUATED_BESIDE {
            let ready = evaluate_triggers(handle, turn, triggers).await;
            settle(handle, ready, &mut done.failed).await
        } else {
            // While this turn is held, nobody else evaluates.
            turn.charge(EVALUATIONS_COST.saturating_mul(triggers.len() as u64));
            let here = |trigger: ExplainedTrigger| (trigger.scan().clone(), Ok(Evaluate::HERE));
            let ready = triggers.into_iter().map(here).collect();
            settle(handle, ready, &mut done.failed).await
        };
        if left.is_empty() {
            return done;
        }
    }
    // The history of these scans cannot be read.
    let failed = left.into_iter().map(|scan| Failed(scan, TRIGGER_REST));
    done.failed.extend(failed);
    done
}

async fn evaluate_triggers(
    handle: &Handle,
    mut turn: Turn,
    triggers: Vec<ExplainedTrigger>,
) -> Vec<Ready> {
    let state = handle.state();
    let histories = triggers
        .iter()
        .flat_map(|trigger| state.read(|world| trigger.histories(world)));
    let read = state.recent_jobs(histories.collect()).await;
    let mut ready = Vec::new();
    let mut prepared = Vec::new();
    for trigger in triggers {
        let scan = trigger.scan().clone();
        let taken = unless_panic(|| state.read(|world| trigger.prepare(world, &read)));
        match taken.and_then(|taken| Ok(taken?)) {
            Ok(expression) => {
                turn.charge(expression.cost());
                prepared.push((scan, expression));
            }
            Err(error) => ready.push((scan, Err(error))),
        }
    }
    let scans: Vec<_> = prepared.iter().map(|(scan, _)| scan.clone()).collect();
    let evaluating = turn.evaluate(|| {
        let sandbox = Sandbox::shared();
        let evaluate = |expression: PreparedExpression| {
            unless_panic(|| Evaluate::Done(Arc::new(expression.evaluate(&sandbox))))
        };
        let expressions = prepared.into_iter().map(|(_, expression)| expression);
        expressions.map(evaluate).collect::<Vec<_>>()
    });
    match evaluating.await {
        Ok(evaluated) => ready.extend(scans.into_iter().zip(evaluated)),
        Err(_) => ready.extend(scans.into_iter().map(|scan| (scan, Err(defect())))),
    }
    ready
}

/// Submits the decisions together, so that they share commits. Returns the scans that were not evaluated.
async fn settle(handle: &Handle, ready: Vec<Ready>, failed: &mut Vec<Failed>) -> Vec<ScanKey> {
    let decisions = ready.into_iter().map(|(scan, evaluate)| async {
        let considered = match evaluate {
            Ok(evaluate) => {
                let scan = scan.clone();
                handle.state().submit(Consider { scan, evaluate }).await
            }
            Err(error) => Err(error),
        };
        (scan, considered)
    });
    let mut decided = stream::iter(decisions).buffer_unordered(AT_ONCE);
    let mut unevaluated = Vec::new();
    while let Some((scan, considered)) = decided.next().await {
        match considered {
            Ok(Considered::Unevaluated) => unevaluated.push(scan),
            considered => failed.extend(checked(scan, considered).err()),
        }
    }
    unevaluated
}
