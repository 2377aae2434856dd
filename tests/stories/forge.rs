//! A host of private repositories: `git http-backend` behind TLS, with its own certificate authority and one token.
//! While it answers a request with the token, it checks whether any process on the machine shows the token.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The server. It ends with the process.
pub(crate) struct Forge {
    pub(crate) url: String,
    /// The certificate of its authority, in PEM form.
    pub(crate) authority: String,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    root: PathBuf,
    /// `user:token` in base64, as in a request.
    accepted: String,
    /// The token, which nobody may see.
    token: String,
    /// Processes that showed the token in their arguments or environment.
    shown: Vec<String>,
    /// Number of checked processes of `git`.
    checked: usize,
    opened: usize,
    refused: usize,
}

impl Forge {
    /// Serves the repositories below a folder, but accepts no token yet.
    pub(crate) fn start(root: &Path) -> Self {
        let (authority, tls) = certificates();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Mutex::new(Shared {
            root: root.to_owned(),
            accepted: String::new(),
            token: String::new(),
            shown: Vec::new(),
            checked: 0,
            opened: 0,
            refused: 0,
        }));
        let tls = Arc::new(tls);
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (tls, shared) = (Arc::clone(&tls), Arc::clone(&of_thread));
                let connection = ServerConnection::new(tls).unwrap();
                let stream = StreamOwned::new(connection, stream.unwrap());
                // A client that does not trust the certificate closes the connection.
                thread::spawn(move || drop(serve(&shared, stream)));
            }
        });
        Self {
            url,
            authority,
            shared,
        }
    }

    /// From now on the server accepts only this token. `basic` is `user:token` in base64.
    pub(crate) fn accept(&self, token: &str, basic: &str) {
        let mut shared = self.shared.lock().unwrap();
        shared.accepted = format!("Basic {basic}");
        shared.token = token.to_owned();
    }

    /// Accepted requests.
    pub(crate) fn opened(&self) -> usize {
        self.shared.lock().unwrap().opened
    }

    /// Requests whose token was refused.
    pub(crate) fn refused(&self) -> usize {
        self.shared.lock().unwrap().refused
    }

    /// Processes that showed the token, and the number of checked processes of `git`.
    pub(crate) fn shown(&self) -> (Vec<String>, usize) {
        let shared = self.shared.lock().unwrap();
        (shared.shown.clone(), shared.checked)
    }
}

/// A new authority, in PEM form, and the settings of a server with its certificate.
fn certificates() -> (String, ServerConfig) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    (issuer.pem(), tls)
}

/// The certificate of another authority, in PEM form.
pub(crate) fn other_authority() -> String {
    certificates().0
}

/// A parsed request.
struct Request {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn read(stream: impl Read) -> std::io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut request = Self {
            line,
            headers: Vec::new(),
            body: Vec::new(),
        };
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim().split_once(':') else {
                break;
            };
            let header = (name.to_ascii_lowercase(), value.trim().to_owned());
            request.headers.push(header);
        }
        if let Ok(length) = request.header("content-length").parse() {
            request.body = vec![0; length];
            reader.read_exact(&mut request.body)?;
        }
        Ok(request)
    }

    fn header(&self, wanted: &str) -> &str {
        let found = self.headers.iter().find(|(name, _)| name == wanted);
        found.map_or("", |(_, value)| value)
    }
}

type Stream = StreamOwned<ServerConnection, std::net::TcpStream>;

/// Answers one request and closes the connection.
fn serve(shared: &Mutex<Shared>, mut stream: Stream) -> std::io::Result<()> {
    let request = Request::read(&mut stream)?;
    let login = request.header("authorization");
    let root = {
        let mut shared = shared.lock().unwrap();
        if login == shared.accepted && !login.is_empty() {
            shared.opened += 1;
            let (shown, checked) = check_processes(&shared.token, &login["Basic ".len()..]);
            shared.shown.extend(shown);
            shared.checked += checked;
            Some(shared.root.clone())
        } else {
            shared.refused += usize::from(!login.is_empty());
            None
        }
    };
    match root {
        Some(root) => answer(&root, &request, &mut stream)?,
        None => stream.write_all(
            b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"forge\"\r\n\
              Content-Length: 0\r\nConnection: close\r\n\r\n",
        )?,
    }
    stream.conn.send_close_notify();
    stream.flush()
}

/// Hands a request to `git http-backend`.
fn answer(root: &Path, request: &Request, stream: &mut Stream) -> std::io::Result<()> {
    let mut words = request.line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
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
        .env("CONTENT_TYPE", request.header("content-type"))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", request.header("content-encoding"))
        .env("GIT_PROTOCOL", request.header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    child.stdin.take().unwrap().write_all(&request.body)?;
    let output = child.wait_with_output()?.stdout;
    let text = String::from_utf8_lossy(&output);
    let status = text
        .lines()
        .find_map(|line| line.strip_prefix("Status: "))
        .unwrap_or("200 OK");
    write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\n")?;
    stream.write_all(&output)
}

/// The processes that show the token, and the number of processes of `git`.
fn check_processes(token: &str, basic: &str) -> (Vec<String>, usize) {
    let mut shown = Vec::new();
    let mut checked = 0;
    for entry in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let read = |what: &str| {
            // A process may end meanwhile, or belong to somebody else.
            let bytes = fs::read(entry.path().join(what)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let arguments = read("cmdline");
        checked += usize::from(arguments.contains("git") && arguments.contains("ls-remote"));
        if [&arguments, &read("environ")]
            .iter()
            .any(|text| text.contains(token) || text.contains(basic))
        {
            shown.push(arguments);
        }
    }
    (shown, checked)
}
