//! Who is locked out gets a link from the state folder, while the daemon is stopped.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::World;

#[test]
fn a_link_of_the_stopped_daemon_sets_a_new_password_once() {
    let mut world = World::new();
    world.init_repository();
    world.start_daemon();
    let state = world.path("state").display().to_string();
    let reset = |world: &World, name: &str| {
        let output = world.output("everscand", &["user", "reset", name, "--state-dir", &state]);
        let (out, err) = (output.stdout, output.stderr);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(out), text(err))
    };
    let (code, printed, _) = reset(&world, "owner");
    assert_eq!((code, printed.as_str()), (Some(10), ""), "the daemon runs");
    world.stop_daemon();
    let (code, _, error) = reset(&world, "nobody");
    assert_eq!(code, Some(2), "{error}");
    assert!(
        error.contains("hint: the state folder has these people: owner"),
        "{error}"
    );
    let (code, printed, error) = reset(&world, "owner");
    assert_eq!(code, Some(0), "{error}");
    let link = printed.trim().strip_prefix("/welcome/").unwrap();
    assert!(!error.contains(link), "{error}");

    world.start_daemon();
    let body = format!(r#"{{"link":"{link}","password":"correct horse battery"}}"#);
    assert_eq!(sign_in(&world, &body), 201);
    assert_eq!(sign_in(&world, &body), 404, "once");
    let body = r#"{"user":"owner","password":"correct horse battery"}"#;
    assert_eq!(sign_in(&world, body), 201);
    let audit = world.json(&["audit", "--kind", "user_link_created"]);
    let line = &audit["items"][0];
    assert_eq!(line["path"], "user reset", "{audit}");
    assert_eq!(line["actions"][0]["name"], "owner", "{audit}");
}

/// The status of the answer.
pub(crate) fn sign_in(world: &World, body: &str) -> u16 {
    let mut stream = TcpStream::connect(world.address()).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /v0/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer[9..12].parse().unwrap()
}
