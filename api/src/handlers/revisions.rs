//! `/v0/workflows/{workflow}/revisions`

use chrono::{DateTime, FixedOffset};
use model::{RevisionRecord, RevisionRef, Timestamp, WorkflowRef};
use state::{ReadError, StoredRevision};
use wire::{ErrorCode, Page, RevisionDiff, RevisionText, SlotDifference};
use workflow::{Diagnostic, Difference, Scan, Triggers, Workflow};

use super::{validate, workflows};
use crate::convert;
use crate::failure::{Failure, RESTORE};
use crate::request::Query;
use crate::visible::{Shown, Visible};

const NEWEST: &str = "newest";
/// How many of the next slots of a schedule a comparison shows.
const COMPARED_SLOTS: usize = 5;

pub(crate) struct RevisionsQuery {
    pub(super) before: Option<u64>,
    pub(crate) limit: usize,
}

impl RevisionsQuery {
    pub(crate) fn of(query: &Query) -> Result<Self, Failure> {
        Ok(Self {
            limit: query.limit()?,
            before: query.number("cursor")?,
        })
    }

    pub(crate) const fn first(limit: usize) -> Self {
        let before = None;
        Self { before, limit }
    }
}

pub(crate) async fn list(
    user: &Visible,
    (workflow, known): (Shown<WorkflowRef>, Vec<RevisionRef>),
    query: &RevisionsQuery,
) -> Result<Page<wire::Revision>, Failure> {
    let mut rest = known.into_iter().filter(|revision| {
        let before = query.before;
        before.is_none_or(|before| revision.number < before)
    });
    let page: Vec<RevisionRef> = rest.by_ref().take(query.limit).collect();
    let has_more = rest.next().is_some();
    let records = user.revision_records(&workflow, &page).await?;
    let items = page.iter().zip(&records);
    let items = items.map(|(reference, record)| revision(reference, record.as_ref()));
    Ok(Page {
        items: items.collect(),
        next_cursor: page
            .last()
            .filter(|_| has_more)
            .map(|last| last.number.to_string()),
        damaged: Vec::new(),
    })
}

/// A revision with its text and all its problems.
pub(crate) async fn show(
    user: &Visible,
    named: &str,
    number: &str,
) -> Result<RevisionText, Failure> {
    let (workflow, known) = all(user, named).await?;
    let at = find(&known, number)?;
    let StoredRevision { record, text } = read(user, &workflow, &known, at).await?;
    let checked = validate::check(record.file.clone(), text.clone()).await?;
    let (valid, scans, diagnostics) = validate::verdict(&checked);
    Ok(RevisionText {
        revision: revision(&record.reference, Some(&record)),
        file: record.file,
        text,
        valid,
        scans,
        diagnostics,
    })
}

pub(crate) async fn definition(
    user: &Visible,
    named: &str,
    number: &str,
) -> Result<Workflow, Failure> {
    let (workflow, known) = all(user, named).await?;
    let at = find(&known, number)?;
    Ok(defined(user, &workflow, &known, at).await?.definition)
}

/// Compares a revision with `from`, or with the previous revision if `from` is missing.
pub(crate) async fn diff(
    user: &Visible,
    named: &str,
    to: &str,
    from: Option<&str>,
) -> Result<RevisionDiff, Failure> {
    let (workflow, known) = all(user, named).await?;
    let to = find(&known, to)?;
    let from = match from {
        Some(named) => find(&known, named)?,
        None if to + 1 < known.len() => to + 1,
        None => {
            let text = "there is no revision before it to compare with";
            return Err(
                Failure::new(ErrorCode::NotFound, text).hint("name another revision with `from`")
            );
        }
    };
    let to = defined(user, &workflow, &known, to).await?;
    let from = defined(user, &workflow, &known, from).await?;
    let difference = workflow::diff(&from.definition, &to.definition);
    Ok(RevisionDiff {
        from: convert::revision_ref(&from.reference),
        to: convert::revision_ref(&to.reference),
        untouched: untouched(&to.definition, &difference),
        difference: convert::diff::difference(&difference),
        next_slots: next_slots(&from.definition, &to.definition, user.now()),
        lines: difference.to_string().lines().map(str::to_owned).collect(),
        text: convert::diff::text(validate::compare(from.text, to.text).await?),
    })
}

fn untouched(definition: &Workflow, difference: &Difference) -> Vec<String> {
    let differs = |name: &str| difference.scans.iter().any(|scan| scan.scan == name);
    let names = definition.scans().map(|scan| scan.name.to_string());
    names.filter(|name| !differs(name)).collect()
}

fn next_slots(from: &Workflow, to: &Workflow, now: Timestamp) -> Vec<SlotDifference> {
    let removed = from
        .scans()
        .filter(|scan| to.scan(scan.name.as_str()).is_none());
    let differs = |scan: &Scan| {
        let slots = |workflow: &Workflow| {
            let scan = workflow.scan(scan.name.as_str());
            scan.map_or_else(Vec::new, |scan| compared_slots(&scan.on, now))
        };
        let (from, to) = (slots(from), slots(to));
        (from != to).then(|| SlotDifference {
            scan: scan.name.to_string(),
            from,
            to,
        })
    };
    to.scans().chain(removed).filter_map(differs).collect()
}

fn compared_slots(on: &Triggers, now: Timestamp) -> Vec<DateTime<FixedOffset>> {
    let slots = std::iter::successors(on.next_slot(now), |slot| on.next_slot(*slot));
    let local = slots.map(|slot| slot.with_timezone(&on.timezone).fixed_offset());
    local.take(COMPARED_SLOTS).collect()
}

/// Finds a workflow with all its revisions, newest first.
pub(crate) async fn all(
    user: &Visible,
    named: &str,
) -> Result<(Shown<WorkflowRef>, Vec<RevisionRef>), Failure> {
    let workflow = user.find(|seen| Ok(workflows::find(seen, named)?.reference()))?;
    let known = user.revisions(&workflow).await?;
    Ok((workflow, known))
}

/// The position of a revision, given by number or id, or as `newest`.
fn find(known: &[RevisionRef], text: &str) -> Result<usize, Failure> {
    let is_it = |revision: &RevisionRef| {
        text.parse()
            .is_ok_and(|number: u64| number == revision.number)
            || text.parse().is_ok_and(|id| revision.id == id)
    };
    let found = match text {
        NEWEST => (!known.is_empty()).then_some(0),
        _ => known.iter().position(is_it),
    };
    found.ok_or_else(|| {
        Failure::not_found("revision", text)
            .hint("give its number or id, or `newest`; `everscan workflow history` lists them")
    })
}

async fn read(
    user: &Visible,
    workflow: &Shown<WorkflowRef>,
    known: &[RevisionRef],
    at: usize,
) -> Result<StoredRevision, Failure> {
    let revision = known.get(at).ok_or_else(Failure::defect)?;
    user.revision_text(workflow, revision)
        .await
        .map_err(|error| match error {
            ReadError::Damaged { path, problem } => {
                tracing::error!(path, problem, "a revision cannot be read");
                unreadable(workflow, revision.number, "cannot be read").hint(RESTORE)
            }
            error => error.into(),
        })
}

struct Defined {
    reference: RevisionRef,
    definition: Workflow,
    text: String,
}

async fn defined(
    user: &Visible,
    workflow: &Shown<WorkflowRef>,
    known: &[RevisionRef],
    at: usize,
) -> Result<Defined, Failure> {
    let StoredRevision { record, text } = read(user, workflow, known, at).await?;
    let number = record.reference.number;
    match validate::check(record.file, text.clone()).await? {
        Ok(parsed) => Ok(Defined {
            reference: record.reference,
            definition: parsed.workflow,
            text,
        }),
        Err(problems) => {
            let problem: String = problems
                .first()
                .map_or_else(String::new, |first: &Diagnostic| first.message.clone());
            let text = format!("is not valid in the language of this daemon: {problem}");
            Err(unreadable(workflow, number, &text)
                .hint("the revision can be shown with all its problems, but not compared"))
        }
    }
}

fn unreadable(workflow: &Shown<WorkflowRef>, number: u64, what: &str) -> Failure {
    let WorkflowRef { source, name, .. } = &**workflow;
    let text = format!("revision {number} of `{source}/{name}` {what}");
    Failure::new(ErrorCode::WorkflowUnreadable, text)
}

fn revision(reference: &RevisionRef, record: Option<&RevisionRecord>) -> wire::Revision {
    let reference = record.map_or(reference, |record| &record.reference);
    convert::revision(reference, record)
}
