//! nginx and Caddy in front of the daemon, as docs/operating.md configures them. Without the program, a story is skipped.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::chromium::{find, skip};
use crate::support::port::Port;
use crate::support::{World, eventually};

const PAGE: &str = include_str!("../../docs/operating.md");

/// What the page's examples name, and the stories replace.
const DAEMON: &str = "127.0.0.1:7411";

/// A program in front of the daemon. Dropping it ends the program.
pub(crate) struct RealProxy {
    program: Child,
    port: Port,
}

impl RealProxy {
    /// Starts a program in a world that has a file with its configuration.
    fn start(world: &World, mut command: Command, port: Port) -> Self {
        let log = std::fs::File::create(world.path("proxy.log")).unwrap();
        let mut proxy = Self {
            program: command.stderr(log).stdout(Stdio::null()).spawn().unwrap(),
            port,
        };
        eventually("the start of the proxy", || {
            let ended = proxy.program.try_wait().unwrap();
            let log = std::fs::read_to_string(world.path("proxy.log")).unwrap();
            assert!(ended.is_none(), "{log}");
            TcpStream::connect(("127.0.0.1", proxy.port.number())).is_ok()
        });
        proxy
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }
}

impl Drop for RealProxy {
    fn drop(&mut self) {
        drop(self.program.kill());
        drop(self.program.wait());
    }
}

/// The example of the page that begins like this.
fn example(begin: &str) -> &'static str {
    let (_, block) = PAGE.split_once(&format!("\n```\n{begin}")).unwrap();
    let length = begin.len() + block.find("\n```\n").unwrap();
    let from = PAGE.len() - block.len() - begin.len();
    &PAGE[from..from + length]
}

/// Makes a certificate for this machine. The programs of the world trust it.
fn certify(world: &mut World) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(world.path("everscan.crt"), made.cert.pem()).unwrap();
    let key = made.signing_key.serialize_pem();
    std::fs::write(world.path("everscan.key"), key).unwrap();
    world.ca_file = Some(world.path("everscan.crt"));
}

fn program(name: &str) -> Option<PathBuf> {
    let found = find(name);
    if found.is_none() {
        skip(&format!("there is no {name} (Debian: nginx-light, caddy)"));
    }
    found
}

/// nginx with the server of the page, which has its own location, or those of the example that begins like this. `reader` has the
/// password `password`.
pub(crate) fn nginx(world: &mut World, locations: Option<&str>) -> Option<RealProxy> {
    let program = program("nginx")?;
    certify(world);
    let port = Port::hold();
    let folder = world.path("").display().to_string();
    let server = example("server {");
    let (rest, own) = server.split_once("    location").unwrap();
    assert!(own.contains("proxy_pass"));
    let server = locations.map_or(server.to_owned(), |locations| {
        format!("{rest}{}\n}}", example(locations))
    });
    let server = server
        .replace("listen 443", &format!("listen 127.0.0.1:{}", port.number()))
        .replace("/etc/ssl/", &folder)
        .replace("/etc/nginx/", &folder)
        .replace(DAEMON, &world.address());
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = kinds.map(|kind| format!("{kind}_temp_path {folder}nginx-{kind};\n"));
    let temporary = temporary.concat();
    let text = format!(
        "daemon off;\nmaster_process off;\npid {folder}nginx.pid;\nerror_log stderr;\nevents {{}}\n\
         http {{\naccess_log off;\n{temporary}{server}\n}}\n"
    );
    std::fs::write(world.path("readers"), "reader:{PLAIN}password\n").unwrap();
    std::fs::write(world.path("nginx.conf"), text).unwrap();
    let mut command = world.command(program.to_str().unwrap());
    command.args(["-e", "stderr", "-p", &folder, "-c"]);
    command.arg(world.path("nginx.conf"));
    Some(RealProxy::start(world, command, port))
}

/// Caddy with the example that begins with this host and this text. `reader` has the password `password`.
pub(crate) fn caddy(world: &mut World, host: &str, begin: &str) -> Option<RealProxy> {
    let program = program("caddy")?;
    let program = program.to_str().unwrap();
    certify(world);
    let port = Port::hold();
    let asked = |arguments: &[&str]| {
        let output = world.command(program).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let hash = asked(&["hash-password", "--plaintext", "password"]);
    let version = asked(&["version"]);
    let minor: Option<u32> = version.split('.').nth(1).and_then(|it| it.parse().ok());
    let folder = world.path("").display().to_string();
    let own = format!(
        "https://127.0.0.1:{} {{\n    tls {folder}everscan.crt {folder}everscan.key",
        port.number()
    );
    let mut site = example(&format!("{host} {{\n    {begin}"))
        .replacen(&format!("{host} {{"), &own, 1)
        .replace("HASH_OF_THE_PASSWORD", &hash)
        .replace(DAEMON, &world.address());
    if minor.is_some_and(|minor| minor < 8) {
        assert!(PAGE.contains("before 2.8 with `basicauth`"));
        site = site.replace("basic_auth", "basicauth");
    }
    let options = "{\n    admin off\n    auto_https disable_redirects\n    skip_install_trust\n}\n";
    std::fs::write(world.path("Caddyfile"), format!("{options}{site}\n")).unwrap();
    let mut command = world.command(program);
    command.args(["run", "--adapter", "caddyfile", "--config"]);
    command.arg(world.path("Caddyfile"));
    Some(RealProxy::start(world, command, port))
}
