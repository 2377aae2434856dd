//! The query parameters of routes.

use model::callback::RequestType;
use model::limits::ID_PART_DIGITS;
use model::{AuditKind, Reason, StateKind};
use serde_json::{Value, json};

use crate::limits::{
    ENTRIES_PAGE, HISTORY_PAGE, INTERACTIONS_PAGE, PAGE, SEARCH_PAGE, SEARCHED_CHARS,
};

/// A duration as in `1h30m`. Zero and values above the maximum are refused as well.
pub(crate) const DURATION: &str = "^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$";

/// A query parameter, for readers of the OpenAPI document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) schema: fn() -> Value,
    /// Whether a request without it is refused.
    pub(crate) is_required: bool,
}

macro_rules! parameters {
    ($($id:ident $name:literal, $description:literal, $schema:expr;)*) => {
        $(pub(super) const $id: Parameter = Parameter {
            name: $name,
            description: $description,
            schema: || $schema,
            is_required: false,
        };)*
    };
}

parameters! {
    LIMIT "limit", "Items of a page.", count(PAGE);
    JOBS "limit", "Items of a page.", count(HISTORY_PAGE);
    ENTRIES "limit", "Items of a page.", count(ENTRIES_PAGE);
    INTERACTIONS "limit", "Items of a page.", count(INTERACTIONS_PAGE);
    MATCHES "limit", "The largest number of matches.", count(SEARCH_PAGE);
    RECORDS "limit", "The largest number of records.", positive();
    CURSOR "cursor", "Where the page begins: `next_cursor` of the page before.", text();
    SINCE "since", "At this time or later.", time();
    AT "at", "At this time.", time();
    UNTIL "until", "Before this time.", time();

    ID "id",
        "Only jobs whose id begins or ends with these digits, among unfinished and the newest finished jobs. Not together with other filters.",
        json!({ "type": "string", "minLength": ID_PART_DIGITS });
    PROJECT "project", "The project, by name or id.", word();
    WORKFLOW "workflow", "Only what belongs to this workflow, by name or id.", word();
    SCAN "scan", "Only what belongs to this scan, by name.", word();
    JOB "job", "Only what belongs to this job, by id.", word();
    RUNNER "runner", "Only jobs of this runner, by name or id.", word();
    WORKFLOW_STATE "state", "The active workflows, or all.", one_of(&["active", "all"]);
    JOB_STATE "state", "Only jobs in this state.", one_of(&StateKind::ALL.map(StateKind::name));
    TRIGGER "trigger", "Only jobs with this trigger.", one_of(&["dispatch", "cron", "expr"]);
    REASON "reason", "Only jobs whose reason has this code.", one_of(Reason::OF_JOBS);
    ACTOR "actor", "Only actions with the token of this name or id.", text();
    CHANNEL "channel", "Only what was sent to the channel of this name.", text();
    RULE "rule", "The rule to preview, as `project/name`.", text();
    CHANNEL_KIND "kind", "The kind of channel that the form adds.", text();
    KIND "kind", "Only lines with an action of this kind.", one_of(AuditKind::NAMES);

    WAIT_FOR_END "wait", "Whether to hold the answer until the job is over, up to 50 s.", flag();
    MESSAGES "messages", "Whether to show what was sent about the job; needs `notify:read`.", flag();
    WAIT_FOR_SYNC "wait", "Whether to answer after the sync.", flag();
    TOKENS "tokens", "Whether to revoke the token as well.", flag();
    FROM_REVISION "from", "The revision to compare with; the one before, if absent.", number();
    AGAINST_REVISION "against", "The revision to compare with; the one before, if absent.", number();
    OTHER_JOB "against", "The other job.", word();
    LIKE_JOB "job", "The job whose inputs fill the form.", word();

    FROM_RECORD "from", "The number of the first record.", number();
    TAIL "tail", "The number of records at the end of the log. Not together with `from`.", positive();
    STEP "step", "Only records of this step, from 0.", json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    STREAM "stream", "Only records of this stream.", one_of(&["stdout", "stderr", "runner"]);
    TIMESTAMPS "timestamps", "`true` or `false`; without a value `true`.", flag();
    FOLLOW "follow", "`true` or `false`; without a value `true`.", flag();
    CASE "case", "`true` or `false`; without a value `true`.", flag();
    SEARCHED "q", "The text to find.", json!({ "type": "string", "minLength": 1, "maxLength": SEARCHED_CHARS });

    PREFIX "prefix", "Only paths that begin with this.", text();
    DELIMITER "delimiter", "`/` lists one folder. Each folder in it is one prefix.", one_of(&["/"]);
    PATH "path", "The path of the blob.", word();
    EXPIRES_IN "expires_in", "How long the blob is kept, as in 7d.",
        json!({ "type": "string", "minLength": 2, "pattern": DURATION });

    TAG "tag", "Only interactions of this tag.", json!({ "type": "string", "pattern": "^[a-z2-7]{20}$" });
    TYPE "type", "Only interactions of this type.", one_of(&RequestType::ALL.map(RequestType::name));
    ADDRESS "address", "Only interactions of this sender, by address.", word();
    OF_PAYLOAD "payload", "Only interactions of rendered payloads: of a group, or of one as `GROUP/NAME`.", word();
    IN_RAW "text", "Only interactions whose raw request has this text, in any case of ASCII letters.",
        json!({ "type": "string", "minLength": 1, "maxLength": SEARCHED_CHARS });
    AFTER "after", "Lists interactions after this number, oldest first. Not together with `cursor`.", number();
    WAIT_FOR_HIT "wait", "With `after`: whether to hold the answer until there is one, up to 50 s.", flag();
    RAW "raw", "Whether to show raw requests.", flag();

    VERSION "version", "The version to read; without it, the newest.", positive();

    FOCUS "focus", "The scan whose neighbours the graph shows.", word();
    LANES "lanes", "The span of the lanes: `week`, or a day.", word();
    USER "user", "The owner of the tokens, or `all`. Without it, the own ones.", text();
    NEXT "next", "The page to show after the sign-in.", text();
    DEVICE_CODE "code", "The code that a device shows.", text();
}

pub(super) const AGAINST_JOB: Parameter = OTHER_JOB.required();
pub(super) const NEXT_RECORD: Parameter = FROM_RECORD.required();
pub(super) const TEXT: Parameter = SEARCHED.required();

impl Parameter {
    const fn required(self) -> Self {
        Self {
            is_required: true,
            ..self
        }
    }
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn word() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

fn number() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
}

fn positive() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": u64::MAX })
}

fn count(most: usize) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": most })
}

fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}
