//! What is answered to a question.

use std::net::IpAddr;

use hickory_proto::op::{Edns, Message, Metadata, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, HINFO, NS, SOA, TXT};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

use tokio::sync::watch;

use super::question::Question;
use crate::hit::Transport;
use crate::limits::{AMPLIFICATION, PLAIN_UDP_ANSWER, UDP_ANSWER};
use crate::zone::Zone;

/// Nothing of ours is kept by resolvers: each look-up is to be seen.
const TTL: u32 = 0;

/// The name servers of each zone. Many registrars ask for two.
const NAME_SERVERS: [&str; 2] = ["ns1", "ns2"];

/// Texts that prove to an authority of certificates that the zones are ours (RFC 8555). Each text is an answer in every zone:
/// nobody else knows what an authority expects.
pub type Challenges = Vec<String>;

/// Where an authority looks for them.
const CHALLENGE: &[u8] = b"_acme-challenge";

/// The answers of our zones.
pub(crate) struct Answers {
    pub(crate) zones: Vec<Zone>,
    /// The addresses of every name.
    pub(crate) public: Vec<IpAddr>,
    pub(crate) challenges: watch::Receiver<Challenges>,
}

impl Answers {
    /// The records of a rule, if there are some, are the answer in our zones.
    pub(crate) fn respond(&self, question: &Question, records: Option<Vec<RData>>) -> Message {
        let (asked, query) = (&question.message, &question.query);
        let mut response = Message::response(asked.metadata.id, asked.metadata.op_code);
        response.metadata = Metadata::response_from_request(&asked.metadata);
        response.add_query(query.clone());
        if let Some(asked) = &asked.edns {
            let mut edns = Edns::new();
            edns.set_max_payload(UDP_ANSWER as u16);
            edns.set_dnssec_ok(asked.flags().dnssec_ok);
            response.set_edns(edns);
            if asked.version() > 0 {
                response.metadata.response_code = ResponseCode::BADVERS;
                return response;
            }
        }
        let zones = self.zones.iter().map(|zone| &zone.name);
        // The nearest zone, if one is below another.
        let zone = zones
            .filter(|zone| zone.zone_of(&query.name))
            .max_by_key(|zone| zone.num_labels());
        let is_transfer = matches!(query.query_type, RecordType::AXFR | RecordType::IXFR);
        let is_internet = matches!(query.query_class, DNSClass::IN | DNSClass::ANY);
        let Some(zone) = zone.filter(|_| is_internet && !is_transfer) else {
            response.metadata.response_code = ResponseCode::Refused;
            return response;
        };
        response.metadata.authoritative = true;
        if let Some(records) = records {
            let records = records.into_iter();
            response.add_answers(records.map(|data| record(&query.name, data)));
            return response;
        }
        // With the letters of the question, so that the answer can refer to them.
        let apex = query.name.trim_to(zone.num_labels().into());
        let is_apex = query.name.num_labels() == zone.num_labels();
        match query.query_type {
            RecordType::A | RecordType::AAAA => {
                response.add_answers(self.addresses(&query.name, Some(query.query_type)));
            }
            // RFC 8482
            RecordType::ANY => {
                let data = RData::HINFO(HINFO::new("RFC8482".to_owned(), String::new()));
                response.add_answer(record(&query.name, data));
            }
            RecordType::SOA if is_apex => {
                response.add_answers(soa(&apex));
            }
            RecordType::NS if is_apex => {
                for server in NAME_SERVERS {
                    let Ok(server) = apex.prepend_label(server) else {
                        continue;
                    };
                    response.add_additionals(self.addresses(&server, None));
                    response.add_answer(record(&apex, RData::NS(NS(server))));
                }
            }
            RecordType::TXT if is_challenge(&query.name, zone) => {
                for text in &*self.challenges.borrow() {
                    let data = RData::TXT(TXT::new(vec![text.clone()]));
                    response.add_answer(record(&query.name, data));
                }
            }
            _ => {}
        }
        if response.answers.is_empty() {
            response.add_authorities(soa(&apex));
        }
        response
    }

    fn addresses(&self, name: &Name, only: Option<RecordType>) -> Vec<Record> {
        let data = self.public.iter().map(|address| match address {
            IpAddr::V4(address) => RData::A(A(*address)),
            IpAddr::V6(address) => RData::AAAA(AAAA(*address)),
        });
        let data = data.filter(|data| only.is_none_or(|only| only == data.record_type()));
        data.map(|data| record(name, data)).collect()
    }
}

/// Whether the name is `_acme-challenge` below the zone.
fn is_challenge(name: &Name, zone: &Name) -> bool {
    let first = name.iter().next().unwrap_or_default();
    name.num_labels() == zone.num_labels() + 1 && first.eq_ignore_ascii_case(CHALLENGE)
}

fn record(name: &Name, data: RData) -> Record {
    Record::from_rdata(name.clone(), TTL, data)
}

/// `None` if the apex is too long for a name below it, which a [`Zone`] never is.
fn soa(apex: &Name) -> Option<Record> {
    let server = apex.prepend_label(NAME_SERVERS[0]).ok()?;
    let person = apex.prepend_label("hostmaster").ok()?;
    // The times are for secondary servers, which there are not.
    let data = SOA::new(server, person, 1, 3600, 600, 86_400, TTL);
    Some(record(apex, RData::SOA(data)))
}

/// The most bytes of an answer.
pub(crate) fn room(bytes: &[u8], question: Option<&Question>, transport: Transport) -> usize {
    match transport {
        Transport::Tcp => u16::MAX.into(),
        Transport::Udp => {
            let edns = question.and_then(|question| question.message.edns.as_ref());
            let named = edns.map_or(PLAIN_UDP_ANSWER, |edns| edns.max_payload().into());
            named
                .clamp(PLAIN_UDP_ANSWER, UDP_ANSWER)
                .min(AMPLIFICATION * bytes.len())
        }
    }
}

/// Writes the response in at most `room` bytes: whole, else without additional records, else truncated.
pub(crate) fn encode(response: &mut Message, room: usize) -> Option<Vec<u8>> {
    let fits = |bytes: &Vec<u8>| bytes.len() <= room;
    if let Some(whole) = response.to_vec().ok().filter(fits) {
        return Some(whole);
    }
    response.additionals.clear();
    if let Some(shorter) = response.to_vec().ok().filter(fits) {
        return Some(shorter);
    }
    *response = response.truncate();
    response.to_vec().ok().filter(fits)
}

/// The response in a few words: `NOERROR, 1 record`.
pub(crate) fn summary(response: &Message) -> String {
    let code = match response.metadata.response_code {
        ResponseCode::NoError => "NOERROR",
        ResponseCode::FormErr => "FORMERR",
        ResponseCode::NotImp => "NOTIMP",
        ResponseCode::Refused => "REFUSED",
        // Both have one number.
        ResponseCode::BADVERS | ResponseCode::BADSIG => "BADVERS",
        _ => "error",
    };
    match (response.metadata.truncation, response.answers.len()) {
        (true, _) => format!("{code}, truncated"),
        (false, 0) => code.to_owned(),
        (false, 1) => format!("{code}, 1 record"),
        (false, records) => format!("{code}, {records} records"),
    }
}
