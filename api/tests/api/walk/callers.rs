//! Those who walk: every kind of credential.

use std::fmt;

use model::decide::{CreateUser, Giver};
use model::{ProjectId, Rights, Role, Scope, UserId};
use serde_json::json;

use super::things::PROJECTS;
use crate::client::Call;
use crate::job_tokens::{modern, running};
use crate::people::{PASSWORD, Person, use_link, use_password};
use crate::service::{Service, text};

pub(super) enum Credential {
    Bearer(String),
    Cookie(String),
}

/// A credential, with a naive reading of what it allows.
pub(super) struct Caller {
    name: String,
    pub(super) credential: Credential,
    pub(super) scopes: Vec<Scope>,
    /// The role in each project, if the credential reaches it.
    pub(super) roles: [Option<Role>; 3],
    pub(super) is_job: bool,
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// All scopes that projects limit. Only roles limit a credential with them.
pub(crate) fn project_scopes() -> Vec<Scope> {
    let all = Scope::ALL.iter().copied();
    all.filter(|scope| !scope.is_of_installation()).collect()
}

impl Caller {
    pub(super) fn may(&self, scope: Scope, at: usize) -> bool {
        let role = self.roles[at];
        self.scopes.contains(&scope) && role.is_some_and(|role| self.is_job || role.allows(scope))
    }

    /// The call with the credential.
    pub(super) fn send(&self, call: Call) -> Call {
        match &self.credential {
            Credential::Bearer(secret) => call.bearer(secret),
            Credential::Cookie(cookie) => call
                .header("cookie", cookie)
                .header("sec-fetch-site", "same-origin"),
        }
    }

    fn new(name: String, credential: Credential, roles: [Option<Role>; 3]) -> Self {
        Self {
            name,
            credential,
            scopes: project_scopes(),
            roles,
            is_job: false,
        }
    }

    /// A token of a service.
    pub(super) async fn service(service: &Service, first: Role, second: Role) -> Self {
        let name = format!("{first}-{second}");
        let roles = [(PROJECTS[0], first), (PROJECTS[1], second)];
        let robot = service.robot(&name, &roles).await;
        let token = service.token_of(robot, project_scopes(), None).await;
        let roles = [Some(first), Some(second), None];
        Self::new(format!("token of {name}"), Credential::Bearer(token), roles)
    }

    /// All credentials of a person.
    pub(super) async fn of_person(service: &Service, first: Role, second: Role) -> Vec<Self> {
        let name = format!("p-{first}-{second}");
        let of = |project: &str| ProjectId::of_source(&project.parse().unwrap());
        let create = CreateUser {
            name: name.parse().unwrap(),
            is_service: false,
            is_administrator: false,
            roles: [(of(PROJECTS[0]), first), (of(PROJECTS[1]), second)].into(),
            by: Giver {
                user: UserId::OWNER,
                rights: Rights::admin(),
                token: None,
            },
        };
        let made = service.handle.state().submit(create).await.unwrap();
        let link = made.secret.unwrap();
        let send = async |call: Call| call.send(service.address).await;
        send(use_link(link.reveal(), PASSWORD)).await.expect(201);
        let password = send(use_password(&name, PASSWORD)).await;
        password.expect(201);
        let password = Person::of(&password).session;
        let device = service.device_of(made.user.id).await;

        let token = service.token_of(made.user.id, project_scopes(), None).await;
        let with_token = Call::post("/v0/sessions").json(&json!({ "token": token }));
        let with_token = send(with_token).await;
        let set = with_token.header("set-cookie").unwrap();
        let with_token = set.split(';').next().unwrap().to_owned();

        let strongest = first.max(second);
        let scopes = project_scopes().into_iter();
        let scopes = scopes.filter(|scope| strongest.allows(*scope));
        let scopes: Vec<&str> = scopes.map(Scope::name).collect();
        let body = json!({"name": "one", "scopes": scopes, "projects": [PROJECTS[0]]});
        let limited = Call::post("/v0/tokens").bearer(&device).json(&body);
        let limited = text(&send(limited).await.expect(201)["secret"]);

        let both = [Some(first), Some(second), None];
        let of = |kind: &str, credential, roles| {
            Self::new(format!("{kind} of {name}"), credential, roles)
        };
        vec![
            of("session", Credential::Cookie(password), both),
            of("device", Credential::Bearer(device), both),
            of("session with a token", Credential::Cookie(with_token), both),
            Self {
                scopes: scopes_named(&scopes),
                ..of(
                    "token for one project",
                    Credential::Bearer(limited),
                    [Some(first), None, None],
                )
            },
        ]
    }

    /// The token of a job of the first project.
    pub(super) async fn job(service: &Service) -> Self {
        let runner = modern(service).await;
        service.dispatch("build").await;
        let token = running(service, &runner, &[]).await.token;
        // No role limits it: its scopes do.
        let roles = [Some(Role::Maintainer), None, None];
        Self {
            scopes: vec![
                Scope::JobRead,
                Scope::BlobRead,
                Scope::BlobWrite,
                Scope::Dispatch,
                Scope::PayloadRead,
                Scope::CallbackOwn,
            ],
            is_job: true,
            ..Self::new("a job".to_owned(), Credential::Bearer(token), roles)
        }
    }
}

fn scopes_named(names: &[&str]) -> Vec<Scope> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}
