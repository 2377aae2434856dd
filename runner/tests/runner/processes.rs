//! The processes of a step: none outlives it, and none delays its end.

use std::time::{Duration, Instant};

use runner::Options;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;
use wire::Assignment;

use crate::fake_daemon::FakeDaemon;
use crate::harness::{
    CANCELLED, FAILED, Harness, OPTIONS, PATIENCE, SUCCEEDED, configuration, ends, job, step_if,
};

/// Shorter than the sleep of a child for which the step must not wait. Longer than the rest of the step on a busy
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

const WRITES_BYE: &str = "trap 'echo bye > ../bye; exit' TERM";

/// A script that starts a second script in its own session. The second script writes its process id to a file next to the
/// job's folder, because the output of a process is not read after its step.
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
    let listens = escape(WRITES_BYE, "listens");
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
    let listens = escape(WRITES_BYE, "listens");
    let job = job(&[&format!(
        "{listens}trap '' TERM; echo up; while :; do sleep 1; done"
    )]);
    harness.daemon.offer(job.clone());
    harness.daemon.line(job.job_id, "up").await;
    harness.daemon.cancel(job.job_id);
    harness.idle().await;
    assert!(!runs(&id_in(&harness, "listens")));
    // The process group used the whole grace period.
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
async fn a_step_has_a_group_of_its_own_and_no_terminal() {
    let harness = Harness::start().await;
    let job = job(&["cut -d ' ' -f 1,5,6,7 /proc/$$/stat; cut -d ' ' -f 6 /proc/$PPID/stat; cat"]);
    assert_eq!(ends(&harness.run(&job).await), [SUCCEEDED]);
    let stdout = harness.stdout(&job);
    let [id, group, session, terminal] = stdout[0].split(' ').collect::<Vec<_>>()[..] else {
        panic!("{stdout:?}");
    };
    assert_eq!((group, terminal), (id, "0"));
    assert_eq!(stdout[1], session);
    let own = std::fs::read_to_string("/proc/self/stat").unwrap();
    let own = own.rsplit_once(") ").unwrap().1.split(' ').nth(3);
    assert_ne!(Some(session), own);
}

/// How many processes have the id of a job in their environment.
fn of_job(job: &Assignment) -> usize {
    let entry = format!("SERVICE_JOB_ID={}\0", job.job_id);
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("environ")).ok())
        .filter(|environment| String::from_utf8_lossy(environment).contains(&entry))
        .count()
}

/// Scripts that each leave a process. The process writes its id to the file `../left-<n>`.
fn leave(scripts: &[&str]) -> Vec<String> {
    let scripts = scripts.iter().enumerate();
    scripts
        .map(|(n, script)| {
            let script = script.replace("WRITE_PID", &format!("echo $$ > ../left-{n}"));
            format!("{script}\nuntil [ -s ../left-{n} ]; do sleep 0.02; done")
        })
        .collect()
}

#[tokio::test]
async fn no_process_outlives_its_job() {
    let harness = Harness::start().await;
    let scripts = leave(&[
        // Another parent, another environment, another session.
        "(env -i $(command -v setsid) $(command -v sh) -c 'WRITE_PID; exec /bin/sleep 600' &)",
        // No open file.
        "setsid sh -c 'WRITE_PID; exec <&- >&- 2>&-; while :; do sleep 600; done' &",
        "setsid sh -c 'trap \"\" TERM; WRITE_PID; exec sleep 600' &",
        "setsid sh -c 'WRITE_PID; kill -STOP $$' &",
        // Forks while it is killed, into its own group and new groups.
        "setsid sh -c 'trap \"\" TERM; WRITE_PID; while :; do (sleep 600 &); (setsid sleep 600 &); sleep 0.01; done' &",
    ]);
    let scripts: Vec<_> = scripts.iter().map(String::as_str).collect();
    let job = job(&scripts);
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [SUCCEEDED; 5]);
    for n in 0..scripts.len() {
        assert!(!runs(&id_in(&harness, &format!("left-{n}"))), "{n}");
    }
    assert_eq!(of_job(&job), 0);
    let lines = harness.lines(&job, wire::Stream::Runner);
    assert!(
        lines[0].starts_with("ended ")
            && lines[0].ends_with(" processes that the steps left running"),
        "{lines:?}"
    );
}

const WAS_KILLED: &str = "the process that watches the steps was killed";

#[tokio::test]
async fn a_step_that_kills_its_supervisor_has_failed_and_leaves_nothing() {
    let harness = Harness::start().await;
    let leaves = &leave(&[
        "(env -i $(command -v setsid) $(command -v sh) -c 'WRITE_PID; exec /bin/sleep 600' &)",
    ]);
    let mut job = job(&[&format!("{}\nkill -KILL $PPID; exec sleep 600", leaves[0])]);
    job.steps.push(step_if("!ok", "echo on"));
    let end = harness.run(&job).await;
    assert_eq!(ends(&end), [FAILED, SUCCEEDED]);
    assert_eq!(end.steps[0].error.as_deref(), Some(WAS_KILLED));
    assert_eq!(harness.stdout(&job), ["on"]);
    assert!(!runs(&id_in(&harness, "left-0")));
    assert_eq!(of_job(&job), 0);
}

#[tokio::test]
async fn other_signals_do_not_reach_a_supervisor() {
    let harness = Harness::start().await;
    let script = "for name in TERM INT HUP QUIT USR1 TSTP PIPE; do kill -$name $PPID; done";
    let job = job(&[script, "grep -Po 'SigIgn:\t\\K.*' /proc/self/status"]);
    assert_eq!(ends(&harness.run(&job).await), [SUCCEEDED; 2]);
    let ignored = u64::from_str_radix(&harness.stdout(&job)[0], 16).unwrap();
    // The C library ignores two signals of its own in processes that it starts.
    assert_eq!(ignored & !(0b11 << 31), 0, "{ignored:x}");
}

#[tokio::test]
async fn a_supervisor_that_a_step_stopped_continues() {
    let harness = Harness::start_with(OPTIONS, 1).await;
    let job = job(&["kill -STOP $PPID; exit 4"]);
    let end = harness.run(&job).await;
    assert_eq!(end.steps[0].exit_code, Some(4));
}

#[tokio::test]
async fn a_step_that_stops_its_supervisor_repeatedly_can_be_cancelled() {
    let hasty = Options {
        answer: Duration::from_millis(400),
        ..OPTIONS
    };
    let harness = Harness::start_with(hasty, 1).await;
    let leaves = &leave(&["setsid sh -c 'WRITE_PID; exec sleep 600' &"]);
    let job = job(&[&format!(
        "{}\necho up; while :; do kill -STOP $PPID; done",
        leaves[0]
    )]);
    harness.daemon.offer(job.clone());
    harness.daemon.line(job.job_id, "up").await;
    harness.daemon.cancel(job.job_id);
    let end = harness.daemon.completion(job.job_id).await;
    assert_eq!(ends(&end), [CANCELLED]);
    assert!(!runs(&id_in(&harness, "left-0")));
    assert_eq!(of_job(&job), 0);
}

#[tokio::test]
async fn a_supervisor_serves_the_next_job_and_ends_when_it_is_idle() {
    let harness = Harness::start_with(OPTIONS, 1).await;
    let (one, two) = (job(&["echo $PPID", "echo $PPID"]), job(&["echo $PPID"]));
    harness.run(&one).await;
    harness.idle().await;
    harness.run(&two).await;
    let ids = [harness.stdout(&one), harness.stdout(&two)].concat();
    assert_eq!(ids, [ids[0].as_str(); 3]);
    assert!(runs(&ids[0]));

    let hasty = Options {
        supervisor_idle: Duration::from_millis(1),
        ..OPTIONS
    };
    let harness = Harness::start_with(hasty, 1).await;
    let three = job(&["echo $PPID"]);
    harness.run(&three).await;
    let supervisor = &harness.stdout(&three)[0];
    ended(supervisor).await;
}

/// Waits until a process is gone.
async fn ended(id: &str) {
    let number = Pid::from_raw(id.parse().unwrap()).unwrap();
    let Ok(process) = pidfd_open(number, PidfdFlags::empty()) else {
        return;
    };
    let patience = PATIENCE.try_into().unwrap();
    let wait = move || poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience));
    let ended = tokio::task::spawn_blocking(wait).await.unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"));
    assert_eq!(ended, Ok(1), "{stat:?}");
}

#[expect(clippy::print_stdout, reason = "how long it took")]
#[tokio::test]
async fn a_job_of_1000_processes_ends_soon() {
    let patient = Options {
        grace: PATIENCE,
        ..OPTIONS
    };
    let harness = Harness::start_with(patient, 1).await;
    let job = job(&[
        "for n in $(seq 1000); do setsid sleep 600 & done; until [ $(ps -o comm= --ppid $$ | grep -c '^sleep$') = 1000 ]; do sleep 0.05; done; echo up",
    ]);
    harness.daemon.offer(job.clone());
    harness.daemon.line(job.job_id, "up").await;
    let start = Instant::now();
    let end = harness.daemon.completion(job.job_id).await;
    println!("1000 processes ended in {:?}", start.elapsed());
    assert_eq!(ends(&end), [SUCCEEDED]);
    assert!(start.elapsed() < PROMPT);
    assert_eq!(of_job(&job), 0);
    let lines = harness.lines(&job, wire::Stream::Runner);
    assert_eq!(lines, ["ended 1000 processes that the steps left running"]);
}

/// A runner in a process of its own.
struct RunnerProcess {
    daemon: FakeDaemon,
    home: TempDir,
    process: std::process::Child,
}

impl RunnerProcess {
    async fn start() -> Self {
        let daemon = FakeDaemon::start().await;
        let home = TempDir::new().unwrap();
        let folder = runner::folder_of(home.path(), "test").unwrap();
        configuration(&daemon, &home, 1).save(&folder).unwrap();
        let process = std::process::Command::new(env!("CARGO_BIN_EXE_everscan-runner"))
            .args(["run", "--name", "test", "--log", "error"])
            .env("HOME", home.path())
            .spawn()
            .unwrap();
        Self {
            daemon,
            home,
            process,
        }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let id = Pid::from_child(&self.process);
        rustix::process::kill_process(id, signal).unwrap();
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join("work").join(name)
    }
}

impl Drop for RunnerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn processes_of_a_killed_runner_end() {
    let mut runner = RunnerProcess::start().await;
    let leaves = &leave(&[
        "setsid sh -c 'trap \"echo bye > ../bye; exit\" TERM; WRITE_PID; while :; do sleep 0.05; done' > /dev/null 2>&1 &",
    ]);
    let job = job(&[&format!("{}\necho $$ $PPID; exec sleep 600", leaves[0])]);
    runner.daemon.offer(job.clone());
    let ids = runner.daemon.wait_for("the ids", |state| {
        Some(state.logs.get(&job.job_id)?.first()?.text.clone())
    });
    let ids = ids.await;
    runner.signal(rustix::process::Signal::KILL);
    runner.process.wait().unwrap();
    for id in ids.split(' ') {
        ended(id).await;
    }
    assert!(runner.file("bye").exists());
    assert_eq!(of_job(&job), 0);
}

#[tokio::test]
async fn a_runner_that_was_stopped_and_continued_misses_no_event() {
    let runner = RunnerProcess::start().await;
    let job = job(&[
        "echo $$ $PPID; until [ -e ../go ]; do sleep 0.02; done; echo gone",
        "echo on",
    ]);
    runner.daemon.offer(job.clone());
    let ids = runner.daemon.wait_for("the ids", |state| {
        Some(state.logs.get(&job.job_id)?.first()?.text.clone())
    });
    let ids = ids.await;
    runner.signal(rustix::process::Signal::STOP);
    std::fs::write(runner.file("go"), "").unwrap();
    ended(ids.split(' ').next().unwrap()).await;
    runner.signal(rustix::process::Signal::CONT);
    let end = runner.daemon.completion(job.job_id).await;
    assert_eq!(ends(&end), [SUCCEEDED; 2]);
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
