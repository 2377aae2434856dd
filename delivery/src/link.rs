//! The pages that links of messages show.

use model::World;
use model::condition::{Problem, Subject};
use model::event::{Event, What};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const IN_A_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// The page of what the event is about, if it is not about a job.
pub(crate) fn page(world: &World, event: &Event) -> String {
    if let What::Interaction { server, .. } = &event.what {
        return format!("/callbacks/{server}");
    }
    match &event.subject {
        Subject::Scan { .. } | Subject::Workflow { .. } => match world.names_of(&event.subject) {
            (Some(workflow), Some(scan)) => {
                format!(
                    "/workflows/{}/-/scans/{}",
                    encoded(&workflow),
                    encoded(scan)
                )
            }
            (Some(workflow), None) => workflow_page(&workflow),
            (None, _) => "/workflows".to_owned(),
        },
        Subject::Source { source } => invalid_workflow(world, event).map_or_else(
            || format!("/sources/{}", encoded(source.as_str())),
            |it| workflow_page(&it),
        ),
        Subject::Project { project } => match world.source_of(*project) {
            Some(source) => format!("/projects/{}", encoded(source.name.as_str())),
            None => "/projects".to_owned(),
        },
        Subject::Runner { .. } => "/runners".to_owned(),
        Subject::Token { .. } => "/tokens".to_owned(),
        Subject::Channel { .. } => "/notifications".to_owned(),
        Subject::Instance => "/".to_owned(),
    }
}

/// The workflow of an invalid file. A new file has none.
fn invalid_workflow(world: &World, event: &Event) -> Option<String> {
    let (What::Opened { problem, .. } | What::Closed { problem, .. }) = &event.what else {
        return None;
    };
    let (Problem::InvalidFile { file, .. }, Subject::Source { source }) = (problem, &event.subject)
    else {
        return None;
    };
    let mut stale = world.source(source)?.stale_files.iter();
    let workflow = stale.find(|stale| stale.file == *file)?.workflow;
    world.names_of(&Subject::Workflow { workflow }).0
}

/// A name with a part `-` is ended by one, because the last one in an address ends the name.
fn workflow_page(name: &str) -> String {
    let address = format!("/workflows/{}", encoded(name));
    match address.contains("/-/") || address.ends_with("/-") {
        true => format!("{address}/-/"),
        false => address,
    }
}

/// The parts of a name, each as a segment. Dots alone would be a relative path.
fn encoded(name: &str) -> String {
    let segments = name.split('/').map(|part| {
        if !part.is_empty() && part.bytes().all(|byte| byte == b'.') {
            return "%2E".repeat(part.len());
        }
        utf8_percent_encode(part, IN_A_SEGMENT).to_string()
    });
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use model::{EventId, ProjectId, Timestamp};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn every_subject_has_a_page() {
        let page = |subject| {
            let event = Event {
                id: EventId::from_uuid(Uuid::from_u128(1)),
                at: Timestamp::UNIX_EPOCH,
                project: None,
                subject,
                what: What::WorkflowRemoved,
            };
            page(&World::default(), &event)
        };
        let source = "infra".parse().unwrap();
        let project = ProjectId::of_source(&source);
        let id = Uuid::from_u128(2);
        for (subject, expected) in [
            (Subject::Source { source }, "/sources/infra"),
            (Subject::Project { project }, "/projects"),
            (
                Subject::Runner {
                    runner: model::RunnerId::from_uuid(id),
                },
                "/runners",
            ),
            (
                Subject::Channel {
                    channel: model::ChannelId::from_uuid(id),
                },
                "/notifications",
            ),
            (Subject::Instance, "/"),
        ] {
            assert_eq!(page(subject), expected);
        }
        assert_eq!(workflow_page("s/a b/.."), "/workflows/s/a%20b/%2E%2E");
        assert_eq!(workflow_page("s/-"), "/workflows/s/-/-/");
    }
}
