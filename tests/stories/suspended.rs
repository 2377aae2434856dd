//! A workflow is suspended and resumed: waiting jobs, refused dispatches, and skipped triggers that are caught up.

use crate::support::{World, eventually};

const LOOP: &str = "\
scans:
  hosts:
    on: { dispatch: { inputs: { go: { required: true } } } }
    env:
      GO: ${{ inputs.go }}
    steps:
      - run: until [ -e \"$GO\" ]; do sleep 0.05; done
  report:
    on: { expr: 'scans.hosts.is_available()' }
    steps:
      - run: echo reported
";

#[test]
fn a_suspended_loop_stays_suspended_over_a_restart_and_catches_up() {
    let mut world = World::with_workflow("loop.yaml", LOOP);
    let go = world.path("go");
    let input = format!("go={}", go.display());
    let running = world.dispatch("loop", "hosts", &[&input]);
    eventually("the job runs", || {
        world.json(&["job", "show", "-j", &running])["state"] == "running"
    });
    let reason = "the machine is serviced";
    let said = world.everscan(&["workflow", "suspend", "loop", "--reason", reason]);
    assert!(said.contains(reason), "{said}");
    let refused = world.output(
        "everscan",
        &["scan", "dispatch", "loop", "hosts", "-i", &input],
    );
    assert_eq!(refused.status.code(), Some(1));
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.contains("workflow suspended since"), "{words}");
    assert!(words.contains("everscan workflow resume loop"), "{words}");

    // The running job continues, also over a crash. Its success starts no job, and the ledger has the reason.
    world.kill_daemon();
    world.start_daemon();
    let shown = world.json(&["job", "show", "-j", &running]);
    assert_eq!(shown["state"], "running");
    std::fs::write(&go, "").unwrap();
    assert_eq!(world.finished(&running)["state"], "succeeded");
    let why = world.json(&["scan", "why", "loop", "report"]);
    assert_eq!(why["records"][0]["outcome"]["code"], "suspended", "{why}");
    assert_eq!(why["suspended"]["reason"], reason, "{why}");
    assert!(world.jobs_of("loop", "report").is_empty());
    let listed = world.everscan(&["workflow", "list"]);
    assert!(listed.contains("active, suspended"), "{listed}");

    world.everscan(&["workflow", "resume", "loop"]);
    eventually("the success is looked at", || {
        !world.jobs_of("loop", "report").is_empty()
    });
    let report = world.followed_by("loop", "report");
    assert_eq!(world.log(&report), "reported\n");
    assert_eq!(world.jobs_of("loop", "report").len(), 1);
}
