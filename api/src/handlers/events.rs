//! `/v0/events`: server-sent events.

use bytes::Bytes;
use http::header::HeaderName;
use model::{JobId, ProjectId, WorkflowId};
use state::Seq;
use warp::reply::Response;

use super::{projects, workflows};
use crate::events::{Batch, Dropped, Form, Listener, Start};
use crate::failure::Failure;
use crate::limits::KEEP_ALIVE;
use crate::reply::{self, Pieces, Unread};
use crate::request::Request;
use crate::visible::{Shown, Visible};

/// Sends changes, from now on or after `Last-Event-ID`. The id of an event is the number of its commit.
pub(super) async fn listen(user: &Visible, request: &Request) -> Result<Response, Failure> {
    let query = &request.query;
    let project: Option<Shown<ProjectId>> = query
        .get("project")
        .map(|text| user.find(|seen| Ok(projects::find(seen, text)?.project)))
        .transpose()?;
    let mut project = project.map(|project| *project);
    let workflow: Option<Shown<(WorkflowId, ProjectId)>> = query
        .get("workflow")
        .map(|text| {
            user.find(|seen| workflows::find(seen, text).map(|found| (found.id, found.project)))
        })
        .transpose()?;
    let workflow = workflow.map(|found| {
        project = project.or(Some(found.1));
        found.0
    });
    let job: Option<JobId> = match query.get("job") {
        None => None,
        Some(text) => {
            let id = text.parse().map_err(|_| Failure::not_found("job", text))?;
            let job = user.job(id).await?;
            project = project.or(Some(job.project));
            Some(job.id)
        }
    };
    let after = last_seen(request);
    let listener = user.listen(project, workflow, job, Form::Whole, after)?;
    Ok(stream(user, listener, |_, _| std::future::pending()))
}

fn last_seen(request: &Request) -> Option<Seq> {
    match request.header(HeaderName::from_static("last-event-id")) {
        None | Some("") => None,
        // An invalid id counts as too old.
        Some(id) => Some(Seq(id.parse().unwrap_or(u64::MAX))),
    }
}

/// Streams the events of a listener until the caller leaves or loses its rights. `extra` sends more events on the same stream; it
/// never ends by itself.
pub(crate) fn stream<B, F>(user: &Visible, listener: Listener, extra: B) -> Response
where
    B: FnOnce(Visible, Pieces) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let user = user.clone();
    let mut response = reply::streamed("text/event-stream", move |pieces| async move {
        tokio::select! {
            _ = send(listener, &pieces) => {}
            () = extra(user.clone(), pieces.clone()) => {}
            _ = user.rights_lost() => {}
            () = user.stopping() => {}
            () = pieces.closed() => {}
        }
    });
    // nginx would collect the events otherwise.
    reply::set(
        &mut response,
        HeaderName::from_static("x-accel-buffering"),
        "no",
    );
    response
}

async fn send(mut listener: Listener, pieces: &Pieces) -> Result<(), Unread> {
    match listener.start {
        Start::From(_) => pieces.send(alive(listener.place())).await?,
        Start::Resync(place) => {
            let text = format!("event: resync\ndata: {{}}\nid: {}\n\n", place.0);
            pieces.send(Bytes::from(text)).await?;
        }
    }
    loop {
        match tokio::time::timeout(KEEP_ALIVE, listener.next()).await {
            Ok(Ok(batch)) => send_batch(batch, pieces).await?,
            Ok(Err(Dropped { is_slow })) => {
                if is_slow {
                    let text = "event: dropped\ndata: {\"reason\":\"events came faster than they were read\"}\n\n";
                    pieces.send(Bytes::from_static(text.as_bytes())).await?;
                }
                return Ok(());
            }
            Err(_) => {
                pieces.send(alive(listener.place())).await?;
            }
        }
    }
}

/// Sends the events of a commit, then its number. A client that is cut off before the number gets all of them again.
async fn send_batch(batch: Batch, pieces: &Pieces) -> Result<(), Unread> {
    let Batch { seq, texts } = batch;
    for text in texts {
        pieces.send(text).await?;
    }
    pieces.send(alive(Some(seq))).await
}

/// Keeps the connection open in proxies, and reports the last commit when there is no event.
fn alive(place: Option<Seq>) -> Bytes {
    match place {
        Some(place) => Bytes::from(format!(": alive\nid: {}\n\n", place.0)),
        None => Bytes::from_static(b": alive\n\n"),
    }
}
