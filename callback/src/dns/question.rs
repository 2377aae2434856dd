//! Reads a message leniently: any bytes may be in a name.

use std::fmt::Write as _;
use std::net::IpAddr;

use hickory_proto::op::{Header, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::opt::{EdnsCode, EdnsOption};
use hickory_proto::rr::{Name, RecordType};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder};

/// The bytes of a header.
const HEADER: usize = 12;

pub(crate) enum Read {
    Question(Box<Question>),
    /// The answer to a message that has no question for us.
    Refused(Box<Message>),
}

/// A message with one question.
pub(crate) struct Question {
    pub(crate) message: Message,
    pub(crate) query: Query,
    /// The labels of its name, with dots between them.
    pub(crate) labels: Vec<u8>,
}

/// `None` if the message gets no answer: two daemons that answer each other's answers would never end.
pub(crate) fn read(bytes: &[u8]) -> Option<Read> {
    let header = Header::read(&mut BinDecoder::new(bytes)).ok()?;
    if header.metadata.message_type == MessageType::Response {
        return None;
    }
    let refused = |code| {
        let (id, operation) = (header.metadata.id, header.metadata.op_code);
        Some(Read::Refused(Box::new(Message::error_msg(
            id, operation, code,
        ))))
    };
    if header.metadata.op_code != OpCode::Query {
        return refused(ResponseCode::NotImp);
    }
    // A query has no other records but those of EDNS and of a signature. Others may have compressed names, which are slow to read.
    let counts = &header.counts;
    let is_query = counts.queries == 1 && counts.answers == 0 && counts.authorities == 0;
    if !is_query || counts.additionals > 2 || !is_plain(&bytes[HEADER..]) {
        return refused(ResponseCode::FormErr);
    }
    let Ok(mut message) = Message::from_vec(bytes) else {
        return refused(ResponseCode::FormErr);
    };
    let Some(query) = message.queries.pop() else {
        return refused(ResponseCode::FormErr);
    };
    let labels = query.name.iter().collect::<Vec<_>>().join(&b'.');
    Some(Read::Question(Box::new(Question {
        message,
        query,
        labels,
    })))
}

/// Whether a name has no compression. The first name of a message has nothing to refer to, and is to come back as it was.
fn is_plain(mut name: &[u8]) -> bool {
    while let Some((&length, rest)) = name.split_first() {
        match length {
            0 => return true,
            1..=63 => name = rest.get(length.into()..).unwrap_or_default(),
            _ => return false,
        }
    }
    false
}

impl Question {
    /// The name as text, in its case as sent.
    pub(crate) fn name(&self) -> String {
        text(&self.query.name)
    }

    pub(crate) fn record_type(&self) -> String {
        match self.query.query_type {
            RecordType::Unknown(number) => format!("TYPE{number}"),
            known => known.to_string(),
        }
    }

    /// The network of the client for which a resolver asks (RFC 7871).
    pub(crate) fn client_subnet(&self) -> Option<(IpAddr, u8)> {
        match self.message.edns.as_ref()?.option(EdnsCode::Subnet)? {
            EdnsOption::Subnet(subnet) => Some((subnet.addr(), subnet.source_prefix())),
            _ => None,
        }
    }
}

/// Printable ASCII, with everything else and what separates labels escaped (RFC 4343).
fn text(name: &Name) -> String {
    let mut text = String::new();
    for (position, label) in name.iter().enumerate() {
        if position > 0 {
            text.push('.');
        }
        for byte in label {
            match byte {
                b'.' | b'\\' => text.extend(['\\', char::from(*byte)]),
                b'!'..=b'~' => text.push(char::from(*byte)),
                _ => {
                    let _ = write!(text, "\\{byte:03}");
                }
            }
        }
    }
    text
}
