//! The requests of Slack, Discord and ntfy.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use model::SecretValue;
use serde_json::json;

use crate::text::{clean, compose, short_title, title};
use crate::{Level, Message, Post};

/// Characters of a text after escaping.
const SLACK_LIMIT: usize = 40_000;

/// Counted in UTF-16, which is never less than characters.
const DISCORD_LIMIT: usize = 2_000;

/// Discord shows no previews of links.
const DISCORD_SUPPRESS_EMBEDS: u32 = 1 << 2;

/// Bytes of a message.
const NTFY_LIMIT: usize = 4_096;

pub(crate) fn slack(message: &Message) -> Post {
    let size = |character| match character {
        '&' => "&amp;".len(),
        '<' | '>' => "&lt;".len(),
        _ => 1,
    };
    // Without these characters, a text has neither links nor mentions: `<!channel>`, `<@U123>`.
    let text = compose(&title(message), message, SLACK_LIMIT, size)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    post(&json!({
        "text": text, "mrkdwn": false, "unfurl_links": false, "unfurl_media": false,
    }))
}

pub(crate) fn discord(message: &Message) -> Post {
    let title = format!("**{}**", escaped(&title(message)));
    let message = Message {
        text: escaped(&clean(&message.text)),
        ..message.clone()
    };
    post(&json!({
        "content": compose(&title, &message, DISCORD_LIMIT, char::len_utf16),
        "allowed_mentions": { "parse": [] },
        "flags": DISCORD_SUPPRESS_EMBEDS,
    }))
}

/// The text without a meaning in Markdown. A plain address stays as it is.
fn escaped(text: &str) -> String {
    let words = text.split_inclusive(char::is_whitespace);
    let escape = |word: &str| {
        let address = word.trim_end();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~%/?#&=:+".contains(c);
        if address.starts_with("http") && address.contains("://") && address.chars().all(is_plain) {
            return word.to_owned();
        }
        let escape = |c: char| {
            (r"\*_~`|>#[]()<-".contains(c).then_some('\\'))
                .into_iter()
                .chain([c])
        };
        word.chars().flat_map(escape).collect()
    };
    words.map(escape).collect()
}

/// Publishes as JSON: headers cannot carry every title.
pub(crate) fn ntfy(
    topic: &str,
    token: Option<&SecretValue>,
    message: &Message,
) -> Result<Post, String> {
    let (priority, tag) = match message.level {
        Level::Problem => (4, "red_circle"),
        Level::Recovered => (3, "green_circle"),
        Level::Information => (3, "information_source"),
    };
    // The server takes at most twice the limit for the whole JSON, so escapes count.
    let size = |character: char| match character {
        '"' | '\\' | '\n' | '\t' => 2,
        _ => character.len_utf8(),
    };
    let mut body = json!({
        "topic": topic,
        "title": short_title(message),
        "message": compose("", message, NTFY_LIMIT, size),
        "priority": priority,
        "tags": [tag],
    });
    if let Some(link) = &message.link {
        body["click"] = json!(link);
    }
    let mut post = post(&body);
    if let Some(token) = token {
        post.headers.insert(AUTHORIZATION, bearer(token)?);
    }
    Ok(post)
}

pub(crate) fn bearer(token: &SecretValue) -> Result<HeaderValue, String> {
    let value = HeaderValue::try_from(format!("Bearer {}", token.reveal()));
    let mut value = value.map_err(|_| "the token has a character that no token can have")?;
    value.set_sensitive(true);
    Ok(value)
}

fn post(body: &serde_json::Value) -> Post {
    Post {
        headers: HeaderMap::new(),
        body: body.to_string(),
    }
}
