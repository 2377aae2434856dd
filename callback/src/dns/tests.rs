use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use hickory_proto::op::Message;
use hickory_proto::rr::{RData, RecordType};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::sync::{mpsc, watch};

use super::*;
use crate::hit::Hit;
use crate::ids::ServerId;
use crate::report::Totals;
use crate::table::{Server, Table};

const SERVER: &str = "abcdefghijklmnop";
const TAG: &str = "22222222223333333333";

const A: u16 = 1;
const NS: u16 = 2;
const SOA: u16 = 6;
const TXT: u16 = 16;
const AAAA: u16 = 28;
const IXFR: u16 = 251;
const AXFR: u16 = 252;
const ANY: u16 = 255;
const INTERNET: u16 = 1;
const CHAOS: u16 = 3;

const HEADER: usize = 12;
/// An empty OPT record, for answers of 1,232 bytes.
const EDNS: &[u8] = &[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0];

/// A responder for `cb.example.com`, `sub.cb.example.com` and `io`, and its hits.
struct World {
    responder: Responder,
    hits: mpsc::Receiver<Hit>,
    totals: Arc<Totals>,
    table: Arc<Table>,
    _table: watch::Sender<Arc<Table>>,
}

fn world() -> World {
    let tags = Arc::new([(TAG.parse().unwrap(), None)].into());
    let server = Server {
        tags,
        ..Server::default()
    };
    let table = Arc::new(Table {
        servers: [(SERVER.parse().unwrap(), server)].into(),
    });
    let (sender, receiver) = watch::channel(table.clone());
    let (hit, hits) = mpsc::channel(16);
    let totals = Arc::new(Totals::default());
    let clock = Arc::new(|| SystemTime::UNIX_EPOCH);
    let reporter = Arc::new(Reporter::new(receiver, hit, clock, totals.clone()));
    let zones = ["cb.example.com", "sub.cb.example.com", "io"];
    let public = ["192.0.2.1", "192.0.2.2", "2001:db8::1"];
    let answers = Answers {
        zones: zones.map(|zone| zone.parse().unwrap()).into(),
        public: public.map(|address| address.parse().unwrap()).into(),
        challenges: watch::channel(vec!["one".to_owned(), "two".to_owned()]).1,
    };
    let limit = RateLimit::new(vec!["127.0.0.1".parse().unwrap()]);
    World {
        responder: Responder::new(answers, limit, reporter),
        hits,
        totals,
        table,
        _table: sender,
    }
}

fn peer() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 5353))
}

/// A message with a header and these bytes. `counts` are those of questions and additional records.
fn message(flags: u16, counts: (u16, u16), rest: &[u8]) -> Vec<u8> {
    let header = [7, flags, counts.0, 0, 0, counts.1].map(u16::to_be_bytes);
    [header.as_flattened(), rest].concat()
}

fn question<L: AsRef<[u8]>>(labels: impl IntoIterator<Item = L>, kind: u16, class: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in labels {
        bytes.push(u8::try_from(label.as_ref().len()).unwrap());
        bytes.extend(label.as_ref());
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(class.to_be_bytes());
    bytes
}

fn query(name: &str, kind: u16) -> Vec<u8> {
    message(0, (1, 0), &question(name.split('.'), kind, INTERNET))
}

impl World {
    fn ask(&self, bytes: &[u8], transport: Transport) -> Message {
        let answer = self.responder.respond(bytes, peer(), transport).unwrap();
        Message::from_vec(&answer).unwrap()
    }

    fn code(&self, bytes: &[u8]) -> String {
        let answer = self.ask(bytes, Transport::Udp);
        answer::summary(&answer)
    }
}

fn texts(records: &[hickory_proto::rr::Record]) -> Vec<String> {
    records
        .iter()
        .map(|it| format!("{} {} {}", it.name, it.ttl, it.data))
        .collect()
}

#[test]
fn every_name_of_a_zone_exists() {
    let world = world();
    for name in [
        "cb.example.com",
        "a.cb.example.com",
        "1.2.3._x.A.CB.Example.com",
    ] {
        let answer = world.ask(&query(name, A), Transport::Udp);
        let expected = ["192.0.2.1", "192.0.2.2"].map(|it| format!("{name}. 0 {it}"));
        assert_eq!(texts(&answer.answers), expected);
        assert!(answer.metadata.authoritative && !answer.metadata.recursion_available);
        let answer = world.ask(&query(name, AAAA), Transport::Udp);
        assert_eq!(texts(&answer.answers), [format!("{name}. 0 2001:db8::1")]);
        for kind in [5, 15, TXT, 43, 64, 257, 65280] {
            let answer = world.ask(&query(name, kind), Transport::Udp);
            assert_eq!(answer::summary(&answer), "NOERROR", "{kind}");
            let soa = texts(&answer.authorities).concat().to_lowercase();
            assert!(
                soa.starts_with("cb.example.com. 0 ns1.cb.example.com."),
                "{soa}"
            );
        }
    }
    // Below the apex there are no name servers of their own.
    let answer = world.ask(&query("a.cb.example.com", NS), Transport::Udp);
    assert!(answer.answers.is_empty() && answer.authorities.len() == 1);
}

#[test]
fn an_authority_finds_all_challenges_at_once_and_at_one_name() {
    let world = world();
    for name in ["_acme-challenge.cb.example.com", "_ACME-challenge.io"] {
        let answer = world.ask(&query(name, TXT), Transport::Tcp);
        let expected = ["one", "two"].map(|it| format!("{name}. 0 {it}"));
        assert_eq!(texts(&answer.answers), expected);
    }
    for name in [
        "a._acme-challenge.cb.example.com",
        "acme-challenge.cb.example.com",
        "_acme-challenge.a.cb.example.com",
    ] {
        let answer = world.ask(&query(name, TXT), Transport::Tcp);
        assert!(answer.answers.is_empty(), "{name}");
    }
}

#[test]
fn the_apex_has_soa_name_servers_and_their_addresses() {
    let world = world();
    let answer = world.ask(&query("cb.example.com", SOA), Transport::Udp);
    let soa = texts(&answer.answers).concat();
    assert!(
        soa.starts_with("cb.example.com. 0 ns1.cb.example.com. hostmaster.cb.example.com."),
        "{soa}"
    );
    let answer = world.ask(&query("cb.example.com", NS), Transport::Tcp);
    let servers = ["ns1", "ns2"].map(|it| format!("cb.example.com. 0 {it}.cb.example.com."));
    assert_eq!(texts(&answer.answers), servers);
    assert_eq!(answer.additionals.len(), 6);
    // The nearest zone counts.
    let answer = world.ask(&query("sub.cb.example.com", SOA), Transport::Udp);
    assert_eq!(answer.answers[0].name.to_string(), "sub.cb.example.com.");
}

#[test]
fn answers_over_udp_are_cut_to_three_times_the_query() {
    let world = world();
    let short = query("io", SOA);
    let answer = world.ask(&short, Transport::Udp);
    assert!(answer.metadata.truncation && answer.answers.is_empty());
    let answer = world.ask(&short, Transport::Tcp);
    assert!(!answer.metadata.truncation && answer.answers.len() == 1);
    // Addresses of name servers are left out first.
    let answer = world.ask(&query("cb.example.com", NS), Transport::Udp);
    assert!(
        !answer.metadata.truncation && answer.answers.len() == 2 && answer.additionals.is_empty()
    );
}

#[test]
fn a_question_about_everything_gets_one_small_record() {
    let answer = world().ask(&query("a.cb.example.com", ANY), Transport::Udp);
    let RData::HINFO(found) = &answer.answers[0].data else {
        panic!("{:?}", answer.answers);
    };
    assert_eq!((&*found.cpu, &*found.os), (&b"RFC8482"[..], &b""[..]));
    assert_eq!(answer.answers.len(), 1);
}

#[test]
fn foreign_names_transfers_and_classes_are_refused() {
    let mut world = world();
    for name in [
        "example.com",
        "xcb.example.com",
        "com",
        "cb.example.org",
        "a.cb.example.com.evil",
    ] {
        assert_eq!(world.code(&query(name, A)), "REFUSED", "{name}");
    }
    assert_eq!(
        world.code(&message(0, (1, 0), &question([""; 0], A, INTERNET))),
        "REFUSED"
    );
    for kind in [AXFR, IXFR] {
        assert_eq!(world.code(&query("cb.example.com", kind)), "REFUSED");
        let answer = world.ask(&query("cb.example.com", kind), Transport::Tcp);
        assert_eq!(answer::summary(&answer), "REFUSED");
    }
    let version = question(["version", "bind"], TXT, CHAOS);
    assert_eq!(world.code(&message(0, (1, 0), &version)), "REFUSED");
    assert!(world.hits.try_recv().is_err());
}

#[test]
fn messages_without_one_question_are_errors_or_dropped() {
    let world = world();
    let plain = question(["a", "cb", "example", "com"], A, INTERNET);
    let twice = plain.repeat(2);
    let with = |rest: &[u8]| [&plain[..], rest].concat();
    // Names that refer to themselves, to the header, and beyond the end.
    let to_itself = [&[0xc0, 12][..], &[0, 1, 0, 1]].concat();
    let label_first = [&[1, b'a', 0xc0, 12][..], &[0, 1, 0, 1]].concat();
    let to_header = [&[0xc0, 0][..], &[0, 1, 0, 1]].concat();
    let reserved = [&[0x40, b'a', 0][..], &[0, 1, 0, 1]].concat();
    // A query with a record in its answer section.
    let answered = [7_u16, 0, 1, 1, 0, 0].map(u16::to_be_bytes);
    let record = [0, 0, 16, 0, 1, 0, 0, 0, 0, 0, 1, 0];
    let answered = [answered.as_flattened(), &plain, &record].concat();
    let long = question(vec!["a".repeat(63); 5], A, INTERNET);
    for (bytes, expected) in [
        (message(0, (0, 0), &[]), "FORMERR"),
        (message(0, (0, 0), &plain), "FORMERR"),
        (message(0, (2, 0), &twice), "FORMERR"),
        (message(0, (1, 0), &plain[..plain.len() - 1]), "FORMERR"),
        (message(0, (1, 0), &[]), "FORMERR"),
        (message(0, (1, 0), &to_itself), "FORMERR"),
        (message(0, (1, 0), &label_first), "FORMERR"),
        (message(0, (1, 0), &to_header), "FORMERR"),
        (message(0, (1, 0), &reserved), "FORMERR"),
        (message(0, (1, 0), &long), "FORMERR"),
        (message(0, (1, 1), &plain), "FORMERR"),
        (message(0, (1, 2), &with(&EDNS.repeat(2))), "FORMERR"),
        (message(0, (1, u16::MAX), &with(EDNS)), "FORMERR"),
        (message(0, (1, 3), &with(&EDNS.repeat(3))), "FORMERR"),
        (answered, "FORMERR"),
        // Notify and update.
        (message(0x2000, (1, 0), &plain), "NOTIMP"),
        (message(0x2800, (1, 0), &plain), "NOTIMP"),
        (message(0x7800, (1, 0), &plain), "NOTIMP"),
        // Unknown versions and flags of EDNS, and bytes after the message.
        (
            message(0, (1, 1), &with(&[0, 0, 41, 4, 208, 0, 1, 0, 0, 0, 0])),
            "BADVERS",
        ),
        (message(0x07f0, (1, 1), &with(EDNS)), "NOERROR, 2 records"),
        (message(0, (1, 0), &with(b"more")), "NOERROR, 2 records"),
    ] {
        assert_eq!(world.code(&bytes), expected, "{bytes:?}");
    }
    for dropped in [
        &[][..],
        &[0; 11],
        &message(0x8000, (1, 0), &plain),
        &message(0x8180, (0, 0), &[]),
    ] {
        assert_eq!(
            world.responder.respond(dropped, peer(), Transport::Udp),
            None
        );
    }
}

#[test]
fn hits_have_the_id_from_any_place_of_the_name() {
    let mut world = world();
    for (name, tag) in [
        (format!("{SERVER}.cb.example.com"), None),
        (format!("{SERVER}-{TAG}.cb.example.com"), Some(TAG)),
        (
            format!("a.b.xx{}-{TAG}yy.q.CB.example.com", SERVER.to_uppercase()),
            Some(TAG),
        ),
        // Whoever makes a target ask this server directly is heard as well.
        (format!("{SERVER}-{TAG}.example.org"), Some(TAG)),
    ] {
        let bytes = query(&name, TXT);
        world.ask(&bytes, Transport::Tcp);
        let hit = world.hits.try_recv().unwrap();
        assert_eq!(hit.server.to_string(), SERVER);
        assert_eq!(hit.tag.map(|it| it.to_string()).as_deref(), tag);
        let Kind::Dns(dns) = hit.kind else { panic!() };
        assert_eq!(
            (dns.name, dns.record_type, dns.message.to_vec()),
            (name, "TXT".to_owned(), bytes)
        );
    }
    for name in ["qrstuvwxyzabcdef.cb.example.com", "cb.example.com"] {
        world.ask(&query(name, A), Transport::Udp);
    }
    let guessed = format!("{SERVER}-44444444445555555555.cb.example.com");
    assert_eq!(world.code(&query(&guessed, A)), "NOERROR, 2 records");
    assert!(world.hits.try_recv().is_err());
    let id: ServerId = SERVER.parse().unwrap();
    let counts = &world.table.servers[&id].counts;
    assert_eq!(counts.unknown_tag.load(Ordering::Relaxed), 1);
    assert_eq!(world.totals.answered.load(Ordering::Relaxed), 7);
    assert_eq!(world.totals.unknown.load(Ordering::Relaxed), 2);
}

#[test]
fn hits_show_what_was_sent() {
    let mut world = world();
    let name: [&[u8]; 5] = [
        b"\0\x1b[\xe2\x80\xae. \\<b>",
        SERVER.as_bytes(),
        b"cb",
        b"EXAMPLE",
        b"com",
    ];
    let subnet = [&EDNS[..9], &[0, 11, 0, 8, 0, 7, 0, 1, 24, 0, 198, 51, 100]].concat();
    let bytes = [question(name, 65280, INTERNET), subnet].concat();
    let bytes = message(0x0100, (1, 1), &bytes);
    world.ask(&bytes, Transport::Udp);
    let hit = world.hits.try_recv().unwrap();
    assert_eq!(
        (hit.peer, hit.at, hit.tag),
        (peer(), SystemTime::UNIX_EPOCH, None)
    );
    assert_eq!(hit.answer, "NOERROR");
    let expected = Dns {
        transport: Transport::Udp,
        name: format!(r"\000\027[\226\128\174\.\032\\<b>.{SERVER}.cb.EXAMPLE.com"),
        record_type: "TYPE65280".to_owned(),
        client_subnet: Some(("198.51.100.0".parse().unwrap(), 24)),
        message: bytes.into(),
    };
    assert_eq!(hit.kind, Kind::Dns(expected));
}

#[test]
fn the_rate_limit_counts_answers_and_not_hits() {
    let mut world = world();
    let bytes = query(&format!("{SERVER}.cb.example.com"), A);
    let stranger = SocketAddr::from(([198, 51, 100, 7], 53));
    let start = Instant::now();
    let mut whole = 0;
    for _ in 0..500 {
        let answer = world.responder.respond(&bytes, stranger, Transport::Udp);
        let answer = answer.map(|it| Message::from_vec(&it).unwrap());
        let expected = match answer.map(|it| it.metadata.truncation) {
            Some(false) => "NOERROR, 2 records",
            Some(true) => "truncated (rate limit)",
            None => "none (rate limit)",
        };
        whole += u64::from(expected.starts_with("NOERROR"));
        assert_eq!(world.hits.try_recv().unwrap().answer, expected);
    }
    assert!(whole >= 50 && whole <= 50 * (start.elapsed().as_secs() + 2));
    let answer = world.responder.respond(&bytes, stranger, Transport::Tcp);
    let answer = Message::from_vec(&answer.unwrap()).unwrap();
    assert_eq!(answer.answers.len(), 2);
}

/// A name below one of the zones or elsewhere, of any bytes.
fn names() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let zone = prop_oneof![
        Just(vec![b"Cb".to_vec(), b"eXample".to_vec(), b"COM".to_vec()]),
        Just(vec![b"io".to_vec()]),
        Just(Vec::new()),
    ];
    (vec(vec(any::<u8>(), 1..20), 0..8), zone).prop_map(|(labels, zone)| [labels, zone].concat())
}

proptest! {
    #[test]
    fn a_question_comes_back_byte_for_byte_and_its_answer_is_small(
        name in names(),
        kind in prop_oneof![0..300_u16, any::<u16>()],
        class in prop_oneof![Just(INTERNET), any::<u16>()],
        flags in 0..0x0800_u16,
        has_edns: bool,
    ) {
        let question = question(&name, kind, class);
        let edns = if has_edns { EDNS } else { &[] };
        let bytes = message(flags, (1, has_edns.into()), &[&question, edns].concat());
        let world = world();
        for transport in [Transport::Udp, Transport::Tcp] {
            let answer = world.responder.respond(&bytes, peer(), transport).unwrap();
            prop_assert_eq!(&answer[HEADER..HEADER + question.len()], &question);
            prop_assert!(transport == Transport::Tcp || answer.len() <= (3 * bytes.len()).min(1232));
            let read = Message::from_vec(&answer).unwrap();
            prop_assert_eq!(read.edns.is_some(), has_edns);
            let is_whole = !read.answers.is_empty() || !read.authorities.is_empty();
            let is_refused = answer::summary(&read) == "REFUSED";
            prop_assert!(is_whole || is_refused || read.metadata.truncation);
            for record in [read.answers, read.authorities, read.additionals].concat() {
                prop_assert_eq!(record.ttl, 0);
            }
        }
    }

    #[test]
    fn any_bytes_get_a_small_answer_or_none(bytes in vec(any::<u8>(), 0..300)) {
        crate::fuzzing::dns(&bytes);
    }

    #[test]
    fn any_changed_query_gets_a_small_answer_or_none(
        name in names(),
        kind: u16,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let rest = [question(&name, kind, INTERNET), EDNS.to_vec()].concat();
        let mut bytes = message(0, (1, 1), &rest);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        crate::fuzzing::dns(&bytes);
    }
}

#[test]
fn record_types_have_their_names() {
    let mut world = world();
    for (kind, expected) in [(A, "A"), (ANY, "ANY"), (65, "HTTPS"), (999, "TYPE999")] {
        world.ask(
            &query(&format!("{SERVER}.cb.example.com"), kind),
            Transport::Tcp,
        );
        let Kind::Dns(dns) = world.hits.try_recv().unwrap().kind else {
            panic!()
        };
        assert_eq!(dns.record_type, expected);
        assert_eq!(RecordType::from(kind).to_string() == expected, kind != 999);
    }
}
