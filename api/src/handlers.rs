//! One handler for each route, grouped by path.

mod artifacts;
mod audit;
mod blob_links;
mod blobs;
mod content;
mod dispatch;
mod entries;
mod events;
mod health;
mod jobs;
mod log_search;
mod logs;
mod projects;
mod prune;
mod revisions;
mod runners;
mod scans;
mod schema;
mod sessions;
mod sources;
mod tokens;
mod validate;
mod why;
mod worker;
mod workflows;

pub(crate) use blob_links::{LINKED_BLOBS, no_such_link};
use reconciler::{Handle, RunnerSession, Worker};
use warp::reply::Response;

use crate::access::Caller;
use crate::failure::Failure;
use crate::request::Request;
use crate::routes::{LocalRoute, PublicRoute, RunnerRoute, SessionRoute, UserRoute, WorkerRoute};
use crate::service::Service;
use crate::visible::Visible;

/// Calls the handler of the caller's route.
pub(crate) async fn handle(
    service: &Service,
    caller: Caller,
    request: Request,
) -> Result<Response, Failure> {
    let handle = &service.handle;
    match caller {
        Caller::Local(LocalRoute::Metrics) => health::metrics(service).await,
        Caller::Public(route) => public(handle, route, request).await,
        Caller::Session(route, me) => session(&me, route, &request).await,
        Caller::User(route, me) => user(&me, route, request).await,
        Caller::Link(route, linked) => blob_links::follow(&linked, route, request).await,
        Caller::Runner(route, runner) => of_runner(handle, route, runner, request).await,
        Caller::Worker(route, worker) => of_worker(handle, route, &worker, request).await,
    }
}

async fn public(
    handle: &Handle,
    route: PublicRoute,
    request: Request,
) -> Result<Response, Failure> {
    match route {
        PublicRoute::Healthz => health::alive(handle).await,
        PublicRoute::Readyz => health::ready(handle).await,
        PublicRoute::WorkflowSchema => Ok(schema::workflow(&request)),
        PublicRoute::OpenApi => Ok(schema::openapi(&request)),
        PublicRoute::Docs => Ok(schema::docs(&request)),
        PublicRoute::CreateSession => sessions::create(handle, request).await,
        PublicRoute::RegisterRunner => runners::register(handle, request).await,
    }
}

async fn session(
    me: &Visible,
    route: SessionRoute,
    request: &Request,
) -> Result<Response, Failure> {
    match route {
        SessionRoute::ListSessions => Ok(sessions::list(me)),
        SessionRoute::EndSession => sessions::end(me, request).await,
        SessionRoute::EndSessions => sessions::end_all(me, request).await,
    }
}

async fn user(me: &Visible, route: UserRoute, request: Request) -> Result<Response, Failure> {
    match route {
        UserRoute::ListSources => sources::list(me, &request),
        UserRoute::ShowSource => sources::show(me, &request),
        UserRoute::SyncSource => sources::sync(me, &request).await,
        UserRoute::ListProjects => projects::list(me, &request),
        UserRoute::ShowProject => projects::show(me, &request),
        UserRoute::ListVars => projects::list_vars(me, &request),
        UserRoute::ShowVar => projects::show_var(me, &request),
        UserRoute::SetVar => projects::set_var(me, request).await,
        UserRoute::DeleteVar => projects::delete_var(me, &request).await,
        UserRoute::ListSecrets => projects::list_secrets(me, &request),
        UserRoute::SetSecret => projects::set_secret(me, request).await,
        UserRoute::SecretMasking => projects::masking(me, &request).await,
        UserRoute::DeleteSecret => projects::delete_secret(me, &request).await,
        UserRoute::ListWorkflows => workflows::list(me, &request),
        UserRoute::ShowWorkflow => workflows::show(me, &request),
        UserRoute::ListRevisions => revisions::list(me, &request).await,
        UserRoute::ShowRevision => revisions::show(me, &request).await,
        UserRoute::DiffRevision => revisions::diff(me, &request).await,
        UserRoute::Validate => validate::validate(request).await,
        UserRoute::PruneWorkflow => prune::prune(me, request).await,
        UserRoute::Dispatch => dispatch::dispatch(me, request).await,
        UserRoute::ListScans => scans::list(me, &request).await,
        UserRoute::ShowScan => scans::show(me, &request).await,
        UserRoute::ScanHistory => scans::history(me, &request).await,
        UserRoute::ScanLedger => scans::ledger(me, &request).await,
        UserRoute::Schedule => scans::schedule(me, &request),
        UserRoute::Why => why::why(me, &request).await,
        UserRoute::ListJobs => jobs::list(me, &request).await,
        UserRoute::ShowJob => jobs::show(me, &request).await,
        UserRoute::JobContext => jobs::context(me, &request).await,
        UserRoute::DeleteJob => jobs::delete(me, &request).await,
        UserRoute::CancelJob => jobs::cancel(me, &request).await,
        UserRoute::ReadLog => logs::read(me, &request).await,
        UserRoute::SearchLog => log_search::search(me, &request).await,
        UserRoute::ListArtifacts => artifacts::list(me, &request).await,
        UserRoute::DownloadArtifact => artifacts::download(me, &request).await,
        UserRoute::ListEntries => entries::list(me, &request).await,
        UserRoute::DiffArtifact => entries::diff(me, &request).await,
        UserRoute::DeleteArtifact => artifacts::delete(me, &request).await,
        UserRoute::ListBlobs => blobs::list(me, &request).await,
        UserRoute::DownloadBlob => blobs::download(me, &request).await,
        UserRoute::InspectBlob => blobs::inspect(me, &request).await,
        UserRoute::UploadBlob => blobs::upload(me, request).await,
        UserRoute::DeleteBlob => blobs::delete(me, &request).await,
        UserRoute::CopyBlob => blobs::copy(me, request).await,
        UserRoute::MoveBlob => blobs::rename(me, request).await,
        UserRoute::ListBlobLinks => blob_links::list(me, &request),
        UserRoute::CreateBlobLink => blob_links::create(me, request).await,
        UserRoute::RevokeBlobLink => blob_links::revoke(me, &request).await,
        UserRoute::Events => events::listen(me, &request).await,
        UserRoute::ListTokens => tokens::list(me, &request),
        UserRoute::CreateToken => tokens::create(me, request).await,
        UserRoute::RegenerateToken => tokens::regenerate(me, request).await,
        UserRoute::RevokeToken => tokens::revoke(me, &request).await,
        UserRoute::ListAudit => audit::list(me, &request).await,
        UserRoute::ListRunners => runners::list(me, &request),
        UserRoute::ShowRunner => runners::show(me, &request).await,
        UserRoute::DeleteRunner => runners::delete(me, &request).await,
        UserRoute::CreateRegistration => runners::create_registration(me, request).await,
    }
}

async fn of_runner(
    handle: &Handle,
    route: RunnerRoute,
    runner: RunnerSession,
    request: Request,
) -> Result<Response, Failure> {
    match route {
        RunnerRoute::Hello => runners::hello(handle, runner, request).await,
        RunnerRoute::Goodbye => runners::goodbye(handle, runner, request).await,
        RunnerRoute::Messages => runners::messages(handle, runner, request).await,
    }
}

async fn of_worker(
    handle: &Handle,
    route: WorkerRoute,
    worker: &Worker,
    request: Request,
) -> Result<Response, Failure> {
    match route {
        WorkerRoute::Resolve => worker::resolve(handle, worker).await,
        WorkerRoute::Timeline => worker::timeline(handle, worker, request).await,
        WorkerRoute::AppendLog => worker::append_log(handle, worker, request).await,
        WorkerRoute::UploadArtifact => artifacts::upload(handle, worker, request).await,
        WorkerRoute::Complete => worker::complete(handle, worker, request).await,
    }
}
