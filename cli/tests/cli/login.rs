//! Signing a device in and out, and which credential a command uses.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use wire::{CreatedSession, CredentialKind, DeviceLogin, Me, Role, Session};

use crate::everscan::{Run, command, finished};
use crate::fixtures::{at, id};
use crate::reads::check;
use crate::server::{Reply, Server};
use crate::snapshot;

const SECRET: &str = "evd_secret";

pub(crate) fn session() -> Session {
    Session {
        id: id(11),
        device: "everscan on \u{1b}[31mlaptop".to_owned(),
        token: None,
        address: "192.0.2.7".parse().unwrap(),
        created_at: at(0),
        seen_at: at(3_600),
        expires_at: at(600_000),
        current: true,
    }
}

fn me() -> Me {
    Me {
        user: Some("ann".to_owned()),
        administrator: false,
        roles: [
            ("infra".to_owned(), Role::Operator),
            ("web".to_owned(), Role::Viewer),
        ]
        .into(),
        credential: CredentialKind::Session,
        name: "everscan on laptop".to_owned(),
        scopes: vec!["job:read".to_owned(), "dispatch".to_owned()],
        projects: None,
        expires_at: Some(at(600_000)),
    }
}

fn begun() -> Reply {
    Reply::json(&DeviceLogin {
        device_code: "hush-device".to_owned(),
        user_code: "ABCD-EFGH".to_owned(),
        url_path: "/device?code=ABCD-EFGH".to_owned(),
        expires_in_seconds: 600,
    })
    .status(201)
}

fn confirmed() -> Reply {
    Reply::json(&CreatedSession {
        session: session(),
        secret: Some(SECRET.to_owned()),
    })
    .status(201)
}

fn pending() -> Reply {
    Reply::problem(409, "login_pending", "nobody has confirmed it yet", None)
}

fn unauthorized() -> Reply {
    Reply::problem(401, "unauthorized", "this needs a valid token", None)
}

fn no_such_code() -> Reply {
    Reply::problem(404, "not_found", "this code was used or has expired", None)
}

fn no_items() -> Reply {
    Reply::bytes(r#"{"items":[]}"#)
}

/// The home of a person.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn run(&self, url: &str, line: &str) -> Run {
        self.run_with(url, line, &[])
    }

    fn run_with(&self, url: &str, line: &str, variables: &[(&str, &str)]) -> Run {
        let mut command = command(line);
        command.env("SERVICE_URL", url).env("HOME", self.0.path());
        command.envs(variables.iter().copied());
        finished(command.output().unwrap())
    }

    fn logins(&self) -> PathBuf {
        self.0.path().join(".config/everscan/logins")
    }

    fn files(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.logins()) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// A home with the login of a server that answers with these replies.
    fn signed_in(replies: impl IntoIterator<Item = Reply>) -> (Self, Server) {
        let home = Self::new();
        let first = [begun(), confirmed(), Reply::json(&me())];
        let replies: Vec<_> = first.into_iter().chain(replies).collect();
        let server = Server::start(replies);
        let output = home.run(&server.url, "login");
        assert_eq!(output.code, 0, "{}", output.stderr);
        (home, server)
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_login_waits_for_a_person_and_saves_a_secret_that_only_its_owner_can_read() {
    let home = Home::new();
    let unavailable = || Reply::problem(503, "unavailable", "the daemon is stopping", None);
    let server = Server::start([
        begun(),
        pending(),
        unavailable(),
        confirmed(),
        Reply::json(&me()),
        no_items(),
    ]);
    let output = home.run(&server.url, "login");
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    assert!(!output.stderr.contains("hush"), "{}", output.stderr);
    assert!(!output.stderr.contains(SECRET), "{}", output.stderr);
    let shown = output.stderr.replace(&server.url, "URL");
    snapshot::check_listing("login-confirmed", &shown);

    assert_eq!(home.run(&server.url, "runner list").code, 0);
    let seen = server.seen();
    let lines: Vec<_> = seen.iter().map(|request| request.line.as_str()).collect();
    let asked = "POST /v0/sessions";
    let begin = "POST /v0/device-logins";
    let list = "GET /v0/runners";
    assert_eq!(lines, [begin, asked, asked, asked, "GET /v0/me", list]);
    assert!(seen[0].body.contains(r#"{"device":"everscan on "#));
    assert_eq!(seen[1].body, r#"{"device_code":"hush-device"}"#);
    let bearer = format!("Bearer {SECRET}");
    let used: Vec<_> = seen.iter().map(|it| it.token.as_deref()).collect();
    assert_eq!(used[..4], [None; 4]);
    assert_eq!(used[4..], [Some(bearer.as_str()); 2]);

    let files = home.files();
    assert_eq!((files.len(), mode(&files[0])), (1, 0o600));
    assert_eq!(mode(&home.logins()), 0o700);
}

#[test]
fn a_later_login_replaces_an_earlier_one() {
    let again = CreatedSession {
        session: session(),
        secret: Some("evd_later".to_owned()),
    };
    let again = Reply::json(&again).status(201);
    let replies = [begun(), again, Reply::json(&me()), no_items()];
    let (home, server) = Home::signed_in(replies);
    assert_eq!(home.run(&server.url, "login").code, 0);
    assert_eq!(home.run(&server.url, "runner list").code, 0);
    let used = server.seen().pop().unwrap().token;
    assert_eq!(used.as_deref(), Some("Bearer evd_later"));
    assert_eq!(home.files().len(), 1);
}

#[test]
fn a_token_wins_over_a_login_and_a_step_and_another_daemon_have_none() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "from-file\n").unwrap();
    let file = file.path().to_str().unwrap();
    let flag = format!("runner list --token-file {file}");
    let plain = "runner list";
    let config = tempfile::tempdir().unwrap();
    let config = config.path().to_str().unwrap();
    let job = id(1).to_string();
    type Variables<'a> = &'a [(&'a str, &'a str)];
    let cases: &[(&str, Variables<'_>, Option<&str>)] = &[
        (plain, &[], Some("Bearer evd_secret")),
        (plain, &[("SERVICE_TOKEN", "t")], Some("Bearer t")),
        (
            plain,
            &[("SERVICE_TOKEN_FILE", file)],
            Some("Bearer from-file"),
        ),
        (&flag, &[("SERVICE_TOKEN", "t")], Some("Bearer from-file")),
        (plain, &[("SERVICE_TOKEN", "")], Some("Bearer evd_secret")),
        (plain, &[("SERVICE_JOB_ID", &job)], None),
        (plain, &[("XDG_CONFIG_HOME", config)], None),
    ];
    let (home, server) = Home::signed_in(cases.iter().map(|_| no_items()));
    for (line, variables, expected) in cases {
        let output = home.run_with(&server.url, line, variables);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let used = server.seen().pop().unwrap().token;
        assert_eq!(used.as_deref(), *expected, "{line} {variables:?}");
    }
    let other = Server::start([no_items()]);
    assert_eq!(home.run(&other.url, plain).code, 0);
    assert_eq!(other.seen()[0].token, None);
}

#[test]
fn the_address_of_the_daemon_may_end_with_a_slash() {
    let (home, server) = Home::signed_in([no_items()]);
    let output = home.run(&format!("{}/", server.url), "runner list");
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(server.seen().pop().unwrap().token.is_some());
}

#[test]
fn a_refusal_says_how_to_sign_in() {
    let (home, server) = Home::signed_in([unauthorized(), unauthorized()]);
    let hint = |output: &Run| {
        let (_, hint) = output.stderr.split_once("hint: ").unwrap();
        hint.to_owned()
    };
    let ended = home.run(&server.url, "runner list");
    assert_eq!(ended.code, 8);
    assert!(ended.stderr.contains("request: r-1"), "{}", ended.stderr);
    snapshot::check_listing("login-ended", &hint(&ended));
    let token = home.run_with(&server.url, "runner list", &[("SERVICE_TOKEN", "t")]);
    snapshot::check_listing("login-token", &hint(&token));
    let server = Server::start([unauthorized()]);
    let nothing = Home::new().run(&server.url, "runner list");
    snapshot::check_listing("login-nothing", &hint(&nothing));
}

#[test]
fn a_login_that_nobody_confirms_saves_nothing() {
    let short = DeviceLogin {
        device_code: "hush-device".to_owned(),
        user_code: "ABCD-EFGH".to_owned(),
        url_path: "/device?code=ABCD-EFGH".to_owned(),
        expires_in_seconds: 0,
    };
    for replies in [
        vec![begun(), pending(), no_such_code()],
        vec![Reply::json(&short).status(201)],
    ] {
        let home = Home::new();
        let server = Server::start(replies);
        let output = home.run(&server.url, "login");
        assert_eq!((output.code, output.stdout.as_str()), (8, ""));
        let (_, error) = output.stderr.split_once("error: ").unwrap();
        snapshot::check_listing("login-refused", error);
        assert!(home.files().is_empty());
    }
}

#[test]
fn a_login_that_no_command_uses_is_reported() {
    let server = Server::start([begun(), confirmed(), Reply::json(&me())]);
    let home = Home::new();
    let output = home.run_with(&server.url, "login", &[("SERVICE_TOKEN", "t")]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let warning = "warning: other commands do not use this login";
    assert!(output.stderr.contains(warning), "{}", output.stderr);
}

#[test]
fn a_login_needs_a_place_and_a_connection_that_nobody_else_reads() {
    // Nothing is sent: no server is there.
    let output = Home::new().run("http://everscan.invalid", "login");
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("plain HTTP"), "{}", output.stderr);
    let mut without_home = command("login");
    without_home.env("SERVICE_URL", "http://127.0.0.1:1");
    let output = finished(without_home.output().unwrap());
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("set HOME"), "{}", output.stderr);
}

#[test]
fn a_damaged_login_is_named() {
    let (home, server) = Home::signed_in([]);
    let file = home.files().remove(0);
    std::fs::write(&file, "{").unwrap();
    let output = home.run(&server.url, "runner list");
    assert_eq!(output.code, 2);
    for part in [file.to_str().unwrap(), "`everscan login`"] {
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
}

#[test]
fn a_logout_ends_the_session_and_forgets_it() {
    let broken = || Reply::problem(500, "internal", "a defect", None);
    for (reply, code, kept) in [
        (Reply::bytes("").status(204), 0, 0),
        // The session has ended already.
        (unauthorized(), 0, 0),
        (broken(), 9, 1),
    ] {
        let (home, server) = Home::signed_in([reply]);
        let output = home.run(&server.url, "logout");
        assert_eq!(output.code, code, "{}", output.stderr);
        assert_eq!(home.files().len(), kept);
        let request = server.seen().pop().unwrap();
        assert_eq!(request.line, format!("DELETE /v0/sessions/{}", id(11)));
        assert_eq!(request.token.as_deref(), Some("Bearer evd_secret"));
    }
    let output = Home::new().run("http://127.0.0.1:1", "logout");
    let none = "no login is saved for http://127.0.0.1:1\n";
    assert_eq!((output.code, output.stderr.as_str()), (0, none));
}

#[test]
fn a_logout_everywhere_ends_all_sessions_and_tokens_if_asked() {
    for (line, request, said) in [
        (
            "logout --everywhere",
            "DELETE /v0/sessions",
            "signed out everywhere; your tokens stay valid\n",
        ),
        (
            "logout --everywhere --tokens",
            "DELETE /v0/sessions?tokens=true",
            "signed out everywhere, and your tokens are revoked\n",
        ),
    ] {
        let ended = || Reply::bytes("").status(204);
        let (home, server) = Home::signed_in([ended(), unauthorized()]);
        let output = home.run(&server.url, line);
        assert_eq!((output.code, output.stderr.as_str()), (0, said));
        assert!(server.lines().iter().any(|line| line == request));
        assert!(home.files().is_empty());
        // The token belongs to somebody else.
        let (home, server) = Home::signed_in([ended(), Reply::json(&me())]);
        let output = home.run_with(&server.url, line, &[("SERVICE_TOKEN", "t")]);
        assert_eq!((output.code, output.stderr.as_str()), (0, said));
        assert_eq!(home.files().len(), 1);
    }
    let output = Home::new().run("http://127.0.0.1:1", "logout --tokens");
    assert_eq!(output.code, 2);
}

#[test]
fn who_the_caller_is() {
    let request = "GET /v0/me";
    check("whoami-session", "whoami", request, Reply::json(&me()));
    let job = Me {
        user: None,
        roles: std::collections::BTreeMap::new(),
        credential: CredentialKind::Job,
        name: id(1).to_string(),
        projects: Some(vec!["infra".to_owned()]),
        ..me()
    };
    check("whoami-job", "whoami", request, Reply::json(&job));
    let token = Me {
        administrator: true,
        credential: CredentialKind::Token,
        name: "ci".to_owned(),
        expires_at: None,
        ..me()
    };
    check("whoami-token", "whoami", request, Reply::json(&token));
}

#[test]
fn sessions_are_listed_and_ended() {
    let browser = Session {
        device: "Firefox on Linux".to_owned(),
        token: Some("ci".to_owned()),
        current: false,
        ..session()
    };
    let list = Reply::json(&wire::Page::all(vec![session(), browser]));
    check("session-list", "session list", "GET /v0/sessions", list);
    let server = Server::start([Reply::bytes("").status(204)]);
    let line = format!("session end {}", id(11));
    let output = Home::new().run_with(&server.url, &line, &[("SERVICE_TOKEN", "t")]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(server.lines(), [format!("DELETE /v0/sessions/{}", id(11))]);
    let list = json!({"items": []});
    let server = Server::start([Reply::json(&list)]);
    let output = Home::new().run(&server.url, "session list --output json");
    assert_eq!(output.code, 0, "{}", output.stderr);
}
