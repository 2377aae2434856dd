//! The addresses of pages and actions. Names are percent-encoded, so that each name is one segment. The name of a workflow and
//! the path of a blob have one for each of their parts, because many proxies refuse an encoded slash.
//!
//! Addresses begin at the root of the host. [`below`] moves those of a whole page.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use uuid::Uuid;
use wire::WorkflowRef;

/// The characters to encode in a path segment and in a query value.
pub(crate) const IN_A_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

pub const OVERVIEW: &str = "/";
pub const LOGIN: &str = "/login";
pub const LOGOUT: &str = "/logout";
/// Confirms the sign-in of a device.
pub const DEVICE: &str = "/device";
pub const WORKFLOWS: &str = "/workflows";
pub const JOBS: &str = "/jobs";
pub const RUNNERS: &str = "/runners";
pub const REGISTRATIONS: &str = "/runners/registrations";
pub const SOURCES: &str = "/sources";
pub const ARTIFACTS: &str = "/artifacts";
pub const BLOBS: &str = "/blobs";
pub const PROJECTS: &str = "/projects";
pub const NOTIFICATIONS: &str = "/notifications";
pub const CHANNELS: &str = "/notifications/channels";
pub const RULES: &str = "/notifications/rules";
pub const TOKENS: &str = "/tokens";
pub const AUDIT: &str = "/audit";
pub const SETTINGS: &str = "/settings";
pub const PASSWORD: &str = "/settings/password";
pub const USERS: &str = "/users";
pub const ABOUT: &str = "/about";
/// The stream of changed topics: server-sent events named `changed`, whose data is a JSON array of topics.
pub const LIVE: &str = "/live";

/// Encodes a name as one segment. Dots alone would be a relative path.
fn segment(name: &str) -> String {
    if !name.is_empty() && name.bytes().all(|byte| byte == b'.') {
        return "%2E".repeat(name.len());
    }
    utf8_percent_encode(name, IN_A_SEGMENT).to_string()
}

/// Adds the parameters that have a value.
pub fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut address = path.to_owned();
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    for (place, (name, value)) in given.enumerate() {
        address.push(if place == 0 { '?' } else { '&' });
        address.push_str(name);
        address.push('=');
        address.push_str(&segment(value));
    }
    address
}

/// As `source/name`.
pub fn workflow_name(workflow: &WorkflowRef) -> String {
    format!("{}/{}", workflow.source, workflow.name)
}

/// Encodes the parts of a name.
fn parts(name: &str) -> String {
    name.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// `name` is `source/name`.
pub fn workflow(name: &str) -> String {
    with_end_of_name(format!("{WORKFLOWS}/{}", parts(name)))
}

/// The last `-` of an address ends the name of a workflow, so a name with such a part is ended by one.
fn with_end_of_name(address: String) -> String {
    match address.contains("/-/") || address.ends_with("/-") {
        true => format!("{address}/-/"),
        false => address,
    }
}

/// What begins the addresses of everything that a workflow has.
pub fn below_workflow(name: &str) -> String {
    format!("{WORKFLOWS}/{}/-", parts(name))
}

/// The page of a workflow with the graph of one scan and its neighbours.
pub fn graph_of_scan(workflow_name: &str, scan: &str) -> String {
    with_query(&workflow(workflow_name), &[("focus", scan)]) + "#graph"
}

pub fn revisions(workflow_name: &str) -> String {
    format!("{}/revisions", below_workflow(workflow_name))
}

pub fn revision(workflow_name: &str, number: u64) -> String {
    format!("{}/{number}", revisions(workflow_name))
}

pub fn scan(workflow_name: &str, scan: &str) -> String {
    let workflow = below_workflow(workflow_name);
    format!("{workflow}/scans/{}", segment(scan))
}

pub fn dispatch(workflow_name: &str, scan_name: &str) -> String {
    format!("{}/dispatch", scan(workflow_name, scan_name))
}

/// The action that suspends a scan, or a workflow. `part` is the address of the scan, or begins those of the workflow.
pub fn suspend(part: &str) -> String {
    format!("{part}/suspend")
}

pub fn resume(part: &str) -> String {
    format!("{part}/resume")
}

pub fn job(id: Uuid) -> String {
    format!("{JOBS}/{id}")
}

fn below_job(id: Uuid, what: &str) -> String {
    format!("{JOBS}/{id}/{what}")
}

pub fn cancel_job(id: Uuid) -> String {
    below_job(id, "cancel")
}

pub fn rerun_job(id: Uuid) -> String {
    below_job(id, "rerun")
}

pub fn delete_job(id: Uuid) -> String {
    below_job(id, "delete")
}

pub fn job_context(id: Uuid) -> String {
    below_job(id, "context")
}

/// The log as pages that need no script.
pub fn job_log(id: Uuid) -> String {
    below_job(id, "log")
}

pub fn raw_log(id: Uuid) -> String {
    below_job(id, "log/raw")
}

/// Records as JSON lines, for the virtual log. The parameters are `from`, `limit`, `step` and `stream`, as in `/v0`;
/// `limit` counts the records in the answer.
pub fn log_records(id: Uuid) -> String {
    below_job(id, "log/records")
}

/// Matches as JSON of `wire::LogMatches`, for the virtual log. The parameters are `q`, `limit` and `cursor`.
pub fn log_search(id: Uuid) -> String {
    below_job(id, "log/search")
}

/// The download of an artifact.
pub fn artifact(job: Uuid, name: &str) -> String {
    format!("{JOBS}/{job}/artifacts/{}", segment(name))
}

pub fn artifact_entries(job: Uuid, name: &str) -> String {
    format!("{}/entries", artifact(job, name))
}

pub fn artifact_diff(job: Uuid, name: &str, against: &str) -> String {
    let path = format!("{}/diff", artifact(job, name));
    with_query(&path, &[("against", against)])
}

pub fn delete_artifact(job: Uuid, name: &str) -> String {
    format!("{}/delete", artifact(job, name))
}

pub fn acknowledge(condition: Uuid) -> String {
    format!("/conditions/{condition}/acknowledge")
}

pub fn silence(condition: Uuid) -> String {
    format!("/conditions/{condition}/silence")
}

/// What a form does with a channel: `test`, `retry` or `delete`. Without a project, the channel belongs to the instance.
pub fn channel(project: Option<&str>, name: &str, action: &str) -> String {
    below_owned(CHANNELS, project, name, action)
}

pub fn delete_rule(project: Option<&str>, name: &str) -> String {
    below_owned(RULES, project, name, "delete")
}

fn below_owned(path: &str, project: Option<&str>, name: &str, action: &str) -> String {
    let path = format!("{path}/{}/{action}", segment(name));
    with_query(&path, &[("project", project.unwrap_or_default())])
}

pub fn runner(id: Uuid) -> String {
    format!("{RUNNERS}/{id}")
}

pub fn limit_runner(id: Uuid) -> String {
    format!("{RUNNERS}/{id}/limit")
}

pub fn remove_runner(id: Uuid) -> String {
    format!("{RUNNERS}/{id}/remove")
}

pub fn source(name: &str) -> String {
    format!("{SOURCES}/{}", segment(name))
}

pub fn sync_source(name: &str) -> String {
    format!("{}/sync", source(name))
}

pub fn approve_source(name: &str) -> String {
    format!("{}/approve", source(name))
}

/// `prefix` is empty or ends with a slash.
pub fn blob_folder(project: &str, prefix: &str) -> String {
    with_query(BLOBS, &[("project", project), ("prefix", prefix)])
}

/// The download of a blob.
pub fn blob(project: &str, path: &str) -> String {
    with_query(&blob_path(path), &[("project", project)])
}

/// A blob, or what begins the addresses of those in a folder. A slash in a name is `%2F` in the path, and `%252F` in the
/// address.
pub(crate) fn blob_path(path: &str) -> String {
    format!("{BLOBS}/{}", parts(path))
}

/// The whole path of the blob is one parameter, because it can have any number of segments.
pub fn delete_blob(project: &str, path: &str) -> String {
    with_query("/blob-deletions", &[("project", project), ("path", path)])
}

pub fn project(name: &str) -> String {
    format!("{PROJECTS}/{}", segment(name))
}

pub fn callback(id: &str) -> String {
    format!("/callbacks/{}", segment(id))
}

pub fn create_callback(project_name: &str) -> String {
    format!("{}/callbacks", project(project_name))
}

pub fn delete_callback(id: &str) -> String {
    format!("{}/delete", callback(id))
}

pub fn callback_rules(id: &str) -> String {
    format!("{}/rules", callback(id))
}

pub fn callback_tokens(id: &str) -> String {
    format!("{}/tokens", callback(id))
}

pub fn end_callback_token(id: &str, tag: &str) -> String {
    format!("{}/{}/end", callback_tokens(id), segment(tag))
}

pub fn interaction(callback: &str, number: u64) -> String {
    format!("{}/{number}", self::callback(callback))
}

pub fn payload_group(id: Uuid) -> String {
    format!("/payload-groups/{id}")
}

/// A version of a payload, or the newest.
pub fn payload(group: Uuid, name: &str, version: Option<u64>) -> String {
    let path = format!("{}/{}", payload_group(group), segment(name));
    match version {
        Some(version) => with_query(&path, &[("version", &version.to_string())]),
        None => path,
    }
}

pub fn delete_payload(group: Uuid, name: &str) -> String {
    format!("{}/delete", payload(group, name, None))
}

pub fn vars(project_name: &str) -> String {
    format!("{}/vars", project(project_name))
}

pub fn delete_var(project_name: &str, name: &str) -> String {
    format!("{}/{}/delete", vars(project_name), segment(name))
}

pub fn secrets(project_name: &str) -> String {
    format!("{}/secrets", project(project_name))
}

pub fn delete_secret(project_name: &str, name: &str) -> String {
    format!("{}/{}/delete", secrets(project_name), segment(name))
}

pub fn members(project_name: &str) -> String {
    format!("{}/members", project(project_name))
}

pub fn remove_member(project_name: &str, user: &str) -> String {
    format!("{}/{}/remove", members(project_name), segment(user))
}

/// The page of a user, and the action that changes the user.
pub fn user(name: &str) -> String {
    format!("{USERS}/{}", segment(name))
}

/// Makes a link with which the user sets a password.
pub fn user_link(name: &str) -> String {
    format!("{}/link", user(name))
}

pub fn delete_user(name: &str) -> String {
    format!("{}/delete", user(name))
}

pub fn tokens_of(user: &str) -> String {
    with_query(TOKENS, &[("user", user)])
}

pub fn regenerate_token(id: Uuid) -> String {
    format!("{TOKENS}/{id}/regenerate")
}

pub fn move_token(id: Uuid) -> String {
    format!("{TOKENS}/{id}/move")
}

pub fn revoke_token(id: Uuid) -> String {
    format!("{TOKENS}/{id}/revoke")
}

pub fn end_session(id: Uuid) -> String {
    format!("{SETTINGS}/sessions/{id}/end")
}

/// Ends all sessions of the viewer.
pub const END_SESSIONS: &str = "/settings/sessions/end";

/// The path, if it leads to a page of this daemon, and not to another host or out of the path below which the daemon is.
pub fn local(path: &str) -> Option<&str> {
    let is_plain = |byte: u8| (0x21..0x7f).contains(&byte) && byte != b'\\';
    // Browsers read `%2e` as a dot, and leave out `.` and `..` with the part before it.
    let is_dots = |part: &str| matches!(&*part.replace("%2e", ".").replace("%2E", "."), "." | "..");
    let mut parts = path.split(['?', '#']).next()?.split('/');
    let begins_here = path.starts_with('/') && !path.starts_with("//");
    (begins_here && path.bytes().all(is_plain) && !parts.any(is_dots)).then_some(path)
}

/// The address of a page that had another one, in which the slashes in names were `%2F`.
pub fn present(former: &str) -> Option<String> {
    let plain = former.replace("%2f", "%2F");
    if let Some(below) = plain.strip_prefix("/workflows/") {
        let (name, rest) = below.split_once('/').unzip();
        let name = name.unwrap_or(below);
        let present = format!("{WORKFLOWS}/{}", name.replace("%2F", "/"));
        return name.contains("%2F").then(|| match rest {
            Some(rest) => format!("{present}/-/{rest}"),
            None => with_end_of_name(present),
        });
    }
    let is_it = plain.starts_with("/blobs/") && plain.contains("%2F");
    is_it.then(|| plain.replace("%2F", "%252F"))
}

/// The attributes that hold addresses of this daemon.
pub const ATTRIBUTES: [&str; 8] = [
    "href",
    "action",
    "src",
    "data-base",
    "data-log",
    "data-search",
    "data-stream",
    "data-upload",
];

/// Moves the addresses of a page below `base`, which is empty or as `/everscan`. Quotes in texts and values are escaped, so
/// only attributes are found.
pub fn below(base: &str, page: String) -> String {
    if base.is_empty() {
        return page;
    }
    ATTRIBUTES.iter().fold(page, |page, name| {
        page.replace(&format!(" {name}=\"/"), &format!(" {name}=\"{base}/"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_and_their_slashes_stay() {
        assert_eq!(
            scan("infra/deep/a b", "x?#\"<é"),
            "/workflows/infra/deep/a%20b/-/scans/x%3F%23%22%3C%C3%A9"
        );
        assert_eq!(workflow("infra/a"), "/workflows/infra/a");
        assert_eq!(workflow("s/a/-/scans"), "/workflows/s/a/-/scans/-/");
        assert_eq!(workflow("s/-"), "/workflows/s/-/-/");
        assert_eq!(source(".."), "/sources/%2E%2E");
    }

    #[test]
    fn empty_parameters_are_left_out() {
        assert_eq!(
            with_query("/jobs", &[("state", ""), ("scan", "a&b"), ("cursor", "1")]),
            "/jobs?scan=a%26b&cursor=1"
        );
    }

    #[test]
    fn an_encoded_slash_in_a_blob_name_is_encoded_again() {
        assert_eq!(
            blob("infra", "lists/a%2Fb.txt"),
            "/blobs/lists/a%252Fb.txt?project=infra"
        );
    }

    #[test]
    fn former_addresses_have_present_ones() {
        for (former, expected) in [
            ("/workflows/a%2Fb", "/workflows/a/b"),
            (
                "/workflows/s%2Fa%2F-%2Fscans%2Fx",
                "/workflows/s/a/-/scans/x/-/",
            ),
            (
                "/workflows/a%2fb%2Fc%20d/scans/x",
                "/workflows/a/b/c%20d/-/scans/x",
            ),
            (
                "/workflows/a%2Fb/revisions/2",
                "/workflows/a/b/-/revisions/2",
            ),
            ("/workflows/%2F%2Fevil.example", "/workflows///evil.example"),
            ("/blobs/lists/a%2fb.txt", "/blobs/lists/a%252Fb.txt"),
        ] {
            assert_eq!(present(former).as_deref(), Some(expected));
            assert_eq!(present(expected), None, "{expected}");
        }
        for other in [
            "/workflows/a/b/-/scans/x",
            "/jobs/a%2Fb",
            "/v0/workflows/a%2Fb",
        ] {
            assert_eq!(present(other), None);
        }
    }

    #[test]
    fn addresses_of_a_page_move_and_texts_stay() {
        let text = "<a href=\"/x\">&quot;</a>";
        let page = |base: &str| {
            maud::html! {
                a.b href={ (base) "/jobs" } title="/jobs" { (text) }
                form action={ (base) "/" } { input name="next" value="/jobs"; }
                a href="#main" {} a href="https://example.org/" {}
            }
            .into_string()
        };
        assert_eq!(below("/everscan", page("")), page("/everscan"));
        assert_eq!(below("", page("")), page(""));
    }

    #[test]
    fn local_refuses_other_hosts_and_dots() {
        for path in [
            "/",
            "/jobs?state=failed&scan=a%20b",
            "/a//b",
            "/.../..a/%2e%2eb",
            "/jobs?q=/../x",
        ] {
            assert_eq!(local(path), Some(path));
        }
        for path in [
            "",
            "jobs",
            "//example.org",
            "https://example.org/",
            "/\\example.org",
            "/\t/example.org",
            "\\/example.org",
            "/a\r\nset-cookie: x",
            "javascript:alert(1)",
            "/..",
            "/../x",
            "/a/../../x",
            "/./x",
            "/%2e%2E/x",
            "/.%2e?q",
            "/%2E#x",
            "/a\u{7f}",
            "/ä",
        ] {
            assert_eq!(local(path), None, "{path:?}");
        }
    }
}
