//! The table of all routes. A row has everything about a route except its handler: who may call it, its query, the limit of its
//! body, and its description for the OpenAPI document. Each area has its own table.

pub(crate) mod headers;
mod matching;
mod operation;
mod parameters;

use std::sync::LazyLock;

use http::Method;
use model::Scope;

pub(crate) use self::headers::Header;
pub(crate) use self::matching::{Matched, find, has_area};
pub(crate) use self::operation::{Answer, Operation, RequestBody};
pub(crate) use self::parameters::{DURATION, Parameter};

/// Who may call a route, and its name in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone. The body may hold credentials.
    Public(PublicRoute),
    /// Anyone on this machine, and others with a personal access token with this scope.
    Local(LocalRoute, Scope),
    /// A personal access token with this scope.
    User(UserRoute, Scope),
    /// A personal access token of any scope, or a signed-in browser where the route takes sessions. The handler may need a scope.
    Session(SessionRoute),
    /// The holder of a link to a blob. The path has its secret.
    Link(LinkRoute),
    /// A runner session token.
    Runner(RunnerRoute),
    /// The worker session token of the job in the path.
    Worker(WorkerRoute),
    /// A signed-in browser with a token of this scope, or of any scope. Other browsers are sent to the sign-in. The answer is a
    /// page, or data for a page.
    Page(PageRoute, Option<Scope>),
    /// The same for a form or script of a page of this daemon that changes something.
    Action(ActionRoute, Option<Scope>),
}

impl Access {
    /// Whether the callers are browsers. Routes for browsers change with every release and are not in the OpenAPI document.
    pub const fn is_for_browsers(self) -> bool {
        use PublicRoute as P;
        match self {
            Self::Page(..) | Self::Action(..) => true,
            Self::Public(P::LoginPage | P::LinkPage | P::WelcomePage | P::Login | P::Asset) => true,
            Self::Public(_) | Self::Local(..) | Self::User(..) | Self::Session(_) => false,
            Self::Link(_) | Self::Runner(_) | Self::Worker(_) => false,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Route {
    pub access: Access,
    pub method: Method,
    /// The path. Segments in braces are parameters. With a star, the last parameter takes the rest of the path.
    pub path: &'static str,
    /// The names of the query parameters. Others are refused.
    pub query: &'static [&'static str],
    /// Largest body in bytes; 0 for none.
    pub body: u64,
    /// The name in code.
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Parameter],
    /// Absent for routes for browsers.
    pub(crate) operation: Option<Operation>,
}

/// The names of routes in code. The matches over them have no wildcard, so the compiler asks for the handler of a new route.
macro_rules! names {
    ($($name:ident { $($id:ident)* })*) => {
        $(#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($id,)*
        })*

        #[cfg(test)]
        const NAMED: usize = [$($(stringify!($id)),*),*].len();
    };
}

names! {
    PublicRoute {
        Healthz Readyz WorkflowSchema OpenApi Docs RegisterRunner CreateSession BeginDeviceLogin LoginPage LinkPage
        WelcomePage Login Asset
    }
    LocalRoute {
        Metrics
    }
    UserRoute {
        ListSources ShowSource ListTips SyncSource ApproveSource ListProjects ShowProject ListVars ShowVar SetVar
        DeleteVar ListSecrets SetSecret DeleteSecret SecretMasking ListWorkflows ShowWorkflow ListRevisions
        ShowRevision DiffRevision Validate PruneWorkflow SuspendWorkflow ResumeWorkflow SuspendScan
        ResumeScan Dispatch ListScans ShowScan ScanHistory ScanLedger Schedule Why ListJobs ShowJob
        JobContext DeleteJob CancelJob RerunJob ReadLog SearchLog ListArtifacts DownloadArtifact ListEntries
        DiffArtifact DeleteArtifact ListBlobs DownloadBlob InspectBlob UploadBlob DeleteBlob CopyBlob
        MoveBlob ListBlobLinks RevokeBlobLink Events ListTokens CreateToken RegenerateToken
        RevokeToken ListAudit ListChannels ShowChannel SetChannel DeleteChannel TestChannel RetryChannel
        ListDeliveries ListConditions AcknowledgeCondition SilenceCondition ListRules SetRule DeleteRule PreviewRule ListRunners ShowRunner
        LimitRunner DeleteRunner CreateRegistration MoveToken ListUsers CreateUser UpdateUser DeleteUser CreateUserLink
        ListMembers SetMember RemoveMember ListCallbacks CheckCallbacks CreateCallback ShowCallback DeleteCallback
        ShowCallbackRules SetCallbackRules ListCallbackTokens CreateCallbackToken EndCallbackToken ListInteractions ShowInteraction
        ListPayloadGroups CreatePayloadGroup ShowPayloadGroup ChangePayloadGroup DeletePayloadGroup ReadPayload
        StorePayload DeletePayload RenderPayloads
    }
    SessionRoute {
        ListSessions EndSession EndSessions CreateSignInLink ChangePassword CreateBlobLink ShowUser ShowMe
    }
    LinkRoute {
        Download Inspect Upload
    }
    RunnerRoute {
        Hello Goodbye Messages
    }
    WorkerRoute {
        Resolve Source Timeline AppendLog UploadArtifact Complete
    }
    PageRoute {
        Overview Jobs Job JobContext Log RawLog LogRecords LogSearch Artifact ArtifactEntries ArtifactDiff
        Workflows Workflow Revisions Revision Scan DispatchForm Runners Runner Sources Source Artifacts
        Blobs Blob Projects Project Notifications Tokens Audit Settings About Live
        Device Users User Members Callback Interaction PayloadGroup Payload
    }
    ActionRoute {
        Logout EndSession EndSessions CancelJob DeleteJob RerunJob DeleteArtifact Dispatch SuspendWorkflow
        ResumeWorkflow SuspendScan ResumeScan CreateRegistration LimitRunner RemoveRunner SyncSource ApproveSource
        UploadBlob DeleteBlob SetVar DeleteVar SetSecret DeleteSecret CreateToken RegenerateToken
        RevokeToken AcknowledgeCondition SilenceCondition SetChannel TestChannel RetryChannel
        DeleteChannel SetRule DeleteRule ChangePassword ConfirmDevice CreateUser UpdateUser
        CreateUserLink DeleteUser SetMember RemoveMember MoveToken CreateCallback DeleteCallback SetCallbackRules
        CreateCallbackToken EndCallbackToken StorePayload DeletePayload
    }
}

macro_rules! option {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

macro_rules! access {
    (Public $id:ident) => { Access::Public(PublicRoute::$id) };
    (Local $id:ident $scope:ident) => { Access::Local(LocalRoute::$id, Scope::$scope) };
    (User $id:ident $scope:ident) => { Access::User(UserRoute::$id, Scope::$scope) };
    (Session $id:ident) => { Access::Session(SessionRoute::$id) };
    (Link $id:ident) => { Access::Link(LinkRoute::$id) };
    (Runner $id:ident) => { Access::Runner(RunnerRoute::$id) };
    (Worker $id:ident) => { Access::Worker(WorkerRoute::$id) };
    (Page $id:ident $($scope:ident)?) => { Access::Page(PageRoute::$id, option!($(Scope::$scope)?)) };
    (Action $id:ident $($scope:ident)?) => { Access::Action(ActionRoute::$id, option!($(Scope::$scope)?)) };
}

/// The table of an area. A row is `access name method path, scope; [query], limit of the body, operation;`. Some kinds of access
/// have no scope, and routes for browsers have no operation.
macro_rules! routes {
    ($($kind:ident $id:ident $method:ident $path:literal $(, $scope:ident)?;
        [$($query:ident),*], $body:expr $(, $operation:expr)?;)*) => {
        use super::*;

        pub(super) static ROUTES: &[Route] = &[
            $(Route {
                access: access!($kind $id $($scope)?),
                method: Method::$method,
                path: $path,
                query: &[$(parameters::$query.name),*],
                body: $body,
                name: stringify!($id),
                parameters: &[$(parameters::$query),*],
                operation: option!($($operation)?),
            },)*
        ];
    };
}

mod blobs;
mod callbacks;
mod daemon;
mod jobs;
mod notify;
mod payloads;
mod projects;
mod runners;
mod sessions;
mod tokens;
mod users;
mod workflows;

pub static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let areas = [
        daemon::ROUTES,
        projects::ROUTES,
        workflows::ROUTES,
        jobs::ROUTES,
        blobs::ROUTES,
        callbacks::ROUTES,
        payloads::ROUTES,
        notify::ROUTES,
        tokens::ROUTES,
        runners::ROUTES,
        sessions::ROUTES,
        users::ROUTES,
    ];
    areas.concat()
});

impl PageRoute {
    /// Whether a script reads the answer. Then problems are JSON instead of a page.
    pub fn is_data(self) -> bool {
        matches!(self, Self::LogRecords | Self::LogSearch | Self::Live)
    }

    /// True if the page is the same for all readers with the same rights, except for their names. This is useful only for pages
    /// that are fetched often.
    pub fn is_shareable(self) -> bool {
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
                | Self::Notifications
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
    /// One of these scopes is sufficient. The stream of events sends what each allows.
    pub fn scopes(self, of_row: &Scope) -> &[Scope] {
        match self {
            Self::Events => &[Scope::JobRead, Scope::CallbackRead],
            // A job makes names, and sees what they have heard.
            Self::ListCallbacks | Self::ShowCallback => &[Scope::ProjectRead, Scope::CallbackOwn],
            Self::CreateCallbackToken => &[Scope::CallbackWrite, Scope::CallbackOwn],
            Self::ListInteractions | Self::ShowInteraction => {
                &[Scope::CallbackRead, Scope::CallbackOwn]
            }
            _ => std::slice::from_ref(of_row),
        }
    }

    /// Whether the session of a browser is sufficient. Under `/v0` it is sufficient only here: pages load their data from their
    /// own routes.
    pub fn takes_sessions(self) -> bool {
        self == Self::Events
    }
}

impl SessionRoute {
    /// Whether the token of a job is sufficient. The other routes are about the credentials of a person.
    pub fn takes_jobs(self) -> bool {
        matches!(self, Self::CreateBlobLink | Self::ShowMe)
    }

    /// Whether the session of a browser is sufficient. A session must not make a link, which would outlive it.
    pub fn takes_sessions(self) -> bool {
        !matches!(self, Self::CreateSignInLink | Self::CreateBlobLink)
    }
}
