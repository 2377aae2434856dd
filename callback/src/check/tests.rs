use std::collections::HashMap;
use std::sync::Arc;

use hickory_proto::rr::rdata::{A, NS};
use listen::{Certificate, TlsFiles};
use rcgen::{CertificateParams, KeyPair};
use tokio::net::UdpSocket;
use tokio::sync::watch;

use super::*;

const PUBLIC: &str = "192.0.2.1";

/// What is answered to a question, by its type and name. `look-up` stands for all names that are made for a look-up.
type Known = HashMap<&'static str, fn(&mut Message)>;

fn name(text: &str) -> Name {
    Name::from_ascii(format!("{text}.")).unwrap()
}

fn ns(owner: &str, server: &str) -> Record {
    Record::from_rdata(name(owner), 0, RData::NS(NS(name(server))))
}

fn a(owner: &str, address: &str) -> Record {
    Record::from_rdata(name(owner), 0, RData::A(A(address.parse().unwrap())))
}

/// The resolver and the servers above the zone, in one. It answers as long as the runtime runs.
async fn serve(known: Known) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let known = Arc::new(known);
    tokio::spawn(async move {
        let mut bytes = [0; 2000];
        while let Ok((length, peer)) = socket.recv_from(&mut bytes).await {
            let asked = Message::from_vec(&bytes[..length]).unwrap();
            let query = asked.queries[0].clone();
            let mut answer = Message::response(asked.metadata.id, asked.metadata.op_code);
            let mut key = format!("{} {}", query.query_type, query.name);
            if key.starts_with("A check-") {
                key = "look-up".to_owned();
                answer.metadata.response_code = ResponseCode::ServFail;
            }
            if let Some(fill) = known.get(key.as_str()) {
                fill(&mut answer);
                // The name of a look-up is a new one each time.
                for record in &mut answer.answers {
                    if record.name == name("look-up") {
                        record.name = query.name.clone();
                    }
                }
            }
            answer.add_query(query);
            let bytes = answer.to_vec().unwrap();
            socket.send_to(&bytes, peer).await.unwrap();
        }
    });
    address
}

fn checks(resolver: SocketAddr) -> Checks {
    Checks {
        zones: vec!["cb.example.com".parse().unwrap()],
        public: vec![PUBLIC.parse().unwrap()],
        dns: vec!["192.0.2.1:53".parse().unwrap()],
        http: vec!["192.0.2.1:80".parse().unwrap()],
        https: Vec::new(),
        tls: None,
        resolver: Some(resolver),
        resolv_conf: "/missing/resolv.conf".into(),
        server_port: resolver.port(),
    }
}

/// Everything as it should be.
fn delegated() -> Known {
    let mut known = Known::new();
    known.insert("NS example.com.", |it| {
        it.add_answer(ns("example.com", "a.example.net"));
    });
    known.insert("A a.example.net.", |it| {
        it.add_answer(a("a.example.net", "127.0.0.1"));
    });
    known.insert("NS cb.example.com.", |it| {
        for server in ["ns1.cb.example.com", "ns2.cb.example.com"] {
            it.add_authority(ns("cb.example.com", server));
            it.add_additional(a(server, PUBLIC));
        }
    });
    known.insert("look-up", |it| {
        it.metadata.response_code = ResponseCode::NoError;
        it.add_answer(a("look-up", PUBLIC));
    });
    known
}

fn now() -> SystemTime {
    SystemTime::now()
}

/// What is bad, a line for each.
async fn bad(checks: &Checks) -> String {
    let found = checks.run(now()).await.into_iter();
    let bad = found.filter(|it| it.outcome == Outcome::Bad);
    let lines: Vec<_> = bad.map(|it| it.text).collect();
    lines.join("\n")
}

#[tokio::test]
async fn a_delegated_zone_is_good_and_what_cannot_be_seen_is_said() {
    let checks = checks(serve(delegated()).await);
    let found = checks.run(now()).await;
    assert!(
        found.iter().all(|it| it.outcome != Outcome::Bad),
        "{found:?}"
    );
    let of_zone = found.iter().filter(|it| it.zone.is_some());
    let texts: Vec<_> = of_zone.map(|it| it.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "example.com delegates the zone to ns1.cb.example.com, ns2.cb.example.com",
            "the name server ns1.cb.example.com is this daemon",
            "the name server ns2.cb.example.com is this daemon",
            "the resolver finds names in the zone, with the addresses of `public`",
        ]
    );
    let last = found.last().unwrap();
    assert_eq!((last.outcome, &last.zone), (Outcome::Unknown, &None));
    assert!(last.text.starts_with("whether the internet reaches"));
}

#[tokio::test]
async fn what_is_wrong_with_a_delegation_is_named() {
    type Case = (&'static str, Option<fn(&mut Message)>, &'static str);
    let cases: [Case; 7] = [
        (
            "NS cb.example.com.",
            None,
            "example.com does not delegate the zone: add the records `cb.example.com NS ns1.cb.example.com`",
        ),
        (
            "NS cb.example.com.",
            Some(|it| {
                it.add_authority(ns("cb.example.com", "ns1.cb.example.com"));
            }),
            "example.com has no address of ns1.cb.example.com (glue)",
        ),
        (
            "NS cb.example.com.",
            Some(|it| {
                it.add_authority(ns("cb.example.com", "ns1.cb.example.com"));
                it.add_additional(a("ns1.cb.example.com", "192.0.2.9"));
            }),
            "the name server ns1.cb.example.com has the address 192.0.2.9, which is not in `public`",
        ),
        (
            "NS cb.example.com.",
            Some(|it| {
                it.add_answer(ns("cb.example.com", "old.example.net"));
            }),
            "the name server old.example.net has no address",
        ),
        ("NS example.com.", None, "finds no domain above the zone"),
        (
            "look-up",
            None,
            "the resolver gets no answer from the name servers of the zone: is port 53 open",
        ),
        (
            "look-up",
            Some(|it| {
                it.metadata.response_code = ResponseCode::NoError;
                it.add_answer(a("look-up", "198.51.100.7"));
            }),
            "the resolver finds 198.51.100.7 for a name in the zone",
        ),
    ];
    for (asked, answer, expected) in cases {
        let mut known = delegated();
        match answer {
            Some(answer) => known.insert(asked, answer),
            None => known.remove(asked),
        };
        let bad = bad(&checks(serve(known).await)).await;
        assert!(bad.contains(expected), "{asked}: {bad}");
        assert_eq!(bad.lines().count(), 1, "{bad}");
    }
}

#[tokio::test]
async fn the_resolver_is_that_of_the_machine_and_is_not_this_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("resolv.conf");
    let mut checks = checks("127.0.0.1:1".parse().unwrap());
    checks.zones.clear();
    checks.resolver = None;
    checks.resolv_conf = file.clone();
    for (text, expected) in [
        (None, "cannot be read"),
        (
            Some("search example.com\n# nameserver 192.0.2.7\n"),
            "names no name server",
        ),
        (
            Some("nameserver 192.0.2.1\n"),
            "192.0.2.1:53, which is this daemon",
        ),
    ] {
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let bad = bad(&checks).await;
        assert!(bad.contains(expected), "{bad}");
    }
    std::fs::write(
        &file,
        "options edns0\nnameserver 127.0.0.53\nnameserver ::1\n",
    )
    .unwrap();
    let found = checks.run(now()).await;
    assert!(
        found.iter().all(|it| it.outcome != Outcome::Bad),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|it| it.text.starts_with("systemd-resolved is asked"))
    );
    checks.dns = vec!["0.0.0.0:53".parse().unwrap()];
    assert!(
        bad(&checks)
            .await
            .contains("127.0.0.53:53, which is this daemon")
    );
}

#[tokio::test]
async fn ports_and_the_certificate_are_checked() {
    let certificate = |names: &[&str], days: (i64, i64)| {
        let names = names.iter().map(|name| (*name).to_owned());
        let mut params = CertificateParams::new(names.collect::<Vec<_>>()).unwrap();
        let at = |days: i64| {
            rcgen::date_time_ymd(2026, 1, 1) + std::time::Duration::from_secs(86_400) * days as u32
        };
        (params.not_before, params.not_after) = (at(days.0), at(days.1));
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let named = TlsFiles {
            certificate: "certificate".into(),
            key: "key".into(),
        };
        Certificate::read(pem.as_bytes(), key.serialize_pem().as_bytes(), &named).unwrap()
    };
    // 100 days after 2026 began.
    let now = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_767_225_600 + 8_640_000);
    let both = &["cb.example.com", "*.cb.example.com"][..];
    for (certificate, expected) in [
        (None, (Outcome::Bad, "HTTPS has no certificate yet")),
        (
            Some(certificate(&both[..1], (0, 200))),
            (Outcome::Bad, "the certificate is not for *.cb.example.com"),
        ),
        (
            Some(certificate(both, (0, 99))),
            (
                Outcome::Bad,
                "the certificate has expired at 2026-04-10 00:00 UTC",
            ),
        ),
        (
            Some(certificate(both, (101, 200))),
            (Outcome::Bad, "the certificate is not valid before"),
        ),
        (
            Some(certificate(both, (0, 200))),
            (
                Outcome::Good,
                "the certificate is valid until 2026-07-20 00:00 UTC",
            ),
        ),
    ] {
        let mut checks = checks("127.0.0.1:1".parse().unwrap());
        checks.zones.truncate(1);
        checks.resolver = None;
        checks.https = vec!["192.0.2.1:8443".parse().unwrap()];
        checks.tls = Some(ServerTls::new(watch::channel(certificate).1));
        let found = checks.run(now).await;
        let (outcome, text) = expected;
        assert!(
            found
                .iter()
                .any(|it| it.outcome == outcome && it.text.starts_with(text)),
            "{found:?}"
        );
        let is_forwarded =
            |it: &Finding| it.outcome == Outcome::Unknown && it.text.contains("pass port 443");
        assert!(found.iter().any(is_forwarded), "{found:?}");
        assert!(
            found
                .iter()
                .any(|it| it.text == "DNS listens on 192.0.2.1:53")
        );
    }
}
