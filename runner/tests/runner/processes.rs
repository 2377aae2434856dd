//! The processes of a step: none outlives it, and none delays its end.

use std::time::{Duration, Instant};

use runner::Options;

use crate::harness::{CANCELLED, FAILED, Harness, OPTIONS, PATIENCE, SUCCEEDED, ends, job};

/// Shorter than the sleep of a child that the step must not wait for; longer than the rest of the step takes on a busy
/// machine.
const PROMPT: Duration = Duration::from_secs(50);

/// Whether a process runs. A zombie does not.
fn runs(id: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with('Z'))
}

#[tokio::test]
async fn a_cancel_kills_a_grandchild_that_ignores_sigterm() {
    let harness = Harness::start().await;
    let job = job(&["(trap '' TERM; echo $BASHPID; while :; do sleep 1; done) & wait"]);
    harness.daemon.offer(job.clone());
    let grandchild = harness
        .daemon
        .wait_for("the grandchild's id", |state| {
            Some(state.logs.get(&job.job_id)?.first()?.text.clone())
        })
        .await;
    assert!(runs(&grandchild));
    harness.daemon.cancel(job.job_id);
    let end = harness.daemon.completion(job.job_id).await;
    assert_eq!(ends(&end), [CANCELLED]);
    assert!(!runs(&grandchild));
}

#[tokio::test]
async fn a_background_child_neither_holds_its_step_nor_outlives_it() {
    let harness = Harness::start().await;
    let start = Instant::now();
    let job = job(&["sleep 60 & echo $!; printf unfinished"]);
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [SUCCEEDED]);
    let stdout = harness.stdout(&job);
    assert_eq!(stdout[1], "unfinished");
    assert!(!runs(&stdout[0]));
    assert!(start.elapsed() < PROMPT);
}

#[tokio::test]
async fn a_child_that_left_the_group_does_not_hold_the_step_by_its_output() {
    let harness = Harness::start().await;
    let start = Instant::now();
    let job = job(&[
        "setsid sh -c 'echo $$; exec sleep 60' & while ! read -t 1; do break; done; echo done",
        "true",
    ]);
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [SUCCEEDED, SUCCEEDED]);
    assert!(start.elapsed() < PROMPT);
    let stdout = harness.stdout(&job);
    assert!(stdout.contains(&"done".to_owned()));
    harness.idle().await;
    let mut ids = stdout.iter().filter(|line| *line != "done");
    assert!(!ids.any(|id| runs(id)));
}

fn id_in(harness: &Harness, file: &str) -> String {
    let id = std::fs::read_to_string(harness.work().join(file)).unwrap();
    id.trim().to_owned()
}

const SAYS_BYE: &str = "trap 'echo bye > ../bye; exit' TERM";

/// A script that starts another one in its own session. That one writes its process id to a file beside the job's folder,
/// since the output of a process whose step is over is not read.
fn escape(script: &str, file: &str) -> String {
    let escaped = format!("{script}; echo $$ > ../{file}; while :; do sleep 0.05; done");
    format!(
        "setsid sh -c {escaped:?} > /dev/null 2>&1 & until [ -s ../{file} ]; do sleep 0.02; done\n"
    )
    .replace('$', "\\$")
}

#[tokio::test]
async fn a_process_that_left_the_group_gets_sigterm_at_the_end_of_the_job() {
    let patient = Options {
        grace: PATIENCE,
        ..OPTIONS
    };
    let harness = Harness::start_with(patient, 1).await;
    let listens = escape(SAYS_BYE, "listens");
    let job = job(&[&listens, "kill -0 $(cat ../listens)"]);
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [SUCCEEDED, SUCCEEDED]);
    harness.idle().await;
    assert!(!runs(&id_in(&harness, "listens")));
    assert!(harness.work().join("bye").exists());
}

#[tokio::test]
async fn a_process_that_left_the_group_and_ignores_sigterm_is_killed() {
    let harness = Harness::start().await;
    let ignores = escape("trap '' TERM", "ignores");
    let job = job(&[&ignores, "kill -0 $(cat ../ignores)"]);
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [SUCCEEDED, SUCCEEDED]);
    harness.idle().await;
    assert!(!runs(&id_in(&harness, "ignores")));
}

#[tokio::test]
async fn a_stopped_job_has_one_grace_period_for_groups_and_for_processes_that_left_them() {
    let harness = Harness::start().await;
    let listens = escape(SAYS_BYE, "listens");
    let job = job(&[&format!(
        "{listens}trap '' TERM; echo up; while :; do sleep 1; done"
    )]);
    harness.daemon.offer(job.clone());
    harness.daemon.line(job.job_id, "up").await;
    harness.daemon.cancel(job.job_id);
    harness.idle().await;
    assert!(!runs(&id_in(&harness, "listens")));
    // The group took the whole grace period.
    assert!(!harness.work().join("bye").exists());
}

#[tokio::test]
async fn a_process_that_outlived_its_runner_ends_when_the_next_runner_starts() {
    let mut harness = Harness::start().await;
    let job = job(&[&format!("{}echo up; sleep 60", escape("true", "left"))]);
    harness.daemon.offer(job.clone());
    harness.daemon.line(job.job_id, "up").await;
    let id = id_in(&harness, "left");
    harness.restart().await;
    let hello = harness.daemon.wait_for("the next runner", |state| {
        (state.hellos.len() == 2).then_some(())
    });
    hello.await;
    assert!(!runs(&id));
    assert_eq!(harness.leftovers(), ["left"]);
}

#[tokio::test]
async fn a_step_leads_a_session_so_that_no_terminal_is_its_own() {
    let harness = Harness::start().await;
    let job = job(&["cut -d ' ' -f 1,6,7 /proc/$$/stat; cat"]);
    assert_eq!(ends(&harness.run(&job).await), [SUCCEEDED]);
    let [line] = &harness.stdout(&job)[..] else {
        panic!("{:?}", harness.stdout(&job));
    };
    let [id, session, terminal] = line.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{line}");
    };
    assert_eq!((session, terminal), (id, "0"));
}

#[tokio::test]
async fn all_output_written_before_the_end_is_kept() {
    let harness = Harness::start().await;
    let job = job(&["seq 1 50000; seq 1 50000 >&2; printf last"]);
    harness.run(&job).await;
    let mut expected: Vec<_> = (1..=50_000).map(|number| number.to_string()).collect();
    assert!(harness.lines(&job, wire::Stream::Stderr) == expected);
    expected.push("last".to_owned());
    assert!(harness.stdout(&job) == expected);
}

#[tokio::test]
async fn a_step_that_takes_too_long_fails() {
    let harness = Harness::start().await;
    let mut job = job(&["sleep 60", "echo never"]);
    job.steps[0].timeout_seconds = Some(1);
    let end = harness.run(&job).await;
    assert_eq!(ends(&end)[0], FAILED);
    assert_eq!(end.steps[0].error.as_deref(), Some("timed out after 1 s"));
    assert_eq!(harness.stdout(&job), Vec::<String>::new());
}
