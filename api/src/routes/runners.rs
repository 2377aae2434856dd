//! Runners: requests of people and of runner processes.

use super::headers::{IDEMPOTENCY_KEY, REFRESH};
use super::operation::{answers, does, lists, may_take, takes, takes_only};
use crate::limits::{POLL_BODY, SMALL_BODY};

routes! {
    Public RegisterRunner POST "/v0/runners/register"; [], SMALL_BODY,
        takes::<wire::RegisterRunner, wire::RegisteredRunner>("Register a runner").statuses(&[201]);

    User ListRunners GET "/v0/runners", RunnerRead; [LIMIT, CURSOR], 0,
        lists::<wire::Runner>("List the runners");
    User ShowRunner GET "/v0/runners/{runner}", RunnerRead; [], 0,
        answers::<wire::Runner>("Show a runner with its jobs");
    User LimitRunner PATCH "/v0/runners/{runner}", RunnerWrite; [], SMALL_BODY,
        takes::<wire::LimitRunner, wire::Runner>("Let a runner take only jobs of these projects");
    User DeleteRunner DELETE "/v0/runners/{runner}", RunnerWrite; [], 0,
        does("Remove a runner");
    User CreateRegistration POST "/v0/runner-registrations", RunnerWrite; [], SMALL_BODY,
        may_take::<wire::CreateRegistration, wire::Registration>("Make a token that registers one runner")
            .statuses(&[201])
            .reads(&[IDEMPOTENCY_KEY]);

    Runner Hello POST "/v0/runners/hello"; [], SMALL_BODY,
        takes_only::<wire::Hello>("Report the start of a runner's process");
    Runner Goodbye POST "/v0/runners/goodbye"; [], SMALL_BODY,
        takes_only::<wire::Hello>("Report the end of a runner's process");
    Runner Messages POST "/v0/messages"; [], POLL_BODY,
        takes::<wire::Poll, Vec<wire::Message>>("Ask for work, as a runner").sets(&[REFRESH]);

    Page Runners GET "/runners", RunnerRead; [CURSOR], 0;
    Page Runner GET "/runners/{runner}", RunnerRead; [], 0;

    Action CreateRegistration POST "/runners/registrations", RunnerWrite; [], SMALL_BODY;
    Action LimitRunner POST "/runners/{runner}/limit", RunnerWrite; [], SMALL_BODY;
    Action RemoveRunner POST "/runners/{runner}/remove", RunnerWrite; [], SMALL_BODY;
}
