//! HTTPS of callback servers with a certificate that an authority issues. The authority is `pebble`, which asks our DNS.

use std::fs::{self, File};
use std::process::{Child, Command};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};

use crate::support::port::Port;
use crate::support::{World, eventually};

/// `pebble` asks over UDP alone. An answer has at most three times the bytes of its query, so two challenges fit if the name is long.
const ZONE: &str = "callbacks-of-a-story.example.test";

/// Ends with the value.
struct Pebble {
    process: Child,
    /// The API, and where it shows its roots.
    api: Port,
    management: Port,
}

impl Drop for Pebble {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Pebble {
    /// None if it is not installed. `ca.pem` is the root of its own certificate, `pebble.log` its log.
    fn start(world: &World, dns: &Port) -> Option<Self> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let name = "Authority of the story";
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let [root, chain, key_file, settings] =
            ["ca.pem", "pebble.pem", "pebble.key", "pebble.json"].map(|name| world.path(name));
        fs::write(root, issuer.pem()).unwrap();
        fs::write(&chain, certificate.pem()).unwrap();
        fs::write(&key_file, key.serialize_pem()).unwrap();
        let (api, management) = (Port::hold(), Port::hold());
        let configured = json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{}", api.number()),
            "managementListenAddress": format!("127.0.0.1:{}", management.number()),
            "certificate": chain,
            "privateKey": key_file,
            "httpPort": 1,
            "tlsPort": 1,
        }});
        fs::write(&settings, configured.to_string()).unwrap();
        let log = File::create(world.path("pebble.log")).unwrap();
        let process = Command::new("pebble")
            .arg("-config")
            .arg(settings)
            .args(["-dnsserver", &format!("127.0.0.1:{}", dns.number())])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", "0")
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        match process {
            Ok(process) => Some(Self {
                process,
                api,
                management,
            }),
            Err(error) => {
                skip(&format!("`pebble` cannot be run: {error}"));
                None
            }
        }
    }

    fn directory(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.api.number())
    }
}

#[expect(clippy::print_stderr, reason = "a test that cannot run must say so")]
fn skip(reason: &str) {
    eprintln!("SKIP: {reason}");
}

fn curl(world: &World, root: &str, arguments: &[&str]) -> Option<String> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--max-time", "60", "--cacert"]);
    let output = curl.arg(world.path(root)).args(arguments).output().unwrap();
    let is_done = output.status.success();
    is_done.then(|| String::from_utf8(output.stdout).unwrap())
}

fn configuration(ports: [&Port; 3], directory: &str) -> String {
    let [dns, http, https] = ports.map(|port| format!("127.0.0.1:{}", port.number()));
    format!(
        "url: https://everscan.example.org\ncallback:\n  zones: [{ZONE}]\n  public: [127.0.0.1]\n  \
         listen: {{ dns: ['{dns}'], http: ['{http}'], https: ['{https}'] }}\n  \
         acme: {{ directory: '{directory}', email: ops@example.com, agree: true, root: ca.pem }}\n  resolver: '{dns}'\n"
    )
}

/// The record of the certificate.
fn record(world: &World) -> Value {
    let text = fs::read_to_string(world.path("state/callbacks/certificate.json"));
    text.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

#[test]
fn an_authority_issues_a_wildcard_a_restart_orders_nothing_and_a_failure_waits() {
    let mut world = World::new();
    world.init_repository();
    world.push(&[(
        "a.yaml",
        Some("scans: { a: { on: { dispatch: {} }, steps: [{ run: 'true' }] } }\n"),
    )]);
    let key = world.path("secret-key").display().to_string();
    let made = world.output("everscand", &["secret-key", "make", &key]);
    assert!(made.status.success(), "{made:?}");
    world.daemon_key = Some("secret-key".to_owned());
    let (dns, http, https) = (Port::hold(), Port::hold(), Port::hold());
    let ports = [&dns, &http, &https];

    // Nobody answers there. HTTP is served all the same, and the next start does not try again at once.
    fs::write(world.path("ca.pem"), "").unwrap();
    world.daemon_config = Some(configuration(ports, "https://127.0.0.1:1/dir"));
    for _ in 0..2 {
        world.start_daemon();
        eventually("the failure is kept", || {
            record(&world)["body"]["failure"]["failures"] == 1
        });
        let url = format!("http://127.0.0.1:{}/", http.number());
        let output = Command::new("curl")
            .args(["--silent", "--write-out", "%{http_code}", &url])
            .output();
        let Ok(output) = output else {
            skip("`curl` cannot be run");
            return;
        };
        assert_eq!(String::from_utf8_lossy(&output.stdout), "404");
        world.stop_daemon();
    }

    // Another authority is asked at once.
    let Some(pebble) = Pebble::start(&world, &dns) else {
        return;
    };
    let management = format!("https://127.0.0.1:{}/roots/0", pebble.management.number());
    let mut root = None;
    eventually("pebble serves", || {
        root = curl(&world, "ca.pem", &[&management]);
        root.is_some()
    });
    fs::write(world.path("root.pem"), root.unwrap()).unwrap();
    world.daemon_config = Some(configuration(ports, &pebble.directory()));
    world.start_daemon();
    world.sync();
    let created = world.json(&["callback", "create", "oast", "--project", "main"]);
    let name = created["names"][0].as_str().unwrap().to_owned();
    let asks = |world: &World, host: &str| {
        let place = format!("{host}:{}:127.0.0.1", https.number());
        let url = format!("https://{host}:{}/", https.number());
        curl(world, "root.pem", &["--resolve", &place, &url])
    };
    let reversed: String = name
        .strip_suffix(&format!(".{ZONE}"))
        .unwrap()
        .chars()
        .rev()
        .collect();
    eventually(
        "HTTPS is served with the certificate of the authority",
        || asks(&world, &name).as_ref() == Some(&reversed),
    );
    let found = world.json(&["callback", "list", "oast", "--type", "http"]);
    assert_eq!(found["items"][0]["sni"], name);
    // It is used first and then kept.
    let mut issued = Value::Null;
    eventually("the certificate is kept", || {
        issued = record(&world);
        issued["body"]["failure"].is_null() && !issued["body"]["valid"].is_null()
    });
    assert_eq!(issued["body"]["asked"]["zones"], json!([ZONE]));
    // What is sealed is in no file.
    let text = issued.to_string();
    assert!(
        !text.contains("PRIVATE KEY") && !text.contains("key_pkcs8"),
        "{text}"
    );
    let orders = |world: &World| {
        let log = fs::read_to_string(world.path("pebble.log")).unwrap();
        log.lines()
            .filter(|line| line.contains("/order-plz"))
            .count()
    };
    let before = orders(&world);
    assert!(before > 0);

    world.stop_daemon();
    world.start_daemon();
    assert_eq!(asks(&world, &name), Some(reversed));
    assert_eq!(record(&world)["revision"], issued["revision"]);
    assert_eq!(orders(&world), before);
    // The daemon is asked as the resolver of its machine, which is wrong.
    let checked = world.output("everscan", &["callback", "check"]);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    for words in [
        "good     the certificate is valid until",
        "which is this daemon",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let page = world.json(&["condition", "list"]);
    assert_eq!(page["items"], json!([]));
    world.stop_daemon();
}

#[test]
fn certificates_that_cannot_work_are_refused_at_the_start_in_words() {
    let mut world = World::new();
    world.init_repository();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["cb.test".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    fs::write(world.path("a.pem"), certificate.pem()).unwrap();
    fs::write(world.path("a.key"), key.serialize_pem()).unwrap();
    let files = "certificate: { file: a.pem, key: a.key }";
    let acme = "acme: { directory: 'https://ca.example/dir', email: a@example.com";
    for (keys, words) in [
        (files.to_owned(), "is not for *.cb.test"),
        (files.replace("a.pem", "missing.pem"), "cannot read"),
        (files.replace("a.pem", "a.key"), "holds no certificate"),
        (
            format!("{acme} }}"),
            "read the terms of service of https://ca.example/dir",
        ),
        (format!("{acme}, agree: true }}"), "needs `secret_key_file`"),
        (
            format!("{files}\n  {acme}, agree: true }}"),
            "give one of the two",
        ),
        (String::new(), "listen.https: needs the key"),
    ] {
        world.daemon_config = Some(format!(
            "url: https://everscan.example.org\ncallback:\n  zones: [cb.test]\n  public: [127.0.0.1]\n  \
             listen: {{ dns: ['127.0.0.1:0'], https: ['127.0.0.1:0'] }}\n  {keys}\n"
        ));
        fs::write(world.path("daemon.log"), "").unwrap();
        world.spawn_daemon();
        assert!(!world.await_daemon(), "{keys}");
        let code = world.daemon_ended().code();
        let log = world.daemon_log();
        assert_eq!(code, Some(2), "{log}");
        assert!(log.contains(words), "{words}: {log}");
    }
}
