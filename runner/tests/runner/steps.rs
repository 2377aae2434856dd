//! What steps see, in which order they run, and what the end of a step means for the job.

use std::time::Duration;

use runner::{Options, Urgency};
use wire::{Assignment, CompleteJob, JobFailure, Stream};

use crate::harness::{
    CANCELLED, FAILED, FORGIVEN, Harness, OPTIONS, PATIENCE, SKIPPED, SUCCEEDED, ends, job, step_if,
};

#[tokio::test]
async fn steps_run_in_order_and_leave_nothing() {
    let harness = Harness::start().await;
    let job = job(&[
        "echo one > file; echo out; echo err >&2",
        "cat file; pwd; ls -A ..; cat \"${0%1}0\" | wc -c",
    ]);
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [SUCCEEDED, SUCCEEDED]);
    assert_eq!(end.steps[1].exit_code, Some(0));
    assert_eq!(end.failure, None);
    let stdout = harness.stdout(&job);
    assert_eq!(stdout[..2], ["out", "one"]);
    assert_eq!(
        stdout[2],
        harness
            .work()
            .join(job.job_id.to_string())
            .to_str()
            .unwrap()
    );
    assert_eq!(stdout.last().unwrap(), "0", "the last script is emptied");
    assert_eq!(harness.lines(&job, Stream::Stderr), ["err"]);
    harness.idle().await;
    assert!(harness.leftovers().is_empty());
}

#[tokio::test]
async fn changes_of_a_step_to_files_of_the_runner_affect_no_other_job() {
    let harness = Harness::start_with(OPTIONS, 1).await;
    let outside = harness.home.path().join("outside");
    let scripts = [
        "ln \"$0\" OUTSIDE".to_owned(),
        "rm \"$0\"; ln -s OUTSIDE \"$0\"".to_owned(),
        "rm \"$0\" $SERVICE_STEP_OUTPUTS; mkdir \"$0\"; mkfifo $SERVICE_STEP_OUTPUTS; false"
            .to_owned(),
        "chmod 400 \"$0\"; chmod 500 \"${0%/*}\"".to_owned(),
        "rm -r \"${0%/*}\"".to_owned(),
        "ln -s / ../.everscan-slots/0/spare".to_owned(),
        "rm -r ../.everscan-slots; ln -s / ../.everscan-slots".to_owned(),
        "cd ..; rm -r \"$PWD\"".to_owned(),
    ];
    for script in scripts {
        let script = script.replace("OUTSIDE", outside.to_str().unwrap());
        let next = "echo $SERVICE_JOB_ID; echo n=1 >> $SERVICE_STEP_OUTPUTS";
        let bad = job(&[&script]);
        harness.run(&bad).await;
        harness.idle().await;
        let good = job(&[next, next]);
        let end = harness.run(&good).await;
        assert_eq!(ends(&end), [SUCCEEDED, SUCCEEDED], "after {script}");
        let id = good.job_id.to_string();
        assert_eq!(harness.stdout(&good), [id.clone(), id]);
        assert_eq!(end.outputs.len(), 1);
        harness.idle().await;
    }
    // The first script kept its text, and no other script was written there.
    let kept = std::fs::read_to_string(&outside).unwrap();
    assert!(kept.starts_with("ln "), "{kept}");
    harness.idle().await;
    assert!(harness.leftovers().is_empty());
}

#[tokio::test]
async fn a_job_that_leaves_no_files_reuses_the_folder_of_its_slot() {
    let harness = Harness::start_with(OPTIONS, 1).await;
    let inodes = "stat -c %i . \"$0\" $SERVICE_STEP_OUTPUTS";
    let mut seen = Vec::new();
    for _ in 0..2 {
        let job = job(&[inodes]);
        harness.run(&job).await;
        harness.idle().await;
        seen.push(harness.stdout(&job));
    }
    assert_eq!(seen[0].len(), 3);
    assert_eq!(seen[0], seen[1]);
    let job = job(&["echo $HOME > file; ls -A"]);
    harness.run(&job).await;
    harness.idle().await;
    let next = crate::harness::job(&["ls -A"]);
    harness.run(&next).await;
    assert!(harness.stdout(&next).is_empty());
}

#[tokio::test]
async fn a_step_that_cannot_start_names_the_reason() {
    let harness = Harness::start().await;
    for (first_line, reason) in [
        (
            "#!/no/interpreter",
            "its interpreter, which its first line names, is missing",
        ),
        (
            "echo never",
            "it is no program of this machine, and its first line names no interpreter",
        ),
    ] {
        let script = format!("echo '{first_line}' > tool; chmod +x tool");
        let mut one = job(&[&script, "true"]);
        one.steps[1].shell = Some(vec!["./tool".to_owned()]);
        let end = harness.run(&one).await;
        assert_eq!(ends(&end), [SUCCEEDED, FAILED]);
        let folder = harness.work().join(one.job_id.to_string());
        let expected = format!("cannot start {}/./tool: {reason}", folder.display());
        assert_eq!(end.steps[1].error.as_ref(), Some(&expected));
    }

    let two = job(&["rm -r \"$PWD\"", "true"]);
    let end = harness.run(&two).await;
    assert_eq!(ends(&end), [SUCCEEDED, FAILED]);
    let error = end.steps[1].error.as_ref().unwrap();
    let named = error.contains(&two.job_id.to_string()) && error.contains("is gone");
    assert!(named, "{error}");
}

#[tokio::test]
async fn a_short_job_sends_its_log_once_and_a_silent_one_not_at_all() {
    let patient = Options {
        ship_after: Duration::from_secs(60),
        ..OPTIONS
    };
    let harness = Harness::start_with(patient, 1).await;
    harness.run(&job(&["echo a; echo b", "echo c"])).await;
    harness.run(&job(&["true"])).await;
    let state = harness.daemon.state();
    let of_jobs: Vec<_> = state
        .requests
        .iter()
        .filter(|request| !request.ends_with("messages") && !request.ends_with("hello"))
        .collect();
    assert_eq!(
        of_jobs,
        [
            "POST resolve",
            "PATCH logs",
            "POST complete",
            "POST resolve",
            "POST complete"
        ]
    );
}

#[tokio::test]
async fn a_failed_step_skips_steps_that_need_success() {
    let harness = Harness::start().await;
    let mut job = job(&["exit 3", "echo never"]);
    job.steps.push(step_if("always", "echo cleanup"));
    job.steps.push(step_if("true", "echo never"));
    job.steps
        .push(step_if("!ok && vars.GREETING == 'hello'", "echo failed"));
    job.steps.push(step_if("always && ok", "echo never"));
    let end = harness.run(&job).await;
    assert_eq!(
        ends(&end),
        [FAILED, SKIPPED, SUCCEEDED, SKIPPED, SUCCEEDED, SKIPPED]
    );
    assert_eq!(end.steps[0].exit_code, Some(3));
    assert_eq!(end.steps[1].started_at, None);
    assert_eq!(harness.stdout(&job), ["cleanup", "failed"]);
}

#[tokio::test]
async fn a_step_for_failures_is_skipped_after_success() {
    let harness = Harness::start().await;
    let mut job = job(&["exit 1"]);
    job.steps[0].allow_failure = true;
    job.steps.push(step_if("!ok", "echo never"));
    job.steps.push(step_if("always && !ok", "echo never"));
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [FORGIVEN, SKIPPED, SKIPPED]);
}

#[tokio::test]
async fn an_allowed_failure_changes_nothing() {
    let harness = Harness::start().await;
    let mut job = job(&["exit 1", "echo on"]);
    job.steps[0].allow_failure = true;
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [FORGIVEN, SUCCEEDED]);
    assert_eq!(harness.stdout(&job), ["on"]);
}

#[tokio::test]
async fn conditions_and_templates_read_the_frozen_context() {
    let harness = Harness::start().await;
    let mut job = job(&["echo ${{ vars.GREETING }}, ${{ id }} of ${{ name }}"]);
    job.steps
        .push(step_if("vars.GREETING == 'hello'", "echo yes"));
    job.steps.push(step_if("vars.GREETING == 'bye'", "echo no"));
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [SUCCEEDED, SUCCEEDED, SKIPPED]);
    let greeting = format!("hello, {} of scan", job.job_id);
    assert_eq!(harness.stdout(&job), [greeting.as_str(), "yes"]);
}

#[tokio::test]
async fn an_error_in_an_expression_fails_its_step_with_its_message() {
    let harness = Harness::start().await;
    let mut job = job(&["echo ${{ vars.MISSING }}"]);
    job.steps.push(step_if("always", "echo still"));
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [FAILED, SUCCEEDED]);
    let message = end.steps[0].error.clone().unwrap();
    assert!(
        message.contains("run") && message.contains("MISSING"),
        "{message}"
    );
    assert_eq!(harness.lines(&job, Stream::Runner), [message]);
}

#[tokio::test]
async fn the_environment_has_the_promised_layers() {
    let harness = Harness::start().await;
    let mut job = job(&["env | sort | grep -vE '^(PWD|SHLVL|_|PATH|SERVICE_STEP_OUTPUTS)='"]);
    job.pass_env = vec!["PROXY".to_owned()];
    let set = [
        ("A", "workflow"),
        ("A", "scan ${{ vars.GREETING }}"),
        ("B", "$HIDDEN"),
        ("SERVICE_TOKEN", "own"),
    ];
    job.env = set
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    harness.run(&job).await;
    let id = |number: u128| uuid::Uuid::from_u128(number);
    assert_eq!(
        harness.stdout(&job),
        [
            "A=scan hello".to_owned(),
            "B=$HIDDEN".to_owned(),
            "GIT_TERMINAL_PROMPT=0".to_owned(),
            "LANG=C.UTF-8".to_owned(),
            "PROXY=passed".to_owned(),
            format!("SERVICE_JOB_ID={}", job.job_id),
            format!("SERVICE_PROJECT_ID={}", id(1)),
            format!("SERVICE_REVISION_ID={}", id(3)),
            "SERVICE_SCAN_NAME=scan".to_owned(),
            "SERVICE_TOKEN=own".to_owned(),
            format!("SERVICE_URL={}", harness.daemon.url),
            format!("SERVICE_WORKFLOW_ID={}", id(2)),
        ]
    );
}

#[tokio::test]
async fn an_error_in_env_fails_the_job_before_its_first_step() {
    let harness = Harness::start().await;
    let mut job = job(&["echo never"]);
    job.env = vec![("A".to_owned(), "${{ vars.MISSING }}".to_owned())];
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [SKIPPED]);
    let Some(JobFailure::EnvFailed(message)) = end.failure else {
        panic!("{:?}", end.failure);
    };
    assert!(message.contains("env A"), "{message}");
    assert_eq!(harness.lines(&job, Stream::Runner), [message]);
}

#[tokio::test]
async fn a_script_that_cannot_start_fails_its_step_with_a_reason() {
    let harness = Harness::start().await;
    let mut no_shell = job(&["x"]);
    no_shell.steps[0].shell = Some(vec!["no-such-shell".to_owned(), "-x".to_owned()]);
    let end = harness.run(&no_shell).await;
    assert_eq!(ends(&end), [FAILED]);
    let lines = harness.lines(&no_shell, Stream::Runner).concat();
    assert!(
        lines.contains("\"no-such-shell\" is not installed"),
        "{lines}"
    );

    let mut too_large = job(&["true"]);
    too_large.env = vec![("HUGE".to_owned(), "x".repeat(128 * 1024))];
    let end = harness.run(&too_large).await;
    assert_eq!(ends(&end), [FAILED]);
    assert!(end.steps[0].error.clone().unwrap().contains("HUGE"));
}

#[tokio::test]
async fn a_shell_gets_its_words_and_the_script() {
    let harness = Harness::start().await;
    let mut job = job(&["script text"]);
    job.steps[0].shell = Some(
        ["sh", "-c", "echo $0 $1; cat \"$2\"", "zero", "one two"]
            .map(str::to_owned)
            .into(),
    );
    harness.run(&job).await;
    assert_eq!(harness.stdout(&job), ["zero one two", "script text"]);
}

#[tokio::test]
async fn the_default_shell_stops_at_the_first_error() {
    let harness = Harness::start().await;
    let job = job(&["false | cat; echo never"]);
    assert_eq!(ends(&harness.run(&job).await), [FAILED]);
    assert!(harness.stdout(&job).is_empty());
}

#[tokio::test]
async fn a_step_that_dies_by_a_signal_has_no_exit_code() {
    let harness = Harness::start().await;
    let end = harness.run(&job(&["kill -9 $$"])).await;
    assert_eq!(ends(&end), [FAILED]);
    assert_eq!(end.steps[0].exit_code, None);
    assert_eq!(end.steps[0].error.as_deref(), Some("ended by signal 9"));
}

#[tokio::test]
async fn a_cancelled_job_runs_no_further_step() {
    let harness = Harness::start().await;
    let mut job = job(&["echo up; sleep 60", "echo never"]);
    job.steps.push(step_if("ok", "echo never"));
    job.steps.push(step_if("!ok", "echo never"));
    let end = cancelled(&harness, &job, "up").await;
    assert_eq!(ends(&end), [CANCELLED; 4]);
    assert_eq!(end.failure, None);
    assert_eq!(
        harness.lines(&job, Stream::Runner),
        ["the job was cancelled"]
    );
    harness.idle().await;
    assert!(harness.leftovers().is_empty());
}

/// Cancels a job once it has printed a line, and returns its completion.
async fn cancelled(harness: &Harness, job: &Assignment, line: &str) -> CompleteJob {
    harness.daemon.offer(job.clone());
    harness.daemon.line(job.job_id, line).await;
    harness.daemon.cancel(job.job_id);
    harness.daemon.completion(job.job_id).await
}

#[tokio::test]
async fn after_a_cancel_steps_with_always_run() {
    let harness = Harness::start().await;
    let mut job = job(&["echo up; sleep 60", "echo never"]);
    job.steps.push(step_if("always", "echo cleaning; exit 1"));
    job.steps.push(step_if("!ok", "echo never"));
    job.steps.push(step_if("always && !ok", "echo on"));
    let end = cancelled(&harness, &job, "up").await;
    assert_eq!(
        ends(&end),
        [CANCELLED, CANCELLED, FAILED, CANCELLED, SUCCEEDED]
    );
    assert_eq!(end.failure, None);
    assert_eq!(harness.stdout(&job), ["up", "cleaning", "on"]);
    harness.idle().await;
    assert!(harness.leftovers().is_empty());
}

#[tokio::test]
async fn a_cancel_is_not_a_failure() {
    let harness = Harness::start().await;
    let mut job = job(&["echo up; sleep 60"]);
    job.steps.push(step_if("always && ok", "echo ok"));
    job.steps.push(step_if("always && !ok", "echo never"));
    let end = cancelled(&harness, &job, "up").await;
    assert_eq!(ends(&end), [CANCELLED, SUCCEEDED, CANCELLED]);
}

#[tokio::test]
async fn the_steps_after_a_cancel_share_one_time_limit() {
    let hasty = Options {
        clean_up: Duration::from_millis(400),
        ..OPTIONS
    };
    let harness = Harness::start_with(hasty, 1).await;
    let mut job = job(&["echo up; sleep 100"]);
    job.steps.push(step_if("always", "sleep 100"));
    job.steps.push(step_if("always", "echo never"));
    let end = cancelled(&harness, &job, "up").await;
    assert_eq!(ends(&end), [CANCELLED, FAILED, CANCELLED]);
    let lines = harness.lines(&job, Stream::Runner);
    let last = "the steps that clean up took 0 s together, and are stopped";
    assert_eq!(lines.last().unwrap(), last);
    assert_eq!(harness.stdout(&job), ["up"]);
}

#[tokio::test]
async fn a_second_stop_ends_the_steps_after_a_cancel() {
    let patient = Options {
        clean_up: PATIENCE,
        ..OPTIONS
    };
    let harness = Harness::start_with(patient, 1).await;
    let mut job = job(&["echo up; sleep 100"]);
    job.steps
        .push(step_if("always", "echo cleaning; sleep 100"));
    job.steps.push(step_if("always", "echo never"));
    harness.daemon.offer(job.clone());
    harness.daemon.line(job.job_id, "up").await;
    harness.daemon.cancel(job.job_id);
    harness.daemon.line(job.job_id, "cleaning").await;
    harness.on_urgency(Urgency::Cancel);
    let end = harness.daemon.completion(job.job_id).await;
    assert_eq!(ends(&end), [CANCELLED; 3]);
    harness.ended().await.unwrap();
}

#[tokio::test]
async fn a_runner_that_stops_at_once_runs_no_further_step() {
    let harness = Harness::start().await;
    let mut job = job(&["echo up; sleep 100"]);
    job.steps.push(step_if("always", "echo never"));
    harness.daemon.offer(job.clone());
    harness.daemon.line(job.job_id, "up").await;
    harness.on_urgency(Urgency::Cancel);
    let end = harness.daemon.completion(job.job_id).await;
    assert_eq!(ends(&end), [CANCELLED; 2]);
}
