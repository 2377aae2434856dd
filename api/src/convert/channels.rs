//! Converts channels.

use model::channel::{Channel, Email, Offered, Security, Target};
use model::outbox::Wait;
use model::{ProjectId, Seen, Timestamp};
use wire::{ChannelTarget, MailSecurity, WaitReason};

pub(crate) fn channel(seen: Seen<'_>, channel: &Channel, now: Timestamp) -> wire::Channel {
    let name = |project: ProjectId| Some(seen.source_of(project)?.name.to_string());
    wire::Channel {
        name: channel.name.to_string(),
        project: channel.project.and_then(name),
        target: shown_target(&channel.target),
        has_secret: channel.secret.is_some(),
        offered_to: match &channel.offered {
            Offered::All => Vec::new(),
            Offered::To(projects) => projects.iter().copied().filter_map(name).collect(),
        },
        offered_to_all: channel.offered == Offered::All,
        version: channel.edit.version,
        changed_at: channel.edit.at,
        changed_by: channel.edit.by.to_string(),
        sent_at: channel.delivered,
        waiting: seen.waiting(channel, now).map(|it| wire::Waiting {
            events: it.events,
            until: it.until,
            reason: match it.why {
                Wait::Sending => WaitReason::Sending,
                Wait::Retry => WaitReason::Retry,
                Wait::Group => WaitReason::Group,
                Wait::QuietHours => WaitReason::QuietHours,
                Wait::Pace => WaitReason::Pace,
                Wait::Gone => WaitReason::Gone,
            },
        }),
        failing: channel
            .failing
            .as_ref()
            .map(|failing| wire::ChannelFailure {
                since: failing.since,
                reason: failing.reason.clone(),
                gone: failing.is_gone,
            }),
        new_key: None,
    }
}

/// The position of a channel in lists: those of the instance first, then by project and name.
pub(crate) fn key(seen: Seen<'_>, channel: &Channel) -> String {
    let project = channel.project.and_then(|project| seen.source_of(project));
    let project = project.map_or_else(String::new, |source| source.name.to_string());
    format!("{project}/{}", channel.name)
}

fn shown_target(target: &Target) -> ChannelTarget {
    match target.clone() {
        Target::Email(Email {
            host,
            port,
            security,
            from,
            to,
            username,
            ca,
        }) => ChannelTarget::Email {
            host,
            port: Some(port),
            security: match security {
                Security::StartTls => MailSecurity::Starttls,
                Security::Tls => MailSecurity::Tls,
                Security::None => MailSecurity::None,
            },
            from,
            to,
            username,
            ca,
        },
        Target::Webhook { url, ca } => ChannelTarget::Webhook { url, ca },
        Target::Slack => ChannelTarget::Slack,
        Target::Discord => ChannelTarget::Discord,
        Target::Ntfy { server, topic, ca } => ChannelTarget::Ntfy { server, topic, ca },
        Target::Command { command } => ChannelTarget::Command { command },
    }
}

pub(crate) fn target(target: ChannelTarget) -> Target {
    match target {
        ChannelTarget::Email {
            host,
            port,
            security,
            from,
            to,
            username,
            ca,
        } => {
            let (security, usual) = match security {
                MailSecurity::Starttls => (Security::StartTls, 587),
                MailSecurity::Tls => (Security::Tls, 465),
                MailSecurity::None => (Security::None, 25),
            };
            Target::Email(Email {
                host,
                port: port.unwrap_or(usual),
                security,
                from,
                to,
                username,
                ca,
            })
        }
        ChannelTarget::Webhook { url, ca } => Target::Webhook { url, ca },
        ChannelTarget::Slack => Target::Slack,
        ChannelTarget::Discord => Target::Discord,
        ChannelTarget::Ntfy { server, topic, ca } => Target::Ntfy { server, topic, ca },
        ChannelTarget::Command { command } => Target::Command { command },
    }
}
