//! Users, members of projects, and the caller.

use http::Method;
use model::{Role, Scope};
use serde_json::{Value, json};

use crate::answers::check;
use crate::client::{Answer, Call};
use crate::service::{Service, text};

struct Team {
    service: Service,
    /// An administrator; a maintainer of `main`; a viewer of `main` who operates `other`.
    admin: String,
    maintainer: String,
    mixed: String,
}

async fn team() -> Team {
    let service = Service::follow(&["main", "other"]).await;
    let maintainer = service.robot("mary", &[("main", Role::Maintainer)]).await;
    let roles = [("main", Role::Viewer), ("other", Role::Operator)];
    let mixed = service.robot("vic", &roles).await;
    Team {
        admin: service.admin.clone(),
        maintainer: service.token_of(maintainer, [Scope::Admin], None).await,
        mixed: service.token_of(mixed, [Scope::Admin], None).await,
        service,
    }
}

impl Team {
    async fn ask(&self, token: &str, method: Method, path: &str, body: &Value) -> Answer {
        let call = Call::new(method, format!("/v0/{path}")).bearer(token);
        let call = match body {
            Value::Null => call,
            body => call.json(body),
        };
        call.send(self.service.address).await
    }

    async fn get(&self, token: &str, path: &str) -> Answer {
        self.ask(token, Method::GET, path, &Value::Null).await
    }
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| text(item.get("user").unwrap_or(&item["name"])))
        .collect()
}

#[tokio::test]
async fn an_administrator_invites_changes_and_deletes_users() {
    let team = team().await;
    let (admin, service) = (&team.admin, &team.service);
    let ann = json!({ "name": "ann", "roles": { "main": "operator" } });
    let invited = team
        .ask(admin, Method::POST, "users", &ann)
        .await
        .expect(201);
    let link = text(&invited["link"]["url_path"]);
    assert!(link.starts_with("/welcome/evu_"), "{link}");
    assert_eq!(invited["user"]["state"], "invited");
    let again = team.ask(admin, Method::POST, "users", &ann).await;
    again.problem(409, "name_taken");
    let robot = json!({ "name": "ci", "service": true });
    let robot = team
        .ask(admin, Method::POST, "users", &robot)
        .await
        .expect(201);
    assert_eq!(
        (&robot["link"], &robot["user"]["kind"]),
        (&Value::Null, &json!("service"))
    );
    check(service, "users/users", &team.get(admin, "users").await);
    check(service, "users/user", &team.get(admin, "users/ann").await);

    let other = team
        .ask(admin, Method::POST, "users/ann/link", &Value::Null)
        .await
        .expect(201);
    assert_ne!(text(&other["url_path"]), link);
    let off = json!({ "active": false });
    let changed = team
        .ask(admin, Method::PATCH, "users/ann", &off)
        .await
        .expect(200);
    assert_eq!(changed["state"], "deactivated");
    assert_eq!(
        changed.get("link_expires_at"),
        None,
        "its invitation has ended"
    );
    team.ask(admin, Method::POST, "users/ann/link", &Value::Null)
        .await
        .expect(403);
    team.ask(admin, Method::DELETE, "users/ann", &Value::Null)
        .await
        .expect(204);
    team.get(admin, "users/ann").await.problem(404, "not_found");
    team.ask(admin, Method::POST, "users", &ann)
        .await
        .problem(409, "name_taken");
    assert_eq!(
        names(&team.get(admin, "users").await.expect(200)),
        ["ci", "mary", "owner", "vic"]
    );

    let own = json!({ "active": false });
    let last = team.ask(admin, Method::PATCH, "users/owner", &own).await;
    last.problem(409, "last_admin");
    for name in ["", "Ann", "ann b", "\u{430}nn", ".ann", &"a".repeat(65)] {
        let asked = json!({ "name": name });
        let refused = team.ask(admin, Method::POST, "users", &asked).await;
        assert_eq!(
            refused.problem(400, "invalid_request")["errors"][0]["field"],
            "name"
        );
    }
}

#[tokio::test]
async fn an_invitation_that_has_ended_is_not_shown() {
    let team = team().await;
    let admin = &team.admin;
    let made = json!({ "name": "leaver", "scopes": ["admin"] });
    let made = team.ask(admin, Method::POST, "tokens", &made).await;
    let made = made.expect(201);
    let (path, maker) = (
        format!("tokens/{}", text(&made["id"])),
        &text(&made["secret"]),
    );
    let ann = json!({ "name": "ann" });
    let invited = team.ask(maker, Method::POST, "users", &ann).await;
    invited.expect(201);
    let ann = async || team.get(admin, "users/ann").await.expect(200);
    assert_ne!(ann().await["link_expires_at"], Value::Null);
    let revoked = team.ask(admin, Method::DELETE, &path, &Value::Null).await;
    revoked.expect(204);
    assert_eq!(ann().await["link_expires_at"], Value::Null);
}

#[tokio::test]
async fn a_maintainer_gives_roles_up_to_the_own_one_in_the_own_project() {
    let team = team().await;
    let maintainer = &team.maintainer;
    for (body, status) in [
        (
            json!({ "name": "a", "roles": { "main": "maintainer" } }),
            201,
        ),
        (
            json!({ "name": "b", "roles": { "main": "viewer" }, "administrator": true }),
            403,
        ),
        (json!({ "name": "c" }), 403),
        (json!({ "name": "d", "roles": { "other": "viewer" } }), 404),
        (
            json!({ "name": "e", "roles": { "main": "viewer" }, "service": true }),
            403,
        ),
    ] {
        let asked = team.ask(maintainer, Method::POST, "users", &body).await;
        assert_eq!(asked.status, status, "{body}");
    }
    let operator = json!({ "role": "operator" });
    let set = team
        .ask(
            maintainer,
            Method::PUT,
            "projects/main/members/vic",
            &operator,
        )
        .await;
    assert_eq!(set.expect(200)["role"], "operator");
    let listed = team.get(&team.mixed, "projects/main/members").await;
    assert_eq!(names(&listed.expect(200)), ["a", "mary", "vic"]);
    check(&team.service, "users/members", &listed);
    for path in ["projects/other/members/vic", "projects/other/members"] {
        let method = if path.ends_with("vic") {
            Method::PUT
        } else {
            Method::GET
        };
        let body = if method == Method::PUT {
            &operator
        } else {
            &Value::Null
        };
        let asked = team.ask(maintainer, method, path, body).await;
        asked.problem(404, "project_not_found");
    }
    let reset = team
        .ask(maintainer, Method::POST, "users/owner/link", &Value::Null)
        .await;
    reset.problem(403, "forbidden");
    for (method, path) in [
        (Method::GET, "users"),
        (Method::DELETE, "users/vic"),
        (Method::PATCH, "users/mary"),
    ] {
        let body = if method == Method::PATCH {
            json!({ "administrator": true })
        } else {
            Value::Null
        };
        let refused = team.ask(maintainer, method, path, &body).await;
        let hint = text(&refused.problem(403, "forbidden")["hint"]);
        assert!(hint.starts_with("an administrator makes others"), "{hint}");
    }
    team.get(maintainer, "users/vic")
        .await
        .problem(404, "not_found");
    let removed = team
        .ask(
            maintainer,
            Method::DELETE,
            "projects/main/members/vic",
            &Value::Null,
        )
        .await;
    removed.expect(204);
    team.get(&team.mixed, "projects/main")
        .await
        .problem(404, "project_not_found");
}

#[tokio::test]
async fn a_role_in_one_project_gives_nothing_in_another() {
    let team = team().await;
    let mixed = &team.mixed;
    let role = json!({ "role": "maintainer" });
    for (method, path, body) in [
        (Method::PUT, "projects/main/members/vic", role.clone()),
        (Method::PUT, "projects/other/members/vic", role),
        (
            Method::POST,
            "users",
            json!({ "name": "x", "roles": { "other": "viewer" } }),
        ),
        (Method::DELETE, "projects/main/members/mary", Value::Null),
    ] {
        let refused = team.ask(mixed, method, path, &body).await;
        refused.problem(403, "forbidden");
    }
    let dispatch = "workflows/main%2Fpipeline/scans/build/dispatch";
    let inputs = json!({ "inputs": { "target": "all" } });
    let refused = team.ask(mixed, Method::POST, dispatch, &inputs).await;
    refused.problem(403, "forbidden");
}

#[tokio::test]
async fn everybody_learns_who_they_are_and_no_more() {
    let team = team().await;
    let me = team.get(&team.mixed, "me").await;
    me.expect(200);
    check(&team.service, "users/me", &me);
    team.get(&team.mixed, "users/vic").await.expect(200);
    team.get(&team.mixed, "users/mary")
        .await
        .problem(404, "not_found");
    let owner = team.get(&team.admin, "me").await.expect(200);
    assert_eq!(
        (&owner["user"], &owner["administrator"]),
        (&json!("owner"), &json!(true))
    );
}
