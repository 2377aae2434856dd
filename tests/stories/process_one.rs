//! The runner as process 1, as in a container without an init of its own.

use std::process::Stdio;

use crate::machine::{run, skip};
use crate::support::World;

/// Imitates a daemonising program: its child outlives it and becomes a child of process 1. The
/// script waits until this child is not only dead but reaped. It gives up after 2000 checks.
const ORPHANS: &str = r#"
scans:
  orphans:
    on: { dispatch: {} }
    steps:
      - run: |
          (setsid sh -c 'echo $$ > orphan.new; mv orphan.new orphan' > /dev/null 2>&1 &)
          for look in $(seq 2000); do
            if [ -e orphan ] && [ ! -e /proc/$(cat orphan) ]; then exit 0; fi
            sleep 0.01
          done
          exit 1
  kills:
    on: { dispatch: {} }
    steps:
      - run: |
          setsid sleep 601 &
          sleep 602 &
          kill -9 $PPID
          wait
  left:
    on: { dispatch: {} }
    steps:
      - run: |
          for name in /proc/[0-9]*/comm; do
            case $(cat $name) in sleep) exit 1 ;; esac
          done
"#;

#[test]
fn a_runner_as_process_1_reaps_orphans_and_ends_on_a_signal() {
    let mut world = World::new();
    let apart = ["--pid", "--fork", "--mount-proc", "--kill-child", "--"];
    if let Err(reason) = run(world.command("unshare").args(apart).arg("true")) {
        return skip("process_one", &reason);
    }
    world.init_repository();
    world.push(&[("orphans.yaml", Some(ORPHANS))]);
    world.start_daemon();
    world.sync();
    world.register_runner("story", 1);
    let mut runner = world.command("unshare");
    runner
        .args(apart)
        .args(["everscan-runner", "run", "--name", "story"])
        .env_remove("SERVICE_TOKEN")
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(world.path("runner.log")).unwrap());
    let unshare = runner.spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", unshare.id());
    world.runner = Some(unshare);
    world.succeed("orphans", "orphans", &[]);
    // The leader of the runner's session is not in its container.
    let killed = world.dispatch("orphans", "kills", &[]);
    assert_eq!(world.finished(&killed)["state"], "failed");
    world.succeed("orphans", "left", &[]);
    let process_1 = std::fs::read_to_string(children).unwrap();
    crate::support::signal(process_1.trim().parse().unwrap(), "TERM");
    let ended = world.runner.take().unwrap().wait().unwrap();
    assert!(ended.success(), "{ended}: {}", world.runner_log());
}
