//! Expressions that are evaluated outside of the committer.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::decide::{Claim, ClaimOutcome, Command, Evaluated, EvaluatedClaim, ExplainedTrigger};
use crate::limits::{EVALUATIONS_COST, FOLLOWERS};
use crate::{TokenHash, World};
use workflow::Sandbox;

const COSTLY: &str = "
scans:
  source:
    on: {dispatch: {}}
    steps: [{run: x}]
  bystander:
    on: {dispatch: {}}
    steps: [{run: x}]
  costly:
    on: {expr: \"scans.source.exists(a, scans.source.exists(b, a.id == b.id && a.state == 'succeeded'))\"}
    steps: [{run: \"${{ scans.source[0].id }}\"}]
  cheap:
    on: {expr: scans.source.is_available()}
    steps: [{run: x}]
";

impl Scene {
    /// Evaluates the expression as the task `triggers` does.
    fn evaluated(&self, scan: &str) -> Arc<Evaluated> {
        let world = &self.test.world;
        let trigger = ExplainedTrigger::of(world, &key(self.workflow, scan)).unwrap();
        let prepared = trigger.prepare(world, &BTreeMap::new()).unwrap();
        assert!(prepared.cost() > EVALUATIONS_COST);
        Arc::new(prepared.evaluate(&Sandbox::shared()))
    }

    /// Returns the outcome and the number of changes.
    fn consider_by(&mut self, scan: &str, evaluate: Evaluate<Evaluated>) -> (Considered, usize) {
        let scan = key(self.workflow, scan);
        let (changes, considered) = self.test.changes(Consider { scan, evaluate }).unwrap();
        (considered, changes.len())
    }

    fn claim_by(&mut self, job: JobId, evaluate: Evaluate<EvaluatedClaim>) -> ClaimOutcome {
        let claim = self.claim_of(job, evaluate);
        self.test.run(claim).unwrap()
    }

    fn claim_of(&self, job: JobId, evaluate: Evaluate<EvaluatedClaim>) -> Claim {
        Claim {
            job,
            runner: self.runner,
            token: TokenHash::of("t"),
            job_token: None,
            evaluate,
        }
    }

    fn evaluated_claim(&self, job: JobId) -> Evaluate<EvaluatedClaim> {
        let claim = self.claim_of(job, Evaluate::CHEAP);
        let prepared = claim.prepare(&self.test.world, &BTreeMap::new()).unwrap();
        assert!(prepared.cost() > EVALUATIONS_COST);
        Evaluate::Done(Arc::new(prepared.evaluate(&Sandbox::shared())))
    }
}

fn is_unevaluated((considered, changes): (Considered, usize)) -> bool {
    considered == Considered::Unevaluated && changes == 0
}

#[test]
fn a_success_evaluates_cheap_expressions_and_leaves_costly_ones_unseen() {
    let mut scene = Scene::new(COSTLY);
    let source = scene.dispatch("source");
    scene.succeed(source);
    assert_eq!(
        scene.jobs("cheap").len(),
        1,
        "the cheap expression does not wait for the costly expression"
    );
    assert!(scene.jobs("costly").is_empty() && scene.ledger("costly").is_empty());
    let costly = key(scene.workflow, "costly");
    assert_eq!(scene.test.world.unseen(), [costly]);
}

#[test]
fn the_expressions_of_one_decision_share_its_budget() {
    let followers = FOLLOWERS - 1;
    let mut text = "scans:\n  source: {on: {dispatch: {}}, steps: [{run: x}]}\n".to_owned();
    for number in 0..followers {
        let expr = "scans.source.filter(j, j.state == 'succeeded').size() > 0";
        text += &format!("  f{number}: {{on: {{expr: \"{expr}\"}}, steps: [{{run: x}}]}}\n");
    }
    let mut scene = Scene::new(&text);
    let world: &World = &scene.test.world;
    let trigger = ExplainedTrigger::of(world, &key(scene.workflow, "f0")).unwrap();
    let read = trigger
        .histories(world)
        .into_iter()
        .map(|scan| (scan, Arc::default()));
    let prepared = trigger.prepare(world, &read.collect()).unwrap();
    let fit = usize::try_from(EVALUATIONS_COST / prepared.cost()).unwrap();
    assert!((2..followers).contains(&fit), "{fit}");
    let source = scene.dispatch("source");
    scene.succeed(source);
    assert_eq!(scene.test.world.jobs().count(), fit);
    assert_eq!(scene.test.world.unseen().len(), followers - fit);
}

#[test]
fn an_evaluation_is_used_only_if_its_inputs_are_unchanged() {
    let mut scene = Scene::new(COSTLY);
    let source = scene.dispatch("source");
    scene.succeed(source);
    let cheap = scene.consider_by("costly", Evaluate::CHEAP);
    assert!(is_unevaluated(cheap));
    let done = scene.evaluated("costly");
    // The expression reads neither the bystander nor running jobs of its own workflow.
    let bystander = scene.dispatch("bystander");
    scene.test.claim(bystander, scene.runner).unwrap();
    let again = scene.dispatch("source");
    let stale = scene.consider_by("costly", Evaluate::Done(done));
    assert!(is_unevaluated(stale), "there is another job of the source");
    let done = scene.evaluated("costly");
    scene.succeed(again);
    assert!(is_unevaluated(
        scene.consider_by("costly", Evaluate::Done(done.clone()))
    ));
    // The third attempt is evaluated inside of the committer.
    let (Considered::Settled(Some(_)), _) = scene.consider_by("costly", Evaluate::HERE) else {
        panic!("the expression is true");
    };
    // All successes were considered, so the evaluation does not matter.
    let over = scene.consider_by("costly", Evaluate::Done(done));
    assert_eq!(over, (Considered::Settled(None), 0));
}

#[test]
fn an_evaluation_outside_the_committer_gives_the_same_result() {
    let ledger = |outside: bool| {
        let mut scene = Scene::new(COSTLY);
        let source = scene.dispatch("source");
        scene.succeed(source);
        scene.consider_by("costly", Evaluate::CHEAP);
        let evaluate = if outside {
            Evaluate::Done(scene.evaluated("costly"))
        } else {
            Evaluate::HERE
        };
        let bystander = scene.dispatch("bystander");
        scene.test.claim(bystander, scene.runner).unwrap();
        let (Considered::Settled(Some(made)), _) = scene.consider_by("costly", evaluate) else {
            panic!("the inputs are unchanged");
        };
        assert_eq!(scene.jobs("costly"), [made]);
        (scene.ledger("costly"), scene.test.world.job(made).cloned())
    };
    assert_eq!(ledger(true), ledger(false));
}

#[test]
fn a_costly_expression_is_evaluated_outside_of_the_committer_at_a_claim() {
    let mut scene = Scene::new(COSTLY);
    let source = scene.dispatch("source");
    scene.succeed(source);
    let job = scene.consider("costly").unwrap();
    let ClaimOutcome::Unevaluated = scene.claim_by(job, Evaluate::CHEAP) else {
        panic!("the expression costs too much");
    };
    let histories = scene
        .claim_of(job, Evaluate::CHEAP)
        .histories(&scene.test.world);
    assert_eq!(
        histories.into_iter().collect::<Vec<_>>(),
        [key(scene.workflow, "source")]
    );
    let stale = scene.evaluated_claim(job);
    scene.dispatch("source");
    let ClaimOutcome::Unevaluated = scene.claim_by(job, stale) else {
        panic!("there is another job of the source");
    };
    assert_eq!(
        scene.test.world.job(job).unwrap().state,
        JobState::Scheduled
    );
    let done = scene.evaluated_claim(job);
    let ClaimOutcome::Claimed(claimed) = scene.claim_by(job, done) else {
        panic!("the inputs are unchanged");
    };
    let context = &claimed.job.state.run().unwrap().context;
    let jobs: Vec<&str> = context.scans["source"]
        .jobs
        .iter()
        .map(|job| job.state.as_str())
        .collect();
    assert_eq!(jobs, ["scheduled", "succeeded"]);
    assert_eq!(context.job.as_ref().unwrap().id, job.to_string());
}

#[test]
fn a_claim_is_finally_evaluated_inside_the_committer() {
    let mut scene = Scene::new(COSTLY);
    let source = scene.dispatch("source");
    scene.succeed(source);
    let job = scene.consider("costly").unwrap();
    let ClaimOutcome::Claimed(claimed) = scene.claim_by(job, Evaluate::HERE) else {
        panic!("the expression was not evaluated");
    };
    assert_eq!(claimed.job.id, job);
}
