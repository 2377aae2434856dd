//! Payloads in use: a step renders what a person has stored, and a kill loses no version.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::callbacks::{ask, configuration};
use crate::support::port::Port;
use crate::support::{World, eventually};

const WORKFLOW: &str = r#"
scans:
  probe:
    on: {dispatch: {}}
    steps:
      - run: |
          printf 'one.example\ntwo&three.example\n' > targets.txt
          everscan payload render xss --for-each targets.txt > rendered.txt
          everscan blob upload -s rendered.txt -d results/
          ! everscan payload delete xss img.html
"#;

#[test]
fn a_step_renders_payloads_for_its_targets() {
    let mut world = World::with_workflow("probe.yaml", WORKFLOW);
    world.everscan(&[
        "payload",
        "group",
        "create",
        "xss",
        "--project",
        "main",
        "--variable",
        "TARGET",
        "--variable",
        "ID=7",
        "--placeholder",
        "ID={{id}}",
    ]);
    let body = "<img src=\"//%%TARGET|url%%/{{id}}?${{ x }}\">\r\n";
    let file = world.path("img.html");
    std::fs::write(&file, body).unwrap();
    let file = file.to_str().unwrap();
    let create = ["payload", "create", "xss", "img.html", file];
    assert_eq!(world.everscan(&create), "img.html@1\n");
    assert!(!world.output("everscan", &create).status.success());
    let run = world.output(
        "everscan",
        &["scan", "dispatch", "probe", "probe", "--follow"],
    );
    assert!(run.status.success(), "{run:?}");
    assert_eq!(
        world.everscan(&["blob", "cat", "results/rendered.txt"]),
        "<img src=\"//one.example/7?${{ x }}\">\r\n\n<img src=\"//two%26three.example/7?${{ x }}\">\r\n\n"
    );
    std::fs::write(file, "second").unwrap();
    assert_eq!(
        world.everscan(&["payload", "edit", "xss", "img.html", file]),
        "img.html@2\n"
    );
    world.kill_daemon();
    world.start_daemon();
    assert_eq!(
        world.everscan(&["payload", "show", "xss", "img.html"]),
        "second"
    );
    assert_eq!(
        world.everscan(&["payload", "show", "xss", "img.html@1"]),
        body
    );
    world.everscan(&["payload", "group", "delete", "xss"]);
    assert_eq!(
        world.json(&["payload", "group", "list"])["items"],
        serde_json::json!([])
    );
}

/// Mints names for its targets, without other rights than a job has.
const PLANT: &str = r#"
scans:
  plant:
    on: {dispatch: {inputs: {server: {type: string}}}}
    env: {SERVER: "${{ inputs.server }}"}
    steps:
      - run: |
          everscan payload render probes --callback "$SERVER" --mint --for one.example --for two.example > names.txt
          everscan blob upload -s names.txt -d results/
"#;

#[test]
fn a_hit_of_a_payload_that_a_step_rendered_tells_payload_and_target() {
    let (dns, http) = (Port::hold(), Port::hold());
    let mut world = World::with_workflow("plant.yaml", PLANT);
    world.stop_daemon();
    world.daemon_config = Some(configuration("cb.test", dns.number(), http.number()));
    world.start_daemon();
    let server = world.json(&["callback", "create", "oast", "--project", "main"]);
    let server = server["id"].as_str().unwrap();
    let group = ["payload", "group", "create", "probes", "--project", "main"];
    world.everscan(&[&group[..], &["--variable", "CALLBACK"]].concat());
    let file = world.path("host");
    std::fs::write(&file, "%%CALLBACK%%").unwrap();
    world.everscan(&[
        "payload",
        "create",
        "probes",
        "host",
        file.to_str().unwrap(),
    ]);
    let input = format!("server={server}");
    let dispatch = [
        "scan", "dispatch", "plant", "plant", "--follow", "--input", &input,
    ];
    let run = world.output("everscan", &dispatch);
    assert!(run.status.success(), "{run:?}");
    let names = world.everscan(&["blob", "cat", "results/names.txt"]);
    let names: Vec<&str> = names.lines().collect();
    assert_eq!(names.len(), 2);
    let hits = || world.json(&["callback", "list", "oast", "--payload", "probes/host"]);
    eventually("the look-up is recorded", || {
        ask(dns.number(), names[1]);
        hits()["items"]
            .as_array()
            .is_some_and(|items| !items.is_empty())
    });
    let expected = serde_json::json!({
        "group": "probes", "name": "host", "version": 1, "target": "two.example",
    });
    assert_eq!(hits()["items"][0]["payload"], expected);
}

#[test]
fn servers_answer_the_payloads_of_a_served_group_of_their_project_only() {
    let (dns, http) = (Port::hold(), Port::hold());
    let mut world = World::with_workflow("probe.yaml", WORKFLOW);
    world.stop_daemon();
    world.daemon_config = Some(configuration("cb.test", dns.number(), http.number()));
    world.start_daemon();
    let server = world.json(&["callback", "create", "oast", "--project", "main"]);
    let server = server["id"].as_str().unwrap();
    world.everscan(&["payload", "group", "create", "xss", "--project", "main"]);
    let large = vec![b'%'; 10 * 1024 * 1024];
    let file = world.path("payload");
    for (name, body) in [
        ("a.html", &b"<script>1</script>"[..]),
        ("a.html", b"\0two"),
        ("large", &large),
    ] {
        std::fs::write(&file, body).unwrap();
        let of = ["xss", name, file.to_str().unwrap(), "--type", "text/html"];
        let stored = world.output("everscan", &[&["payload", "create"][..], &of].concat());
        if !stored.status.success() {
            world.everscan(&[&["payload", "edit"][..], &of].concat());
        }
    }
    let get = |path: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", http.number())).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {server}.cb.test\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let head = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
        let body = answer.split_off(head + 4);
        (String::from_utf8(answer).unwrap(), body)
    };
    let reversed: Vec<u8> = server.bytes().rev().collect();
    eventually("the server answers", || get("/").1 == reversed);
    for private in ["/-/xss/a.html", "/-/other/a.html"] {
        assert_eq!(get(private).1, reversed, "{private}");
    }
    world.everscan(&["payload", "group", "change", "xss", "--serve", "true"]);
    eventually("the payload is served", || {
        get("/-/xss/a.html").1 == b"\0two"
    });
    let (head, first) = get("/-/xss/a.html@1");
    assert_eq!(first, b"<script>1</script>");
    assert!(head.contains("\r\ncontent-type: text/html\r\n"), "{head}");
    assert!(get("/-/xss/large").1 == large);
    for missing in ["/-/xss/a.html@3", "/-/xss/b", "/-/xss/"] {
        assert_eq!(get(missing).1, reversed, "{missing}");
    }
    eventually("the request is recorded", || {
        let hits = world.json(&["callback", "list", "oast", "--text", "a.html@1"]);
        hits["items"][0]["answer"] == "200 xss/a.html@1"
    });
    world.everscan(&["payload", "group", "change", "xss", "--serve", "false"]);
    assert_eq!(get("/-/xss/a.html").1, reversed);
}
