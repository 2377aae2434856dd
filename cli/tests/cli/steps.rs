//! `--step` of a log.

use wire::{Job, JobState};

use crate::everscan::run_at;
use crate::fixtures::{id, job};
use crate::server::{Reply, Server};
use crate::snapshot;

#[test]
fn a_step_that_does_not_exist_is_an_error_once_the_job_has_ended() {
    let without_steps = Job {
        steps: Vec::new(),
        ..job(JobState::Skipped)
    };
    for (case, found, code) in [
        ("steps-missing", job(JobState::Succeeded), 7),
        ("steps-none", without_steps, 7),
        ("", job(JobState::Running), 0),
    ] {
        for more in ["", "--grep x --tail 5", "--output json"] {
            let found = Reply::json(&found);
            let server = Server::start([Reply::bytes(""), found]);
            let line = format!("job logs {} --step 9 {more}", id(1));
            let output = run_at(&server.url, &line);
            assert_eq!((output.code, output.stdout.as_str()), (code, ""), "{more}");
            if let ("", false) = (more, case.is_empty()) {
                snapshot::check_listing(case, &output.stderr);
            }
        }
    }
    // The step exists and has printed nothing.
    let found = Reply::json(&job(JobState::Succeeded));
    let server = Server::start([Reply::bytes(""), found]);
    let output = run_at(&server.url, &format!("job logs {} --step 1", id(1)));
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
}
