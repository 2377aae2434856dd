//! What a check can find. Every code is stable, and `docs/fsck.md` explains each; a test compares the two.

use std::fmt;

use serde::{Serialize, Serializer};

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What kind of thing it is.
    pub code: Code,
    /// Where, below the state folder.
    pub path: String,
    /// What is wrong, in this case.
    pub what: String,
    /// What to do about it.
    pub hint: &'static str,
}

impl Finding {
    pub(crate) fn new(code: Code, path: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self {
            severity: code.severity(),
            code,
            path: path.to_string(),
            what: what.to_string(),
            hint: code.hint(),
        }
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something is lost, or would be answered wrongly.
    Error,
    /// Nothing is lost, and it should be put right.
    Warning,
    /// What a crash may leave. It harms nothing, and a state with nothing else is clean.
    Note,
}

impl Severity {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// What a finding with this code depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// One file, which is always replaced as a whole.
    Alone,
    /// Several files, which a daemon changes one after another.
    Together,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $text:literal $severity:ident $evidence:ident $hint:expr;)*) => {
        /// The kinds of findings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The stable name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// How bad it is.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$name => Severity::$severity,)*
                }
            }

            pub(crate) const fn evidence(self) -> Evidence {
                match self {
                    $(Self::$name => Evidence::$evidence,)*
                }
            }

            /// What to do about it.
            pub const fn hint(self) -> &'static str {
                match self {
                    $(Self::$name => $hint,)*
                }
            }
        }
    };
}

const RESTORE: &str =
    "bring the file back from a backup, or let `everscand fsck --repair` put it aside";
const BACKUP: &str = "bring the file back from a backup";
const REPAIR: &str = "`everscand fsck --repair` puts it right";
const ASIDE: &str = "`everscand fsck --repair` puts it aside";
const LOOK: &str = "look at the records it names; no tool can tell which of them is right";

codes! {
    /// A file or folder cannot be read at all.
    Unreadable "unreadable" Error Alone "look at the disk and at the rights of the file";
    /// `journal/CHECKPOINT` is missing or not as written.
    CheckpointDamaged "checkpoint_damaged" Error Alone
        "bring the file back from a backup, or let `everscand fsck --repair` write it anew from the rest";
    /// Acknowledged changes in the journal can no longer be read, or a backup lacks them.
    JournalDamaged "journal_damaged" Error Alone
        "restore a backup; without one, `everscand fsck --repair --accept-loss` keeps what is readable";
    /// A live index is not as written.
    IndexDamaged "index_damaged" Warning Alone REPAIR;
    /// A live index contradicts the records.
    IndexDiffers "index_differs" Warning Together REPAIR;
    /// An interrupted write has left a file.
    Leftover "leftover" Note Together ASIDE;
    /// A file that is not Everscan's.
    UnknownFile "unknown_file" Warning Alone ASIDE;
    /// Others than the owner may read or write it.
    Mode "mode" Warning Alone REPAIR;
    /// It belongs to another user than the state folder.
    Owner "owner" Warning Alone "give it to the owner of the state folder with `chown`";
    /// The file has a second name (a hard link), so a change through one name changes the other.
    Links "links" Warning Alone "replace it by a copy of itself, as `cp` makes one";
    /// A record that is not valid JSON, or not of its kind.
    RecordMalformed "record_malformed" Error Alone RESTORE;
    /// A record that was changed since it was written.
    RecordChecksum "record_checksum" Error Alone RESTORE;
    /// A record that a newer program wrote.
    RecordNewer "record_newer" Error Alone "use the newer program that wrote it";
    /// A record at another record's key.
    RecordMisplaced "record_misplaced" Error Alone RESTORE;
    /// A record of a commit that the journal does not have.
    RecordAhead "record_ahead" Error Together
        "a part of the folder is from another time than the rest: restore a whole backup";
    /// A record that says it is live although it is settled, or the reverse.
    RecordLive "record_live" Error Alone RESTORE;
    /// A missing record that other records name.
    RecordMissing "record_missing" Error Together
        "bring the file back from a backup; the head of a scan is counted anew by `everscand fsck --repair`";
    /// A job in a state that no job can reach.
    JobIllegal "job_illegal" Error Alone RESTORE;
    /// A secret that is not sealed as secrets are.
    SecretMalformed "secret_malformed" Error Alone
        "set the secret again with `everscan secret set`";
    /// A time in the future where only past times are possible.
    ClockAhead "clock_ahead" Warning Alone
        "look at the clock of this machine; the schedule waits until that time";
    /// A workflow text that is missing or not as its revision says.
    RevisionText "revision_text" Error Together "bring the file back from a backup, or from Git";
    /// A head whose counters differ from its history.
    HeadTotals "head_totals" Error Together REPAIR;
    /// A head that lacks the newest job of its history.
    HeadBehind "head_behind" Error Together REPAIR;
    /// A head whose newest successes differ from its history.
    HeadSuccesses "head_successes" Warning Together
        "none: the next two successes of the scan put it right; until then expressions may see older ones";
    /// A line of a history that cannot be read.
    HistoryLine "history_line" Error Together BACKUP;
    /// A page of a history that has lost its end.
    HistoryShort "history_short" Error Together
        "bring the page back from a backup; the daemon goes on with the next page by itself";
    /// A page of a history that goes on behind its end.
    HistoryLong "history_long" Warning Together "none: the next line is written over it";
    /// A job that a history has twice.
    HistoryTwice "history_twice" Error Together LOOK;
    /// A finished job that is not in the history of its scan.
    HistoryLacks "history_lacks" Warning Together LOOK;
    /// A finished job that contradicts its history.
    HistoryDiffers "history_differs" Error Together LOOK;
    /// A line of a ledger that cannot be read.
    LedgerLine "ledger_line" Error Together BACKUP;
    /// A page of a ledger that has lost its end.
    LedgerShort "ledger_short" Error Together
        "bring the page back from a backup; the daemon goes on with the next page by itself";
    /// A page of a ledger that goes on behind its end.
    LedgerLong "ledger_long" Warning Together "none: the next line is written over it";
    /// A log with another number of lines than its job says.
    LogCount "log_count" Error Together BACKUP;
    /// A line of a log that cannot be read, or has the wrong number.
    LogLine "log_line" Error Together BACKUP;
    /// A finished job's log is gone.
    LogMissing "log_missing" Warning Together "none, if you removed it; otherwise bring it back from a backup";
    /// An artifact that its job names is gone.
    ArtifactMissing "artifact_missing" Warning Together
        "none, if you removed it; otherwise bring it back from a backup";
    /// An artifact that is not as its job says.
    ArtifactDiffers "artifact_differs" Error Together RESTORE;
    /// The inputs that a job's record names are gone.
    InputsMissing "inputs_missing" Warning Together
        "none, if you removed them; otherwise bring the file back from a backup";
    /// The inputs of a job are not as its record says.
    InputsDiffer "inputs_differ" Error Together RESTORE;
    /// A retention record that has read beyond the end of its scan's history.
    RetentionDiffers "retention_differs" Error Together REPAIR;
    /// Counters that contradict the finished jobs that are there.
    KeptDiffers "kept_differs" Warning Together
        "`everscand fsck --repair` counts what is there; if you did not remove jobs by hand, first bring their folders back from a backup";
    /// A finished job with artifacts that expire, and no expiry record.
    ExpiryMissing "expiry_missing" Warning Together
        "none: the artifact is refused from then on, and its file stays until its job goes";
    /// An expiry record that contradicts its job.
    ExpiryStray "expiry_stray" Note Together ASIDE;
    /// A file that no record names.
    Orphan "orphan" Note Together ASIDE;
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
