//! The visited worlds, and the list of all pages: one world with content for each page, and a fresh world.

use std::io::{Read, Write};
use std::net::TcpStream;

use api::{Access, PageRoute, PublicRoute, ROUTES, Route};

use crate::support::port::Port;
use crate::support::{World, eventually, signal};

/// Finds hosts and probes them. A probe runs until the gate is open.
const RECON: &str = r#"name: Recon
description: Finds hosts, probes them, and reports what is new.
scans:
  certs:
    on: { cron: "12 */6 * * *", dispatch: {} }
    steps:
      - run: printf 'www\nmail\n' | tee names.txt
    artifacts:
      - { name: names, paths: [names.txt] }
  dictionary:
    on:
      dispatch:
        inputs:
          words: { required: true }
          deep: { type: bool, default: "false" }
    env: { WORDS: "${{ inputs.words }}", DEEP: "${{ inputs.deep }}" }
    steps:
      - run: printf '%s\n' $WORDS | tee names.txt
    artifacts:
      - { name: names, paths: [names.txt] }
  hosts:
    on: { expr: "scans.certs.has_news() || scans.dictionary.has_news()" }
    steps:
      - run: |
          mkdir hosts
          date +%N > hosts/serial.txt
          for name in www mail vpn; do echo "$name.example.org" | tee "hosts/$name.txt"; done
    artifacts:
      - { name: hosts, paths: [hosts], expires_in: 30d }
  probe:
    on: { expr: "scans.hosts.has_news() && vars.PAUSED == 'no'" }
    timeout: 1h
    env:
      HOSTS: "${{ scans.hosts.last_success().id }}"
      API_KEY: "${{ secrets.API_KEY }}"
    steps:
      - run: echo "$HOSTS" > hosts.txt
      - run: |
          echo "214 hosts, 32 at a time"
          printf '\033[32m200\033[0m https://www.example.org \033[2mnginx 1.28 · 41 ms\033[0m\n'
          printf '\033[33m301\033[0m http://old.example.org → https://www.example.org/\n'
          echo 'probe: vpn.example.org: connection refused, 1 of 3' >&2
          printf '\033[31m401\033[0m https://admin.example.org/ \033[1;33mnew since yesterday\033[0m\n'
          echo "token for the inventory: $API_KEY"
          for number in $(seq 400 412); do
            printf '\033[32m200\033[0m https://host-%s.example.org \033[2mnginx 1.28\033[0m\n' "$number"
          done
          until [ -e GATE ]; do sleep 0.05; done
      - run: sort -u hosts.txt > probe.tsv
    artifacts:
      - { name: probe, paths: [probe.tsv] }
  screenshots:
    on: { expr: "scans.probe.has_news()", dispatch: {} }
    runs_on: [gpu]
    steps: [ { run: take-screenshots } ]
  report:
    on: { cron: "0 6 * * *", timezone: Europe/Berlin, dispatch: {} }
    steps:
      - run: echo "12 hosts are new"
      - run: |
          echo 'report: mail.example.org: 550 no such user' >&2
          exit 3
"#;

const NIGHTLY: &str = "name: Nightly
scans: { clean: { on: { cron: \"0 3 * * *\", dispatch: {} }, steps: [ { run: echo clean } ] } }
";

/// Names and texts without a place for a line break, such as addresses in descriptions.
const WIDE: &str = "description: https://wiki.example.org/teams/security/runbooks/what-to-do-when-this-workflow-fails
scans:
  find_the_subdomains_of_each_customer_with_an_active_contract:
    on: { cron: \"5 4 * * *\", timezone: America/Argentina/Buenos_Aires, dispatch: {} }
    steps: [ { run: \"./find.sh --lists=all,new,gone --resolvers=resolvers/public-and-private.txt --rate=fast\" } ]
";

const WIDE_SCAN: &str = "find_the_subdomains_of_each_customer_with_an_active_contract";

const WORKFLOW: &str = "main/recon";

/// A text as long as digests, tokens and addresses, without a place for a line break. It does not fit into a line of
/// 390 pixels.
const LONG: &str = "a-value-whose-text-is-one-long-word-as-digests-tokens-and-addresses-are-and-which-no-screen-of-390-pixels-has-room-for-in-a-line";

/// A page with its name.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) name: &'static str,
    pub(crate) path: String,
    /// True if the response is an error.
    pub(crate) is_problem: bool,
}

impl Page {
    fn new(name: &'static str, path: impl Into<String>) -> Self {
        Self {
            name,
            path: path.into(),
            is_problem: false,
        }
    }

    fn problem(name: &'static str, path: &str) -> Self {
        Self {
            is_problem: true,
            ..Self::new(name, path)
        }
    }
}

pub(crate) struct Scene {
    pub(crate) world: World,
    /// Pages for the admin.
    pub(crate) pages: Vec<Page>,
    /// A token that may only read jobs, and pages for it.
    pub(crate) limited: (String, Vec<Page>),
}

/// A daemon in its first minute, and the pages that are still empty.
pub(crate) fn fresh() -> (World, Vec<Page>) {
    let mut world = World::new();
    world.init_repository();
    world.push(&[]);
    world.start_daemon();
    let pages = [
        ("fresh-overview", "/"),
        ("fresh-workflows", "/workflows"),
        ("fresh-jobs", "/jobs"),
        ("fresh-runners", "/runners"),
        ("fresh-blobs", "/blobs?project=main"),
    ];
    let pages = pages.map(|(name, path)| Page::new(name, path));
    (world, pages.into())
}

/// Stores a payload with a long line, and returns the address of its group.
fn store_payloads(world: &World) -> String {
    let group = [
        "--project",
        "main",
        "--variable",
        "TARGET",
        "--output",
        "json",
    ];
    let group = world.everscan(&[&["payload", "group", "create", "xss"][..], &group].concat());
    let group: serde_json::Value = serde_json::from_str(&group).unwrap();
    let file = world.path("img.html");
    std::fs::write(&file, format!("<img src=\"//%%TARGET|url%%/{LONG}\">\n")).unwrap();
    let file = file.display().to_string();
    world.everscan(&["payload", "create", "xss", "img.html", &file]);
    format!("/payload-groups/{}", group["id"].as_str().unwrap())
}

impl Scene {
    pub(crate) fn set() -> Self {
        let mut world = World::new();
        let key = world.path("secret-key").display().to_string();
        world.output("everscand", &["secret-key", "make", &key]);
        world.daemon_key = Some("secret-key".to_owned());
        world.init_repository();
        let gate = world.path("gate");
        std::fs::write(&gate, "").unwrap();
        let recon = RECON.replace("GATE", &gate.display().to_string());
        world.push(&[
            ("recon.yaml", Some(&recon)),
            ("nightly.yaml", Some(NIGHTLY)),
            ("wide.yaml", Some(WIDE)),
        ]);
        let hearing = Hearing::configure(&mut world);
        world.start_daemon();
        world.sync();
        let callback = hearing.hear(&world);
        world.everscan(&["var", "set", "PAUSED", "no"]);
        world.everscan(&["var", "set", "UNUSED", "a value\nof two lines"]);
        world.everscan(&["var", "set", "LONG", LONG]);
        let secret = world.path("api-key.txt");
        std::fs::write(&secret, "4f1c90aa-and-more").unwrap();
        let secret = secret.display().to_string();
        world.everscan(&["secret", "set", "API_KEY", "--file", &secret]);
        for place in ["lists/2026/words.txt", "words.txt"] {
            world.everscan(&["blob", "upload", "--src", &secret, "--dst", place]);
        }
        let payloads = store_payloads(&world);
        world.start_runner(2);

        let dictionary = world.succeed(WORKFLOW, "dictionary", &[&format!("words=www {LONG}")]);
        let hosts = world.followed_by(WORKFLOW, "hosts");
        let succeeded = world.followed_by(WORKFLOW, "probe");
        let failed = world.dispatch(WORKFLOW, "report", &[]);
        world.finished(&failed);
        let cancelled = world.dispatch(WORKFLOW, "screenshots", &[]);
        world.everscan(&["job", "cancel", &cancelled]);

        let second = recon
            .replace("what is new.", "what is new or gone.")
            .replace("12 */6", "42 */3");
        let broken = NIGHTLY.replace("steps", "stepps");
        world.push(&[
            ("recon.yaml", Some(&second)),
            ("nightly.yaml", Some(&broken)),
            ("wide.yaml", Some(&WIDE.replace("fast", "slow"))),
        ]);
        world.output("everscan", &["source", "sync", "main", "--wait"]);
        std::fs::remove_file(&gate).unwrap();
        world.succeed(WORKFLOW, "dictionary", &["words=www vpn"]);
        let changed = world.followed_by(WORKFLOW, "hosts");
        let running = world.jobs_of(WORKFLOW, "probe")[0].clone();
        assert_ne!(running, succeeded);
        eventually("the probe's output", || {
            world.log(&running).contains("host-412")
        });
        let waiting = world.jobs_of(WORKFLOW, "screenshots");
        let waiting = waiting.iter().find(|job| **job != cancelled).unwrap();

        let link = world.everscan(&["session", "link"]);
        let link = link.trim().strip_prefix(world.url()).unwrap().to_owned();
        world.everscan(&["user", "invite", "deploy", "--service"]);
        let invited = world.everscan(&["user", "invite", "kim", "--role", "main=operator"]);
        let invited = invited
            .lines()
            .find_map(|line| line.split_once("/welcome/"));
        let welcome = format!("/welcome/{}", invited.unwrap().1.trim());
        let (recon, wide) = ("/workflows/main/recon", "/workflows/main/wide");
        let wide_scan = format!("{wide}/-/scans/{WIDE_SCAN}");
        let (page, problem) = (|name, path: String| Page::new(name, path), Page::problem);
        let pages = vec![
            page("overview", "/".to_owned()),
            page("workflows", "/workflows".to_owned()),
            page("workflow", recon.to_owned()),
            page("workflow-focus", format!("{recon}?focus=hosts")),
            page("workflow-stale", "/workflows/main/nightly".to_owned()),
            page("revisions", format!("{recon}/-/revisions")),
            page("revision", format!("{recon}/-/revisions/2")),
            page("revision-diff", format!("{recon}/-/revisions/2?against=1")),
            page("scan", format!("{recon}/-/scans/probe")),
            page("wide-workflow", wide.to_owned()),
            page(
                "wide-revision-diff",
                format!("{wide}/-/revisions/2?against=1"),
            ),
            page("wide-scan", wide_scan.clone()),
            page("wide-dispatch", format!("{wide_scan}/dispatch")),
            page("scan-failed", format!("{recon}/-/scans/report")),
            page("dispatch", format!("{recon}/-/scans/dictionary/dispatch")),
            page(
                "dispatch-again",
                format!("{recon}/-/scans/dictionary/dispatch?job={dictionary}"),
            ),
            page("jobs", "/jobs".to_owned()),
            page("jobs-filtered", "/jobs?state=failed&scan=report".to_owned()),
            page("jobs-none", "/jobs?scan=certs&state=failed".to_owned()),
            page("job-running", format!("/jobs/{running}")),
            page("job-failed", format!("/jobs/{failed}")),
            page("job-waiting", format!("/jobs/{waiting}")),
            page("job-succeeded", format!("/jobs/{succeeded}")),
            page("job-cancelled", format!("/jobs/{cancelled}")),
            page("job-context", format!("/jobs/{running}/context")),
            page("log", format!("/jobs/{succeeded}/log")),
            page("log-search", format!("/jobs/{succeeded}/log?q=host-4")),
            page("artifacts", "/artifacts".to_owned()),
            page(
                "artifact-entries",
                format!("/jobs/{hosts}/artifacts/hosts/entries"),
            ),
            page(
                "artifact-diff",
                format!("/jobs/{changed}/artifacts/hosts/diff?against={hosts}"),
            ),
            page("blobs", "/blobs?project=main".to_owned()),
            page(
                "blobs-folder",
                "/blobs?project=main&prefix=lists/".to_owned(),
            ),
            page("runners", "/runners".to_owned()),
            page("runner", "/runners/story".to_owned()),
            page("sources", "/sources".to_owned()),
            page("source", "/sources/main".to_owned()),
            page("projects", "/projects".to_owned()),
            page("variables", "/projects/main".to_owned()),
            page("callback", callback.clone()),
            page("interaction", format!("{callback}/1")),
            page("payload-group", payloads.clone()),
            page("payload", format!("{payloads}/img.html")),
            page("notifications", "/notifications".to_owned()),
            page("tokens", "/tokens".to_owned()),
            page("audit", "/audit".to_owned()),
            page("settings", "/settings".to_owned()),
            page("users", "/users".to_owned()),
            page("user", "/users/kim".to_owned()),
            page("members", "/projects/main/members".to_owned()),
            page("device", "/device".to_owned()),
            page("about", "/about".to_owned()),
            page("login", "/login?next=/jobs".to_owned()),
            page("login-link", link),
            page("welcome", welcome),
            problem("welcome-used", "/welcome/evu_used"),
            problem("login-link-used", "/login/evi_used"),
            problem("problem-no-page", "/nothing"),
            problem("problem-no-job", "/jobs/ffffffff"),
            problem("problem-query", "/jobs?nothing=1"),
        ];
        for route in routes() {
            let has = pages.iter().any(|page| is_of(route, &page.path));
            assert!(has, "{} is not among the pages", route.path);
        }
        let token = [
            "token", "create", "--name", "limited", "--scope", "job:read",
        ];
        let token = world.everscan(&token).trim().to_owned();
        let limited = vec![problem("problem-forbidden", "/tokens")];
        Self {
            world,
            pages,
            limited: (token, limited),
        }
    }
}

impl Drop for Scene {
    /// Ends the probe, and then the runner. A killed runner would leave the probe behind.
    fn drop(&mut self) {
        drop(std::fs::write(self.world.path("gate"), ""));
        if let Some(mut runner) = self.world.runner.take() {
            signal(runner.id(), "TERM");
            drop(runner.wait());
        }
    }
}

/// The listeners of callback servers of a world.
pub(crate) struct Hearing {
    http: Port,
}

impl Hearing {
    /// Configures a zone for a daemon that is not started yet.
    pub(crate) fn configure(world: &mut World) -> Self {
        let (dns, http) = (Port::hold(), Port::hold());
        let callback = format!(
            "url: https://everscan.example.org\ncallback:\n  zones: [cb.test]\n  public: [192.0.2.1]\n  \
            listen: {{ dns: ['127.0.0.1:{}'], http: ['127.0.0.1:{}'] }}\n",
            dns.number(),
            http.number()
        );
        let before = world.daemon_config.take().unwrap_or_default();
        world.daemon_config = Some(before + &callback);
        Self { http }
    }

    /// Creates a callback server that has heard something. Returns the path of its page.
    pub(crate) fn hear(&self, world: &World) -> String {
        world.everscan(&["callback", "create", "oast", "--project", "main"]);
        let server = world.json(&["callback", "show", "oast"]);
        let name = server["names"][0].as_str().unwrap().to_owned();
        eventually("a request is recorded", || {
            self.request(&name, "GET /first HTTP/1.1");
            let server = world.json(&["callback", "show", "oast"]);
            server["interactions"].as_u64().unwrap() > 0
        });
        format!("/callbacks/{}", server["id"].as_str().unwrap())
    }

    pub(crate) fn request(&self, name: &str, line: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.http.number())).unwrap();
        let head =
            format!("{line}\r\nHost: {name}\r\nX-Note: <b onclick=alert(1)>bold</b>\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
}

/// The routes whose response is a page.
fn routes() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| match route.access {
        Access::Public(route) => matches!(
            route,
            PublicRoute::LoginPage | PublicRoute::LinkPage | PublicRoute::WelcomePage
        ),
        Access::Page(route, _) => {
            !route.is_data()
                && !matches!(
                    route,
                    PageRoute::RawLog | PageRoute::Artifact | PageRoute::Blob
                )
        }
        Access::Local(..)
        | Access::User(..)
        | Access::Session(_)
        | Access::Link(_)
        | Access::Runner(_)
        | Access::Worker(_)
        | Access::Action(..) => false,
    })
}

/// True if the path belongs to the route.
fn is_of(route: &Route, path: &str) -> bool {
    let path = path.split('?').next().unwrap();
    // The name of the workflow is one parameter.
    let path = match path.starts_with("/projects/") {
        true => path.to_owned(),
        false => path.replace("/main/", "/main%2F"),
    };
    let (pattern, path): (Vec<&str>, Vec<&str>) =
        (route.path.split('/').collect(), path.split('/').collect());
    pattern.len() == path.len()
        && pattern
            .iter()
            .zip(path)
            .all(|(pattern, part)| pattern.starts_with('{') || *pattern == part)
}
