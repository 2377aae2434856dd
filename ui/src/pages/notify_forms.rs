//! The forms that add channels and rules.

use maud::{Markup, html};
use wire::{Project, Scope};

use super::notifications::Notifications;
use crate::form::{self, Field, Limit, Refused};
use crate::links;
use crate::list::card;
use crate::shell::Visit;

const KINDS: [(&str, &str); 6] = [
    ("email", "E-mail"),
    ("webhook", "Webhook"),
    ("slack", "Slack"),
    ("discord", "Discord"),
    ("ntfy", "ntfy"),
    ("command", "Command"),
];

/// The fields of both forms that show their own errors.
const CHANNEL_FIELDS: [&str; 14] = [
    "name", "project", "host", "port", "security", "from", "to", "username", "ca", "url", "server",
    "topic", "command", "secret",
];

pub(super) fn add_channel(visit: &Visit, page: &Notifications<'_>) -> Markup {
    let refused = &page.answered.refused_channel;
    let known = KINDS.iter().find(|(kind, _)| *kind == page.kind);
    let (kind, label) = known.copied().unwrap_or(KINDS[0]);
    let side = html! { span { "A channel with this name gets these settings." } };
    card(
        "add-channel",
        "Add a channel",
        &side,
        &html! {
            div.body.fields {
                nav.chips aria-label="Kind" {
                    @for (name, label) in KINDS {
                        a.chip href={ (links::with_query(links::NOTIFICATIONS, &[("kind", name)])) "#add-channel-title" }
                            aria-current=[(name == kind).then_some("true")] { (label) }
                    }
                }
                (refused.summary(&CHANNEL_FIELDS))
                (form::post(visit, "channel", links::CHANNELS, &html! {
                    input type="hidden" name="kind" value=(kind);
                    (channel_field("name", "Name").hint("Letters, digits, `-` and `_`. Rules name it.").required().input("text", "", refused))
                    (project(visit, page, "channel", refused))
                    (target(kind, refused))
                    @if visit.may(Scope::Admin) {
                        (channel_field("offered_to", "Projects that may use it").hint("Only for a channel of the instance. Names, separated by spaces.")
                            .input("text", "", refused))
                        (channel_field("offered_to_all", "All projects may use it").switch(false, refused))
                    }
                    button.button.first type="submit" { "Add " (label) }
                }))
            }
        },
    )
}

const fn channel_field<'a>(name: &'a str, label: &'a str) -> Field<'a> {
    Field::new(name, label).of("channel")
}

/// The fields of one kind.
fn target(kind: &str, refused: &Refused) -> Markup {
    let text = |name, label, hint, value: &str| {
        let field = channel_field(name, label).hint(hint).required();
        field.input("text", value, refused)
    };
    let secret = |label, hint| channel_field("secret", label).hint(hint);
    let ca = || {
        let hint = "PEM. Empty: those of the daemon's machine.";
        let field = channel_field("ca", "Certificates to trust").hint(hint);
        field.text("", Limit::Bytes(65_536), refused)
    };
    let securities = ["starttls", "tls", "none"].map(|it| (it.to_owned(), it.to_owned()));
    let never = "It is never shown again.";
    html! {
        @match kind {
            "webhook" => {
                (text("url", "Address", "It gets a POST with JSON, signed as Standard Webhooks says.", ""))
                (secret("Signing key", "Empty: a new webhook gets a new key, which is shown once.").input("password", "", refused))
                (ca())
            },
            "slack" | "discord" => (secret("Address of the webhook", never).required().input("password", "", refused)),
            "ntfy" => {
                (text("server", "Server", "", "https://ntfy.sh"))
                (text("topic", "Topic", "", ""))
                (secret("Token", "Only if the topic needs one. It is never shown again.").input("password", "", refused))
                (ca())
            },
            "command" => (text("command", "Command", "Its name in `notify_commands` of the daemon's configuration.", "")),
            _ => {
                (text("to", "To", "Addresses, separated by spaces.", ""))
                (text("from", "From", "", ""))
                (text("host", "Mail server", "", ""))
                (channel_field("port", "Port").hint("Empty: 587 for `starttls`, 465 for `tls`.").number("", refused))
                (channel_field("security", "Encryption").select(&securities, "starttls", refused))
                (channel_field("username", "User name").input("text", "", refused))
                (secret("Password", never).input("password", "", refused))
                (ca())
            },
        }
    }
}

/// The owner: a project, or the instance for an administrator.
fn project(visit: &Visit, page: &Notifications<'_>, form: &str, refused: &Refused) -> Markup {
    let field = Field::new("project", "Project").of(form);
    if page.projects.is_empty() {
        return field.input("text", "", refused);
    }
    let instance = visit.may(Scope::Admin);
    let instance = instance.then(|| (String::new(), "none: the instance".to_owned()));
    let mine = |project: &&Project| visit.may_in(&project.name, Scope::NotifyWrite);
    let projects = page.projects.iter().filter(mine);
    let projects = projects.map(|project| (project.name.clone(), project.name.clone()));
    let options: Vec<_> = projects.chain(instance).collect();
    let first = options.first().map_or("", |(name, _)| name);
    field.select(&options, first, refused)
}

pub(super) fn add_rule(visit: &Visit, page: &Notifications<'_>) -> Markup {
    let refused = &page.answered.refused_rule;
    let chosen: Vec<&str> = refused.value("events", "").split(' ').collect();
    let text = |name, label, hint| {
        rule_field(name, label)
            .hint(hint)
            .input("text", "", refused)
    };
    let side = html! { span { "The same as in " code { "everscan.yaml" } ". It hides one of the file with its name." } };
    card(
        "add-rule",
        "Add a rule",
        &side,
        &html! {
            div.body.fields {
                (refused.summary(&["name", "project"]))
                (form::post(visit, "rule", links::RULES, &html! {
                    (rule_field("name", "Name").required().input("text", "", refused))
                    (project(visit, page, "rule", refused))
                    (rule_field("channel", "Channel").required().input("text", "", refused))
                    fieldset {
                        legend { "Events (none: the usual)" }
                        @for event in page.events {
                            label.check {
                                input type="checkbox" name="events" value=(event) checked[chosen.contains(event)];
                                " " code { (event) }
                            }
                        }
                    }
                    (text("workflows", "Workflows", "Patterns, separated by spaces. Empty: all."))
                    (text("scans", "Scans", "Patterns, separated by spaces. Empty: all."))
                    (text("callbacks", "Callback servers", "Patterns, separated by spaces. Empty: all."))
                    (rule_field("after", "After failures in a row").number("", refused))
                    (text("group", "Group", "What follows within this time is one message. Empty: 30s."))
                    (text("repeat", "Repeat", "How often an open condition is sent again, such as 4h. Empty: never."))
                    (text("quiet_from", "Quiet from", "Such as 22:00. Messages are held."))
                    (text("quiet_to", "Quiet to", "Such as 07:00."))
                    (text("quiet_timezone", "Time zone", "Empty: UTC."))
                    (rule_field("template", "Template").hint("With `${{ event.title }}` and the like. Empty: the built-in text.")
                        .text("", Limit::Bytes(8_192), refused))
                    (rule_field("content", "New lines").select(&contents(), "lines", refused))
                    div.actions {
                        button.button.first type="submit" { "Add the rule" }
                        button.button type="submit" name="preview" value="true" { "Preview" }
                    }
                }))
            }
        },
    )
}

const fn rule_field<'a>(name: &'a str, label: &'a str) -> Field<'a> {
    Field::new(name, label).of("rule")
}

fn contents() -> [(String, String); 3] {
    ["lines", "summary", "none"].map(|it| (it.to_owned(), it.to_owned()))
}
