//! A daemon behind a proxy that asks for a password, and behind one that offers it below a path.

use crate::browser::{Browser, CONTROL, ENTER};
use crate::proxy;
use crate::real_proxy::{RealProxy, caddy, nginx};
use crate::stage::{self, is_marked, mark};
use crate::support::World;

/// `reader:password` in Base64.
const BASIC: &str = "Authorization: Basic cmVhZGVyOnBhc3N3b3Jk";

/// A proxy in front of the world's daemon: its URL without path, and what ends it.
type Front<'a> = &'a dyn Fn(&mut World) -> Option<(String, Option<RealProxy>)>;

fn small(
    world: &World,
    rule: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static,
) -> Option<(String, Option<RealProxy>)> {
    let address = proxy::start(world.address(), rule);
    Some((format!("http://{address}"), None))
}

fn real(proxy: Option<RealProxy>) -> Option<(String, Option<RealProxy>)> {
    proxy.map(|proxy| (format!("https://{}", proxy.address()), Some(proxy)))
}

#[test]
fn a_proxy_with_basic_authentication_lets_its_readers_work() {
    with_a_password("", &|world| {
        small(world, |head| match head.contains(BASIC) {
            true => Ok(head.to_owned()),
            false => Err("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"".to_owned()),
        })
    });
}

#[test]
fn nginx_with_basic_authentication_as_documented() {
    with_a_password("trust_proxy: [127.0.0.1]\n", &|world| {
        real(nginx(world, Some("location / {\n    auth_basic")))
    });
}

#[test]
fn caddy_with_basic_authentication_as_documented() {
    with_a_password("trust_proxy: [127.0.0.1]\n", &|world| {
        real(caddy(world, "everscan.example.org", "@pages"))
    });
}

#[test]
fn nginx_and_caddy_with_tls_as_documented() {
    with_a_password("trust_proxy: [127.0.0.1]\n", &|world| {
        real(nginx(world, None))
    });
    with_a_password("trust_proxy: [127.0.0.1]\n", &|world| {
        real(caddy(world, "everscan.example.org", "reverse_proxy"))
    });
}

fn world_with(config: &str) -> World {
    let mut world = World::new();
    world.init_repository();
    world.push(&[("site.yaml", Some(stage::SITE))]);
    world.daemon_config = Some(config.to_owned());
    world.start_daemon();
    world
}

/// Signs in and follows a job. A proxy that asks for no password ignores the one in the address.
fn with_a_password(config: &str, front: Front<'_>) {
    let mut world = world_with(config);
    let Some((url, _proxy)) = front(&mut world) else {
        return;
    };
    let Some(browser) = Browser::start() else {
        return;
    };
    world.sync();
    let direct = std::mem::replace(&mut world.url, url.replace("://", "://reader:password@"));
    // As if the reader typed it into the dialog of the browser.
    browser.open(&world, "/login");
    world.url = url;
    browser.sign_in(&world);
    browser.open(&world, "/jobs");
    mark(&browser);
    world.url = direct;
    let job = world.dispatch("site", "probe", &["target=a.example"]);
    browser.appears(&format!("#job-{job}"));
    assert!(is_marked(&browser));
    browser.click(&format!("#job-{job} a"));
    browser.arrives(&format!("/jobs/{job}"));
    browser.press("Cancel…");
    browser.press("Cancel");
    browser.shows("main", "cancelled");
}

/// Takes away the path, as many proxies do. The rest of the head is as the caller wrote it.
fn without_path(head: &str) -> Option<String> {
    let (method, rest) = head.split_once(' ')?;
    let rest = rest.strip_prefix("/everscan/")?;
    Some(format!("{method} /{rest}"))
}

#[test]
fn below_a_path_that_the_proxy_passes_on_everything_works() {
    below_a_path("base_path: /everscan\n", &|world| {
        small(world, |head| {
            let kept = without_path(head).map(|_| head.to_owned());
            kept.ok_or_else(|| "404 Not Found".to_owned())
        })
    });
}

#[test]
fn below_a_path_that_the_proxy_takes_away_and_names_everything_works() {
    below_a_path("trust_proxy: [127.0.0.1]\n", &|world| {
        small(world, |head| {
            let head = without_path(head).ok_or_else(|| "404 Not Found".to_owned())?;
            let named = "X-Forwarded-Prefix: /everscan\r\nX-Forwarded-Proto: https";
            Ok(format!("{head}\r\n{named}"))
        })
    });
}

#[test]
fn below_a_path_of_nginx_as_documented_everything_works() {
    below_a_path(
        "base_path: /everscan\ntrust_proxy: [127.0.0.1]\n",
        &|world| real(nginx(world, Some("location /everscan/ {"))),
    );
}

#[test]
fn below_a_path_of_caddy_as_documented_everything_works() {
    below_a_path(
        "base_path: /everscan\ntrust_proxy: [127.0.0.1]\n",
        &|world| real(caddy(world, "host.example.org", "redir")),
    );
}

fn below_a_path(config: &str, front: Front<'_>) {
    let mut world = world_with(config);
    let Some((url, _proxy)) = front(&mut world) else {
        return;
    };
    let Some(browser) = Browser::start() else {
        return;
    };
    // Command line and runner, too, know the daemon by this address alone.
    world.url = format!("{url}/everscan");
    world.sync();
    world.start_runner(1);

    browser.open(&world, "/jobs?state=succeeded");
    browser.arrives("/everscan/login?next=%2Fjobs%3Fstate%3Dsucceeded");
    browser.fill("input[name=token]", &world.token().unwrap());
    browser.press("Sign in");
    browser.arrives("/everscan/jobs?state=succeeded");
    mark(&browser);
    let job = world.succeed("site", "probe", &["target=a.example"]);
    browser.appears(&format!("#job-{job}"));
    assert!(is_marked(&browser));
    assert_eq!(world.artifact(&job, "found").len(), 1);

    browser.chord(CONTROL, 'k');
    browser.keys("report");
    browser.shows("#finder-list [aria-selected=true]", "report");
    browser.keys(&ENTER.to_string());
    browser.arrives(&format!("/everscan{}", stage::REPORT));
    browser.chord(CONTROL, 'k');
    browser.keys(&job[..8]);
    browser.shows("#finder-list", "job");
    browser.open(&world, &format!("/jobs/{job}"));
    browser.shows("main", "probing a.example");
    browser.press("Run again");
    let other = "return location.pathname.startsWith('/everscan/jobs/')
        && !location.pathname.endsWith(arguments[0])";
    browser.until("the page of another job", other, vec![job.into()]);

    browser.open(&world, "/blobs?project=main&prefix=a%2520b/");
    let drop = "const files = new DataTransfer();
        files.items.add(new File(['text'], 'c%2Fd.txt'));
        document.querySelector('input[type=file]').files = files.files;";
    browser.run(drop, vec![]);
    browser.click("form[data-upload] button[type=submit]");
    // As paths of blobs write it.
    browser.shows(".rows", "c%252Fd.txt");

    browser.click("nav.rail form button");
    browser.arrives("/everscan/login");
    let link = world.everscan(&["session", "link"]);
    let path = link.trim().strip_prefix(world.url()).unwrap().to_owned();
    browser.open(&world, &path);
    browser.press("Sign in");
    browser.arrives("/everscan/");
    assert_eq!(browser.complaints(), [] as [&str; 0]);
}
