//! Reads what strangers send without a socket, for the targets in `fuzz`. Each function panics if a parser panics or an answer breaks
//! a rule.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType};

use crate::dns::answer::{Answers, encode, room, summary};
use crate::dns::question::{self, Read};
use crate::hit::Transport;
use crate::http::{head, proxy};
use crate::ids::mentions;
use crate::limits::{AMPLIFICATION, UDP_ANSWER};
use crate::rules::{Match, Rules};

/// Answers a message. An answer has the id of its query, and over UDP at most three times its bytes.
pub fn dns(bytes: &[u8]) {
    let answers = Answers {
        zones: "cb.example.com".parse().into_iter().collect(),
        public: vec![Ipv4Addr::LOCALHOST.into()],
        challenges: tokio::sync::watch::channel(Vec::new()).1,
    };
    for transport in [Transport::Udp, Transport::Tcp] {
        let Some(read) = question::read(bytes) else {
            return;
        };
        let (mut response, room) = match read {
            Read::Refused(response) => (*response, room(bytes, None, transport)),
            Read::Question(question) => {
                assert!(question.name().bytes().all(|it| it.is_ascii_graphic()));
                let _ = (question.record_type(), question.client_subnet());
                let response = answers.respond(&question, None);
                (response, room(bytes, Some(&question), transport))
            }
        };
        let answer = encode(&mut response, room).unwrap_or_default();
        assert_eq!(answer.get(..2), bytes.get(..2));
        assert!(
            answer.get(2).is_some_and(|it| it & 0x80 != 0),
            "it is marked as an answer"
        );
        assert!(
            transport == Transport::Tcp
                || answer.len() <= UDP_ANSWER.min(AMPLIFICATION * bytes.len())
        );
        let _ = summary(&response);
    }
}

/// Reads a head and what precedes it.
pub fn http(bytes: &[u8]) {
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let mut source = bytes;
    // All bytes are there, so this never waits.
    let sender = std::pin::pin!(proxy::sender(&mut source, peer));
    let polled = sender.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    assert!(polled.is_ready());
    let length = head::length(bytes).unwrap_or(bytes.len());
    let head = head::Head::read(&bytes[..length]);
    for part in [head.method, head.target, head.host] {
        assert!(!part.contains(&b'\n'));
        let _ = mentions(part).count();
    }
    let _ = mentions(bytes).count();
}

/// Looks for the answer of a rule with these texts. Its records, if there are some, are read again as they were written.
pub fn rules(label: &str, path: &str, value: &str, request: &[u8]) {
    let of = || Match {
        name: "rule".to_owned(),
        label: Some(label.to_owned()),
        method: None,
        path: Some(path.to_owned()),
    };
    let server = "aaaaaaaaaaaaaaaa".parse();
    let Ok(server) = server else { return };
    let types = [
        RecordType::A,
        RecordType::AAAA,
        RecordType::TXT,
        RecordType::MX,
        RecordType::CAA,
    ];
    let mut rules = Rules::default();
    for record in types {
        rules.add_dns(of(), &record.to_string(), &[value.to_owned()], true);
    }
    let header = [(label, value)].into_iter();
    rules.add_http(of(), 200, header, Bytes::new(), Duration::ZERO);
    let head = head::Head::read(request);
    if let Some(rule) = rules.http(&server, &head) {
        let _ = rule.response();
    }
    let name = || format!("{label}.{server}.example");
    for record in types {
        let Some((_, records)) = rules.dns(&server, record, name) else {
            continue;
        };
        let mut message = Message::query();
        message.add_query(Query::query(Name::root(), record));
        for data in &records {
            let data = data.clone();
            message.add_answer(hickory_proto::rr::Record::from_rdata(Name::root(), 0, data));
        }
        // A text may be longer than a message.
        let Ok(bytes) = message.to_vec() else {
            continue;
        };
        let read = Message::from_vec(&bytes);
        assert!(read.is_ok_and(|read| read.answers.iter().map(|it| &it.data).eq(&records)));
    }
}
