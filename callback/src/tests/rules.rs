//! Fixed answers, as `dig` and `curl` and bare sockets see them.

use super::*;
use crate::{Match, Noise, Rules};

fn of(name: &str, label: Option<&str>) -> Match {
    Match {
        name: name.to_owned(),
        label: label.map(str::to_owned),
        method: None,
        path: None,
    }
}

fn values(values: &[&str]) -> Vec<String> {
    values.iter().map(|it| (*it).to_owned()).collect()
}

fn rules() -> Rules {
    let mut rules = Rules::default();
    let rebind = values(&["203.0.113.1", "127.0.0.1"]);
    rules.add_dns(of("rebind", Some("rebind")), "A", &rebind, true);
    rules.add_dns(of("text", None), "TXT", &values(&[&"x".repeat(600)]), false);
    rules.add_dns(
        of("mail", None),
        "MX",
        &values(&["10 mail.example.com"]),
        false,
    );
    let caa = values(&["128 issue authority.example"]);
    rules.add_dns(of("caa", None), "CAA", &caa, false);
    let redirect = Match {
        method: Some("GET".to_owned()),
        path: Some("/to/*".to_owned()),
        ..of("redirect", None)
    };
    let headers = [("Location", "http://169.254.169.254/"), ("X-A", "1")];
    let delay = Duration::from_millis(1);
    rules.add_http(redirect, 307, headers.into_iter(), "moved".into(), delay);
    let slow = Match {
        path: Some("/slow".to_owned()),
        ..of("slow", None)
    };
    let delay = Duration::from_secs(30);
    rules.add_http(slow, 200, [].into_iter(), "late".into(), delay);
    let labelled = of("page", Some("page"));
    rules.add_http(labelled, 200, [].into_iter(), "<b>".into(), Duration::ZERO);
    rules.ignore = Noise {
        addresses: Vec::new(),
        user_agents: vec!["Scanner".to_owned()],
        types: vec!["ns".to_owned()],
    };
    rules
}

fn started() -> World {
    let world = World::start();
    set(&world, rules());
    world
}

fn set(world: &World, rules: Rules) {
    let mut changed = table();
    let server = changed.servers.values_mut().next().unwrap();
    server.rules = Arc::new(rules);
    world.table.send_replace(Arc::new(changed));
}

fn name(label: &str) -> String {
    format!("{label}{SERVER}-{TAG}.cb.example.com")
}

#[tokio::test]
async fn dig_gets_the_records_of_rules() {
    let mut world = started();
    for (arguments, expected, rule) in [
        (
            format!("{} A +short", name("rebind.")),
            "203.0.113.1",
            Some("rebind"),
        ),
        (
            format!("{} A +short", name("a.REBIND.b.")),
            "127.0.0.1",
            Some("rebind"),
        ),
        (
            format!("{} A +short", name("rebind.")),
            "203.0.113.1",
            Some("rebind"),
        ),
        (format!("{} A +short", name("other.")), "192.0.2.1", None),
        (
            format!("{} MX +short", name("")),
            "10 mail.example.com.",
            Some("mail"),
        ),
        (
            format!("{} CAA +short", name("")),
            "128 issue \"authority.example\"",
            Some("caa"),
        ),
    ] {
        let Some(answer) = world.dig("dig", &arguments) else {
            return;
        };
        assert_eq!(answer.trim(), expected, "{arguments}");
        assert_eq!(world.hit().await.rule.as_deref(), rule);
    }
}

#[tokio::test]
async fn a_long_answer_is_truncated_over_udp_and_whole_over_tcp() {
    let mut world = started();
    let mut asked = query(&name(""));
    let end = asked.len();
    asked[end - 3] = 16;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(&asked, world.callbacks.dns[0]).unwrap();
    let mut answer = [0; 2000];
    let length = socket.recv(&mut answer).unwrap();
    assert!(length <= 3 * asked.len(), "{length}");
    assert_eq!(answer[2] & 2, 2, "truncated");
    let framed = [&(end as u16).to_be_bytes(), asked.as_slice()].concat();
    let mut stream = TcpStream::connect(world.callbacks.dns[0]).await.unwrap();
    stream.write_all(&framed).await.unwrap();
    assert!(stream.read_u16().await.unwrap() > 600);
    assert_eq!(world.hit().await.answer, "NOERROR, truncated");
    assert_eq!(world.hit().await.answer, "NOERROR, 1 record");
}

#[tokio::test]
async fn requests_get_the_answer_of_the_first_rule_that_fits() {
    let mut world = started();
    let address = world.callbacks.http[0];
    let mut ask = async |line: &str, host: String| {
        let request = format!("{line} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        let answer = String::from_utf8(talk(address, request.as_bytes()).await).unwrap();
        (answer, world.hit().await)
    };
    let (answer, hit) = ask("GET /to/there?x=evil", name("")).await;
    assert!(answer.starts_with("HTTP/1.1 307 "), "{answer}");
    assert!(answer.contains("\r\nlocation: http://169.254.169.254/\r\nx-a: 1\r\n"));
    assert!(answer.ends_with("\r\n\r\nmoved") && !answer.contains("evil"));
    assert_eq!(
        (hit.answer.as_str(), hit.rule.as_deref()),
        ("307", Some("redirect"))
    );
    let (answer, hit) = ask("GET /", name("page.")).await;
    assert!(answer.ends_with("\r\n\r\n<b>"), "{answer}");
    assert_eq!(hit.rule.as_deref(), Some("page"));
    for (line, host) in [("POST /to/there", name("")), ("GET /to", name("other."))] {
        let (answer, hit) = ask(line, host).await;
        assert!(answer.contains("33333333332222222222"), "{answer}");
        assert_eq!(hit.rule, None);
    }
}

#[tokio::test]
async fn ignored_requests_are_answered_and_not_reported() {
    let mut world = started();
    let host = name("");
    let request =
        |agent: &str| format!("GET / HTTP/1.1\r\nhost: {host}\r\nuser-agent: {agent}\r\n\r\n");
    let answer = talk(world.callbacks.http[0], request("my scanner/1").as_bytes()).await;
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    let mut asked = query(&host);
    let end = asked.len();
    asked[end - 3] = 2;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(&asked, world.callbacks.dns[0]).unwrap();
    socket.recv(&mut [0; 2000]).unwrap();
    talk(world.callbacks.http[0], request("browser").as_bytes()).await;
    let Kind::Http(http) = world.hit().await.kind else {
        panic!()
    };
    assert!(http.head.ends_with(b"user-agent: browser\r\n\r\n"));
}

#[tokio::test]
async fn ignored_addresses_are_not_reported() {
    let mut world = World::start();
    let mut rules = Rules::default();
    rules.ignore.addresses = vec!["127.0.0.0/8".parse().unwrap()];
    set(&world, rules);
    ask(world.callbacks.dns[0], &name("first."));
    set(&world, Rules::default());
    ask(world.callbacks.dns[0], &name("second."));
    let Kind::Dns(dns) = world.hit().await.kind else {
        panic!()
    };
    assert_eq!(dns.name, name("second."));
}

#[tokio::test]
async fn a_delayed_request_is_reported_at_once_and_a_stop_ends_the_delay() {
    let mut world = started();
    let mut stream = TcpStream::connect(world.callbacks.http[0]).await.unwrap();
    let request = format!("GET /slow HTTP/1.1\r\nhost: {}\r\n\r\n", name(""));
    stream.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(world.hit().await.rule.as_deref(), Some("slow"));
    world.callbacks.stop().await;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("\r\n\r\nlate"), "{answer}");
}
