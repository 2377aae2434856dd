use chrono::TimeZone as _;
use serde_json::json;

use super::*;

fn rule(json: &serde_json::Value) -> Rule {
    parse_rule(&json.to_string(), false).unwrap()
}

#[test]
fn a_rule_without_events_takes_what_most_people_want() {
    let rule = rule(&json!({ "channel": "ops" }));
    assert_eq!(rule, Rule::of(NotifyName::new("ops").unwrap()));
    let taken = |event| rule.takes(event, Some("s/backup"), Some("dump"));
    for event in [EventName::Failing, EventName::Overdue, EventName::Artifact] {
        assert!(taken(event), "{event:?}");
    }
    for event in [
        EventName::SlotMissed,
        EventName::Suspended,
        EventName::NewLines,
    ] {
        assert!(!taken(event), "{event:?}");
    }
    assert_eq!(
        (rule.after(), rule.group(), rule.repeat()),
        (1, TimeDelta::seconds(30), None)
    );
}

#[test]
fn patterns_match_the_name_of_the_workflow_with_or_without_its_source_and_the_scan() {
    let rule = rule(&json!({
        "channel": "ops", "events": ["failing"], "workflows": ["nightly/*", "deploy", "infra/recon"], "scans": ["d?mp", "all"],
    }));
    let taken = |workflow: &str, scan| rule.takes(EventName::Failing, Some(workflow), scan);
    for workflow in [
        "s/nightly/backup",
        "s/deploy",
        "nightly/backup",
        "infra/recon",
        "s/infra/recon",
    ] {
        assert!(taken(workflow, Some("dump")), "{workflow}");
    }
    for workflow in ["s/nightly/a/b", "s/recon", "s/other/deploy", "deploy/s"] {
        assert!(!taken(workflow, Some("dump")), "{workflow}");
    }
    assert!(!taken("s/deploy", Some("dumps")) && !taken("s/deploy", None));
    assert!(!rule.takes(EventName::Failing, None, None));
    assert!(!rule.takes(EventName::Overdue, Some("s/deploy"), Some("all")));
}

#[test]
fn a_rule_about_callback_servers_takes_nothing_else() {
    let rule =
        rule(&json!({ "channel": "ops", "events": ["interaction"], "callbacks": ["shop*"] }));
    let name = |name| NotifyName::new(name).unwrap();
    assert!(rule.takes_callback(Some(&name("shop-2"))));
    assert!(!rule.takes_callback(Some(&name("other"))) && !rule.takes_callback(None));
    assert!(Rule::of(name("ops")).takes_callback(None));
}

#[test]
fn events_of_the_instance_are_for_its_rules() {
    let json = r#"{ "channel": "ops", "events": ["disk_low"] }"#;
    assert!(parse_rule(json, false).is_err());
    let rule = parse_rule(json, true).unwrap();
    assert!(rule.takes(EventName::DiskLow, None, None));
    assert!(!rule.takes(EventName::Failing, None, None));
}

#[test]
fn a_rule_is_read_back_from_its_record_and_from_the_api() {
    let json = json!({
        "name": "a", "channel": "ops", "events": ["failing", "new_lines"], "workflows": ["a/**"], "scans": ["b"],
        "after": 3, "group": "0s", "repeat": "1h30m", "quiet": { "from": "22:00", "to": "07:00", "timezone": "UTC" },
        "template": "\"quoted\" \u{1} ü ${{ event.title }}\n", "content": "none",
    });
    let rule = rule(&json);
    assert_eq!(serde_json::to_value(&rule).unwrap(), json);
    assert_eq!(serde_json::from_value::<Rule>(json).unwrap(), rule);
    assert_eq!((rule.after(), rule.group()), (3, TimeDelta::zero()));
    assert_eq!(rule.repeat(), Some(TimeDelta::minutes(90)));
}

/// The end of the quiet hours, as the wall clock of the zone shows it.
fn quiet_until(from: &str, to: &str, now: &str) -> Option<String> {
    let rule = rule(&json!({
        "channel": "ops", "quiet": { "from": from, "to": to, "timezone": "Europe/Berlin" },
    }));
    let end = rule.quiet_until(now.parse().unwrap())?;
    let local = chrono_tz::Europe::Berlin.from_utc_datetime(&end.naive_utc());
    Some(local.format("%d %H:%M %Z").to_string())
}

#[test]
fn quiet_hours_may_cross_midnight() {
    let night = |now| quiet_until("22:00", "07:00", now);
    assert_eq!(night("2026-01-10T20:59:59Z"), None);
    assert_eq!(night("2026-01-10T21:00:00Z").unwrap(), "11 07:00 CET");
    assert_eq!(night("2026-01-11T05:59:59Z").unwrap(), "11 07:00 CET");
    assert_eq!(night("2026-01-11T06:00:00Z"), None);
    let noon = |now| quiet_until("12:00", "13:00", now);
    assert_eq!(noon("2026-01-10T11:30:00Z").unwrap(), "10 13:00 CET");
    assert_eq!(noon("2026-01-10T21:30:00Z"), None);
}

#[test]
fn quiet_hours_follow_the_wall_clock_when_it_changes() {
    // The clock goes from 02:00 to 03:00.
    assert_eq!(
        quiet_until("22:00", "07:00", "2026-03-29T04:59:00Z").unwrap(),
        "29 07:00 CEST"
    );
    assert_eq!(quiet_until("22:00", "07:00", "2026-03-29T05:00:00Z"), None);
    assert_eq!(
        quiet_until("22:00", "02:30", "2026-03-29T00:59:00Z").unwrap(),
        "29 03:00 CEST"
    );
    assert_eq!(quiet_until("02:15", "02:45", "2026-03-29T01:00:00Z"), None);
    // It goes from 03:00 back to 02:00.
    assert_eq!(
        quiet_until("22:00", "07:00", "2026-10-25T05:59:00Z").unwrap(),
        "25 07:00 CET"
    );
    assert_eq!(
        quiet_until("22:00", "02:30", "2026-10-25T00:29:00Z").unwrap(),
        "25 02:30 CEST"
    );
    assert_eq!(quiet_until("22:00", "02:30", "2026-10-25T01:15:00Z"), None);
}

#[test]
fn a_template_reads_the_event_and_an_absent_member_is_empty() {
    let event = json!({ "title": "backup fails", "lines": 3, "unknown": "x" });
    let text = "${{ event.title }}: ${{ event.lines }}${{ event.scan }}.";
    let given = rule(&json!({ "channel": "ops", "template": text }));
    assert_eq!(
        given.render(&event),
        Some(Ok("backup fails: 3.".to_owned()))
    );
    assert_eq!(Rule::of(given.channel).render(&event), None);
    let text = "${{ event.scan.matches('^a') ? 'a' : string(int(event.title)) }}";
    let failing = rule(&json!({ "channel": "ops", "template": text }));
    assert!(failing.render(&event).unwrap().is_err());
}

#[test]
fn a_template_is_at_most_8_kib() {
    let of = |bytes: usize| {
        parse_rule(
            &json!({ "channel": "ops", "template": "x".repeat(bytes) }).to_string(),
            false,
        )
    };
    assert!(of(8 * 1024).is_ok());
    assert!(of(8 * 1024 + 1).is_err());
}

#[test]
fn the_rules_of_a_file_fit_into_a_record() {
    let template = "x".repeat(4_000);
    let names = (0..40).map(|at| format!("{{ name: r{at}, channel: ops, template: *t }}"));
    let rules = names.collect::<Vec<_>>().join(", ");
    let text = format!("notify: [{{ channel: ops, template: &t {template} }}, {rules}]");
    let (none, found) = parse_project("everscan.yaml", &text);
    assert_eq!((none, found[0].code), (None, crate::Code::FileTooComplex));
}

#[test]
fn a_repository_has_at_most_200_rules() {
    let rules = |count: usize| {
        let rules: Vec<_> = (0..count)
            .map(|at| json!({ "name": format!("r{at}"), "channel": "ops" }))
            .collect();
        parse_project("everscan.yaml", &json!({ "notify": rules }).to_string())
    };
    assert_eq!(rules(200).0.unwrap().len(), 200);
    let (none, found) = rules(201);
    assert_eq!((none, found[0].code), (None, crate::Code::TooMany));
}

#[test]
fn every_event_has_the_name_of_its_record() {
    for event in EventName::ALL {
        assert_eq!(serde_json::to_value(event).unwrap(), event.name());
    }
    for content in Content::ALL {
        assert_eq!(serde_json::to_value(content).unwrap(), content.name());
    }
}
