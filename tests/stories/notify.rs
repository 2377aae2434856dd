//! Messages about jobs reach a webhook and a program: they say why, hide secrets, and outlive a crash.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{World, eventually, lines};

const SECRET: &str = "battery_staple_42";

const WORKFLOW: &str = "\
scans:
  backup:
    on: {dispatch: {inputs: {end: {}}}}
    env: {KEY: '${{ secrets.KEY }}', END: '${{ inputs.end }}'}
    steps:
      - name: copy_battery_staple_42
        run: |
          for n in $(seq 1 30); do echo \"line $n\"; done
          echo \"with $KEY\"
          exit $END
  export:
    on: {dispatch: {}}
    env: {KEY: '${{ secrets.KEY }}'}
    steps: [{run: echo exported}]
    artifacts: [{name: export, paths: [battery_staple_42.txt]}]
  hosts:
    on: {dispatch: {inputs: {list: {}}}}
    env: {LIST: '${{ inputs.list }}', KEY: '${{ secrets.KEY }}'}
    steps: [{run: 'printf \"%s\\n\" $LIST > hosts.txt'}]
    artifacts: [{name: hosts, paths: [hosts.txt], notify_on: diff}]
  slow:
    on: {dispatch: {inputs: {gate: {}}}}
    env: {GATE: '${{ inputs.gate }}', KEY: '${{ secrets.KEY }}'}
    steps: [{run: 'cat \"$GATE\"; echo \"$KEY\" > hosts.txt'}]
    artifacts: [{name: hosts, paths: [hosts.txt], notify_on: diff}]
";

const RULES: &str = "\
notify:
  - {name: all, channel: hook, group: 0s, events: [failing, new_lines]}
  - name: program
    channel: program
    group: 0s
    events: [failing]
    template: '${{ event.name }} ${{ event.state }}: ${{ event.scan }}'
";

/// A message whose sender waits for the answer.
pub(crate) struct Sent {
    stream: TcpStream,
    id: String,
    data: Value,
}

impl Sent {
    pub(crate) fn next(sink: &TcpListener) -> Self {
        let (stream, _) = sink.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut id, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("webhook-id") => {
                    id = value.to_owned();
                }
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().unwrap();
                }
                Some(_) => {}
                None if line.trim_end().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let data = body["data"].clone();
        assert!(!data.to_string().contains(SECRET), "{data:#}");
        Self { stream, id, data }
    }

    fn text(&self) -> &str {
        self.data["text"].as_str().unwrap()
    }

    pub(crate) fn accept(mut self) {
        let answer = b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n";
        self.stream.write_all(answer).unwrap();
    }
}

fn set_secret(world: &World, value: &str) {
    let mut command = world.command("everscan");
    command.args(["secret", "set", "KEY", "--file", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(value.as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// A daemon with two channels, rules and a runner.
fn notifying(sink: &TcpListener) -> World {
    let address = sink.local_addr().unwrap();
    let mut world = World::new();
    world.init_repository();
    world.push(&[("net.yaml", Some(WORKFLOW))]);
    let key = world.path("secret-key").display().to_string();
    let made = world.output("everscand", &["secret-key", "make", &key]);
    assert!(made.status.success());
    world.daemon_key = Some("secret-key".to_owned());
    let program = world.path("program").display().to_string();
    world.daemon_config = Some(format!(
        "url: 'https://ci.localhost'\noutbound: {{ allow: ['{address}'] }}\n\
         notify_commands:\n  tell: {{ program: /bin/sh, args: ['-c', 'cat >> {program}; echo >> {program}'] }}\n"
    ));
    world.start_daemon();
    set_secret(&world, SECRET);
    let hook = format!("http://{address}/hook");
    let add = ["notify", "channel", "add"];
    world.everscan(&[&add[..], &["hook", "--webhook", &hook]].concat());
    world.everscan(&[&add[..], &["program", "--command", "tell"]].concat());
    std::fs::write(world.path("repository/everscan.yaml"), RULES).unwrap();
    world.push(&[]);
    world.sync();
    world.start_runner(1);
    world
}

#[test]
fn messages_say_why_hide_secrets_and_outlive_a_crash() {
    let sink = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut world = notifying(&sink);

    let failed = world.dispatch("net", "backup", &["end=3"]);
    let sent = Sent::next(&sink);
    assert_eq!(sent.data["title"], "Failed: main/net backup");
    let expected = "Step 1 failed with exit code 3.\nIt has never succeeded.\n\
                    Why it ran: dispatched, by token initial admin.\n\n\
                    The last lines of step 1 (copy_***):\nline 12\n";
    assert!(sent.text().starts_with(expected), "{}", sent.text());
    assert!(
        sent.text().ends_with("\nline 30\nwith ***"),
        "{}",
        sent.text()
    );
    let link = format!("https://ci.localhost/jobs/{failed}");
    assert_eq!(sent.data["link"], link);
    let event = &sent.data["event"]["events"][0];
    assert_eq!(
        [&event["name"], &event["state"], &event["job"]],
        ["failing", "opened", &failed]
    );
    sent.accept();

    let recovered = world.dispatch("net", "backup", &["end=0"]);
    let sent = Sent::next(&sink);
    assert_eq!(sent.data["title"], "Recovered: main/net backup");
    assert!(sent.text().ends_with(" and 1 failure."), "{}", sent.text());
    assert_eq!(sent.data["event"]["events"][0]["job"], recovered);
    sent.accept();

    let program = world.path("program");
    let mut told = Vec::new();
    eventually("both messages to the program", || {
        // The end of the second one may not be written yet.
        let written = lines(&program).into_iter();
        let written = written.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        told = written.collect();
        told.len() == 2
    });
    for (told, text) in told.iter().zip(["opened", "closed"]) {
        assert_eq!(told["data"]["text"], format!("failing {text}: backup"));
    }

    // New lines of an artifact. If none is new, nothing is sent.
    world.dispatch("net", "hosts", &["list=one"]);
    let sent = Sent::next(&sink);
    assert_eq!(sent.data["title"], "New result: main/net hosts");
    assert_eq!(sent.text(), "hosts has 1 new line:\none");
    sent.accept();
    let divided = SECRET.replace("staple", "\u{202e}staple");
    let token = format!("evs_{}", "a".repeat(38));
    let list = format!("list=one {SECRET} two {divided} {token}");
    world.dispatch("net", "hosts", &[&list]);
    let sent = Sent::next(&sink);
    assert_eq!(sent.text(), "hosts has 4 new lines:\n***\ntwo\n***\n***");
    sent.accept();
    let same = world.succeed("net", "hosts", &["list=two one"]);
    let of_same = ["notify", "log", "--job", &same];
    let mut log = Value::Null;
    eventually("the line about what was not sent", || {
        log = world.json(&of_same);
        log["items"][0]["result"] == "suppressed"
    });
    assert_eq!(log["items"][0]["reply"], "the artifact has no new lines");

    // A secret that changes while the job runs cannot be searched any more.
    let gate = world.path("gate");
    assert!(
        Command::new("mkfifo")
            .arg(&gate)
            .status()
            .unwrap()
            .success()
    );
    let input = format!("gate={}", gate.display());
    world.dispatch("net", "slow", &[&input]);
    let open = std::fs::File::create(&gate).unwrap();
    set_secret(&world, "another_battery");
    drop(open);
    let sent = Sent::next(&sink);
    assert_eq!(
        sent.text(),
        "hosts has 1 new line.\nThey are not shown: the secret KEY was changed or deleted after the job had it, so they \
         cannot be searched for it."
    );
    sent.accept();
    set_secret(&world, SECRET);

    // The daemon is killed while the sink has not answered yet.
    let failed = world.dispatch("net", "export", &[]);
    let held = Sent::next(&sink);
    assert!(
        held.text().starts_with("An artifact failed: "),
        "{}",
        held.text()
    );
    world.kill_daemon();
    world.start_daemon();
    let again = Sent::next(&sink);
    assert_eq!((&again.id, again.text()), (&held.id, held.text()));
    assert_eq!(
        [&held.data["is_repeated"], &again.data["is_repeated"]],
        [false, true]
    );
    again.accept();
    let of_failed = ["notify", "log", "--job", &failed, "--channel", "hook"];
    eventually("the end of the message", || {
        log = world.json(&of_failed);
        log["items"][0]["result"] == "delivered"
    });
    assert_eq!(log["items"][0]["repeated"], true, "{log:#}");
    for line in [
        &["job", "show", &failed][..],
        &["scan", "why", "net", "export"],
    ] {
        let shown = world.everscan(line);
        assert!(shown.contains("to hook, delivered: 204"), "{shown}");
    }
    let mut show = world.command("everscan");
    show.args(["job", "show", &failed]);
    let shown = show.env("SERVICE_TOKEN", world.step_token()).output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    assert!(
        shown.contains(&failed) && !shown.contains("hook"),
        "{shown}"
    );
}
