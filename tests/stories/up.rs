//! `everscand up`: one process, started in a folder, stopped, and started again.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use crate::notify::Sent;
use crate::support::{PATIENCE, World, processes_of, signal};

const HELLO: &str = include_str!("../../examples/hello/workflows/hello.yaml");

/// A running `everscand up`.
struct Up {
    child: Child,
    lines: Receiver<String>,
    printed: Vec<String>,
    url: String,
    token: String,
    /// The path of the sign-in link.
    link: String,
}

impl Up {
    fn start(world: &World, folder: &Path) -> Self {
        Self::run(world.command("everscand").arg("up").arg(folder))
    }

    /// Starts `up` at the world's address, which the next `up` uses again.
    fn start_at_home(world: &World, folder: &Path) -> Self {
        let mut command = world.command("everscand");
        command.args(["up", "--listen", &world.address()]);
        Self::run(command.arg(folder))
    }

    fn run(command: &mut Command) -> Self {
        command.stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // The receiver was dropped.
                drop(sender.send(line));
            }
        });
        let mut up = Self {
            child,
            lines,
            printed: Vec::new(),
            url: String::new(),
            token: String::new(),
            link: String::new(),
        };
        up.link = up.line("/login/").trim().to_owned();
        let value = |line: String| line.split_once('=').unwrap().1.to_owned();
        up.url = value(up.line("export SERVICE_URL="));
        let command = value(up.line("export SERVICE_TOKEN="));
        let file = command
            .strip_prefix("$(cat ")
            .and_then(|rest| rest.strip_suffix(')'));
        up.token = std::fs::read_to_string(file.unwrap())
            .unwrap()
            .trim()
            .to_owned();
        up.link = up.link.strip_prefix(&up.url).unwrap().to_owned();
        assert_eq!(up.printed.first(), Some(&up.url), "the URL comes first");
        up
    }

    /// Waits for the next line that has all of `parts`, separated by `…`.
    fn line(&mut self, parts: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no `{parts}` in {:#?}", self.printed));
            self.printed.push(line.clone());
            if parts.split('…').all(|part| line.contains(part)) {
                return line;
            }
        }
    }

    fn everscan(&self, world: &World, arguments: &[&str]) -> String {
        let output = world
            .command("everscan")
            .args(arguments)
            .env("SERVICE_URL", &self.url)
            .env("SERVICE_TOKEN", &self.token)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "everscan {arguments:?}: {said}\n{:#?}",
            self.printed
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Sends a request like a browser with this cookie, and returns the response.
    fn browse(&self, head: &str, cookie: &str, body: &str) -> String {
        let host = self.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        let request = format!(
            "{head} HTTP/1.1\r\nHost: {host}\r\nOrigin: {}\r\nConnection: close\r\nContent-Length: {}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nCookie: {}\r\n\r\n{body}",
            self.url,
            body.len(),
            cookie,
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Ctrl-C.
    fn interrupt(&self) {
        signal(self.child.id(), "INT");
    }

    /// Expects that it ends with success.
    fn ended(mut self) {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {:#?}", self.printed);
    }

    fn stop(self) {
        self.interrupt();
        self.ended();
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn up_runs_the_saved_workflows_of_a_folder_and_continues_after_a_stop() {
    let world = World::new();
    let folder = world.path("laptop");
    let file = folder.join("workflows/hello.yaml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, HELLO).unwrap();
    let dispatch = [
        "scan", "dispatch", "hello", "greet", "--input", "name=Ada", "--wait",
    ];

    let mut up = Up::start_at_home(&world, &folder);
    up.line("hello: revision 1 is active");
    up.everscan(&world, &dispatch);
    up.line("hello greet: job … dispatched by token initial admin");
    up.line("hello greet: succeeded … kept greeting");

    std::fs::write(&file, HELLO.replace("Hello,", "Good day,")).unwrap();
    up.line("hello: revision 2 is active");
    std::fs::write(&file, HELLO.replace("steps:", "stepps:")).unwrap();
    up.line("workflows/hello.yaml:19:5:…stepps");
    up.line("revision 2 goes on");
    std::fs::write(&file, HELLO.replace("Hello,", "Good day,")).unwrap();
    up.line("workflows/hello.yaml: valid again; revision 2 is active");
    let never_good = folder.join("workflows/never.yaml");
    std::fs::write(&never_good, "scans: 1\n").unwrap();
    up.line("workflows/never.yaml: invalid; it has never been good");
    std::fs::remove_file(&never_good).unwrap();
    up.line("workflows/never.yaml: removed");
    // Each saving is a commit, and the rules of notifications are part of it.
    let rules = folder.join("everscan.yaml");
    std::fs::write(&rules, "notify: [{ chanel: ops }]\n").unwrap();
    up.line("everscan.yaml:1:…chanel");
    up.line("everscan.yaml: invalid; its last valid rules go on");
    std::fs::write(&rules, "notify: [{ channel: ops }]\n").unwrap();
    up.line("everscan.yaml: no longer invalid");
    up.line("needs you: …ops");
    let (url, token) = (up.url.clone(), up.token.clone());
    up.stop();
    assert_eq!(processes_of(&folder), Vec::<String>::new());

    let mut up = Up::start(&world, &folder);
    assert_eq!((&up.url, &up.token), (&url, &token));
    up.line("hello: revision 2 is active");
    up.everscan(&world, &dispatch);
    let jobs = up.everscan(&world, &["job", "list"]);
    assert_eq!(jobs.matches("succeeded").count(), 2, "{jobs}");
    let runners = up.everscan(&world, &["runner", "list", "--output", "json"]);
    assert_eq!(runners.matches("\"name\"").count(), 1, "{runners}");
    up.stop();
}

#[test]
fn a_checkout_in_a_folder_without_git_has_only_the_workflows() {
    let world = World::new();
    let folder = world.path("laptop");
    let workflows = folder.join("workflows");
    std::fs::create_dir_all(&workflows).unwrap();
    std::fs::write(folder.join("beside.txt"), "not committed").unwrap();
    std::fs::write(workflows.join("words.txt"), "some words").unwrap();
    let text = "scans: { list: { on: { dispatch: {} }, checkout: true, steps: [ { run: find source -type f | sort } ] } }\n";
    std::fs::write(workflows.join("files.yaml"), text).unwrap();
    let mut up = Up::start(&world, &folder);
    up.line("files: revision 1 is active");
    let said = up.everscan(&world, &["scan", "dispatch", "files", "list", "--follow"]);
    for file in ["source/workflows/files.yaml", "source/workflows/words.txt"] {
        assert!(said.contains(file), "{said}");
    }
    assert!(!said.contains("beside"), "{said}");
    let text = text.replace("checkout: true", "checkout: [beside.txt]");
    std::fs::write(workflows.join("beside.yaml"), text).unwrap();
    up.line("beside: revision 1 is active");
    up.everscan(&world, &["scan", "dispatch", "beside", "list"]);
    up.line("has no `beside.txt`; only `workflows/` is there");
    up.stop();
}

#[test]
fn up_prints_the_end_of_a_job_before_its_retry() {
    let world = World::new();
    let folder = world.path("laptop");
    let workflows = folder.join("workflows");
    std::fs::create_dir_all(&workflows).unwrap();
    let text = "scans: { again: { on: { dispatch: {} }, retry: { attempts: 2, backoff: 1s }, steps: [ { run: exit 3 } ] } }\n";
    std::fs::write(workflows.join("tries.yaml"), text).unwrap();
    let mut up = Up::start(&world, &folder);
    up.line("tries: revision 1 is active");
    up.everscan(&world, &["scan", "dispatch", "tries", "again"]);
    up.line("tries again: job … dispatched by");
    up.line("tries again: failed after");
    up.line("tries again: job … failed and is tried again, at ");
    up.line("tries again: failed after");
    up.line("needs you: tries again: job … failed; there was no success yet");
    up.everscan(
        &world,
        &["workflow", "suspend", "tries", "--reason", "not now"],
    );
    up.line("needs you: tries: suspended by … not now");
    up.everscan(&world, &["workflow", "resume", "tries"]);
    up.line("settled: tries: suspended by … not now");
    up.stop();
}

#[test]
fn its_link_signs_the_owner_in_once_and_a_command_makes_another() {
    let world = World::new();
    let folder = world.path("laptop");
    std::fs::create_dir(&folder).unwrap();
    let mut command = world.command("everscand");
    // The daemon then logs every request.
    command.arg("up").arg(&folder).env("SERVICE_LOG", "debug");
    let up = Up::run(&mut command);
    let another = up.everscan(&world, &["session", "link"]);
    let another = another.trim().strip_prefix(&up.url).unwrap();
    let mut secrets = Vec::new();
    // The first is the person, the second does what the token does.
    for (link, name) in [(up.link.as_str(), "owner"), (another, "initial admin")] {
        let page = up.browse(&format!("GET {link}"), "", "");
        assert!(page.contains(name), "{page}");
        let (_, rest) = page.split_once("name=\"link\" value=\"").unwrap();
        let secret = rest.split_once('"').unwrap().0;
        let form = format!("link={secret}");
        let signed_in = up.browse("POST /login", "", &form);
        assert!(signed_in.starts_with("HTTP/1.1 303"), "{signed_in}");
        let (_, rest) = signed_in.split_once("set-cookie: ").unwrap();
        let cookie = rest.split_once(';').unwrap().0;
        let overview = up.browse("GET /", cookie, "");
        assert!(overview.starts_with("HTTP/1.1 200"), "{overview}");
        assert!(overview.contains("href=\"/workflows\""), "{overview}");
        let again = up.browse("POST /login", "", &form);
        assert!(again.starts_with("HTTP/1.1 404"), "{again}");
        secrets.push(secret.to_owned());
    }
    let log = std::fs::read_to_string(folder.join(".everscan/log")).unwrap();
    assert!(log.contains("path=\"/login/\""), "{log}");
    for secret in secrets {
        assert!(!log.contains(&secret), "{secret}");
    }
    // The link signs the owner in as the whole person, so it needs no token.
    up.stop();
    std::fs::remove_file(folder.join(".everscan/state/initial-admin-token")).unwrap();
    let mut command = world.command("everscand");
    let mut child = command
        .arg("up")
        .arg(&folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut printed = lines.map_while(Result::ok);
    assert!(printed.any(|line| line.contains("/login/evi_")), "no link");
    signal(child.id(), "INT");
    assert!(child.wait().unwrap().success());
}

#[test]
fn up_runs_the_committed_workflows_of_a_repository() {
    let world = World::new();
    world.init_repository();
    world.push(&[("hello.yaml", Some(HELLO)), ("other.yaml", Some(HELLO))]);
    let mut up = Up::start(&world, &world.path("repository"));
    up.line("hello: revision 1 is active");
    let changed = HELLO.replace("Hello,", "Good day,");
    world.push(&[("hello.yaml", Some(&changed))]);
    up.line("hello: revision 2 is active");
    world.push(&[("hello.yaml", None)]);
    up.line("hello: its file is gone");
    let tracked = world
        .output("git", &["-C", "repository", "ls-files"])
        .stdout;
    assert_eq!(
        String::from_utf8_lossy(&tracked),
        "workflows/other.yaml\n",
        "`.everscan` is not a file of the repository"
    );
    up.stop();
}

#[test]
fn up_without_a_workflow_prints_the_first_step() {
    let world = World::new();
    let folder = world.path("laptop");
    std::fs::create_dir(&folder).unwrap();
    let mut up = Up::start(&world, &folder);
    up.line("no workflow yet: save your first workflow in …laptop/workflows");
    std::fs::write(folder.join("workflows/hello.yaml"), HELLO).unwrap();
    up.line("hello: revision 1 is active");
    let printed = up.printed.join("\n");
    assert!(!printed.contains(&up.token), "{printed}");
    assert!(!printed.contains("at the tip"), "{printed}");
    up.stop();

    world.init_repository();
    let mut up = Up::start(&world, &world.path("repository"));
    up.line("no workflow yet: commit a workflow in …repository/workflows and it runs");
    world.push(&[("hello.yaml", Some(HELLO))]);
    up.line("hello: revision 1 is active");
    up.stop();
}

#[test]
fn up_sends_notifications_to_its_own_machine() {
    let world = World::new();
    let folder = world.path("laptop");
    std::fs::create_dir(&folder).unwrap();
    let up = Up::start(&world, &folder);
    let sink = TcpListener::bind("127.0.0.1:0").unwrap();
    let hook = format!("http://{}/hook", sink.local_addr().unwrap());
    let add = ["notify", "channel", "add", "hook", "--webhook", &hook];
    up.everscan(&world, &add);
    let taking = std::thread::spawn(move || Sent::next(&sink).accept());
    let said = up.everscan(&world, &["notify", "channel", "test", "hook"]);
    assert!(said.starts_with("delivered: 204"), "{said}");
    taking.join().unwrap();
    up.stop();
}

#[test]
fn a_second_up_in_the_folder_prints_the_address_of_the_first() {
    let world = World::new();
    let folder = world.path("laptop");
    std::fs::create_dir(&folder).unwrap();
    let up = Up::start_at_home(&world, &folder);
    let second = world.command("everscand").arg("up").arg(&folder).output();
    let second = second.unwrap();
    assert_eq!(second.status.code(), Some(10));
    let printed = String::from_utf8(second.stderr).unwrap();
    let wanted = format!(
        "everscand up runs here already at {} (process {})",
        up.url,
        up.child.id()
    );
    assert!(printed.contains(&wanted), "{printed}");
    let url = up.url.clone();
    up.stop();
    let up = Up::start(&world, &folder);
    assert_eq!(up.url, url, "the second `up` has changed nothing");
    up.stop();
}

#[test]
fn after_a_kill_the_next_up_prints_why_it_waits() {
    let world = World::new();
    let folder = world.path("laptop");
    std::fs::create_dir_all(folder.join("workflows")).unwrap();
    let gate = world.path("gate");
    let slow = format!(
        "scans:\n  slow:\n    on: {{ dispatch: {{}} }}\n    steps:\n      - run: echo begun; while [ ! -e {} ]; do sleep 0.02; done\n",
        gate.display()
    );
    std::fs::write(folder.join("workflows/slow.yaml"), slow).unwrap();
    let mut up = Up::start(&world, &folder);
    up.line("slow: revision 1 is active");
    let job = up.everscan(&world, &["scan", "dispatch", "slow", "slow"]);
    crate::support::eventually("the step", || {
        up.everscan(&world, &["job", "logs", "-j", job.trim()])
            .contains("begun")
    });
    drop(up);
    std::fs::write(&gate, "").unwrap();
    let mut up = Up::start(&world, &folder);
    up.line("the last `up` was killed with 1 running job");
}

#[test]
fn a_second_interrupt_cancels_the_running_jobs() {
    let world = World::new();
    let folder = world.path("laptop");
    std::fs::create_dir_all(folder.join("workflows")).unwrap();
    let slow = "scans:\n  slow:\n    on: { dispatch: {} }\n    steps:\n      - run: echo begun; sleep 300\n";
    std::fs::write(folder.join("workflows/slow.yaml"), slow).unwrap();
    let mut up = Up::start(&world, &folder);
    up.line("slow: revision 1 is active");
    let job = up.everscan(&world, &["scan", "dispatch", "slow", "slow"]);
    crate::support::eventually("the step", || {
        up.everscan(&world, &["job", "logs", "-j", job.trim()])
            .contains("begun")
    });
    up.interrupt();
    up.line("stopping once 1 running job is over");
    up.interrupt();
    up.line("slow slow:");
    up.ended();
    assert_eq!(processes_of(&folder), Vec::<String>::new());
}

#[test]
fn the_token_for_steps_of_an_earlier_release_is_revoked() {
    let world = World::new();
    let folder = world.path("laptop");
    std::fs::create_dir(&folder).unwrap();
    let up = Up::start(&world, &folder);
    let create = ["token", "create", "--name", "steps", "--scope", "job:read"];
    let secret = up.everscan(&world, &create);
    up.stop();
    let file = folder.join(".everscan/step-token");
    std::fs::write(&file, secret).unwrap();
    let mut up = Up::start(&world, &folder);
    up.line("the token that an earlier release gave to steps is revoked");
    assert!(!file.exists());
    let tokens = up.everscan(&world, &["token", "list"]);
    assert!(!tokens.contains("steps"), "{tokens}");
    up.stop();
}
