//! What a message says about one event.

use model::channel::Channel;
use model::condition::{Condition, Problem, Subject};
use model::event::{Event, What};
use model::outbox::Suppressed;
use model::{ChannelId, ConditionId, JobId, ScanKey, Timestamp, World};
use reconciler::Handle;
use serde_json::{Value, json};
use workflow::notify::{Content, EventName, Rule};

use crate::Thread;
use crate::compose::{TEXT_LIMIT, Wanted};
use crate::job_facts::{JobFacts, rounded, sentence};
use crate::new_lines::NewLines;
use crate::sender::Settings;
use crate::text::{cut, line};

/// An event with its texts.
pub(crate) struct Item {
    pub(crate) event: Event,
    /// The job that its link shows.
    pub(crate) job: Option<JobId>,
    /// Why it is not sent.
    pub(crate) suppressed: Option<Suppressed>,
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) link: Option<String>,
    pub(crate) thread: Option<Thread>,
    /// Its members in templates, and for programs.
    pub(crate) facts: Value,
}

/// What the world says about an event.
struct Known {
    label: String,
    project: Option<String>,
    workflow: Option<String>,
    scan: Option<String>,
    runner: Option<String>,
    job: Option<JobId>,
    since: Timestamp,
    thread: Option<Thread>,
}

impl Item {
    pub(crate) async fn of(
        handle: &Handle,
        settings: &Settings,
        channel: &Channel,
        wanted: Wanted,
    ) -> Self {
        let Wanted {
            event,
            rule,
            suppressed,
        } = wanted;
        let known = handle
            .state()
            .read(|world| Known::of(world, channel, &event));
        let job = match known.job {
            Some(job) => JobFacts::of(handle, job).await,
            None => None,
        };
        let (title, text) = (
            format!("{}: {}", word(&event.what), known.label),
            text(&event),
        );
        let mut said = Said {
            title,
            text,
            lines: Vec::new(),
            more: 0,
            suppressed,
        };
        if let Some(job) = &job {
            said.add(handle, job, &event, &known, rule.as_ref()).await;
            said.title = job.masked(&said.title);
            said.text = job.masked(&said.text);
            said.lines = job.masked_lines(&said.lines);
        }
        let link = settings.url.as_ref().map(|url| match known.job {
            Some(job) => format!("{url}/jobs/{job}"),
            None => format!("{url}/"),
        });
        let text = said.whole();
        let facts = known.facts(&event, &said, &text, link.as_deref());
        let text = match &rule {
            Some(rule) => rendered(rule, &facts, text),
            None => text,
        };
        Self {
            job: known.job,
            suppressed: said.suppressed,
            title: said.title,
            text,
            link,
            thread: known.thread,
            facts,
            event,
        }
    }
}

/// The built-in text of an event.
struct Said {
    title: String,
    text: String,
    /// Lines of a log or of an artifact, below the text.
    lines: Vec<String>,
    /// How many other lines there are.
    more: usize,
    suppressed: Option<Suppressed>,
}

impl Said {
    /// Adds what the records of the job say.
    async fn add(
        &mut self,
        handle: &Handle,
        job: &JobFacts,
        event: &Event,
        known: &Known,
        rule: Option<&Rule>,
    ) {
        let state = handle.state();
        match &event.what {
            What::Opened { problem, .. } | What::FailedAgain { problem, .. } => {
                let Problem::Failing {
                    failures,
                    succeeded,
                    fine_since,
                    ..
                } = problem
                else {
                    return;
                };
                let fine = fine_since.map(|since| known.since - since);
                let cause = job.cause(state).await;
                self.text = job.failure(*failures, succeeded.is_some(), fine, &cause);
                self.lines = job.log(state).await;
                if let Some(step) = job.failed_step().filter(|_| !self.lines.is_empty()) {
                    let number = u64::from(step.index) + 1;
                    let name = step.name.iter().map(|name| format!(" ({name})"));
                    let name: String = name.collect();
                    let heading = format!("\n\nThe last lines of step {number}{name}:");
                    self.text.push_str(&heading);
                }
            }
            What::Artifact {
                artifact, previous, ..
            } => {
                let content = rule.map(|rule| rule.content).unwrap_or_default();
                let needs_lines = rule.is_some_and(|rule| {
                    rule.events.contains(&EventName::NewLines)
                        && !rule.events.contains(&EventName::Artifact)
                });
                if content == Content::None && !needs_lines {
                    return;
                }
                match job.new_lines(state, artifact, *previous).await {
                    Ok(found) if needs_lines && found.count == 0 => {
                        self.suppressed = Some(Suppressed::NoNewLines);
                    }
                    Ok(found) => self.say_new_lines(artifact, content, found),
                    Err(why) => {
                        self.text = format!("The new lines of {artifact} are not known: {why}.");
                    }
                }
            }
            What::Closed { .. } | What::SlotMissed | What::WorkflowRemoved => {}
        }
    }

    fn say_new_lines(&mut self, artifact: &str, content: Content, found: NewLines) {
        if content == Content::None {
            return;
        }
        let count = match found.count {
            0 => "no new lines".to_owned(),
            1 => "1 new line".to_owned(),
            count => format!("{count} new lines"),
        };
        let has_lines = content == Content::Lines && found.count > 0;
        let end = if has_lines { ':' } else { '.' };
        self.text = format!("{artifact} has {count}{end}");
        if has_lines {
            self.more = found.count - found.first.len();
            self.lines = found.first;
        }
    }

    fn whole(&self) -> String {
        let mut text = self.text.clone();
        for line in &self.lines {
            text.push('\n');
            text.push_str(line);
        }
        if self.more > 0 {
            text.push_str(&format!("\nand {} more", self.more));
        }
        text
    }
}

impl Known {
    fn of(world: &World, channel: &Channel, event: &Event) -> Self {
        let (workflow, scan) = world.names_of(&event.subject);
        let condition = event.what.condition();
        let open = condition.and_then(|id| world.condition(id));
        let mut job = event.what.job();
        let mut since = open.map_or(event.at, |open| open.since);
        if let What::Closed {
            problem: Problem::Failing { .. },
            since: begin,
            ..
        } = &event.what
            && let Subject::Scan { workflow, scan } = &event.subject
        {
            let head = world.head(&ScanKey::new(*workflow, scan));
            let success = head.and_then(|head| head.succeeded);
            let success = success.filter(|success| success.at >= *begin);
            job = success.map(|success| success.job).or(job);
        }
        if let What::Closed { since: begin, .. } = &event.what {
            since = *begin;
        }
        Self {
            label: world.label_of(&event.subject),
            project: event
                .project
                .and_then(|project| Some(world.source_of(project)?.name.to_string())),
            workflow,
            scan: scan.map(str::to_owned),
            runner: match &event.subject {
                Subject::Runner { runner } => world.runner(*runner).map(|it| it.name.clone()),
                _ => None,
            },
            job,
            since,
            thread: condition.map(|id| thread(id, open.map(|open| &**open), channel.id)),
        }
    }

    fn facts(&self, event: &Event, said: &Said, text: &str, link: Option<&str>) -> Value {
        json!({
            "id": event.id,
            "name": event.what.name().name(),
            "state": match &event.what {
                What::Opened { .. } | What::FailedAgain { .. } => Some("opened"),
                What::Closed { .. } => Some("closed"),
                What::SlotMissed | What::WorkflowRemoved | What::Artifact { .. } => None,
            },
            "project": self.project,
            "workflow": self.workflow,
            "scan": self.scan,
            "runner": self.runner,
            "job": self.job,
            "artifact": match &event.what {
                What::Artifact { artifact, .. } => Some(artifact),
                _ => None,
            },
            "since": event.what.condition().map(|_| self.since),
            "at": event.at,
            "title": said.title,
            "text": text,
            "lines": said.lines.join("\n"),
            "link": link,
        })
    }
}

/// The text by the template of the rule, or the built-in text.
fn rendered(rule: &Rule, facts: &Value, text: String) -> String {
    match rule.render(facts) {
        Some(Ok(rendered)) => rendered,
        Some(Err(error)) => {
            let text = cut(&text, TEXT_LIMIT / 2, char::len_utf8);
            let error = cut(&line(&error), TEXT_LIMIT / 4, char::len_utf8);
            let name = &rule.name;
            format!("{text}\n\n(The template of the rule {name} failed: {error})")
        }
        None => text,
    }
}

/// Mails about one condition are one conversation. What is sent again is an answer, since two mails must not have one id.
fn thread(id: ConditionId, open: Option<&Condition>, channel: ChannelId) -> Thread {
    Thread {
        first: id.uuid(),
        is_first: open.is_some_and(|open| !open.reported.contains(&channel)),
    }
}

/// The text of an event, without what only the records of its job say.
fn text(event: &Event) -> String {
    match &event.what {
        What::Opened { problem, .. } | What::FailedAgain { problem, .. } => {
            sentence(&problem.to_string())
        }
        What::Closed { problem, since, .. } => {
            let lasted = rounded(event.at - *since);
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
        What::SlotMissed => "A slot of its schedule passed without a job.".to_owned(),
        What::WorkflowRemoved => "The workflow file is gone.".to_owned(),
        What::Artifact { artifact, .. } => format!("The job has stored the artifact {artifact}."),
    }
}

/// The first word of a title.
const fn word(what: &What) -> &'static str {
    if let What::Closed { problem, .. } = what {
        return match problem {
            Problem::Failing { .. } => "Recovered",
            _ => "Over",
        };
    }
    match what.name() {
        EventName::Failing => "Failed",
        EventName::Overdue => "Overdue",
        EventName::Late => "Late",
        EventName::TooShort => "Too short",
        EventName::TooLong => "Too long",
        EventName::Circle => "Circle",
        EventName::Stuck => "Waiting",
        EventName::HistoryDamaged => "Damaged",
        EventName::Suspended => "Suspended",
        EventName::SourceFailing => "Source failing",
        EventName::InvalidFile => "Invalid file",
        EventName::RemovalHeld => "Held",
        EventName::MissingVar | EventName::MissingSecret | EventName::MissingChannel => "Missing",
        EventName::RunnerLost => "Runner lost",
        EventName::TokenExpires | EventName::CertificateExpires => "Expires soon",
        EventName::DiskLow => "Disk nearly full",
        EventName::BackupOld => "No new backup",
        EventName::ChannelFailing => "Channel failing",
        EventName::SlotMissed => "Not run",
        EventName::WorkflowRemoved => "Removed",
        EventName::Artifact | EventName::NewLines => "New result",
    }
}

#[cfg(test)]
mod tests {
    use model::EventId;
    use model::condition::Ended;
    use uuid::Uuid;
    use workflow::notify::{EVENT_MEMBERS, NotifyName};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_timestamp(1_790_000_000 + seconds, 0).unwrap()
    }

    fn event(what: What) -> Event {
        Event {
            id: EventId::from_uuid(Uuid::from_u128(1)),
            at: at(7_320),
            project: None,
            subject: Subject::Instance,
            what,
        }
    }

    fn condition() -> ConditionId {
        ConditionId::from_uuid(Uuid::from_u128(2))
    }

    fn closed(problem: Problem) -> What {
        What::Closed {
            condition: condition(),
            problem,
            since: at(0),
            reported: [].into(),
            ended: Ended::Cured,
        }
    }

    #[test]
    fn a_recovery_says_how_long_it_took() {
        let failing = |failures| Problem::Failing {
            job: JobId::FIRST,
            failures,
            succeeded: None,
            fine_since: None,
        };
        let over = |problem| {
            let event = event(closed(problem));
            format!("{}: {}", word(&event.what), text(&event))
        };
        assert_eq!(
            over(failing(1)),
            "Recovered: It works again after 2h2m and 1 failure."
        );
        assert_eq!(
            over(failing(3)),
            "Recovered: It works again after 2h2m and 3 failures."
        );
        assert_eq!(
            over(Problem::RunnerLost),
            "Over: It is over after 2h2m. It was: The runner is not connected."
        );
    }

    #[test]
    fn the_end_of_a_condition_answers_the_mail_about_its_begin() {
        let channel = ChannelId::from_uuid(Uuid::from_u128(3));
        let mut open = Condition {
            id: condition(),
            project: None,
            subject: Subject::Instance,
            problem: Problem::DiskLow,
            since: at(0),
            acknowledged: None,
            silenced_until: None,
            reported: [].into(),
        };
        let begin = thread(open.id, Some(&open), channel);
        open.reported.insert(channel);
        let repeated = thread(open.id, Some(&open), channel);
        let end = thread(open.id, None, channel);
        assert_eq!(
            [begin, repeated, end].map(|thread| (thread.first, thread.is_first)),
            [true, false, false].map(|is_first| (condition().uuid(), is_first))
        );
    }

    #[test]
    fn a_template_gets_all_members_and_a_failing_one_says_so() {
        let known = Known {
            label: "recon/net hosts".to_owned(),
            project: None,
            workflow: Some("recon/net".to_owned()),
            scan: Some("hosts".to_owned()),
            runner: None,
            job: Some(JobId::FIRST),
            since: at(0),
            thread: None,
        };
        let mut said = Said {
            title: "New result: recon/net hosts".to_owned(),
            text: String::new(),
            lines: Vec::new(),
            more: 0,
            suppressed: None,
        };
        let found = NewLines {
            count: 3,
            first: vec!["a".to_owned(), "b".to_owned()],
        };
        said.say_new_lines("hosts", Content::Lines, found);
        let text = said.whole();
        assert_eq!(text, "hosts has 3 new lines:\na\nb\nand 1 more");
        let artifact = event(What::Artifact {
            job: JobId::FIRST,
            artifact: "hosts".to_owned(),
            previous: None,
        });
        let facts = known.facts(&artifact, &said, &text, None);
        let members: Vec<&String> = facts.as_object().unwrap().keys().collect();
        assert_eq!(members, EVENT_MEMBERS);
        let rule = |template: &str| Rule {
            template: Some(template.to_owned()),
            ..Rule::of(NotifyName::new("ops").unwrap())
        };
        let good = rule("${{ event.name }} of ${{ event.scan }}: ${{ event.lines }}");
        assert_eq!(
            rendered(&good, &facts, text.clone()),
            "artifact of hosts: a\nb"
        );
        let failing = rendered(&rule("${{ int(event.scan) }}"), &facts, text.clone());
        let note = format!("{text}\n\n(The template of the rule ops failed: ");
        assert!(failing.starts_with(&note), "{failing}");
        assert_eq!(
            rendered(&Rule::of(rule("").channel), &facts, text.clone()),
            text
        );
    }
}
