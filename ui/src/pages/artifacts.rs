//! The newest artifacts of each scan, the files of one artifact, and its difference to the artifact of another job.

use maud::{Markup, html};
use wire::{
    Artifact, ArtifactDiff, ArtifactEntry, ArtifactLine, FileChange, Job, JobLine, Page, ScanStatus,
};

use crate::list::{card, empty, facts, more, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading, region};
use crate::words::{
    ago, at, bytes, condition, count, grouped, hits, icon, job_link, short_id, with_code,
};
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
                    p { "The newest job of each scan has no artifact. A scan declares artifacts in its file, and successful jobs store them." }
                    p { a href=(links::with_query(links::JOBS, &[("state", "succeeded")])) { "Jobs that succeeded" } }
                }))
            } @else {
                (card("artifacts", "Artifacts of each scan's newest job", &side, &html! {
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

pub struct ArtifactEntries<'a> {
    pub job: &'a Job,
    pub artifact: &'a Artifact,
    pub entries: &'a Page<ArtifactEntry>,
}

pub fn artifact_entries(visit: &Visit, page: &ArtifactEntries<'_>) -> Markup {
    let (job, artifact) = (page.job, page.artifact);
    let path = links::artifact_entries(job.id, &artifact.name);
    let download = html! {
        @if artifact.removed.is_none() {
            a.button.first href=(links::artifact(job.id, &artifact.name)) download { "Download" }
        }
    };
    let side = html! { (hits(page.entries.items.len(), page.entries.next_cursor.is_some())) };
    let content = html! {
        (heading(&artifact.name, &html! { span.tag { (bytes(artifact.size)) } }, &download))
        (facts(&[
            ("stored", at(artifact.created_at)),
            ("expires", html! { @match artifact.expires_at { Some(expires) => (at(expires)), None => "never" } }),
            ("SHA-256 of the zip", html! { code.cut title=(artifact.sha256) { (artifact.sha256) } }),
            ("digest of names and contents", html! { code.cut title=(artifact.content_digest) { (artifact.content_digest) } }),
        ]))
        @if let Some(removed) = &artifact.removed {
            div.banner role="note" { p { "Removed at " (at(removed.at)) ": " (with_code(&removed.message)) ", by " (removed.actor) ". The digest is kept." } }
        } @else {
            form.filters method="get" action={ (links::artifact(job.id, &artifact.name)) "/diff" } aria-label="Compare" {
                div.field {
                    label for="against" { "Compare with that of job" }
                    input #against name="against" required autocomplete="off" spellcheck="false";
                }
                button.button type="submit" { "Compare" }
            }
            (card("files", "Files", &side, &html! {
                @if page.entries.items.is_empty() {
                    (empty(&html! { p { "The artifact has no files." } }))
                } @else {
                    (table("Files", &["file", "size", "in the zip", "CRC-32"], &html! {
                        @for entry in &page.entries.items {
                            tr {
                                td.wide { code { (entry.name) } }
                                td.num { (bytes(entry.size)) }
                                td.num { (bytes(entry.packed_size)) }
                                td { code { (entry.crc32) } }
                            }
                        }
                    }))
                }
            }))
            (more(&path, &[], page.entries.next_cursor.as_deref()))
        }
    };
    let workflow = links::workflow_name(&job.workflow);
    Shell::new(visit, &artifact.name, Some(Menu::Artifacts))
        .under([
            Crumb::new(&job.scan, links::scan(&workflow, &job.scan)),
            Crumb::new(short_id(job.id), links::job(job.id)),
        ])
        .page(&content)
}

pub fn artifact_diff(visit: &Visit, diff: &ArtifactDiff) -> Markup {
    let from = diff.from.to_string();
    let path = format!("{}/diff", links::artifact(diff.to, &diff.artifact));
    let content = html! {
        (heading(&diff.artifact, &html! { @if diff.same { span.tag { "the same" } } }, &html! {}))
        p.lead {
            "From job " (job_link(diff.from)) " to job " (job_link(diff.to)) ": "
            b { (grouped(diff.added)) } " added, " b { (grouped(diff.removed)) } " removed, "
            b { (grouped(diff.changed)) } " changed, " (grouped(diff.unchanged)) " the same."
        }
        (card("files", "Files that differ", &html! { (count(diff.files.len() as u64, "file", "files")) " shown" }, &html! {
            @if diff.files.is_empty() {
                (empty(&html! { p { "Names and contents of all files are the same." } }))
            } @else {
                (table("Files that differ", &["file", "change", "before", "now"], &html! {
                    @for file in &diff.files { (changed_row(file)) }
                }))
            }
        }))
        (more(&path, &[("against", &from)], diff.next_cursor.as_deref()))
    };
    Shell::new(visit, "Difference", Some(Menu::Artifacts))
        .under([
            Crumb::new(short_id(diff.to), links::job(diff.to)),
            Crumb::new(
                &diff.artifact,
                links::artifact_entries(diff.to, &diff.artifact),
            ),
        ])
        .page(&content)
}

fn changed_row(file: &FileChange) -> Markup {
    let change = match (file.from_size, file.to_size) {
        (None, _) => condition("succeeded", "added"),
        (_, None) => condition("failed", "removed"),
        (Some(_), Some(_)) => {
            html! { span.state.scheduled { (icon("changed")) span { "changed" } } }
        }
    };
    let size = |size: Option<u64>| html! { @if let Some(size) = size { (bytes(size)) } };
    html! {
        tr {
            td.wide { code { (file.name) } }
            td { (change) }
            td.num { (size(file.from_size)) }
            td.num { (size(file.to_size)) }
        }
    }
}
