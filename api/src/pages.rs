//! The web UI: pages and forms for signed-in browsers.
//!
//! A page loads the same data as `/v0` for the same caller, with the functions of the handlers of `/v0`, and the package `ui`
//! makes markup of it. A form posts to its own route, which does the same as the request of `/v0`.

mod account;
mod artifacts;
mod assets;
mod blobs;
mod callbacks;
mod charts;
mod daemon;
mod frame;
mod html;
mod jobs;
mod live;
mod logs;
mod notifications;
mod overview;
mod payloads;
mod projects;
mod reader;
pub(crate) mod renewals;
mod runners;
mod scans;
mod sign_in;
mod sources;
mod suspensions;
mod tokens;
mod typed;
mod users;
mod workflows;

use warp::reply::Response;

pub(crate) use self::assets::asset;
pub(crate) use self::html::{moved, protect};
pub(crate) use self::reader::Reader;
pub(crate) use self::sign_in::{link_page, login, login_page, welcome_page};

use self::frame::Frame;
use self::renewals::Same;
use crate::failure::Failure;
use crate::handlers::{self, Answering};
use crate::request::Request;
use crate::routes::{ActionRoute, PageRoute};
use crate::service::Service;
use crate::visible::Visible;

pub(crate) async fn show(
    service: &Service,
    user: &Visible,
    route: PageRoute,
    request: &Request,
) -> Result<Response, Failure> {
    if !route.is_shareable() || !renewals::can_wait(request) {
        return page(&Frame::new(service, user, request), route).await;
    }
    let make = async || {
        let frame = Frame::for_many(service, user, request);
        let response = page(&frame, route).await.map_err(Err)?;
        frame.into_made().ok_or(Ok(response))
    };
    let same = Same::of(request, user.all_rights());
    let renewed = tokio::select! {
        // The reader may lose rights while the page is made, even in the moment in which it is ready.
        biased;
        failure = user.rights_lost() => return Err(failure),
        renewed = Box::pin(service.renewals.page(same, make)) => renewed,
    };
    match renewed {
        Ok(made) => Ok(made.answer(user, request)),
        Err(unshared) => unshared,
    }
}

async fn page(frame: &Frame<'_>, route: PageRoute) -> Result<Response, Failure> {
    let (user, request) = (frame.user, frame.request);
    let answer: Answering<'_> = match route {
        PageRoute::Overview => Box::pin(overview::overview(frame)),
        PageRoute::Jobs => Box::pin(jobs::list(frame)),
        PageRoute::Job => Box::pin(jobs::show(frame)),
        PageRoute::JobContext => Box::pin(jobs::context(frame)),
        PageRoute::Log => Box::pin(logs::plain(frame)),
        PageRoute::RawLog => Box::pin(logs::raw(frame)),
        PageRoute::LogRecords => Box::pin(logs::records(frame)),
        PageRoute::LogSearch => Box::pin(logs::search(frame)),
        PageRoute::Artifact => Box::pin(handlers::artifacts::download(user, request)),
        PageRoute::ArtifactEntries => Box::pin(artifacts::entries(frame)),
        PageRoute::ArtifactDiff => Box::pin(artifacts::diff(frame)),
        PageRoute::Workflows => Box::pin(workflows::list(frame)),
        PageRoute::Workflow => Box::pin(workflows::show(frame)),
        PageRoute::Revisions => Box::pin(workflows::revisions(frame)),
        PageRoute::Revision => Box::pin(workflows::revision(frame)),
        PageRoute::Scan => Box::pin(scans::show(frame)),
        PageRoute::DispatchForm => Box::pin(scans::dispatch_form(frame)),
        PageRoute::Runners => return runners::list(frame),
        PageRoute::Runner => Box::pin(runners::show(frame)),
        PageRoute::Sources => return sources::list(frame),
        PageRoute::Source => Box::pin(sources::show(frame)),
        PageRoute::Artifacts => Box::pin(artifacts::newest(frame)),
        PageRoute::Blobs => Box::pin(blobs::folder(frame)),
        PageRoute::Blob => Box::pin(handlers::blobs::download(user, request)),
        PageRoute::Projects => return projects::list(frame),
        PageRoute::Project => return projects::show(frame),
        PageRoute::Callback => Box::pin(callbacks::show(frame)),
        PageRoute::Interaction => Box::pin(callbacks::interaction(frame)),
        PageRoute::PayloadGroup => return payloads::group(frame),
        PageRoute::Payload => Box::pin(payloads::payload(frame)),
        PageRoute::Notifications => Box::pin(notifications::show(frame)),
        PageRoute::Tokens => return tokens::list(frame),
        PageRoute::Audit => Box::pin(daemon::audit(frame)),
        PageRoute::Settings => return account::settings(frame),
        PageRoute::Device => return Ok(account::device(frame)),
        PageRoute::Users => return users::list(frame),
        PageRoute::User => return users::show(frame),
        PageRoute::Members => return users::members(frame),
        PageRoute::About => Box::pin(daemon::about(frame)),
        PageRoute::Live => return live::listen(frame),
    };
    answer.await
}

pub(crate) async fn act(
    service: &Service,
    user: &Visible,
    route: ActionRoute,
    mut request: Request,
) -> Result<Response, Failure> {
    if route == ActionRoute::UploadBlob {
        let answer = Box::pin(handlers::blobs::upload(user, request)).await;
        return answer.map_err(blobs::in_words);
    }
    let typed = typed::Typed::read(&mut request).await?;
    let (frame, typed) = (&Frame::new(service, user, &request), &typed);
    let answer: Answering<'_> = match route {
        ActionRoute::Logout => Box::pin(sign_in::logout(frame)),
        ActionRoute::EndSession => Box::pin(account::end_session(frame)),
        ActionRoute::EndSessions => Box::pin(account::end_sessions(frame, typed)),
        ActionRoute::ChangePassword => Box::pin(account::change_password(frame, typed)),
        ActionRoute::ConfirmDevice => return account::confirm_device(frame, typed),
        ActionRoute::CreateUser => Box::pin(users::create(frame, typed)),
        ActionRoute::UpdateUser => Box::pin(users::update(frame, typed)),
        ActionRoute::CreateUserLink => Box::pin(users::link(frame)),
        ActionRoute::DeleteUser => Box::pin(users::delete(frame)),
        ActionRoute::SetMember => Box::pin(users::set_member(frame, typed)),
        ActionRoute::RemoveMember => Box::pin(users::remove_member(frame)),
        ActionRoute::CancelJob => Box::pin(jobs::cancel(frame)),
        ActionRoute::DeleteJob => Box::pin(jobs::delete(frame)),
        ActionRoute::RerunJob => Box::pin(jobs::rerun(frame, typed)),
        ActionRoute::DeleteArtifact => Box::pin(artifacts::delete(frame)),
        ActionRoute::Dispatch => Box::pin(scans::dispatch(frame, typed)),
        ActionRoute::SuspendWorkflow | ActionRoute::SuspendScan => {
            Box::pin(suspensions::suspend(frame, typed))
        }
        ActionRoute::ResumeWorkflow | ActionRoute::ResumeScan => {
            Box::pin(suspensions::resume(frame, typed))
        }
        ActionRoute::AcknowledgeCondition => Box::pin(overview::acknowledge(frame, typed)),
        ActionRoute::SilenceCondition => Box::pin(overview::silence(frame, typed)),
        ActionRoute::CreateRegistration => Box::pin(runners::register(frame, typed)),
        ActionRoute::LimitRunner => Box::pin(runners::limit(frame, typed)),
        ActionRoute::RemoveRunner => Box::pin(runners::remove(frame)),
        ActionRoute::SyncSource => Box::pin(sources::sync(frame)),
        ActionRoute::ApproveSource => Box::pin(sources::approve(frame, typed)),
        ActionRoute::DeleteBlob => Box::pin(blobs::delete(frame)),
        ActionRoute::SetVar => Box::pin(projects::set_var(frame, typed)),
        ActionRoute::DeleteVar => Box::pin(projects::delete_var(frame)),
        ActionRoute::SetSecret => Box::pin(projects::set_secret(frame, typed)),
        ActionRoute::DeleteSecret => Box::pin(projects::delete_secret(frame)),
        ActionRoute::StorePayload => Box::pin(payloads::store(frame, typed)),
        ActionRoute::DeletePayload => Box::pin(payloads::delete(frame)),
        ActionRoute::SetChannel => Box::pin(notifications::set_channel(frame, typed)),
        ActionRoute::TestChannel => Box::pin(notifications::test_channel(frame)),
        ActionRoute::RetryChannel => Box::pin(notifications::retry(frame, typed)),
        ActionRoute::DeleteChannel => Box::pin(notifications::delete_channel(frame)),
        ActionRoute::SetRule => Box::pin(notifications::set_rule(frame, typed)),
        ActionRoute::DeleteRule => Box::pin(notifications::delete_rule(frame)),
        ActionRoute::CreateCallback => Box::pin(projects::create_callback(frame, typed)),
        ActionRoute::DeleteCallback => Box::pin(callbacks::delete(frame)),
        ActionRoute::SetCallbackRules => Box::pin(callbacks::set_rules(frame, typed)),
        ActionRoute::CreateCallbackToken => Box::pin(callbacks::create_token(frame, typed)),
        ActionRoute::EndCallbackToken => Box::pin(callbacks::end_token(frame)),
        ActionRoute::CreateToken => Box::pin(tokens::create(frame, typed)),
        ActionRoute::RegenerateToken => Box::pin(tokens::regenerate(frame, typed)),
        ActionRoute::MoveToken => Box::pin(tokens::give(frame, typed)),
        ActionRoute::RevokeToken => Box::pin(tokens::revoke(frame)),
        // This route was answered above, because its body is a file.
        ActionRoute::UploadBlob => return Err(Failure::defect()),
    };
    answer.await
}
