//! The newest artifacts of each scan.

use maud::{Markup, html};
use wire::{ArtifactLine, JobLine, Page, ScanStatus};

use crate::list::{card, empty, more, table};
use crate::shell::{Menu, Shell, Visit, heading, region};
use crate::words::{ago, bytes, hits, job_link};
use crate::{links, topics};

pub fn artifacts(visit: &Visit, page: &Page<ScanStatus>) -> Markup {
    let heads = [
        "artifact", "scan", "workflow", "size", "digest", "when", "job",
    ];
    let found: Vec<(&ScanStatus, &JobLine, &str, &ArtifactLine)> = page
        .items
        .iter()
        .filter_map(|scan| Some((scan, scan.last_job.as_ref()?)))
        .flat_map(|(scan, job)| {
            let artifacts = job.artifacts.iter();
            artifacts.map(move |(name, artifact)| (scan, job, name.as_str(), artifact))
        })
        .collect();
    let side = html! { (hits(found.len(), page.next_cursor.is_some())) };
    let content = html! {
        (heading("Artifacts", &html! {}, &html! {}))
        (region("artifacts", &[topics::SCANS], &html! {
            @if found.is_empty() {
                (empty(&html! {
                    p { "The newest job of each scan left no artifact. A scan names its artifacts in its file, and a job that succeeds stores them." }
                    p { a href=(links::with_query(links::JOBS, &[("state", "succeeded")])) { "Jobs that succeeded" } }
                }))
            } @else {
                (card("artifacts", "Of the newest job of each scan", &side, &html! {
                    (table("Artifacts", &heads, &html! { @for found in &found { (row(visit, *found)) } }))
                }))
            }
        }))
        (more(links::ARTIFACTS, &[], page.next_cursor.as_deref()))
    };
    Shell::new(visit, "Artifacts", Some(Menu::Artifacts)).page(&content)
}

fn row(
    visit: &Visit,
    (scan, job, name, artifact): (&ScanStatus, &JobLine, &str, &ArtifactLine),
) -> Markup {
    let workflow = links::workflow_name(&scan.workflow);
    html! {
        tr {
            td { a href=(links::artifact_entries(job.id, name)) { (name) } }
            td { a.quiet href=(links::scan(&workflow, &scan.scan.name)) { (scan.scan.name) } }
            td { a.quiet href=(links::workflow(&workflow)) { (workflow) } }
            td.num { (bytes(artifact.size)) }
            td { code.cut title=(artifact.content_digest) { (artifact.content_digest) } }
            td { (ago(job.finished_at.unwrap_or(job.created_at), visit.now)) }
            td { (job_link(job.id)) }
        }
    }
}
