//! One handler for each route, grouped by path.

pub(crate) mod artifacts;
pub(crate) mod audit;
pub(crate) mod blob_links;
pub(crate) mod blobs;
pub(crate) mod callbacks;
pub(crate) mod channels;
pub(crate) mod conditions;
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
pub(crate) mod payloads;
pub(crate) mod projects;
mod prune;
mod renders;
pub(crate) mod revisions;
pub(crate) mod rules;
pub(crate) mod runners;
pub(crate) mod scans;
pub(crate) mod schema;
pub(crate) mod sessions;
pub(crate) mod sign_in;
pub(crate) mod sources;
pub(crate) mod suspensions;
pub(crate) mod tokens;
pub(crate) mod users;
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
use self::callbacks::InteractionsQuery;
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
use crate::service::Service;
use crate::visible::Visible;

/// A running handler on the heap, as large as it needs to be. One future for all handlers would have the size of the largest,
/// many kilobytes, and each waiting read and poll would occupy them.
pub(crate) type Answering<'a> =
    Pin<Box<dyn Future<Output = Result<Response, Failure>> + Send + 'a>>;

/// Answers with the loaded value, as JSON.
macro_rules! json {
    ($loaded:expr) => {
        Box::pin(async move { Ok::<_, Failure>(reply::ok(&$loaded)) })
    };
}

/// Answers without a body once the work is done.
macro_rules! done {
    ($work:expr) => {
        Box::pin(async { $work.await.map(|()| reply::empty()) })
    };
}

pub(crate) async fn session(
    service: &Service,
    user: &Visible,
    route: SessionRoute,
    request: Request,
) -> Result<Response, Failure> {
    let answer: Answering<'_> = match route {
        SessionRoute::ListSessions => json!(Page::all(sessions::list(user))),
        SessionRoute::EndSession => Box::pin(sessions::end(user, &request)),
        SessionRoute::EndSessions => Box::pin(sessions::end_all(user, &request)),
        SessionRoute::CreateSignInLink => Box::pin(sessions::create_link(user, request)),
        SessionRoute::ChangePassword => Box::pin(sign_in::change_password(service, user, request)),
        SessionRoute::CreateBlobLink => Box::pin(blob_links::create(user, request)),
        SessionRoute::ShowUser => json!(users::show_own(user, request.parameter(0))?),
        SessionRoute::ShowMe => json!(users::me(user)),
    };
    answer.await
}

pub(crate) async fn user(
    user: &Visible,
    route: UserRoute,
    request: Request,
) -> Result<Response, Failure> {
    let query = &request.query;
    let path = |n| request.parameter(n);
    // These come first in a row: an unknown thing is reported before a wrong query.
    let scan = || why::key(user, path(0), path(1));
    let job = || user.job_named(path(0));
    let answer: Answering<'_> = match route {
        UserRoute::ListSources => json!(sources::list(user, &Window::of(query)?)),
        UserRoute::ShowSource => json!(sources::show(user, path(0)).await?),
        UserRoute::SyncSource => {
            json!(sources::sync(user, &sources::name(user, path(0))?, query.flag("wait")?).await?)
        }
        UserRoute::ListTips => {
            let source = sources::shown(user, path(0))?;
            json!(sources::tips(user, &source, &RevisionsQuery::of(query)?).await?)
        }
        UserRoute::ApproveSource => Box::pin(sources::approve(user, request)),
        UserRoute::ListProjects => json!(projects::list(user, &Window::of(query)?)),
        UserRoute::ShowProject => json!(projects::show(user, path(0))?),
        UserRoute::ListVars => json!(projects::vars(user, path(0))?.list(&Window::of(query)?)),
        UserRoute::ShowVar => return projects::show_var(user, &request),
        UserRoute::SetVar => Box::pin(projects::set_var(user, request)),
        UserRoute::DeleteVar => Box::pin(projects::delete_var(user, &request)),
        UserRoute::ListSecrets => {
            json!(projects::secrets(user, path(0))?.list(user, &Window::of(query)?))
        }
        UserRoute::SetSecret => Box::pin(projects::set_secret(user, request)),
        UserRoute::SecretMasking => json!(projects::masking(user, path(0), path(1)).await?),
        UserRoute::DeleteSecret => Box::pin(projects::delete_secret(user, &request)),
        UserRoute::ListWorkflows => json!(workflows::list(
            user,
            workflows::with_retired(query)?,
            &Window::of(query)?
        )),
        UserRoute::ShowWorkflow => json!(workflows::show(user, path(0))?),
        UserRoute::ListRevisions => {
            let all = revisions::all(user, path(0)).await?;
            json!(revisions::list(user, all, &RevisionsQuery::of(query)?).await?)
        }
        UserRoute::ShowRevision => json!(revisions::show(user, path(0), path(1)).await?),
        UserRoute::DiffRevision => {
            json!(revisions::diff(user, path(0), path(1), query.get("from")).await?)
        }
        UserRoute::Validate => Box::pin(validate::validate(request)),
        UserRoute::PruneWorkflow => Box::pin(prune::prune(user, request)),
        UserRoute::SuspendWorkflow | UserRoute::SuspendScan => {
            Box::pin(suspensions::suspend(user, request))
        }
        UserRoute::ResumeWorkflow | UserRoute::ResumeScan => {
            Box::pin(suspensions::resume(user, request))
        }
        UserRoute::Dispatch => Box::pin(dispatch::dispatch(user, request)),
        UserRoute::ListScans => {
            json!(scans::list(user, query.get("workflow"), &Window::of(query)?).await?)
        }
        UserRoute::ShowScan => json!(scans::show(user, path(0), path(1)).await?),
        UserRoute::ScanHistory => {
            json!(scans::history(user, &scan()?, &FilePage::of(query, HISTORY_PAGE)?).await?)
        }
        UserRoute::ScanLedger => {
            json!(scans::ledger(user, &scan()?, &FilePage::of(query, PAGE)?).await?)
        }
        UserRoute::Schedule => json!(scans::schedule(
            user,
            query.get("workflow"),
            query.get("scan"),
            query.limit()?
        )?),
        UserRoute::Why => {
            let found = why::find(user, path(0), path(1))?;
            json!(why::why(user, &found, query.time("at")?, query.limit()?).await?)
        }
        UserRoute::ListJobs => json!(jobs::list(user, JobsQuery::of(query)?).await?),
        UserRoute::ShowJob => Box::pin(jobs::show(user, &request)),
        UserRoute::JobContext => json!(jobs::context(user, &job().await?).await?),
        UserRoute::DeleteJob => done!(jobs::delete(user, path(0))),
        UserRoute::CancelJob => Box::pin(jobs::cancel(user, request)),
        UserRoute::RerunJob => Box::pin(dispatch::rerun(user, request)),
        UserRoute::ReadLog => Box::pin(logs::read(user, &request)),
        UserRoute::SearchLog => {
            json!(log_search::search(user, &job().await?, log_search::wanted(query)?).await?)
        }
        UserRoute::ListArtifacts => {
            json!(artifacts::list(&job().await?, &Window::of(query)?))
        }
        UserRoute::DownloadArtifact => Box::pin(artifacts::download(user, &request)),
        UserRoute::ListEntries => {
            let window = Window::up_to(query, ENTRIES_PAGE);
            json!(entries::list(user, &job().await?, path(1), &window?).await?)
        }
        UserRoute::DiffArtifact => {
            json!(entries::diff(user, &job().await?, path(1), &DiffQuery::of(query)?).await?)
        }
        UserRoute::DeleteArtifact => done!(artifacts::delete(user, path(0), path(1))),
        UserRoute::ListBlobs => json!(blobs::list(user, BlobsQuery::of(query)?).await?),
        UserRoute::DownloadBlob => Box::pin(blobs::download(user, &request)),
        UserRoute::InspectBlob => Box::pin(blobs::inspect(user, &request)),
        UserRoute::UploadBlob => Box::pin(blobs::upload(user, request)),
        UserRoute::DeleteBlob => Box::pin(blobs::delete(user, &request)),
        UserRoute::CopyBlob => Box::pin(blobs::copy(user, request)),
        UserRoute::MoveBlob => Box::pin(blobs::rename(user, request)),
        UserRoute::ListBlobLinks => json!(blob_links::list(user, query)?),
        UserRoute::RevokeBlobLink => done!(blob_links::revoke(user, path(0))),
        UserRoute::Events => Box::pin(events::listen(user, &request)),
        UserRoute::ListTokens => {
            json!(tokens::list(user, query.get("user"), &Window::of(query)?)?)
        }
        UserRoute::CreateToken => Box::pin(tokens::create(user, request)),
        UserRoute::RegenerateToken => Box::pin(tokens::regenerate(user, request)),
        UserRoute::RevokeToken => done!(tokens::revoke(user, path(0))),
        UserRoute::MoveToken => Box::pin(tokens::change_owner(user, request)),
        UserRoute::ListUsers => json!(users::list(user, &Window::of(query)?)),
        UserRoute::CreateUser => Box::pin(users::create(user, request)),
        UserRoute::UpdateUser => Box::pin(users::change(user, request)),
        UserRoute::DeleteUser => done!(users::delete(user, path(0))),
        UserRoute::CreateUserLink => Box::pin(users::create_link(user, request)),
        UserRoute::ListMembers => json!(users::members(user, path(0), &Window::of(query)?)?),
        UserRoute::SetMember => Box::pin(users::set_member(user, request)),
        UserRoute::RemoveMember => done!(users::remove_member(user, path(0), path(1))),
        UserRoute::ListAudit => json!(audit::list(user, &AuditQuery::of(query)?).await?),
        UserRoute::ListChannels => {
            json!(channels::list(
                user,
                query.get("project"),
                &Window::of(query)?
            )?)
        }
        UserRoute::ShowChannel => return channels::show(user, &request),
        UserRoute::SetChannel => Box::pin(channels::set(user, request)),
        UserRoute::DeleteChannel => Box::pin(channels::delete(user, &request)),
        UserRoute::TestChannel => Box::pin(channels::test(user, &request)),
        UserRoute::RetryChannel => Box::pin(channels::retry(user, request)),
        UserRoute::ListDeliveries => {
            json!(channels::deliveries(user, query.get("project"), query).await?)
        }
        UserRoute::ListConditions => json!(conditions::list(user, &Window::of(query)?)),
        UserRoute::AcknowledgeCondition => Box::pin(conditions::acknowledge(user, request)),
        UserRoute::SilenceCondition => Box::pin(conditions::silence(user, request)),
        UserRoute::ListRules => {
            json!(rules::list(
                user,
                query.get("project"),
                &Window::of(query)?
            )?)
        }
        UserRoute::SetRule => Box::pin(rules::set(user, request)),
        UserRoute::PreviewRule => Box::pin(rules::preview(user, request)),
        UserRoute::DeleteRule => Box::pin(rules::delete(user, &request)),
        UserRoute::ListRunners => json!(runners::list(user, &Window::of(query)?)),
        UserRoute::ShowRunner => json!(runners::show(user, path(0)).await?),
        UserRoute::LimitRunner => Box::pin(runners::change(user, request)),
        UserRoute::DeleteRunner => done!(runners::delete(user, path(0))),
        UserRoute::ListCallbacks => {
            json!(callbacks::list(
                user,
                query.get("project"),
                &Window::of(query)?
            )?)
        }
        UserRoute::CheckCallbacks => json!(user.check_callbacks().await?),
        UserRoute::CreateCallback => Box::pin(callbacks::create(user, request)),
        UserRoute::ShowCallback => json!(callbacks::show(user, path(0))?),
        UserRoute::DeleteCallback => done!(callbacks::delete(user, path(0))),
        UserRoute::ShowCallbackRules => json!(callbacks::rules(user, path(0))?),
        UserRoute::SetCallbackRules => Box::pin(callbacks::set_rules(user, request)),
        UserRoute::ListCallbackTokens => {
            json!(callbacks::tokens(user, path(0), &Window::of(query)?)?)
        }
        UserRoute::CreateCallbackToken => Box::pin(callbacks::create_token(user, request)),
        UserRoute::EndCallbackToken => done!(callbacks::end_token(user, path(0), path(1))),
        UserRoute::ListInteractions => {
            let callback = callbacks::find(user, path(0))?;
            let wanted = InteractionsQuery::of(query)?;
            json!(callbacks::interactions(user, &callback, &wanted).await?)
        }
        UserRoute::ShowInteraction => {
            json!(callbacks::interaction(user, path(0), path(1)).await?)
        }
        UserRoute::ListPayloadGroups => json!(payloads::list(
            user,
            query.get("project"),
            &Window::of(query)?
        )?),
        UserRoute::CreatePayloadGroup => Box::pin(payloads::create(user, request)),
        UserRoute::ShowPayloadGroup => json!(payloads::show(user, path(0))?),
        UserRoute::ChangePayloadGroup => Box::pin(payloads::change(user, request)),
        UserRoute::DeletePayloadGroup => done!(payloads::delete(user, path(0))),
        UserRoute::ReadPayload => Box::pin(payloads::read(user, &request)),
        UserRoute::StorePayload => Box::pin(payloads::store(user, request)),
        UserRoute::DeletePayload => Box::pin(payloads::remove(user, &request)),
        UserRoute::RenderPayloads => Box::pin(renders::render(user, request)),
        UserRoute::CreateRegistration => Box::pin(runners::create_registration(user, request)),
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
        WorkerRoute::Resolve => Box::pin(worker::resolve(handle, worker, request)),
        WorkerRoute::Source => Box::pin(worker::source(handle, worker)),
        WorkerRoute::Timeline => Box::pin(worker::timeline(handle, worker, request)),
        WorkerRoute::AppendLog => Box::pin(worker::append_log(handle, worker, request)),
        WorkerRoute::UploadArtifact => Box::pin(artifacts::upload(handle, worker, request)),
        WorkerRoute::Complete => Box::pin(worker::complete(handle, worker, request)),
    };
    answer.await
}
