//! Every page, in a world that has something to show on each of them.

use std::collections::BTreeSet;

use crate::stage::SITE;
use crate::support::World;

/// Names and texts as long as they may be, without a place to break them.
const LONG: &str = "an-input-whose-text-is-one-long-word-as-digests-tokens-and-addresses-are-and-which-no-screen-of-390-pixels-has-room-for-in-a-line";

/// The pages of the daemon by the patterns of `api/src/routes.rs`, each with an address.
pub(crate) struct Pages {
    pub(crate) world: World,
    pub(crate) addresses: Vec<(&'static str, String)>,
}

/// Routes for browsers whose answers are no pages: downloads, and what scripts read.
const NO_PAGES: &[&str] = &[
    "/blobs/{*path}",
    "/jobs/{job}/artifacts/{artifact}",
    "/jobs/{job}/log/raw",
    "/jobs/{job}/log/records",
    "/jobs/{job}/log/search",
    "/live",
];

/// Makes the world: two revisions and a file that is not valid, jobs that succeeded and one that waits, a blob, a var, and
/// a secret that is missing.
pub(crate) fn pages() -> Pages {
    let world = World::with_workflow("site.yaml", SITE);
    let target = format!("target={LONG}");
    let former = world.succeed("site", "probe", &["target=a.example"]);
    let job = world.succeed("site", "probe", &[&target]);
    world.followed_by("site", "report");
    let changed = SITE.replace(
        "  report:\n",
        "  report:\n    env: { KEY: '${{ secrets.KEY }}', DEPTH: '${{ vars.DEPTH }}' }\n",
    );
    world.push(&[("site.yaml", Some(&changed))]);
    world.sync();
    world.push(&[("broken.yaml", Some("scans: { no: 1 }\n"))]);
    let sync = world.output("everscan", &["source", "sync", "main", "--wait"]);
    assert_eq!(sync.status.code(), Some(1), "one file is not valid");
    world.everscan(&["var", "set", "DEPTH", LONG]);
    let file = world.path("blob.txt");
    std::fs::write(&file, LONG).unwrap();
    world.everscan(&["blob", "upload", "--src", &file.display().to_string()]);

    let runner = &world.json(&["runner", "list"])["items"][0]["id"];
    let addresses = addresses(&job, &former, runner.as_str().unwrap());
    Pages { world, addresses }
}

/// The pages by their patterns. The jobs are of the scan `probe` and have an artifact.
fn addresses(job: &str, former: &str, runner: &str) -> Vec<(&'static str, String)> {
    vec![
        ("/", "/".to_owned()),
        ("/jobs", "/jobs".to_owned()),
        ("/jobs/{job}", format!("/jobs/{job}")),
        ("/jobs/{job}/context", format!("/jobs/{job}/context")),
        ("/jobs/{job}/log", format!("/jobs/{job}/log")),
        (
            "/jobs/{job}/artifacts/{artifact}/entries",
            format!("/jobs/{job}/artifacts/found/entries"),
        ),
        (
            "/jobs/{job}/artifacts/{artifact}/diff",
            format!("/jobs/{job}/artifacts/found/diff?against={former}"),
        ),
        ("/workflows", "/workflows".to_owned()),
        ("/workflows/{workflow}", "/workflows/main%2Fsite".to_owned()),
        (
            "/workflows/{workflow}/revisions",
            "/workflows/main%2Fsite/revisions".to_owned(),
        ),
        (
            "/workflows/{workflow}/revisions/{revision}",
            "/workflows/main%2Fsite/revisions/2?against=1".to_owned(),
        ),
        (
            "/workflows/{workflow}/scans/{scan}",
            "/workflows/main%2Fsite/scans/probe".to_owned(),
        ),
        (
            "/workflows/{workflow}/scans/{scan}/dispatch",
            format!("/workflows/main%2Fsite/scans/probe/dispatch?job={job}"),
        ),
        ("/runners", "/runners".to_owned()),
        ("/runners/{runner}", format!("/runners/{runner}")),
        ("/sources", "/sources".to_owned()),
        ("/sources/{source}", "/sources/main".to_owned()),
        ("/artifacts", "/artifacts".to_owned()),
        ("/blobs", "/blobs?project=main".to_owned()),
        ("/projects", "/projects".to_owned()),
        ("/projects/{project}", "/projects/main".to_owned()),
        ("/tokens", "/tokens".to_owned()),
        ("/audit", "/audit".to_owned()),
        ("/settings", "/settings".to_owned()),
        ("/about", "/about".to_owned()),
    ]
}

#[test]
fn every_page_of_the_routes_has_an_address_here() {
    let routes = include_str!("../../api/src/routes.rs");
    let (_, pages) = routes.split_once("Page PageRoute {").unwrap();
    let (pages, _) = pages.split_once("\n    }").unwrap();
    let declared: BTreeSet<&str> = pages
        .lines()
        .filter_map(|line| line.split('"').nth(1))
        .collect();
    let visited = addresses("job", "former", "runner").into_iter();
    let known = visited
        .map(|(pattern, _)| pattern)
        .chain(NO_PAGES.iter().copied());
    assert_eq!(declared, known.collect::<BTreeSet<_>>());
}
