//! Mails, and their way to a server.

use chrono::{DateTime, Utc};
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Body, Mailbox};
use model::SecretValue;
use model::channel::{Email, Security};
use outbound::Outbound;
use uuid::Uuid;

use crate::smtp::Session;
use crate::text::{compose, line, short_title};
use crate::{Message, Outcome};

/// Bytes of a text. More is no notification.
const TEXT_LIMIT: usize = 256 * 1024;

pub(crate) async fn send(
    outbound: &Outbound,
    email: &Email,
    password: Option<&SecretValue>,
    message: &Message,
    now: DateTime<Utc>,
) -> Outcome {
    match render(email, message, now) {
        Ok(mail) => {
            let conversation = converse(outbound, email, password, &mail);
            let reply = outbound.in_time(conversation).await;
            reply.map_or_else(|failure| failure, |reply| Outcome::Delivered { reply })
        }
        Err(reason) => Outcome::refused(reason),
    }
}

/// Returns the reply by which the server accepts the mail.
async fn converse(
    outbound: &Outbound,
    email: &Email,
    password: Option<&SecretValue>,
    mail: &lettre::Message,
) -> Result<String, Outcome> {
    let ca = email.ca.as_deref();
    let has_password = email.username.is_some() || password.is_some();
    if email.security == Security::None && has_password {
        return Err(Outcome::refused("a password is only sent over TLS"));
    }
    let account = email.username.as_deref().zip(password);
    let stream = outbound.connect(&email.host, email.port).await?;
    match email.security {
        Security::None => Session::begin(stream).await?.deliver(None, mail).await,
        Security::Tls => {
            let stream = outbound.secure(stream, &email.host, ca).await?;
            Session::begin(stream).await?.deliver(account, mail).await
        }
        Security::StartTls => {
            let stream = Session::begin(stream).await?.start_tls(mail).await?;
            let stream = outbound.secure(stream, &email.host, ca).await?;
            Session::over(stream).deliver(account, mail).await
        }
    }
}

/// An address, perhaps with a name: `Ops <ops@example.org>`.
pub(crate) fn mailbox(address: &str) -> Result<Mailbox, String> {
    let is_plain = address.parse::<Mailbox>().ok().filter(|mailbox| {
        let address: &str = mailbox.email.as_ref();
        address
            .chars()
            .all(|c| c.is_ascii_graphic() && !"<>".contains(c))
    });
    is_plain.ok_or_else(|| format!("`{}` is not a mail address in ASCII", line(address)))
}

fn render(email: &Email, message: &Message, now: DateTime<Utc>) -> Result<lettre::Message, String> {
    let from = mailbox(&email.from)?;
    let domain = from.email.domain().to_owned();
    let id = |id: Uuid| format!("<{id}@{domain}>");
    let mut mail = lettre::Message::builder()
        .from(from)
        .date(now.into())
        .subject(short_title(message))
        .raw_header(HeaderValue::new(
            HeaderName::new_from_ascii_str("Auto-Submitted"),
            "auto-generated".to_owned(),
        ))
        .header(ContentType::TEXT_PLAIN);
    for address in &email.to {
        mail = mail.to(mailbox(address)?);
    }
    let threads: Vec<String> = message.threads.iter().map(|it| id(it.first)).collect();
    let references = match &message.threads[..] {
        [thread, ..] if thread.is_first => {
            mail = mail.message_id(Some(id(thread.first)));
            &threads[1..]
        }
        all => {
            mail = mail.message_id(Some(id(message.id)));
            if let [thread, ..] = all {
                mail = mail.in_reply_to(id(thread.first));
            }
            &threads[..]
        }
    };
    if !references.is_empty() {
        mail = mail.references(references.join(" "));
    }
    let text = compose("", message, TEXT_LIMIT, char::len_utf8);
    let body = Body::new_with_encoding(text, ContentTransferEncoding::QuotedPrintable);
    let body = body.map_err(|_| "the text cannot be encoded".to_owned())?;
    mail.body(body).map_err(|error| error.to_string())
}
