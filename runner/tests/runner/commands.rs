//! The program `everscan-runner`: registration, exit codes, errors with hints, signals.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use runner::Configuration;
use tempfile::TempDir;

use crate::fake_daemon::FakeDaemon;
use crate::harness::job;

fn program(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everscan-runner"));
    command
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("PATH", std::env::var_os("PATH").unwrap())
        .stdin(Stdio::null());
    command
}

async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

fn talk(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[tokio::test]
async fn errors_have_exit_codes_and_a_next_step() {
    let home = TempDir::new().unwrap();
    let unconfigured = output(program(home.path(), &["run", "--name", "one"])).await;
    assert_eq!(unconfigured.status.code(), Some(1));
    assert_eq!(
        talk(&unconfigured),
        "error: runner one is not configured on this machine\n\
         hint: register it with `everscan-runner configure --url URL`\n"
    );
    let usage = output(program(home.path(), &["configure"])).await;
    assert_eq!(usage.status.code(), Some(2));
    assert!(talk(&usage).contains("--url <URL>"), "{}", talk(&usage));
    let mut set = program(home.path(), &["configure", "--nam", "one"]);
    set.env("SERVICE_URL", "http://127.0.0.1:1");
    let set = talk(&output(set).await);
    assert!(set.contains("'--nam'") && !set.contains("--url"), "{set}");
    let help = output(program(home.path(), &["--help"])).await;
    assert_eq!(help.status.code(), Some(0));
    let url = ["configure", "--url", "http://127.0.0.1:1"];
    let tokenless = output(program(home.path(), &url)).await;
    assert_eq!(tokenless.status.code(), Some(1));
    assert!(talk(&tokenless).contains("SERVICE_REGISTRATION_TOKEN"));
}

#[tokio::test]
async fn no_token_crosses_the_network_in_plain_text() {
    let home = TempDir::new().unwrap();
    let url = [
        "configure",
        "--url",
        "http://everscan.invalid:7411",
        "--name",
        "one",
    ];
    for (insecure, expected) in [
        ("false", "is plain HTTP to another machine"),
        ("true", "cannot reach the daemon"),
    ] {
        let mut configure = program(home.path(), &url);
        configure
            .env("SERVICE_REGISTRATION_TOKEN", "once")
            .env("SERVICE_INSECURE_HTTP", insecure);
        let failed = talk(&output(configure).await);
        assert!(failed.contains(expected), "{failed}");
    }
}

#[tokio::test]
async fn a_runner_that_was_configured_with_plain_http_is_told_how_to_go_on() {
    let daemon = FakeDaemon::start().await;
    let home = TempDir::new().unwrap();
    let mut configure = program(
        home.path(),
        &["configure", "--url", &daemon.url, "--name", "one"],
    );
    configure.env("SERVICE_REGISTRATION_TOKEN", "once");
    let configured = output(configure).await;
    assert!(configured.status.success(), "{}", talk(&configured));
    // This daemon names no projects, so the runner serves all.
    let said = talk(&configured);
    assert!(said.contains("projects=\"all\""), "{said}");
    assert!(
        said.contains("a runner of several projects separates nothing"),
        "{said}"
    );
    let file = home.path().join(".everscan/runner/one/config.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace(&daemon.url, "http://everscan.invalid")).unwrap();
    let failed = talk(&output(program(home.path(), &["run", "--name", "one"])).await);
    let hint = "hint: use an https address or a tunnel; or accept it: \
        `everscan-runner configure --url URL --name NAME --insecure-http --replace`";
    assert!(failed.contains(hint), "{failed}");
}

#[tokio::test]
async fn a_registration_that_fails_leaves_no_folder() {
    let home = TempDir::new().unwrap();
    let url = ["configure", "--url", "http://127.0.0.1:1", "--name", "one"];
    for token in ["", "once"] {
        let mut configure = program(home.path(), &url);
        configure.env("SERVICE_REGISTRATION_TOKEN", token);
        let failed = output(configure).await;
        assert_eq!(failed.status.code(), Some(1), "{}", talk(&failed));
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn empty_settings_are_unset_and_flags_accept_the_usual_words() {
    let daemon = FakeDaemon::start().await;
    let home = TempDir::new().unwrap();
    for (replace, expected) in [("", false), ("1", true), ("no", false)] {
        let mut configure = program(home.path(), &["configure", "--url", &daemon.url]);
        configure
            .env("SERVICE_NAME", format!("runner{replace}"))
            .env("SERVICE_REGISTRATION_TOKEN", "once")
            .env("SERVICE_CAPACITY", "")
            .env("SERVICE_LOG", "")
            .env("SERVICE_REPLACE", replace);
        let configured = output(configure).await;
        assert!(configured.status.success(), "{}", talk(&configured));
        let registration = daemon.state().registrations.pop().unwrap();
        assert_eq!((registration.replace, registration.capacity), (expected, 1));
    }
}

#[tokio::test]
async fn a_replaced_runner_keeps_settings_that_are_not_given() {
    let daemon = FakeDaemon::start().await;
    let home = TempDir::new().unwrap();
    let work = home.path().join("elsewhere");
    let work = work.to_str().unwrap();
    let register = async |further: &[&str]| {
        let url = ["configure", "--name", "one", "--url", &daemon.url];
        let mut configure = program(home.path(), &[&url, further].concat());
        configure.env("SERVICE_REGISTRATION_TOKEN", "once");
        let configured = output(configure).await;
        assert!(configured.status.success(), "{}", talk(&configured));
        let stored = Configuration::load(home.path(), "one").unwrap();
        assert_eq!(stored.workdir.to_str(), Some(work));
        let sent = daemon.state().registrations.pop().unwrap();
        assert_eq!(sent.labels, stored.labels);
        (sent.labels.join(","), sent.exclusive, sent.capacity)
    };
    let first = ["--labels", "backup,big", "--exclusive", "--capacity", "3"];
    register(&[&first[..], &["--workdir", work]].concat()).await;
    let kept = register(&["--replace"]).await;
    assert_eq!(kept, ("backup,big".to_owned(), true, 3));
    let anew = register(&["--replace", "--labels", "tape", "--capacity", "2"]).await;
    assert_eq!(anew, ("tape".to_owned(), true, 2));
    let none = register(&["--replace", "--labels", "", "--exclusive=no"]).await;
    assert_eq!(none, (String::new(), false, 2));
}

#[tokio::test]
async fn without_a_name_a_runner_has_the_name_of_its_host() {
    let daemon = FakeDaemon::start().await;
    let home = TempDir::new().unwrap();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let mut configure = program(home.path(), &["configure", "--url", &daemon.url]);
    configure.env("SERVICE_REGISTRATION_TOKEN", "once");
    let configured = output(configure).await;
    assert!(configured.status.success(), "{}", talk(&configured));
    assert_eq!(daemon.state().registrations[0].name, host.trim());
    let folder = home.path().join(".everscan/runner").join(host.trim());
    assert!(folder.is_dir(), "{}", folder.display());
}

#[tokio::test]
async fn a_registered_runner_works_from_any_folder_and_ends_on_a_signal() {
    let daemon = FakeDaemon::start().await;
    let home = TempDir::new().unwrap();
    let mut configure = program(
        home.path(),
        &["configure", "--name", "one", "--labels", "a,b"],
    );
    configure
        .env("SERVICE_URL", &daemon.url)
        .env("SERVICE_REGISTRATION_TOKEN", "once\n")
        .env("SERVICE_CAPACITY", "3");
    let configured = output(configure).await;
    assert!(configured.status.success(), "{}", talk(&configured));
    let registration = daemon.state().registrations[0].clone();
    assert_eq!(registration.token, "once");
    assert_eq!(registration.labels, ["a", "b"]);
    assert_eq!(registration.capacity, 3);

    let mut again = program(
        home.path(),
        &["configure", "--name", "one", "--url", &daemon.url],
    );
    again.env("SERVICE_REGISTRATION_TOKEN", "twice");
    let again = output(again).await;
    assert_eq!(again.status.code(), Some(1));
    assert!(talk(&again).contains("--replace"));

    let mut run = program(home.path(), &["run"]);
    run.env("SERVICE_NAME", "one")
        .current_dir("/")
        .stderr(Stdio::piped());
    let process = run.spawn().unwrap();
    let job = job(&["pwd"]);
    daemon.offer(job.clone());
    daemon.completion(job.job_id).await;
    let id = rustix::process::Pid::from_child(&process);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let ended = tokio::task::spawn_blocking(move || process.wait_with_output().unwrap());
    let ended = ended.await.unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert!(
        talk(&ended).contains("outcome=\"succeeded\""),
        "{}",
        talk(&ended)
    );
    assert_eq!(daemon.state().goodbyes, 1);
    assert!(daemon.state().tokens.contains("session"));
    let folder = home
        .path()
        .join(".everscan/runner/one/work")
        .join(job.job_id.to_string());
    assert_eq!(
        daemon.state().logs[&job.job_id][0].text,
        folder.to_str().unwrap()
    );
}

#[tokio::test]
async fn steps_ignore_no_signal_that_the_runner_ignores() {
    let daemon = FakeDaemon::start().await;
    let home = TempDir::new().unwrap();
    let url = ["configure", "--name", "one", "--url", &daemon.url];
    let mut configure = program(home.path(), &url);
    configure.env("SERVICE_REGISTRATION_TOKEN", "once");
    assert!(output(configure).await.status.success());
    let runner = program(home.path(), &["run", "--name", "one"]);
    // `nohup`, and `&` in a script, also ignore signals.
    let mut ignoring = Command::new("sh");
    ignoring
        .args(["-c", "trap '' HUP INT QUIT USR1; exec \"$@\"", "sh"])
        .arg(runner.get_program())
        .args(runner.get_args())
        .env("HOME", home.path())
        .stderr(Stdio::null());
    let mut process = ignoring.spawn().unwrap();
    let job = job(&["grep SigIgn /proc/self/status"]);
    daemon.offer(job.clone());
    daemon.completion(job.job_id).await;
    process.kill().unwrap();
    process.wait().unwrap();
    let line = daemon.state().logs[&job.job_id][0].text.clone();
    let ignored = u64::from_str_radix(line.trim_start_matches("SigIgn:\t"), 16).unwrap();
    let signals = [1, 2, 3, 10].map(|number| ignored >> (number - 1) & 1);
    assert_eq!(signals, [0; 4], "{line}");
}

#[tokio::test]
async fn a_drain_logs_what_it_waits_for_and_how_to_force_the_end() {
    let daemon = FakeDaemon::start().await;
    let home = TempDir::new().unwrap();
    let url = ["configure", "--name", "one", "--url", &daemon.url];
    let mut configure = program(home.path(), &url);
    configure.env("SERVICE_REGISTRATION_TOKEN", "once");
    assert!(output(configure).await.status.success());
    let mut run = program(home.path(), &["run", "--name", "one"]);
    let mut process = run.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let mut until = move |text: &str| {
        let found = lines.find(|line| line.as_ref().unwrap().contains(text));
        found.unwrap().unwrap()
    };
    let go = home.path().join("go");
    let script = format!("until [ -e {} ]; do sleep 0.01; done", go.display());
    daemon.offer(job(&[&script]));
    let id = rustix::process::Pid::from_child(&process);
    let printed = tokio::task::spawn_blocking({
        let daemon = daemon.clone();
        move || {
            until("job started");
            daemon.go_away("messages");
            rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
            let draining = until("taking no new jobs");
            let away = until("waiting for the daemon");
            daemon.come_back();
            std::fs::write(go, "").unwrap();
            until("job ended");
            assert_eq!(process.wait().unwrap().code(), Some(0));
            [draining, away]
        }
    });
    for line in printed.await.unwrap() {
        assert!(line.contains("a second signal cancels them"), "{line}");
    }
}

#[tokio::test]
async fn steps_get_the_token_of_the_runner_only_if_the_operator_says_so() {
    let daemon = FakeDaemon::start().await;
    let home = TempDir::new().unwrap();
    let url = ["configure", "--name", "one", "--url", &daemon.url];
    let mut configure = program(home.path(), &url);
    configure.env("SERVICE_REGISTRATION_TOKEN", "once");
    assert!(output(configure).await.status.success());
    for (flag, length) in [(None, "9"), (Some("--pass-token"), "13")] {
        let mut run = program(home.path(), &["run", "--name", "one"]);
        run.args(flag).env("SERVICE_TOKEN", "of the runner");
        let process = run.stderr(Stdio::piped()).spawn().unwrap();
        let mut job = job(&["printf %s \"$SERVICE_TOKEN\" | wc -c; echo \"$SERVICE_TOKEN\""]);
        job.job_token = Some("of a job!".to_owned());
        job.pass_env = vec!["SERVICE_TOKEN".to_owned()];
        daemon.offer(job.clone());
        daemon.completion(job.job_id).await;
        let id = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        let ended = tokio::task::spawn_blocking(move || process.wait_with_output().unwrap());
        let said = talk(&ended.await.unwrap());
        let texts = daemon.state().logs[&job.job_id].clone();
        let texts: Vec<_> = texts.into_iter().map(|record| record.text).collect();
        assert_eq!(texts, [length, "***"]);
        assert_eq!(
            said.contains("run with --pass-token"),
            flag.is_none(),
            "{said}"
        );
        let warning = "`permissions:` of scans has no effect";
        assert_eq!(said.contains(warning), flag.is_some(), "{said}");
    }
}
