//! The codes of the problems of a workflow file. `docs/diagnostics.md` has an entry for each code.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    (leaves_unread) => {
        true
    };
    (leaves_unread read) => {
        false
    };
    ($($(#[$doc:meta])* $name:ident $text:literal $(was $older:literal)? $(, $read:ident)?;)*) => {
        /// The kinds of problems. Names are stable: programs may match on them, and records of the state hold them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $text $(, alias = $older)?)] $name,)*
        }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The stable name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Whether an error of this kind may hide a part of the file, for example below a misspelled key or in an expression
            /// that cannot be parsed. The hidden part may use names that the file declares.
            pub(crate) const fn leaves_unread(self) -> bool {
                match self {
                    $(Self::$name => codes!(leaves_unread $($read)?),)*
                }
            }
        }
    };
}

// `read`: an error of this kind refuses a value that was read completely, and hides nothing.
codes! {
    FileTooLarge "file-too-large";
    /// The file has more values, or more text of expressions, than allowed.
    FileTooComplex "file-too-complex";
    /// The file cannot be read as text.
    UnreadableFile "unreadable-file";
    Syntax "syntax";
    /// YAML that workflow files do not use: several documents, tags, keys that are not text.
    UnsupportedYaml "unsupported-yaml";
    TooDeep "too-deep";
    /// Aliases expand to too much.
    AliasBudget "alias-budget";
    DuplicateKey "duplicate-key";
    /// A key that workflow files do not have.
    UnknownKey "unknown-key";
    /// A key that was replaced by another key.
    ReplacedKey "replaced-key";
    MissingKey "missing-key";
    WrongType "wrong-type";
    NullValue "null-value";
    /// An object or list that must have an entry but is empty.
    Empty "empty";
    /// A value outside its bounds or choices.
    InvalidValue "invalid-value", read;
    /// A key that is accepted but has no effect yet.
    NoEffect "no-effect", read;
    TooMany "too-many";
    InvalidName "invalid-name", read;
    DuplicateName "duplicate-name", read;
    /// A legal name that expressions cannot write with a dot.
    AwkwardName "awkward-name", read;
    /// A scan without a trigger.
    NoTrigger "no-trigger", read;
    /// A scan whose expression names only the scan itself.
    ReadsOnlyItself "reads-only-itself", read;
    /// A scan that waits for scans that never start by themselves.
    NeverStarts "never-starts", read;
    /// Scans that start each other forever.
    EndlessCycle "endless-cycle", read;
    /// A method for other scans, called on the scan itself.
    OwnScan "own-scan", read;
    /// An `on.expr` that reads failures but is not evaluated after one.
    UnseenFailure "unseen-failure", read;
    /// A required input on a scan that also starts by itself.
    RequiredInput "required-input", read;
    /// An input that is not read in its scan.
    UnusedInput "unused-input", read;
    InvalidCron "invalid-cron", read;
    CronNeverFires "cron-never-fires", read;
    /// A schedule that cron reads differently.
    DiffersFromCron "differs-from-cron", read;
    UnknownTimezone "unknown-timezone", read;
    InvalidDuration "invalid-duration", read;
    /// A `shell` that cannot be split into words.
    InvalidShell "invalid-shell", read;
    /// A script whose first line names a program that does not run it.
    IgnoredShebang "ignored-shebang", read;
    /// A variable or template where nothing is replaced.
    NotExpanded "not-expanded", read;
    /// A path that leaves the job's folder or is impossible inside it.
    InvalidPath "invalid-path", read;
    /// An artifact that is stored although the step that makes it may be skipped.
    ArtifactCondition "artifact-condition", read;
    ExpressionSyntax "expression-syntax";
    /// An expression that is too long, deep or large.
    ExpressionTooLarge "expression-too-large";
    /// An expression whose evaluation could take too long.
    ExpressionTooCostly "expression-too-costly";
    /// A name that does not exist.
    UnknownName "unknown-name" was "unknown-reference";
    /// A name that exists, but not at this place.
    UnavailableName "unavailable-name";
    /// A secret in `on.expr`.
    SecretInTrigger "secret-in-trigger";
    UnknownScan "unknown-scan";
    UnknownInput "unknown-input";
    /// A step that the scan does not have, or that runs later.
    UnknownStep "unknown-step";
    UnknownArtifact "unknown-artifact";
    UnknownMember "unknown-member";
    /// A function that does not exist, or that takes other arguments.
    UnknownFunction "unknown-function";
    /// A name with a `-`, which subtracts.
    HyphenatedName "hyphenated-name";
    /// A computed name of a var, secret, input or scan.
    DynamicName "dynamic-name";
    ExpressionType "expression-type";
    /// A boolean that is compared with a text.
    BooleanAsText "boolean-as-text", read;
    /// A condition that can be neither true nor false.
    ConditionNotBoolean "condition-not-boolean";
    /// A pattern that is not a regular expression.
    InvalidPattern "invalid-pattern";
    UnclosedTemplate "unclosed-template";
    /// Free text or a var pasted into a script.
    TaintedScript "tainted-script", read;
    /// The expression engine could not be started.
    EngineUnavailable "engine-unavailable";
    /// There are more problems than the report can have.
    MoreProblems "more-problems";
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn a_record_of_an_older_release_is_still_read() {
        let code: Code = serde_json::from_str("\"unknown-reference\"").unwrap();
        assert_eq!(code, Code::UnknownName);
    }

    #[test]
    fn records_and_people_see_the_same_name() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.name());
        }
    }
}
