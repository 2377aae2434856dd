//! Open conditions.

use serde_json::json;
use wire::{Acknowledgement, ConditionSubject, OpenCondition, Page};

use crate::everscan::run_at;
use crate::fixtures::{at, id, job};
use crate::reads::check;
use crate::server::{Reply, Server};

pub(crate) fn condition() -> OpenCondition {
    OpenCondition {
        id: id(9),
        code: "failing".to_owned(),
        message: format!(
            "3 jobs failed, the last was job {}; there was no success yet",
            id(1)
        ),
        since: at(0),
        project: Some("main".to_owned()),
        workflow: Some(job(wire::JobState::Failed).workflow),
        scan: Some("ports".to_owned()),
        source: None,
        runner: None,
        token: None,
        job: Some(id(1)),
        acknowledged: None,
        silenced_until: None,
    }
}

#[test]
fn open_conditions_are_listed_with_what_they_are_about() {
    let instance = OpenCondition {
        code: "disk_low".to_owned(),
        message: "the disk of the state is nearly full: no job starts".to_owned(),
        project: None,
        workflow: None,
        scan: None,
        job: None,
        ..condition()
    };
    let runner = OpenCondition {
        code: "runner_lost".to_owned(),
        message: "the runner is not connected".to_owned(),
        runner: Some(ConditionSubject {
            id: id(5),
            name: "box".to_owned(),
        }),
        silenced_until: Some(at(3_600)),
        ..instance.clone()
    };
    let page = Page::all(vec![condition(), instance, runner]);
    check(
        "condition-list",
        "condition list",
        "GET /v0/conditions",
        Reply::json(&page),
    );
}

#[test]
fn a_note_and_a_silence_are_sent() {
    let noted = OpenCondition {
        acknowledged: Some(Acknowledgement {
            by: "token ci".to_owned(),
            at: at(60),
            note: Some("Monday".to_owned()),
        }),
        ..condition()
    };
    check(
        "condition-ack",
        "condition ack 3f2a --note Monday",
        "POST /v0/conditions/3f2a/acknowledge",
        Reply::json(&noted),
    );
    for (line, body) in [
        ("condition silence 3f2a --for 2h", json!({"seconds": 7_200})),
        ("condition silence 3f2a --off", json!({})),
    ] {
        let server = Server::start([Reply::json(&condition())]);
        let output = run_at(&server.url, line);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let sent: serde_json::Value = serde_json::from_str(&server.seen()[0].body).unwrap();
        assert_eq!(sent, body, "{line}");
    }
}
