//! One handler for each route, grouped by path.

mod artifacts;
mod dispatch;
mod health;
mod jobs;
mod logs;
mod projects;
mod prune;
mod runners;
mod schema;
mod sources;
mod tokens;
mod why;
mod worker;
mod workflows;

use reconciler::Handle;
use warp::reply::Response;

use crate::failure::Failure;
use crate::request::Request;
use crate::routes::RouteId;

/// Calls the handler of the route.
pub(crate) async fn handle(
    handle: &Handle,
    route: RouteId,
    request: Request,
) -> Result<Response, Failure> {
    match route {
        RouteId::Healthz => health::alive(handle).await,
        RouteId::Readyz => Ok(health::ready()),
        RouteId::WorkflowSchema => Ok(schema::workflow(&request)),
        RouteId::ListSources => sources::list(handle, &request),
        RouteId::ShowSource => sources::show(handle, &request),
        RouteId::SyncSource => sources::sync(handle, &request).await,
        RouteId::ListProjects => projects::list(handle, &request),
        RouteId::ShowProject => projects::show(handle, &request),
        RouteId::ListVars => projects::list_vars(handle, &request),
        RouteId::ShowVar => projects::show_var(handle, &request),
        RouteId::SetVar => projects::set_var(handle, request).await,
        RouteId::DeleteVar => projects::delete_var(handle, &request).await,
        RouteId::ListSecrets => projects::list_secrets(handle, &request),
        RouteId::SetSecret => projects::set_secret(handle, request).await,
        RouteId::DeleteSecret => projects::delete_secret(handle, &request).await,
        RouteId::ListWorkflows => workflows::list(handle, &request),
        RouteId::ShowWorkflow => workflows::show(handle, &request),
        RouteId::PruneWorkflow => prune::prune(handle, request).await,
        RouteId::Dispatch => dispatch::dispatch(handle, request).await,
        RouteId::Why => why::why(handle, &request).await,
        RouteId::ListJobs => jobs::list(handle, &request).await,
        RouteId::ShowJob => jobs::show(handle, &request).await,
        RouteId::DeleteJob => jobs::delete(handle, &request).await,
        RouteId::CancelJob => jobs::cancel(handle, &request).await,
        RouteId::ReadLog => logs::read(handle, &request).await,
        RouteId::ListArtifacts => artifacts::list(handle, &request).await,
        RouteId::DownloadArtifact => artifacts::download(handle, &request).await,
        RouteId::DeleteArtifact => artifacts::delete(handle, &request).await,
        RouteId::ListTokens => tokens::list(handle, &request),
        RouteId::CreateToken => tokens::create(handle, request).await,
        RouteId::ListRunners => runners::list(handle, &request),
        RouteId::DeleteRunner => runners::delete(handle, &request).await,
        RouteId::CreateRegistration => runners::create_registration(handle).await,
        RouteId::RegisterRunner => runners::register(handle, request).await,
        RouteId::Hello => runners::hello(handle, request).await,
        RouteId::Goodbye => runners::goodbye(handle, request).await,
        RouteId::Messages => runners::messages(handle, request).await,
        RouteId::Resolve => worker::resolve(handle, &request).await,
        RouteId::Timeline => worker::timeline(handle, request).await,
        RouteId::AppendLog => worker::append_log(handle, request).await,
        RouteId::UploadArtifact => artifacts::upload(handle, request).await,
        RouteId::CompleteJob => worker::complete(handle, request).await,
    }
}
