//! `has_news()`: the results that a scan has processed, and when its expression is evaluated.

use super::*;
use crate::decide::{Activate, Complete, Failure, Resume, StoreArtifact, Suspend};
use crate::limits::PROCESSED_SCANS;
use crate::testing::{activate, complete_all, sha256};
use crate::{ScanHead, TokenHash};

const WATCH: &str = "
scans:
  hosts:
    on: {dispatch: {}}
    steps: [{run: x}]
    artifacts: [{name: list, paths: [l]}]
  reader:
    on: {expr: \"scans.hosts.has_news('list')\", dispatch: {}}
    overlap: queue
    steps: [{run: work}]
";

/// The reader can run several jobs at the same time.
const TWICE: &str = "
scans:
  hosts:
    on: {dispatch: {}}
    steps: [{run: x}]
    artifacts: [{name: list, paths: [l]}]
  reader:
    on: {dispatch: {}}
    env: {BEFORE: \"${{ has(scans.hosts.processed().id) ? scans.hosts.processed().id : '' }}\"}
    steps: [{run: work}]
";

impl Scene {
    fn claim(&mut self, job: JobId) -> TokenHash {
        self.test.claim(job, self.runner).unwrap()
    }

    /// A success of `hosts` with this list.
    fn list(&mut self, content: &str) -> JobId {
        let job = self.dispatch("hosts");
        let token = self.claim(job);
        let artifact = StoreArtifact {
            job,
            token,
            name: "list".to_owned(),
            size: 1,
            sha256: sha256(content),
            content_digest: content.to_owned(),
        };
        self.test.run(artifact).unwrap();
        self.test.run(complete_all(job, token)).unwrap();
        job
    }

    fn end(&mut self, job: JobId, token: TokenHash, failure: Option<Failure>) {
        let report = Complete {
            failure,
            ..complete_all(job, token)
        };
        self.test.run(report).unwrap();
    }

    /// The only unfinished job of the reader.
    fn reader(&self) -> JobId {
        let [job] = self.jobs("reader").try_into().unwrap();
        job
    }

    /// The job whose results the reader has processed, and its list.
    fn processed(&self) -> Option<(JobId, String)> {
        let head = self.test.world.head(&key(self.workflow, "reader"))?;
        let processed = head.processed.get("hosts")?;
        Some((processed.success, processed.digests["list"].clone()))
    }

    fn is_unseen(&self) -> bool {
        let reader = key(self.workflow, "reader");
        self.test.world.unseen().contains(&reader)
    }
}

fn failed() -> Option<Failure> {
    Some(Failure::Setup("no".to_owned()))
}

#[test]
fn a_change_is_processed_after_a_failed_attempt() {
    let mut scene = Scene::new(WATCH);
    let one = scene.list("one");
    let reader = scene.reader();
    scene.succeed(reader);
    assert_eq!(scene.processed(), Some((one, "one".to_owned())));

    scene.list("two");
    let reader = scene.reader();
    let token = scene.claim(reader);
    scene.end(reader, token, failed());
    assert_eq!(
        scene.jobs("reader"),
        [],
        "no new job before the next success"
    );
    assert!(!scene.is_unseen());
    assert_eq!(scene.consider("reader"), None);
    assert_eq!(scene.processed(), Some((one, "one".to_owned())));

    let again = scene.list("two");
    let reader = scene.reader();
    scene.succeed(reader);
    assert_eq!(scene.processed(), Some((again, "two".to_owned())));
    scene.list("two");
    assert_eq!(scene.jobs("reader"), [], "the list has not changed");
}

#[test]
fn results_during_a_job_of_the_reader_are_processed_after_it() {
    let mut scene = Scene::new(WATCH);
    scene.list("three");
    let reader = scene.reader();
    let token = scene.claim(reader);
    scene.list("four");
    let newest = scene.list("four");
    assert_eq!(scene.jobs("reader"), [reader]);
    scene.end(reader, token, None);
    assert_eq!(scene.processed().unwrap().1, "three");

    let reader = scene.reader();
    let token = scene.claim(reader);
    let job = scene.test.world.job(reader).unwrap();
    let context = &job.state.run().unwrap().context.scans["hosts"];
    assert_eq!(context.newest_success_ids[0], newest.to_string());
    let processed = context.processed().unwrap();
    assert_eq!(processed.artifacts["list"], "three");
    scene.end(reader, token, None);
    assert_eq!(scene.processed(), Some((newest, "four".to_owned())));
    assert_eq!(scene.jobs("reader"), []);
}

#[test]
fn the_job_with_the_latest_claim_decides_what_was_processed() {
    let mut scene = Scene::new(TWICE);
    scene.list("one");
    let older = scene.dispatch("reader");
    let older_token = scene.claim(older);
    let two = scene.list("two");
    let newer = scene.dispatch("reader");
    let newer_token = scene.claim(newer);
    scene.end(newer, newer_token, None);
    assert_eq!(scene.processed(), Some((two, "two".to_owned())));
    scene.end(older, older_token, None);
    assert_eq!(scene.processed(), Some((two, "two".to_owned())));

    let failing = scene.dispatch("reader");
    scene.list("three");
    let token = scene.claim(failing);
    scene.end(failing, token, failed());
    assert_eq!(scene.processed(), Some((two, "two".to_owned())));
}

#[test]
fn the_processed_results_are_stored_with_the_success_and_kept_by_later_revisions() {
    let mut scene = Scene::new(TWICE);
    let one = scene.list("one");
    let reader = scene.dispatch("reader");
    let token = scene.claim(reader);
    let (changes, _) = scene.test.changes(complete_all(reader, token)).unwrap();
    let stored = changes.iter().find_map(|change| match change {
        Change::Digests(digests) => Some(&digests.processed),
        _ => None,
    });
    let stored: Vec<_> = stored.unwrap().values().collect();
    assert_eq!(stored[0].success, one);
    let claimed = scene.test.world.head(&key(scene.workflow, "reader"));
    assert_eq!(Some(stored[0].claimed), claimed.unwrap().latest_claim);

    let silent = "env: {BEFORE: x}";
    let start = TWICE.find("env:").unwrap();
    let end = start + TWICE[start..].find('\n').unwrap();
    let text = TWICE.replace(&TWICE[start..end], silent);
    scene.test.push("loop", &text);
    scene.list("two");
    let reader = scene.dispatch("reader");
    scene.succeed(reader);
    assert_eq!(scene.processed(), Some((one, "one".to_owned())));
}

#[test]
fn a_new_or_changed_scan_is_evaluated_once() {
    let mut scene = Scene::new(WATCH);
    scene.list("one");
    let reader = scene.reader();
    let token = scene.claim(reader);
    scene.end(reader, token, failed());
    assert!(!scene.is_unseen());

    // The steps are repaired.
    let text = WATCH.replace("run: work", "run: mended");
    let (changes, ()) = scene.test.changes(activate("loop", &text)).unwrap();
    let made = |change: &Change| matches!(change, Change::Job(_) | Change::Head(_));
    assert!(
        !changes.iter().any(made),
        "the activation's commit creates no job"
    );
    assert!(scene.is_unseen());
    let made = scene.consider("reader").unwrap();
    let record = scene.ledger("reader").pop().unwrap();
    assert_eq!(record.cause, Cause::Activation { revision: 2 });
    assert_eq!(record.outcome, Outcome::Made { job: made });
    scene.succeed(made);
    assert!(!scene.is_unseen());

    // Another scan changes, or only the commit.
    let other = text.replace("{run: x}", "{run: y}");
    scene.test.push("loop", &other);
    let commit = Activate {
        commit: "d00d".to_owned(),
        ..activate("loop", &other)
    };
    scene.test.run(commit).unwrap();
    assert!(!scene.is_unseen());

    // There are no new results.
    scene.test.push("loop", &other.replace("mended", "better"));
    assert!(scene.is_unseen());
    assert_eq!(scene.consider("reader"), None);
    assert!(!scene.is_unseen());

    let workflow = scene.workflow;
    scene.test.run(Retire { workflow }).unwrap();
    assert!(!scene.is_unseen());
    scene.test.push("loop", &other);
    assert!(scene.is_unseen(), "the workflow is active again");
}

#[test]
fn an_activation_is_evaluated_after_an_unfinished_job_and_a_suspension() {
    let mut scene = Scene::new(WATCH);
    let reader = scene.dispatch("reader");
    let token = scene.claim(reader);
    scene.list("one");
    scene.test.push("loop", &WATCH.replace("work", "mended"));
    assert!(
        !scene.is_unseen(),
        "an unfinished job prevents the evaluation"
    );
    let suspend = Suspend {
        workflow: scene.workflow,
        scan: Some("reader".to_owned()),
        reason: "later".to_owned(),
        actor: Actor::Daemon,
    };
    scene.test.run(suspend).unwrap();
    assert!(scene.is_unseen());
    assert_eq!(scene.consider("reader"), None);
    scene.end(reader, token, None);
    assert_eq!(
        scene.processed(),
        None,
        "there was no success when the job started"
    );
    assert!(!scene.is_unseen());
    let resume = Resume {
        workflow: scene.workflow,
        scan: Some("reader".to_owned()),
        reason: None,
        actor: Actor::Daemon,
    };
    scene.test.run(resume).unwrap();
    assert!(scene.is_unseen());
    let made = scene.consider("reader").unwrap();
    scene.succeed(made);
    assert_eq!(scene.processed().unwrap().1, "one");
}

#[test]
fn a_resumption_evaluates_an_activation_from_the_suspension() {
    let mut scene = Scene::new(WATCH);
    scene.list("one");
    let reader = scene.reader();
    let token = scene.claim(reader);
    scene.end(reader, token, failed());
    let changed = WATCH.replace("has_news('list')", "has_news()");
    scene.test.push("loop", &changed);
    let part = Some("reader".to_owned());
    let workflow = scene.workflow;
    let suspend = Suspend {
        workflow,
        scan: part.clone(),
        reason: "later".to_owned(),
        actor: Actor::Daemon,
    };
    scene.test.run(suspend).unwrap();
    assert_eq!(scene.consider("reader"), None);
    let resume = Resume {
        workflow,
        scan: part,
        reason: None,
        actor: Actor::Daemon,
    };
    scene.test.run(resume).unwrap();
    assert!(scene.consider("reader").is_some());
    assert!(!scene.is_unseen());
}

#[test]
fn the_oldest_unused_scans_are_forgotten() {
    let mut scene = Scene::new(WATCH);
    scene.list("one");
    let reader = scene.reader();
    scene.claim(reader);
    let run = scene.test.world.job(reader).unwrap().state.run().cloned();
    let mut run = run.unwrap();
    let mut head = ScanHead::new(scene.workflow, key(scene.workflow, "reader").scan);
    let hosts = run.context.scans.remove("hosts").unwrap();
    for at in 0..2 * PROCESSED_SCANS {
        run.claimed = run.claimed.next();
        run.context.scans = [(format!("s{at}"), hosts.clone())].into();
        head.process(&run);
    }
    assert_eq!(head.processed.len(), PROCESSED_SCANS);
    let newest = format!("s{}", 2 * PROCESSED_SCANS - 1);
    assert!(head.processed.contains_key(newest.as_str()));
    assert!(!head.processed.contains_key("s0"));
    // All scans that the current revision uses stay, even if there are very many.
    run.claimed = run.claimed.next();
    let many = (0..2 * PROCESSED_SCANS).map(|at| (format!("t{at}"), hosts.clone()));
    run.context.scans = many.collect();
    head.process(&run);
    assert_eq!(head.processed.len(), 2 * PROCESSED_SCANS);
}
