//! Notifications: channels, rules, and what was sent.

use http::StatusCode;
use maud::Markup;
use model::Scope;
use model::decide::Precondition;
use ui::form::Refused;
use ui::pages::Answered;
use ui::{links, pages};
use warp::reply::Response;
use wire::{ChannelTarget, MailSecurity, QuietHours, RuleDefinition, SetChannel};
use workflow::notify::{EventName, NotifyName};

use super::frame::Frame;
use super::typed::Typed;
use crate::failure::Failure;
use crate::handlers::{channels, projects, rules};
use crate::limits::PAGE;
use crate::page::Window;

pub(super) async fn show(frame: &Frame<'_>) -> Result<Response, Failure> {
    let mut answered = Answered::default();
    if let Some((project, name)) = frame.query("rule").split_once('/') {
        let owner = channels::owner_named(frame.user, Some(project).filter(|it| !it.is_empty()))?;
        let rule = rules::in_force(frame.user, *owner, name, |_, _, rule| rule.clone())?;
        let events = rules::past(frame.user, *owner, &rule).await?;
        answered.preview = Some((name.to_owned(), events));
    }
    Ok(frame.page(page(frame, &answered).await?))
}

async fn page(frame: &Frame<'_>, answered: &Answered) -> Result<Markup, Failure> {
    let all = Window::first(PAGE);
    let projects = match frame.may(Scope::ProjectRead) {
        true => projects::list(frame.user, &all).items,
        false => Vec::new(),
    };
    let events: Vec<&str> = EventName::ALL
        .iter()
        .filter(|event| frame.may(Scope::Admin) || !event.is_of_instance())
        .map(|event| event.name())
        .collect();
    let typed = answered.refused_channel.typed.get("kind");
    let page = pages::Notifications {
        channels: &channels::list(frame.user, None, &all)?,
        rules: &rules::list(frame.user, None, &all)?,
        deliveries: &channels::deliveries(frame.user, None, &frame.request.query).await?,
        channel: frame.query("channel"),
        kind: typed.map_or_else(|| frame.query("kind"), String::as_str),
        projects: &projects,
        events: &events,
        answered,
    };
    Ok(pages::notifications(&frame.visit, &page))
}

/// The page after a form, with what came of it.
async fn answer(
    frame: &Frame<'_>,
    status: StatusCode,
    answered: Answered,
) -> Result<Response, Failure> {
    Ok(frame.html(status, page(frame, &answered).await?))
}

fn back(frame: &Frame<'_>) -> Response {
    frame.done(Scope::NotifyRead, links::NOTIFICATIONS)
}

fn text(typed: &Typed, field: &str) -> Option<String> {
    let text = typed.text(field).trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn words(typed: &Typed, field: &str) -> Vec<String> {
    let words = typed.text(field).split_whitespace();
    words.map(str::to_owned).collect()
}

fn number<T: std::str::FromStr>(typed: &Typed, field: &str) -> Result<Option<T>, Failure> {
    let parsed = text(typed, field).map(|text| text.parse());
    parsed
        .transpose()
        .map_err(|_| Failure::invalid(field, "is not a number in range"))
}

fn name(typed: &Typed) -> Result<NotifyName, Failure> {
    NotifyName::new(typed.text("name").trim())
        .map_err(|error| Failure::invalid("name", error.to_string()))
}

pub(super) async fn set_channel(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    // The answer may be the page.
    frame.need(Scope::NotifyRead)?;
    let set = async {
        let owner = channels::owner_named(frame.user, text(typed, "project").as_deref())?;
        let asked = SetChannel {
            target: target(typed)?,
            secret: text(typed, "secret"),
            offered_to: words(typed, "offered_to"),
            offered_to_all: typed.text("offered_to_all") == "true",
        };
        channels::put(
            frame.user,
            &owner,
            name(typed)?,
            asked,
            Precondition::Anything,
        )
        .await
    };
    let mut answered = Answered::default();
    let status = match set.await {
        Ok(set) if set.new_key.is_none() => return Ok(back(frame)),
        Ok(set) => {
            answered.new = Some(channels::shown_once(frame.user, &set));
            StatusCode::OK
        }
        Err(failure) => {
            let (status, refused) = frame.refused(failure, typed, &[])?;
            answered.refused_channel = Refused {
                typed: typed.kept(),
                ..refused
            };
            status
        }
    };
    answer(frame, status, answered).await
}

fn target(typed: &Typed) -> Result<ChannelTarget, Failure> {
    let field = |name| text(typed, name).unwrap_or_default();
    let ca = text(typed, "ca");
    Ok(match typed.text("kind") {
        "email" => ChannelTarget::Email {
            host: field("host"),
            port: number(typed, "port")?,
            security: match typed.text("security") {
                "tls" => MailSecurity::Tls,
                "none" => MailSecurity::None,
                _ => MailSecurity::Starttls,
            },
            from: field("from"),
            to: words(typed, "to"),
            username: text(typed, "username"),
            ca,
        },
        "webhook" => ChannelTarget::Webhook {
            url: field("url"),
            ca,
        },
        "slack" => ChannelTarget::Slack,
        "discord" => ChannelTarget::Discord,
        "ntfy" => ChannelTarget::Ntfy {
            server: field("server"),
            topic: field("topic"),
            ca,
        },
        "command" => ChannelTarget::Command {
            command: field("command"),
        },
        _ => return Err(Failure::invalid("kind", "is not a kind of channel")),
    })
}

pub(super) async fn test_channel(frame: &Frame<'_>) -> Result<Response, Failure> {
    frame.need(Scope::NotifyRead)?;
    let result = channels::send_test(frame.user, frame.request).await?;
    let answered = Answered {
        tested: Some((frame.parameter(0).to_owned(), result)),
        ..Answered::default()
    };
    answer(frame, StatusCode::OK, answered).await
}

pub(super) async fn retry(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    let owner = channels::owner(frame.user, &frame.request.query)?;
    let name = channels::name(frame.parameter(0))?;
    let message = typed.get("message").map(|text| {
        let unknown = |_| Failure::invalid("message", "is not the id of a message");
        text.parse().map_err(unknown)
    });
    channels::again(frame.user, &owner, name, message.transpose()?).await?;
    Ok(back(frame))
}

pub(super) async fn delete_channel(frame: &Frame<'_>) -> Result<Response, Failure> {
    channels::delete(frame.user, frame.request).await?;
    Ok(back(frame))
}

/// Adds a rule, or shows what it would have sent.
pub(super) async fn set_rule(frame: &Frame<'_>, typed: &Typed) -> Result<Response, Failure> {
    frame.need(Scope::NotifyRead)?;
    let is_preview = typed.get("preview").is_some();
    let done = async {
        let owner = channels::owner_named(frame.user, text(typed, "project").as_deref())?;
        let rule = rules::parsed(name(typed)?.as_str(), &definition(typed)?, owner.is_none())?;
        if is_preview {
            return Ok(Some(rules::past(frame.user, *owner, &rule).await?));
        }
        rules::put(frame.user, &owner, rule).await?;
        Ok(None)
    };
    let mut answered = Answered::default();
    let status = match done.await {
        Ok(None) => return Ok(back(frame)),
        Ok(Some(events)) => {
            answered.refused_rule.typed = typed.kept();
            answered.preview = Some((typed.text("name").trim().to_owned(), events));
            StatusCode::OK
        }
        Err(failure) => {
            let (status, refused) = frame.refused(failure, typed, &[])?;
            answered.refused_rule = Refused {
                typed: typed.kept(),
                ..refused
            };
            status
        }
    };
    answer(frame, status, answered).await
}

fn definition(typed: &Typed) -> Result<RuleDefinition, Failure> {
    let (from, to) = (text(typed, "quiet_from"), text(typed, "quiet_to"));
    Ok(RuleDefinition {
        channel: typed.text("channel").trim().to_owned(),
        events: typed.all("events").map(str::to_owned).collect(),
        workflows: words(typed, "workflows"),
        scans: words(typed, "scans"),
        callbacks: words(typed, "callbacks"),
        after: number(typed, "after")?,
        group: text(typed, "group"),
        repeat: text(typed, "repeat"),
        quiet: (from.is_some() || to.is_some()).then(|| QuietHours {
            from: from.unwrap_or_default(),
            to: to.unwrap_or_default(),
            timezone: text(typed, "quiet_timezone"),
        }),
        template: text(typed, "template"),
        content: text(typed, "content"),
    })
}

pub(super) async fn delete_rule(frame: &Frame<'_>) -> Result<Response, Failure> {
    rules::delete(frame.user, frame.request).await?;
    Ok(back(frame))
}
