//! One handler for each route, grouped by path.

pub(crate) mod artifacts;
pub(crate) mod audit;
pub(crate) mod blob_links;
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
pub(crate) mod schema;
pub(crate) mod sessions;
pub(crate) mod sources;
pub(crate) mod suspensions;
pub(crate) mod tokens;
mod validate;
pub(crate) mod why;
mod worker;
pub(crate) mod workflows;

use std::pin::Pin;

use reconciler::{Handle, RunnerSession, Worker};
use warp::reply::Response;
use wire::Page;

use self::audit::AuditQuery;
use self::blobs::BlobsQuery;
use self::entries::DiffQuery;
use self::jobs::JobsQuery;
use self::revisions::RevisionsQuery;
use self::scans::FilePage;
use crate::failure::Failure;
use crate::limits::{ENTRIES_PAGE, HISTORY_PAGE, PAGE};
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::routes::{RunnerRoute, SessionRoute, UserRoute, WorkerRoute};
use crate::visible::Visible;

/// A running handler, on the heap with its own size. One future for all handlers would have the size of the largest, many
/// kilobytes, and each held read and poll would keep them.
pub(crate) type Answering<'a> =
    Pin<Box<dyn Future<Output = Result<Response, Failure>> + Send + 'a>>;

/// Answers with what is loaded, as JSON.
macro_rules! json {
    ($loaded:expr) => {
        Box::pin(async { Ok::<_, Failure>(reply::ok(&$loaded)) })
    };
}

/// Answers without a body once the work is done.
macro_rules! done {
    ($work:expr) => {
        Box::pin(async { $work.await.map(|()| reply::empty()) })
    };
}

pub(crate) async fn session(
    me: &Visible,
    route: SessionRoute,
    request: Request,
) -> Result<Response, Failure> {
    let answer: Answering<'_> = match route {
        SessionRoute::ListSessions => json!(Page::all(sessions::list(me))),
        SessionRoute::EndSession => Box::pin(sessions::end(me, &request)),
        SessionRoute::EndSessions => Box::pin(sessions::end_all(me, &request)),
        SessionRoute::CreateSignInLink => Box::pin(sessions::create_link(me, request)),
    };
    answer.await
}

pub(crate) async fn user(
    me: &Visible,
    route: UserRoute,
    request: Request,
) -> Result<Response, Failure> {
    let query = &request.query;
    let path = |n| request.parameter(n);
    let answer: Answering<'_> = match route {
        UserRoute::ListSources => json!(sources::list(me, &Window::of(query)?)),
        UserRoute::ShowSource => json!(sources::show(me, path(0)).await?),
        UserRoute::SyncSource => json!(sources::sync(me, path(0), query.flag("wait")?).await?),
        UserRoute::ApproveSource => Box::pin(sources::approve(me, request)),
        UserRoute::ListProjects => json!(projects::list(me, &Window::of(query)?)),
        UserRoute::ShowProject => json!(projects::show(me, path(0))?),
        UserRoute::ListVars => json!(projects::list_vars(me, path(0), &Window::of(query)?)?),
        UserRoute::ShowVar => return projects::show_var(me, &request),
        UserRoute::SetVar => Box::pin(projects::set_var(me, request)),
        UserRoute::DeleteVar => Box::pin(projects::delete_var(me, &request)),
        UserRoute::ListSecrets => json!(projects::list_secrets(me, path(0), &Window::of(query)?)?),
        UserRoute::SetSecret => Box::pin(projects::set_secret(me, request)),
        UserRoute::SecretMasking => json!(projects::masking(me, path(0), path(1)).await?),
        UserRoute::DeleteSecret => Box::pin(projects::delete_secret(me, &request)),
        UserRoute::ListWorkflows => json!(workflows::list(
            me,
            workflows::with_retired(query)?,
            &Window::of(query)?
        )),
        UserRoute::ShowWorkflow => json!(workflows::show(me, path(0))?),
        UserRoute::ListRevisions => {
            json!(revisions::list(me, path(0), &RevisionsQuery::of(query)?).await?)
        }
        UserRoute::ShowRevision => json!(revisions::show(me, path(0), path(1)).await?),
        UserRoute::DiffRevision => {
            json!(revisions::diff(me, path(0), path(1), query.get("from")).await?)
        }
        UserRoute::Validate => Box::pin(validate::validate(request)),
        UserRoute::PruneWorkflow => Box::pin(prune::prune(me, request)),
        UserRoute::SuspendWorkflow | UserRoute::SuspendScan => {
            Box::pin(suspensions::suspend(me, request))
        }
        UserRoute::ResumeWorkflow | UserRoute::ResumeScan => {
            Box::pin(suspensions::resume(me, request))
        }
        UserRoute::Dispatch => Box::pin(dispatch::dispatch(me, request)),
        UserRoute::ListScans => {
            json!(scans::list(me, query.get("workflow"), &Window::of(query)?).await?)
        }
        UserRoute::ShowScan => json!(scans::show(me, path(0), path(1)).await?),
        UserRoute::ScanHistory => {
            json!(scans::history(me, path(0), path(1), &FilePage::of(query, HISTORY_PAGE)?).await?)
        }
        UserRoute::ScanLedger => {
            json!(scans::ledger(me, path(0), path(1), &FilePage::of(query, PAGE)?).await?)
        }
        UserRoute::Schedule => json!(scans::schedule(
            me,
            query.get("workflow"),
            query.get("scan"),
            query.limit()?
        )?),
        UserRoute::Why => {
            json!(why::why(me, path(0), path(1), query.time("at")?, query.limit()?).await?)
        }
        UserRoute::ListJobs => json!(jobs::list(me, JobsQuery::of(query)?).await?),
        UserRoute::ShowJob => Box::pin(jobs::show(me, &request)),
        UserRoute::JobContext => json!(jobs::context(me, &me.job_named(path(0)).await?).await?),
        UserRoute::DeleteJob => done!(jobs::delete(me, path(0))),
        UserRoute::CancelJob => Box::pin(jobs::cancel(me, request)),
        UserRoute::RerunJob => Box::pin(dispatch::rerun(me, request)),
        UserRoute::ReadLog => Box::pin(logs::read(me, &request)),
        UserRoute::SearchLog => {
            let job = me.job_named(path(0)).await?;
            let wanted = log_search::wanted(query)?;
            Box::pin(async move { Ok(reply::ok(&log_search::search(me, &job, wanted).await?)) })
        }
        UserRoute::ListArtifacts => {
            json!(artifacts::list(me, path(0), &Window::of(query)?).await?)
        }
        UserRoute::DownloadArtifact => Box::pin(artifacts::download(me, &request)),
        UserRoute::ListEntries => {
            json!(entries::list(me, path(0), path(1), &Window::up_to(query, ENTRIES_PAGE)?).await?)
        }
        UserRoute::DiffArtifact => {
            json!(entries::diff(me, path(0), path(1), &DiffQuery::of(query)?).await?)
        }
        UserRoute::DeleteArtifact => done!(artifacts::delete(me, path(0), path(1))),
        UserRoute::ListBlobs => json!(blobs::list(me, BlobsQuery::of(query)?).await?),
        UserRoute::DownloadBlob => Box::pin(blobs::download(me, &request)),
        UserRoute::InspectBlob => Box::pin(blobs::inspect(me, &request)),
        UserRoute::UploadBlob => Box::pin(blobs::upload(me, request)),
        UserRoute::DeleteBlob => Box::pin(blobs::delete(me, &request)),
        UserRoute::CopyBlob => Box::pin(blobs::copy(me, request)),
        UserRoute::MoveBlob => Box::pin(blobs::rename(me, request)),
        UserRoute::ListBlobLinks => json!(blob_links::list(me, query)?),
        UserRoute::CreateBlobLink => Box::pin(blob_links::create(me, request)),
        UserRoute::RevokeBlobLink => done!(blob_links::revoke(me, path(0))),
        UserRoute::Events => Box::pin(events::listen(me, &request)),
        UserRoute::ListTokens => json!(tokens::list(me, &Window::of(query)?)),
        UserRoute::CreateToken => Box::pin(tokens::create(me, request)),
        UserRoute::RegenerateToken => Box::pin(tokens::regenerate(me, request)),
        UserRoute::RevokeToken => done!(tokens::revoke(me, path(0))),
        UserRoute::ListAudit => json!(audit::list(me, &AuditQuery::of(query)?).await?),
        UserRoute::ListRunners => json!(runners::list(me, &Window::of(query)?)),
        UserRoute::ShowRunner => json!(runners::show(me, path(0)).await?),
        UserRoute::DeleteRunner => done!(runners::delete(me, path(0))),
        UserRoute::CreateRegistration => Box::pin(runners::create_registration(me, request)),
    };
    answer.await
}

pub(crate) async fn of_runner(
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

pub(crate) async fn of_worker(
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
