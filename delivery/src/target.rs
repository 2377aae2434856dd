//! The target of a channel, with its secret.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use model::SecretValue;
use model::channel::{Security as Stored, Target as StoredTarget};

use crate::{Email, Security, Target};

/// A program that channels may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub timeout: Duration,
}

/// The target with its secret, or why there is none.
pub(crate) fn target(
    stored: &StoredTarget,
    secret: Option<SecretValue>,
    commands: &BTreeMap<String, Program>,
) -> Result<Target, String> {
    let needed = || {
        let missing = || "the channel has no secret; set it again".to_owned();
        secret.clone().ok_or_else(missing)
    };
    Ok(match stored {
        StoredTarget::Email {
            host,
            port,
            security,
            from,
            to,
            username,
            ca,
        } => Target::Email(Email {
            host: host.clone(),
            port: *port,
            security: match security {
                Stored::StartTls => Security::StartTls,
                Stored::Tls => Security::Tls,
                Stored::None => Security::None,
            },
            from: from.clone(),
            to: to.clone(),
            username: username.clone(),
            password: secret,
            ca: ca.clone(),
        }),
        StoredTarget::Webhook { url, ca } => {
            let keys = needed()?;
            let keys = keys.reveal().split_whitespace();
            Target::Webhook {
                url: url.clone(),
                keys: keys.map(|key| SecretValue::new(key.to_owned())).collect(),
                ca: ca.clone(),
            }
        }
        StoredTarget::Slack => Target::Slack { url: needed()? },
        StoredTarget::Discord => Target::Discord { url: needed()? },
        StoredTarget::Ntfy { server, topic, ca } => Target::Ntfy {
            server: server.clone(),
            topic: topic.clone(),
            token: secret,
            ca: ca.clone(),
        },
        StoredTarget::Command { command } => {
            let Program {
                program,
                args,
                timeout,
            } = commands.get(command).cloned().ok_or_else(|| {
                format!("the daemon's configuration has no `{command}` in `notify_commands`")
            })?;
            Target::Command {
                program,
                args,
                timeout,
            }
        }
    })
}
