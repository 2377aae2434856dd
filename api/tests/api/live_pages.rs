//! The events that keep an open page up to date.

use http::Method;

use crate::browser::Browser;
use crate::service::Service;

#[tokio::test]
async fn topics_of_changed_objects_are_streamed() {
    let service = Service::start().await;
    let browser = Browser::admin(&service).await;
    let live = browser.call(Method::GET, "/live");
    let mut live = live.open(service.address).await;
    live.until(": alive").await;
    let job = service.dispatch("large").await;
    let text = live.until("event: changed").await + &live.until("\n\n").await;
    assert!(text.contains(&format!("\"job/{job}\"")), "{text}");
    assert!(text.contains("\"scan/"), "{text}");
    assert!(
        !text.contains("large\":"),
        "an event has topics alone: {text}"
    );
}

#[tokio::test]
async fn a_page_gets_an_event_when_its_log_grows() {
    let service = Service::start().await;
    let (_, worker) = service.claimed("one").await;
    let browser = Browser::admin(&service).await;
    let live = browser.call(Method::GET, "/live");
    let mut live = live.open(service.address).await;
    // The first poll of a running job sends the event, too.
    let topic = format!("data: [\"job/{}\"]", worker.id);
    live.until(&topic).await;
    let append = worker.append(0, &["a line"]);
    append.send(service.address).await.expect(200);
    live.until(&topic).await;
    let page = browser.page(&format!("/jobs/{}", worker.id)).await;
    assert!(page.contains("data-records=\"1\""), "{page}");
}
