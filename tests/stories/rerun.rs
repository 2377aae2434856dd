//! A failed job is run again: with its revision, and with the corrected revision.

use crate::support::World;

const FAILS: &str = "\
scans:
  build:
    on:
      dispatch:
        inputs:
          name: { required: true }
    env:
      NAME: ${{ inputs.name }}
      WHO: ${{ vars.WHO }}
    steps:
      - run: echo \"$NAME of $WHO\"; exit 3
";

#[test]
fn a_failed_job_runs_again_with_its_revision_or_the_current_one_also_after_a_restart() {
    let mut world = World::with_workflow("build.yaml", FAILS);
    world.everscan(&["var", "set", "WHO", "Ada"]);
    let job = world.dispatch("build", "build", &["name=a & b"]);
    assert_eq!(world.finished(&job)["state"], "failed");
    assert_eq!(world.log(&job), "a & b of Ada\n");

    world.push(&[("build.yaml", Some(&FAILS.replace("exit 3", "exit 0")))]);
    world.sync();
    world.everscan(&["var", "set", "WHO", "Bob"]);
    // After a restart the daemon reads the earlier revision again, also for a waiting job.
    world.stop_runner();
    let again = world.everscan(&["job", "rerun", "-j", &job]);
    let again = again.trim();
    world.kill_daemon();
    world.start_daemon();
    world.run_runner();
    let shown = world.finished(again);
    assert_eq!(shown["state"], "failed", "{shown}");
    assert_eq!(shown["rerun_of"], job);
    assert_eq!(shown["revision"]["number"], 1);
    // The inputs are those of the earlier job, and vars have their present values.
    assert_eq!(world.log(again), "a & b of Bob\n");

    let repaired = world.everscan(&["job", "rerun", "--current", "-j", again]);
    let shown = world.finished(repaired.trim());
    assert_eq!(shown["state"], "succeeded", "{shown}");
    assert_eq!(shown["rerun_of"], again);
    assert_eq!(shown["revision"]["number"], 2);
    assert_eq!(world.log(repaired.trim()), "a & b of Bob\n");
}
