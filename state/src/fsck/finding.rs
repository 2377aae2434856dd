//! What a check can find, and what a repair does about it. Every code is stable, and `docs/fsck.md` explains each; a test
//! compares the two.

use std::fmt;

use serde::{Serialize, Serializer};

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub severity: Severity,
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

/// What a repair does about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    SetAside,
    CloseToOthers,
    SetIndexAside,
    Recount,
    /// No program can know what is right.
    Nothing,
}

macro_rules! codes {
    ($($name:ident $text:literal $severity:ident $evidence:ident $remedy:ident $hint:expr;)*) => {
        /// The kinds of findings. `docs/fsck.md` has the meaning of each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($name,)*
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

            pub(crate) const fn remedy(self) -> Remedy {
                match self {
                    $(Self::$name => Remedy::$remedy,)*
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
    Unreadable "unreadable" Error Alone Nothing "look at the disk and at the rights of the file";
    CheckpointDamaged "checkpoint_damaged" Error Alone Nothing
        "bring the file back from a backup, or let `everscand fsck --repair` write it anew from the rest";
    JournalDamaged "journal_damaged" Error Alone Nothing
        "restore a backup; without one, `everscand fsck --repair --accept-loss` keeps what is readable";
    IndexDamaged "index_damaged" Warning Alone SetIndexAside REPAIR;
    IndexDiffers "index_differs" Warning Together SetIndexAside REPAIR;
    Leftover "leftover" Note Together SetAside ASIDE;
    UnknownFile "unknown_file" Warning Alone SetAside ASIDE;
    Mode "mode" Warning Alone CloseToOthers REPAIR;
    Owner "owner" Warning Alone Nothing "give it to the owner of the state folder with `chown`";
    Links "links" Warning Alone Nothing "replace it by a copy of itself, as `cp` makes one";
    RecordMalformed "record_malformed" Error Alone SetAside RESTORE;
    RecordChecksum "record_checksum" Error Alone SetAside RESTORE;
    RecordNewer "record_newer" Error Alone Nothing "use the newer program that wrote it";
    RecordMisplaced "record_misplaced" Error Alone SetAside RESTORE;
    RecordAhead "record_ahead" Error Together Nothing
        "a part of the folder is from another time than the rest: restore a whole backup";
    RecordLive "record_live" Error Alone SetAside RESTORE;
    RecordMissing "record_missing" Error Together Nothing
        "bring the file back from a backup; the head of a scan is counted anew by `everscand fsck --repair`";
    JobIllegal "job_illegal" Error Alone SetAside RESTORE;
    SecretMalformed "secret_malformed" Error Alone Nothing
        "set the secret again with `everscan secret set`";
    RevisionText "revision_text" Error Together Nothing "bring the file back from a backup, or from Git";
    HeadTotals "head_totals" Error Together Recount REPAIR;
    HeadBehind "head_behind" Error Together Recount REPAIR;
    HeadSuccesses "head_successes" Warning Together Nothing
        "none: the next two successes of the scan put it right; until then expressions may see older ones";
    HistoryLine "history_line" Error Together Nothing BACKUP;
    HistoryShort "history_short" Error Together Nothing
        "bring the page back from a backup; the daemon goes on with the next page by itself";
    HistoryLong "history_long" Warning Together Nothing "none: the next line is written over it";
    HistoryTwice "history_twice" Error Together Nothing LOOK;
    HistoryLacks "history_lacks" Warning Together Nothing LOOK;
    HistoryDiffers "history_differs" Error Together Nothing LOOK;
    LedgerLine "ledger_line" Error Together Nothing BACKUP;
    LedgerShort "ledger_short" Error Together Nothing
        "bring the page back from a backup; the daemon goes on with the next page by itself";
    LedgerLong "ledger_long" Warning Together Nothing "none: the next line is written over it";
    LogCount "log_count" Error Together Nothing BACKUP;
    LogLine "log_line" Error Together Nothing BACKUP;
    LogMissing "log_missing" Warning Together Nothing "none, if you removed it; otherwise bring it back from a backup";
    ArtifactMissing "artifact_missing" Warning Together Nothing
        "none, if you removed it; otherwise bring it back from a backup";
    ArtifactDiffers "artifact_differs" Error Together SetAside RESTORE;
    BlobMissing "blob_missing" Error Together Nothing
        "bring the file back from a backup, or store the blob again";
    BlobDiffers "blob_differs" Error Together SetAside RESTORE;
    InputsMissing "inputs_missing" Warning Together Nothing
        "none, if you removed them; otherwise bring the file back from a backup";
    InputsDiffer "inputs_differ" Error Together SetAside RESTORE;
    RetentionDiffers "retention_differs" Error Together Recount REPAIR;
    KeptDiffers "kept_differs" Warning Together Recount
        "`everscand fsck --repair` counts what is there; if you did not remove jobs by hand, first bring their folders back from a backup";
    ExpiryMissing "expiry_missing" Warning Together Nothing
        "none: the artifact is refused from then on, and its file stays until its job goes";
    ExpiryStray "expiry_stray" Note Together SetAside ASIDE;
    Orphan "orphan" Note Together SetAside ASIDE;
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
