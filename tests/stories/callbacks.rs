//! Callback servers: whoever looks up a planted name, or sends a request to it, is recorded, and what a list has shown stays.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;

use crate::support::port::Port;
use crate::support::{PATIENCE, World, eventually};

const WORKFLOW: &str = "scans: { probe: { on: { dispatch: {} }, steps: [ { run: 'true' } ] } }\n";

pub(crate) fn configuration(zone: &str, dns: u16, http: u16) -> String {
    format!(
        "url: https://everscan.example.org\ncallback:\n  zones: [{zone}]\n  public: [192.0.2.1]\n  \
         listen: {{ dns: ['127.0.0.1:{dns}'], http: ['127.0.0.1:{http}'] }}\n"
    )
}

fn query(name: &str) -> Vec<u8> {
    let mut bytes = vec![0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.bytes());
    }
    bytes.extend([0, 0, 1, 0, 1]);
    bytes
}

pub(crate) fn ask(port: u16, name: &str) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(&query(name), ("127.0.0.1", port)).unwrap();
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer).unwrap();
    assert_eq!(answer[..length][length - 4..], [192, 0, 2, 1]);
}

/// Whether the daemon has the thread of callback servers.
fn hears(world: &World) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", world.daemon_pid())).unwrap();
    let mut names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
    names.any(|name| name.unwrap_or_default().trim() == "callbacks")
}

fn numbers(world: &World, more: &[&str]) -> Vec<u64> {
    let list = [&["callback", "list", "oast"], more].concat();
    let page = world.json(&list);
    let items = page["items"].as_array().unwrap().iter();
    items.map(|it| it["number"].as_u64().unwrap()).collect()
}

#[test]
fn who_uses_a_planted_name_is_heard_and_what_a_list_has_shown_survives_a_kill() {
    let mut world = World::with_workflow("probe.yaml", WORKFLOW);
    assert!(!hears(&world), "callback servers are off");
    let create = ["callback", "create", "oast", "--project", "main"];
    assert!(!world.output("everscan", &create).status.success());
    world.stop_daemon();

    let (dns, http) = (Port::hold(), Port::hold());
    let (dns, http) = (&dns, &http);
    world.daemon_config = Some(configuration("cb.test", dns.number(), http.number()));
    world.start_daemon();
    // A thread gets its name soon after its start.
    eventually("callback servers are on", || hears(&world));
    world.everscan(&create);
    let made = world.everscan(&[
        "callback",
        "token",
        "create",
        "oast",
        "--note",
        "login form",
    ]);
    let name = made.trim().to_owned();
    assert!(name.ends_with(".cb.test"), "{name}");
    // A name is known soon after it was printed.
    eventually("a look-up is recorded", || {
        ask(dns.number(), &name.to_uppercase());
        !numbers(&world, &["--type", "dns"]).is_empty()
    });
    let request = |line: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", http.number())).unwrap();
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {name}\r\nX-Case: Kept\r\nContent-Length: 3\r\n\r\nabc"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = request("PUT /x?y");
    let label = name.strip_suffix(".cb.test").unwrap();
    let reversed: String = label.chars().rev().collect();
    assert!(answer.ends_with(&format!("\r\n\r\n{reversed}")), "{answer}");
    eventually("the request is recorded", || {
        !numbers(&world, &["--type", "http"]).is_empty()
    });
    let found = world.json(&["callback", "list", "oast", "--type", "http"]);
    let found = &found["items"][0];
    let shown = ["method", "target", "host", "note", "answer"]
        .map(|key| found[key].as_str().unwrap_or_default());
    assert_eq!(shown, ["PUT", "/x?y", &name, "login form", "200"]);

    // A rule answers soon after it was set, and the interaction has its name.
    let rules = world.path("rules.yaml");
    let text = "rules: [{type: http, name: inside, path: /go, status: 302, headers: {Location: 'http://169.254.169.254/'}}]\n";
    std::fs::write(&rules, text).unwrap();
    world.everscan(&["callback", "rule", "set", "oast", rules.to_str().unwrap()]);
    eventually("the rule answers", || {
        request("GET /go?q").contains("\r\nlocation: http://169.254.169.254/\r\n")
    });
    eventually("its request is recorded", || {
        let newest = world.json(&["callback", "list", "oast", "--type", "http", "--limit", "1"]);
        newest["items"][0]["rule"] == "inside"
    });

    // The daemon dies while it is flooded.
    let is_over = Arc::new(AtomicBool::new(false));
    let flood = thread::spawn({
        let (is_over, port, name) = (is_over.clone(), dns.number(), name.clone());
        move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            // The same query again would be a repeat.
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                // Nobody listens after the end of the daemon.
                let _ = socket.send_to(&query(&format!("{number}.{name}")), ("127.0.0.1", port));
                thread::yield_now();
            }
        }
    });
    let before = numbers(&world, &["--limit", "1"])[0];
    let mut shown = Vec::new();
    eventually("hits of the flood are shown", || {
        shown = numbers(&world, &["--limit", "100"]);
        shown[0] > before + 20
    });
    world.kill_daemon();
    is_over.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    world.start_daemon();
    for number in [shown[0], shown[shown.len() / 2], *shown.last().unwrap()] {
        let kept: Value = world.json(&["callback", "show", "oast", &number.to_string()]);
        assert_eq!(kept["number"], number);
    }

    // A clean stop loses nothing that was heard.
    ask(dns.number(), &format!("last.{name}"));
    world.stop_daemon();
    world.start_daemon();
    let newest = world.json(&["callback", "list", "oast", "--limit", "1"]);
    assert_eq!(newest["items"][0]["name"], format!("last.{name}"));
    world.stop_daemon();
}

#[test]
fn what_cannot_work_is_refused_at_the_start_in_words() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    for (zone, port, code, words) in [
        ("example.org", 0, 2, "covers https://everscan.example.org"),
        (
            "everscan.example.org",
            0,
            2,
            "covers https://everscan.example.org",
        ),
        ("cb_1.test", 0, 2, "is no domain"),
        (
            "cb.test",
            port,
            13,
            "end the other program that uses this port",
        ),
    ] {
        let mut world = World::new();
        world.init_repository();
        world.daemon_config = Some(configuration(zone, port, 0));
        world.spawn_daemon();
        assert!(!world.await_daemon(), "{zone}");
        assert_eq!(
            world.daemon_ended().code(),
            Some(code),
            "{}",
            world.daemon_log()
        );
        assert!(world.daemon_log().contains(words), "{}", world.daemon_log());
        assert!(!world.path("state").exists(), "ports come before the state");
    }
    let mut world = World::new();
    world.init_repository();
    world.daemon_config = Some(configuration("cb.example.org", 0, 0));
    world.start_daemon();
    assert!(
        world
            .daemon_log()
            .contains("shares a domain with the daemon"),
        "{}",
        world.daemon_log()
    );
    world.stop_daemon();
}

/// A scan whose step uses its own name before it watches.
fn hunt(http: u16) -> String {
    format!(
        r#"scans:
  hunt:
    on: {{dispatch: {{}}}}
    callback: oast
    steps:
      - run: |
          exec 3<>/dev/tcp/127.0.0.1/{http}
          printf 'GET /own HTTP/1.1\r\nHost: %s\r\n\r\n' "$SERVICE_CALLBACK_HOST" >&3
          cat <&3
          everscan callback watch --for 600s --min 1
          made=$(everscan callback token create oast --note second)
          code=0
          everscan callback watch --type dns --for 1s || code=$?
          test "$code" = 6
          echo "$made" > made.txt
          everscan blob upload -s made.txt -d names/
"#
    )
}

const PROBE: &str = "scans:
  probe:
    on: {dispatch: {}}
    callback: oast
    steps:
      - run: echo \"$SERVICE_CALLBACK_HOST\" > name.txt && everscan blob upload -s name.txt -d names/
";

#[test]
fn a_job_has_a_name_of_its_own_and_its_hits_show_the_job() {
    let mut world = World::new();
    world.init_repository();
    let (dns, http) = (Port::hold(), Port::hold());
    let hunt = hunt(http.number());
    world.push(&[("probe.yaml", Some(PROBE)), ("hunt.yaml", Some(&hunt))]);
    world.daemon_config = Some(configuration("cb.test", dns.number(), http.number()));
    world.start_daemon();
    world.sync();
    world.start_runner(2);
    let dispatch = ["scan", "dispatch", "probe", "probe", "--follow"];
    let without = world.output("everscan", &dispatch);
    assert!(!without.status.success());
    let log = String::from_utf8_lossy(&without.stdout) + String::from_utf8_lossy(&without.stderr);
    assert!(
        log.contains("everscan callback create oast --project main"),
        "{log}"
    );

    world.everscan(&["callback", "create", "oast", "--project", "main"]);
    assert!(world.output("everscan", &dispatch).status.success());
    let name = world.everscan(&["blob", "cat", "names/name.txt"]);
    let name = name.trim();
    assert!(name.ends_with(".cb.test"), "{name}");
    let jobs = world.json(&["job", "list", "--limit", "1"]);
    let job = jobs["items"][0]["id"].as_str().unwrap();
    // The first minted name changes the table of the listeners, which follows soon.
    eventually("a look-up is recorded", || {
        ask(dns.number(), name);
        !numbers(&world, &["--job", job]).is_empty()
    });
    let hits = world.json(&["callback", "list", "oast", "--job", job]);
    assert_eq!(
        hits["items"][0]["job"],
        serde_json::json!({"id": job, "scan": "probe"})
    );

    // A step hears of the names of its job, also of what came before it watched.
    let run = world.output(
        "everscan",
        &["scan", "dispatch", "hunt", "hunt", "--follow"],
    );
    assert!(run.status.success(), "{run:?}");
    let made = world.everscan(&["blob", "cat", "names/made.txt"]);
    ask(dns.number(), made.trim());
    eventually("the second name of the job is heard", || {
        let page = world.json(&["callback", "list", "oast", "--type", "dns", "--limit", "1"]);
        let it = &page["items"][0];
        it["note"] == "second" && it["job"]["scan"] == "hunt"
    });

    // Late hits count, and the record of the name stays when the job is removed.
    world.everscan(&["job", "delete", job]);
    world.kill_daemon();
    world.start_daemon();
    ask(dns.number(), &format!("late.{name}"));
    eventually("a late look-up is recorded", || {
        numbers(&world, &["--job", job]).len() >= 2
    });
    world.stop_daemon();
}
