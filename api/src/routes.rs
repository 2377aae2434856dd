//! The table of all routes: which exist, who may call them, and how large a body may be.

use http::Method;
use model::Scope;

use crate::limits::{
    ARTIFACT_BODY, DISPATCH_BODY, LOG_BODY, POLL_BODY, REPORT_BODY, SMALL_BODY, VALUE_BODY,
};

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone. The body may hold credentials.
    Public,
    /// A personal access token with this scope.
    User(Scope),
    /// A runner session token.
    Runner,
    /// The worker session token of the job in the path.
    Worker,
}

#[derive(Debug)]
pub struct Route {
    /// The name in code.
    pub id: RouteId,
    pub method: Method,
    /// The path. Segments in braces are parameters.
    pub path: &'static str,
    pub access: Access,
    /// Largest body in bytes; 0 for none.
    pub body: u64,
}

macro_rules! routes {
    ($($id:ident $method:ident $path:literal $access:expr, $body:expr;)*) => {
        /// Names every route, so that a match over it is exhaustive.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum RouteId {
            $(#[doc = concat!("`", stringify!($method), " ", $path, "`")] $id,)*
        }

        /// Every route.
        pub static ROUTES: &[Route] = &[
            $(Route { id: RouteId::$id, method: Method::$method, path: $path, access: $access, body: $body },)*
        ];
    };
}

routes! {
    Healthz GET "/healthz" Access::Public, 0;
    Readyz GET "/readyz" Access::Public, 0;
    WorkflowSchema GET "/v0/schema/workflow.json" Access::Public, 0;
    ListSources GET "/v0/sources" Access::User(Scope::ProjectRead), 0;
    ShowSource GET "/v0/sources/{source}" Access::User(Scope::ProjectRead), 0;
    SyncSource POST "/v0/sources/{source}/sync" Access::User(Scope::ProjectWrite), SMALL_BODY;
    ListProjects GET "/v0/projects" Access::User(Scope::ProjectRead), 0;
    ShowProject GET "/v0/projects/{project}" Access::User(Scope::ProjectRead), 0;
    ListVars GET "/v0/projects/{project}/vars" Access::User(Scope::ProjectRead), 0;
    ShowVar GET "/v0/projects/{project}/vars/{var}" Access::User(Scope::ProjectRead), 0;
    SetVar PUT "/v0/projects/{project}/vars/{var}" Access::User(Scope::ProjectWrite), VALUE_BODY;
    DeleteVar DELETE "/v0/projects/{project}/vars/{var}" Access::User(Scope::ProjectWrite), 0;
    ListSecrets GET "/v0/projects/{project}/secrets" Access::User(Scope::ProjectRead), 0;
    SetSecret PUT "/v0/projects/{project}/secrets/{secret}" Access::User(Scope::SecretWrite), VALUE_BODY;
    DeleteSecret DELETE "/v0/projects/{project}/secrets/{secret}" Access::User(Scope::SecretWrite), 0;
    ListWorkflows GET "/v0/workflows" Access::User(Scope::WorkflowRead), 0;
    ShowWorkflow GET "/v0/workflows/{workflow}" Access::User(Scope::WorkflowRead), 0;
    PruneWorkflow POST "/v0/workflows/{workflow}/prune" Access::User(Scope::WorkflowWrite), SMALL_BODY;
    Dispatch POST "/v0/workflows/{workflow}/scans/{scan}/dispatch" Access::User(Scope::Dispatch), DISPATCH_BODY;
    Why GET "/v0/workflows/{workflow}/scans/{scan}/why" Access::User(Scope::WorkflowRead), 0;
    ListJobs GET "/v0/jobs" Access::User(Scope::JobRead), 0;
    ShowJob GET "/v0/jobs/{job}" Access::User(Scope::JobRead), 0;
    DeleteJob DELETE "/v0/jobs/{job}" Access::User(Scope::JobWrite), 0;
    CancelJob POST "/v0/jobs/{job}/cancel" Access::User(Scope::JobWrite), SMALL_BODY;
    ReadLog GET "/v0/jobs/{job}/logs" Access::User(Scope::JobRead), 0;
    ListArtifacts GET "/v0/jobs/{job}/artifacts" Access::User(Scope::JobRead), 0;
    DownloadArtifact GET "/v0/jobs/{job}/artifacts/{artifact}" Access::User(Scope::JobRead), 0;
    DeleteArtifact DELETE "/v0/jobs/{job}/artifacts/{artifact}" Access::User(Scope::JobWrite), 0;
    ListTokens GET "/v0/tokens" Access::User(Scope::TokenWrite), 0;
    CreateToken POST "/v0/tokens" Access::User(Scope::TokenWrite), SMALL_BODY;
    ListRunners GET "/v0/runners" Access::User(Scope::RunnerRead), 0;
    DeleteRunner DELETE "/v0/runners/{runner}" Access::User(Scope::RunnerWrite), 0;
    CreateRegistration POST "/v0/runner-registrations" Access::User(Scope::RunnerWrite), SMALL_BODY;
    RegisterRunner POST "/v0/runners/register" Access::Public, SMALL_BODY;
    Hello POST "/v0/runners/hello" Access::Runner, SMALL_BODY;
    Goodbye POST "/v0/runners/goodbye" Access::Runner, SMALL_BODY;
    Messages POST "/v0/messages" Access::Runner, POLL_BODY;
    Resolve POST "/v0/jobs/{job}/resolve" Access::Worker, SMALL_BODY;
    Timeline POST "/v0/jobs/{job}/timeline" Access::Worker, REPORT_BODY;
    AppendLog PATCH "/v0/jobs/{job}/logs" Access::Worker, LOG_BODY;
    UploadArtifact PUT "/v0/jobs/{job}/artifacts/{artifact}" Access::Worker, ARTIFACT_BODY;
    CompleteJob POST "/v0/jobs/{job}/complete" Access::Worker, REPORT_BODY;
}

/// The result of a lookup.
#[derive(Debug)]
pub(crate) enum Matched {
    /// A route, with its percent-decoded parameters in order.
    Route(&'static Route, Vec<String>),
    /// The path exists, with other methods.
    OtherMethods(Vec<&'static Method>),
    /// The path does not exist.
    Nothing,
}

/// Looks up a method and path.
pub(crate) fn find(method: &Method, path: &str) -> Matched {
    let mut others = Vec::new();
    for route in ROUTES {
        if let Some(parameters) = parameters(route.path, path) {
            if route.method == *method {
                return Matched::Route(route, parameters);
            }
            others.push(&route.method);
        }
    }
    if others.is_empty() {
        Matched::Nothing
    } else {
        Matched::OtherMethods(others)
    }
}

/// The parameters of `path`, if it fits `pattern`. No two patterns of the table with one method differ only in the
/// names of parameters; a test checks this.
fn parameters(pattern: &str, path: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut segments = path.split('/');
    for wanted in pattern.split('/') {
        let segment = segments.next()?;
        if wanted.starts_with('{') {
            let decoded = percent_encoding::percent_decode_str(segment)
                .decode_utf8()
                .ok()?;
            if decoded.is_empty() {
                return None;
            }
            found.push(decoded.into_owned());
        } else if wanted != segment {
            return None;
        }
    }
    segments.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn paths_are_matched_whole_and_decoded() {
        let Matched::Route(route, parameters) = find(
            &Method::POST,
            "/v0/workflows/src%2Fdeep%2Fa/scans/b/dispatch",
        ) else {
            panic!("no route")
        };
        assert_eq!(route.id, RouteId::Dispatch);
        assert_eq!(parameters, ["src/deep/a", "b"]);
        assert!(matches!(
            find(&Method::GET, "/v0/jobs/x/y/z"),
            Matched::Nothing
        ));
        assert!(matches!(find(&Method::GET, "/v0/jobs/"), Matched::Nothing));
        assert!(
            matches!(find(&Method::PUT, "/v0/jobs"), Matched::OtherMethods(methods) if methods == [&Method::GET])
        );
    }

    #[test]
    fn all_is_below_v0_and_a_jobs_path_has_its_id_alone() {
        for route in ROUTES {
            let is_probe = matches!(route.id, RouteId::Healthz | RouteId::Readyz);
            assert_eq!(route.path.starts_with("/v0/"), !is_probe, "{}", route.path);
            if route.path.contains("{job}") || route.path.contains("{artifact}") {
                let after = route
                    .path
                    .strip_prefix("/v0/jobs/{job}")
                    .unwrap_or_else(|| {
                        panic!("{} names a job by more than its id", route.path);
                    });
                let other = after.replace("{artifact}", "");
                assert!(!other.contains('{'), "{}", route.path);
            }
        }
    }

    #[test]
    fn no_two_routes_answer_one_request() {
        let mut seen = HashSet::new();
        for route in ROUTES {
            let shape: Vec<&str> = route
                .path
                .split('/')
                .map(|part| if part.starts_with('{') { "{}" } else { part })
                .collect();
            assert!(
                seen.insert((route.method.clone(), shape)),
                "{} {} stands twice",
                route.method,
                route.path
            );
        }
    }
}
