//! The words for an event: its title, and its text without what only the records of its job say.

use model::callback::{Announcement, Planted, RequestType};
use model::condition::{Acknowledgement, Ended, Problem, Subject};
use model::event::{Event, What};
use model::{ScanKey, World};
use workflow::notify::EventName;

use crate::job_facts::{rounded, sentence, time};
use crate::text::line;

/// What one message says of the other problems of a scan.
const OTHER_PROBLEMS: usize = 5;

/// What happened to what.
pub(crate) fn title(what: &What, is_repeat: bool, label: &str) -> String {
    let [begin, still, over] = words(what.name());
    let (word, label) = match what {
        What::Opened { problem, .. } | What::FailedAgain { problem, .. } => {
            (if is_repeat { still } else { begin }, named(problem, label))
        }
        What::Closed { problem, ended, .. } => match ended {
            Ended::Cured => (over, named(problem, label)),
            Ended::Acknowledged(_) => ("Acknowledged", named(problem, label)),
            Ended::Expired => ("Expired", named(problem, label)),
            Ended::Removed { label } => ("No longer watched", named(problem, label)),
        },
        What::Interaction { name, .. } => (begin, format!("{name} of {label}")),
        What::SlotMissed | What::WorkflowRemoved | What::Artifact { .. } => {
            (begin, label.to_owned())
        }
    };
    format!("{word}: {label}")
}

/// The label of a subject that has several problems of one kind names the one.
fn named(problem: &Problem, label: &str) -> String {
    match problem {
        Problem::MissingVar { name } => format!("var {name} of {label}"),
        Problem::MissingSecret { name } => format!("secret {name} of {label}"),
        Problem::MissingCallback { name } => format!("callback server {name} of {label}"),
        Problem::MissingChannel { name } => format!("channel {name} of {label}"),
        Problem::InvalidFile { file, .. } => format!("{file} of {label}"),
        Problem::ChannelFailing { channel, .. } => format!("channel {channel}"),
        Problem::CallbackFull { callback } => format!("callback server {callback} of {label}"),
        _ => label.to_owned(),
    }
}

/// When a condition begins, while it is open, and when it is over.
const fn words(name: EventName) -> [&'static str; 3] {
    match name {
        EventName::Failing => ["Failed", "Still failing", "Recovered"],
        EventName::Overdue => ["Overdue", "Still overdue", "No longer overdue"],
        EventName::Late => ["Late", "Still late", "No longer late"],
        EventName::TooShort => ["Too short", "Still too short", "No longer too short"],
        EventName::TooLong => ["Too long", "Still too long", "No longer too long"],
        EventName::Circle => ["Circle", "Still in a circle", "No longer in a circle"],
        EventName::Stuck => ["Waiting", "Still waiting", "No longer waiting"],
        EventName::HistoryDamaged => ["Damaged", "Still damaged", "No longer damaged"],
        EventName::Suspended => ["Suspended", "Still suspended", "No longer suspended"],
        EventName::SourceFailing => [
            "Source failing",
            "Source still failing",
            "Source works again",
        ],
        EventName::InvalidFile => ["Invalid file", "File still invalid", "No longer invalid"],
        EventName::RemovalHeld => ["Held", "Still held", "No longer held"],
        EventName::MissingVar
        | EventName::MissingSecret
        | EventName::MissingCallback
        | EventName::MissingChannel => ["Missing", "Still missing", "No longer missing"],
        EventName::RunnerLost => ["Runner lost", "Runner still lost", "Runner is back"],
        EventName::TokenExpires | EventName::CertificateExpires => {
            ["Expires soon", "Expires soon", "Renewed"]
        }
        EventName::CallbackCertificate => [
            "No certificate for callbacks",
            "Still no certificate for callbacks",
            "Certificate for callbacks renewed",
        ],
        EventName::DiskLow => [
            "Disk nearly full",
            "Disk still nearly full",
            "Disk has room again",
        ],
        EventName::BackupOld => ["No new backup", "Still no new backup", "New backup"],
        EventName::ChannelFailing => [
            "Channel failing",
            "Channel still failing",
            "Channel works again",
        ],
        EventName::CallbackFull => [
            "Callbacks not recorded",
            "Callbacks still not recorded",
            "Callbacks recorded again",
        ],
        EventName::SlotMissed => ["Not run"; 3],
        EventName::WorkflowRemoved => ["Removed"; 3],
        EventName::Artifact | EventName::NewLines => ["New result"; 3],
        EventName::Interaction => ["Callback"; 3],
    }
}

/// The text of an event.
pub(crate) fn text(world: &World, event: &Event) -> String {
    match &event.what {
        What::Opened { problem, .. } | What::FailedAgain { problem, .. } => {
            let mut text = sentence(&problem_text(world, &event.subject, problem));
            if matches!(problem, Problem::Overdue { .. } | Problem::Late { .. }) {
                let others = other_problems(world, &event.subject, problem);
                others
                    .iter()
                    .for_each(|it| text.push_str(&format!("\n{it}")));
            }
            text
        }
        What::Closed {
            problem,
            since,
            ended,
            ..
        } => match ended {
            Ended::Cured => over(problem, &rounded(event.at - *since)),
            Ended::Acknowledged(Acknowledgement { by, note, .. }) => match note {
                Some(note) => sentence(&format!("by {by}: {note}")),
                None => sentence(&format!("by {by}")),
            },
            Ended::Expired => format!("It was: {}", sentence(&problem.to_string())),
            Ended::Removed { .. } => format!(
                "{} It was: {}",
                removed(world, &event.subject),
                sentence(&problem.to_string())
            ),
        },
        What::SlotMissed => "A slot of its schedule passed without a job.".to_owned(),
        What::WorkflowRemoved => "The workflow file is gone.".to_owned(),
        What::Artifact { artifact, .. } => format!("The job has stored the artifact {artifact}."),
        What::Interaction { announcement, .. } => interaction(announcement),
    }
}

/// What strangers wrote is cleaned, and nothing of it becomes a link.
fn interaction(heard: &Announcement) -> String {
    let used = match heard.kind {
        RequestType::Dns => "was looked up by",
        RequestType::Http => "got a request from",
    };
    let mut lines = vec![format!("{} {used} {}.", heard.name, heard.from)];
    let Planted {
        note,
        job,
        payload,
        target,
    } = &heard.planted;
    lines.extend(note.as_ref().map(|note| format!("Planted: {note}")));
    lines.extend(payload.as_ref().map(|it| {
        format!(
            "Payload: {} of {}, version {}",
            it.payload, it.group, it.version
        )
    }));
    lines.extend(target.as_ref().map(|target| format!("Target: {target}")));
    lines.extend(job.as_ref().map(|job| format!("Made by job {}", job.id)));
    let (first, last, count) = (heard.first, heard.last, heard.count);
    lines.push(match count {
        1 => format!("It is interaction {last}."),
        _ => format!("{count} interactions since the last message, from {first} to {last}."),
    });
    let lines = lines.iter().map(|it| defanged(&line(it)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Chats make links of names and addresses. Of this they do not.
fn defanged(text: &str) -> String {
    let sent = |(before, after): (&str, &str)| format!("{before}[.]{after}");
    let mut text = text.replace("://", "[:]//");
    let mut from = 0;
    // A point within a word. One at the end of a sentence stays.
    while let Some(at) = text[from..].find('.').map(|at| from + at) {
        let is_within = text[at + 1..].starts_with(|next: char| !next.is_whitespace());
        if is_within {
            text = sent((&text[..at], &text[at + 1..]));
        }
        from = at + if is_within { 3 } else { 1 };
    }
    text
}

fn over(problem: &Problem, lasted: &str) -> String {
    match problem {
        Problem::Failing { failures: 1, .. } => {
            format!("It works again after {lasted} and 1 failure.")
        }
        Problem::Failing { failures, .. } => {
            format!("It works again after {lasted} and {failures} failures.")
        }
        _ => format!(
            "It is over after {lasted}. It was: {}",
            sentence(&problem.to_string())
        ),
    }
}

fn removed(world: &World, subject: &Subject) -> &'static str {
    let record = subject.workflow().and_then(|id| world.workflow_record(id));
    let source = record.and_then(|record| world.source(&record.source));
    let has_source = record.is_none() || source.is_some_and(|source| source.configured);
    match subject {
        Subject::Scan { .. } | Subject::Workflow { .. } if !has_source => "Its source was removed.",
        Subject::Scan { workflow, .. } if world.workflow(*workflow).is_some() => {
            "The workflow has no such scan any more."
        }
        Subject::Scan { .. } | Subject::Workflow { .. } => "Its workflow file is gone.",
        Subject::Source { .. } | Subject::Project { .. } => "The source was removed.",
        Subject::Runner { .. } => "The runner was removed.",
        Subject::Token { .. } => "The token was removed.",
        Subject::Channel { .. } => "The channel was removed.",
        Subject::Instance => "It is gone.",
    }
}

/// A scan that never succeeded has no success of which it could say when.
fn problem_text(world: &World, subject: &Subject, problem: &Problem) -> String {
    if let (Problem::Overdue { every, since }, Subject::Scan { workflow, scan }) =
        (problem, subject)
    {
        let head = world.head(&ScanKey::new(*workflow, scan));
        if head.is_none_or(|head| head.succeeded_at().is_none()) {
            let every = chrono::TimeDelta::seconds((*every).cast_signed());
            return format!(
                "it has never succeeded; it is expected every {} since {}",
                rounded(every),
                time(*since)
            );
        }
    }
    problem.to_string()
}

/// Why a scan may not have run: the other problems of the scan, its workflow and its source.
fn other_problems(world: &World, subject: &Subject, problem: &Problem) -> Vec<String> {
    let Some(workflow) = subject.workflow() else {
        return Vec::new();
    };
    let record = world.workflow_record(workflow);
    let source = record.map(|record| Subject::Source {
        source: record.source.clone(),
    });
    let subjects = [subject.clone(), Subject::Workflow { workflow }];
    let subjects: Vec<Subject> = subjects.into_iter().chain(source).collect();
    let open = subjects.iter().flat_map(|it| world.conditions_of(it));
    let others = open.filter(|open| open.problem != *problem);
    let texts = others.map(|open| {
        let since = time(open.since);
        sentence(&format!("{}, since {since}", open.problem))
    });
    texts.take(OTHER_PROBLEMS).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::condition::Condition;
    use model::{Actor, Change, ConditionId, EventId, JobId, Timestamp, WorkflowId};
    use uuid::Uuid;
    use workflow::ScanName;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_timestamp(1_790_000_000 + seconds, 0).unwrap()
    }

    fn scan() -> Subject {
        Subject::Scan {
            workflow: WorkflowId::from_uuid(Uuid::from_u128(1)),
            scan: ScanName::new("dump").unwrap(),
        }
    }

    fn event(subject: Subject, what: What) -> Event {
        Event {
            id: EventId::from_uuid(Uuid::from_u128(1)),
            at: at(7_320),
            project: None,
            subject,
            what,
        }
    }

    fn failing(failures: u64) -> Problem {
        Problem::Failing {
            job: JobId::FIRST,
            failures,
            succeeded: None,
            fine_since: None,
        }
    }

    /// The title and the text of the end of a problem.
    fn end(subject: Subject, problem: Problem, ended: Ended) -> String {
        let what = What::Closed {
            condition: ConditionId::from_uuid(Uuid::from_u128(2)),
            problem,
            since: at(0),
            reported: [].into(),
            ended,
        };
        let event = event(subject, what);
        let (title, world) = (title(&event.what, false, "a/b dump"), World::default());
        format!("{title}. {}", text(&world, &event))
    }

    #[test]
    fn an_end_says_how_long_it_took_and_what_it_was() {
        assert_eq!(
            end(scan(), failing(1), Ended::Cured),
            "Recovered: a/b dump. It works again after 2h2m and 1 failure."
        );
        assert_eq!(
            end(scan(), failing(3), Ended::Cured),
            "Recovered: a/b dump. It works again after 2h2m and 3 failures."
        );
        assert_eq!(
            end(scan(), Problem::HistoryDamaged, Ended::Cured),
            "No longer damaged: a/b dump. It is over after 2h2m. It was: Some lines of its history cannot be read; the \
             daemon's log names the file, and `everscand fsck` checks it."
        );
    }

    #[test]
    fn only_what_is_cured_works_again() {
        let acknowledged = Acknowledgement {
            by: Actor::Daemon,
            at: at(1),
            note: Some("disk ordered".to_owned()),
        };
        assert_eq!(
            end(scan(), failing(1), Ended::Acknowledged(acknowledged)),
            "Acknowledged: a/b dump. By everscand: disk ordered."
        );
        let removed = |label: &str| Ended::Removed {
            label: label.to_owned(),
        };
        assert_eq!(
            end(scan(), failing(1), removed("a/old dump")),
            "No longer watched: a/old dump. Its workflow file is gone. It was: Job \
             00000000-0000-0000-0000-000000000000 failed; there was no success yet."
        );
        let channel = Subject::Channel {
            channel: model::ChannelId::from_uuid(Uuid::from_u128(1)),
        };
        let lost = Problem::ChannelFailing {
            channel: workflow::notify::NotifyName::new("ops").unwrap(),
            reason: "404".to_owned(),
        };
        assert_eq!(
            end(channel, lost, removed("channel ops")),
            "No longer watched: channel ops. The channel was removed. It was: Messages to the channel ops do not arrive: \
             404."
        );
    }

    #[test]
    fn what_has_expired_is_not_renewed() {
        let token = Subject::Token {
            token: model::TokenId::from_uuid(Uuid::from_u128(1)),
        };
        let expires = Problem::TokenExpires { at: at(60) };
        let said = end(token, expires, Ended::Expired);
        assert!(
            said.starts_with("Expired: a/b dump. It was: The token expires at "),
            "{said}"
        );
    }

    #[test]
    fn what_is_gone_with_its_source_says_so() {
        let mut world = World::default();
        let record = serde_json::json!({
            "id": WorkflowId::from_uuid(Uuid::from_u128(1)), "project": Uuid::from_u128(2), "source": "infra",
            "name": "w", "file": "w.yaml", "status": { "name": "retired", "since": at(0) },
            "revision": { "id": Uuid::from_u128(3), "number": 1, "commit": "c" },
        });
        assert_eq!(removed(&world, &scan()), "Its workflow file is gone.");
        let record = serde_json::from_value(record).unwrap();
        world.apply(&Change::Workflow(Arc::new(record)));
        assert_eq!(removed(&world, &scan()), "Its source was removed.");
    }

    #[test]
    fn a_title_names_what_is_wrong_and_a_repeat_says_still() {
        let condition = ConditionId::from_uuid(Uuid::from_u128(2));
        let opened = |problem| What::Opened { condition, problem };
        let name = || "REGION".to_owned();
        let missing = opened(Problem::MissingVar { name: name() });
        assert_eq!(
            title(&missing, false, "project infra"),
            "Missing: var REGION of project infra"
        );
        assert_eq!(
            title(&opened(failing(2)), true, "a/b c"),
            "Still failing: a/b c"
        );
        let invalid = Problem::InvalidFile {
            file: "workflows/stale.yaml".to_owned(),
            message: "line 2: what".to_owned(),
        };
        let source = Subject::Source {
            source: "infra".parse().unwrap(),
        };
        let event = event(source, opened(invalid));
        assert_eq!(
            title(&event.what, false, "source infra"),
            "Invalid file: workflows/stale.yaml of source infra"
        );
        assert_eq!(
            text(&World::default(), &event),
            "workflows/stale.yaml is invalid: line 2: what."
        );
    }

    #[test]
    fn an_overdue_scan_says_what_else_is_wrong() {
        let mut world = World::default();
        let condition = |number, problem: &Problem| Condition {
            id: ConditionId::from_uuid(Uuid::from_u128(number)),
            project: None,
            subject: scan(),
            projects: model::Projects::All,
            problem: problem.clone(),
            since: at(60),
            acknowledged: None,
            silenced_until: None,
            reported: [].into(),
        };
        let overdue = Problem::Overdue {
            every: 120,
            since: at(0),
        };
        let suspended = Problem::Suspended {
            by: Actor::Daemon,
            text: "holidays".to_owned(),
        };
        for (number, problem) in [(2, &overdue), (3, &suspended)] {
            world.apply(&Change::Condition(Arc::new(condition(number, problem))));
        }
        let what = What::Opened {
            condition: ConditionId::from_uuid(Uuid::from_u128(2)),
            problem: overdue,
        };
        assert_eq!(
            text(&world, &event(scan(), what)),
            "It has never succeeded; it is expected every 2m since 2026-09-21 14:13:20 UTC.\n\
             Suspended by everscand: holidays, since 2026-09-21 14:14:20 UTC."
        );
    }

    #[test]
    fn an_interaction_says_what_was_planted_and_has_no_link() {
        let mut heard = Announcement {
            first: 17,
            last: 17,
            count: 1,
            kind: RequestType::Dns,
            name: "x.K3v9-a.cb.example.org\u{1b}[31m".to_owned(),
            from: "203.0.113.9".parse().unwrap(),
            planted: Planted::default(),
        };
        assert_eq!(
            interaction(&heard),
            "x[.]K3v9-a[.]cb[.]example[.]org [31m was looked up by 203[.]0[.]113[.]9.\nIt is interaction 17."
        );
        heard.kind = RequestType::Http;
        (heard.first, heard.count) = (12, 6);
        heard.planted.note = Some("see https://shop.example.org/login. There".to_owned());
        heard.planted.target = Some("shop.example.org".to_owned());
        let text = interaction(&heard);
        assert!(text.contains("Planted: see https[:]//shop[.]example[.]org/login. There\nTarget: shop[.]example[.]org\n"), "{text}");
        assert!(
            text.ends_with("6 interactions since the last message, from 12 to 17."),
            "{text}"
        );
        let what = What::Interaction {
            server: "aaaaaaaaaaaaaaaa".parse().unwrap(),
            name: workflow::notify::NotifyName::new("shop").unwrap(),
            announcement: Box::new(heard),
        };
        assert_eq!(
            title(&what, false, "project recon"),
            "Callback: shop of project recon"
        );
        let event = event(scan(), what);
        assert_eq!(
            crate::link::page(&World::default(), &event),
            "/callbacks/aaaaaaaaaaaaaaaa"
        );
    }
}
