//! Notifications: channels, rules, and what was sent.

use maud::{Markup, html};
use wire::{
    Channel, ChannelTarget, Delivery, DeliveryResult, Page, PreviewedEvent, Project, Rule,
    RuleOrigin, Scope, SendResult, WaitReason,
};

use super::notify_forms::{add_channel, add_rule};
use crate::form::{self, Refused};
use crate::list::{card, empty, more, table};
use crate::shell::{Menu, Shell, Visit, heading, region};
use crate::words::{
    SETTINGS_FILE, ago, at, condition, copy_button, count, hits, in_future, job_link, with_code,
};
use crate::{links, topics};

pub struct Notifications<'a> {
    pub channels: &'a Page<Channel>,
    pub rules: &'a Page<Rule>,
    pub deliveries: &'a Page<Delivery>,
    /// Show only what was sent to channels of this name; empty for all.
    pub channel: &'a str,
    /// The kind of channel that the form adds.
    pub kind: &'a str,
    /// The projects that the forms offer. Empty if the viewer may not see projects.
    pub projects: &'a [Project],
    /// All events that rules can name.
    pub events: &'a [&'a str],
    pub answered: &'a Answered,
}

/// What came of a form, or of a link to a preview.
#[derive(Debug, Default)]
pub struct Answered {
    /// A channel whose new key only this response shows.
    pub new: Option<Channel>,
    /// The channel that got a test message, and what came of it.
    pub tested: Option<(String, SendResult)>,
    /// A rule, and what it would have sent.
    pub preview: Option<(String, Vec<PreviewedEvent>)>,
    pub refused_channel: Refused,
    pub refused_rule: Refused,
}

pub fn notifications(visit: &Visit, page: &Notifications<'_>) -> Markup {
    let live = [topics::DELIVERIES];
    let answered = page.answered;
    let content = html! {
        (heading("Notifications", &html! {}, &html! {}))
        @if let Some(channel) = &answered.new { (new_key(channel)) }
        @if let Some((channel, result)) = &answered.tested { (tested(channel, result)) }
        @if let Some((rule, events)) = &answered.preview { (preview(visit, rule, events)) }
        (region("channels", &live, &channels(visit, page)))
        @if visit.may(Scope::NotifyWrite) { (add_channel(visit, page)) }
        (card("rules", "Rules", &html! { (hits(page.rules.items.len(), page.rules.next_cursor.is_some())) }, &rules(visit, page)))
        @if visit.may(Scope::NotifyWrite) { (add_rule(visit, page)) }
        (region("deliveries", &live, &deliveries(visit, page)))
        (more(links::NOTIFICATIONS, &[("channel", page.channel)], page.deliveries.next_cursor.as_deref()))
    };
    Shell::new(visit, "Notifications", Some(Menu::Notifications)).page(&content)
}

/// Whether the viewer may change what this project, or the instance, has.
fn may_change(visit: &Visit, project: Option<&String>) -> bool {
    match project {
        Some(project) => visit.may_in(project, Scope::NotifyWrite),
        None => visit.may(Scope::Admin),
    }
}

fn owner(project: Option<&String>) -> &str {
    project.map_or("the instance", String::as_str)
}

fn new_key(channel: &Channel) -> Markup {
    let key = channel.new_key.as_deref().unwrap_or_default();
    html! {
        (card("new-key", "The key of the webhook", &html! { (channel.name) }, &html! {
            div.body {
                p { "The receiver checks signatures with it. It is shown once. Copy it now." }
                pre.once { code { (key) } }
                p { (copy_button(key, "Copy the key")) }
            }
        }))
    }
}

fn tested(channel: &str, result: &SendResult) -> Markup {
    html! {
        div.banner.bad[result.result != DeliveryResult::Delivered] role="status" {
            p { "Test of " b { (channel) } ": " (outcome(result)) }
        }
    }
}

fn outcome(result: &SendResult) -> Markup {
    let shape = match result.result {
        DeliveryResult::Delivered => "succeeded",
        DeliveryResult::Failed => "failed",
        DeliveryResult::Retry => "scheduled",
        DeliveryResult::Suppressed => "skipped",
    };
    html! { (condition(shape, result.result.as_str())) ": " (with_code(&result.reply)) }
}

fn preview(visit: &Visit, rule: &str, events: &[PreviewedEvent]) -> Markup {
    let side = html! { (rule) };
    card(
        "preview",
        "What it would have sent in the last week",
        &side,
        &html! {
            @if events.is_empty() { (empty(&html! { p { "Nothing." } })) } @else {
                (table("Preview", &["when", "event", "about", "message", "channel"], &html! {
                    @for event in events {
                        tr {
                            td { (ago(event.at, visit.now)) }
                            td { code { (event.event) } @if event.is_over { " " span.tag { "over" } } }
                            td.wide { (event.about) }
                            td.wide { (with_code(&event.message)) }
                            td { (event.channel) }
                        }
                    }
                }))
            }
        },
    )
}

fn channels(visit: &Visit, page: &Notifications<'_>) -> Markup {
    let channels = &page.channels.items;
    let side = html! { (hits(channels.len(), page.channels.next_cursor.is_some())) };
    card(
        "channels",
        "Channels",
        &side,
        &html! {
            @if channels.is_empty() { (empty(&html! { p { "There is no channel: nobody is notified." } })) } @else {
                (table("Channels", &["name", "belongs to", "sends to", "state", ""], &html! {
                    @for channel in channels { (channel_row(visit, channel)) }
                }))
            }
        },
    )
}

fn channel_row(visit: &Visit, channel: &Channel) -> Markup {
    let act = |action| links::channel(channel.project.as_deref(), &channel.name, action);
    html! {
        tr {
            td { a href=(links::with_query(links::NOTIFICATIONS, &[("channel", &channel.name)])) { (channel.name) } }
            td.wide {
                (owner(channel.project.as_ref()))
                @if channel.offered_to_all { p.small.muted { "for all projects" } }
                @if !channel.offered_to.is_empty() { p.small.muted { "for " (channel.offered_to.join(", ")) } }
            }
            td.wide { (target(&channel.target)) }
            td.wide { (state(visit, channel)) }
            td.end {
                @if may_change(visit, channel.project.as_ref()) {
                    div.actions {
                        (form::button(visit, &act("test"), "Test"))
                        @if channel.waiting.as_ref().is_some_and(|it| it.reason != WaitReason::Sending) { (form::button(visit, &act("retry"), "Send now")) }
                        (form::guarded(visit, &act("delete"), "Delete", "What waits for it is not sent."))
                    }
                }
            }
        }
    }
}

fn target(target: &ChannelTarget) -> Markup {
    html! {
        @match target {
            ChannelTarget::Email { host, to, .. } => { (to.join(", ")) p.small.muted { "by " (host) } },
            ChannelTarget::Webhook { url, .. } => (url),
            ChannelTarget::Slack => "Slack",
            ChannelTarget::Discord => "Discord",
            ChannelTarget::Ntfy { server, topic, .. } => { (topic) " at " (server) },
            ChannelTarget::Command { command } => { "the command " code { (command) } },
        }
    }
}

fn state(visit: &Visit, channel: &Channel) -> Markup {
    html! {
        @match (&channel.failing, channel.sent_at) {
            (Some(failing), _) => {
                (condition("failed", if failing.gone { "gone" } else { "failing" })) " since " (ago(failing.since, visit.now))
                ": " (with_code(&failing.reason))
            },
            (None, Some(sent)) => { (condition("succeeded", "working")) ", sent " (ago(sent, visit.now)) },
            (None, None) => (condition("skipped", "nothing sent yet")),
        }
        @if let Some(waiting) = &channel.waiting {
            p.small.muted {
                (count(waiting.events, "event waits", "events wait"))
                @if let Some(until) = waiting.until { " until " (in_future(until, visit.now)) }
                ": " (waiting.reason.words())
            }
        }
    }
}

fn rules(visit: &Visit, page: &Notifications<'_>) -> Markup {
    html! {
        @if page.rules.items.is_empty() {
            (empty(&html! { p { "There is no rule: each channel gets failures, broken expectations, their ends, and artifacts as their " code { "notify_on" } " says." } }))
        } @else {
            (table("Rules", &["name", "belongs to", "events", "channel", "stands in", ""], &html! {
                @for rule in &page.rules.items { (rule_row(visit, rule)) }
            }))
        }
    }
}

fn rule_row(visit: &Visit, rule: &Rule) -> Markup {
    let project = rule.project.as_deref();
    let address = format!("{}/{}", project.unwrap_or_default(), rule.name);
    let is_file = rule.origin == RuleOrigin::File;
    html! {
        tr {
            td { (rule.name) }
            td { (owner(rule.project.as_ref())) }
            td.wide { (events(rule)) }
            td { (rule.definition.channel) }
            td { @if is_file { code { (SETTINGS_FILE) } } @else { "the API" } }
            td.end {
                @if project.is_some() || visit.may(Scope::Admin) {
                    a.button.small href=(links::with_query(links::NOTIFICATIONS, &[("rule", &address)])) { "Preview" }
                }
                @if !is_file && may_change(visit, rule.project.as_ref()) {
                    " " (form::guarded(visit, &links::delete_rule(project, &rule.name), "Delete", "A rule of the file with this name is in force again."))
                }
            }
        }
    }
}

/// What a rule sends, and when.
fn events(rule: &Rule) -> Markup {
    let it = &rule.definition;
    let limits = [
        ("workflows", it.workflows.join(" ")),
        ("scans", it.scans.join(" ")),
        ("callbacks", it.callbacks.join(" ")),
        (
            "after failures",
            it.after.map_or_else(String::new, |after| after.to_string()),
        ),
        ("group", it.group.clone().unwrap_or_default()),
        ("repeat", it.repeat.clone().unwrap_or_default()),
        (
            "quiet",
            it.quiet.as_ref().map_or_else(String::new, |quiet| {
                let zone = quiet.timezone.as_deref().unwrap_or("UTC");
                format!("{} to {} {zone}", quiet.from, quiet.to)
            }),
        ),
    ];
    html! {
        @if it.events.is_empty() { "the usual" } @else { (it.events.join(", ")) }
        @for (name, value) in limits.iter().filter(|(_, value)| !value.is_empty()) {
            p.small.muted { (name) ": " (value) }
        }
        @if it.template.is_some() { p.small.muted { "with a template" } }
    }
}

fn deliveries(visit: &Visit, page: &Notifications<'_>) -> Markup {
    let deliveries = &page.deliveries.items;
    let side = html! {
        @if !page.channel.is_empty() { "to " (page.channel) ", " a href=(links::NOTIFICATIONS) { "show all" } }
        (hits(deliveries.len(), page.deliveries.next_cursor.is_some()))
    };
    card(
        "deliveries",
        "Sent",
        &side,
        &html! {
            @if deliveries.is_empty() { (empty(&html! { p { "Nothing was sent in the last 30 days." } })) } @else {
                (table("Sent", &["time", "channel", "message", "attempt", "result", ""], &html! {
                    @for (place, delivery) in deliveries.iter().enumerate() {
                        // Only the newest attempt of a message can be repeated.
                        @let is_newest = !deliveries.iter().take(place).any(|it| it.message == delivery.message);
                        (delivery_row(visit, delivery, is_newest))
                    }
                }))
            }
        },
    )
}

fn delivery_row(visit: &Visit, delivery: &Delivery, is_newest: bool) -> Markup {
    let retry = links::channel(delivery.project.as_deref(), &delivery.channel, "retry");
    let is_failed = delivery.result.result == DeliveryResult::Failed;
    html! {
        tr {
            td { (at(delivery.at)) }
            td { (delivery.channel) p.small.muted { (owner(delivery.project.as_ref())) } }
            td.wide {
                (delivery.title)
                @if delivery.events > 1 { p.small.muted { (count(delivery.events, "event", "events")) } }
                @for job in &delivery.jobs { " " (job_link(*job)) }
            }
            td.num { (delivery.attempt) @if delivery.repeated { p.small.muted { "may be the second" } } }
            td.wide {
                (outcome(&delivery.result))
                @if let Some(retry) = delivery.retry_at { p.small.muted { "tried again " (in_future(retry, visit.now)) } }
            }
            td.end {
                @if is_failed && is_newest && may_change(visit, delivery.project.as_ref()) {
                    (form::post(visit, &format!("{retry} {}", delivery.message), &retry, &html! {
                        input type="hidden" name="message" value=(delivery.message);
                        button.button.small type="submit" { "Send again" }
                    }))
                }
            }
        }
    }
}
