//! What the walk tries to reach: things of each project, and of the owner.

use api::{Access, Route};
use http::Method;
use model::condition::{Problem, Subject};
use model::decide::Measure;
use model::{JobId, Reason};
use serde_json::{Value, json};

use crate::browser::typed;
use crate::client::Call;
use crate::service::{Service, text};

/// The callers have a role in the first project, another one in the second, and none in the third. The names are in no page by
/// chance.
pub(super) const PROJECTS: [&str; 3] = ["main", "harbor", "quarry"];

/// Things of one project.
struct Of {
    project: &'static str,
    job: String,
    runner: String,
    condition: String,
    link: String,
    /// A callback server with an interaction, and its tag.
    callback: String,
    tag: String,
    /// A payload group with the payload `a.svg`.
    group: String,
    /// An invited viewer.
    guest: String,
}

pub(super) struct Things {
    of: Vec<Of>,
    /// A token of the owner.
    token: String,
    /// A session of the owner.
    session: String,
}

/// Parameters of paths that name a project, or something that is found together with its project.
const NAMING: [&str; 6] = [
    "{project}",
    "{source}",
    "{workflow}",
    "{job}",
    "{callback}",
    "{group}",
];

/// Whether the answer may say that the role in the project is too weak.
pub(super) fn names_project(path: &str) -> bool {
    NAMING.iter().any(|name| path.contains(name)) || has_project(path)
}

/// Routes with the project in their query.
fn has_project(path: &str) -> bool {
    let areas = ["/v0/blob", "/v0/channels", "/v0/rule", "/v0/deliveries"];
    areas.iter().any(|area| path.starts_with(area)) && !path.contains("{link}")
}

/// Whether the route names a thing of a project or of a user, in its path, its query or its body.
pub(super) fn is_about_a_thing(route: &Route) -> bool {
    let in_body = [
        "/v0/runner-registrations",
        "/v0/users",
        "/v0/callbacks",
        "/v0/payload-groups",
        "/notifications/channels",
        "/notifications/rules",
        "/runners/registrations",
    ];
    route.path.contains('{')
        || route.query.contains(&"project")
        || route.method == Method::POST && in_body.contains(&route.path)
}

/// Routes that need more than these things: an artifact, an earlier revision, what is searched, or a message that waits.
pub(super) fn needs_more(route: &Route) -> bool {
    let more = ["{artifact}", "/search", "/retry", "/diff"];
    more.iter().any(|part| route.path.contains(part))
}

impl Things {
    pub(super) async fn make(service: &Service) -> Self {
        let mut of = Vec::new();
        for project in PROJECTS {
            of.push(Of::make(service, project).await);
        }
        let asked = json!({"name": "of-owner", "scopes": ["job:read"]});
        let token = service.post("/v0/tokens", &asked).await.expect(201);
        let device = service.owners_device().await;
        let sessions = Call::get("/v0/sessions").bearer(&device);
        let sessions = sessions.send(service.address).await.expect(200);
        Self {
            of,
            token: text(&token["id"]),
            session: text(&sessions["items"][0]["id"]),
        }
    }

    /// The request of a route about things of a project. None if it is about nothing of anybody.
    pub(super) fn request(&self, route: &Route, at: usize) -> Option<Call> {
        if !is_about_a_thing(route) {
            return None;
        }
        let of = &self.of[at];
        let workflow = match route.access.is_for_browsers() {
            true => format!("{}/pipeline", of.project),
            false => format!("{}%2Fpipeline", of.project),
        };
        let mut path = route.path.to_owned();
        for (name, value) in [
            ("{job}", of.job.as_str()),
            ("{workflow}", &workflow),
            ("{source}", of.project),
            ("{project}", of.project),
            ("{runner}", &of.runner),
            ("{condition}", &of.condition),
            ("{link}", &of.link),
            ("{callback}", &of.callback),
            ("{tag}", &of.tag),
            ("{number}", "1"),
            ("{group}", &of.group),
            ("{payload}", "a.svg"),
            ("{token}", &self.token),
            ("{session}", &self.session),
            ("{user}", &of.guest),
            ("{scan}", "large"),
            ("{artifact}", "out"),
            ("{var}", "URL"),
            ("{secret}", "KEY"),
            ("{revision}", "1"),
            ("{channel}", "a"),
            ("{rule}", "a"),
            ("{*path}", "a"),
        ] {
            path = path.replace(name, value);
        }
        if route.query.contains(&"project") {
            path.push_str(&format!("?project={}", of.project));
        }
        if route.query.contains(&"path") {
            path.push_str("&path=a");
        }
        let call = Call::new(route.method.clone(), path);
        Some(match (&route.access, &route.method) {
            (_, &Method::GET | &Method::HEAD | &Method::DELETE) => call,
            (Access::User(..), &Method::PUT) if route.path.contains("{payload}") => {
                call.bytes("other")
            }
            _ if route.path.contains("{*path}") => call.bytes("other"),
            (Access::Action(..), _) => typed(call, &of.form(route.path)),
            _ => call.json(&of.body(route)),
        })
    }

    /// Everything that the walk could change.
    pub(super) async fn shown(&self, service: &Service) -> Value {
        let mut shown = Vec::new();
        for of in &self.of {
            let project = of.project;
            for path in [
                format!("/v0/jobs/{}", of.job),
                format!("/v0/workflows/{project}%2Fpipeline"),
                format!("/v0/sources/{project}"),
                format!("/v0/projects/{project}/vars"),
                format!("/v0/projects/{project}/secrets"),
                format!("/v0/projects/{project}/members"),
                format!("/v0/channels?project={project}"),
                format!("/v0/rules?project={project}"),
                format!("/v0/blobs?project={project}"),
                format!("/v0/blob-links?project={project}"),
                format!("/v0/runners/{}", of.runner),
                format!("/v0/callbacks?project={project}"),
                format!("/v0/callbacks/{}/tokens", of.callback),
                format!("/v0/callbacks/{}/interactions", of.callback),
                format!("/v0/payload-groups/{}", of.group),
            ] {
                shown.push(service.get(&path).await.expect(200));
            }
        }
        for path in ["/v0/conditions", "/v0/jobs", "/v0/sessions"] {
            shown.push(service.get(path).await.expect(200));
        }
        let users = service.get("/v0/users?limit=100").await.expect(200);
        let tokens = service
            .get("/v0/tokens?user=all&limit=100")
            .await
            .expect(200);
        for listed in [users, tokens] {
            let mut items = listed["items"].as_array().unwrap().clone();
            // The walk uses the credentials of its callers.
            for item in &mut items {
                let item = item.as_object_mut().unwrap();
                item.retain(|name, _| !name.starts_with("last_"));
            }
            shown.push(json!(items));
        }
        json!(shown)
    }
}

impl Of {
    async fn make(service: &Service, project: &'static str) -> Self {
        let post = async |path: &str, body: Value| {
            let answer = service.post(path, &body).await;
            assert!((200..300).contains(&answer.status), "{path}: {answer:?}");
            answer.json()
        };
        let put = async |path: String, body: Value| {
            let call = Call::new(Method::PUT, path).json(&body);
            let answer = service.admin(call).await;
            assert!((200..300).contains(&answer.status), "{answer:?}");
        };
        let dispatch = format!("/v0/workflows/{project}%2Fpipeline/scans/large/dispatch");
        let job = text(&post(&dispatch, json!({})).await["job"]["id"]);
        let asked = json!({"projects": [project]});
        let registration = post("/v0/runner-registrations", asked).await;
        let runner = json!({
            "token": registration["token"], "name": format!("of-{project}"), "labels": ["none"],
            "exclusive": true, "capacity": 1, "version": "0.1.0",
        });
        let runner = text(&post("/v0/runners/register", runner).await["id"]);
        put(
            format!("/v0/projects/{project}/vars/URL"),
            json!({"value": "x"}),
        )
        .await;
        put(
            format!("/v0/projects/{project}/secrets/KEY"),
            json!({"value": "hidden-value"}),
        )
        .await;
        let channel = json!({"target": {"kind": "command", "command": "page"}});
        put(format!("/v0/channels/a?project={project}"), channel).await;
        put(
            format!("/v0/rules/a?project={project}"),
            json!({"channel": "a"}),
        )
        .await;
        let blob = Call::new(Method::PUT, format!("/v0/blobs/a?project={project}"));
        service.admin(blob.bytes("content")).await.expect(201);
        let link = post(&format!("/v0/blob-links?project={project}"), link()).await;
        let callback = service.callback(project).await;
        let tag = service.callback_tag(&callback).await;
        service.hear(&callback, Some(&tag)).await;
        let group = service.payload_group(project).await;
        let guest = format!("guest-{project}");
        let invited = json!({"name": guest, "roles": {project: "viewer"}});
        post("/v0/users", invited).await;
        Self {
            project,
            condition: condition(service, &job).await,
            job,
            runner,
            link: text(&link["id"]),
            callback,
            tag,
            group,
            guest,
        }
    }

    /// A body that the route accepts, so that only rights refuse the request.
    fn body(&self, route: &Route) -> Value {
        let project = self.project;
        match (&route.method, route.path) {
            (&Method::PUT, path) if path.contains("{channel}") => {
                json!({"target": {"kind": "command", "command": "page"}})
            }
            (_, path) if path.contains("{rule}") || path.ends_with("/rule-previews") => {
                json!({"channel": "a"})
            }
            (_, path) if path.contains("/members/") => json!({"role": "maintainer"}),
            (&Method::PUT, "/v0/callbacks/{callback}/rules") => json!({"rules": []}),
            (&Method::PUT, _) => json!({"value": "another-value"}),
            (_, path) if path.ends_with("/suspend") => json!({"reason": "a test"}),
            (_, path) if path.ends_with("/prune") => json!({"dry_run": true}),
            (_, path) if path.ends_with("/approve") => json!({"commit": "0123456789"}),
            (_, path) if path.ends_with("/silence") => json!({"seconds": 60}),
            (_, path) if path.ends_with("/move") => json!({"user": "owner"}),
            (_, "/v0/blob-links") => link(),
            (_, "/v0/blob-copies") => json!({"from": "a", "to": "b"}),
            (_, "/v0/blob-moves") => json!({"from": "b", "to": "c"}),
            (_, "/v0/runner-registrations") => json!({"projects": [project]}),
            (_, "/v0/payload-groups") => json!({"project": project, "name": "made"}),
            (&Method::PATCH, "/v0/payload-groups/{group}") => json!({"variables": []}),
            (_, "/v0/callbacks") => json!({"project": project, "name": "made"}),
            (_, "/v0/users") => json!({"name": "made", "roles": {project: "viewer"}}),
            (&Method::PATCH, "/v0/runners/{runner}") => json!({"projects": [project]}),
            (&Method::PATCH, _) => json!({"administrator": true}),
            _ => json!({}),
        }
    }

    /// A form with the fields of all forms.
    fn form(&self, path: &str) -> Vec<(&str, &str)> {
        let name = match path {
            path if path.ends_with("/vars") => "URL",
            path if path.ends_with("/secrets") => "KEY",
            path if path.ends_with("/members") => &self.guest,
            _ => "a",
        };
        vec![
            ("name", name),
            ("value", "another-value"),
            ("role", "maintainer"),
            ("reason", "a test"),
            ("commit", "0123456789"),
            ("projects", self.project),
            ("project", self.project),
            ("kind", "command"),
            ("command", "page"),
            ("channel", "a"),
            ("user", "owner"),
            ("administrator", "true"),
            ("note", "a test"),
            ("rules", "{}"),
            ("payload", "a.svg"),
            ("text", "other"),
        ]
    }
}

fn link() -> Value {
    json!({"path": "a", "use_for": "put", "expires_in": "1h"})
}

/// An open condition of the scan of a job.
async fn condition(service: &Service, job: &str) -> String {
    let job: JobId = job.parse().unwrap();
    let state = service.handle.state();
    let subject = state.read(|world| Subject::from(&world.job(job).unwrap().scan_key()));
    let reason = Reason::NoRunner;
    let problems = vec![Problem::Stuck { job, reason }];
    let measure = Measure {
        subject: subject.clone(),
        problems,
    };
    state.submit(measure).await.unwrap();
    state.read(|world| {
        let mut open = world.conditions_of(&subject);
        open.next().unwrap().id.to_string()
    })
}
