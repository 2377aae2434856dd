//! Slack, Discord and ntfy: their limits, and texts that try to do more than be read.

use super::sink::{Request, sink, status};
use super::*;

/// Where a provider gets the message, if the sink has this address, and the secret of the channel.
type Provider = fn(String) -> (Target, String);

async fn sent(provider: Provider, message: &Message) -> Request {
    let (url, taken) = sink(status("200 OK"), "").await;
    let (target, secret) = provider(url);
    let outcome = send(&target, secret.as_str(), message).await;
    assert_eq!(outcome, delivered("200"));
    taken.await.unwrap()
}

fn slack(url: String) -> (Target, String) {
    (Target::Slack, url)
}

fn discord(url: String) -> (Target, String) {
    (Target::Discord, url)
}

fn ntfy(url: String) -> (Target, String) {
    let target = Target::Ntfy {
        server: url,
        topic: "backups".to_owned(),
        ca: None,
    };
    (target, "tk_hush".to_owned())
}

fn with_text(title: &str, text: String) -> Message {
    Message {
        title: title.to_owned(),
        text,
        ..message()
    }
}

/// Texts whose parts have one to four bytes, escapes, and ends of lines.
fn long_texts() -> [String; 5] {
    ["a", "<&>", "é€", "🔴", "\"\\\n\t"].map(|part| part.repeat(50_000))
}

#[tokio::test]
async fn slack_gets_one_text() {
    let request = sent(slack, &message()).await;
    let body = request.json();
    assert_eq!(body["mrkdwn"], false);
    assert_eq!(
        body["text"],
        "🔴 `nightly` fails\nStep `dump` ended with code 1.\nno space left\nhttps://everscan.example.org/jobs/7?a=1&amp;b=2"
    );
}

#[tokio::test]
async fn discord_shows_a_text_as_it_is() {
    let text = "[x](https://evil) __init__.py\nhttps://a.example/b_c?d=1";
    let request = sent(discord, &with_text("a_b *c*", text.to_owned())).await;
    let link = message().link.unwrap();
    assert_eq!(
        request.json()["content"],
        format!(
            "**🔴 a\\_b \\*c\\***\n\\[x\\]\\(https://evil\\) \\_\\_init\\_\\_.py\n\
             https://a.example/b_c?d=1\n{link}"
        )
    );
}

#[tokio::test]
async fn no_text_mentions_anybody() {
    let attack = "<!channel> <!here|x> <@U123> <http://evil.example|ok> @everyone @here <@&1>";
    let request = sent(slack, &with_text(attack, attack.to_owned())).await;
    let body = request.json();
    let text = body["text"].as_str().unwrap();
    assert!(!text.contains(['<', '>']), "{text}");
    assert_eq!(body["unfurl_links"], false);
    let request = sent(discord, &with_text(attack, attack.to_owned())).await;
    assert_eq!(request.json()["allowed_mentions"], json!({ "parse": [] }));
}

#[tokio::test]
async fn long_texts_are_cut_to_what_the_provider_takes() {
    for text in long_texts() {
        let title = "t".repeat(5_000);
        let long = with_text(&title, text);
        let body = sent(slack, &long).await.json();
        let shown = body["text"].as_str().unwrap();
        let length = shown.chars().count();
        assert!((39_800..=40_000).contains(&length), "{length}");
        assert!(
            shown.contains("characters left out)\nhttps://"),
            "link and note"
        );
        let body = sent(discord, &long).await.json();
        let shown = body["content"].as_str().unwrap();
        let length = shown.encode_utf16().count();
        assert!((1_900..=2_000).contains(&length), "{length}");
        assert!(
            shown.contains("characters left out)\nhttps://"),
            "link and note"
        );
        let request = sent(ntfy, &long).await;
        let body = request.json();
        let shown = body["message"].as_str().unwrap();
        assert!(shown.len() <= 4_096, "{}", shown.len());
        assert!(request.body.len() <= 8_192, "{}", request.body.len());
        assert!(
            shown.contains("characters left out)\nhttps://"),
            "link and note"
        );
        assert!(body["title"].as_str().unwrap().len() <= 250);
    }
}

#[tokio::test]
async fn ntfy_gets_json_whatever_the_title_is() {
    let title = "é \"nightly\"\r\nX-Evil: 1\u{202e}";
    let request = sent(ntfy, &with_text(title, "down".to_owned())).await;
    assert_eq!(request.header("authorization"), Some("Bearer tk_hush"));
    assert_eq!(request.header("x-evil"), None);
    let body = request.json();
    assert_eq!(body["topic"], "backups");
    assert_eq!(body["title"], "é \"nightly\" X-Evil: 1");
    assert_eq!(body["priority"], 4);
    assert_eq!(body["click"], "https://everscan.example.org/jobs/7?a=1&b=2");
}

#[tokio::test]
async fn a_repeated_message_says_so() {
    let again = Message {
        is_repeated: true,
        ..message()
    };
    for request in [
        sent(slack, &again).await,
        sent(discord, &again).await,
        sent(ntfy, &again).await,
    ] {
        assert!(request.body.contains("Possibly repeated"), "{request:?}");
    }
}

#[tokio::test]
async fn a_secret_url_is_in_no_reason() {
    let url = "http://10.0.0.1/services/hush";
    let reason = refused(send(&Target::Slack, url, &message()).await);
    assert!(!reason.contains("hush"), "{reason}");
    let reason = refused(send(&Target::Slack, None::<&str>, &message()).await);
    assert_eq!(reason, "the channel has no secret; set it again");
}
