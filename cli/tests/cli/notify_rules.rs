//! Rules of notifications.

use serde_json::json;
use wire::{OpenCondition, Page, PreviewedEvent, Rule, RuleDefinition, RuleOrigin};

use crate::conditions::condition;
use crate::everscan::run_at;
use crate::fixtures::at;
use crate::reads::check;
use crate::server::{Reply, Server};

fn rule() -> Rule {
    Rule {
        name: "nightly".to_owned(),
        project: Some("main".to_owned()),
        origin: RuleOrigin::File,
        definition: RuleDefinition {
            channel: "team".to_owned(),
            events: vec!["failing".to_owned(), "artifact".to_owned()],
            workflows: vec!["nightly/*".to_owned()],
            ..RuleDefinition::default()
        },
    }
}

#[test]
fn rules_are_listed_with_their_origin() {
    let of_instance = Rule {
        name: "disk".to_owned(),
        project: None,
        origin: RuleOrigin::Api,
        definition: RuleDefinition {
            channel: "ops".to_owned(),
            ..RuleDefinition::default()
        },
    };
    let page = Page::all(vec![of_instance, rule()]);
    let request = "GET /v0/rules?project=main";
    check(
        "notify-rule-list",
        "notify rule list --project main",
        request,
        Reply::json(&page),
    );
}

#[test]
fn a_rule_is_sent_with_all_its_parts() {
    let elsewhere = OpenCondition {
        project: Some("other".to_owned()),
        ..condition()
    };
    let open = Page::all(vec![condition(), elsewhere, condition()]);
    let server = Server::start([Reply::json(&rule()), Reply::json(&open)]);
    let line = "notify rule add nightly --project main --channel team --event failing --event artifact \
                --workflow nightly/* --scan dump --after 3 --group 0s --repeat 4h --quiet 22:00-07:00 \
                --timezone Europe/Berlin --content none";
    let output = run_at(&server.url, line);
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (
            0,
            "rule nightly sends to channel team\n\
             2 conditions are open already, and not sent; `everscan condition list` shows them\n"
        )
    );
    let [request, conditions] = &server.seen()[..] else {
        panic!("two requests");
    };
    assert_eq!(conditions.line, "GET /v0/conditions");
    assert_eq!(request.line, "PUT /v0/rules/nightly?project=main");
    let body: serde_json::Value = serde_json::from_str(&request.body).unwrap();
    let expected = json!({
        "channel": "team", "events": ["failing", "artifact"], "workflows": ["nightly/*"], "scans": ["dump"], "after": 3,
        "group": "0s", "repeat": "4h", "quiet": { "from": "22:00", "to": "07:00", "timezone": "Europe/Berlin" },
        "content": "none",
    });
    assert_eq!(body, expected);
}

#[test]
fn a_rule_of_the_instance_has_no_project() {
    let server = Server::start([Reply::bytes("").status(204)]);
    let output = run_at(&server.url, "notify rule delete disk --instance");
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (0, "rule disk is deleted\n")
    );
    assert_eq!(server.lines(), ["DELETE /v0/rules/disk"]);
    let output = run_at(
        &server.url,
        "notify rule delete disk --instance --project main",
    );
    assert_eq!(output.code, 2);
}

#[test]
fn a_preview_is_of_the_rules_in_force_or_of_one_rule() {
    let event = PreviewedEvent {
        at: at(0),
        event: "failing".to_owned(),
        is_over: true,
        about: "main/nightly dump".to_owned(),
        message: "failed 3 times".to_owned(),
        rule: Some("nightly".to_owned()),
        channel: "team".to_owned(),
    };
    let usual = PreviewedEvent {
        rule: None,
        ..event.clone()
    };
    let page = Page::all(vec![event, usual]);
    let (line, request) = (
        "notify rule preview --project main",
        "POST /v0/rule-previews?project=main",
    );
    check("notify-rule-preview", line, request, Reply::json(&page));
    for (flags, body) in [
        ("", ""),
        ("--after 3", r#"{"channel":"preview","after":3}"#),
        ("--channel team", r#"{"channel":"team"}"#),
    ] {
        let server = Server::start([Reply::json(&page)]);
        let output = run_at(&server.url, &format!("{line} {flags}"));
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert_eq!(server.seen()[0].body, body);
    }
}
