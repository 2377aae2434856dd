//! Clean stops, cancellations, lost runners.

use crate::support::{World, eventually, lines};

fn waiting_workflow(world: &World) -> String {
    format!(
        "scans:\n  wait:\n    on:\n      dispatch: {{}}\n    steps:\n      - run: |\n          trap '' TERM\n          (trap '' TERM; sleep 300) &\n          echo \"$$\" >> {pids}\n          echo \"$!\" >> {pids}\n          echo begun\n          sleep 300\n",
        pids = world.path("pids").display()
    )
}

fn world_with_a_running_job() -> (World, String) {
    let mut world = World::new();
    world.init_repository();
    world.push(&[("wait.yaml", Some(&waiting_workflow(&world)))]);
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    let job = world.dispatch("wait", "wait", &[]);
    eventually("the step", || lines(&world.path("pids")).len() == 2);
    (world, job)
}

fn is_alive(pid: &str) -> bool {
    // A zombie counts as ended.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_cancelled_job_takes_its_whole_process_group_with_it() {
    let (world, job) = world_with_a_running_job();
    world.everscan(&["job", "cancel", "-j", &job]);
    let shown = world.finished(&job);
    assert_eq!(shown["state"], "cancelled");
    assert_eq!(shown["reason"]["code"], "cancelled_by_user");
    assert!(
        shown["reason"]["actor"]
            .as_str()
            .unwrap()
            .contains("initial admin"),
        "{shown}"
    );
    let waited = world.output("everscan", &["job", "wait", "-j", &job]);
    assert_eq!(
        waited.status.code(),
        Some(4),
        "the exit code shows a cancelled job"
    );
    eventually("the end of the group", || {
        lines(&world.path("pids")).iter().all(|pid| !is_alive(pid))
    });
    let log = world.log(&job);
    assert!(
        log.starts_with("begun\n"),
        "{log}\n{}\n{}",
        world.runner_log(),
        world.daemon_log()
    );
}

#[test]
fn a_dead_runner_loses_its_job_as_soon_as_it_returns() {
    let (mut world, job) = world_with_a_running_job();
    world.kill_runner();
    world.run_runner();
    let shown = world.finished(&job);
    assert_eq!(shown["state"], "failed", "{shown}");
    assert_eq!(shown["reason"]["code"], "runner_lost");
    eventually("the end of the step", || {
        lines(&world.path("pids")).iter().all(|pid| !is_alive(pid))
    });
}

#[test]
fn after_a_clean_stop_the_files_hold_the_whole_state() {
    let hello = include_str!("../../examples/hello/workflows/hello.yaml");
    let mut world = World::with_workflow("hello.yaml", hello);
    let job = world.dispatch("hello", "greet", &["name=Ada"]);
    let before = world.finished(&job);
    world.stop_runner();
    world.stop_daemon();
    // `CHECKPOINT` shows that the journal is not needed.
    let journal = world.path("state/journal");
    for entry in std::fs::read_dir(&journal).unwrap() {
        let path = entry.unwrap().path();
        if path != journal.join("CHECKPOINT") {
            std::fs::remove_file(path).unwrap();
        }
    }
    world.start_daemon();
    assert_eq!(world.json(&["job", "show", "-j", &job]), before);
    world.stop_daemon();
    std::fs::remove_dir_all(world.path("state/index")).unwrap();
    world.start_daemon();
    assert_eq!(world.json(&["job", "show", "-j", &job]), before);
    assert_eq!(
        world.json(&["workflow", "list"])["items"][0]["name"],
        "hello"
    );
    assert_eq!(world.artifact(&job, "greeting").len(), 1);
}

#[test]
fn a_daemon_that_restarts_forgets_no_waiting_job() {
    let hello = include_str!("../../examples/hello/workflows/hello.yaml");
    let mut world = World::new();
    world.init_repository();
    world.push(&[("hello.yaml", Some(hello))]);
    world.start_daemon();
    world.sync();
    let jobs: Vec<String> = (0..3)
        .map(|n| world.dispatch("hello", "greet", &[&format!("name=number {n}")]))
        .collect();
    world.stop_daemon();
    world.start_daemon();
    world.start_runner(2);
    for (n, job) in jobs.iter().enumerate() {
        assert_eq!(world.finished(job)["state"], "succeeded");
        assert!(world.log(job).contains(&format!("number {n}")));
    }
}
