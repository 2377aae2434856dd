//! `/v0/workflows`

use model::{
    ActiveWorkflow, Scope, Seen, Source, SourceName, WorkflowId, WorkflowRecord, WorkflowStatus,
};
use wire::{ErrorCode, Page, Workflow};

use crate::convert;
use crate::failure::Failure;
use crate::page::Window;
use crate::request::Query;
use crate::visible::Visible;

pub(crate) fn with_retired(query: &Query) -> Result<bool, Failure> {
    match query.get("state") {
        None | Some("active") => Ok(false),
        Some("all") => Ok(true),
        Some(_) => Err(Failure::invalid("state", "must be `active` or `all`")),
    }
}

pub(crate) fn list(user: &Visible, with_retired: bool, window: &Window) -> Page<Workflow> {
    user.read(|seen| {
        window.cut(
            seen.workflow_records()
                .filter(|record| with_retired || record.status == WorkflowStatus::Active),
            |record| full_name(record),
            |record| convert::workflow(seen, record),
        )
    })
}

pub(crate) fn show(user: &Visible, named: &str) -> Result<Workflow, Failure> {
    user.read(|seen| find(seen, named).map(|record| convert::workflow(seen, record)))
}

/// Finds a workflow with a readable revision: by id, by `source/name`, or by a unique name.
pub(super) fn find_readable(seen: Seen<'_>, text: &str) -> Result<ActiveWorkflow, Failure> {
    Ok(seen.readable_workflow(find(seen, text)?.id)?)
}

/// A hint with the scans of a workflow, for a caller that named an unknown scan.
pub(super) fn scans_of(workflow: &ActiveWorkflow) -> String {
    let scans = workflow.revision.definition.scans();
    let known: Vec<&str> = scans.map(|scan| scan.name.as_str()).collect();
    format!("the workflow has: {}", known.join(", "))
}

/// Finds the record of a workflow, even if its revision could not be read.
pub(crate) fn find<'w>(seen: Seen<'w>, text: &str) -> Result<&'w WorkflowRecord, Failure> {
    let not_found = || {
        let failure = Failure::not_found("workflow", text)
            .coded(ErrorCode::WorkflowNotFound)
            .hint("`everscan workflow list` shows the workflows");
        let Some(source) = invalid_file(seen, text) else {
            return failure;
        };
        let hint =
            format!("its file is invalid: `everscan source show {source}` says what is wrong");
        failure.names(Scope::ProjectRead, hint)
    };
    if let Ok(id) = text.parse::<WorkflowId>() {
        let found = seen.workflow_record(id).map(|record| &**record);
        return found.ok_or_else(not_found);
    }
    let named: Vec<&WorkflowRecord> = seen
        .workflow_records()
        .map(|record| &**record)
        .filter(|record| {
            let full = text
                .strip_prefix(record.source.as_str())
                .and_then(|rest| rest.strip_prefix('/'));
            record.name == text || full == Some(record.name.as_str())
        })
        .collect();
    let mut active = named
        .iter()
        .filter(|record| record.status == WorkflowStatus::Active);
    match (active.next(), active.next(), named.as_slice()) {
        (Some(only), None, _) | (None, None, [only]) => Ok(only),
        (None, None, []) => Err(not_found()),
        (Some(_), Some(_), _) | (None, _, _) => {
            let full: Vec<String> = named.iter().map(|record| full_name(record)).collect();
            Err(Failure::new(
                ErrorCode::AmbiguousName,
                format!("several workflows are named `{text}`"),
            )
            .hint("use its full name: SOURCE/NAME")
            .names(
                Scope::WorkflowRead,
                format!("use one of the full names: {}", full.join(", ")),
            ))
        }
    }
}

/// The source in which the file of this workflow is invalid. `text` is its id, `source/name` or name.
fn invalid_file<'w>(seen: Seen<'w>, text: &str) -> Option<&'w SourceName> {
    let id: Option<WorkflowId> = text.parse().ok();
    let is_it = |source: &Source, stale: WorkflowId| {
        let named = |name: &str| stale == WorkflowId::derive(&source.name, name);
        let rest = text.strip_prefix(source.name.as_str());
        id == Some(stale)
            || named(text)
            || rest
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(named)
    };
    let found = seen
        .sources()
        .filter(|source| source.configured)
        .find(|source| {
            let mut files = source.stale_files.iter();
            files.any(|stale| is_it(source, stale.workflow))
        });
    found.map(|source| &source.name)
}

pub(crate) fn full_name(record: &WorkflowRecord) -> String {
    format!("{}/{}", record.source, record.name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, LazyLock};

    use model::{Change, ProjectId, RevisionId, RevisionRef, Rights, StaleFile, Timestamp, World};
    use wire::Problem;

    use super::*;

    fn all(world: &World) -> Seen<'_> {
        static ADMIN: LazyLock<Rights> = LazyLock::new(Rights::admin);
        world.seen_by(&ADMIN)
    }

    /// The world after a start in which a revision of the workflow was unreadable.
    fn world() -> World {
        let source: SourceName = "main".parse().unwrap();
        let id = WorkflowId::derive(&source, "pipeline");
        let record = WorkflowRecord {
            id,
            project: ProjectId::of_source(&source),
            source,
            name: "pipeline".to_owned(),
            file: "workflows/pipeline.yaml".to_owned(),
            status: WorkflowStatus::Active,
            revision: RevisionRef {
                id: RevisionId::derive(id, 3),
                number: 3,
                commit: "c".repeat(40),
            },
            armed: BTreeMap::new(),
            held: None,
        };
        let mut world = World::default();
        world.apply(&Change::Workflow(Arc::new(record)));
        world
    }

    #[test]
    fn a_workflow_whose_revision_cannot_be_read_is_shown() {
        let world = world();
        let shown = convert::workflow(all(&world), find(all(&world), "main/pipeline").unwrap());
        assert_eq!(
            (shown.state.as_str(), shown.revision.number),
            ("unreadable", 3)
        );
        assert_eq!((shown.revision.sha256, shown.scans), (None, Vec::new()));
    }

    /// The answer to a request that needs the workflow's revision.
    fn refusal(world: &World) -> Problem {
        let (problem, _) = find_readable(all(world), "pipeline")
            .unwrap_err()
            .problem("its id");
        assert_eq!(
            problem.detail,
            "revision 3 of `main/pipeline` cannot be read"
        );
        problem
    }

    fn hint(world: &World) -> String {
        refusal(world).hint.unwrap()
    }

    fn record(world: &World) -> WorkflowRecord {
        WorkflowRecord::clone(find(all(world), "pipeline").unwrap())
    }

    /// The workflow's source, with or without an invalid file of the workflow.
    fn source(world: &World, is_valid: bool) -> Source {
        let record = record(world);
        let stale = StaleFile {
            file: record.file,
            workflow: record.id,
            commit: "d".repeat(40),
            since: Timestamp::UNIX_EPOCH,
            diagnostics: Vec::new(),
            excerpt: None,
        };
        Source {
            name: record.source,
            project: record.project,
            url: "/srv/main".to_owned(),
            reference: None,
            folder: "workflows".to_owned(),
            interval_seconds: 60,
            configured: true,
            tip: None,
            applied_commit: None,
            removal: None,
            default_reference: None,
            conditions: Vec::new(),
            stale_files: Vec::from_iter((!is_valid).then_some(stale)),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn requests_for_a_workflow_with_an_unreadable_revision_are_refused() {
        let problem = refusal(&world());
        assert_eq!(
            (problem.status, problem.code),
            (409, ErrorCode::WorkflowUnreadable)
        );
        assert_eq!(
            problem.hint.unwrap(),
            "the daemon's log names the file; restore it from a backup and restart the daemon"
        );
    }

    #[test]
    fn the_refusal_names_the_invalid_file_of_an_unreadable_workflow() {
        let mut world = world();
        let invalid = source(&world, false);
        world.apply(&Change::Source(Arc::new(invalid)));
        let shown = hint(&world);
        assert!(shown.starts_with("`everscan source show main`"), "{shown}");
    }

    #[test]
    fn the_refusal_for_an_unreadable_retired_workflow_says_how_to_bring_it_back() {
        let mut world = world();
        let retired = WorkflowRecord {
            status: WorkflowStatus::Retired {
                since: Timestamp::UNIX_EPOCH,
            },
            ..record(&world)
        };
        let source = source(&world, true);
        let dropped = Source {
            configured: false,
            ..source.clone()
        };
        world.apply(&Change::Workflow(Arc::new(retired)));
        world.apply(&Change::Source(Arc::new(source)));
        let gone = hint(&world);
        assert!(gone.starts_with("push its file again"), "{gone}");
        world.apply(&Change::Source(Arc::new(dropped)));
        let unnamed = hint(&world);
        assert!(unnamed.starts_with("name its source"), "{unnamed}");
        for hint in [gone, unnamed] {
            assert!(hint.ends_with("restart the daemon"), "{hint}");
        }
    }
}
