//! One handler for each route, grouped by path.

pub(crate) mod artifacts;
pub(crate) mod audit;
mod blob_links;
pub(crate) mod blobs;
mod content;
pub(crate) mod dispatch;
pub(crate) mod entries;
pub(crate) mod events;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub(crate) mod health;
pub(crate) mod jobs;
pub(crate) mod log_search;
pub(crate) mod logs;
pub(crate) mod projects;
mod prune;
pub(crate) mod revisions;
pub(crate) mod runners;
pub(crate) mod scans;
mod schema;
pub(crate) mod sessions;
pub(crate) mod sources;
pub(crate) mod suspensions;
pub(crate) mod tokens;
mod validate;
pub(crate) mod why;
mod worker;
pub(crate) mod workflows;

use std::pin::Pin;

pub(crate) use blob_links::{LINKED_BLOBS, no_such_link};
use reconciler::{Handle, RunnerSession, Worker};
use warp::reply::Response;

use crate::access::Caller;
use crate::failure::Failure;
use crate::pages;
use crate::request::Request;
use crate::routes::{LocalRoute, PublicRoute, RunnerRoute, SessionRoute, UserRoute, WorkerRoute};
use crate::service::Service;
use crate::visible::Visible;

/// A running handler, on the heap with its own size. One future for all handlers would have the size of the largest, many
/// kilobytes, and each held read and poll would keep them.
pub(crate) type Answering<'a> =
    Pin<Box<dyn Future<Output = Result<Response, Failure>> + Send + 'a>>;

/// Calls the handler of the caller's route.
pub(crate) async fn handle(
    service: &Service,
    caller: Caller,
    request: Request,
) -> Result<Response, Failure> {
    let handle = &service.handle;
    match caller {
        Caller::Local(LocalRoute::Metrics) => Box::pin(health::metrics(service)).await,
        Caller::Public(route) => public(service, route, request).await,
        Caller::Page(route, me) => pages::show(service, &me, route, &request).await,
        Caller::Action(route, me) => pages::act(service, &me, route, request).await,
        Caller::Session(route, me) => session(&me, route, request).await,
        Caller::User(route, me) => user(&me, route, request).await,
        Caller::Link(route, linked) => Box::pin(blob_links::follow(&linked, route, request)).await,
        Caller::Runner(route, runner) => of_runner(handle, route, runner, request).await,
        Caller::Worker(route, worker) => of_worker(handle, route, &worker, request).await,
    }
}

async fn public(
    service: &Service,
    route: PublicRoute,
    request: Request,
) -> Result<Response, Failure> {
    let handle = &service.handle;
    let answer: Answering<'_> = match route {
        PublicRoute::LoginPage => return Ok(pages::login_page(service, &request)),
        PublicRoute::LinkPage => return Ok(pages::link_page(service, &request)),
        PublicRoute::Login => Box::pin(pages::login(service, request)),
        PublicRoute::Asset => return pages::asset(&request),
        PublicRoute::Healthz => Box::pin(health::alive(handle)),
        PublicRoute::Readyz => Box::pin(health::ready(handle)),
        PublicRoute::WorkflowSchema => return Ok(schema::workflow(&request)),
        PublicRoute::OpenApi => return Ok(schema::openapi(&request)),
        PublicRoute::Docs => return Ok(schema::docs(&request)),
        PublicRoute::CreateSession => Box::pin(sessions::create(handle, request)),
        PublicRoute::RegisterRunner => Box::pin(runners::register(handle, request)),
    };
    answer.await
}

async fn session(me: &Visible, route: SessionRoute, request: Request) -> Result<Response, Failure> {
    let answer: Answering<'_> = match route {
        SessionRoute::ListSessions => return Ok(sessions::list(me)),
        SessionRoute::EndSession => Box::pin(sessions::end(me, &request)),
        SessionRoute::EndSessions => Box::pin(sessions::end_all(me, &request)),
        SessionRoute::CreateSignInLink => Box::pin(sessions::create_link(me, request)),
    };
    answer.await
}

async fn user(me: &Visible, route: UserRoute, request: Request) -> Result<Response, Failure> {
    let answer: Answering<'_> = match route {
        UserRoute::ListSources => return sources::list(me, &request),
        UserRoute::ShowSource => Box::pin(sources::show(me, &request)),
        UserRoute::SyncSource => Box::pin(sources::sync(me, &request)),
        UserRoute::ApproveSource => Box::pin(sources::approve(me, request)),
        UserRoute::ListProjects => return projects::list(me, &request),
        UserRoute::ShowProject => return projects::show(me, &request),
        UserRoute::ListVars => return projects::list_vars(me, &request),
        UserRoute::ShowVar => return projects::show_var(me, &request),
        UserRoute::SetVar => Box::pin(projects::set_var(me, request)),
        UserRoute::DeleteVar => Box::pin(projects::delete_var(me, &request)),
        UserRoute::ListSecrets => return projects::list_secrets(me, &request),
        UserRoute::SetSecret => Box::pin(projects::set_secret(me, request)),
        UserRoute::SecretMasking => Box::pin(projects::masking(me, &request)),
        UserRoute::DeleteSecret => Box::pin(projects::delete_secret(me, &request)),
        UserRoute::ListWorkflows => return workflows::list(me, &request),
        UserRoute::ShowWorkflow => return workflows::show(me, &request),
        UserRoute::ListRevisions => Box::pin(revisions::list(me, &request)),
        UserRoute::ShowRevision => Box::pin(revisions::show(me, &request)),
        UserRoute::DiffRevision => Box::pin(revisions::diff(me, &request)),
        UserRoute::Validate => Box::pin(validate::validate(request)),
        UserRoute::PruneWorkflow => Box::pin(prune::prune(me, request)),
        UserRoute::SuspendWorkflow | UserRoute::SuspendScan => {
            Box::pin(suspensions::suspend(me, request))
        }
        UserRoute::ResumeWorkflow | UserRoute::ResumeScan => {
            Box::pin(suspensions::resume(me, request))
        }
        UserRoute::Dispatch => Box::pin(dispatch::dispatch(me, request)),
        UserRoute::ListScans => Box::pin(scans::list(me, &request)),
        UserRoute::ShowScan => Box::pin(scans::show(me, &request)),
        UserRoute::ScanHistory => Box::pin(scans::history(me, &request)),
        UserRoute::ScanLedger => Box::pin(scans::ledger(me, &request)),
        UserRoute::Schedule => return scans::schedule(me, &request),
        UserRoute::Why => Box::pin(why::why(me, &request)),
        UserRoute::ListJobs => Box::pin(jobs::list(me, &request)),
        UserRoute::ShowJob => Box::pin(jobs::show(me, &request)),
        UserRoute::JobContext => Box::pin(jobs::context(me, &request)),
        UserRoute::DeleteJob => Box::pin(jobs::delete(me, &request)),
        UserRoute::CancelJob => Box::pin(jobs::cancel(me, request)),
        UserRoute::RerunJob => Box::pin(dispatch::rerun(me, request)),
        UserRoute::ReadLog => Box::pin(logs::read(me, &request)),
        UserRoute::SearchLog => Box::pin(log_search::search(me, &request)),
        UserRoute::ListArtifacts => Box::pin(artifacts::list(me, &request)),
        UserRoute::DownloadArtifact => Box::pin(artifacts::download(me, &request)),
        UserRoute::ListEntries => Box::pin(entries::list(me, &request)),
        UserRoute::DiffArtifact => Box::pin(entries::diff(me, &request)),
        UserRoute::DeleteArtifact => Box::pin(artifacts::delete(me, &request)),
        UserRoute::ListBlobs => Box::pin(blobs::list(me, &request)),
        UserRoute::DownloadBlob => Box::pin(blobs::download(me, &request)),
        UserRoute::InspectBlob => Box::pin(blobs::inspect(me, &request)),
        UserRoute::UploadBlob => Box::pin(blobs::upload(me, request)),
        UserRoute::DeleteBlob => Box::pin(blobs::delete(me, &request)),
        UserRoute::CopyBlob => Box::pin(blobs::copy(me, request)),
        UserRoute::MoveBlob => Box::pin(blobs::rename(me, request)),
        UserRoute::ListBlobLinks => return blob_links::list(me, &request),
        UserRoute::CreateBlobLink => Box::pin(blob_links::create(me, request)),
        UserRoute::RevokeBlobLink => Box::pin(blob_links::revoke(me, &request)),
        UserRoute::Events => Box::pin(events::listen(me, &request)),
        UserRoute::ListTokens => return tokens::list(me, &request),
        UserRoute::CreateToken => Box::pin(tokens::create(me, request)),
        UserRoute::RegenerateToken => Box::pin(tokens::regenerate(me, request)),
        UserRoute::RevokeToken => Box::pin(tokens::revoke(me, &request)),
        UserRoute::ListAudit => Box::pin(audit::list(me, &request)),
        UserRoute::ListRunners => return runners::list(me, &request),
        UserRoute::ShowRunner => Box::pin(runners::show(me, &request)),
        UserRoute::DeleteRunner => Box::pin(runners::delete(me, &request)),
        UserRoute::CreateRegistration => Box::pin(runners::create_registration(me, request)),
    };
    answer.await
}

async fn of_runner(
    handle: &Handle,
    route: RunnerRoute,
    runner: RunnerSession,
    request: Request,
) -> Result<Response, Failure> {
    let answer: Answering<'_> = match route {
        RunnerRoute::Hello => Box::pin(runners::hello(handle, runner, request)),
        RunnerRoute::Goodbye => Box::pin(runners::goodbye(handle, runner, request)),
        RunnerRoute::Messages => Box::pin(runners::messages(handle, runner, request)),
    };
    answer.await
}

async fn of_worker(
    handle: &Handle,
    route: WorkerRoute,
    worker: &Worker,
    request: Request,
) -> Result<Response, Failure> {
    let answer: Answering<'_> = match route {
        WorkerRoute::Resolve => Box::pin(worker::resolve(handle, worker)),
        WorkerRoute::Source => Box::pin(worker::source(handle, worker)),
        WorkerRoute::Timeline => Box::pin(worker::timeline(handle, worker, request)),
        WorkerRoute::AppendLog => Box::pin(worker::append_log(handle, worker, request)),
        WorkerRoute::UploadArtifact => Box::pin(artifacts::upload(handle, worker, request)),
        WorkerRoute::Complete => Box::pin(worker::complete(handle, worker, request)),
    };
    answer.await
}
