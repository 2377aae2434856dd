//! Routes × roles × projects × kinds of credentials: nobody does in one project what only a role in another allows.

mod callers;
mod things;

use std::collections::BTreeSet;

use api::{Access, ROUTES, Route, SessionRoute};
use http::Method;
use model::{Role, Scope};

pub(crate) use self::callers::project_scopes;
use self::callers::{Caller, Credential};
use self::things::{PROJECTS, Things};
use crate::client::Call;
use crate::service::Service;

const OWN: Scope = Scope::CallbackOwn;

/// The statuses with which the daemon must answer. None if the caller may do this, or if it is not about another's things.
fn refusal(route: &Route, caller: &Caller, at: usize) -> Option<&'static [u16]> {
    let is_cookie = matches!(caller.credential, Credential::Cookie(_));
    match route.access {
        // A stolen cookie opens nothing but streams and the list of sessions.
        Access::User(of, _) if is_cookie && !of.takes_sessions() => Some(&[401]),
        // A job may use what makes names of callback servers and shows their interactions.
        Access::User(of, scope) if caller.is_job && of.scopes(&scope).contains(&OWN) => {
            refusal_by_scope(route.path, caller, OWN, at)
        }
        Access::User(_, scope) => refusal_by_scope(route.path, caller, scope, at),
        Access::Session(of) if is_cookie && !of.takes_sessions() => Some(&[401]),
        Access::Session(SessionRoute::CreateBlobLink) if !caller.may(Scope::BlobWrite, at) => Some(
            match caller.may(Scope::ProjectRead, at) || caller.is_job && at == 0 {
                true => &[403],
                false => &[404],
            },
        ),
        Access::Session(SessionRoute::EndSession | SessionRoute::ShowUser) => {
            Some(if caller.is_job { &[403] } else { &[404] })
        }
        Access::Session(_) => None,
        // Programs are sent to the sign-in.
        Access::Page(..) | Access::Action(..) if !is_cookie => Some(&[303, 401, 403]),
        Access::Page(_, Some(scope)) | Access::Action(_, Some(scope)) => {
            refusal_by_scope(route.path, caller, scope, at).map(|_| &[403, 404][..])
        }
        Access::Page(_, None) | Access::Action(_, None) => {
            route.path.contains('{').then_some(&[404])
        }
        // Their credentials are in the path or in the body, or of another kind.
        Access::Public(_) | Access::Link(_) | Access::Local(..) => None,
        Access::Runner(_) | Access::Worker(_) => Some(&[401]),
    }
}

fn refusal_by_scope(
    path: &str,
    caller: &Caller,
    scope: Scope,
    at: usize,
) -> Option<&'static [u16]> {
    let may_somewhere = (0..PROJECTS.len()).any(|at| caller.may(scope, at));
    // The walk names only tokens of others.
    let is_token = scope == Scope::TokenWrite && caller.scopes.contains(&scope);
    if is_token {
        return path.contains("{token}").then_some(&[404]);
    }
    match caller.may(scope, at) {
        true => None,
        false if !may_somewhere => Some(&[403]),
        // Who sees the project hears which role is needed there. Other things are found only by those who may change them.
        // Who gives roles knows the names of users.
        false if path.ends_with("/{user}/link") => Some(&[403]),
        false if things::names_project(path) && caller.may(scope.reading(), at) => Some(&[403]),
        false => Some(&[404]),
    }
}

/// The projects that a caller does not see, but whose names are in an answer.
fn leaked(caller: &Caller, body: &str) -> Vec<&'static str> {
    let is_hidden = |at: &usize| caller.roles[*at].is_none();
    let hidden = (1..PROJECTS.len()).filter(is_hidden).map(|at| PROJECTS[at]);
    hidden.filter(|project| body.contains(project)).collect()
}

async fn status(service: &Service, call: Call) -> u16 {
    call.send_to_stream(service.address).await.status
}

#[tokio::test]
async fn nobody_does_in_one_project_what_a_role_in_another_allows() {
    let service = Service::follow(&PROJECTS).await;
    let things = Things::make(&service).await;
    let mut callers = Vec::new();
    for first in Role::ALL {
        for second in Role::ALL {
            callers.push(Caller::service(&service, first, second).await);
            callers.extend(Caller::of_person(&service, first, second).await);
        }
    }
    callers.push(Caller::job(&service).await);
    let before = things.shown(&service).await;
    let (mut wrong, mut refused, mut parameters) = (Vec::new(), 0, BTreeSet::new());
    for caller in &callers {
        for route in ROUTES.iter() {
            for (at, project) in PROJECTS.into_iter().enumerate() {
                let Some(call) = things.request(route, at) else {
                    continue;
                };
                let Some(expected) = refusal(route, caller, at) else {
                    continue;
                };
                // A credential of the wrong kind is wrong in any project.
                if at > 0 && expected.contains(&401) {
                    continue;
                }
                let mut methods = vec![route.method.clone()];
                methods.extend((route.method == Method::GET).then_some(Method::HEAD));
                for method in methods {
                    let status = status(&service, caller.send(call.clone().with(&method))).await;
                    refused += 1;
                    if !expected.contains(&status) {
                        let path = route.path;
                        wrong.push(format!(
                            "{caller}: {method} {path} in {project}: {status}, not {expected:?}"
                        ));
                    }
                }
                parameters.extend(route.path.split('/').filter(|part| part.starts_with('{')));
            }
            // What one does not see is in no list.
            let is_list = route.method == Method::GET && !things::is_about_a_thing(route);
            // Every program of this machine may read the metrics.
            if is_list && !matches!(route.access, Access::Local(..)) {
                let call = caller.send(Call::get(route.path));
                let answer = call.send_to_stream(service.address).await;
                let leaked = leaked(caller, answer.text());
                if !leaked.is_empty() {
                    wrong.push(format!("{caller}: {} names {leaked:?}", route.path));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {refused}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(refused > 5_000, "{refused}");
    let all = ROUTES.iter().flat_map(|route| route.path.split('/'));
    let all = all.filter(|part| part.starts_with('{'));
    let left: Vec<&str> = all.filter(|part| !parameters.contains(part)).collect();
    assert!(left.is_empty(), "the walk leaves out {left:?}");
    assert_eq!(things.shown(&service).await, before, "nothing has changed");
}

/// So the requests of the walk are refused only for want of rights.
#[tokio::test]
async fn the_owner_does_what_the_walk_tries() {
    let service = Service::follow(&PROJECTS).await;
    let things = Things::make(&service).await;
    let (mut wrong, mut done) = (Vec::new(), 0);
    let mut routes: Vec<&Route> = ROUTES.iter().collect();
    // What removes something comes last, and the removal of what has parts at the very end.
    routes.sort_by_key(|route| {
        (
            route.method == Method::DELETE,
            [
                "/v0/users/{user}",
                "/v0/callbacks/{callback}",
                "/v0/payload-groups/{group}",
            ]
            .contains(&route.path),
        )
    });
    for route in routes {
        let Access::User(_, _) = route.access else {
            continue;
        };
        let Some(call) = things.request(route, 1) else {
            continue;
        };
        let answer = call
            .bearer(&service.admin)
            .send_to_stream(service.address)
            .await;
        match answer.status {
            200..300 | 409 => done += 1,
            400 | 404 if things::needs_more(route) => {}
            status => wrong.push(format!(
                "{} {}: {status} {}",
                route.method,
                route.path,
                answer.text()
            )),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(done > 60, "{done}");
}
