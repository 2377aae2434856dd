//! What a message says about one event.

use model::channel::Channel;
use model::condition::{Condition, Ended, Problem, Subject};
use model::event::{Event, What};
use model::outbox::Suppressed;
use model::{ChannelId, ConditionId, JobId, ScanKey, Timestamp, World};
use reconciler::Handle;
use serde_json::{Value, json};
use workflow::notify::{Content, EventName, Rule};

use crate::Thread;
use crate::compose::{TEXT_LIMIT, Wanted};
use crate::job_facts::{JobFacts, rounded};
use crate::new_lines::NewLines;
use crate::sender::Settings;
use crate::text::{cut, line};
use crate::{link, words};

/// An event with its texts.
pub(crate) struct Item {
    /// Its place among the events of the message.
    pub(crate) place: usize,
    /// The newest event of its condition.
    pub(crate) is_newest: bool,
    pub(crate) event: Event,
    /// The job that its link shows.
    pub(crate) job: Option<JobId>,
    /// Why it is not sent.
    pub(crate) suppressed: Option<Suppressed>,
    pub(crate) title: String,
    pub(crate) text: String,
    /// The text is not by a template.
    pub(crate) is_built_in: bool,
    pub(crate) is_repeat: bool,
    pub(crate) link: Option<String>,
    pub(crate) thread: Option<Thread>,
    /// Its members in templates, and for programs.
    pub(crate) facts: Value,
}

/// What the world says about an event.
struct Known {
    title: String,
    text: String,
    /// The path of the page that its link shows.
    page: String,
    project: Option<String>,
    workflow: Option<String>,
    scan: Option<String>,
    runner: Option<String>,
    job: Option<JobId>,
    since: Timestamp,
    is_repeat: bool,
    thread: Option<Thread>,
}

impl Item {
    pub(crate) async fn of(
        handle: &Handle,
        settings: &Settings,
        channel: &Channel,
        wanted: Wanted,
        with_records: bool,
    ) -> Self {
        let Wanted {
            place,
            is_newest,
            event,
            rule,
            is_repeat,
            suppressed,
        } = wanted;
        let known = handle
            .state()
            .read(|world| Known::of(world, channel, &event, is_repeat));
        let job = match known.job {
            Some(job) => JobFacts::of(handle, job).await,
            None => None,
        };
        let mut said = Said {
            title: known.title.clone(),
            text: known.text.clone(),
            lines: Vec::new(),
            more: 0,
            suppressed,
        };
        if let Some(job) = &job {
            if with_records {
                said.add(handle, job, &event, &known, rule.as_ref()).await;
            }
            said.title = job.masked(&said.title);
            said.text = job.masked(&said.text);
            said.lines = job.masked_lines(&said.lines);
        }
        if is_repeat {
            said.text = match &event.what {
                What::Opened {
                    problem: Problem::Failing { failures, .. },
                    ..
                } => {
                    let lasted = rounded(handle.now() - known.since);
                    format!("For {lasted}, {failures} failures.\n{}", said.text)
                }
                _ => format!(
                    "For {}.\n{}",
                    rounded(handle.now() - known.since),
                    said.text
                ),
            };
        }
        let url = settings.url.as_ref();
        let link = url.map(|url| format!("{url}{}", known.page));
        let text = said.whole();
        let facts = known.facts(&event, &said, &text, link.as_deref());
        let template = rule.as_ref().filter(|rule| rule.template.is_some());
        let is_built_in = template.is_none();
        let text = match template {
            Some(rule) => rendered(rule, &facts, text),
            None => text,
        };
        Self {
            place,
            is_newest,
            is_built_in,
            is_repeat,
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
                // A repeat has said how many already.
                let failures = if known.is_repeat { 1 } else { *failures };
                self.text = job.failure(failures, succeeded.is_some(), fine, &cause);
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
                let changed = state.read(|world| job.changed_secret(world));
                match job.new_lines(state, artifact, *previous).await {
                    Ok(found) if needs_lines && found.count == 0 => {
                        self.suppressed = Some(Suppressed::NoNewLines);
                    }
                    Ok(found) => match changed.filter(|_| content == Content::Lines) {
                        Some(secret) if found.count > 0 => {
                            self.say_new_lines(artifact, Content::Summary, found);
                            self.text.push_str(&format!(
                                "\nThey are not shown: the secret {secret} was changed or deleted after the job had \
                                 it, so they cannot be searched for it."
                            ));
                        }
                        _ => self.say_new_lines(artifact, content, found),
                    },
                    Err(why) => {
                        self.text = format!("The new lines of {artifact} are not known: {why}.");
                    }
                }
            }
            What::Closed { .. }
            | What::SlotMissed
            | What::WorkflowRemoved
            | What::Interaction { .. } => {}
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
    fn of(world: &World, channel: &Channel, event: &Event, is_repeat: bool) -> Self {
        let (workflow, scan) = world.names_of(&event.subject);
        let condition = event.what.condition();
        let open = condition.and_then(|id| world.condition(id));
        let mut job = event.what.job();
        let mut since = open.map_or(event.at, |open| open.since);
        if let What::Closed {
            problem: Problem::Failing { .. },
            since: begin,
            ended: Ended::Cured,
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
            title: words::title(&event.what, is_repeat, &world.label_of(&event.subject)),
            text: words::text(world, event),
            page: job.map_or_else(|| link::page(world, event), |job| format!("/jobs/{job}")),
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
            is_repeat,
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
                What::SlotMissed
                | What::WorkflowRemoved
                | What::Artifact { .. }
                | What::Interaction { .. } => None,
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

#[cfg(test)]
mod tests {
    use model::EventId;
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

    #[test]
    fn the_end_of_a_condition_answers_the_mail_about_its_begin() {
        let channel = ChannelId::from_uuid(Uuid::from_u128(3));
        let mut open = Condition {
            id: condition(),
            project: None,
            subject: Subject::Instance,
            projects: model::Projects::All,
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
            title: String::new(),
            text: String::new(),
            page: String::new(),
            project: None,
            workflow: Some("recon/net".to_owned()),
            scan: Some("hosts".to_owned()),
            runner: None,
            job: Some(JobId::FIRST),
            since: at(0),
            is_repeat: false,
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
