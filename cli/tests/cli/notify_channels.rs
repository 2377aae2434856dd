//! Channels of notifications, and the log of what was sent.

use serde_json::{Value, json};
use wire::{
    Channel, ChannelFailure, ChannelTarget, Delivery, DeliveryResult, MailSecurity, Page,
    SendResult, WaitReason, Waiting,
};

use crate::conditions::condition;
use crate::everscan::{command, finished, run_at};
use crate::fixtures::{at, id, job};
use crate::reads::check;
use crate::server::{Reply, Server};

fn channel(name: &str, target: ChannelTarget) -> Channel {
    Channel {
        name: name.to_owned(),
        project: Some("main".to_owned()),
        target,
        has_secret: true,
        offered_to: Vec::new(),
        offered_to_all: false,
        version: 1,
        changed_at: at(0),
        changed_by: "token ci".to_owned(),
        sent_at: None,
        waiting: None,
        failing: None,
        new_key: None,
    }
}

fn webhook() -> ChannelTarget {
    ChannelTarget::Webhook {
        url: "https://hook.example/in".to_owned(),
        ca: None,
    }
}

/// A channel of the instance whose messages do not arrive.
fn mail() -> Channel {
    let target = ChannelTarget::Email {
        host: "mail.example".to_owned(),
        port: Some(587),
        security: MailSecurity::Starttls,
        from: "ci@example.org".to_owned(),
        to: vec!["ops@example.org".to_owned(), "me@example.org".to_owned()],
        username: Some("ci".to_owned()),
        ca: None,
    };
    Channel {
        project: None,
        offered_to: vec!["main".to_owned()],
        waiting: Some(Waiting {
            events: 3,
            until: Some(at(90)),
            reason: WaitReason::Retry,
        }),
        failing: Some(ChannelFailure {
            since: at(60),
            reason: "421 4.3.2 try again later".to_owned(),
            gone: false,
        }),
        ..channel("ops", target)
    }
}

#[test]
fn channels_are_listed_and_shown_with_their_state() {
    let sent = Channel {
        sent_at: Some(at(30)),
        ..channel("team", ChannelTarget::Slack)
    };
    let page = Page::all(vec![mail(), channel("hook", webhook()), sent]);
    let line = "notify channel list";
    check(
        "notify-channel-list",
        line,
        "GET /v0/channels",
        Reply::json(&page),
    );
    let line = "notify channel show ops --instance";
    check(
        "notify-channel-show",
        line,
        "GET /v0/channels/ops",
        Reply::json(&mail()),
    );
}

#[test]
fn the_instance_wins_over_a_project_of_the_environment() {
    let ask = |line: &str| {
        let server = Server::start([Reply::json(&mail())]);
        let mut command = command(line);
        command.env("SERVICE_URL", &server.url);
        let output = finished(command.env("SERVICE_PROJECT", "main").output().unwrap());
        (server.lines(), output)
    };
    let (lines, _) = ask("notify channel show ops --instance");
    assert_eq!(lines, ["GET /v0/channels/ops"]);
    let (lines, _) = ask("notify channel show ops");
    assert_eq!(lines, ["GET /v0/channels/ops?project=main"]);
    let (lines, output) = ask("notify channel show ops --instance --project main");
    assert_eq!((lines.len(), output.code), (0, 2));
    assert!(output.stderr.contains("--instance"), "{}", output.stderr);
}

/// The body and the output of a command that adds a channel.
fn add(options: &str) -> (Value, i32, String) {
    let set = Reply::json(&channel("c", ChannelTarget::Slack));
    let server = Server::start([set, Reply::json(&Page::all(vec![condition()]))]);
    let line = format!("notify channel add c --project main {options}");
    let output = run_at(&server.url, &line);
    let seen = server.seen();
    let body = seen.first().map_or(Value::Null, |request| {
        assert_eq!(request.line, "PUT /v0/channels/c?project=main");
        serde_json::from_str(&request.body).unwrap()
    });
    (body, output.code, output.stderr)
}

#[test]
fn each_kind_of_channel_is_sent_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "hunter2\n").unwrap();
    let secret = format!("--secret-file {}", file.display());
    for (options, target) in [
        (
            "--email a@example.org --email b@example.org --from c@example.org --smtp mail.example:465 --security tls \
             --username c",
            json!({
                "kind": "email", "host": "mail.example", "port": 465, "security": "tls", "from": "c@example.org",
                "to": ["a@example.org", "b@example.org"], "username": "c",
            }),
        ),
        (
            "--email a@example.org --from c@example.org --smtp [::1]:25 --security none",
            json!({
                "kind": "email", "host": "::1", "port": 25, "security": "none", "from": "c@example.org",
                "to": ["a@example.org"],
            }),
        ),
        (
            "--webhook https://h.example/x",
            json!({ "kind": "webhook", "url": "https://h.example/x" }),
        ),
        ("--slack", json!({ "kind": "slack" })),
        ("--discord", json!({ "kind": "discord" })),
        (
            "--ntfy https://ntfy.example/topic",
            json!({ "kind": "ntfy", "server": "https://ntfy.example", "topic": "topic" }),
        ),
        (
            "--command page",
            json!({ "kind": "command", "command": "page" }),
        ),
    ] {
        let (body, code, stderr) = add(&format!("{options} {secret}"));
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(body, json!({ "target": target, "secret": "hunter2" }));
        let said = "channel c is set; try it with `everscan notify channel test c --project main`\n\
                    1 condition is open already, and not sent; `everscan condition list` shows them\n";
        assert_eq!(stderr, said);
    }
    for wrong in [
        "",
        "--slack --discord",
        "--email a@example.org",
        "--slack --from a@example.org",
    ] {
        assert_eq!(add(wrong).1, 2, "{wrong}");
    }
}

#[test]
fn a_new_key_is_the_only_output() {
    let made = Channel {
        new_key: Some("whsec_abc".to_owned()),
        ..channel("hook", webhook())
    };
    // The token may not see conditions.
    let refused = Reply::problem(403, "scope_missing", "it lacks workflow:read", None);
    let server = Server::start([Reply::json(&made), refused]);
    let line = "notify channel add hook --project main --webhook https://hook.example/in";
    let output = run_at(&server.url, line);
    assert_eq!((output.code, output.stdout.as_str()), (0, "whsec_abc\n"));
    assert!(
        output.stderr.contains("which is shown only now"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_test_fails_with_what_the_receiver_says() {
    let result = |result, reply: &str| SendResult {
        result,
        reply: reply.to_owned(),
    };
    for (answer, code, shown) in [
        (
            result(DeliveryResult::Delivered, "204"),
            0,
            "delivered: 204\n",
        ),
        (
            result(DeliveryResult::Failed, "403 Forbidden"),
            1,
            "failed: 403 Forbidden\n",
        ),
    ] {
        let server = Server::start([Reply::json(&answer)]);
        let output = run_at(&server.url, "notify channel test team --project main");
        assert_eq!((output.code, output.stdout.as_str()), (code, shown));
        assert_eq!(server.lines(), ["POST /v0/channels/team/test?project=main"]);
    }
}

#[test]
fn a_channel_is_deleted_and_a_message_sent_again() {
    let server = Server::start([Reply::bytes("").status(204)]);
    let output = run_at(&server.url, "notify channel delete ops --instance");
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (0, "channel ops is deleted\n")
    );
    assert_eq!(server.lines(), ["DELETE /v0/channels/ops"]);

    let server = Server::start([Reply::bytes("").status(204)]);
    let line = format!("notify retry team --project main --message {}", id(1));
    let output = run_at(&server.url, &line);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let [request] = &server.seen()[..] else {
        panic!("one request");
    };
    assert_eq!(request.line, "POST /v0/channels/team/retry?project=main");
    assert_eq!(request.body, json!({ "message": id(1) }).to_string());
}

#[test]
fn the_log_shows_each_attempt_and_goes_on_until_its_limit() {
    let attempt = |attempt, result, reply: &str| Delivery {
        at: at(i64::from(attempt)),
        message: id(7),
        channel: "team".to_owned(),
        project: Some("main".to_owned()),
        attempt,
        repeated: attempt == 2,
        result: SendResult {
            result,
            reply: reply.to_owned(),
        },
        retry_at: None,
        title: "main/nightly dump failed".to_owned(),
        events: 1,
        jobs: vec![id(1)],
    };
    let page = Page::all(vec![
        attempt(2, DeliveryResult::Delivered, "200"),
        attempt(1, DeliveryResult::Retry, "503 Service Unavailable"),
    ]);
    let line = format!("notify log --project main --channel team --job {}", id(1));
    let request = format!(
        "GET /v0/deliveries?project=main&channel=team&job={}&limit=20",
        id(1)
    );
    check("notify-log", &line, &request, Reply::json(&page));

    let first = Page {
        next_cursor: Some("next".to_owned()),
        ..page.clone()
    };
    let server = Server::start([Reply::json(&first), Reply::json(&page)]);
    let output = run_at(&server.url, "notify log -n 4");
    assert_eq!((output.code, output.stdout.lines().count()), (0, 5));
    let lines = [
        "GET /v0/deliveries?limit=4",
        "GET /v0/deliveries?limit=2&cursor=next",
    ];
    assert_eq!(server.lines(), lines);
}

#[test]
fn the_log_takes_a_part_of_a_job_and_refuses_a_channel_that_does_not_exist() {
    let nothing = Page::<Delivery>::all(Vec::new());
    let known = job(wire::JobState::Failed);
    let server = Server::start([Reply::json(&known), Reply::json(&nothing)]);
    let output = run_at(&server.url, "notify log --job 0000001");
    assert_eq!(output.code, 0, "{}", output.stderr);
    let log = format!("GET /v0/deliveries?job={}&limit=20", known.id);
    assert_eq!(server.lines(), ["GET /v0/jobs/0000001", &log]);

    let channels = Page::all(vec![channel("team", ChannelTarget::Slack)]);
    for (name, code) in [("team", 0), ("nosuch", 7)] {
        let server = Server::start([Reply::json(&nothing), Reply::json(&channels)]);
        let output = run_at(&server.url, &format!("notify log --channel {name}"));
        assert_eq!(output.code, code, "{}", output.stderr);
        let is_refused = output.stderr.contains("there is no channel nosuch");
        assert_eq!(is_refused, code != 0, "{}", output.stderr);
    }
}
