//! Workflows, their revisions and their scans.

use super::headers::IDEMPOTENCY_KEY;
use super::operation::{answers, lists, may_take, takes};
use crate::limits::{DISPATCH_BODY, SMALL_BODY, VALIDATE_BODY};

routes! {
    User ListWorkflows GET "/v0/workflows", WorkflowRead; [WORKFLOW_STATE, LIMIT, CURSOR], 0,
        lists::<wire::Workflow>("List the workflows");
    User ShowWorkflow GET "/v0/workflows/{workflow}", WorkflowRead; [], 0,
        answers::<wire::Workflow>("Show a workflow with its scans");
    User ListRevisions GET "/v0/workflows/{workflow}/revisions", WorkflowRead; [LIMIT, CURSOR], 0,
        lists::<wire::Revision>("List the revisions of a workflow");
    User ShowRevision GET "/v0/workflows/{workflow}/revisions/{revision}", WorkflowRead; [], 0,
        answers::<wire::RevisionText>("Show a revision with its text");
    User DiffRevision GET "/v0/workflows/{workflow}/revisions/{revision}/diff", WorkflowRead; [FROM_REVISION], 0,
        answers::<wire::RevisionDiff>("Show what a revision changed in meaning");
    User Validate POST "/v0/validate", WorkflowRead; [], VALIDATE_BODY,
        takes::<wire::Validate, wire::Validated>("Check the text of a workflow");
    User PruneWorkflow POST "/v0/workflows/{workflow}/prune", WorkflowWrite; [], SMALL_BODY,
        takes::<wire::PruneRequest, wire::Pruned>("Remove old jobs of a workflow");
    User SuspendWorkflow POST "/v0/workflows/{workflow}/suspend", WorkflowSuspend; [], SMALL_BODY,
        takes::<wire::Suspend, wire::SuspensionStatus>("Suspend a workflow, so that it starts no jobs");
    User ResumeWorkflow POST "/v0/workflows/{workflow}/resume", WorkflowSuspend; [], SMALL_BODY,
        may_take::<wire::Resume, wire::SuspensionStatus>("Resume a suspended workflow");
    User SuspendScan POST "/v0/workflows/{workflow}/scans/{scan}/suspend", WorkflowSuspend; [], SMALL_BODY,
        takes::<wire::Suspend, wire::SuspensionStatus>("Suspend a scan, so that it starts no jobs");
    User ResumeScan POST "/v0/workflows/{workflow}/scans/{scan}/resume", WorkflowSuspend; [], SMALL_BODY,
        may_take::<wire::Resume, wire::SuspensionStatus>("Resume a suspended scan");
    User Dispatch POST "/v0/workflows/{workflow}/scans/{scan}/dispatch", Dispatch; [], DISPATCH_BODY,
        may_take::<wire::DispatchRequest, wire::DispatchResponse>("Start a job of a scan")
            .statuses(&[202])
            .reads(&[IDEMPOTENCY_KEY]);
    User ListScans GET "/v0/scans", WorkflowRead; [WORKFLOW, LIMIT, CURSOR], 0,
        lists::<wire::ScanStatus>("List the scans");
    User ShowScan GET "/v0/workflows/{workflow}/scans/{scan}", WorkflowRead; [], 0,
        answers::<wire::ScanStatus>("Show a scan with its newest job");
    User ScanHistory GET "/v0/workflows/{workflow}/scans/{scan}/history", JobRead; [JOBS, CURSOR], 0,
        lists::<wire::JobLine>("List the finished jobs of a scan, briefly");
    User ScanLedger GET "/v0/workflows/{workflow}/scans/{scan}/ledger", WorkflowRead; [LIMIT, CURSOR], 0,
        lists::<wire::LedgerRecord>("List the evaluations of a scan's schedule or expression");
    User Schedule GET "/v0/schedule", WorkflowRead; [WORKFLOW, SCAN, LIMIT], 0,
        lists::<wire::Slot>("List the next slots of schedules that are not suspended");
    User Why GET "/v0/workflows/{workflow}/scans/{scan}/why", WorkflowRead; [AT, LIMIT], 0,
        answers::<wire::Why>("Explain why a scan ran or did not");

    User ListConditions GET "/v0/conditions", WorkflowRead; [LIMIT, CURSOR], 0,
        lists::<wire::OpenCondition>("List the open conditions: what needs a person");
    User AcknowledgeCondition POST "/v0/conditions/{condition}/acknowledge", ConditionWrite; [], SMALL_BODY,
        may_take::<wire::Acknowledge, wire::OpenCondition>("Note that a person knows of a condition");
    User SilenceCondition POST "/v0/conditions/{condition}/silence", ConditionWrite; [], SMALL_BODY,
        may_take::<wire::Silence, wire::OpenCondition>("Fold a condition away for a while");

    Page Workflows GET "/workflows", WorkflowRead; [CURSOR, WORKFLOW_STATE], 0;
    Page Workflow GET "/workflows/{workflow}", WorkflowRead; [FOCUS, LANES], 0;
    Page Revisions GET "/workflows/{workflow}/-/revisions", WorkflowRead; [CURSOR], 0;
    Page Revision GET "/workflows/{workflow}/-/revisions/{revision}", WorkflowRead; [AGAINST_REVISION], 0;
    Page Scan GET "/workflows/{workflow}/-/scans/{scan}", WorkflowRead; [CURSOR], 0;
    Page DispatchForm GET "/workflows/{workflow}/-/scans/{scan}/dispatch", Dispatch; [LIKE_JOB], 0;

    Action AcknowledgeCondition POST "/conditions/{condition}/acknowledge", ConditionWrite; [], SMALL_BODY;
    Action SilenceCondition POST "/conditions/{condition}/silence", ConditionWrite; [], SMALL_BODY;
    Action Dispatch POST "/workflows/{workflow}/-/scans/{scan}/dispatch", Dispatch; [], DISPATCH_BODY;
    Action SuspendWorkflow POST "/workflows/{workflow}/-/suspend", WorkflowSuspend; [], SMALL_BODY;
    Action ResumeWorkflow POST "/workflows/{workflow}/-/resume", WorkflowSuspend; [], SMALL_BODY;
    Action SuspendScan POST "/workflows/{workflow}/-/scans/{scan}/suspend", WorkflowSuspend; [], SMALL_BODY;
    Action ResumeScan POST "/workflows/{workflow}/-/scans/{scan}/resume", WorkflowSuspend; [], SMALL_BODY;
}
