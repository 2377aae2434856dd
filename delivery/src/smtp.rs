//! The client's side of SMTP (RFC 5321): one mail, to a server for submission.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lettre::Message;
use model::SecretValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

use crate::Outcome;
use crate::text::line;

/// The characters of a reply that are shown.
const SHOWN_CHARS: usize = 300;

/// The characters about refused recipients that are shown.
const REFUSED_CHARS: usize = 2_000;

/// A conversation. The stream bounds what the server can send.
pub(crate) struct Session<S>(BufReader<S>);

struct Reply {
    code: u16,
    lines: Vec<String>,
}

impl Reply {
    fn check(&self, reason: &str) -> Result<(), Outcome> {
        match self.code {
            200..400 => Ok(()),
            500..600 => Err(Outcome::refused(reason)),
            _ => Err(Outcome::retry(reason)),
        }
    }

    fn text(&self) -> String {
        let text = line(&format!("{} {}", self.code, self.lines.join(" ")));
        text.trim().chars().take(SHOWN_CHARS).collect()
    }

    /// The words of a line that begins with `keyword`, in the answer to EHLO.
    fn offer(&self, keyword: &str) -> Option<Vec<String>> {
        self.lines.iter().find_map(|line| {
            let line = line.to_ascii_uppercase();
            let mut words = line.split_ascii_whitespace();
            (words.next()? == keyword).then(|| words.map(str::to_owned).collect())
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Reads the server's greeting.
    pub(crate) async fn begin(stream: S) -> Result<Self, Outcome> {
        let mut session = Self::over(stream);
        session.reply().await?;
        Ok(session)
    }

    /// A conversation that goes on, now over TLS.
    pub(crate) fn over(stream: S) -> Self {
        Self(BufReader::new(stream))
    }

    /// Asks for TLS, and returns the stream on which the handshake begins.
    pub(crate) async fn start_tls(mut self, mail: &Message) -> Result<S, Outcome> {
        if self.hello(mail).await?.offer("STARTTLS").is_none() {
            let reason = "the server offers no STARTTLS, which this channel requires";
            return Err(Outcome::refused(reason));
        }
        self.command("STARTTLS").await?;
        if !self.0.buffer().is_empty() {
            // Somebody on the way wants these bytes to be taken for replies inside of TLS.
            return Err(Outcome::retry("the server sent replies before TLS began"));
        }
        Ok(self.0.into_inner())
    }

    /// Signs in with user name and password, if given, and hands over the mail to all recipients that the server accepts. Returns
    /// its reply, and which recipients it refuses.
    pub(crate) async fn deliver(
        mut self,
        account: Option<(&str, &SecretValue)>,
        mail: &Message,
    ) -> Result<String, Outcome> {
        let offers = self.hello(mail).await?;
        if let Some((user, password)) = account {
            let mechanisms = offers.offer("AUTH").unwrap_or_default();
            self.sign_in(user, password.reveal(), &mechanisms).await?;
        }
        let envelope = mail.envelope();
        let sender = envelope.from().map_or("", AsRef::as_ref);
        self.command(&format!("MAIL FROM:<{sender}>")).await?;
        let refused = self.name_recipients(mail).await?;
        self.command("DATA").await?;
        let text = String::from_utf8_lossy(&mail.formatted()).into_owned();
        let lines = text.lines().map(|line| match line.starts_with('.') {
            true => format!(".{line}\r\n"),
            false => format!("{line}\r\n"),
        });
        let accepted = self
            .command(&format!("{}.", lines.collect::<String>()))
            .await?;
        let _unanswered = self.write("QUIT").await;
        Ok(match refused.is_empty() {
            true => accepted.text(),
            false => format!("{}; refused: {refused}", accepted.text()),
        })
    }

    /// Returns the recipients that the server refuses. If it refuses all, and one of them only for now, the mail is tried again.
    async fn name_recipients(&mut self, mail: &Message) -> Result<String, Outcome> {
        let (mut refused, mut is_final) = (Vec::new(), true);
        let recipients = mail.envelope().to();
        for address in recipients {
            self.write(&format!("RCPT TO:<{address}>")).await?;
            let reply = self.any_reply().await?;
            if let Err(outcome) = reply.check("") {
                is_final &= matches!(outcome, Outcome::Refused { .. });
                refused.push(format!("{address} ({})", reply.text()));
            }
        }
        let text: String = refused.join(", ").chars().take(REFUSED_CHARS).collect();
        match (refused.len() == recipients.len(), is_final) {
            (false, _) => Ok(text),
            (true, true) => Err(Outcome::refused(text)),
            (true, false) => Err(Outcome::retry(text)),
        }
    }

    async fn hello(&mut self, mail: &Message) -> Result<Reply, Outcome> {
        let sender = mail.envelope().from();
        let domain = sender.map_or("localhost", |address| address.domain());
        self.command(&format!("EHLO {domain}")).await
    }

    /// A server could repeat the password, so only the code of its answer is shown.
    async fn sign_in(
        &mut self,
        user: &str,
        password: &str,
        mechanisms: &[String],
    ) -> Result<(), Outcome> {
        let has = |name| mechanisms.iter().any(|mechanism| mechanism == name);
        let commands = if has("PLAIN") {
            let both = STANDARD.encode(format!("\0{user}\0{password}"));
            vec![format!("AUTH PLAIN {both}")]
        } else if has("LOGIN") {
            let (user, password) = (STANDARD.encode(user), STANDARD.encode(password));
            vec!["AUTH LOGIN".to_owned(), user, password]
        } else {
            let reason = "the server offers no way to sign in with user name and password";
            return Err(Outcome::refused(reason));
        };
        for command in commands {
            self.write(&command).await?;
            let reply = self.any_reply().await?;
            reply.check(&format!(
                "{}: the server refuses user name or password",
                reply.code
            ))?;
        }
        Ok(())
    }

    async fn command(&mut self, command: &str) -> Result<Reply, Outcome> {
        self.write(command).await?;
        self.reply().await
    }

    async fn write(&mut self, command: &str) -> Result<(), Outcome> {
        let command = format!("{command}\r\n");
        self.0.write_all(command.as_bytes()).await.map_err(lost)?;
        self.0.flush().await.map_err(lost)
    }

    /// A reply that agrees.
    async fn reply(&mut self) -> Result<Reply, Outcome> {
        let reply = self.any_reply().await?;
        reply.check(&reply.text())?;
        Ok(reply)
    }

    async fn any_reply(&mut self) -> Result<Reply, Outcome> {
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            if self.0.read_until(b'\n', &mut line).await.map_err(lost)? == 0 {
                return Err(lost(io::ErrorKind::UnexpectedEof.into()));
            }
            let line = String::from_utf8_lossy(&line);
            let code = line.get(..3).and_then(|code| code.parse().ok());
            let Some(code) = code else {
                return Err(Outcome::retry(
                    "the server does not answer as a mail server",
                ));
            };
            let rest = line[3..].trim_end();
            lines.push(rest.get(1..).unwrap_or_default().to_owned());
            if !rest.starts_with('-') {
                return Ok(Reply { code, lines });
            }
        }
    }
}

fn lost(error: io::Error) -> Outcome {
    Outcome::retry(format!("the conversation ended early: {error}"))
}
