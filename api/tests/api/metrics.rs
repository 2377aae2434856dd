//! Metrics: who may read them, and their content.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use chrono::TimeDelta;
use http::Method;
use model::Scope;
use model::decide::ConfigureSource;
use regex::Regex;
use serde_json::json;

use crate::client::Call;
use crate::service::{CERTIFICATE_EXPIRES, Service};

const CONTRIB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../contrib/prometheus");

async fn text(service: &Service) -> String {
    let answer = Call::get("/metrics").send(service.address).await;
    assert_eq!(answer.status, 200);
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    answer.text().to_owned()
}

async fn fail(service: &Service, runner: &str) {
    let (_, worker) = service.claimed(runner).await;
    let step = json!({"index": 0, "status": "failed", "outcome": "failed", "exit_code": 3});
    let call = worker.call(Method::POST, &worker.path("complete"));
    let call = call.json(&json!({"steps": [step], "log_records": 0}));
    call.send(service.address).await.expect(200);
}

fn back_up(service: &Service) {
    let to = service.folder().join("backup");
    state::back_up(&service.root(), &to, &|| false).unwrap();
}

/// The value of a series.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line?.trim().parse().ok()
}

/// Waits until a series has a value. Jobs are counted right after their commits.
async fn counted(service: &Service, series: &str, wanted: f64) -> String {
    let mut last = String::new();
    let counted = async {
        loop {
            last = text(service).await;
            if value(&last, series) == Some(wanted) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let in_time = tokio::time::timeout(crate::client::PATIENCE, counted).await;
    assert!(in_time.is_ok(), "{series} is not {wanted} in\n{last}");
    last
}

#[tokio::test]
async fn metrics_are_open_to_this_machine_and_to_the_scope_metrics() {
    let service = Service::start().await;
    let others = service.personal([Scope::JobRead], None).await;
    let monitoring = service.personal([Scope::Metrics], None).await;
    // A proxy on this machine forwards requests from elsewhere.
    let ask = |token: Option<&str>| {
        let call = Call::get("/metrics").header("x-forwarded-for", "203.0.113.9");
        match token {
            Some(token) => call.bearer(token),
            None => call,
        }
        .send(service.address)
    };
    ask(None).await.problem(401, "unauthorized");
    // A page of another site may make its own name resolve to this machine.
    let led = Call::get("/metrics").header("host", "evil.example");
    led.send(service.address).await.problem(401, "unauthorized");
    ask(Some(&others)).await.problem(403, "forbidden");
    assert_eq!(ask(Some(&monitoring)).await.status, 200);
    assert_eq!(ask(Some(&service.admin)).await.status, 200);
    text(&service).await;
}

#[tokio::test]
async fn metrics_count_requests_jobs_and_commits() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    service.dispatch("large").await;
    let said = counted(&service, "everscan_jobs{state=\"running\"}", 1.0).await;
    assert_eq!(
        value(&said, "everscan_jobs{state=\"scheduled\"}"),
        Some(1.0)
    );
    assert_eq!(
        value(&said, "everscan_runners{connected=\"true\"}"),
        Some(1.0)
    );
    service.complete(&worker, 0).await.expect(200);
    let ended = "everscan_jobs_ended_total{state=\"succeeded\",reason=\"steps_succeeded\"}";
    let said = counted(&service, ended, 1.0).await;
    // Alert rules notice an increase only if the counter existed before.
    for hung in [
        "everscan_jobs_ended_total{state=\"failed\",reason=\"timed_out\"}",
        "everscan_jobs_ended_total{state=\"cancelled\",reason=\"session_expired\"}",
    ] {
        assert_eq!(value(&said, hung), Some(0.0), "{hung}");
    }
    let positive = [
        "everscan_job_queue_wait_seconds_count",
        "everscan_commit_seconds_count",
        "everscan_decision_seconds_count",
        "everscan_commit_bytes_total",
        "everscan_source_condition{source=\"main\",condition=\"Fetched\",status=\"true\"}",
        "everscan_disk{mark=\"enough\"}",
        "everscan_disk_bytes{of=\"total\"}",
        "everscan_disk_bytes{of=\"free\"}",
        "everscan_requests_total{method=\"POST\",route=\"/v0/jobs/{job}/complete\",status=\"200\"}",
        "everscan_request_seconds_count{route=\"/metrics\"}",
    ];
    for series in positive {
        assert!(
            value(&said, series).is_some_and(|it| it > 0.0),
            "{series} in\n{said}"
        );
    }
    Call::get("/wp-login.php").send(service.address).await;
    let none = "everscan_requests_total{method=\"-\",route=\"none\",status=\"404\"}";
    counted(&service, none, 1.0).await;
}

#[tokio::test]
async fn metrics_have_the_last_ends_and_conditions_of_scans() {
    let service = Service::start().await;
    let scan = "project=\"main\",workflow=\"pipeline\",scan=\"build\"";
    let success = format!("everscan_scan_last_success_timestamp_seconds{{{scan}}}");
    let end = |state: &str| {
        format!("everscan_scan_last_end_timestamp_seconds{{{scan},state=\"{state}\"}}")
    };
    let condition = |kind: &str, state: &str| {
        format!("everscan_scan_conditions{{{scan},kind=\"{kind}\",state=\"{state}\"}}")
    };
    let failing = condition("failing", "open");
    let before = text(&service).await;
    assert_eq!(value(&before, &success), None);
    let (_, worker) = service.claimed("one").await;
    service.complete(&worker, 0).await.expect(200);
    let succeeded = text(&service).await;
    let at = value(&succeeded, &success).unwrap();
    assert_eq!(value(&succeeded, &end("succeeded")), Some(at));
    assert_eq!(value(&succeeded, &failing), None);
    fail(&service, "two").await;
    let failed = text(&service).await;
    assert_eq!(value(&failed, &success), Some(at));
    assert_eq!(value(&failed, &end("succeeded")), None);
    assert!(value(&failed, &end("failed")).unwrap() >= at);
    assert_eq!(value(&failed, &failing), Some(1.0));
    assert_eq!(value(&failed, "everscan_series_left_out"), Some(0.0));
    let suspend = "/v0/workflows/main%2Fpipeline/scans/build/suspend";
    service
        .post(suspend, &json!({"reason": "holidays"}))
        .await
        .expect(200);
    let suspended = service.condition("suspended").await;
    let path = format!("/v0/conditions/{suspended}/acknowledge");
    service.post(&path, &json!({})).await.expect(200);
    let known = text(&service).await;
    let states = ["open", "acknowledged"].map(|it| value(&known, &condition("suspended", it)));
    assert_eq!(states, [None, Some(1.0)]);
}

#[tokio::test]
async fn metrics_have_what_ends_and_what_is_unknown() {
    let service = Service::start().await;
    let backup = "everscan_backup_timestamp_seconds{}";
    assert_eq!(value(&text(&service).await, backup), None);
    back_up(&service);
    service
        .personal([Scope::JobRead], Some(TimeDelta::days(3)))
        .await;
    let new = ConfigureSource {
        name: "new".parse().unwrap(),
        url: "/srv/new".to_owned(),
        reference: None,
        folder: String::new(),
        interval_seconds: 60,
    };
    service.handle.state().submit(new).await.unwrap();
    let said = text(&service).await;
    assert!(value(&said, backup).unwrap() > 1_700_000_000.0);
    let certificate = value(&said, "everscan_certificate_expiry_timestamp_seconds{}");
    assert_eq!(certificate, Some(CERTIFICATE_EXPIRES as f64));
    let token = Regex::new(
        r#"everscan_token_expiry_timestamp_seconds\{token="[^"]+",name="tester"\} (\d+)"#,
    );
    let tokens: Vec<i64> = token
        .unwrap()
        .captures_iter(&said)
        .map(|found| found[1].parse().unwrap())
        .collect();
    let expires = (service.handle.now() + TimeDelta::days(3)).timestamp();
    assert!(
        matches!(tokens[..], [found] if (expires - found).abs() < 5),
        "{said}"
    );
    for condition in ["Fetched", "Valid", "Active"] {
        let series = format!(
            "everscan_source_condition{{source=\"new\",condition=\"{condition}\",status=\"unknown\"}}"
        );
        assert_eq!(value(&said, &series), Some(1.0), "{said}");
    }
}

/// The labels with their values in a text.
fn labels(text: &str) -> BTreeSet<(&str, &str)> {
    let label = Regex::new(r#"[{,]([a-z_]+)=\\?"([^"\\]+)\\?""#).unwrap();
    let found = label.captures_iter(text).map(|found| {
        let (_, [name, value]) = found.extract();
        (name, value)
    });
    found.collect()
}

/// Labels that a healthy daemon has in no series, or that Prometheus adds.
const UNSEEN: [(&str, &str); 5] = [
    ("job", "everscan"),
    ("mark", "low"),
    ("mark", "full"),
    ("state", wire::JobState::Failed.as_str()),
    ("status", model::Status::False.name()),
];

/// Checks the text and the rules with the tools of Prometheus.
#[tokio::test]
#[expect(clippy::print_stderr, reason = "a skipped test says so and why")]
async fn prometheus_accepts_the_text_and_the_rules() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    service.complete(&worker, 0).await.expect(200);
    back_up(&service);
    let said = text(&service).await;
    if Command::new("promtool").arg("--version").output().is_err() {
        eprintln!("SKIP: promtool is not installed (Debian: prometheus)");
        return;
    }
    let mut check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    check
        .stdin
        .take()
        .unwrap()
        .write_all(said.as_bytes())
        .unwrap();
    let output = check.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}\n{said}");
    let rules = Path::new(CONTRIB).join("alerts.yaml");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/rules.yaml");
    for (how, file) in [("check", rules), ("test", tests)] {
        let output = Command::new("promtool")
            .args([how, "rules"])
            .arg(file)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

#[tokio::test]
async fn the_rules_and_the_dashboard_name_series_that_exist() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    service.complete(&worker, 0).await.expect(200);
    service
        .personal([Scope::JobRead], Some(TimeDelta::days(3)))
        .await;
    fail(&service, "two").await;
    back_up(&service);
    let said = counted(&service, "everscan_jobs{state=\"running\"}", 0.0).await;
    let names = Regex::new("everscan_[a-z_]+").unwrap();
    let helped: BTreeSet<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next())
        .collect();
    for file in ["alerts.yaml", "dashboard.json"] {
        let text = std::fs::read_to_string(Path::new(CONTRIB).join(file)).unwrap();
        let found: BTreeSet<&str> = names.find_iter(&text).map(|found| found.as_str()).collect();
        assert!(found.len() > 3, "{file}");
        for name in found {
            let family = ["_bucket", "_count", "_sum"]
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix))
                .unwrap_or(name);
            assert!(helped.contains(family), "{file} names {name}");
        }
        let labels = labels(&said);
        for label in self::labels(&text) {
            let is_known = labels.contains(&label) || UNSEEN.contains(&label);
            assert!(is_known, "{file} asks for {label:?}");
        }
    }
}
