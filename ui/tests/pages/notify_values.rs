//! The page of notifications.

use chrono::TimeDelta;
use maud::Markup;
use ui::pages::{self, Answered, Notifications};
use ui::shell::Visit;
use wire::*;

use crate::more_values::*;
use crate::values::*;

fn channel(texts: Texts, name: &str, target: ChannelTarget) -> Channel {
    Channel {
        name: texts.text(name),
        project: Some(texts.text("infra")),
        target,
        has_secret: true,
        offered_to: Vec::new(),
        offered_to_all: false,
        version: 1,
        changed_at: ago(90_000),
        changed_by: texts.text("ada"),
        sent_at: Some(ago(60)),
        waiting: None,
        failing: None,
        new_key: None,
    }
}

fn channels(texts: Texts) -> Vec<Channel> {
    let failing = |gone| {
        Some(ChannelFailure {
            since: ago(7_200),
            reason: texts.text("the receiver replied 503"),
            gone,
        })
    };
    let webhook = ChannelTarget::Webhook {
        url: texts.text("https://example.org/hook"),
        ca: None,
    };
    let ntfy = ChannelTarget::Ntfy {
        server: texts.text("https://ntfy.sh"),
        topic: texts.text("scans"),
        ca: None,
    };
    let email = ChannelTarget::Email {
        host: texts.text("mail.example.org"),
        port: Some(587),
        security: MailSecurity::Starttls,
        from: texts.text("scans@example.org"),
        to: vec![texts.text("ada@example.org"), texts.text("ops@example.org")],
        username: None,
        ca: None,
    };
    let command = ChannelTarget::Command {
        command: texts.text("apprise"),
    };
    vec![
        Channel {
            project: None,
            offered_to: vec![texts.text("infra"), texts.text("web")],
            ..channel(texts, "ops", email)
        },
        Channel {
            waiting: Some(Waiting {
                events: 2,
                until: Some(now() + TimeDelta::seconds(300)),
                reason: WaitReason::Retry,
            }),
            failing: failing(false),
            ..channel(texts, "hook", webhook)
        },
        Channel {
            failing: failing(true),
            ..channel(texts, "team", ChannelTarget::Slack)
        },
        Channel {
            sent_at: None,
            ..channel(texts, "phone", ntfy)
        },
        Channel {
            project: None,
            offered_to_all: true,
            ..channel(texts, "apprise", command)
        },
    ]
}

fn rules(texts: Texts) -> Vec<Rule> {
    let usual = RuleDefinition {
        channel: texts.text("team"),
        ..RuleDefinition::default()
    };
    let long = RuleDefinition {
        events: vec!["failing".to_owned(), texts.text("overdue")],
        workflows: vec![texts.text("nightly/*")],
        scans: vec![texts.text("dump")],
        after: Some(3),
        group: Some(texts.text("1m")),
        repeat: Some(texts.text("4h")),
        quiet: Some(QuietHours {
            from: texts.text("22:00"),
            to: texts.text("07:00"),
            timezone: Some(texts.text("Europe/Berlin")),
        }),
        template: Some(texts.text("${{ event.title }}")),
        ..usual.clone()
    };
    let rule = |name, project, origin, definition| Rule {
        name: texts.text(name),
        project,
        origin,
        definition,
    };
    let project = || Some(texts.text("infra"));
    vec![
        rule("team", project(), RuleOrigin::File, usual.clone()),
        rule("nightly", project(), RuleOrigin::Api, long),
        rule("disk", None, RuleOrigin::Api, usual),
    ]
}

fn deliveries(texts: Texts) -> Vec<Delivery> {
    let one = |message, attempt, result| Delivery {
        at: ago(60),
        message: id(message),
        channel: texts.text("hook"),
        project: Some(texts.text("infra")),
        attempt,
        repeated: attempt > 1,
        result: SendResult {
            result,
            reply: texts.text("replied 503"),
        },
        retry_at: None,
        title: texts.text("probe of infra/net/recon fails"),
        events: u64::from(attempt),
        jobs: vec![id(3)],
    };
    vec![
        one(901, 2, DeliveryResult::Failed),
        Delivery {
            retry_at: Some(now() + TimeDelta::seconds(300)),
            ..one(901, 1, DeliveryResult::Retry)
        },
        Delivery {
            project: None,
            ..one(902, 1, DeliveryResult::Delivered)
        },
        one(903, 1, DeliveryResult::Suppressed),
    ]
}

pub(crate) fn notifications(texts: Texts, visit: &Visit) -> Vec<(&'static str, Markup)> {
    let mut new = channels(texts).swap_remove(1);
    new.new_key = Some(texts.text("whsec_00ff"));
    let event = PreviewedEvent {
        at: ago(7_200),
        event: "failing".to_owned(),
        is_over: true,
        about: texts.text("probe of infra/net/recon"),
        message: texts.text("it has failed since `probe`"),
        rule: Some(texts.text("nightly")),
        channel: texts.text("team"),
    };
    let result = SendResult {
        result: DeliveryResult::Failed,
        reply: texts.text("no such host"),
    };
    let answered = Answered {
        new: Some(new),
        tested: Some((texts.text("hook"), result)),
        preview: Some((texts.text("nightly"), vec![event])),
        refused_channel: refused(texts, &["name", "url"]),
        refused_rule: refused(texts, &["name", "events", "workflows"]),
    };
    let full = Notifications {
        channels: &page(channels(texts)),
        rules: &page(rules(texts)),
        deliveries: &long_page(deliveries(texts), texts),
        channel: &texts.text("hook"),
        kind: "webhook",
        projects: &[project(texts)],
        events: &["failing", "artifact"],
        answered: &answered,
    };
    let (no_channels, no_rules, none) = (page(Vec::new()), page(Vec::new()), page(Vec::new()));
    let empty = |visit: &Visit, kind: &str| {
        let page = Notifications {
            channels: &no_channels,
            rules: &no_rules,
            deliveries: &none,
            channel: "",
            kind,
            projects: &[],
            events: &[],
            answered: &Answered {
                preview: Some((texts.text("nightly"), Vec::new())),
                ..Answered::default()
            },
        };
        pages::notifications(visit, &page)
    };
    let writer = &with(texts, &[Scope::NotifyRead, Scope::NotifyWrite]);
    let mut all = vec![
        ("notifications", pages::notifications(visit, &full)),
        (
            "notifications-of-project",
            pages::notifications(writer, &full),
        ),
        (
            "notifications-none",
            empty(&with(texts, &[Scope::NotifyRead]), "ntfy"),
        ),
    ];
    for (name, kind) in [
        ("notifications-email", "email"),
        ("notifications-slack", "slack"),
        ("notifications-ntfy", "ntfy"),
        ("notifications-command", "command"),
    ] {
        all.push((name, empty(writer, kind)));
    }
    all
}
