//! The blobs of a project, folder by folder.

use maud::{Markup, html};
use wire::{Blob, BlobList, Project, Scope};

use crate::form::{Field, Refused};
use crate::list::{card, empty, more, table};
use crate::shell::{Crumb, Menu, Shell, Visit, heading};
use crate::words::{ago, bytes, hits, icon, in_future};
use crate::{form, links};

pub struct Blobs<'a> {
    pub projects: &'a [Project],
    /// The project to show; none if the viewer sees no project.
    pub project: Option<&'a str>,
    /// The folder: empty, or with a final slash.
    pub prefix: &'a str,
    pub blobs: &'a BlobList,
}

pub fn blobs(visit: &Visit, page: &Blobs<'_>) -> Markup {
    let content = html! {
        (heading("Blobs", &html! {}, &html! {}))
        (projects(page))
        @match page.project {
            Some(project) => { (folder(visit, page, project)) }
            None => { (empty(&html! { p { "There is no project, so there are no blobs. Each source is a project." } })) }
        }
    };
    Shell::new(visit, "Blobs", Some(Menu::Blobs))
        .under(crumbs(page))
        .page(&content)
}

fn crumbs(page: &Blobs<'_>) -> Vec<Crumb> {
    let Some(project) = page.project else {
        return Vec::new();
    };
    let mut crumbs = vec![Crumb::new(project, links::blob_folder(project, ""))];
    let mut so_far = String::new();
    for name in page.prefix.split_terminator('/') {
        so_far.push_str(name);
        so_far.push('/');
        crumbs.push(Crumb::new(
            readable(name),
            links::blob_folder(project, &so_far),
        ));
    }
    crumbs
}

/// A slash in a name is `%2F` in the path.
fn readable(name: &str) -> String {
    name.replace("%2F", "/")
}

fn projects(page: &Blobs<'_>) -> Markup {
    html! {
        @if page.projects.len() > 1 {
            nav.chips aria-label="Projects" {
                @for project in page.projects {
                    a.chip href=(links::blob_folder(&project.name, ""))
                        aria-current=[(page.project == Some(&project.name)).then_some("true")] { (project.name) }
                }
            }
        }
    }
}

fn folder(visit: &Visit, page: &Blobs<'_>, project: &str) -> Markup {
    let list = page.blobs;
    let title = if page.prefix.is_empty() {
        "/".to_owned()
    } else {
        readable(page.prefix)
    };
    let side = html! { (hits(list.items.len() + list.folders.len(), list.next_cursor.is_some())) };
    html! {
        (card("folder", &title, &side, &html! {
            @if list.items.is_empty() && list.folders.is_empty() {
                (empty(&html! { p { "Nothing is stored here. Jobs and programs store blobs over the API, you with the form below." } }))
            } @else {
                (table("Blobs", &["name", "size", "stored", "by", "expires", "digest", ""], &html! {
                    @for folder in &list.folders { (folder_row(page, project, folder)) }
                    @for blob in &list.items { (blob_row(visit, page, project, blob)) }
                }))
            }
        }))
        (more(links::BLOBS, &[("project", project), ("prefix", page.prefix)], list.next_cursor.as_deref()))
        @if visit.may_in(project, Scope::BlobWrite) { (upload(page, project)) }
    }
}

fn folder_row(page: &Blobs<'_>, project: &str, folder: &str) -> Markup {
    let name = folder.strip_prefix(page.prefix).unwrap_or(folder);
    html! {
        tr {
            td { (icon("folder")) " " a href=(links::blob_folder(project, folder)) { (readable(name)) } }
            td {} td {} td {} td {} td {} td {}
        }
    }
}

fn blob_row(visit: &Visit, page: &Blobs<'_>, project: &str, blob: &Blob) -> Markup {
    let name = readable(blob.path.strip_prefix(page.prefix).unwrap_or(&blob.path));
    html! {
        tr {
            td { (icon("sheet")) " " a href=(links::blob(project, &blob.path)) download { (name) } }
            td.num { (bytes(blob.size)) }
            td { (ago(blob.modified_at, visit.now)) }
            td { (blob.modified_by) }
            td { @if let Some(expires) = blob.expires_at { (in_future(expires, visit.now)) } }
            td { code.cut title=(blob.sha256) { (blob.sha256) } }
            td.end {
                @if visit.may_in(project, Scope::BlobWrite) {
                    (form::guarded(visit, &links::delete_blob(project, &blob.path), "Delete", &format!("This deletes {name}.")))
                }
            }
        }
    }
}

/// A script sends the files one by one and shows the progress. Without scripts the form cannot work and is hidden.
fn upload(page: &Blobs<'_>, project: &str) -> Markup {
    html! {
        (card("upload", "Store files here", &html! {}, &html! {
            noscript { p.body { "Storing files needs a script. Programs use " code { "everscan blob upload" } "." } }
            div.body.fields data-scripted {
                form data-upload=(links::blob_path(page.prefix)) data-project=(project) {
                    div.field {
                        label for="field-file" { "Files, chosen or dropped here" }
                        input #field-file name="file" type="file" multiple required;
                    }
                    (Field::new("expires_in", "Kept for").hint("For example 12h, 30d or 2w. Empty: for ever.").input("text", "", &Refused::default()))
                    button.button.first type="submit" { "Store" }
                    p data-progress hidden role="status" { progress {} " " span {} }
                }
            }
        }))
    }
}
