//! The rights of a caller are reduced while a request or a stream is open.

use std::sync::Arc;

use model::decide::{Command, Decision, Refusal, Urgency};
use model::{Change, Moment, ProjectId, Projects, Scope, Scopes, Token, TokenId, World};
use serde_json::json;

use crate::client::{Call, Raw};
use crate::faults::until_unfinished;
use crate::service::{Service, text};

/// Reduces what a token may do. No command of the daemon does this to a token, but people will change groups.
#[derive(Clone)]
struct Reduce {
    token: TokenId,
    scopes: Scopes,
    projects: Projects,
}

impl Command for Reduce {
    type Answer = ();
    const URGENCY: Urgency = Urgency::Ordinary;

    fn decide(self, world: &World, _: &mut Moment<'_>) -> Result<Decision<()>, Refusal> {
        let token = Token {
            scopes: self.scopes,
            projects: self.projects,
            ..Token::clone(world.token(self.token).unwrap())
        };
        Ok(Decision {
            changes: vec![Change::Token(Arc::new(token))],
            answer: (),
        })
    }
}

#[tokio::test]
async fn commands_are_refused_and_streams_end_when_a_scope_or_a_project_is_lost() {
    let service = Service::follow(&["main", "other"]).await;
    let project = |name: &str| ProjectId::of_source(&name.parse().unwrap());
    let all = [Scope::JobRead, Scope::BlobRead, Scope::BlobWrite];
    for (scopes, projects) in [
        (vec![Scope::BlobRead], Projects::All),
        (all.to_vec(), Projects::Only([project("other")].into())),
    ] {
        let job = service.dispatch("large").await;
        let asked = json!({"name": "ci", "scopes": ["job:read", "blob:read", "blob:write"]});
        let created = service.post("/v0/tokens", &asked).await.expect(201);
        let secret = text(&created["secret"]);
        let get = |path: String| Call::get(path).bearer(&secret);
        let open = |path| get(path).open(service.address);
        let mut log = open(format!("/v0/jobs/{job}/logs?follow=true")).await;
        let mut events = open("/v0/events".to_owned()).await;
        let head = format!(
            "PUT /v0/blobs/late?project=main HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\ncontent-length: 4\r\n\r\nAB"
        );
        let mut upload = Raw::send(service.address, head).await;
        until_unfinished(&service, 1).await;

        let reduce = Reduce {
            token: created["id"].as_str().unwrap().parse().unwrap(),
            scopes: Scopes::from_iter(scopes),
            projects,
        };
        let reduce = service.handle.state().submit(reduce);
        let held = open(format!("/v0/jobs/{job}?wait=true"));
        let (held, reduced) = tokio::join!(held, reduce);
        reduced.unwrap();
        assert!([403, 404].contains(&held.status), "{}", held.status);
        assert!(log.breaks_off().await);
        events.rest().await;
        upload.write("CD").await;
        let head = upload.head().await;
        assert!(head.starts_with("HTTP/1.1 403"), "{head}");
        until_unfinished(&service, 0).await;
        let blobs = service.get("/v0/blobs?project=main").await.expect(200);
        assert_eq!(blobs["items"], json!([]));
    }
}
