//! What steps say to later steps and other scans.

use std::collections::BTreeMap;

use wire::{ScanStep, Stream};

use crate::harness::{FAILED, FORGIVEN, Harness, SKIPPED, SUCCEEDED, ends, job, named, step_if};

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    owned.collect()
}

#[tokio::test]
async fn later_steps_read_the_outputs_of_earlier_steps() {
    let harness = Harness::start().await;
    let mut job = job(&[]);
    job.steps = vec![
        named(
            "count",
            "echo n=3 >> $SERVICE_STEP_OUTPUTS; echo who=me >> $SERVICE_STEP_OUTPUTS",
        ),
        named("quiet", "wc -c < $SERVICE_STEP_OUTPUTS"),
        step_if(
            "steps.count.outputs.n == '3'",
            "echo ${{ steps.count.outputs.who }}",
        ),
        step_if(
            "'n' in steps.quiet.outputs || has(steps.quiet.outputs.n)",
            "echo never",
        ),
        ScanStep {
            condition: Some("steps.count.outputs.n == '4'".to_owned()),
            ..named("skipped", "echo n=5 >> $SERVICE_STEP_OUTPUTS")
        },
        step_if(
            "size(steps.skipped.outputs) == 0",
            "echo who=you >> $SERVICE_STEP_OUTPUTS",
        ),
    ];
    let end = harness.run(&job).await;
    assert_eq!(
        ends(&end),
        [SUCCEEDED, SUCCEEDED, SUCCEEDED, SKIPPED, SKIPPED, SUCCEEDED]
    );
    assert_eq!(
        harness.stdout(&job),
        ["0", "me"],
        "each step has a fresh file"
    );
    assert_eq!(
        end.outputs,
        pairs(&[("n", "3"), ("who", "you")]),
        "later steps win"
    );
    harness.idle().await;
    assert!(harness.leftovers().is_empty());
}

#[tokio::test]
async fn a_failed_step_has_outputs_and_a_missing_output_fails_its_reader() {
    let harness = Harness::start().await;
    let mut job = job(&[]);
    job.steps = vec![
        named("check", "echo why=disk >> $SERVICE_STEP_OUTPUTS; exit 1"),
        step_if("!ok && steps.check.outputs.why == 'disk'", "echo seen"),
        step_if("!ok && steps.check.outputs.gone == 'x'", "echo never"),
    ];
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [FAILED, SUCCEEDED, FAILED]);
    assert!(
        end.steps[2].error.clone().unwrap().contains("gone"),
        "{end:?}"
    );
    assert_eq!(end.outputs, pairs(&[("why", "disk")]));
}

#[tokio::test]
async fn an_invalid_output_fails_its_step_and_names_the_key() {
    let harness = Harness::start().await;
    for (script, expected) in [
        (
            "echo \"token=x $HIDE\" >> $SERVICE_STEP_OUTPUTS",
            "output `token` holds a secret",
        ),
        (
            "echo \"long=$(head -c 9000 /dev/zero | tr '\\0' x)\" >> $SERVICE_STEP_OUTPUTS",
            "with output `long` the outputs of the job have more than 8192 bytes",
        ),
        (
            "for i in $(seq 0 32); do echo k$i=; done >> $SERVICE_STEP_OUTPUTS",
            "output `k32` is one too many; a job has at most 32",
        ),
        (
            "echo words >> $SERVICE_STEP_OUTPUTS",
            "line 1 of the outputs is not `KEY=value`",
        ),
    ] {
        let mut job = job(&["echo kept=1 >> $SERVICE_STEP_OUTPUTS", script]);
        job.secrets = BTreeMap::from([("HIDE".to_owned(), "hunter2hunter2".to_owned())]);
        job.env = vec![("HIDE".to_owned(), "${{ secrets.HIDE }}".to_owned())];
        let end = harness.run(&job).await;
        assert_eq!(ends(&end), [SUCCEEDED, FAILED]);
        assert_eq!(end.steps[1].error.as_deref(), Some(expected));
        assert_eq!(harness.lines(&job, Stream::Runner), [expected]);
        assert_eq!(end.outputs, pairs(&[("kept", "1")]));
    }
    let mut allowed = job(&["echo words >> $SERVICE_STEP_OUTPUTS"]);
    allowed.steps[0].allow_failure = true;
    assert_eq!(ends(&harness.run(&allowed).await), [FORGIVEN]);
}
