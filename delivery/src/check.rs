//! Whether messages can be sent to a target, by the parsers that sending uses.

use model::SecretValue;
use model::channel::Target;
use outbound::{check_host, check_url};

use crate::sender::Settings;
use crate::{chat, command, mail};

/// Refuses a target to which no message can be sent: the field, and what is wrong with it. A secret is never quoted.
///
/// # Errors
/// A field is unusable.
pub fn check(
    settings: &Settings,
    target: &Target,
    secret: Option<&SecretValue>,
) -> Result<(), (&'static str, String)> {
    let url = |field, url: &str| check_url(url).map_err(|error| (field, error.to_string()));
    match target {
        Target::Email(email) => {
            check_host(&email.host).map_err(|error| ("host", error.to_string()))?;
            mail::mailbox(&email.from).map_err(|problem| ("from", problem))?;
            let mut to = email.to.iter();
            to.try_for_each(|to| mail::mailbox(to).map(drop))
                .map_err(|problem| ("to", problem))
        }
        Target::Webhook { url: to, .. } => url("url", to),
        Target::Slack | Target::Discord => match secret.map(SecretValue::reveal) {
            Some(address) if !address.starts_with("https://") || check_url(address).is_err() => {
                let problem = "must be the address of the webhook, which begins with `https://`";
                Err(("secret", problem.to_owned()))
            }
            Some(_) | None => Ok(()),
        },
        Target::Ntfy { server, .. } => {
            url("server", server)?;
            let token = secret.map(chat::bearer).transpose();
            token.map(drop).map_err(|problem| ("secret", problem))
        }
        Target::Command { command } => command::find(settings, command)
            .map(drop)
            .map_err(|problem| ("command", problem)),
    }
}

#[cfg(test)]
mod tests {
    use model::channel::{Email, Security};

    use super::*;

    fn refused(target: &Target, secret: Option<&str>) -> Option<&'static str> {
        let secret = secret.map(|it| SecretValue::new(it.to_owned()));
        let checked = check(&Settings::default(), target, secret.as_ref());
        let (field, problem) = checked.err()?;
        assert!(!problem.contains("hunter2"), "{problem}");
        Some(field)
    }

    fn email(host: &str, from: &str, to: &[&str]) -> Target {
        Target::Email(Email {
            host: host.to_owned(),
            port: 587,
            security: Security::StartTls,
            from: from.to_owned(),
            to: to.iter().map(|&to| to.to_owned()).collect(),
            username: None,
            ca: None,
        })
    }

    #[test]
    fn what_nothing_can_be_sent_to_is_refused() {
        let ntfy = |server: &str| Target::Ntfy {
            server: server.to_owned(),
            topic: "t".to_owned(),
            ca: None,
        };
        let url = "https://hook.example:99999/".to_owned();
        let hook = Target::Webhook { url, ca: None };
        assert_eq!(refused(&hook, None), Some("url"));
        for host in [
            "",
            "a b",
            "http://mail.example",
            "mail\u{202e}",
            "[mail]",
            "a:b",
        ] {
            let target = email(host, "a@example.org", &[]);
            assert_eq!(refused(&target, None), Some("host"), "{host}");
        }
        for host in ["mail.example", "10.0.0.1", "::1"] {
            let target = email(host, "A <a@example.org>", &["b@example.org"]);
            assert_eq!(refused(&target, None), None, "{host}");
        }
        for wrong in [
            "",
            "me",
            "@example.org",
            "me@",
            "a b@example.org",
            "a@example.org,b@example.org",
            "é@example.org",
            "a@exämple.org",
            "a@example.org\r\nBcc: c@example.org",
        ] {
            let from = email("mail.example", wrong, &["b@example.org"]);
            assert_eq!(refused(&from, None), Some("from"), "{wrong}");
            let to = email("mail.example", "a@example.org", &["b@example.org", wrong]);
            assert_eq!(refused(&to, None), Some("to"), "{wrong}");
        }
        assert_eq!(refused(&ntfy("https://"), None), Some("server"));
        let ntfy = ntfy("https://ntfy.example");
        assert_eq!(refused(&ntfy, Some("hunter2\u{7f}")), Some("secret"));
        assert_eq!(refused(&ntfy, Some("hunter2")), None);
        for target in [Target::Slack, Target::Discord] {
            for wrong in ["hunter2", "http://a.example/hunter2", "https://hunter2 x/"] {
                assert_eq!(refused(&target, Some(wrong)), Some("secret"), "{wrong}");
            }
            assert_eq!(refused(&target, Some("https://a.example/hunter2")), None);
            assert_eq!(refused(&target, None), None, "the secret stays");
        }
        let command = "page".to_owned();
        assert_eq!(refused(&Target::Command { command }, None), Some("command"));
    }
}
