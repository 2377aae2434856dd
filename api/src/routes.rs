//! The table of all routes: which exist, who may call them, and how large a body may be.

use std::collections::HashMap;
use std::sync::LazyLock;

use http::Method;
use model::Scope;

use crate::limits::{
    ARTIFACT_BODY, BLOB_BODY, DISPATCH_BODY, LOG_BODY, POLL_BODY, REPORT_BODY, SMALL_BODY,
    VALIDATE_BODY, VALUE_BODY,
};

/// Who may call a route, and its name in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone. The body may hold credentials.
    Public(PublicRoute),
    /// Anyone on this machine, and others with a personal access token with this scope.
    Local(LocalRoute, Scope),
    /// A personal access token with this scope.
    User(UserRoute, Scope),
    /// A personal access token of any scope, or a browser that is signed in where the route takes sessions.
    Session(SessionRoute),
    /// Whoever has a link to a blob, whose secret is in the path.
    Link(LinkRoute),
    /// A runner session token.
    Runner(RunnerRoute),
    /// The worker session token of the job in the path.
    Worker(WorkerRoute),
    /// A browser that is signed in, with a token of this scope; of any scope if there is none. Others are sent to the
    /// sign-in. The answer is a page, or what pages load.
    Page(PageRoute, Option<Scope>),
    /// The same for a form or a script of a page of this daemon, which changes something.
    Action(ActionRoute, Option<Scope>),
}

impl Access {
    /// Whether browsers are answered, with pages, and not programs.
    pub const fn is_for_browsers(self) -> bool {
        match self {
            Self::Page(..) | Self::Action(..) => true,
            Self::Public(route) => {
                matches!(
                    route,
                    PublicRoute::LoginPage
                        | PublicRoute::LinkPage
                        | PublicRoute::Login
                        | PublicRoute::Asset
                )
            }
            Self::Local(..)
            | Self::User(..)
            | Self::Session(_)
            | Self::Link(_)
            | Self::Runner(_)
            | Self::Worker(_) => false,
        }
    }
}

#[derive(Debug)]
pub struct Route {
    pub access: Access,
    pub method: Method,
    /// The path. Segments in braces are parameters; the last one may stand for all that follow, with a star.
    pub path: &'static str,
    /// The query parameters. Others are refused.
    pub query: &'static [&'static str],
    /// Largest body in bytes; 0 for none.
    pub body: u64,
}

/// A route with or without a scope. Those of browsers have one or none, and their type says so.
macro_rules! access {
    (Page $name:ident $id:ident) => { Access::Page($name::$id, None) };
    (Page $name:ident $id:ident $scope:ident) => { Access::Page($name::$id, Some(Scope::$scope)) };
    (Action $name:ident $id:ident) => { Access::Action($name::$id, None) };
    (Action $name:ident $id:ident $scope:ident) => { Access::Action($name::$id, Some(Scope::$scope)) };
    ($kind:ident $name:ident $id:ident $($scope:ident)?) => { Access::$kind($name::$id $(, Scope::$scope)?) };
}

macro_rules! routes {
    ($($kind:ident $name:ident {
        $($id:ident $method:ident $path:literal $(, $scope:ident)?; [$($query:literal)*], $body:expr;)*
    })*) => {
        $(#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", stringify!($method), " ", $path, "`")] $id,)*
        })*

        /// Every route.
        pub static ROUTES: &[Route] = &[
            $($(Route {
                access: access!($kind $name $id $($scope)?),
                method: Method::$method,
                path: $path,
                query: &[$($query),*],
                body: $body,
            },)*)*
        ];
    };
}

// The handlers of users get the daemon as the caller sees it and no more, so they have names of their own.
routes! {
    Public PublicRoute {
        Healthz GET "/healthz"; [], 0;
        Readyz GET "/readyz"; [], 0;
        WorkflowSchema GET "/v0/schema/workflow.json"; [], 0;
        OpenApi GET "/v0/openapi.json"; [], 0;
        Docs GET "/v0/docs"; [], 0;
        RegisterRunner POST "/v0/runners/register"; [], SMALL_BODY;
        CreateSession POST "/v0/sessions"; [], SMALL_BODY;
        LoginPage GET "/login"; ["next"], 0;
        LinkPage GET "/login/{link}"; [], 0;
        Login POST "/login"; [], SMALL_BODY;
        Asset GET "/assets/{*path}"; [], 0;
    }
    Local LocalRoute {
        Metrics GET "/metrics", Metrics; [], 0;
    }
    User UserRoute {
        ListSources GET "/v0/sources", ProjectRead; ["limit" "cursor"], 0;
        ShowSource GET "/v0/sources/{source}", ProjectRead; [], 0;
        SyncSource POST "/v0/sources/{source}/sync", ProjectWrite; ["wait"], SMALL_BODY;
        ApproveSource POST "/v0/sources/{source}/approve", ProjectWrite; ["wait"], SMALL_BODY;
        ListProjects GET "/v0/projects", ProjectRead; ["limit" "cursor"], 0;
        ShowProject GET "/v0/projects/{project}", ProjectRead; [], 0;
        ListVars GET "/v0/projects/{project}/vars", ProjectRead; ["limit" "cursor"], 0;
        ShowVar GET "/v0/projects/{project}/vars/{var}", ProjectRead; [], 0;
        SetVar PUT "/v0/projects/{project}/vars/{var}", ProjectWrite; [], VALUE_BODY;
        DeleteVar DELETE "/v0/projects/{project}/vars/{var}", ProjectWrite; [], 0;
        ListSecrets GET "/v0/projects/{project}/secrets", ProjectRead; ["limit" "cursor"], 0;
        SetSecret PUT "/v0/projects/{project}/secrets/{secret}", SecretWrite; [], VALUE_BODY;
        DeleteSecret DELETE "/v0/projects/{project}/secrets/{secret}", SecretWrite; [], 0;
        SecretMasking GET "/v0/projects/{project}/secrets/{secret}/masking", SecretWrite; [], 0;
        ListWorkflows GET "/v0/workflows", WorkflowRead; ["state" "limit" "cursor"], 0;
        ShowWorkflow GET "/v0/workflows/{workflow}", WorkflowRead; [], 0;
        ListRevisions GET "/v0/workflows/{workflow}/revisions", WorkflowRead; ["limit" "cursor"], 0;
        ShowRevision GET "/v0/workflows/{workflow}/revisions/{revision}", WorkflowRead; [], 0;
        DiffRevision GET "/v0/workflows/{workflow}/revisions/{revision}/diff", WorkflowRead; ["from"], 0;
        Validate POST "/v0/validate", WorkflowRead; [], VALIDATE_BODY;
        PruneWorkflow POST "/v0/workflows/{workflow}/prune", WorkflowWrite; [], SMALL_BODY;
        SuspendWorkflow POST "/v0/workflows/{workflow}/suspend", WorkflowWrite; [], SMALL_BODY;
        ResumeWorkflow POST "/v0/workflows/{workflow}/resume", WorkflowWrite; [], SMALL_BODY;
        SuspendScan POST "/v0/workflows/{workflow}/scans/{scan}/suspend", WorkflowWrite; [], SMALL_BODY;
        ResumeScan POST "/v0/workflows/{workflow}/scans/{scan}/resume", WorkflowWrite; [], SMALL_BODY;
        Dispatch POST "/v0/workflows/{workflow}/scans/{scan}/dispatch", Dispatch; [], DISPATCH_BODY;
        ListScans GET "/v0/scans", WorkflowRead; ["workflow" "limit" "cursor"], 0;
        ShowScan GET "/v0/workflows/{workflow}/scans/{scan}", WorkflowRead; [], 0;
        ScanHistory GET "/v0/workflows/{workflow}/scans/{scan}/history", JobRead; ["limit" "cursor"], 0;
        ScanLedger GET "/v0/workflows/{workflow}/scans/{scan}/ledger", WorkflowRead; ["limit" "cursor"], 0;
        Schedule GET "/v0/schedule", WorkflowRead; ["workflow" "scan" "limit"], 0;
        Why GET "/v0/workflows/{workflow}/scans/{scan}/why", WorkflowRead; ["at" "limit"], 0;
        ListJobs GET "/v0/jobs", JobRead; ["id" "workflow" "scan" "state" "trigger" "runner" "reason" "since" "until" "limit" "cursor"], 0;
        ShowJob GET "/v0/jobs/{job}", JobRead; ["wait"], 0;
        JobContext GET "/v0/jobs/{job}/context", JobRead; [], 0;
        DeleteJob DELETE "/v0/jobs/{job}", JobWrite; [], 0;
        CancelJob POST "/v0/jobs/{job}/cancel", JobWrite; [], SMALL_BODY;
        RerunJob POST "/v0/jobs/{job}/rerun", Dispatch; [], SMALL_BODY;
        ReadLog GET "/v0/jobs/{job}/logs", JobRead;
            ["from" "tail" "limit" "step" "stream" "since" "timestamps" "follow"], 0;
        SearchLog GET "/v0/jobs/{job}/logs/search", JobRead;
            ["q" "case" "step" "stream" "since" "limit" "cursor"], 0;
        ListArtifacts GET "/v0/jobs/{job}/artifacts", JobRead; ["limit" "cursor"], 0;
        DownloadArtifact GET "/v0/jobs/{job}/artifacts/{artifact}", JobRead; [], 0;
        ListEntries GET "/v0/jobs/{job}/artifacts/{artifact}/entries", JobRead; ["limit" "cursor"], 0;
        DiffArtifact GET "/v0/jobs/{job}/artifacts/{artifact}/diff", JobRead; ["against" "limit" "cursor"], 0;
        DeleteArtifact DELETE "/v0/jobs/{job}/artifacts/{artifact}", JobWrite; [], 0;
        ListBlobs GET "/v0/blobs", BlobRead; ["project" "prefix" "delimiter" "limit" "cursor"], 0;
        DownloadBlob GET "/v0/blobs/{*path}", BlobRead; ["project"], 0;
        InspectBlob HEAD "/v0/blobs/{*path}", BlobRead; ["project"], 0;
        UploadBlob PUT "/v0/blobs/{*path}", BlobWrite; ["project" "expires_in"], BLOB_BODY;
        DeleteBlob DELETE "/v0/blobs/{*path}", BlobWrite; ["project"], 0;
        CopyBlob POST "/v0/blob-copies", BlobWrite; ["project"], SMALL_BODY;
        MoveBlob POST "/v0/blob-moves", BlobWrite; ["project"], SMALL_BODY;
        ListBlobLinks GET "/v0/blob-links", BlobRead; ["project" "limit" "cursor"], 0;
        CreateBlobLink POST "/v0/blob-links", BlobRead; ["project"], SMALL_BODY;
        RevokeBlobLink DELETE "/v0/blob-links/{link}", BlobRead; [], 0;
        Events GET "/v0/events", JobRead; ["project" "workflow" "job"], 0;
        ListTokens GET "/v0/tokens", TokenWrite; ["limit" "cursor"], 0;
        CreateToken POST "/v0/tokens", TokenWrite; [], SMALL_BODY;
        RegenerateToken POST "/v0/tokens/{token}/regenerate", TokenWrite; [], SMALL_BODY;
        RevokeToken DELETE "/v0/tokens/{token}", TokenWrite; [], 0;
        ListAudit GET "/v0/audit", Admin; ["actor" "kind" "since" "until" "limit" "cursor"], 0;
        ListRunners GET "/v0/runners", RunnerRead; ["limit" "cursor"], 0;
        ShowRunner GET "/v0/runners/{runner}", RunnerRead; [], 0;
        DeleteRunner DELETE "/v0/runners/{runner}", RunnerWrite; [], 0;
        CreateRegistration POST "/v0/runner-registrations", RunnerWrite; [], SMALL_BODY;
    }
    Session SessionRoute {
        ListSessions GET "/v0/sessions"; [], 0;
        EndSession DELETE "/v0/sessions/{session}"; [], 0;
        EndSessions DELETE "/v0/sessions"; ["tokens"], 0;
        CreateSignInLink POST "/v0/sign-in-links"; [], SMALL_BODY;
    }
    Link LinkRoute {
        Download GET "/v0/linked-blobs/{secret}"; [], 0;
        Inspect HEAD "/v0/linked-blobs/{secret}"; [], 0;
        Upload PUT "/v0/linked-blobs/{secret}"; [], BLOB_BODY;
    }
    Runner RunnerRoute {
        Hello POST "/v0/runners/hello"; [], SMALL_BODY;
        Goodbye POST "/v0/runners/goodbye"; [], SMALL_BODY;
        Messages POST "/v0/messages"; [], POLL_BODY;
    }
    Worker WorkerRoute {
        Resolve POST "/v0/jobs/{job}/resolve"; [], SMALL_BODY;
        Source GET "/v0/jobs/{job}/source"; [], 0;
        Timeline POST "/v0/jobs/{job}/timeline"; [], REPORT_BODY;
        AppendLog PATCH "/v0/jobs/{job}/logs"; ["from"], LOG_BODY;
        UploadArtifact PUT "/v0/jobs/{job}/artifacts/{artifact}"; [], ARTIFACT_BODY;
        Complete POST "/v0/jobs/{job}/complete"; [], REPORT_BODY;
    }
    Page PageRoute {
        Overview GET "/"; [], 0;
        Jobs GET "/jobs", JobRead; ["id" "state" "workflow" "scan" "trigger" "runner" "reason" "cursor"], 0;
        Job GET "/jobs/{job}", JobRead; [], 0;
        JobContext GET "/jobs/{job}/context", JobRead; [], 0;
        Log GET "/jobs/{job}/log", JobRead; ["from" "limit" "q" "step"], 0;
        RawLog GET "/jobs/{job}/log/raw", JobRead; [], 0;
        LogRecords GET "/jobs/{job}/log/records", JobRead; ["from" "limit" "step" "stream"], 0;
        LogSearch GET "/jobs/{job}/log/search", JobRead; ["q" "limit" "cursor"], 0;
        Artifact GET "/jobs/{job}/artifacts/{artifact}", JobRead; [], 0;
        ArtifactEntries GET "/jobs/{job}/artifacts/{artifact}/entries", JobRead; ["cursor"], 0;
        ArtifactDiff GET "/jobs/{job}/artifacts/{artifact}/diff", JobRead; ["against" "cursor"], 0;
        Workflows GET "/workflows", WorkflowRead; ["cursor" "state"], 0;
        Workflow GET "/workflows/{workflow}", WorkflowRead; ["focus" "lanes"], 0;
        Revisions GET "/workflows/{workflow}/revisions", WorkflowRead; ["cursor"], 0;
        Revision GET "/workflows/{workflow}/revisions/{revision}", WorkflowRead; ["against"], 0;
        Scan GET "/workflows/{workflow}/scans/{scan}", WorkflowRead; ["cursor"], 0;
        DispatchForm GET "/workflows/{workflow}/scans/{scan}/dispatch", Dispatch; ["job"], 0;
        Runners GET "/runners", RunnerRead; ["cursor"], 0;
        Runner GET "/runners/{runner}", RunnerRead; [], 0;
        Sources GET "/sources", ProjectRead; ["cursor"], 0;
        Source GET "/sources/{source}", ProjectRead; [], 0;
        Artifacts GET "/artifacts", WorkflowRead; ["cursor"], 0;
        Blobs GET "/blobs", BlobRead; ["project" "prefix" "cursor"], 0;
        Blob GET "/blobs/{*path}", BlobRead; ["project"], 0;
        Projects GET "/projects", ProjectRead; ["cursor"], 0;
        Project GET "/projects/{project}", ProjectRead; [], 0;
        Tokens GET "/tokens", TokenWrite; ["cursor"], 0;
        Audit GET "/audit", Admin; ["actor" "kind" "cursor"], 0;
        Settings GET "/settings"; [], 0;
        About GET "/about"; [], 0;
        Live GET "/live"; [], 0;
    }
    Action ActionRoute {
        Logout POST "/logout"; [], SMALL_BODY;
        EndSession POST "/settings/sessions/{session}/end"; [], SMALL_BODY;
        EndSessions POST "/settings/sessions/end"; [], SMALL_BODY;
        CancelJob POST "/jobs/{job}/cancel", JobWrite; [], SMALL_BODY;
        DeleteJob POST "/jobs/{job}/delete", JobWrite; [], SMALL_BODY;
        RerunJob POST "/jobs/{job}/rerun", Dispatch; [], SMALL_BODY;
        DeleteArtifact POST "/jobs/{job}/artifacts/{artifact}/delete", JobWrite; [], SMALL_BODY;
        Dispatch POST "/workflows/{workflow}/scans/{scan}/dispatch", Dispatch; [], DISPATCH_BODY;
        SuspendWorkflow POST "/workflows/{workflow}/suspend", WorkflowWrite; [], SMALL_BODY;
        ResumeWorkflow POST "/workflows/{workflow}/resume", WorkflowWrite; [], SMALL_BODY;
        SuspendScan POST "/workflows/{workflow}/scans/{scan}/suspend", WorkflowWrite; [], SMALL_BODY;
        ResumeScan POST "/workflows/{workflow}/scans/{scan}/resume", WorkflowWrite; [], SMALL_BODY;
        CreateRegistration POST "/runners/registrations", RunnerWrite; [], SMALL_BODY;
        RemoveRunner POST "/runners/{runner}/remove", RunnerWrite; [], SMALL_BODY;
        SyncSource POST "/sources/{source}/sync", ProjectWrite; [], SMALL_BODY;
        ApproveSource POST "/sources/{source}/approve", ProjectWrite; [], SMALL_BODY;
        UploadBlob PUT "/blobs/{*path}", BlobWrite; ["project" "expires_in"], BLOB_BODY;
        DeleteBlob POST "/blob-deletions", BlobWrite; ["project" "path"], SMALL_BODY;
        SetVar POST "/projects/{project}/vars", ProjectWrite; [], VALUE_BODY;
        DeleteVar POST "/projects/{project}/vars/{var}/delete", ProjectWrite; [], SMALL_BODY;
        SetSecret POST "/projects/{project}/secrets", SecretWrite; [], VALUE_BODY;
        DeleteSecret POST "/projects/{project}/secrets/{secret}/delete", SecretWrite; [], SMALL_BODY;
        CreateToken POST "/tokens", TokenWrite; [], SMALL_BODY;
        RegenerateToken POST "/tokens/{token}/regenerate", TokenWrite; [], SMALL_BODY;
        RevokeToken POST "/tokens/{token}/revoke", TokenWrite; [], SMALL_BODY;
    }
}

impl PageRoute {
    /// Whether a script reads the answer. Its problems are JSON then, and no page.
    pub fn is_data(self) -> bool {
        matches!(self, Self::LogRecords | Self::LogSearch | Self::Live)
    }

    /// Whether all readers with the same rights are shown the same, but for their names. Only pages that are often fetched
    /// again need to say so.
    pub fn is_for_many(self) -> bool {
        matches!(
            self,
            Self::Overview
                | Self::Jobs
                | Self::Job
                | Self::Workflows
                | Self::Workflow
                | Self::Scan
                | Self::Runners
                | Self::Runner
                | Self::Sources
                | Self::Source
                | Self::Artifacts
        )
    }
}

impl ActionRoute {
    /// Whether a script reads the answer.
    pub fn is_data(self) -> bool {
        self == Self::UploadBlob
    }
}

impl UserRoute {
    /// Whether the session of a browser is enough. Everywhere else under `/v0` it is not: what pages need they get from
    /// their own routes.
    pub fn takes_sessions(self) -> bool {
        self == Self::Events
    }
}

impl SessionRoute {
    /// Whether the session of a browser is enough. It is not for making another session, which would outlive it.
    pub fn takes_sessions(self) -> bool {
        self != Self::CreateSignInLink
    }
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
    let segments: Vec<&str> = path.split('/').collect();
    let mut others = Vec::new();
    // Makes the lifetime of the keys that of the path.
    let patterns: &Patterns<'_> = &PATTERNS;
    for (route, pattern) in patterns.get(&area(&segments)).into_iter().flatten() {
        if let Some(parameters) = parameters(pattern, &segments) {
            if route.method == *method {
                return Matched::Route(route, parameters);
            }
            others.push(&route.method);
        }
    }
    // The answer to GET without its body, which the server leaves out.
    if *method == Method::HEAD && others.contains(&&Method::GET) {
        return find(&Method::GET, path);
    }
    if others.is_empty() {
        Matched::Nothing
    } else {
        Matched::OtherMethods(others)
    }
}

/// The routes with the segments of their paths, by area, in the order of the table.
type Patterns<'a> = HashMap<Area<'a>, Vec<(&'static Route, Vec<Segment>)>>;

/// Whether a path is below `/v0`, and the segment that follows. No route has a parameter there, so a path is compared with
/// the few routes of its area alone.
type Area<'a> = (bool, &'a str);

static PATTERNS: LazyLock<Patterns<'static>> = LazyLock::new(|| {
    let mut patterns = Patterns::new();
    for route in ROUTES {
        let segments: Vec<&str> = route.path.split('/').collect();
        let pattern = segments.iter().copied().map(Segment::of).collect();
        patterns
            .entry(area(&segments))
            .or_default()
            .push((route, pattern));
    }
    patterns
});

fn area<'a>(segments: &[&'a str]) -> Area<'a> {
    match segments {
        ["", "v0", area, ..] => (true, area),
        ["", area, ..] => (false, area),
        [..] => (false, ""),
    }
}

/// A segment of a route's path.
enum Segment {
    Literal(&'static str),
    Parameter,
    /// All segments from here on.
    Rest,
}

impl Segment {
    fn of(text: &'static str) -> Self {
        match text {
            text if text.starts_with("{*") => Self::Rest,
            text if text.starts_with('{') => Self::Parameter,
            text => Self::Literal(text),
        }
    }
}

/// The parameters of a path, if it fits `pattern`. No two patterns of the table with one method differ only in the names of
/// parameters; a test checks this.
fn parameters(pattern: &[Segment], path: &[&str]) -> Option<Vec<String>> {
    let has_rest = matches!(pattern.last(), Some(Segment::Rest));
    if path.len() < pattern.len() || (path.len() > pattern.len() && !has_rest) {
        return None;
    }
    let is_alike = pattern
        .iter()
        .zip(path)
        .all(|(wanted, segment)| match wanted {
            Segment::Literal(wanted) => wanted == segment,
            Segment::Parameter => !segment.is_empty(),
            Segment::Rest => true,
        });
    if !is_alike {
        return None;
    }
    let decode = |segment: &str| {
        let decoded = percent_encoding::percent_decode_str(segment);
        Some(decoded.decode_utf8().ok()?.into_owned())
    };
    let mut found = Vec::new();
    for (place, wanted) in pattern.iter().enumerate() {
        match wanted {
            Segment::Literal(_) => {}
            Segment::Parameter => found.push(decode(path.get(place)?)?),
            Segment::Rest => {
                for segment in path.get(place..)? {
                    found.push(decode(segment)?);
                }
            }
        }
    }
    Some(found)
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
        assert!(matches!(route.access, Access::User(UserRoute::Dispatch, _)));
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
    fn the_area_of_a_route_is_a_literal() {
        for route in ROUTES {
            let segments: Vec<&str> = route.path.split('/').collect();
            assert!(!area(&segments).1.starts_with('{'), "{}", route.path);
        }
    }

    #[test]
    fn the_rest_of_a_path_is_decoded_segment_by_segment() {
        let names = |path: &str| match find(&Method::GET, path) {
            Matched::Route(_, parameters) => parameters,
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!(names("/v0/blobs/a%20b/c%2Fd"), ["a b", "c/d"]);
        assert_eq!(names("/v0/blobs//a/"), ["", "a", ""]);
        assert_eq!(names("/v0/blobs"), [] as [&str; 0]);
    }

    #[test]
    fn all_is_below_v0_and_a_jobs_path_has_its_id_alone() {
        for route in ROUTES {
            let is_probe = matches!(
                route.access,
                Access::Public(PublicRoute::Healthz | PublicRoute::Readyz)
                    | Access::Local(LocalRoute::Metrics, _)
            );
            let is_of_api = !is_probe && !route.access.is_for_browsers();
            assert_eq!(route.path.starts_with("/v0/"), is_of_api, "{}", route.path);
            if route.path.contains("{job}") || route.path.contains("{artifact}") {
                let after = route
                    .path
                    .trim_start_matches("/v0")
                    .strip_prefix("/jobs/{job}")
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
