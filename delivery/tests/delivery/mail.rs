//! Mail, to a server in Python and to servers that misbehave.

use std::collections::BTreeMap;

use delivery::Thread;
use model::channel::{Email, Security};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use super::peers::{Peer, python};
use super::sink::certificate;
use super::*;

struct Server {
    peer: Peer,
    email: Email,
    password: Option<&'static str>,
    _files: TempDir,
}

impl Server {
    async fn start(security: Security) -> Option<Self> {
        let python = python().await?;
        let own = certificate();
        let files = tempfile::tempdir().unwrap();
        let (chain, key) = (files.path().join("chain"), files.path().join("key"));
        std::fs::write(&chain, own.certificate.pem()).unwrap();
        std::fs::write(&key, own.key.serialize_pem()).unwrap();
        let word = match security {
            Security::StartTls => "starttls",
            Security::Tls => "tls",
            Security::None => "none",
        };
        let args = [chain.to_str().unwrap(), key.to_str().unwrap(), word];
        let mut peer = python.start(include_str!("smtpd.py"), &args);
        let port = peer.line().await.parse().unwrap();
        Some(Self {
            peer,
            email: email(port, security, Some(own.ca)),
            password: Some("hush"),
            _files: files,
        })
    }

    async fn send(&self, message: &Message) -> Outcome {
        send_to_localhost(&self.email, self.password, message).await
    }

    async fn mail(&mut self) -> Mail {
        let mail: Value = serde_json::from_str(&self.peer.line().await).unwrap();
        let headers = mail["headers"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Mail {
            headers: headers
                .map(|header| (text(&header[0]), text(&header[1])))
                .collect(),
            rest: mail,
        }
    }
}

struct Mail {
    headers: BTreeMap<String, String>,
    rest: Value,
}

fn email(port: u16, security: Security, ca: Option<String>) -> Email {
    Email {
        host: "localhost".to_owned(),
        port,
        security,
        from: "Everscan <everscan@example.org>".to_owned(),
        to: vec![
            "ops@example.org".to_owned(),
            "Dé <d@example.org>".to_owned(),
        ],
        username: Some("robot".to_owned()),
        ca,
    }
}

async fn send_to_localhost(email: &Email, password: Option<&str>, message: &Message) -> Outcome {
    let settings = settings(&["127.0.0.1", "::1"], PATIENCE);
    let target = Target::Email(email.clone());
    send_with(&settings, &target, password, message).await
}

#[tokio::test]
async fn mail_goes_over_starttls_and_tls_with_an_own_authority() {
    for security in [Security::StartTls, Security::Tls] {
        let Some(mut server) = Server::start(security).await else {
            return;
        };
        let outcome = server.send(&message()).await;
        assert_eq!(outcome, delivered("250 2.0.0 Ok: queued as 42"));
        let mail = server.mail().await;
        assert_eq!(mail.rest["is_tls"], true);
        assert_eq!(mail.rest["user"], "robot");
        assert_eq!(mail.rest["sender"], "everscan@example.org");
        assert_eq!(
            mail.rest["recipients"],
            json!(["ops@example.org", "d@example.org"])
        );
        assert_eq!(mail.headers["Subject"], "`nightly` fails");
        assert_eq!(mail.headers["Auto-Submitted"], "auto-generated");
        assert_eq!(
            mail.rest["text"]
                .as_str()
                .unwrap()
                .trim_end()
                .replace("\r\n", "\n"),
            format!("{}\n{}", message().text, message().link.unwrap())
        );
        // Another authority is trusted instead: nothing is sent.
        server.email.ca = Some(certificate().ca);
        to_repeat(server.send(&message()).await);
        server.email.ca = None;
        to_repeat(server.send(&message()).await);
    }
}

#[tokio::test]
async fn the_replies_of_a_server_decide_whether_the_mail_is_sent_again() {
    let Some(mut server) = Server::start(Security::StartTls).await else {
        return;
    };
    server.email.to = vec!["busy@example.org".to_owned()];
    let reason = to_repeat(server.send(&message()).await);
    assert_eq!(reason, "busy@example.org (451 4.3.0 try again later)");
    server.email.to = vec!["gone@example.org".to_owned()];
    let reason = refused(server.send(&message()).await);
    assert_eq!(reason, "gone@example.org (550 5.1.1 no such user)");
    server.password = Some("wrong-hush");
    let reason = refused(server.send(&message()).await);
    assert_eq!(reason, "535: the server refuses user name or password");
    server.password = Some("busy");
    let reason = to_repeat(server.send(&message()).await);
    assert_eq!(reason, "454: the server refuses user name or password");
}

#[tokio::test]
async fn a_refused_recipient_does_not_keep_the_mail_from_the_others() {
    let Some(mut server) = Server::start(Security::StartTls).await else {
        return;
    };
    let to = |names: &[&str]| names.iter().map(|it| format!("{it}@example.org")).collect();
    server.email.to = to(&["gone", "ops", "busy"]);
    let refused_ones =
        "gone@example.org (550 5.1.1 no such user), busy@example.org (451 4.3.0 try again later)";
    let reply = format!("250 2.0.0 Ok: queued as 42; refused: {refused_ones}");
    assert_eq!(server.send(&message()).await, delivered(&reply));
    assert_eq!(
        server.mail().await.rest["recipients"],
        json!(["ops@example.org"])
    );
    server.email.to = to(&["gone", "busy"]);
    assert_eq!(to_repeat(server.send(&message()).await), refused_ones);
    server.email.to = to(&["gone"]);
    refused(server.send(&message()).await);
}

#[tokio::test]
async fn mails_about_one_problem_are_one_conversation() {
    let Some(mut server) = Server::start(Security::Tls).await else {
        return;
    };
    let first = Uuid::from_u128(1);
    let mut ids = Vec::new();
    for is_first in [true, false] {
        let threads = vec![Thread { first, is_first }];
        server
            .send(&Message {
                threads,
                ..message()
            })
            .await;
        ids.push(server.mail().await.headers);
    }
    let first = format!("<{first}@example.org>");
    assert_eq!(ids[0]["Message-ID"], first);
    assert!(!ids[0].contains_key("References"));
    assert_eq!(
        ids[1]["Message-ID"],
        format!("<{}@example.org>", message().id)
    );
    assert_eq!(ids[1]["In-Reply-To"], first);
    assert_eq!(ids[1]["References"], first);

    // A mail about several problems belongs to each of their conversations.
    let thread = |number| Thread {
        first: Uuid::from_u128(number),
        is_first: true,
    };
    let threads: Vec<Thread> = (1..=100).map(thread).collect();
    let others = threads[1..].iter();
    let others: Vec<String> = others
        .map(|it| format!("<{}@example.org>", it.first))
        .collect();
    let several = Message {
        threads,
        ..message()
    };
    server.send(&several).await;
    let headers = server.mail().await.headers;
    assert_eq!(headers["Message-ID"], first);
    let references: Vec<&str> = headers["References"].split_whitespace().collect();
    assert_eq!(references, others);
    assert!(!headers.contains_key("In-Reply-To"));
}

#[tokio::test]
async fn no_text_writes_headers_or_commands() {
    let Some(mut server) = Server::start(Security::Tls).await else {
        return;
    };
    let attack = "a\r\nBcc: evil@example.org\r\n\r\n.\r\nQUIT\r\n\0\u{202e}é";
    let text = format!(
        "{attack}\n.\n..\n{}\n{}",
        "x".repeat(5_000),
        "é".repeat(5_000)
    );
    let hostile = Message {
        title: format!("{attack}{}", "x".repeat(2_000)),
        text: text.clone(),
        ..message()
    };
    assert!(matches!(
        server.send(&hostile).await,
        Outcome::Delivered { .. }
    ));
    let mail = server.mail().await;
    assert_eq!(mail.rest["recipients"].as_array().unwrap().len(), 2);
    let names: Vec<&str> = mail.headers.keys().map(String::as_str).collect();
    assert!(!names.contains(&"Bcc"), "{names:?}");
    let subject = &mail.headers["Subject"];
    assert!(
        subject.starts_with("a Bcc: evil@example.org  . QUIT  é"),
        "{subject:?}"
    );
    assert_eq!(mail.rest["has_bare_ends"], false);
    assert!(mail.rest["longest_line"].as_u64().unwrap() <= 998);
    let got = mail.rest["text"].as_str().unwrap().replace("\r\n", "\n");
    assert!(got.contains("\n.\nQUIT\n é\n.\n..\nxxx"), "{got:?}");
    assert!(got.contains(&"é".repeat(5_000)));
    for wrong in [
        "a@example.org\r\nRCPT TO:<evil@example.org>",
        "a>b@example.org",
        "nobody",
        "",
    ] {
        server.email.to = vec![wrong.to_owned()];
        let outcome = server.send(&message()).await;
        assert!(
            matches!(outcome, Outcome::Refused { .. }),
            "{wrong:?}: {outcome:?}"
        );
        let from = Email {
            from: wrong.to_owned(),
            to: vec!["ops@example.org".to_owned()],
            ..server.email.clone()
        };
        refused(send_to_localhost(&from, Some("hush"), &message()).await);
    }
}

#[tokio::test]
async fn without_tls_no_password_is_sent() {
    let Some(mut server) = Server::start(Security::None).await else {
        return;
    };
    let reason = refused(server.send(&message()).await);
    assert_eq!(reason, "a password is only sent over TLS");
    // Somebody on the way could remove the offer of STARTTLS.
    server.email.security = Security::StartTls;
    let reason = refused(server.send(&message()).await);
    assert_eq!(
        reason,
        "the server offers no STARTTLS, which this channel requires"
    );
    server.email.security = Security::None;
    (server.email.username, server.password) = (None, None);
    assert!(matches!(
        server.send(&message()).await,
        Outcome::Delivered { .. }
    ));
    assert_eq!(server.mail().await.rest["is_tls"], false);
}

/// A server that greets with `greeting`, answers the first commands with `replies`, and then sends `endless` for ever.
async fn misbehaving(
    greeting: &'static str,
    replies: &'static [&'static str],
    endless: &'static str,
) -> Email {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        stream.write_all(greeting.as_bytes()).await.unwrap();
        for reply in replies {
            stream.read_line(&mut String::new()).await.unwrap();
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
        while !endless.is_empty() && stream.write_all(endless.as_bytes()).await.is_ok() {}
        let mut rest = String::new();
        while stream
            .read_line(&mut rest)
            .await
            .is_ok_and(|length| length > 0)
        {}
    });
    email(port, Security::StartTls, None)
}

#[tokio::test]
async fn a_server_that_never_ends_its_reply_is_left_at_the_bound() {
    for (greeting, endless) in [
        ("", "220-still here\r\n"),
        ("", "220-aaaaaaaa"),
        ("220 sink\r\n", "250-more\r\n"),
    ] {
        let email = misbehaving(
            greeting,
            if greeting.is_empty() { &[] } else { &[""] },
            endless,
        )
        .await;
        let reason = to_repeat(send_to_localhost(&email, Some("hush"), &message()).await);
        assert!(
            reason.contains("more than 64 KiB were received"),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn replies_behind_the_answer_to_starttls_are_not_believed() {
    let injected = "220 go ahead\r\n250-sink\r\n250 AUTH PLAIN\r\n235 ok\r\n250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n250 ok\r\n";
    let replies = Box::leak(Box::new(["250-sink\r\n250 STARTTLS\r\n", injected]));
    let email = misbehaving("220 sink\r\n", replies, "").await;
    let reason = to_repeat(send_to_localhost(&email, Some("hush"), &message()).await);
    assert!(
        reason == "the server sent replies before TLS began"
            || reason.starts_with("no TLS with localhost"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_server_that_is_closing_is_tried_again() {
    let email = misbehaving("421 4.3.2 shutting down\r\n", &[], "").await;
    let reason = to_repeat(send_to_localhost(&email, Some("hush"), &message()).await);
    assert_eq!(reason, "421 4.3.2 shutting down");
}
