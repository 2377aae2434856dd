//! DNS for our own zones, over UDP and TCP.

use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use self::answer::Answers;
use self::question::Read;
pub(crate) use self::rate::RateLimit;
use self::rate::Verdict;
use crate::hit::{Dns, Kind, Transport};
use crate::limits::{BATCH, DNS_CONNECTION, UDP_QUERY};
use crate::report::Reporter;
use crate::start::Stopped;

pub(crate) mod answer;
pub(crate) mod question;
mod rate;

#[cfg(test)]
mod tests;

/// Answers messages and reports them.
pub(crate) struct Responder {
    answers: Answers,
    limit: Mutex<RateLimit>,
    reporter: Arc<Reporter>,
}

impl Responder {
    pub(crate) fn new(answers: Answers, limit: RateLimit, reporter: Arc<Reporter>) -> Self {
        Self {
            answers,
            limit: Mutex::new(limit),
            reporter,
        }
    }

    /// The answer to a message, if it gets one.
    fn respond(&self, bytes: &[u8], peer: SocketAddr, transport: Transport) -> Option<Vec<u8>> {
        let read = question::read(bytes)?;
        let verdict = match transport {
            Transport::Udp => self.verdict(peer.ip()),
            Transport::Tcp => Verdict::Answer,
        };
        let (question, mut response) = match read {
            Read::Refused(response) => {
                self.reporter.find(&[]);
                (None, *response)
            }
            Read::Question(question) => {
                let named = self.reporter.find(&[&question.labels]);
                let found = named.as_ref().and_then(|named| {
                    let (rules, kind) = (&named.server.rules, question.query.query_type);
                    rules.dns(&named.id, kind, || question.name())
                });
                let (rule, records) = found.unzip();
                let response = self.answers.respond(&question, records);
                let rule = rule.filter(|_| !response.answers.is_empty());
                let rule = rule.map(str::to_owned);
                (Some((question, named, rule)), response)
            }
        };
        let asked = question.as_ref().map(|(question, ..)| &**question);
        let room = answer::room(bytes, asked, transport);
        let (answer, summary) = match verdict {
            Verdict::Answer => {
                let answer = answer::encode(&mut response, room);
                (answer, answer::summary(&response))
            }
            Verdict::Truncated => {
                response = response.truncate();
                let answer = answer::encode(&mut response, room);
                (answer, "truncated (rate limit)".to_owned())
            }
            Verdict::Silence => (None, "none (rate limit)".to_owned()),
        };
        if let Some((question, Some(named), rule)) = question {
            let kind = Kind::Dns(Dns {
                transport,
                name: question.name(),
                record_type: question.record_type(),
                client_subnet: question.client_subnet(),
                message: Bytes::copy_from_slice(bytes),
            });
            let hit = self.reporter.hit(&named, peer, kind, summary, rule);
            self.reporter.report(&named.server, hit);
        }
        answer
    }

    fn verdict(&self, address: IpAddr) -> Verdict {
        let mut limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        limit.count(address, Instant::now())
    }
}

/// Answers the queries of a socket until the stop.
pub(crate) async fn serve_udp(socket: UdpSocket, responder: Arc<Responder>, mut stopped: Stopped) {
    let mut buffer = vec![0; UDP_QUERY];
    loop {
        let ready = tokio::select! {
            ready = socket.readable() => ready,
            () = stopped.wait() => return,
        };
        if let Err(error) = ready {
            tracing::error!(%error, "a socket of DNS has failed");
            return;
        }
        for _ in 0..BATCH {
            let (length, peer) = match socket.try_recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                // An earlier answer has reached nobody.
                Err(_) => continue,
            };
            let respond = || responder.respond(&buffer[..length], peer, Transport::Udp);
            // A defect in a parser costs an answer, not the service.
            let answer = std::panic::catch_unwind(AssertUnwindSafe(respond));
            if let Ok(Some(answer)) = answer {
                // A full buffer loses the answer, as any network may. The sender asks again.
                let _ = socket.try_send_to(&answer, peer);
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Answers the queries of a connection, for a bounded time.
pub(crate) async fn converse(
    mut stream: TcpStream,
    peer: SocketAddr,
    responder: Arc<Responder>,
    mut stopped: Stopped,
) {
    let answered = async {
        loop {
            let length = tokio::select! {
                length = stream.read_u16() => length?,
                () = stopped.wait() => return Ok(()),
            };
            let mut message = vec![0; length.into()];
            stream.read_exact(&mut message).await?;
            let Some(answer) = responder.respond(&message, peer, Transport::Tcp) else {
                return Ok(());
            };
            let Ok(length) = u16::try_from(answer.len()) else {
                return Ok(());
            };
            // In one segment: some resolvers read no further after the length.
            let framed = [&length.to_be_bytes(), answer.as_slice()].concat();
            stream.write_all(&framed).await?;
        }
    };
    let ended: Result<std::io::Result<()>, _> =
        tokio::time::timeout(DNS_CONNECTION, answered).await;
    if let Ok(Err(error)) = ended {
        tracing::debug!(%error, %peer, "a connection of DNS broke off");
    }
}
