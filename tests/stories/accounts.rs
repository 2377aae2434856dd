//! A person's way: the invitation, the password, the login on the command line, and signing out everywhere.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Output, Stdio};

use serde_json::json;

use crate::support::World;

const WORKFLOW: &str = "scans: { wait: { on: { dispatch: {} }, steps: [ { run: 'true' } ] } }\n";

const PASSWORD: &str = "correct horse battery staple";

/// Sends a request as a page of the daemon does. Returns the status, the headers and the body.
fn post(world: &World, path: &str, kind: &str, cookie: &str, body: &str) -> (u16, String, String) {
    let address = world.address();
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.0\r\nhost: {address}\r\nsec-fetch-site: same-origin\r\ncookie: {cookie}\r\n\
         content-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}

/// Runs `everscan` with the saved login.
fn as_person(world: &World, line: &str) -> Output {
    let mut command = world.command("everscan");
    command.args(line.split(' ')).env_remove("SERVICE_TOKEN");
    command.output().unwrap()
}

#[test]
fn an_invited_person_signs_a_device_in_and_signs_out_everywhere() {
    let mut world = World::with_workflow("hello.yaml", WORKFLOW);
    let projects = world.json(&["project", "list"]);
    let project = projects["items"][0]["name"].as_str().unwrap();
    let role = format!("{project}=operator");
    let link = world.everscan(&["user", "invite", "ann", "--role", &role]);
    let secret = link.trim().rsplit('/').next().unwrap();
    let body = json!({"link": secret, "password": PASSWORD}).to_string();
    let accept = || post(&world, "/v0/sessions", "application/json", "", &body);
    let (status, head, answer) = accept();
    assert_eq!(status, 201, "{answer}");
    let cookies = head
        .lines()
        .filter_map(|line| line.strip_prefix("set-cookie: "));
    let cookies: Vec<_> = cookies.filter_map(|it| it.split(';').next()).collect();
    let cookie = cookies.join("; ");
    assert!(accept().0 >= 400, "an invitation is good once");

    let mut login = world.command("everscan");
    login.arg("login").env_remove("SERVICE_TOKEN");
    let mut login = login.stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(login.stderr.take().unwrap());
    let mut said = said.lines().map(Result::unwrap);
    let code = said.find_map(|line| Some(line.split_once("the code ")?.1.to_owned()));
    let form = format!("code={}", code.unwrap());
    let kind = "application/x-www-form-urlencoded";
    let (status, _, page) = post(&world, "/device", kind, &cookie, &form);
    assert_eq!(status, 200, "{page}");
    assert_eq!(said.last().as_deref(), Some("signed in as ann"));
    assert!(login.wait().unwrap().success());

    let printed = |line: &str| {
        let output = as_person(&world, line);
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(printed("whoami").contains(&role));
    printed("scan dispatch hello wait");
    assert_eq!(printed("session list").lines().count(), 3);
    // An operator changes no vars and sees no users.
    assert_eq!(as_person(&world, "var set A 1").status.code(), Some(8));
    assert_eq!(as_person(&world, "user list").status.code(), Some(8));

    printed("logout --everywhere");
    let output = as_person(&world, "whoami");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{said}");
    assert!(said.contains("sign in with `everscan login`"), "{said}");
    let again = json!({"user": "ann", "password": PASSWORD}).to_string();
    let (status, _, _) = post(&world, "/v0/sessions", "application/json", "", &again);
    assert_eq!(status, 201);
    world.stop_daemon();
}
