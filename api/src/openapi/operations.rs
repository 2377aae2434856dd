//! What each operation takes and answers. The matches have no wildcard, so a new route asks for its description.

use super::headers::{self, Header};
use model::limits::ID_PART_DIGITS;
use model::{AuditKind, Reason, StateKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::bounds::duration;
use crate::limits::{ENTRIES_PAGE, HISTORY_PAGE, PAGE, SEARCH_PAGE, SEARCHED_CHARS};
use crate::routes::{
    Access, LinkRoute, LocalRoute, PublicRoute, RunnerRoute, SessionRoute, UserRoute, WorkerRoute,
};

/// A route, for readers of the document.
pub(super) struct Operation {
    pub(super) summary: &'static str,
    pub(super) body: RequestBody,
    /// The headers that it reads, beside those of every request.
    pub(super) headers: &'static [Header],
    /// The statuses of a success.
    pub(super) statuses: &'static [u16],
    pub(super) answer: Answer,
    /// The headers of a success, beside those of every answer.
    pub(super) answer_headers: &'static [Header],
    /// The other answers that are no problems.
    pub(super) others: &'static [Other],
}

/// What may be answered in place of the whole.
#[derive(Clone, Copy)]
pub(super) enum Other {
    /// 206: the part that the request wants.
    Part,
    /// 304: the caller has this version.
    Unchanged,
}

pub(super) enum RequestBody {
    None,
    Json(Schema),
    /// JSON that may be left out.
    Optional(Schema),
    Bytes,
}

pub(super) enum Answer {
    Nothing,
    Json(Schema),
    /// Text of one of these media types.
    Text(&'static [&'static str]),
    /// Bytes of this media type.
    Bytes(&'static str),
}

/// Makes operations with the schemas of their types.
struct Describer<'a>(&'a mut SchemaGenerator);

impl Describer<'_> {
    fn answers<T: JsonSchema>(&mut self, summary: &'static str) -> Operation {
        Operation {
            summary,
            statuses: &[200],
            answer: Answer::Json(self.0.subschema_for::<T>()),
            ..does(summary)
        }
    }

    fn lists<T: JsonSchema>(&mut self, summary: &'static str) -> Operation {
        self.answers::<wire::Page<T>>(summary)
    }

    /// Takes one and answers another.
    fn takes<B: JsonSchema, T: JsonSchema>(&mut self, summary: &'static str) -> Operation {
        Operation {
            body: RequestBody::Json(self.0.subschema_for::<B>()),
            ..self.answers::<T>(summary)
        }
    }

    /// Takes one, or no body at all, and answers another.
    fn may_take<B: JsonSchema, T: JsonSchema>(&mut self, summary: &'static str) -> Operation {
        Operation {
            body: RequestBody::Optional(self.0.subschema_for::<B>()),
            ..self.answers::<T>(summary)
        }
    }

    /// Takes one and answers nothing.
    fn takes_only<B: JsonSchema>(&mut self, summary: &'static str) -> Operation {
        Operation {
            body: RequestBody::Json(self.0.subschema_for::<B>()),
            ..does(summary)
        }
    }
}

fn does(summary: &'static str) -> Operation {
    Operation {
        summary,
        body: RequestBody::None,
        headers: &[],
        statuses: &[204],
        answer: Answer::Nothing,
        answer_headers: &[],
        others: &[],
    }
}

fn text(summary: &'static str, kinds: &'static [&'static str]) -> Operation {
    Operation {
        statuses: &[200],
        answer: Answer::Text(kinds),
        ..does(summary)
    }
}

/// Answers bytes: the whole, a part of them, or that the caller has them already.
fn bytes(summary: &'static str, kind: &'static str) -> Operation {
    Operation {
        headers: &[headers::RANGE, headers::IF_RANGE, headers::IF_NONE_MATCH],
        statuses: &[200],
        answer: Answer::Bytes(kind),
        answer_headers: &[headers::ETAG, headers::ACCEPT_RANGES],
        others: &[Other::Part, Other::Unchanged],
        ..does(summary)
    }
}

/// Answers the bytes of a blob. A request may be for one version alone.
fn blob(summary: &'static str) -> Operation {
    Operation {
        headers: &[
            headers::RANGE,
            headers::IF_RANGE,
            headers::IF_MATCH,
            headers::IF_NONE_MATCH,
        ],
        answer_headers: &[
            headers::ETAG,
            headers::ACCEPT_RANGES,
            headers::CONTENT_DIGEST,
        ],
        ..bytes(summary, "application/octet-stream")
    }
}

/// Answers 201 for a new one, and 200 for one that was replaced.
fn stored(operation: Operation) -> Operation {
    Operation {
        statuses: &[200, 201],
        ..operation
    }
}

/// The head of what [`blob`] answers: always of the whole.
fn heads(summary: &'static str) -> Operation {
    Operation {
        headers: &[headers::IF_MATCH, headers::IF_NONE_MATCH],
        answer: Answer::Nothing,
        others: &[Other::Unchanged],
        ..blob(summary)
    }
}

fn copies(operation: Operation) -> Operation {
    Operation {
        headers: &[headers::IF_MATCH, headers::IF_ABSENT],
        answer_headers: &[headers::ETAG],
        ..stored(operation)
    }
}

fn uploads(operation: Operation) -> Operation {
    Operation {
        body: RequestBody::Bytes,
        headers: &[
            headers::IF_MATCH,
            headers::IF_ABSENT,
            headers::CONTENT_DIGEST,
        ],
        answer_headers: &[headers::ETAG],
        ..stored(operation)
    }
}

fn created(operation: Operation) -> Operation {
    Operation {
        statuses: &[201],
        ..operation
    }
}

/// Edits one version of a value alone, if that is asked for.
fn edits(operation: Operation) -> Operation {
    Operation {
        headers: &[headers::IF_MATCH, headers::IF_ABSENT],
        answer_headers: &[headers::ETAG],
        ..operation
    }
}

/// Removes one version of a value alone, if that is asked for.
fn removes(operation: Operation) -> Operation {
    Operation {
        headers: &[headers::IF_MATCH],
        ..operation
    }
}

/// Does the same once however often it is repeated with one key.
fn keyed(operation: Operation) -> Operation {
    Operation {
        headers: &[headers::IDEMPOTENCY_KEY],
        ..operation
    }
}

/// A document that the caller may have already.
fn cached(operation: Operation) -> Operation {
    Operation {
        headers: &[headers::IF_NONE_MATCH],
        answer_headers: &[headers::ETAG],
        others: &[Other::Unchanged],
        ..operation
    }
}

/// Ends sessions. The cookie of the one that asks ends with it.
fn signs_out(operation: Operation) -> Operation {
    Operation {
        answer_headers: &[headers::SET_COOKIE],
        ..operation
    }
}

/// The name of an operation: that of its route.
pub(super) fn name(access: Access) -> String {
    match access {
        Access::Public(route) => format!("{route:?}"),
        Access::Local(route, _) => format!("{route:?}"),
        Access::User(route, _) => format!("{route:?}"),
        Access::Session(route) => format!("{route:?}"),
        Access::Link(route) => format!("{route:?}LinkedBlob"),
        Access::Runner(route) => format!("{route:?}"),
        Access::Worker(route) => format!("{route:?}"),
        Access::Page(route, _) => format!("{route:?}Page"),
        Access::Action(route, _) => format!("{route:?}Action"),
    }
}

pub(super) fn operation(access: Access, schemas: &mut SchemaGenerator) -> Operation {
    let describer = &mut Describer(schemas);
    match access {
        Access::Public(route) => public(route, describer),
        Access::Local(LocalRoute::Metrics, _) => {
            text("Read the metrics for Prometheus", &["text/plain"])
        }
        Access::User(route, _) => user(route, describer),
        Access::Session(route) => session(route, describer),
        Access::Link(route) => link(route, describer),
        Access::Runner(route) => runner(route, describer),
        Access::Worker(route) => worker(route, describer),
        Access::Page(..) => text("Show a page", &["text/html"]),
        Access::Action(..) => does("Change something from a page"),
    }
}

fn public(route: PublicRoute, it: &mut Describer<'_>) -> Operation {
    use PublicRoute as R;
    match route {
        // Of browsers, and not in the document.
        R::LoginPage | R::LinkPage | R::Login | R::Asset => text("Show a page", &["text/html"]),
        R::Healthz => it.answers::<wire::Health>("Ask how the daemon is"),
        R::Readyz => it.answers::<wire::Readiness>("Ask whether new jobs are taken; 503 if not"),
        R::WorkflowSchema => cached(it.answers::<Value>("Read the JSON Schema of workflow files")),
        R::OpenApi => cached(it.answers::<Value>("Read this document")),
        R::Docs => cached(text("Read this document as a page", &["text/html"])),
        R::RegisterRunner => {
            created(it.takes::<wire::RegisterRunner, wire::RegisteredRunner>("Register a runner"))
        }
        R::CreateSession => Operation {
            answer_headers: &[headers::SET_COOKIE],
            ..created(it.takes::<wire::CreateSession, wire::Session>(
                "Sign a browser in with an access token",
            ))
        },
    }
}

fn user(route: UserRoute, it: &mut Describer<'_>) -> Operation {
    use UserRoute as R;
    match route {
        R::ListSources => it.lists::<wire::Source>("List the sources"),
        R::ShowSource => it.answers::<wire::Source>("Show a source with its conditions"),
        R::SyncSource => it.answers::<wire::Source>("Make the daemon look at a repository now"),
        R::ApproveSource => it.takes::<wire::ApproveSource, wire::Source>(
            "Let a tip be applied that retires many workflows at once",
        ),
        R::ListProjects => it.lists::<wire::Project>("List the projects"),
        R::ShowProject => it.answers::<wire::Project>("Show a project with what it misses"),
        R::ListVars => it.lists::<wire::Named>("List the vars of a project, without values"),
        R::ShowVar => Operation {
            answer_headers: &[headers::ETAG],
            ..it.answers::<wire::Var>("Show a var")
        },
        R::SetVar => edits(it.takes::<wire::SetValue, wire::Var>("Set a var")),
        R::DeleteVar => removes(does("Delete a var")),
        R::ListSecrets => it.lists::<wire::Secret>("List the secrets of a project, without values"),
        R::SecretMasking => {
            it.answers::<wire::Masking>("Ask which encodings of a secret logs do not show")
        }
        R::SetSecret => edits(it.takes::<wire::SetValue, wire::Secret>("Set a secret")),
        R::DeleteSecret => removes(does("Delete a secret")),
        R::ListWorkflows => it.lists::<wire::Workflow>("List the workflows"),
        R::ShowWorkflow => it.answers::<wire::Workflow>("Show a workflow with its scans"),
        R::ListRevisions => it.lists::<wire::Revision>("List the revisions of a workflow"),
        R::ShowRevision => it.answers::<wire::RevisionText>("Show a revision with its text"),
        R::DiffRevision => {
            it.answers::<wire::RevisionDiff>("Show what a revision changed in meaning")
        }
        R::Validate => it.takes::<wire::Validate, wire::Validated>("Check the text of a workflow"),
        R::PruneWorkflow => {
            it.takes::<wire::PruneRequest, wire::Pruned>("Remove old jobs of a workflow")
        }
        R::SuspendWorkflow => {
            it.takes::<wire::Suspend, wire::SuspensionStatus>("Let nothing of a workflow start")
        }
        R::ResumeWorkflow => {
            it.may_take::<wire::Resume, wire::SuspensionStatus>("Let a workflow start jobs again")
        }
        R::SuspendScan => {
            it.takes::<wire::Suspend, wire::SuspensionStatus>("Let nothing of a scan start")
        }
        R::ResumeScan => {
            it.may_take::<wire::Resume, wire::SuspensionStatus>("Let a scan start jobs again")
        }
        R::Dispatch => Operation {
            statuses: &[202],
            ..keyed(
                it.may_take::<wire::DispatchRequest, wire::DispatchResponse>(
                    "Start a job of a scan",
                ),
            )
        },
        R::ListScans => it.lists::<wire::ScanStatus>("List the scans"),
        R::ShowScan => it.answers::<wire::ScanStatus>("Show a scan with its newest job"),
        R::ScanHistory => it.lists::<wire::JobLine>("List the finished jobs of a scan, briefly"),
        R::ScanLedger => {
            it.lists::<wire::LedgerRecord>("List the looks at a scan's schedule or expression")
        }
        R::Schedule => {
            it.lists::<wire::Slot>("List the next slots of schedules that are not suspended")
        }
        R::Why => it.answers::<wire::Why>("Ask why a scan ran or did not"),
        R::ListJobs => it.lists::<wire::Job>("List jobs, newest first"),
        R::ShowJob => it.answers::<wire::Job>("Show a job, or wait for its end"),
        R::JobContext => it.answers::<wire::JobContext>("Show what the expressions of a job read"),
        R::DeleteJob => does("Remove a finished job with its log and artifacts"),
        R::CancelJob => it.may_take::<wire::CancelJob, wire::Job>("Cancel a job"),
        R::RerunJob => Operation {
            statuses: &[202],
            ..keyed(
                it.may_take::<wire::RerunJob, wire::DispatchResponse>("Run a finished job again"),
            )
        },
        R::ReadLog => Operation {
            headers: &[headers::LAST_EVENT_ID],
            ..text(
                "Read or follow the log of a job",
                &["text/plain", "application/x-ndjson", "text/event-stream"],
            )
        },
        R::SearchLog => it.answers::<wire::LogMatches>("Search the log of a job"),
        R::ListArtifacts => it.lists::<wire::Artifact>("List the artifacts of a job"),
        R::DownloadArtifact => bytes("Download an artifact", "application/zip"),
        R::ListEntries => it.lists::<wire::ArtifactEntry>("List the files in an artifact"),
        R::DiffArtifact => {
            it.answers::<wire::ArtifactDiff>("Compare an artifact with that of another job")
        }
        R::DeleteArtifact => does("Remove an artifact"),
        R::ListBlobs => it.answers::<wire::BlobList>("List the blobs of a project"),
        R::DownloadBlob => blob("Download a blob"),
        R::InspectBlob => heads("Ask what a blob is, without its content"),
        R::UploadBlob => uploads(it.answers::<wire::Blob>("Upload a blob, or replace it")),
        R::DeleteBlob => removes(does("Delete a blob")),
        R::CopyBlob => copies(it.takes::<wire::CopyBlob, wire::Blob>("Copy a blob")),
        R::MoveBlob => copies(it.takes::<wire::MoveBlob, wire::Blob>("Give a blob another path")),
        R::ListBlobLinks => it.lists::<wire::BlobLink>("List the links to blobs"),
        R::CreateBlobLink => keyed(created(
            it.takes::<wire::CreateBlobLink, wire::CreatedBlobLink>("Make a link to a blob"),
        )),
        R::RevokeBlobLink => does("Revoke a link"),
        R::Events => Operation {
            headers: &[headers::LAST_EVENT_ID],
            ..text(
                "Listen to what changes: `JobEvent`, `StepEvent`, `RevisionEvent`, `SuspensionEvent`, `SourceEvent` and `RunnerEvent`",
                &["text/event-stream"],
            )
        },
        R::ListTokens => it.lists::<wire::Token>("List the access tokens, without secrets"),
        R::CreateToken => keyed(created(
            it.takes::<wire::CreateToken, wire::CreatedToken>("Make an access token"),
        )),
        R::RegenerateToken => keyed(it.takes::<wire::RegenerateToken, wire::CreatedToken>(
            "Give an access token a new secret",
        )),
        R::RevokeToken => does("Revoke an access token"),
        R::ListAudit => it.lists::<wire::AuditRecord>("List what people did"),
        R::ListRunners => it.lists::<wire::Runner>("List the runners"),
        R::ShowRunner => it.answers::<wire::Runner>("Show a runner with its jobs"),
        R::DeleteRunner => does("Remove a runner"),
        R::CreateRegistration => keyed(created(
            it.answers::<wire::Registration>("Make a token that registers one runner"),
        )),
    }
}

fn session(route: SessionRoute, it: &mut Describer<'_>) -> Operation {
    match route {
        SessionRoute::ListSessions => it.lists::<wire::Session>("List the browsers signed in"),
        SessionRoute::EndSession => signs_out(does("Sign a browser out")),
        SessionRoute::EndSessions => signs_out(does("Sign all browsers out")),
        SessionRoute::CreateSignInLink => {
            created(it.may_take::<wire::CreateSignInLink, wire::SignInLink>(
                "Make a link that signs one browser in",
            ))
        }
    }
}

fn link(route: LinkRoute, it: &mut Describer<'_>) -> Operation {
    match route {
        LinkRoute::Download => blob("Download by a link"),
        LinkRoute::Inspect => heads("Ask what a link leads to"),
        LinkRoute::Upload => uploads(it.answers::<wire::Blob>("Upload by a link")),
    }
}

fn runner(route: RunnerRoute, it: &mut Describer<'_>) -> Operation {
    match route {
        RunnerRoute::Hello => it.takes_only::<wire::Hello>("A runner's process begins"),
        RunnerRoute::Goodbye => it.takes_only::<wire::Hello>("A runner's process ends"),
        RunnerRoute::Messages => Operation {
            answer_headers: &[headers::REFRESH],
            ..it.takes::<wire::Poll, Vec<wire::Message>>("A runner asks for work")
        },
    }
}

fn worker(route: WorkerRoute, it: &mut Describer<'_>) -> Operation {
    match route {
        WorkerRoute::Resolve => it.answers::<wire::Assignment>("A worker claims its job"),
        WorkerRoute::Source => Operation {
            statuses: &[200],
            answer: Answer::Bytes("application/x-tar"),
            ..does("A worker gets the files of the repository, as a tar")
        },
        WorkerRoute::Timeline => it.takes_only::<wire::Timeline>("A worker reports the steps"),
        WorkerRoute::AppendLog => {
            it.takes::<Vec<wire::NewLogRecord>, wire::LogReceipt>("A worker appends to the log")
        }
        WorkerRoute::UploadArtifact => Operation {
            body: RequestBody::Bytes,
            headers: const { &[headers::ENTRIES_DIGEST.needed()] },
            ..it.answers::<wire::Artifact>("A worker uploads an artifact")
        },
        WorkerRoute::Complete => {
            it.takes::<wire::CompleteJob, wire::Completed>("A worker ends its job")
        }
    }
}

/// Whether the operation is refused without this query parameter.
pub(super) fn is_needed(access: Access, name: &str) -> bool {
    matches!(
        (access, name),
        (Access::User(UserRoute::SearchLog, _), "q")
            | (Access::User(UserRoute::DiffArtifact, _), "against")
            | (Access::Worker(WorkerRoute::AppendLog), "from")
    )
}

/// What a parameter means, and its schema.
pub(super) fn parameter(access: Access, place: &str, name: &str) -> (&'static str, Value) {
    let number = || json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX });
    let positive = || json!({ "type": "integer", "minimum": 1, "maximum": u64::MAX });
    let count = |most: usize| json!({ "type": "integer", "minimum": 1, "maximum": most });
    let flag = || json!({ "type": "boolean" });
    let time = || json!({ "type": "string", "format": "date-time" });
    let text = || json!({ "type": "string" });
    let word = || json!({ "type": "string", "minLength": 1 });
    let one_of = |words: &[&str]| json!({ "type": "string", "enum": words });
    let user = match access {
        Access::User(route, _) => Some(route),
        Access::Public(_)
        | Access::Local(..)
        | Access::Session(_)
        | Access::Link(_)
        | Access::Runner(_)
        | Access::Worker(_)
        | Access::Page(..)
        | Access::Action(..) => None,
    };
    match (place, name, user) {
        ("path", "job", Some(_)) => (
            "The job: its id, or at least four of its first or last digits.",
            word(),
        ),
        ("path", "job", None) => ("The id of the job.", word()),
        ("path", "workflow", _) => ("The workflow: its name, SOURCE/NAME, or id.", word()),
        ("path", "scan", _) => ("The name of the scan.", word()),
        ("path", "revision", _) => ("The number of the revision.", word()),
        ("path", "project", _) => ("The project: its name or id.", word()),
        ("path", "source", _) => ("The name of the source.", word()),
        ("path", "secret", None) => ("The secret of the link.", word()),
        ("path", "var" | "secret", _) => ("Its name.", word()),
        ("path", "artifact", _) => ("The artifact: its id or name.", word()),
        ("path", "token" | "runner", _) => ("Its id, or a name that only one has.", word()),
        ("path", "path", _) => (
            "The path of the blob. Its slashes stay as they are.",
            word(),
        ),
        ("path", "link", _) => ("The id of the link.", word()),
        ("path", "session", _) => ("The id of the session.", word()),
        (_, "limit", Some(UserRoute::ReadLog)) => ("At most so many records.", positive()),
        (_, "limit", Some(UserRoute::SearchLog)) => {
            ("At most so many matches.", count(SEARCH_PAGE))
        }
        (_, "limit", Some(UserRoute::ScanHistory)) => ("Items of a page.", count(HISTORY_PAGE)),
        (_, "limit", Some(UserRoute::ListEntries | UserRoute::DiffArtifact)) => {
            ("Items of a page.", count(ENTRIES_PAGE))
        }
        (_, "limit", _) => ("Items of a page.", count(PAGE)),
        (_, "cursor", _) => (
            "Where the page begins: `next_cursor` of the page before.",
            text(),
        ),
        (_, "wait", Some(UserRoute::ShowJob)) => (
            "Whether to hold the answer until the job is over, up to 50 s.",
            flag(),
        ),
        (_, "wait", _) => ("Whether to answer after the look.", flag()),
        (_, "from", Some(UserRoute::DiffRevision)) => (
            "The revision to compare with; the one before, if absent.",
            number(),
        ),
        (_, "from", _) => ("The number of the first record.", number()),
        (_, "tail", _) => (
            "The last so many records. Not together with `from`.",
            positive(),
        ),
        (_, "step", _) => (
            "Only records of this step, from 0.",
            json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        ),
        (_, "stream", _) => (
            "Only records of this stream.",
            one_of(&["stdout", "stderr", "runner"]),
        ),
        (_, "timestamps" | "follow" | "case", _) => {
            ("`true` or `false`; without a value `true`.", flag())
        }
        (_, "tokens", _) => ("Whether to revoke the token, too.", flag()),
        (_, "prefix", _) => ("Only paths that begin with this.", text()),
        (_, "delimiter", _) => (
            "`/` lists one folder; what is deeper is one prefix.",
            one_of(&["/"]),
        ),
        (_, "expires_in", _) => ("How long the blob is kept, as in 7d.", duration()),
        (_, "q", _) => (
            "The text to find.",
            json!({ "type": "string", "minLength": 1, "maxLength": SEARCHED_CHARS }),
        ),
        (_, "since" | "at", _) => ("At this time or later; with `at`, at this time.", time()),
        (_, "until", _) => ("Before this time.", time()),
        (_, "against", _) => ("The other job.", word()),
        (_, "id", _) => (
            "Only jobs whose id begins or ends with these digits, of those that are not over and the newest that are. It takes no other filter beside it.",
            json!({ "type": "string", "minLength": ID_PART_DIGITS }),
        ),
        (_, "state", Some(UserRoute::ListWorkflows)) => {
            ("The active workflows, or all.", one_of(&["active", "all"]))
        }
        (_, "state", _) => (
            "Only jobs in this state.",
            one_of(&StateKind::ALL.map(StateKind::name)),
        ),
        (_, "trigger", _) => (
            "Only jobs of this trigger.",
            one_of(&["dispatch", "cron", "expr"]),
        ),
        (_, "reason", _) => (
            "Only jobs with this code of a reason.",
            one_of(Reason::OF_JOBS),
        ),
        (_, "actor", _) => (
            "Only what was done with the token of this name or id.",
            text(),
        ),
        (_, "kind", _) => (
            "Only lines with an action of this kind.",
            one_of(AuditKind::NAMES),
        ),
        (_, _, _) => ("Only what is of this one, by name or id.", word()),
    }
}
