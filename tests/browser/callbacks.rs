//! A request to a callback server appears on its page, as text.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::browser::Browser;
use crate::stage::{is_marked, mark};
use crate::support::port::Port;
use crate::support::{World, eventually};

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

    fn request(&self, name: &str, line: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.http.number())).unwrap();
        let head =
            format!("{line}\r\nHost: {name}\r\nX-Note: <b onclick=alert(1)>bold</b>\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
}

#[test]
fn a_hit_appears_on_the_page_of_its_server_as_text() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let mut world = World::new();
    world.init_repository();
    world.push(&[]);
    let hearing = Hearing::configure(&mut world);
    world.start_daemon();
    world.sync();
    let page = hearing.hear(&world);
    browser.sign_in(&world);
    browser.open(&world, "/projects/main");
    browser.press("oast");
    browser.arrives(&page);
    browser.shows("#interactions", "/first");
    mark(&browser);
    let server = world.json(&["callback", "show", "oast"]);
    let name = server["names"][0].as_str().unwrap();
    hearing.request(name, "PUT /second?<script> HTTP/1.1");
    browser.shows("#interactions", "/second?<script>");
    assert!(is_marked(&browser), "the page was not loaded again");

    browser.click("#interactions tbody a");
    browser.shows("main pre", "X-Note: <b onclick=alert(1)>bold</b>");
    assert_eq!(browser.count("main pre b"), 0);
    assert_eq!(browser.count("main pre a"), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());

    browser.open(&world, &page);
    browser.choose("#filter-type", "dns");
    browser.press("Filter");
    browser.shows("#interactions", "Nothing matches.");
}
