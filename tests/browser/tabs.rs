//! Ten tabs of one browser share one stream, and another tab takes it over when the first is closed.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::browser::Browser;
use crate::stage::{self, is_marked, mark};
use crate::support::{World, eventually};

const TABS: usize = 10;

#[test]
fn ten_tabs_have_one_stream_and_all_of_them_are_live() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = stage::without_runner();
    browser.sign_in(&world);
    // The tab of the sign-in has its own stream. It is blank while the other tabs open.
    let first = browser.tabs().pop().unwrap();
    eventually("the first stream", || streams(&world) == 1);
    browser.open_blank();
    let tabs: Vec<_> = (0..TABS)
        .map(|_| {
            let tab = browser.new_tab();
            browser.open(&world, "/jobs");
            mark(&browser);
            tab
        })
        .collect();
    eventually("the second stream", || streams(&world) == 2);

    let jobs = ["one", "two"].map(|target| {
        let job = world.dispatch("site", "probe", &[&format!("target={target}")]);
        for tab in &tabs {
            browser.go_to_tab(tab);
            browser.appears(&format!("#job-{job}"));
        }
        job
    });
    assert_eq!(streams(&world), 2);

    // The first of these tabs has the stream.
    browser.go_to_tab(&tabs[0]);
    browser.close_tab();
    browser.go_to_tab(&tabs[1]);
    eventually("the third stream", || streams(&world) == 3);
    world.everscan(&["job", "cancel", "-j", &jobs[0]]);
    for tab in &tabs[1..] {
        browser.go_to_tab(tab);
        browser.shows(&format!("#job-{}", jobs[0]), "cancelled");
        assert!(is_marked(&browser));
    }
    assert_eq!(streams(&world), 3);
    browser.go_to_tab(&first);
}

/// How many streams of live updates the daemon has begun.
fn streams(world: &World) -> u64 {
    let mut stream = TcpStream::connect(world.address()).unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
        world.address()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let series = "everscan_requests_total{method=\"GET\",route=\"/live\",status=\"200\"} ";
    let count = answer.lines().find_map(|line| line.strip_prefix(series));
    count.map_or(0, |count| count.parse().unwrap())
}
