//! A fake daemon on a real loopback socket. It records requests, and fails on demand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::watch;
use uuid::Uuid;
use wire::{
    Assignment, CompleteJob, Completed, ErrorCode, Hello, JobAssigned, JobCancelled, JobState,
    LogReceipt, Message, NewLogRecord, Poll, Problem, RegisterRunner, RegisteredRunner, Timeline,
};

use crate::harness::PATIENCE;

type Answer = Response<Full<Bytes>>;

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection is cut before the daemon acts.
    CutBefore,
    /// The daemon acts, and the connection is cut before it answers.
    CutAfter,
    /// The daemon has lost all log records from this number on.
    LoseLogFrom(usize),
    /// The job has ended.
    JobOver,
    /// The daemon is unavailable: 503.
    Unavailable,
    /// There are too many requests: 429.
    Busy,
    /// Another process is the runner: the request is refused.
    RunnerInUse,
    /// Another server answers, with an empty list.
    Nothing,
    /// A poll of another process has replaced this one.
    PollReplaced,
    /// The daemon cannot provide the files of the repository.
    CheckoutFailed,
    /// An answer that ends too early, without an error.
    Half,
}

/// The state of the daemon, and the reports of the runner.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) requests: Vec<String>,
    pub(crate) polls: Vec<Poll>,
    pub(crate) tokens: BTreeSet<String>,
    pub(crate) registrations: Vec<RegisterRunner>,
    pub(crate) logs: BTreeMap<Uuid, Vec<NewLogRecord>>,
    pub(crate) timelines: Vec<(Uuid, Timeline)>,
    pub(crate) completions: Vec<(Uuid, CompleteJob)>,
    pub(crate) artifacts: BTreeMap<(Uuid, String), (String, Bytes)>,
    pub(crate) hellos: Vec<Hello>,
    pub(crate) goodbyes: usize,
    /// The files of every repository.
    pub(crate) tar: Bytes,
    assignments: BTreeMap<Uuid, Assignment>,
    messages: VecDeque<Message>,
    cancelled: BTreeSet<Uuid>,
    faults: Vec<(&'static str, Fault)>,
    away: Option<&'static str>,
    held: Option<&'static str>,
    closed: BTreeSet<Uuid>,
    renewed_token: Option<String>,
    unknown_runner: bool,
}

/// The daemon; it ends with the test's runtime.
#[derive(Clone)]
pub(crate) struct FakeDaemon {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
    changes: watch::Sender<u64>,
}

impl FakeDaemon {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let daemon = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            state: Arc::default(),
            changes: watch::Sender::new(0),
        };
        let served = daemon.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let daemon = served.clone();
                let service = service_fn(move |request| daemon.clone().answer(request));
                // A connection that a test cuts ends with an error.
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        daemon
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let value = change(&mut self.state());
        self.changes.send_modify(|number| *number += 1);
        value
    }

    /// Offers a job to the runner.
    pub(crate) fn offer(&self, assignment: Assignment) {
        let id = assignment.job_id;
        self.change(|state| {
            state.assignments.insert(id, assignment);
            state.messages.push_back(assigned(id));
        });
    }

    /// Offers a job that another runner has claimed, or that was offered before.
    pub(crate) fn offer_again(&self, id: Uuid) {
        self.change(|state| state.messages.push_back(assigned(id)));
    }

    pub(crate) fn cancel(&self, id: Uuid) {
        self.change(|state| state.cancelled.insert(id));
    }

    /// Makes the next request to a path that ends in `route` fail.
    pub(crate) fn fail_next(&self, route: &'static str, fault: Fault) {
        self.change(|state| state.faults.push((route, fault)));
    }

    /// Answers requests whose path ends in `route` with 503, or all if it is empty, until it [comes back](Self::come_back).
    pub(crate) fn go_away(&self, route: &'static str) {
        self.change(|state| state.away = Some(route));
    }

    pub(crate) fn come_back(&self) {
        self.change(|state| state.away = None);
    }

    /// Does not answer requests whose path ends in `route`, until it [releases](Self::release) them.
    pub(crate) fn hold(&self, route: &'static str) {
        self.change(|state| state.held = Some(route));
    }

    pub(crate) fn release(&self) {
        self.change(|state| state.held = None);
    }

    /// Ends a job and accepts no more reports about it, not even the end of its log.
    pub(crate) fn close(&self, id: Uuid) {
        self.change(|state| {
            state.closed.insert(id);
            state.cancelled.insert(id)
        });
    }

    pub(crate) fn renew_token(&self, token: &str) {
        self.change(|state| state.renewed_token = Some(token.to_owned()));
    }

    pub(crate) fn forget_runner(&self) {
        self.change(|state| state.unknown_runner = true);
    }

    /// Waits until `find` returns a value.
    pub(crate) async fn wait_for<T>(
        &self,
        what: &str,
        mut find: impl FnMut(&State) -> Option<T>,
    ) -> T {
        let mut changes = self.changes.subscribe();
        let found = async {
            loop {
                changes.borrow_and_update();
                if let Some(found) = find(&self.state()) {
                    return found;
                }
                changes.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(PATIENCE, found).await {
            Ok(found) => found,
            Err(_) => panic!("waited too long for {what}: {:#?}", self.state()),
        }
    }

    pub(crate) async fn completion(&self, job: Uuid) -> CompleteJob {
        self.wait_for("a completion", |state| {
            let mut all = state.completions.iter();
            all.find(|(id, _)| *id == job).map(|(_, end)| end.clone())
        })
        .await
    }

    pub(crate) async fn line(&self, job: Uuid, text: &str) {
        self.wait_for(text, |state| {
            let mut records = state.logs.get(&job)?.iter();
            records.find(|record| record.text == text).map(|_| ())
        })
        .await;
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Answer, Infallible> {
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let from = request
            .uri()
            .query()
            .and_then(|query| query.strip_prefix("from="));
        let from: usize = from.map_or(0, |from| from.parse().unwrap());
        let header = |name: &str| {
            let value = request.headers().get(name)?;
            Some(value.to_str().unwrap().to_owned())
        };
        let token = header("authorization").unwrap_or_default();
        let digest = header(wire::CONTENT_DIGEST_HEADER).unwrap_or_default();
        let Ok(body) = request.into_body().collect().await else {
            return Ok(nothing());
        };
        let body = body.to_bytes();
        let last = path.rsplit('/').next().unwrap().to_owned();
        let fault = self.change(|state| {
            state.requests.push(format!("{method} {last}"));
            state.tokens.insert(token.replace("Bearer ", ""));
            let mut faults = state.faults.iter();
            match faults.position(|(route, _)| *route == last) {
                Some(place) => Some(state.faults.remove(place).1),
                None => state
                    .away
                    .filter(|route| route.is_empty() || *route == last)
                    .map(|_| Fault::Unavailable),
            }
        });
        let mut changes = self.changes.subscribe();
        let is_free = changes.wait_for(|_| self.state().held != Some(last.as_str()));
        is_free.await.unwrap();
        match fault {
            Some(Fault::CutBefore) => panic!("cut on purpose"),
            Some(Fault::JobOver) => return Ok(problem(409, ErrorCode::JobOver, None)),
            Some(Fault::Unavailable) => return Ok(problem(503, ErrorCode::Unavailable, None)),
            Some(Fault::Busy) => return Ok(problem(429, ErrorCode::TooManyJobs, None)),
            Some(Fault::RunnerInUse) => return Ok(problem(409, ErrorCode::RunnerInUse, None)),
            Some(Fault::Nothing) => return Ok(json(&[(); 0])),
            Some(Fault::PollReplaced) => return Ok(problem(409, ErrorCode::PollReplaced, None)),
            Some(Fault::CheckoutFailed) => {
                return Ok(problem(409, ErrorCode::CheckoutFailed, None));
            }
            Some(Fault::Half) => {
                let tar = self.state().tar.clone();
                return Ok(Response::new(Full::from(tar.slice(..tar.len() / 2))));
            }
            Some(Fault::LoseLogFrom(_) | Fault::CutAfter) | None => {}
        }
        let answer = match (&method, path.split('/').collect::<Vec<_>>().as_slice()) {
            (&Method::POST, ["", "v0", "runners", "register"]) => self.register(&body),
            (&Method::POST, ["", "v0", "runners", "hello"]) => self.hello(&body),
            (&Method::POST, ["", "v0", "runners", "goodbye"]) => {
                self.change(|state| state.goodbyes += 1);
                nothing()
            }
            (&Method::POST, ["", "v0", "messages"]) => self.messages(&body).await,
            (_, ["", "v0", "jobs", job, rest @ ..]) => {
                let job = job.parse().unwrap();
                if let Some(Fault::LoseLogFrom(from)) = fault {
                    self.change(|state| state.logs.entry(job).or_default().truncate(from));
                }
                self.of_job(job, rest, from, digest, body)
            }
            _ => problem(404, ErrorCode::NoSuchRoute, None),
        };
        assert_ne!(fault, Some(Fault::CutAfter), "cut on purpose");
        Ok(answer)
    }

    fn of_job(&self, job: Uuid, rest: &[&str], from: usize, digest: String, body: Bytes) -> Answer {
        if self.state().closed.contains(&job) {
            return problem(409, ErrorCode::JobOver, None);
        }
        match rest {
            ["resolve"] => match self.state().assignments.get(&job) {
                Some(assignment) => json(assignment),
                None => problem(409, ErrorCode::OfferLapsed, None),
            },
            ["source"] => Response::new(Full::from(self.state().tar.clone())),
            ["timeline"] => {
                let timeline = serde_json::from_slice(&body).unwrap();
                self.change(|state| state.timelines.push((job, timeline)));
                nothing()
            }
            ["logs"] => match serde_json::from_slice(&body) {
                Ok(records) => self.append(job, from, records),
                Err(_) => problem(400, ErrorCode::InvalidRequest, None),
            },
            ["artifacts", name] => {
                let key = (job, (*name).to_owned());
                self.change(|state| state.artifacts.insert(key, (digest, body)));
                nothing()
            }
            ["complete"] => self.complete(job, serde_json::from_slice(&body).unwrap()),
            _ => problem(404, ErrorCode::NoSuchRoute, None),
        }
    }

    fn register(&self, body: &[u8]) -> Answer {
        let registration = serde_json::from_slice(body).unwrap();
        self.change(|state| state.registrations.push(registration));
        json(&RegisteredRunner {
            id: Uuid::from_u128(7),
            token: "session".to_owned(),
            expires_at: chrono::DateTime::UNIX_EPOCH,
            projects: None,
            labels: Vec::new(),
        })
    }

    fn hello(&self, body: &[u8]) -> Answer {
        let hello = serde_json::from_slice(body).unwrap();
        self.change(|state| state.hellos.push(hello));
        if self.state().unknown_runner {
            problem(401, ErrorCode::Unauthorized, None)
        } else {
            nothing()
        }
    }

    async fn messages(&self, body: &[u8]) -> Answer {
        let poll: Poll = serde_json::from_slice(body).unwrap();
        let holding = poll.holding.clone();
        let number = self.change(|state| {
            state.polls.push(poll);
            state.polls.len()
        });
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(answer) = self.messages_now(number, &holding) {
                return answer;
            }
            if changes.changed().await.is_err() {
                return pending().await;
            }
        }
    }

    fn messages_now(&self, number: usize, holding: &[Uuid]) -> Option<Answer> {
        let mut state = self.state();
        if state.unknown_runner {
            return Some(problem(401, ErrorCode::Unauthorized, None));
        }
        if state.polls.len() > number {
            return Some(json(&Vec::<Message>::new()));
        }
        let mut messages: Vec<_> = state.messages.drain(..).collect();
        let stopped = holding.iter().filter(|id| state.cancelled.contains(id));
        messages.extend(stopped.map(|id| Message::JobCancelled(JobCancelled { id: *id })));
        let renewed = state.renewed_token.take();
        if messages.is_empty() && renewed.is_none() {
            return None;
        }
        let mut answer = json(&messages);
        if let Some(token) = renewed {
            answer
                .headers_mut()
                .insert(wire::REFRESH_HEADER, token.parse().unwrap());
        }
        Some(answer)
    }

    fn append(&self, job: Uuid, from: usize, records: Vec<NewLogRecord>) -> Answer {
        self.change(|state| {
            let log = state.logs.entry(job).or_default();
            let overlap = log.len().checked_sub(from);
            let agrees = overlap.is_some_and(|overlap| {
                log[from..].iter().zip(&records).all(|(a, b)| a == b) && overlap <= records.len()
            });
            let Some(overlap) = overlap.filter(|_| agrees) else {
                return problem(409, ErrorCode::LogMismatch, Some(log.len() as u64));
            };
            log.extend(records.into_iter().skip(overlap));
            let received = log.len() as u64;
            json(&LogReceipt {
                received,
                durable: 0,
                full: false,
            })
        })
    }

    fn complete(&self, job: Uuid, end: CompleteJob) -> Answer {
        self.change(|state| {
            let next = state.logs.get(&job).map_or(0, Vec::len) as u64;
            if next < end.log_records {
                return problem(409, ErrorCode::LogMismatch, Some(next));
            }
            state.completions.push((job, end));
            json(&Completed {
                state: JobState::Succeeded,
            })
        })
    }
}

fn assigned(id: Uuid) -> Message {
    Message::JobAssigned(JobAssigned {
        id,
        token: format!("worker-{id}"),
    })
}

fn json(body: &impl Serialize) -> Answer {
    Response::new(Full::from(serde_json::to_vec(body).unwrap()))
}

fn nothing() -> Answer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

fn problem(status: u16, code: ErrorCode, next: Option<u64>) -> Answer {
    let mut answer = json(&Problem {
        title: "refused".to_owned(),
        status,
        code,
        detail: "the fake daemon refuses".to_owned(),
        hint: None,
        request_id: None,
        errors: Vec::new(),
        diagnostics: Vec::new(),
        next,
        made: None,
    });
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    answer
        .headers_mut()
        .insert("content-type", wire::PROBLEM_MEDIA_TYPE.parse().unwrap());
    answer
}
