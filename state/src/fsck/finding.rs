//! The findings of a check, and what a repair does about each. Codes are stable. `docs/fsck.md` explains each code; a
//! test compares the two.

use std::fmt;

use serde::{Serialize, Serializer};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub severity: Severity,
    pub code: Code,
    /// The path relative to the state folder.
    pub path: String,
    /// What is wrong with this file.
    pub what: String,
    /// What a person can do about it.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Data is lost, or the daemon would return wrong data.
    Error,
    /// Nothing is lost, but a person should correct it.
    Warning,
    /// A crash may leave this. It is harmless, and a state with only notes is clean.
    Note,
}

impl Severity {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// The files on which a finding depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// One file, which is always replaced as a whole.
    OneFile,
    /// Several files, which a daemon changes one after another.
    SeveralFiles,
}

/// What a repair does about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    SetAside,
    CloseToOthers,
    SetIndexAside,
    Recount,
    /// No program can know the right content.
    Nothing,
}

macro_rules! codes {
    ($($name:ident $text:literal $severity:ident $evidence:ident $remedy:ident $hint:expr;)*) => {
        /// The kinds of findings, as `docs/fsck.md` explains them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($name,)*
        }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

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
const REPAIR: &str = "`everscand fsck --repair` corrects it";
const ASIDE: &str = "`everscand fsck --repair` puts it aside";
const LOOK: &str = "compare the named records; no program can know which of them is right";

codes! {
    Unreadable "unreadable" Error OneFile Nothing "check the disk and the permissions of the file";
    CheckpointDamaged "checkpoint_damaged" Error OneFile Nothing
        "bring the file back from a backup, or let `everscand fsck --repair` rebuild it from the rest";
    JournalDamaged "journal_damaged" Error OneFile Nothing
        "restore a backup; without one, `everscand fsck --repair --accept-loss` keeps what is readable";
    IndexDamaged "index_damaged" Warning OneFile SetIndexAside REPAIR;
    IndexDiffers "index_differs" Warning SeveralFiles SetIndexAside REPAIR;
    Leftover "leftover" Note SeveralFiles SetAside ASIDE;
    UnknownFile "unknown_file" Warning OneFile SetAside ASIDE;
    Mode "mode" Warning OneFile CloseToOthers REPAIR;
    Owner "owner" Warning OneFile Nothing "give it to the owner of the state folder with `chown`";
    Links "links" Warning OneFile Nothing "replace it by a copy of itself, as `cp` makes one";
    RecordMalformed "record_malformed" Error OneFile SetAside RESTORE;
    RecordChecksum "record_checksum" Error OneFile SetAside RESTORE;
    RecordNewer "record_newer" Error OneFile Nothing "use the newer program that wrote it";
    RecordMisplaced "record_misplaced" Error OneFile SetAside RESTORE;
    RecordAhead "record_ahead" Error SeveralFiles Nothing
        "a part of the folder is from another time than the rest: restore a whole backup";
    RecordLive "record_live" Error OneFile SetAside RESTORE;
    RecordMissing "record_missing" Error SeveralFiles Nothing
        "bring the file back from a backup; the head of a scan is counted again by `everscand fsck --repair`";
    JobIllegal "job_illegal" Error OneFile SetAside RESTORE;
    SecretMalformed "secret_malformed" Error OneFile Nothing
        "set the secret again with `everscan secret set`";
    RevisionText "revision_text" Error SeveralFiles Nothing "bring the file back from a backup, or from Git";
    HeadTotals "head_totals" Error SeveralFiles Recount REPAIR;
    HeadBehind "head_behind" Error SeveralFiles Recount REPAIR;
    HeadSuccesses "head_successes" Warning SeveralFiles Nothing
        "none: the next two successes of the scan correct it; until then expressions may see older successes";
    HistoryLine "history_line" Error SeveralFiles Nothing BACKUP;
    HistoryShort "history_short" Error SeveralFiles Nothing
        "bring the page back from a backup; the daemon continues with the next page";
    HistoryLong "history_long" Warning SeveralFiles Nothing "none: the next line is written over it";
    HistoryTwice "history_twice" Error SeveralFiles Nothing LOOK;
    HistoryLacks "history_lacks" Warning SeveralFiles Nothing LOOK;
    HistoryDiffers "history_differs" Error SeveralFiles Nothing LOOK;
    LedgerLine "ledger_line" Error SeveralFiles Nothing BACKUP;
    LedgerShort "ledger_short" Error SeveralFiles Nothing
        "bring the page back from a backup; the daemon continues with the next page";
    LedgerLong "ledger_long" Warning SeveralFiles Nothing "none: the next line is written over it";
    LogCount "log_count" Error SeveralFiles Nothing BACKUP;
    LogLine "log_line" Error SeveralFiles Nothing BACKUP;
    LogMissing "log_missing" Warning SeveralFiles Nothing "none, if you removed it; otherwise bring it back from a backup";
    ArtifactMissing "artifact_missing" Warning SeveralFiles Nothing
        "none, if you removed it; otherwise bring it back from a backup";
    ArtifactDiffers "artifact_differs" Error SeveralFiles SetAside RESTORE;
    BlobMissing "blob_missing" Error SeveralFiles Nothing
        "bring the file back from a backup, or store the blob again";
    BlobDiffers "blob_differs" Error SeveralFiles SetAside RESTORE;
    InputsMissing "inputs_missing" Warning SeveralFiles Nothing
        "none, if you removed them; otherwise bring the file back from a backup";
    InputsDiffer "inputs_differ" Error SeveralFiles SetAside RESTORE;
    RetentionDiffers "retention_differs" Error SeveralFiles Recount REPAIR;
    KeptDiffers "kept_differs" Warning SeveralFiles Recount
        "`everscand fsck --repair` counts the existing jobs; if you did not remove jobs by hand, first bring their folders back from a backup";
    ExpiryMissing "expiry_missing" Warning SeveralFiles Nothing
        "none: the artifact is refused once it expires, and its file stays until its job is removed";
    ExpiryStray "expiry_stray" Note SeveralFiles SetAside ASIDE;
    Orphan "orphan" Note SeveralFiles SetAside ASIDE;
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
