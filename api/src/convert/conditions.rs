//! Converts open conditions.

use model::condition::{Condition, Subject};
use model::{Seen, Timestamp};
use wire::{Acknowledgement, ConditionSubject, OpenCondition};

use crate::convert::workflow_ref;

pub(crate) fn condition(seen: Seen<'_>, open: &Condition, now: Timestamp) -> OpenCondition {
    let mut shown = OpenCondition {
        id: open.id.uuid(),
        code: open.problem.code().to_owned(),
        message: open.problem.to_string(),
        since: open.since,
        project: open
            .project
            .and_then(|project| Some(seen.source_of(project)?.name.to_string())),
        workflow: None,
        scan: None,
        source: None,
        runner: None,
        token: None,
        job: open.problem.job().map(model::JobId::uuid),
        acknowledged: open.acknowledged.as_ref().map(|it| Acknowledgement {
            by: it.by.to_string(),
            at: it.at,
            note: it.note.clone(),
        }),
        silenced_until: open.silenced_until.filter(|until| *until > now),
    };
    let record = |id| Some(workflow_ref(&seen.workflow_record(id)?.reference()));
    match &open.subject {
        Subject::Scan { workflow, scan } => {
            shown.workflow = record(*workflow);
            shown.scan = Some(scan.to_string());
        }
        Subject::Workflow { workflow } => shown.workflow = record(*workflow),
        Subject::Source { source } => shown.source = Some(source.to_string()),
        Subject::Runner { runner } => {
            shown.runner = seen.runner(*runner).map(|runner| ConditionSubject {
                id: runner.id.uuid(),
                name: runner.name.clone(),
            });
        }
        Subject::Token { token } => {
            let found = seen.token(*token);
            shown.token = found.map(|token| ConditionSubject {
                id: token.id.uuid(),
                name: token.name.clone(),
            });
        }
        Subject::Project { .. } | Subject::Channel { .. } | Subject::Instance => {}
    }
    shown
}
