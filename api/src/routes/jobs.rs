//! Jobs, their logs and their artifacts.

use super::headers::{ENTRIES_DIGEST, IDEMPOTENCY_KEY, LAST_EVENT_ID};
use super::operation::{answers, does, downloads, lists, may_take, sends, takes, takes_only, text};
use crate::limits::{ARTIFACT_BODY, LOG_BODY, REPORT_BODY, SMALL_BODY};

routes! {
    User ListJobs GET "/v0/jobs", JobRead;
        [ID, WORKFLOW, SCAN, JOB_STATE, TRIGGER, RUNNER, REASON, SINCE, UNTIL, LIMIT, CURSOR], 0,
        lists::<wire::Job>("List jobs, newest first");
    User ShowJob GET "/v0/jobs/{job}", JobRead; [WAIT_FOR_END, MESSAGES], 0,
        answers::<wire::Job>("Show a job, or wait for its end");
    User JobContext GET "/v0/jobs/{job}/context", JobRead; [], 0,
        answers::<wire::JobContext>("Show what the expressions of a job read");
    User DeleteJob DELETE "/v0/jobs/{job}", JobWrite; [], 0,
        does("Remove a finished job with its log and artifacts");
    User CancelJob POST "/v0/jobs/{job}/cancel", JobCancel; [], SMALL_BODY,
        may_take::<wire::CancelJob, wire::ChangedJob>("Cancel a job");
    User RerunJob POST "/v0/jobs/{job}/rerun", Dispatch; [], SMALL_BODY,
        may_take::<wire::RerunJob, wire::DispatchResponse>("Run a finished job again")
            .statuses(&[202])
            .reads(&[IDEMPOTENCY_KEY]);
    User ReadLog GET "/v0/jobs/{job}/logs", JobRead;
        [FROM_RECORD, TAIL, RECORDS, STEP, STREAM, SINCE, TIMESTAMPS, FOLLOW], 0,
        text("Read or follow the log of a job", &["text/plain", "application/x-ndjson", "text/event-stream"])
            .reads(&[LAST_EVENT_ID]);
    User SearchLog GET "/v0/jobs/{job}/logs/search", JobRead; [TEXT, CASE, STEP, STREAM, SINCE, MATCHES, CURSOR], 0,
        answers::<wire::LogMatches>("Search the log of a job");
    User ListArtifacts GET "/v0/jobs/{job}/artifacts", JobRead; [LIMIT, CURSOR], 0,
        lists::<wire::Artifact>("List the artifacts of a job");
    User DownloadArtifact GET "/v0/jobs/{job}/artifacts/{artifact}", JobRead; [], 0,
        downloads("Download an artifact", "application/zip");
    User ListEntries GET "/v0/jobs/{job}/artifacts/{artifact}/entries", JobRead; [ENTRIES, CURSOR], 0,
        lists::<wire::ArtifactEntry>("List the files in an artifact");
    User DiffArtifact GET "/v0/jobs/{job}/artifacts/{artifact}/diff", JobRead; [AGAINST_JOB, ENTRIES, CURSOR], 0,
        answers::<wire::ArtifactDiff>("Compare an artifact with that of another job");
    User DeleteArtifact DELETE "/v0/jobs/{job}/artifacts/{artifact}", JobWrite; [], 0,
        does("Remove an artifact");

    Worker Resolve POST "/v0/jobs/{job}/resolve"; [], SMALL_BODY,
        answers::<wire::Assignment>("Claim a job, as its worker");
    Worker Source GET "/v0/jobs/{job}/source"; [], 0,
        sends("Download the files of the repository, as a tar", "application/x-tar");
    Worker Timeline POST "/v0/jobs/{job}/timeline"; [], REPORT_BODY,
        takes_only::<wire::Timeline>("Report the steps of a job");
    Worker AppendLog PATCH "/v0/jobs/{job}/logs"; [NEXT_RECORD], LOG_BODY,
        takes::<Vec<wire::NewLogRecord>, wire::LogReceipt>("Append to the log of a job");
    Worker UploadArtifact PUT "/v0/jobs/{job}/artifacts/{artifact}"; [], ARTIFACT_BODY,
        answers::<wire::Artifact>("Upload an artifact of a job").takes_bytes().reads(&[ENTRIES_DIGEST]);
    Worker Complete POST "/v0/jobs/{job}/complete"; [], REPORT_BODY,
        takes::<wire::CompleteJob, wire::Completed>("Complete a job");

    Page Jobs GET "/jobs", JobRead; [ID, JOB_STATE, WORKFLOW, SCAN, TRIGGER, RUNNER, REASON, CURSOR], 0;
    Page Job GET "/jobs/{job}", JobRead; [], 0;
    Page JobContext GET "/jobs/{job}/context", JobRead; [], 0;
    Page Log GET "/jobs/{job}/log", JobRead; [FROM_RECORD, RECORDS, TEXT, STEP], 0;
    Page RawLog GET "/jobs/{job}/log/raw", JobRead; [], 0;
    Page LogRecords GET "/jobs/{job}/log/records", JobRead; [FROM_RECORD, RECORDS, STEP, STREAM], 0;
    Page LogSearch GET "/jobs/{job}/log/search", JobRead; [TEXT, MATCHES, CURSOR], 0;
    Page Artifact GET "/jobs/{job}/artifacts/{artifact}", JobRead; [], 0;
    Page ArtifactEntries GET "/jobs/{job}/artifacts/{artifact}/entries", JobRead; [CURSOR], 0;
    Page ArtifactDiff GET "/jobs/{job}/artifacts/{artifact}/diff", JobRead; [AGAINST_JOB, CURSOR], 0;
    Page Artifacts GET "/artifacts", WorkflowRead; [CURSOR], 0;

    Action CancelJob POST "/jobs/{job}/cancel", JobCancel; [], SMALL_BODY;
    Action DeleteJob POST "/jobs/{job}/delete", JobWrite; [], SMALL_BODY;
    Action RerunJob POST "/jobs/{job}/rerun", Dispatch; [], SMALL_BODY;
    Action DeleteArtifact POST "/jobs/{job}/artifacts/{artifact}/delete", JobWrite; [], SMALL_BODY;
}
