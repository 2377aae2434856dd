//! The daemon itself: its health, metrics, documents and events.

use serde_json::Value;

use super::headers::LAST_EVENT_ID;
use super::operation::{answers, text};

routes! {
    Public Healthz GET "/healthz"; [], 0,
        answers::<wire::Health>("Read the health of the daemon");
    Public Readyz GET "/readyz"; [], 0,
        answers::<wire::Readiness>("Check whether the daemon takes new jobs; 503 if not");
    Public WorkflowSchema GET "/v0/schema/workflow.json"; [], 0,
        answers::<Value>("Read the JSON Schema of workflow files").cached();
    Public OpenApi GET "/v0/openapi.json"; [], 0,
        answers::<Value>("Read this document").cached();
    Public Docs GET "/v0/docs"; [], 0,
        text("Read this document as a page", &["text/html"]).cached();
    Public Asset GET "/assets/{*path}"; [], 0;

    Local Metrics GET "/metrics", Metrics; [], 0,
        text("Read the metrics for Prometheus", &["text/plain"]);

    User Events GET "/v0/events", JobRead; [PROJECT, WORKFLOW, JOB], 0,
        text(
            "Follow changes as events: `JobEvent`, `StepEvent`, `RevisionEvent`, `SuspensionEvent`, `SourceEvent`, `RunnerEvent`, `ConditionEvent` and `InteractionEvent`",
            &["text/event-stream"],
        )
        .reads(&[LAST_EVENT_ID]);

    Page Overview GET "/"; [], 0;
    Page About GET "/about"; [], 0;
    Page Live GET "/live"; [], 0;
}
