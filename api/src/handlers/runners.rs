//! `/v0/runners`, `/v0/runner-registrations` and `/v0/messages`

use http::StatusCode;
use http::header::HeaderName;
use model::decide;
use model::{JobId, PlainToken, Rights, Runner, RunnerId, Seen, Slots, TokenKind};
use reconciler::{Handle, Instance, RunnerSession};
use warp::reply::Response;
use wire::{
    CreateRegistration, ErrorCode, Hello, JobAssigned, JobCancelled, LimitRunner, Message, Page,
    Poll, REFRESH_HEADER, RegisterRunner, RegisteredRunner, Registration,
};

use super::projects;
use crate::body;
use crate::convert;
use crate::failure::Failure;
use crate::idempotency::Attempt;
use crate::page::Window;
use crate::reply;
use crate::request::Request;
use crate::visible::Visible;

pub(crate) fn list(user: &Visible, window: &Window) -> Page<wire::Runner> {
    // Read this before locking the world, to avoid a deadlock with the code that assigns jobs.
    let held = user.jobs_in_hand();
    user.read(|seen| {
        window.cut(
            seen.runners(),
            |runner| runner.name.clone(),
            |runner| {
                let slots = seen.slots(runner.id, held.get(&runner.id));
                present(user, seen, runner, &slots)
            },
        )
    })
}

/// One runner, by id or name, with the jobs that take its slots.
pub(crate) async fn show(user: &Visible, named: &str) -> Result<wire::Runner, Failure> {
    let held = user.jobs_in_hand();
    let (mut shown, finished) = user.read(|seen| {
        let runner = find(seen, named)?;
        let slots = seen.slots(runner.id, held.get(&runner.id));
        let shown = present(user, seen, runner, &slots);
        Ok::<_, Failure>((shown, slots.finished))
    })?;
    // A runner may claim to hold any number of jobs. Show at most as many as it has slots.
    for job in finished.into_iter().take(shown.capacity as usize) {
        match user.job(job).await {
            Ok(job) => shown.jobs.push(convert::runner_job(&job)),
            Err(failure) if failure.code == ErrorCode::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(shown)
}

fn present(user: &Visible, seen: Seen<'_>, runner: &Runner, slots: &Slots) -> wire::Runner {
    convert::runner(
        seen,
        runner,
        slots,
        user.heard_at(runner),
        user.is_connected(runner),
    )
}

/// Gives a runner other projects.
pub(super) async fn change(user: &Visible, mut request: Request) -> Result<Response, Failure> {
    let asked: LimitRunner = request.body.json(&request.headers).await?;
    let named = request.parameter(0);
    let runner = limit(user, named, &asked.projects).await?;
    Ok(reply::ok(&show(user, &runner.to_string()).await?))
}

/// Gives a runner, by id or name, other projects.
pub(crate) async fn limit(
    user: &Visible,
    named: &str,
    projects: &[String],
) -> Result<RunnerId, Failure> {
    let found = user.find(|seen| Ok((find(seen, named)?.id, projects::named(seen, projects)?)))?;
    user.limit_runner(&found).await?;
    Ok(found.0)
}

/// True if the caller may limit and remove the runner.
pub(crate) fn may_manage(user: &Visible, runner: &wire::Runner) -> bool {
    let id = RunnerId::from_uuid(runner.id);
    user.read(|seen| seen.runner(id).is_some_and(|it| seen.may_manage(it)))
}

/// Removes a runner, by id or name. Its jobs fail.
pub(crate) async fn delete(user: &Visible, named: &str) -> Result<(), Failure> {
    let runner = user.find(|seen| Ok(find(seen, named)?.id))?;
    user.remove_runner(&runner).await
}

fn find<'w>(seen: Seen<'w>, text: &str) -> Result<&'w Runner, Failure> {
    let by_id = text.parse().ok().and_then(|id| seen.runner(id));
    let found = by_id.or_else(|| seen.runners().find(|runner| runner.name == text));
    found.map(|runner| &**runner).ok_or_else(|| {
        Failure::not_found("runner", text).hint("`everscan runner list` shows the runners")
    })
}

pub(super) async fn create_registration(
    user: &Visible,
    mut request: Request,
) -> Result<Response, Failure> {
    let attempt = Attempt::of(&mut request).await?;
    let asked = match attempt.body.is_empty() {
        true => CreateRegistration::default(),
        false => {
            body::is_json(&request.headers)?;
            body::parse(&attempt.body)?
        }
    };
    let made = make_registration(user, asked, &attempt).await?;
    Ok(reply::json(StatusCode::CREATED, &made))
}

/// Makes a registration token. A repeat with the same `Idempotency-Key` is refused, because the token is shown once.
pub(crate) async fn make_registration(
    user: &Visible,
    asked: CreateRegistration,
    attempt: &Attempt,
) -> Result<Registration, Failure> {
    let key = attempt.key(user, "create registration")?;
    let names = asked.projects.as_deref();
    let projects = user.find(|seen| names.map(|it| projects::named(seen, it)).transpose())?;
    let new = user
        .create_registration(&projects, asked.labels, key)
        .await?;
    Ok(Registration {
        token: new.secret.reveal().to_owned(),
        expires_at: new.expires_at,
        projects: user.read(|seen| convert::projects(seen, &new.projects)),
        labels: new.labels,
    })
}

pub(crate) async fn register(handle: &Handle, mut request: Request) -> Result<Response, Failure> {
    let asked: RegisterRunner = request.body.json(&request.headers).await?;
    let token = PlainToken::parse(TokenKind::Registration, &asked.token)
        .map_err(|_| Failure::from(decide::Refusal::BadRegistration))?;
    let new = handle
        .runners()
        .register(decide::RegisterRunner {
            registration: token.hash(),
            name: asked.name,
            labels: asked.labels,
            exclusive: asked.exclusive,
            capacity: asked.capacity,
            version: asked.version,
            replace: asked.replace,
        })
        .await?;
    // Whoever has the token may know the projects that it was made for.
    let all = Rights::admin();
    let projects = handle
        .state()
        .read(|world| convert::projects(world.seen_by(&all), &new.runner.projects));
    let body = RegisteredRunner {
        id: new.runner.id.uuid(),
        token: new.session.secret.reveal().to_owned(),
        expires_at: new.session.expires_at,
        projects,
        labels: new.runner.labels.clone(),
    };
    Ok(reply::json(StatusCode::CREATED, &body))
}

/// A runner's process has started. The jobs of its earlier process are lost.
pub(super) async fn hello(
    handle: &Handle,
    runner: RunnerSession,
    request: Request,
) -> Result<Response, Failure> {
    let (runner, hello) = read_hello(runner, request).await?;
    handle
        .runners()
        .starts(runner, hello.version, hello.capabilities)
        .await?;
    Ok(reply::empty())
}

/// A runner's process stops. Its jobs are lost.
pub(super) async fn goodbye(
    handle: &Handle,
    runner: RunnerSession,
    request: Request,
) -> Result<Response, Failure> {
    let (runner, _) = read_hello(runner, request).await?;
    handle.runners().stops(runner).await?;
    Ok(reply::empty())
}

async fn read_hello(
    runner: RunnerSession,
    mut request: Request,
) -> Result<(RunnerSession, Hello), Failure> {
    let hello: Hello = request.body.json(&request.headers).await?;
    let runner = runner.with_instance(Instance::from_uuid(hello.instance));
    Ok((runner, hello))
}

/// A runner asks for work. The answer waits until there is something to do, up to 50 s.
pub(super) async fn messages(
    handle: &Handle,
    runner: RunnerSession,
    mut request: Request,
) -> Result<Response, Failure> {
    let poll: Poll = request.body.json(&request.headers).await?;
    // A poll waits long and there may be thousands, so free the request first.
    drop(request);
    let runner = runner.with_instance(Instance::from_uuid(poll.instance));
    let holding = poll.holding.into_iter().map(JobId::from_uuid).collect();
    let messages: Vec<Message> = handle
        .runners()
        .poll(runner, poll.number, poll.capacity, holding)
        .await?
        .into_iter()
        .map(message)
        .collect();
    let mut response = reply::ok(&messages);
    if let Some(session) = handle.runners().renew(runner).await? {
        reply::set(
            &mut response,
            HeaderName::from_static(REFRESH_HEADER),
            session.secret.reveal(),
        );
    }
    Ok(response)
}

fn message(message: reconciler::Message) -> Message {
    match message {
        reconciler::Message::Assigned(job, token) => Message::JobAssigned(JobAssigned {
            id: job.uuid(),
            token: token.reveal().to_owned(),
        }),
        reconciler::Message::Cancelled(job) => {
            Message::JobCancelled(JobCancelled { id: job.uuid() })
        }
    }
}
