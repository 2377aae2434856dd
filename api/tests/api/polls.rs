//! Runners: polls, offers, cancellations, and lost jobs.

use chrono::TimeDelta;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::{Answer, Call, Raw, in_time};
use crate::service::{Runner, Service, text};

/// A poll that waits on the board of polls.
async fn waiting(service: &Service, runner: &Runner, holding: &[&str]) -> JoinHandle<Answer> {
    let call = runner.poll(1, holding);
    sent(service, runner, call.send(service.address)).await
}

/// Sends a poll and waits until it is on the board.
async fn sent<T: Send + 'static>(
    service: &Service,
    runner: &Runner,
    poll: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    // The time distinguishes it from earlier polls.
    service.clock.advance(TimeDelta::milliseconds(1));
    let (id, now) = (runner.id.parse().unwrap(), service.handle.now());
    let poll = tokio::spawn(poll);
    in_time(async {
        while service.handle.runners().heard_at(id) != Some(now) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    poll
}

async fn answered(poll: JoinHandle<Answer>) -> Value {
    in_time(poll).await.unwrap().expect(200)
}

/// The offered jobs.
fn jobs(messages: &Value) -> Vec<String> {
    let messages = messages.as_array().unwrap().iter();
    messages
        .map(|message| text(&message["job_assigned"]["id"]))
        .collect()
}

fn cancelled(job: &str) -> Value {
    json!([{"job_cancelled": {"id": job}}])
}

#[tokio::test]
async fn a_poll_is_held_until_there_is_a_job() {
    let service = Service::start().await;
    let runner = service.register("one", &[], 1).await;
    let poll = waiting(&service, &runner, &[]).await;
    let job = service.dispatch("build").await;
    let messages = answered(poll).await;
    assert_eq!(messages.as_array().map(Vec::len), Some(1));
    assert_eq!(messages[0]["job_assigned"]["id"], job);
}

#[tokio::test]
async fn a_newer_poll_ends_the_older_with_an_empty_answer() {
    let service = Service::start().await;
    let runner = service.register("one", &[], 1).await;
    let older = waiting(&service, &runner, &[]).await;
    let newer = waiting(&service, &runner, &[]).await;
    assert_eq!(answered(older).await, json!([]));
    service.dispatch("build").await;
    assert_eq!(answered(newer).await.as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_job_is_offered_to_one_of_the_waiting_runners() {
    let service = Service::start().await;
    let one = service.register("one", &[], 1).await;
    let two = service.register("two", &[], 1).await;
    let first = waiting(&service, &one, &[]).await;
    let second = waiting(&service, &two, &[]).await;
    let job = service.dispatch("build").await;
    assert_eq!(jobs(&answered(first).await), [job]);
    // The first runner is full, so the next job goes to the other runner.
    let job = service.dispatch("build").await;
    assert_eq!(jobs(&answered(second).await), [job]);
}

#[tokio::test]
async fn of_a_hundred_polls_only_one_gets_the_job() {
    let service = Service::start().await;
    let mut polls = Vec::new();
    for number in 0..100 {
        let runner = service.register(&format!("r{number}"), &[], 1).await;
        polls.push(waiting(&service, &runner, &[]).await);
    }
    in_time(async {
        while service.handle.runners().waiting_polls() < 100 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    service.dispatch("build").await;
    let mut answers: FuturesUnordered<_> = polls.into_iter().collect();
    let first = in_time(answers.next()).await.unwrap().unwrap();
    assert_eq!(jobs(&first.expect(200)).len(), 1);
    assert_eq!(service.handle.runners().waiting_polls(), 99);
    assert!(answers.iter().all(|poll| !poll.is_finished()));
}

#[tokio::test]
async fn a_lost_offer_is_sent_again() {
    let service = Service::start().await;
    let runner = service.register("one", &[], 1).await;
    service.dispatch("build").await;
    let first = service.poll(&runner, 1, &[]).await;
    assert_eq!(service.poll(&runner, 1, &[]).await, first);
}

#[tokio::test]
async fn a_runner_that_leaves_while_it_waits_gets_no_offer() {
    let service = Service::start().await;
    let gone = service.register("gone", &[], 1).await;
    let stays = service.register("stays", &[], 1).await;
    let poll = Raw::send(service.address, gone.raw_poll());
    let poll = sent(&service, &gone, poll).await.await.unwrap();
    // The daemon notices and closes the connection.
    assert_eq!(poll.leave().await, "");
    let poll = waiting(&service, &stays, &[]).await;
    service.dispatch("build").await;
    assert_eq!(answered(poll).await.as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn no_more_jobs_are_offered_than_the_runner_has_slots() {
    let service = Service::start().await;
    for _ in 0..4 {
        service.dispatch("build").await;
    }
    // The capacity in the poll counts, up to the registered capacity. An offered job occupies its slot.
    let runner = service.register("one", &[], 3).await;
    let mut offered = jobs(&service.poll(&runner, 2, &[]).await.into());
    assert_eq!(offered.len(), 2);
    // The offer of a job that the poll does not name may have been lost, so the job is offered again.
    let holding: Vec<&str> = offered.iter().map(String::as_str).collect();
    let more = jobs(&service.poll(&runner, 99, &holding).await.into());
    assert_eq!(more.len(), 1);
    offered.extend(more);
    let other = service.register("two", &[], 1).await;
    let last = jobs(&service.poll(&other, 1, &[]).await.into());
    assert_eq!(last.len(), 1);
    assert!(!offered.contains(&last[0]));
}

#[tokio::test]
async fn a_runner_without_a_free_slot_gets_only_cancellations() {
    let service = Service::start().await;
    let runner = service.register("one", &[], 1).await;
    service.dispatch("build").await;
    let full = runner.poll(0, &[]).send(service.address);
    let poll = sent(&service, &runner, full).await;
    let unknown = "01990000-0000-7000-8000-000000000000";
    let messages = runner.poll(0, &[unknown]).send(service.address).await;
    assert_eq!(messages.expect(200), cancelled(unknown));
    assert_eq!(answered(poll).await, json!([]));
}

#[tokio::test]
async fn a_job_goes_only_to_a_runner_that_has_its_labels() {
    let service = Service::start().await;
    let plain = service.register("plain", &["linux"], 1).await;
    let large = service.register("large", &["linux", "large"], 1).await;
    let poll = waiting(&service, &plain, &[]).await;
    let job = service.dispatch("large").await;
    let messages = service.poll(&large, 1, &[]).await;
    assert_eq!(messages[0]["job_assigned"]["id"], job);
    let job = service.dispatch("build").await;
    assert_eq!(jobs(&answered(poll).await), [job]);
}

#[tokio::test]
async fn a_cancellation_is_repeated_and_the_job_keeps_its_slot_until_the_runner_drops_it() {
    let service = Service::start().await;
    let (runner, worker) = service.claimed("one").await;
    let poll = waiting(&service, &runner, &[&worker.id]).await;
    let cancel = Call::post(worker.path("cancel"));
    service.admin(cancel).await.expect(200);
    assert_eq!(answered(poll).await, cancelled(&worker.id));
    service.dispatch("build").await;
    for _ in 0..2 {
        let messages = service.poll(&runner, 1, &[&worker.id]).await;
        assert_eq!(Value::Array(messages), cancelled(&worker.id));
    }
    let messages = service.poll(&runner, 1, &[]).await;
    assert_ne!(messages[0]["job_assigned"], Value::Null);
}

#[tokio::test]
async fn a_runner_must_stop_jobs_that_it_should_not_hold() {
    let service = Service::start().await;
    let runner = service.register("one", &[], 1).await;
    let unknown = "01990000-0000-7000-8000-000000000000";
    let messages = service.poll(&runner, 1, &[unknown]).await;
    assert_eq!(Value::Array(messages), cancelled(unknown));
}

#[tokio::test]
async fn a_job_that_its_runner_no_longer_holds_is_lost_but_not_a_job_that_was_just_claimed() {
    let service = Service::start().await;
    let (runner, worker) = service.claimed("one").await;
    let path = format!("/v0/jobs/{}", worker.id);
    let poll = waiting(&service, &runner, &[]).await;
    assert_eq!(service.get(&path).await.expect(200)["state"], "running");
    poll.abort();
    service.clock.advance(TimeDelta::seconds(10));
    let poll = tokio::spawn(runner.poll(1, &[]).send(service.address));
    let job = service.get(&format!("{path}?wait=true")).await.expect(200);
    assert_eq!(job["state"], "failed");
    assert_eq!(job["reason"]["code"], "runner_lost");
    poll.abort();
}

#[tokio::test]
async fn hello_and_goodbye_of_a_runner_end_its_jobs_as_lost() {
    for word in ["hello", "goodbye"] {
        let service = Service::start().await;
        let (runner, worker) = service.claimed("one").await;
        let answer = runner.says(word).send(service.address).await;
        assert_eq!(answer.status, 204);
        let job = service.get(&format!("/v0/jobs/{}", worker.id)).await;
        assert_eq!(job.expect(200)["reason"]["code"], "runner_lost");
        let answer = worker.call(Method::POST, &worker.path("resolve"));
        answer.send(service.address).await.problem(409, "job_over");
    }
}

#[tokio::test]
async fn a_second_process_is_refused_and_ends_no_job() {
    let service = Service::start().await;
    let (runner, worker) = service.claimed("one").await;
    let poll = waiting(&service, &runner, &[&worker.id]).await;
    let copy = runner.copied();
    let hello = copy.says("hello").send(service.address).await;
    let problem = hello.problem(409, "runner_in_use");
    assert!(text(&problem["hint"]).contains("everscan-runner configure"));
    let answer = copy.poll(1, &[]).send(service.address).await;
    answer.problem(409, "poll_replaced");
    let goodbye = copy.says("goodbye").send(service.address).await;
    assert_eq!(goodbye.status, 204);

    // The first runner still waits and still owns its job.
    service.complete(&worker, 0).await.expect(200);
    assert_eq!(answered(poll).await, cancelled(&worker.id));
    let poll = waiting(&service, &runner, &[]).await;
    let goodbye = runner.says("goodbye").send(service.address).await;
    assert_eq!(goodbye.status, 204);
    assert_eq!(answered(poll).await, json!([]));
    let hello = copy.says("hello").send(service.address).await;
    assert_eq!(hello.status, 204);
}

#[tokio::test]
async fn a_removed_runner_is_refused_at_once() {
    let service = Service::start().await;
    let (runner, worker) = service.claimed("one").await;
    let poll = waiting(&service, &runner, &[&worker.id]).await;
    let remove = Call::new(Method::DELETE, format!("/v0/runners/{}", runner.id));
    assert_eq!(service.admin(remove).await.status, 204);
    // The answer arrives soon: a message to stop the job, or an empty list.
    let messages = answered(poll).await;
    assert!(messages == json!([]) || messages == cancelled(&worker.id));
    let again = runner.poll(1, &[]).send(service.address).await;
    again.problem(401, "unauthorized");
    let job = service.get(&format!("/v0/jobs/{}", worker.id)).await;
    assert_eq!(job.expect(200)["reason"]["code"], "runner_lost");
}

#[tokio::test]
async fn a_replaced_runner_without_a_job_is_refused_at_once() {
    let service = Service::start().await;
    let runner = service.register("one", &[], 1).await;
    let poll = waiting(&service, &runner, &[]).await;
    let successor = json!({
        "token": service.registration().await, "name": "one", "replace": true, "capacity": 1, "version": "0.1.0",
    });
    let register = Call::post("/v0/runners/register").json(&successor);
    register.send(service.address).await.expect(201);
    assert_eq!(answered(poll).await, json!([]));
    let again = runner.poll(1, &[]).send(service.address).await;
    again.problem(401, "unauthorized");
}

#[tokio::test]
async fn a_session_is_renewed_once_a_day_and_the_old_token_overlaps() {
    let service = Service::start().await;
    let mut runner = service.register("one", &[], 1).await;
    assert_eq!(renewed(&service, &runner).await, None);
    service.clock.advance(TimeDelta::days(1));
    let token = renewed(&service, &runner).await.unwrap();
    assert_eq!(renewed(&service, &runner).await, None);
    service.clock.advance(TimeDelta::minutes(10));
    let answer = runner.poll(1, &[]).send(service.address).await;
    answer.problem(401, "unauthorized");
    runner.token = token;
    assert_eq!(renewed(&service, &runner).await, None);
}

#[tokio::test]
async fn a_lost_renewal_is_repeated() {
    let service = Service::start().await;
    let mut runner = service.register("one", &[], 1).await;
    service.clock.advance(TimeDelta::days(1));
    let lost = renewed(&service, &runner).await.unwrap();
    service.clock.advance(TimeDelta::minutes(9));
    runner.token = renewed(&service, &runner).await.unwrap();
    assert_ne!(runner.token, lost);
    service.clock.advance(TimeDelta::minutes(10));
    assert_eq!(renewed(&service, &runner).await, None);
}

/// Returns the token in a poll's answer. The poll has a job to stop, so it is answered at once.
async fn renewed(service: &Service, runner: &Runner) -> Option<String> {
    let poll = runner.poll(1, &["01990000-0000-7000-8000-000000000000"]);
    let answer = poll.send(service.address).await;
    assert_eq!(answer.status, 200);
    answer.header("x-authorization-refresh").map(str::to_owned)
}

#[tokio::test]
async fn polls_end_when_the_daemon_stops() {
    let service = Service::start().await;
    let runner = service.register("one", &[], 1).await;
    let poll = waiting(&service, &runner, &[]).await;
    service.handle.drain();
    assert_eq!(answered(poll).await, json!([]));
}

#[tokio::test]
async fn a_repeated_claim_continues_at_the_end_of_the_log() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let resolve = async || {
        let call = worker.call(Method::POST, &worker.path("resolve"));
        call.send(service.address).await.expect(200)
    };
    let first = resolve().await;
    assert_eq!(first["next_log_record"], 0);
    worker
        .append(0, &["a"])
        .send(service.address)
        .await
        .expect(200);
    let mut second = resolve().await;
    assert_eq!(second["next_log_record"].take(), 1);
    let mut first = first;
    first["next_log_record"].take();
    assert_eq!(first, second);
}

#[tokio::test]
async fn a_completion_can_be_repeated_and_needs_the_complete_log() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    worker
        .append(0, &["a"])
        .send(service.address)
        .await
        .expect(200);
    for records in [0, 2] {
        let problem = service.complete(&worker, records).await;
        let problem = problem.problem(409, "log_mismatch");
        assert_eq!(problem["next"], 1);
    }
    for _ in 0..2 {
        let completed = service.complete(&worker, 1).await.expect(200);
        assert_eq!(completed["state"], "succeeded");
    }
    let unfinished = json!({"steps": [], "log_records": 1});
    let (_, worker) = service.claimed("two").await;
    let call = worker.call(Method::POST, &worker.path("complete"));
    let answer = call.json(&unfinished).send(service.address).await;
    answer.problem(409, "log_mismatch");
    let call = worker.call(Method::POST, &worker.path("complete"));
    let unfinished = json!({"steps": [], "log_records": 0});
    let answer = call.json(&unfinished).send(service.address).await;
    answer.problem(400, "invalid_request");
}
