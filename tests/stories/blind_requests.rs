//! The example `callbacks`: a job plants names of its own, a target uses one, and the hit starts the report and a message.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::support::port::Port;
use crate::support::{World, eventually};

const NAME: &str = "blind";

#[test]
fn a_hit_of_a_planted_name_starts_the_report_and_tells_people() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/callbacks");
    let mut world = World::new();
    let path = |below: &str| world.path(below).display().to_string();
    let (repository, message) = (path("repository"), path("messages"));
    let copied = world.output("cp", &["-r", example, &repository]);
    assert!(copied.status.success());
    let key = world.path("secret-key").display().to_string();
    let made = world.output("everscand", &["secret-key", "make", &key]);
    assert!(made.status.success());
    world.daemon_key = Some("secret-key".to_owned());
    let (dns, http, target) = (Port::hold(), Port::hold(), Port::hold());
    let workflow = world.path("repository/workflows/blind.yaml");
    let text = std::fs::read_to_string(&workflow).unwrap();
    let here = text.replace("127.0.0.1:8000", &format!("127.0.0.1:{}", target.number()));
    assert_ne!(here, text);
    std::fs::write(&workflow, here).unwrap();
    world.init_repository();
    world.push(&[]);
    world.daemon_config = Some(format!(
        "url: https://everscan.example.org\ncallback:\n  zones: [cb.test]\n  public: [192.0.2.1]\n  \
         listen: {{ dns: ['127.0.0.1:{}'], http: ['127.0.0.1:{}'] }}\n\
         notify_commands:\n  team: {{ program: /bin/sh, args: ['-c', 'cat >> {message}; echo >> {message}'] }}\n",
        dns.number(),
        http.number()
    ));
    world.start_daemon();
    world.sync();
    world.everscan(&[
        "notify",
        "channel",
        "add",
        "team",
        "--command",
        "team",
        "--project",
        "main",
    ]);
    let server = world.json(&["callback", "create", "shop", "--project", "main"]);
    let server = server["id"].as_str().unwrap();
    world.everscan(&["var", "set", "CALLBACK_SERVER", server, "--project", "main"]);
    world.everscan(&[
        "payload",
        "group",
        "create",
        "blind",
        "--project",
        "main",
        "--variable",
        "CALLBACK",
    ]);
    let payload = world.path("address");
    std::fs::write(&payload, "http://%%CALLBACK%%/").unwrap();
    let payload = payload.to_str().unwrap();
    world.everscan(&["payload", "create", "blind", "address", payload]);

    let tools = world.path("repository/tools");
    let mut running = world
        .command("python3")
        .arg(tools.join("target"))
        .arg(target.number().to_string())
        .env("CALLBACK_ADDRESS", format!("127.0.0.1:{}", http.number()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(running.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let inherited = std::env::var("PATH").unwrap();
    let paths = format!(
        "{}:{}:{inherited}",
        tools.display(),
        world.path("bin").display()
    );
    world.start_runner_with(1, &[("PATH", &paths)]);

    // The listeners learn of the first minted name soon after it was made.
    eventually("a hit has started the report", || {
        world.succeed(NAME, "plant", &[]);
        !world.jobs_of(NAME, "report").is_empty()
    });
    let report = world.jobs_of(NAME, "report").pop().unwrap();
    assert_eq!(world.finished(&report)["trigger"], "callback");
    let text = &world.artifact(&report, "report")["report.txt"];
    let text = String::from_utf8_lossy(text);
    assert!(
        text.starts_with("1 hits (1 to 1) of names of job "),
        "{text}"
    );
    assert!(text.ends_with("a target has sent a request\n"), "{text}");
    let hit = world.json(&["callback", "show", "shop", "1"]);
    assert_eq!(hit["payload"]["group"], "blind");
    let why = world.everscan(&["scan", "why", NAME, "report"]);
    assert!(
        why.contains("callback server shop had interaction 1: made job"),
        "{why}"
    );

    let titles = || -> Vec<String> {
        let text = std::fs::read_to_string(&message).unwrap_or_default();
        let messages = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages
            .map(|it| it["data"]["title"].as_str().unwrap().to_owned())
            .collect()
    };
    let report = "New result: main/blind report";
    eventually("both messages have come", || {
        titles().iter().any(|it| it == report)
    });
    assert_eq!(titles()[0], "Callback: shop of project main");
    let messages = std::fs::read_to_string(&message).unwrap();
    assert!(
        messages.contains("[.]cb[.]test got a request from 127[.]0[.]0[.]1."),
        "{messages}"
    );
    assert!(!messages.contains(".cb.test"), "{messages}");
    running.kill().unwrap();
    running.wait().unwrap();
    world.stop_daemon();
}
