//! The OpenAPI document as a page for people, without script.

use std::mem;

use maud::{Markup, PreEscaped, html};
use serde_json::Value;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color-scheme:light dark}code,pre{font:14px/1.4 ui-monospace,monospace}pre{overflow-x:auto;padding:.5rem;\
border:1px solid #8884;border-radius:4px}details{border-top:1px solid #8884;padding:.4rem 0}\
summary{cursor:pointer}summary b{display:inline-block;min-width:4.5rem}td,th{text-align:left;padding:.1rem .8rem .1rem 0;\
vertical-align:top}";

pub(crate) fn page(document: &Value) -> String {
    let title = text(&document["info"]["title"]);
    let mut last = "";
    let page = html! {
        (PreEscaped("<!doctype html>"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) " API" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (title) " API" }
                    p { (text(&document["info"]["description"])) }
                    p { "For programs: " a href="openapi.json" { "/v0/openapi.json" } }
                    @for (path, operations) in members(&document["paths"]) {
                        @for (method, described) in members(operations) {
                            @let tag = text(&described["tags"][0]);
                            @if mem::replace(&mut last, tag) != tag { h2 { (tag) } }
                            (operation(method, path, described))
                        }
                    }
                    h2 #schemas { "Schemas" }
                    @for (name, described) in members(&document["components"]["schemas"]) {
                        details id=(name) {
                            summary { code { (name) } }
                            (schema(described))
                        }
                    }
                }
            }
        }
    };
    page.into_string()
}

fn operation(method: &str, path: &str, operation: &Value) -> Markup {
    let parameters = operation["parameters"].as_array();
    html! {
        details id=(text(&operation["operationId"])) {
            summary { b { (method.to_uppercase()) } code { (path) } " " (text(&operation["summary"])) }
            p { (text(&operation["description"])) }
            @if let Some(parameters) = parameters.filter(|it| !it.is_empty()) {
                table {
                    tr { th { "parameter" } th { "in" } th { "meaning" } }
                    @for parameter in parameters {
                        tr {
                            td { code { (text(&parameter["name"])) } }
                            td { (text(&parameter["in"])) }
                            td { (text(&parameter["description"])) }
                        }
                    }
                }
            }
            @for (kind, content) in members(&operation["requestBody"]["content"]) {
                h4 { "Body, " (kind) }
                (schema(&content["schema"]))
            }
            @for (status, answer) in members(&operation["responses"]) {
                @for (kind, content) in members(&answer["content"]) {
                    h4 { "Answer " (status) ", " (kind) }
                    (schema(&content["schema"]))
                }
            }
        }
    }
}

/// A reference becomes a link. Anything else is shown as it is.
fn schema(schema: &Value) -> Markup {
    let name = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next());
    html! {
        @if let Some(name) = name {
            p { a href={ "#" (name) } { code { (name) } } }
        } @else if !schema.is_null() {
            pre { (serde_json::to_string_pretty(schema).unwrap_or_default()) }
        }
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
