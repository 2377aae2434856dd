//! The kinds of problems a workflow file can have. `docs/diagnostics.md` has an entry for each.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $text:literal $(was $older:literal)?;)*) => {
        /// The kinds of problems. Names are stable: programs may match on them, and records of the state hold them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $text $(, alias = $older)?)] $name,)*
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
        }
    };
}

codes! {
    /// The file is larger than allowed.
    FileTooLarge "file-too-large";
    /// The file has more values, or more text of expressions, than allowed.
    FileTooComplex "file-too-complex";
    /// The file cannot be read as text.
    UnreadableFile "unreadable-file";
    /// The text is not YAML.
    Syntax "syntax";
    /// YAML that workflow files do not use: several documents, tags, keys that are not text.
    UnsupportedYaml "unsupported-yaml";
    /// Nested too deeply.
    TooDeep "too-deep";
    /// Aliases expand to too much.
    AliasBudget "alias-budget";
    /// A key twice in one object.
    DuplicateKey "duplicate-key";
    /// A key that workflow files do not have.
    UnknownKey "unknown-key";
    /// A key that was replaced by another one.
    ReplacedKey "replaced-key";
    /// A key that must be there is not.
    MissingKey "missing-key";
    /// A value of the wrong type.
    WrongType "wrong-type";
    /// A key without a value.
    NullValue "null-value";
    /// An object or list that needs an entry has none.
    Empty "empty";
    /// A value outside its bounds or choices.
    InvalidValue "invalid-value";
    /// A key that is accepted and has no effect yet.
    NoEffect "no-effect";
    /// More entries than allowed.
    TooMany "too-many";
    /// A name that breaks its rule.
    InvalidName "invalid-name";
    /// A name used twice.
    DuplicateName "duplicate-name";
    /// A legal name that expressions cannot write with a dot.
    AwkwardName "awkward-name";
    /// A scan that nothing starts.
    NoTrigger "no-trigger";
    /// A scan whose expression waits for nothing but the scan itself.
    ReadsOnlyItself "reads-only-itself";
    /// A scan that waits for scans that never start by themselves.
    NeverStarts "never-starts";
    /// Scans that start each other for ever.
    EndlessCycle "endless-cycle";
    /// A question about another scan that is put to the scan itself.
    OwnScan "own-scan";
    /// An `on.expr` that asks for a failure and is not looked at when there is one.
    UnseenFailure "unseen-failure";
    /// A required input on a scan that also starts by itself.
    RequiredInput "required-input";
    /// An input that nothing in its scan reads.
    UnusedInput "unused-input";
    /// A cron schedule that cannot be read.
    InvalidCron "invalid-cron";
    /// A cron schedule that is never due.
    CronNeverFires "cron-never-fires";
    /// A time zone that does not exist.
    UnknownTimezone "unknown-timezone";
    /// A duration that cannot be read.
    InvalidDuration "invalid-duration";
    /// A `shell` that cannot be split into words.
    InvalidShell "invalid-shell";
    /// A path that leaves the job's folder or is not possible in it.
    InvalidPath "invalid-path";
    /// An artifact that is stored even if the step that makes it was skipped.
    ArtifactCondition "artifact-condition";
    /// An expression that is not valid CEL.
    ExpressionSyntax "expression-syntax";
    /// An expression that is too long, deep or large.
    ExpressionTooLarge "expression-too-large";
    /// An expression whose evaluation could take too long.
    ExpressionTooCostly "expression-too-costly";
    /// A name that does not exist.
    UnknownName "unknown-name" was "unknown-reference";
    /// A name that exists, but not where it is used.
    UnavailableName "unavailable-name";
    /// A secret in `on.expr`.
    SecretInTrigger "secret-in-trigger";
    /// A scan that the workflow does not have.
    UnknownScan "unknown-scan";
    /// An input that the scan does not declare.
    UnknownInput "unknown-input";
    /// A step that the scan does not have, or that runs later.
    UnknownStep "unknown-step";
    /// An artifact that the scan does not declare.
    UnknownArtifact "unknown-artifact";
    /// A member that a value does not have.
    UnknownMember "unknown-member";
    /// A function that does not exist, or that takes other arguments.
    UnknownFunction "unknown-function";
    /// A name with a `-`, which subtracts.
    HyphenatedName "hyphenated-name";
    /// A computed member of vars, secrets, inputs or scans.
    DynamicName "dynamic-name";
    /// Operands or results of the wrong type.
    ExpressionType "expression-type";
    /// A condition that can be neither true nor false.
    ConditionNotBoolean "condition-not-boolean";
    /// A pattern that is not a regular expression.
    InvalidPattern "invalid-pattern";
    /// A `${{` without an end.
    UnclosedTemplate "unclosed-template";
    /// Free text pasted into a script.
    TaintedScript "tainted-script";
    /// The expression engine could not be started.
    EngineUnavailable "engine-unavailable";
    /// More problems than are reported.
    MoreProblems "more-problems";
}

impl Code {
    /// Whether an error of this kind may hide a part of the file, such as an expression that cannot be parsed or a
    /// misspelled key. The hidden part may use what the file declares.
    pub(crate) const fn leaves_unread(self) -> bool {
        match self {
            // The part was read; only its value is refused.
            Self::InvalidValue
            | Self::NoEffect
            | Self::InvalidName
            | Self::DuplicateName
            | Self::AwkwardName
            | Self::NoTrigger
            | Self::ReadsOnlyItself
            | Self::NeverStarts
            | Self::EndlessCycle
            | Self::OwnScan
            | Self::UnseenFailure
            | Self::RequiredInput
            | Self::UnusedInput
            | Self::InvalidCron
            | Self::CronNeverFires
            | Self::UnknownTimezone
            | Self::InvalidDuration
            | Self::InvalidShell
            | Self::InvalidPath
            | Self::ArtifactCondition
            | Self::TaintedScript => false,
            Self::FileTooLarge
            | Self::FileTooComplex
            | Self::UnreadableFile
            | Self::Syntax
            | Self::UnsupportedYaml
            | Self::TooDeep
            | Self::AliasBudget
            | Self::DuplicateKey
            | Self::UnknownKey
            | Self::ReplacedKey
            | Self::MissingKey
            | Self::WrongType
            | Self::NullValue
            | Self::Empty
            | Self::TooMany
            | Self::ExpressionSyntax
            | Self::ExpressionTooLarge
            | Self::ExpressionTooCostly
            | Self::UnknownName
            | Self::UnavailableName
            | Self::SecretInTrigger
            | Self::UnknownScan
            | Self::UnknownInput
            | Self::UnknownStep
            | Self::UnknownArtifact
            | Self::UnknownMember
            | Self::UnknownFunction
            | Self::HyphenatedName
            | Self::DynamicName
            | Self::ExpressionType
            | Self::ConditionNotBoolean
            | Self::InvalidPattern
            | Self::UnclosedTemplate
            | Self::EngineUnavailable
            | Self::MoreProblems => true,
        }
    }
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
