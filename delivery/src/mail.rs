//! Mail by SMTP, on a guarded connection.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use chrono::{DateTime, Utc};
use lettre::message::Body;
use lettre::message::Mailbox;
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, AsyncTokioStream, Certificate, CertificateStore, TlsParameters,
};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Response;
use outbound::Outbound;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use uuid::Uuid;

use crate::text::{compose, line, short_title};
use crate::{Email, Message, Outcome, Security};

/// Bytes of a text. More is no notification.
const TEXT_LIMIT: usize = 256 * 1024;

/// How long a server may take to answer the end of the conversation, when the mail is already accepted.
const QUIT: Duration = Duration::from_secs(2);

const MECHANISMS: [Mechanism; 2] = [Mechanism::Plain, Mechanism::Login];

pub(crate) async fn send(
    outbound: &Outbound,
    email: &Email,
    message: &Message,
    now: DateTime<Utc>,
) -> Outcome {
    let mail = match render(email, message, now) {
        Ok(mail) => mail,
        Err(reason) => return Outcome::refused(reason),
    };
    let conversation = outbound.in_time(async {
        let sender = mail.envelope().from();
        let name = sender.map_or("localhost", |address| address.domain());
        let mut connection = open(outbound, email, name).await?;
        let response = connection.send(mail.envelope(), &mail.formatted()).await;
        Ok((connection, response.map_err(failure)?))
    });
    match conversation.await {
        Err(outcome) => outcome,
        Ok((mut connection, response)) => {
            let _unanswered = timeout(QUIT, connection.quit()).await;
            let reply = reply(&response);
            Outcome::Delivered { reply }
        }
    }
}

/// Connects, begins TLS and signs in. `name` is how this side calls itself.
async fn open(
    outbound: &Outbound,
    email: &Email,
    name: &str,
) -> Result<AsyncSmtpConnection, Outcome> {
    let hello = ClientId::Domain(name.to_owned());
    let stream = outbound.connect(&email.host, email.port).await?;
    let ca = email.ca.as_deref();
    let mut connection = match email.security {
        Security::Tls => {
            let stream = outbound.secure(stream, &email.host, ca).await?;
            AsyncSmtpConnection::connect_with_transport(Box::new(Transport(stream)), &hello).await
        }
        Security::StartTls | Security::None => {
            AsyncSmtpConnection::connect_with_transport(Box::new(Transport(stream)), &hello).await
        }
    }
    .map_err(failure)?;
    if email.security == Security::StartTls {
        if !connection.can_starttls() {
            let reason = format!(
                "{} offers no STARTTLS, which this channel requires",
                email.host
            );
            return Err(Outcome::refused(reason));
        }
        let tls = tls(&email.host, ca);
        let tls = tls.map_err(|error| Outcome::refused(short(&error.to_string())))?;
        connection.starttls(tls, &hello).await.map_err(failure)?;
    }
    if let (Some(user), Some(password)) = (&email.username, &email.password) {
        if email.security == Security::None {
            return Err(Outcome::refused("a password is only sent over TLS"));
        }
        let credentials = Credentials::new(user.clone(), password.reveal().to_owned());
        let signed_in = connection.auth(&MECHANISMS, &credentials).await;
        signed_in.map_err(refused_password)?;
    }
    Ok(connection)
}

fn tls(host: &str, ca: Option<&str>) -> Result<TlsParameters, SmtpError> {
    let mut tls = TlsParameters::builder(host.to_owned());
    if let Some(pem) = ca {
        let certificate = Certificate::from_pem(pem.as_bytes())?;
        tls = tls
            .certificate_store(CertificateStore::None)
            .add_root_certificate(certificate);
    }
    tls.build_rustls()
}

fn render(email: &Email, message: &Message, now: DateTime<Utc>) -> Result<lettre::Message, String> {
    let mailbox = |address: &str| {
        let parsed = address.parse::<Mailbox>();
        parsed.map_err(|error| format!("`{}` is no address: {error}", line(address)))
    };
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
    mail = match message.thread {
        Some(thread) if thread.is_first => mail.message_id(Some(id(thread.first))),
        Some(thread) => mail
            .message_id(Some(id(message.id)))
            .in_reply_to(id(thread.first))
            .references(id(thread.first)),
        None => mail.message_id(Some(id(message.id))),
    };
    let text = compose("", message, TEXT_LIMIT, char::len_utf8);
    let body = Body::new_with_encoding(text, ContentTransferEncoding::QuotedPrintable);
    let body = body.map_err(|_| "the text cannot be encoded".to_owned())?;
    mail.body(body).map_err(|error| error.to_string())
}

fn reply(response: &Response) -> String {
    let text: Vec<&str> = response.message().collect();
    short(&format!("{} {}", response.code(), text.join(" ")))
}

/// What a server said, in one line of at most 300 characters.
fn short(text: &str) -> String {
    line(text).trim().chars().take(300).collect()
}

fn failure(error: SmtpError) -> Outcome {
    let source = std::error::Error::source(&error).map(ToString::to_string);
    let text = source.unwrap_or_default();
    let reason = match error.status() {
        Some(code) => short(&format!("{code} {text}")),
        None => short(&error.to_string()),
    };
    match error.is_permanent() || error.is_client() {
        true => Outcome::refused(reason),
        false => Outcome::retry(reason),
    }
}

/// A server could repeat the password: only its code is shown.
fn refused_password(error: SmtpError) -> Outcome {
    match error.status() {
        Some(code) if error.is_permanent() => {
            Outcome::refused(format!("{code}: the server refused user name and password"))
        }
        Some(code) => Outcome::retry(format!("{code}: signing in failed")),
        None => failure(error),
    }
}

/// A guarded stream as `lettre` takes it.
#[derive(Debug)]
struct Transport<S>(S);

impl<S> AsyncTokioStream for Transport<S>
where
    S: AsyncRead + AsyncWrite + Send + Sync + Unpin + std::fmt::Debug,
{
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Transport<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Transport<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
