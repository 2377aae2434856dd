//! The files in an artifact.

use maud::{Markup, html};
use wire::{Artifact, ArtifactEntry, Job, Page};

use crate::links;
use crate::list::{card, empty, facts, more, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading};
use crate::words::{at, bytes, hits, short_id, with_code};

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
            div.banner role="note" { p { "Gone since " (at(removed.at)) ": " (with_code(&removed.message)) ", by " (removed.actor) ". The digest stays." } }
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
