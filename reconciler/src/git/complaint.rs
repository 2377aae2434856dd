//! Derives the reason of a failed fetch from the error output of `git` and its helpers.
//!
//! `LC_ALL=C` fixes their wording. An unknown message becomes a general failure that quotes it.

use super::{FetchError, Location, limits};

type Judge = fn(Location, String) -> FetchError;

/// Phrases in lower case. The first match wins. A refused key comes first, because `git` then also suggests that the
/// repository may not exist.
const PHRASES: [(Judge, &[&str]); 8] = [
    (
        |location, complaint| FetchError::UnknownHost {
            location,
            complaint,
        },
        &[
            "host key verification failed",
            "certificate problem",
            "ssl certificate",
            "certificate verification failed",
        ],
    ),
    (
        |location, complaint| FetchError::AccessDenied {
            location,
            complaint,
        },
        &[
            "authentication failed",
            "could not read username",
            "could not read password",
            "permission denied (",
            "access denied",
            "returned error: 401",
            "returned error: 403",
        ],
    ),
    (
        |location, complaint| FetchError::Redirected {
            location,
            complaint,
        },
        &["redirect", "returned error: 3"],
    ),
    (
        |location, complaint| FetchError::Unreachable {
            location,
            complaint,
        },
        &[
            "could not resolve",
            "couldn't connect",
            "could not connect",
            "failed to connect",
            "connection refused",
            "connection timed out",
            "connection reset",
            "connection closed",
            "network is unreachable",
            "no route to host",
            "operation too slow",
            "name or service not known",
            "temporary failure in name resolution",
            "returned error: 429",
            "returned error: 5",
        ],
    ),
    (
        |location, complaint| FetchError::NoSuchCommit {
            location,
            complaint,
        },
        &[
            "couldn't find remote ref",
            "not our ref",
            "unadvertised object",
        ],
    ),
    (
        |location, _| FetchError::RepositoryMissing { location },
        &[
            "not found",
            "does not exist",
            "does not appear to be a git repository",
            "returned error: 404",
        ],
    ),
    (
        |location, _| FetchError::Sha256 { location },
        &["mismatched algorithms"],
    ),
    (
        |location, _| FetchError::ForeignOwner { location },
        &["dubious ownership"],
    ),
];

pub(super) fn judge(location: Location, text: &str) -> FetchError {
    let complaint = last_failure(text);
    let lower = text.to_lowercase();
    let is_in_text = |phrase: &&str| lower.contains(phrase);
    let known = PHRASES
        .iter()
        .find(|(_, phrases)| phrases.iter().any(is_in_text));
    match known.map(|(judge, _)| judge(location.clone(), complaint.clone())) {
        Some(FetchError::ForeignOwner { location }) => FetchError::ForeignOwner {
            location: foreign(text).unwrap_or(location),
        },
        Some(error) => error,
        None => FetchError::GitFailed {
            location,
            complaint,
        },
    }
}

/// The folder that `git` does not trust. It must be named in `safe.directory`.
fn foreign(text: &str) -> Option<Location> {
    let (_, rest) = text.split_once("dubious ownership in repository at '")?;
    let (folder, _) = rest.split_once('\'')?;
    Some(Location::Local(folder.into()))
}

/// The last line that reports a failure, or else the last line, made printable.
pub(super) fn last_failure(text: &str) -> String {
    const STATES_A_FAILURE: [&str; 2] = ["fatal: ", "error: "];
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let without_prefix = |line: &'_ str| {
        STATES_A_FAILURE
            .iter()
            .find_map(|prefix| line.strip_prefix(prefix).map(str::to_owned))
    };
    lines()
        .rev()
        .find_map(without_prefix)
        .or_else(|| lines().next_back().map(str::to_owned))
        .unwrap_or_else(|| "it gave no reason".to_owned())
        .chars()
        .filter(|c| !c.is_control())
        .take(limits::COMPLAINT_CHARACTERS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_git_ssh_and_curl_show_the_cause() {
        let rights =
            "Please make sure you have the correct access rights\nand the repository exists.\n";
        for (text, expected) in [
            (
                format!("Host key verification failed.\nfatal: Could not read from remote repository.\n\n{rights}"),
                "UnknownHost",
            ),
            (
                format!("git@x: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\n{rights}"),
                "AccessDenied",
            ),
            (
                "fatal: could not read Username for 'https://x': terminal prompts disabled".to_owned(),
                "AccessDenied",
            ),
            (
                "fatal: unable to access 'https://x/': Could not resolve host: x".to_owned(),
                "Unreachable",
            ),
            (
                "ssh: connect to host x port 22: Connection refused\nfatal: Could not read from remote repository.".to_owned(),
                "Unreachable",
            ),
            (
                "fatal: unable to access 'https://x/': SSL certificate problem: unable to get local issuer certificate".to_owned(),
                "UnknownHost",
            ),
            (
                "remote: Repository not found.\nfatal: repository 'https://x/' not found".to_owned(),
                "RepositoryMissing",
            ),
            (
                "fatal: remote error: upload-pack: not our ref 0123".to_owned(),
                "NoSuchCommit",
            ),
            (
                "fatal: mismatched algorithms: client sha1; server sha256".to_owned(),
                "Sha256",
            ),
            (
                format!("fatal: detected dubious ownership in repository at '/x'\nfatal: Could not read from remote repository.\n\n{rights}"),
                "ForeignOwner",
            ),
            ("fatal: bad object refs/everscan/tip".to_owned(), "GitFailed"),
            (String::new(), "GitFailed"),
        ] {
            let error = judge(Location::Local("/r".into()), &text);
            assert!(format!("{error:?}").starts_with(expected), "{text}");
        }
    }

    #[test]
    fn the_folder_that_git_does_not_trust_is_named() {
        let text = "fatal: detected dubious ownership in repository at '/srv/r/.git'\nTo add\n";
        let location = Location::Local("/srv/r".into());
        let said = judge(location, text).to_string();
        assert_eq!(said, "the repository /srv/r/.git belongs to another user");
    }

    #[test]
    fn the_last_failure_is_quoted_on_one_bounded_line() {
        for (text, expected) in [
            (
                "error: first\nfatal: the \u{1b}[31mreason\nhint: more\n",
                "the [31mreason",
            ),
            ("only\nthis\n\n", "this"),
            ("", "it gave no reason"),
        ] {
            assert_eq!(last_failure(text), expected);
        }
        assert_eq!(
            last_failure(&"x".repeat(10_000)).chars().count(),
            limits::COMPLAINT_CHARACTERS
        );
    }
}
