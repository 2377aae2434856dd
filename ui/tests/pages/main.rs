//! Properties of every page, and golden files of pages and drawings.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod all;
mod callback_values;
mod charts;
mod empty;
mod golden;
mod graph;
mod lists;
mod more_values;
mod notify_values;
mod parsed;
mod payload_values;
mod roles;
mod sizes;
mod user_pages;
mod values;
mod workflow_values;

use std::collections::BTreeSet;

use parsed::{Element, elements};
use ui::links::{self, ATTRIBUTES};
use values::Texts;

const PLAIN: Texts = Texts("");
const HOSTILE: Texts = Texts("\"'`><script>alert(1)</script>&amp; <b style=\"x\">");

fn pages() -> impl Iterator<Item = (String, Vec<Element>)> {
    [PLAIN, HOSTILE].into_iter().flat_map(|texts| {
        let pages = all::all(texts);
        pages
            .into_iter()
            .map(move |(name, page)| (format!("{name} with `{}`", texts.0), elements(&page)))
    })
}

#[test]
fn every_page_keeps_the_content_security_policy() {
    for (name, elements) in pages() {
        for element in &elements {
            assert_ne!(element.name, "style", "{name}");
            if element.name == "script" {
                assert!(
                    element
                        .get("src")
                        .is_some_and(|src| src.starts_with("/assets/")),
                    "{name}"
                );
                assert_eq!(element.content, "", "{name}");
            }
            for (key, value) in &element.attributes {
                assert!(
                    key != "style" && !key.starts_with("on"),
                    "{name}: {element:?}"
                );
                assert!(
                    !value.starts_with("javascript:") && !value.starts_with("data:"),
                    "{name}: {value}"
                );
            }
        }
    }
}

#[test]
fn every_page_has_one_heading_and_its_landmarks() {
    for (name, elements) in pages() {
        let count = |tag: &str| {
            elements
                .iter()
                .filter(|element| element.name == tag)
                .count()
        };
        for one in ["h1", "main", "title", "html"] {
            assert_eq!(count(one), 1, "{name}: {one}");
        }
        let polite = elements
            .iter()
            .filter(|element| element.get("aria-live") == Some("polite"));
        assert_eq!(polite.count(), 1, "{name}");
        assert!(
            elements
                .iter()
                .any(|element| element.get("href") == Some("#main")),
            "{name}"
        );
        if !["login", "signed-out", "welcome"]
            .iter()
            .any(|part| name.contains(part))
        {
            assert!(count("nav") >= 2, "{name}");
        }
    }
}

#[test]
fn ids_are_unique_and_references_to_them_exist() {
    for (name, elements) in pages() {
        let all: Vec<&str> = elements
            .iter()
            .filter_map(|element| element.get("id"))
            .collect();
        let ids: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(ids.len(), all.len(), "{name}: {:?}", twice(&all));
        for element in &elements {
            for key in [
                "aria-labelledby",
                "aria-describedby",
                "aria-controls",
                "for",
            ] {
                if let Some(value) = element.get(key) {
                    assert!(
                        ids.contains(value) || value.split(' ').all(|id| ids.contains(id)),
                        "{name}: {key}={value}"
                    );
                }
            }
            if let Some(drawing) = element
                .get("href")
                .and_then(|href| href.strip_prefix("#i-"))
            {
                assert!(ids.contains(&*format!("i-{drawing}")), "{name}: {drawing}");
            }
            assert!(
                element
                    .get("data-live")
                    .is_none_or(|_| element.get("id").is_some()),
                "{name}"
            );
        }
    }
}

fn twice<'a>(ids: &[&'a str]) -> Vec<&'a str> {
    let is_again = |place: &usize| ids[..*place].contains(&ids[*place]);
    (0..ids.len())
        .filter(is_again)
        .map(|place| ids[place])
        .collect()
}

#[test]
fn every_field_has_a_label_and_every_button_a_name() {
    for (name, elements) in pages() {
        for element in &elements {
            let is_field = matches!(&*element.name, "input" | "select" | "textarea")
                && element.get("type") != Some("hidden");
            if is_field {
                let labelled = elements.iter().any(|other| {
                    other.name == "label"
                        && other.get("for").is_some()
                        && other.get("for") == element.get("id")
                });
                let is_named = labelled
                    || element.get("aria-label").is_some()
                    || element.around.contains(&"label".to_owned());
                assert!(is_named, "{name}: {element:?}");
            }
            if matches!(&*element.name, "button" | "a") {
                let text = without_tags(&element.content);
                let is_named = !text.trim().is_empty() || element.get("aria-label").is_some();
                assert!(is_named, "{name}: {element:?}");
            }
        }
    }
}

fn without_tags(markup: &str) -> String {
    let texts = markup
        .split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    texts.collect()
}

#[test]
fn forms_post_with_a_key_or_ask_with_get() {
    for (name, elements) in pages() {
        let mut keys = BTreeSet::new();
        for form in elements.iter().filter(|element| element.name == "form") {
            match form.get("method") {
                Some("post") if form.get("action") == Some("/login") => {}
                Some("post") => {
                    let key = form
                        .content
                        .split("name=\"idempotency_key\" value=\"")
                        .nth(1)
                        .and_then(|rest| rest.split('"').next());
                    let key = key.unwrap_or_else(|| panic!("{name}: {form:?}"));
                    // The test values repeat tokens and secrets.
                    keys.insert((key.to_owned(), form.get("action")));
                }
                Some("get") => {}
                // A script sends its files.
                None if form.get("data-upload").is_some() => {}
                Some("dialog") => assert!(form.around.contains(&"dialog".to_owned()), "{name}"),
                other => panic!("{name}: {other:?}"),
            }
        }
        let distinct: BTreeSet<&str> = keys.iter().map(|(key, _)| &**key).collect();
        assert_eq!(distinct.len(), keys.len(), "{name}: {keys:?}");
    }
}

/// The paths of all pages and actions.
const PATHS: &[&str] = &[
    "",
    "login",
    "login/*",
    "device",
    "logout",
    "live",
    "workflows",
    "workflows/*",
    "workflows/*/-/revisions",
    "workflows/*/-/revisions/*",
    "workflows/*/-/scans/*",
    "workflows/*/-/scans/*/dispatch",
    "callbacks/*",
    "callbacks/*/*",
    "callbacks/*/tokens/*/end",
    "projects/*/callbacks",
    "payload-groups/*",
    "payload-groups/*/*",
    "payload-groups/*/*/delete",
    "workflows/*/-/suspend",
    "conditions/*/acknowledge",
    "conditions/*/silence",
    "workflows/*/-/resume",
    "workflows/*/-/scans/*/suspend",
    "workflows/*/-/scans/*/resume",
    "jobs",
    "jobs/*",
    "jobs/*/cancel",
    "jobs/*/delete",
    "jobs/*/rerun",
    "jobs/*/context",
    "jobs/*/log",
    "jobs/*/log/raw",
    "jobs/*/log/records",
    "jobs/*/log/search",
    "jobs/*/artifacts/*",
    "jobs/*/artifacts/*/entries",
    "jobs/*/artifacts/*/diff",
    "jobs/*/artifacts/*/delete",
    "runners",
    "runners/registrations",
    "runners/*",
    "runners/*/limit",
    "runners/*/remove",
    "sources",
    "sources/*",
    "sources/*/sync",
    "artifacts",
    "blobs",
    "blobs/",
    "blobs/*/",
    "blobs/*/*/",
    "blobs/*/*",
    "blobs/*/*/*",
    "blob-deletions",
    "projects",
    "projects/*",
    "projects/*/vars",
    "projects/*/vars/*/delete",
    "projects/*/secrets",
    "projects/*/secrets/*/delete",
    "notifications",
    "notifications/channels",
    "notifications/channels/*/test",
    "notifications/channels/*/retry",
    "notifications/channels/*/delete",
    "notifications/rules",
    "notifications/rules/*/delete",
    "projects/*/members",
    "projects/*/members/*/remove",
    "users",
    "users/*",
    "users/*/link",
    "users/*/delete",
    "tokens",
    "tokens/*/regenerate",
    "tokens/*/revoke",
    "tokens/*/move",
    "settings",
    "settings/password",
    "settings/sessions/*/end",
    "settings/sessions/end",
    "audit",
    "about",
    "assets/*/*",
    "v0/docs",
    "v0/openapi.json",
    "v0/schema/workflow.json",
];

#[test]
fn links_lead_to_pages_that_exist() {
    let known = |path: &str| {
        // The name of a workflow ends before the last `-`.
        let below = path.strip_prefix("workflows/");
        let path = match below.map(|below| below.rsplit_once("/-/")) {
            None => path.to_owned(),
            Some(None) => "workflows/*".to_owned(),
            Some(Some((_, rest))) => format!("workflows/*/-/{rest}"),
        };
        let parts: Vec<&str> = path.split('/').collect();
        PATHS.iter().any(|known| {
            let known: Vec<&str> = known.split('/').collect();
            known.len() == parts.len()
                && known
                    .iter()
                    .zip(&parts)
                    .all(|(known, part)| *known == "*" && !part.is_empty() || known == part)
        })
    };
    for (name, elements) in pages() {
        for element in &elements {
            for key in ATTRIBUTES {
                let Some(link) = element.get(key).filter(|link| !link.starts_with('#')) else {
                    continue;
                };
                let path = link.split(['?', '#']).next().unwrap_or_default();
                assert!(
                    path.strip_prefix('/').is_some_and(known),
                    "{name}: {key}={link}"
                );
            }
        }
    }
}

#[test]
fn below_a_path_all_addresses_and_nothing_else_begin_with_it() {
    for (name, page) in [PLAIN, HOSTILE].into_iter().flat_map(all::all) {
        let moved = elements(&links::below("/everscan", page.clone()));
        for (element, moved) in elements(&page).iter().zip(&moved) {
            for ((key, value), (_, moved)) in element.attributes.iter().zip(&moved.attributes) {
                let is_address = ATTRIBUTES.contains(&&**key) && value.starts_with('/');
                let base = if is_address { "/everscan" } else { "" };
                assert_eq!(*moved, format!("{base}{value}"), "{name}: {key}");
                let is_text = ["value", "title", "data-name"].contains(&&**key);
                assert!(
                    is_address || is_text || !value.starts_with('/'),
                    "{name}: {key}={value}"
                );
            }
        }
    }
}

#[test]
fn hostile_texts_stay_texts() {
    for (name, page) in all::all(HOSTILE) {
        assert!(!page.contains("<script>"), "{name}");
        assert!(!page.contains("<b style"), "{name}");
    }
}

#[test]
fn readers_get_no_actions() {
    for (name, elements) in
        pages().filter(|(name, _)| name.contains("-none") || name.contains("-never"))
    {
        let posts = elements
            .iter()
            .filter(|element| element.get("method") == Some("post"));
        let actions: Vec<_> = posts
            .filter_map(|form| form.get("action"))
            .filter(|action| *action != "/logout")
            .collect();
        assert!(actions.is_empty(), "{name}: {actions:?}");
    }
}
