//! Users, members of projects, and the owners of tokens.

use wire::{CreatedToken, CreatedUser, Member, Page, Role, User, UserKind, UserLink, UserState};

use crate::everscan::{Run, run_at};
use crate::fixtures::{at, token};
use crate::reads::check;
use crate::server::{Reply, Server};
use crate::snapshot;

fn user() -> User {
    User {
        name: "ann".to_owned(),
        kind: UserKind::Person,
        state: UserState::Active,
        administrator: false,
        has_password: true,
        roles: [
            ("infra".to_owned(), Role::Maintainer),
            ("web".to_owned(), Role::Viewer),
        ]
        .into(),
        created_at: at(0),
        last_seen_on: Some(at(0).date_naive()),
        link_expires_at: None,
    }
}

fn invited() -> User {
    User {
        name: "bob".to_owned(),
        state: UserState::Invited,
        administrator: true,
        has_password: false,
        roles: std::collections::BTreeMap::new(),
        last_seen_on: None,
        link_expires_at: Some(at(259_200)),
        ..user()
    }
}

fn program() -> User {
    User {
        name: "ci".to_owned(),
        kind: UserKind::Service,
        administrator: false,
        link_expires_at: None,
        state: UserState::Deactivated,
        ..invited()
    }
}

fn link() -> UserLink {
    UserLink {
        url_path: "/welcome/evu_x".to_owned(),
        expires_at: at(259_200),
    }
}

fn member() -> Member {
    Member {
        user: "ann".to_owned(),
        kind: UserKind::Person,
        state: UserState::Active,
        role: Role::Operator,
    }
}

/// Runs a command that makes one request. Returns its output and the body.
#[track_caller]
fn sent(line: &str, request: &str, reply: Reply) -> (Run, String) {
    let server = Server::start([reply]);
    let mut output = run_at(&server.url, line);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(server.lines(), [request]);
    output.stdout = output.stdout.replace(&server.url, "URL");
    (output, server.seen().remove(0).body)
}

#[test]
fn users_are_listed_and_shown() {
    let list = Page::all(vec![user(), invited(), program()]);
    let (list, one) = (Reply::json(&list), Reply::json(&invited()));
    check("user-list", "user list", "GET /v0/users", list);
    check("user-show", "user show bob", "GET /v0/users/bob", one);
}

#[test]
fn an_invitation_is_a_link_on_standard_output() {
    let created = CreatedUser {
        user: invited(),
        link: Some(link()),
    };
    let line = "user invite bob --administrator --role infra=maintainer --role a=b=viewer";
    let reply = Reply::json(&created).status(201);
    let (output, body) = sent(line, "POST /v0/users", reply);
    assert_eq!(output.stdout, "URL/welcome/evu_x\n");
    snapshot::check_listing("user-invited", &output.stderr);
    assert_eq!(
        body,
        r#"{"name":"bob","administrator":true,"roles":{"a=b":"viewer","infra":"maintainer"}}"#
    );
    let created = CreatedUser {
        user: program(),
        link: None,
    };
    let reply = Reply::json(&created).status(201);
    let (output, body) = sent("user invite ci --service", "POST /v0/users", reply);
    assert_eq!((output.stdout.as_str()), "");
    snapshot::check_listing("user-service", &output.stderr);
    assert_eq!(body, r#"{"name":"ci","service":true}"#);
}

#[test]
fn a_user_has_one_role_in_a_project() {
    for role in ["infra", "infra=owner", "infra=viewer,infra=operator"] {
        let line = format!("user invite bob --role {role}");
        let output = run_at("http://127.0.0.1:1", &line);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{role}");
    }
}

#[test]
fn a_change_of_a_user_names_what_it_changes() {
    for (line, body, said) in [
        (
            "user deactivate ann",
            r#"{"active":false}"#,
            "ann is deactivated\n",
        ),
        (
            "user deactivate ann --undo",
            r#"{"active":true}"#,
            "ann may sign in again\n",
        ),
        (
            "user administrator ann",
            r#"{"administrator":true}"#,
            "ann is an administrator\n",
        ),
        (
            "user administrator ann --undo",
            r#"{"administrator":false}"#,
            "ann is no administrator any more\n",
        ),
    ] {
        let (output, found) = sent(line, "PATCH /v0/users/ann", Reply::json(&user()));
        assert_eq!((found.as_str(), output.stderr.as_str()), (body, said));
    }
    let removed = Reply::bytes("").status(204);
    let (output, _) = sent("user delete ann", "DELETE /v0/users/ann", removed);
    assert_eq!(output.stderr, "ann is deleted\n");
    let reply = Reply::json(&link()).status(201);
    let (output, _) = sent("user reset ann", "POST /v0/users/ann/link", reply);
    assert_eq!(output.stdout, "URL/welcome/evu_x\n");
    snapshot::check_listing("user-reset", &output.stderr);
}

#[test]
fn members_belong_to_a_project() {
    let list = Reply::json(&Page::all(vec![member()]));
    let request = "GET /v0/projects/infra/members";
    check("member-list", "member list --project infra", request, list);
    let request = "PUT /v0/projects/infra/members/ann";
    for act in ["set", "add"] {
        let line = format!("member {act} ann operator --project infra");
        let (output, body) = sent(&line, request, Reply::json(&member()));
        assert_eq!(body, r#"{"role":"operator"}"#);
        assert_eq!(output.stderr, "ann is operator of infra\n");
    }
    let removed = Reply::bytes("").status(204);
    let request = "DELETE /v0/projects/infra/members/ann";
    let (output, _) = sent("member remove ann --project infra", request, removed);
    assert_eq!(output.stderr, "ann has no role in infra any more\n");
    let output = run_at("http://127.0.0.1:1", "member set ann owner --project infra");
    assert_eq!(output.code, 2);
}

#[test]
fn tokens_belong_to_users() {
    for (line, request) in [
        ("token list", "GET /v0/tokens"),
        ("token list --all", "GET /v0/tokens?user=all"),
        ("token list --user ann", "GET /v0/tokens?user=ann"),
    ] {
        sent(line, request, Reply::json(&Page::all(vec![token()])));
    }
    let moved = Reply::json(&token());
    let request = "POST /v0/tokens/ci/move";
    let (output, body) = sent("token move ci ann", request, moved);
    assert_eq!(body, r#"{"user":"ann"}"#);
    assert_eq!(output.stderr, "token ci belongs to ann\n");
    let created = Reply::json(&CreatedToken {
        token: token(),
        secret: "evs_secret".to_owned(),
    });
    let line = "token create --name ci --scope job:read --expires-in never --user robot";
    let (output, body) = sent(line, "POST /v0/tokens", created.status(201));
    assert_eq!(output.stdout, "evs_secret\n");
    assert_eq!(
        body,
        r#"{"name":"ci","scopes":["job:read"],"never_expires":true,"user":"robot"}"#
    );
}
