//! The document as a page for people, without script.

use serde_json::Value;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color-scheme:light dark}code,pre{font:14px/1.4 ui-monospace,monospace}pre{overflow-x:auto;padding:.5rem;\
border:1px solid #8884;border-radius:4px}details{border-top:1px solid #8884;padding:.4rem 0}\
summary{cursor:pointer}summary b{display:inline-block;min-width:4.5rem}td,th{text-align:left;padding:.1rem .8rem .1rem 0;\
vertical-align:top}";

/// The page of a document.
pub(crate) fn page(document: &Value) -> String {
    let title = text(&document["info"]["title"]);
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title} API</title><style>{STYLE}</style></head><body><main>\
         <h1>{title} API</h1><p>{}</p><p>For programs: <a href=\"/v0/openapi.json\">/v0/openapi.json</a></p>",
        text(&document["info"]["description"]),
    );
    let mut last = None;
    for (path, operations) in members(&document["paths"]) {
        for (method, operation) in members(operations) {
            let tag = text(&operation["tags"][0]);
            if last.as_ref() != Some(&tag) {
                write(&mut html, format_args!("<h2>{tag}</h2>"));
                last = Some(tag);
            }
            write_operation(&mut html, method, path, operation);
        }
    }
    html.push_str("<h2 id=\"schemas\">Schemas</h2>");
    for (name, schema) in members(&document["components"]["schemas"]) {
        write(
            &mut html,
            format_args!(
                "<details id=\"{0}\"><summary><code>{0}</code></summary>",
                escaped(name)
            ),
        );
        write_schema(&mut html, schema);
        html.push_str("</details>");
    }
    html.push_str("</main></body></html>");
    html
}

fn write_operation(html: &mut String, method: &str, path: &str, operation: &Value) {
    write(
        html,
        format_args!(
            "<details id=\"{}\"><summary><b>{}</b><code>{}</code> {}</summary><p>{}</p>",
            text(&operation["operationId"]),
            escaped(&method.to_uppercase()),
            escaped(path),
            text(&operation["summary"]),
            text(&operation["description"]),
        ),
    );
    let parameters = operation["parameters"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    if !parameters.is_empty() {
        html.push_str("<table><tr><th>parameter</th><th>in</th><th>meaning</th></tr>");
        for parameter in parameters {
            write(
                html,
                format_args!(
                    "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
                    text(&parameter["name"]),
                    text(&parameter["in"]),
                    text(&parameter["description"]),
                ),
            );
        }
        html.push_str("</table>");
    }
    for (kind, content) in members(&operation["requestBody"]["content"]) {
        write(html, format_args!("<h4>Body, {}</h4>", escaped(kind)));
        write_schema(html, &content["schema"]);
    }
    for (status, answer) in members(&operation["responses"]) {
        for (kind, content) in members(&answer["content"]) {
            write(
                html,
                format_args!("<h4>Answer {}, {}</h4>", escaped(status), escaped(kind)),
            );
            write_schema(html, &content["schema"]);
        }
    }
    html.push_str("</details>");
}

/// A reference as a link, and anything else as it is.
fn write_schema(html: &mut String, schema: &Value) {
    if let Some(name) = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next()) {
        let name = escaped(name);
        write(
            html,
            format_args!("<p><a href=\"#{name}\"><code>{name}</code></a></p>"),
        );
    } else if !schema.is_null() {
        let shown = serde_json::to_string_pretty(schema).unwrap_or_default();
        write(html, format_args!("<pre>{}</pre>", escaped(&shown)));
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn text(value: &Value) -> String {
    escaped(value.as_str().unwrap_or_default())
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn write(html: &mut String, what: std::fmt::Arguments<'_>) {
    html.push_str(&what.to_string());
}
