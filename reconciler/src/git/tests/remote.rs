//! Sources reached through the `git` program, over HTTP on the loopback address.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::git::limits::FetchLimits;
use crate::git::testing::{FILE, Fixture};
use crate::git::{
    Access, Content, FetchError, FileLimits, FilesError, Location, Login, ReadLimits, Reference,
    Relation, TokenSource, Username,
};

/// The server's response to a request.
#[derive(Clone)]
enum Answer {
    /// Requires a login. A request with a login gets the other answer.
    Login(Box<Answer>),
    /// Serves the repositories below a folder.
    Git(PathBuf),
    /// A status and one header.
    Status(&'static str, String),
    Silence,
}

const ASKS: &str = "WWW-Authenticate: Basic realm=\"x\"";

/// A web server on a free port. It runs until the process ends.
struct Server {
    address: String,
    /// The number of object transfers, without listings.
    transfers: Arc<AtomicUsize>,
    /// The `Authorization` of each request that had one.
    logins: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(answer: Answer) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let transfers = Arc::new(AtomicUsize::new(0));
        let logins = Arc::default();
        let server = Server {
            address,
            transfers,
            logins,
        };
        let counters = (Arc::clone(&server.transfers), Arc::clone(&server.logins));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (answer, (transfers, logins)) = (answer.clone(), counters.clone());
                thread::spawn(move || serve(&answer, &transfers, &logins, stream.unwrap()));
            }
        });
        server
    }

    fn location(&self) -> Location {
        Location::parse(&format!("{}/source", self.address)).unwrap()
    }

    fn logins(&self) -> Vec<String> {
        self.logins.lock().unwrap().clone()
    }

    fn transfers(&self) -> usize {
        self.transfers.load(Ordering::SeqCst)
    }
}

/// Answers one request and closes the connection.
fn serve(answer: &Answer, transfers: &AtomicUsize, logins: &Mutex<Vec<String>>, stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut request = String::new();
    reader.read_line(&mut request).unwrap();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let header = |wanted: &str| {
        let found = headers.iter().find(|(name, _)| name == wanted);
        found.map_or("", |(_, value)| value)
    };
    let body = match header("content-length").parse() {
        Ok(length) => {
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            body
        }
        Err(_) => Vec::new(),
    };
    let login = header("authorization");
    if !login.is_empty() {
        logins.lock().unwrap().push(login.to_owned());
    }
    let question = Answer::Status("401 Unauthorized", ASKS.to_owned());
    let answer = match answer {
        Answer::Login(_) if login.is_empty() => &question,
        Answer::Login(then) => then,
        other => other,
    };
    let mut out = stream;
    match answer {
        // A request with a login gets the inner answer above.
        Answer::Login(_) => unreachable!("a request with a login gets the inner answer"),
        Answer::Silence => thread::park(),
        Answer::Status(status, header) => {
            write!(
                out,
                "HTTP/1.1 {status}\r\n{header}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            .unwrap();
        }
        Answer::Git(root) => {
            let mut words = request.split(' ');
            let (method, target) = (words.next().unwrap(), words.next().unwrap());
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let protocol = header("git-protocol");
            if String::from_utf8_lossy(&body).contains("command=fetch") {
                transfers.fetch_add(1, Ordering::SeqCst);
            }
            let mut child = Command::new("git")
                .arg("http-backend")
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap_or_default())
                .env("GIT_PROJECT_ROOT", root)
                .env("GIT_HTTP_EXPORT_ALL", "1")
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("REQUEST_METHOD", method)
                .env("PATH_INFO", path)
                .env("QUERY_STRING", query)
                .env("CONTENT_TYPE", header("content-type"))
                .env("CONTENT_LENGTH", body.len().to_string())
                .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
                .env("GIT_PROTOCOL", protocol)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(&body).unwrap();
            let output = child.wait_with_output().unwrap().stdout;
            let text = String::from_utf8_lossy(&output);
            let status = text
                .lines()
                .find_map(|line| line.strip_prefix("Status: "))
                .unwrap_or("200 OK");
            write!(out, "HTTP/1.1 {status}\r\nConnection: close\r\n").unwrap();
            out.write_all(&output).unwrap();
        }
    }
}

fn serving(source: &Fixture) -> Server {
    Server::start(Answer::Git(source.path().parent().unwrap().to_owned()))
}

#[test]
fn a_remote_is_fetched_once_per_push() {
    let source = Fixture::bare();
    let server = serving(&source);
    let mirror = source.mirror();
    let old = source.push_text("1");
    source.git(&["tag", "-a", "-m", "release", "v1"]);
    let fetch = |reference: Option<&Reference>| mirror.fetch(&server.location(), reference);

    let tip = fetch(None).unwrap();
    assert_eq!((tip.commit, &*tip.summary), (old, "Change it"));
    let after_the_first = server.transfers();
    for name in ["main", "refs/heads/main", "v1", &old.to_string()] {
        let reference = Reference::parse(name).unwrap();
        assert_eq!(fetch(Some(&reference)).unwrap().commit, old, "{name}");
    }
    assert_eq!(server.transfers(), after_the_first);

    let new = source.push(&[("workflows/a.yaml", FILE, b"2")]);
    assert_eq!(fetch(None).unwrap().commit, new);
    assert!(server.transfers() > after_the_first);
    let descendant = Relation::Descendant {
        skipped: vec![],
        more: false,
    };
    assert_eq!(mirror.relation(&old, &new).unwrap(), descendant);
    let snapshot = mirror
        .read(&new, "workflows", &ReadLimits::default())
        .unwrap();
    assert_eq!(snapshot.files[0].content, Content::Text("2".into()));
}

#[test]
fn a_source_can_follow_a_single_commit() {
    let source = Fixture::bare();
    let server = serving(&source);
    let old = source.push_text("1");
    source.push_text("2");
    let reference = Reference::parse(&old.to_string()).unwrap();
    let tip = source
        .mirror()
        .fetch(&server.location(), Some(&reference))
        .unwrap();
    assert_eq!(tip.commit, old);
}

#[test]
fn a_needed_commit_that_the_mirror_lost_is_fetched_again() {
    let source = Fixture::bare();
    let server = serving(&source);
    let mirror = source.mirror();
    let old = source.push_text("1");
    // With a rewritten history, no branch leads to the old commit.
    source.commit("refs/heads/main", &[], &[("b", FILE, b"2")]);
    let tip = mirror.fetch(&server.location(), None).unwrap();
    assert_eq!(tip.default_reference.as_deref(), Some("refs/heads/main"));
    let files = || mirror.files(old, &[], &FileLimits::default());
    assert!(matches!(files(), Err(FilesError::Missing { .. })));
    mirror.fetch_commit(&server.location(), old).unwrap();
    files().unwrap();
    mirror.keep(&BTreeSet::from([old])).unwrap();

    // Later fetches succeed, even into a rebuilt mirror.
    source.push(&[("b", FILE, b"3")]);
    mirror.fetch(&server.location(), None).unwrap();
    std::fs::write(source.mirror_dir().join("everscan-damaged"), "").unwrap();
    let tip = mirror.fetch(&server.location(), None).unwrap();
    files().unwrap();
    mirror
        .files(tip.commit, &[], &FileLimits::default())
        .unwrap();

    let unknown = "1".repeat(40).parse().unwrap();
    mirror
        .fetch_commit(&server.location(), unknown)
        .unwrap_err();
}

#[test]
fn a_rewritten_remote_is_followed() {
    let source = Fixture::bare();
    let server = serving(&source);
    let mirror = source.mirror();
    let old = source.push_text("old");
    mirror.fetch(&server.location(), None).unwrap();
    let new = source.commit(
        "refs/heads/main",
        &[],
        &[("workflows/a.yaml", FILE, b"new")],
    );
    assert_eq!(mirror.fetch(&server.location(), None).unwrap().commit, new);
    assert_eq!(mirror.relation(&old, &new).unwrap(), Relation::Rewritten);
}

#[test]
fn a_mirror_can_switch_between_local_and_remote() {
    let source = Fixture::bare();
    let server = serving(&source);
    let mirror = source.mirror();
    for (text, location) in [
        ("1", server.location()),
        ("2", source.location()),
        ("3", server.location()),
    ] {
        let commit = source.push_text(text);
        assert_eq!(mirror.fetch(&location, None).unwrap().commit, commit);
        let snapshot = mirror
            .read(&commit, "workflows", &ReadLimits::default())
            .unwrap();
        assert_eq!(snapshot.files[0].content, Content::Text(text.into()));
        let mode = std::fs::metadata(source.mirror_dir())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700, "{text}");
    }
}

#[test]
fn an_empty_remote_and_a_wrong_name_are_distinguished() {
    let source = Fixture::bare();
    let server = serving(&source);
    let mirror = source.mirror();
    let main = Reference::parse("mian").unwrap();
    let error = mirror.fetch(&server.location(), None).unwrap_err();
    assert!(matches!(error, FetchError::Empty { .. }), "{error}");
    source.push_text("1");
    let error = mirror.fetch(&server.location(), Some(&main)).unwrap_err();
    assert_eq!(
        error.hint(&Access::default()).unwrap(),
        "there are: main",
        "{error}"
    );
}

/// Access with the token in this file.
fn token_in(path: PathBuf) -> Access {
    Access {
        login: Some(Login {
            username: Username::parse("bot").unwrap(),
            token: TokenSource::File(path),
        }),
        ca_file: None,
    }
}

/// The `Authorization` header for the user `bot` and the token `hunter2`.
const BOT: &str = "Basic Ym90Omh1bnRlcjI=";

#[test]
fn a_token_gives_access_to_a_private_repository() {
    let source = Fixture::bare();
    let folder = source.path().parent().unwrap().to_owned();
    let commit = source.push_text("1");
    let server = Server::start(Answer::Login(Box::new(Answer::Git(folder.clone()))));
    let refused = source.mirror().fetch(&server.location(), None).unwrap_err();
    assert!(matches!(refused, FetchError::AccessDenied { .. }));
    let hint = refused.hint(&Access::default()).unwrap();
    assert!(hint.contains("token_file"), "{hint}");

    let token = folder.join("token");
    let mirror = source.mirror().with_access(token_in(token.clone()));
    let missing = mirror.fetch(&server.location(), None).unwrap_err();
    let message = model::error_chain(&missing);
    assert!(
        message.contains(&format!("token_file {}", token.display())),
        "{message}"
    );
    assert_eq!(server.logins(), Vec::<String>::new());

    std::fs::write(&token, "hunter2\n").unwrap();
    let tip = mirror.fetch(&server.location(), None).unwrap();
    assert_eq!(tip.commit, commit);
    let logins = server.logins();
    // One login for the listing and one for the transfer.
    assert!(
        logins.len() >= 2 && logins.iter().all(|login| login == BOT),
        "{logins:?}"
    );
}

#[test]
fn an_error_names_the_file_of_a_refused_token() {
    let source = Fixture::bare();
    let token = source.path().with_file_name("token");
    std::fs::write(&token, "hunter2").unwrap();
    let server = Server::start(Answer::Status("401 Unauthorized", ASKS.to_owned()));
    let access = token_in(token.clone());
    let mirror = source.mirror().with_access(access.clone());
    let refused = mirror.fetch(&server.location(), None).unwrap_err();
    assert!(
        matches!(refused, FetchError::AccessDenied { .. }),
        "{refused:?}"
    );
    let hint = refused.hint(&access).unwrap();
    assert!(hint.contains(&token.display().to_string()), "{hint}");
    assert_eq!(server.logins(), [BOT]);
    assert!(!format!("{refused:?} {hint}").contains("hunter2"));
}

#[test]
fn no_other_host_gets_a_token() {
    let source = Fixture::bare();
    let token = source.path().with_file_name("token");
    std::fs::write(&token, "hunter2").unwrap();
    let other = Server::start(Answer::Status("401 Unauthorized", ASKS.to_owned()));
    // Another port counts as another server. The redirect comes at once, or after the login.
    let elsewhere = format!("Location: {}/source/info/refs", other.address);
    let moved = Answer::Status("302 Found", elsewhere);
    for answer in [moved.clone(), Answer::Login(Box::new(moved))] {
        let server = Server::start(answer);
        let mirror = source.mirror().with_access(token_in(token.clone()));
        let refused = mirror.fetch(&server.location(), None).unwrap_err();
        assert!(
            matches!(refused, FetchError::Redirected { .. }),
            "{refused:?}"
        );
        assert_eq!(other.logins(), Vec::<String>::new());
    }
}

#[test]
fn errors_of_a_host_are_distinguished() {
    let source = Fixture::bare();
    for (status, header, expected) in [
        (
            "301 Moved",
            "Location: http://127.0.0.2/x/info/refs",
            "Redirected",
        ),
        ("401 Unauthorized", ASKS, "AccessDenied"),
        ("403 Forbidden", "X: y", "AccessDenied"),
        ("404 Not Found", "X: y", "RepositoryMissing"),
        ("503 Service Unavailable", "X: y", "Unreachable"),
    ] {
        let server = Server::start(Answer::Status(status, header.to_owned()));
        let error = source.mirror().fetch(&server.location(), None).unwrap_err();
        let variant = format!("{error:?}");
        assert!(variant.starts_with(expected), "{status}: {variant}");
    }
}

#[test]
fn a_closed_port_is_unreachable() {
    // No process listens on this port.
    let location = Location::parse("http://127.0.0.1:1/x").unwrap();
    let error = Fixture::bare().mirror().fetch(&location, None).unwrap_err();
    assert!(matches!(error, FetchError::Unreachable { .. }), "{error:?}");
}

#[test]
fn a_host_that_does_not_answer_times_out() {
    let server = Server::start(Answer::Silence);
    let limits = FetchLimits {
        listing: Duration::from_millis(300),
        ..FetchLimits::default()
    };
    let error = Fixture::bare()
        .mirror()
        .with_limits(limits)
        .fetch(&server.location(), None)
        .unwrap_err();
    assert!(matches!(error, FetchError::TimedOut { .. }), "{error:?}");
}

#[test]
fn a_transfer_over_the_bound_is_refused() {
    let source = Fixture::bare();
    let noise: Vec<u8> = (0..100_000_u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    source.push(&[("workflows/a.yaml", FILE, &noise)]);
    let server = serving(&source);
    let limits = FetchLimits {
        bytes: 10_000,
        ..FetchLimits::default()
    };
    let error = source
        .mirror()
        .with_limits(limits)
        .fetch(&server.location(), None)
        .unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { .. }), "{error:?}");
    let left = std::fs::read_dir(source.path().parent().unwrap()).unwrap();
    assert_eq!(left.count(), 1, "the source alone");
}
