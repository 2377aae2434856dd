//! Which parts of pages an event concerns.

use std::collections::BTreeSet;

use bytes::Bytes;
use model::Job;
use ui::topics;

use super::event::{About, Event};

/// The event of the stream of pages for one commit.
pub(super) fn text<'e, 'c: 'e>(events: impl Iterator<Item = &'e Event<'c>>) -> Option<Bytes> {
    let topics: BTreeSet<String> = events.flat_map(of).collect();
    if topics.is_empty() {
        return None;
    }
    // Our own texts are always JSON.
    let data = serde_json::to_string(&topics).unwrap_or_default();
    Some(Bytes::from(format!("event: changed\ndata: {data}\n\n")))
}

fn of(event: &Event<'_>) -> Vec<String> {
    match &event.about {
        About::Job(job, _) => vec![topics::job(job.id.uuid()), scan(job)],
        About::Steps(job) => vec![topics::job(job.id.uuid())],
        About::Workflow(record) => vec![topics::workflow(record.id.uuid())],
        About::Suspension(suspension) => vec![topics::workflow(suspension.workflow.id.uuid())],
        About::Source(source) => vec![topics::source(source.name.as_str())],
        About::Runner(runner) => vec![topics::runner(runner.id.uuid())],
        About::RunnerRemoved(id) => vec![topics::runner(id.uuid())],
    }
}

fn scan(job: &Job) -> String {
    topics::scan(job.workflow.id.uuid(), job.scan.as_str())
}
