//! A daemon behind a proxy that asks for a password, and behind one that offers it below a path.

use crate::browser::{Browser, CONTROL, ENTER};
use crate::proxy;
use crate::stage::{self, is_marked, mark};
use crate::support::World;

/// `reader:password` in Base64.
const BASIC: &str = "Authorization: Basic cmVhZGVyOnBhc3N3b3Jk";

#[test]
fn a_proxy_with_basic_authentication_lets_its_readers_work() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let mut world = stage::without_runner();
    let address = proxy::start(world.address(), |head| match head.contains(BASIC) {
        true => Ok(head.to_owned()),
        false => Err("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"".to_owned()),
    });
    let direct = world.url().to_owned();
    // As if the reader typed it into the dialog of the browser.
    world.url = format!("http://reader:password@{address}");
    browser.open(&world, "/login");
    world.url = format!("http://{address}");
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
    below_a_path("base_path: /everscan\n", |head| {
        without_path(head).map(|_| head.to_owned())
    });
}

#[test]
fn below_a_path_that_the_proxy_takes_away_and_names_everything_works() {
    below_a_path("trust_proxy: [127.0.0.1]\n", |head| {
        let head = without_path(head)?;
        let named = "X-Forwarded-Prefix: /everscan\r\nX-Forwarded-Proto: https";
        Some(format!("{head}\r\n{named}"))
    });
}

fn below_a_path(config: &str, rule: fn(&str) -> Option<String>) {
    let Some(browser) = Browser::start() else {
        return;
    };
    let mut world = World::new();
    world.init_repository();
    world.push(&[("site.yaml", Some(stage::SITE))]);
    world.daemon_config = Some(config.to_owned());
    world.start_daemon();
    let address = proxy::start(world.address(), move |head| {
        rule(head).ok_or_else(|| "404 Not Found".to_owned())
    });
    // Command line and runner, too, know the daemon by this address alone.
    world.url = format!("http://{address}/everscan");
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
