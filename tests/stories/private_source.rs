//! A private repository over HTTPS: the token is read again at each attempt, and stays secret.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::forge::{Forge, other_authority};
use crate::support::World;

const WORKFLOW: &str =
    "scans: { hello: { on: { dispatch: {} }, steps: [{ run: 'echo hello' }] } }\n";

/// Tokens that occur in no other text, and the text of a request of the user `bot` with each of them.
const OLD: (&str, &str) = ("glpat-5f2c9a-old", "Ym90OmdscGF0LTVmMmM5YS1vbGQ=");
const NEW: (&str, &str) = ("glpat-71be04-new", "Ym90OmdscGF0LTcxYmUwNC1uZXc=");

struct Scene {
    world: World,
    forge: Forge,
}

impl Scene {
    /// A daemon that follows a private repository. `token` is the key of the configuration that names the token.
    fn new(token: &str) -> Self {
        let mut world = World::new();
        world.init_repository();
        world.push(&[("a.yaml", Some(WORKFLOW))]);
        let forge = Forge::start(&world.path(""));
        forge.accept(OLD.0, OLD.1);
        fs::write(world.path("ca.pem"), &forge.authority).unwrap();
        let private = world.path("private.token");
        fs::write(&private, format!("{}\n", OLD.0)).unwrap();
        fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
        world.daemon_config = Some(format!(
            "sources:\n  - name: private\n    url: {}/repository/.git\n    username: bot\n    ca_file: ca.pem\n    \
             interval: 1h\n    {token}\n",
            forge.url
        ));
        world.start_daemon();
        Self { world, forge }
    }

    fn put_token(&self, text: &str) {
        let fresh = self.world.path("fresh.token");
        fs::write(&fresh, format!("{text}\n")).unwrap();
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(fresh, self.world.path("private.token")).unwrap();
    }

    /// Polls the source, and returns the condition of the fetch.
    fn look(&self) -> Condition {
        // A failed poll is also a result.
        self.world
            .output("everscan", &["source", "sync", "private", "--wait"]);
        let shown = self.world.json(&["source", "show", "private"]);
        let conditions = shown["conditions"].as_array().unwrap();
        let fetched = conditions
            .iter()
            .find(|condition| condition["type"] == "Fetched");
        let text = |key: &str| fetched.unwrap()[key].as_str().unwrap().to_owned();
        Condition {
            reason: text("reason"),
            message: text("message"),
            commit: shown["tip"]["commit"].as_str().map(str::to_owned),
            shown,
        }
    }

    fn push(&self, text: &str) -> String {
        let workflow = WORKFLOW.replace("echo hello", text);
        self.world.push(&[("a.yaml", Some(&workflow))]);
        let head = self
            .world
            .output("git", &["-C", "repository", "rev-parse", "HEAD"]);
        String::from_utf8(head.stdout).unwrap().trim().to_owned()
    }

    fn path(&self, name: &str) -> String {
        self.world.path(name).display().to_string()
    }

    /// Checks that no file has a token and that no process showed one.
    fn assert_token_is_hidden(&self) {
        let log = self.world.daemon_log();
        for (token, basic) in [OLD, NEW] {
            assert!(!log.contains(token) && !log.contains(basic), "{log}");
            for needle in [token, basic] {
                let found = holding(&self.world.path("state"), needle);
                assert_eq!(found, Vec::<String>::new(), "{needle}");
            }
        }
        let (shown, checked) = self.forge.shown();
        assert_eq!(shown, Vec::<String>::new());
        assert!(checked > 0, "no process of git was checked");
    }
}

struct Condition {
    reason: String,
    message: String,
    commit: Option<String>,
    shown: Value,
}

impl Condition {
    #[track_caller]
    fn expect(&self, reason: &str, words: &[&str]) {
        assert_eq!(self.reason, reason, "{}", self.message);
        for word in words {
            assert!(self.message.contains(word), "{word}: {}", self.message);
        }
    }
}

/// The files below a folder that hold a text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else {
            let bytes = fs::read(&path).unwrap_or_default();
            if bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
            {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn a_private_repository_is_followed_and_a_new_token_needs_no_restart() {
    let mut scene = Scene::new("token_file: private.token");
    let first = scene.push("echo first");
    let look = scene.look();
    look.expect("fetched", &[]);
    assert_eq!(look.commit.as_deref(), Some(first.as_str()));
    assert_eq!(look.shown["token_file"], scene.path("private.token"));
    assert_eq!(look.shown["ca_file"], scene.path("ca.pem"));
    assert_eq!(look.shown["username"], "bot");
    let shown = scene.world.everscan(&["source", "show", "private"]);
    assert!(shown.contains(&scene.path("private.token")), "{shown}");
    assert!(!shown.contains(OLD.0), "{shown}");

    // Now the host accepts a different token. Active workflows stay active.
    scene.forge.accept(NEW.0, NEW.1);
    let second = scene.push("echo second");
    let look = scene.look();
    look.expect("credentials_refused", &[&scene.path("private.token")]);
    assert_eq!(look.commit.as_deref(), Some(first.as_str()));
    assert!(scene.forge.refused() > 0);

    fs::remove_file(scene.world.path("private.token")).unwrap();
    let missing = format!("cannot read token_file {}", scene.path("private.token"));
    scene.look().expect("fetch_failed", &[&missing]);

    scene.put_token(NEW.0);
    let look = scene.look();
    look.expect("fetched", &[]);
    assert_eq!(look.commit.as_deref(), Some(second.as_str()));

    // A host with the certificate of another authority gets no token.
    fs::write(scene.world.path("ca.pem"), other_authority()).unwrap();
    let before = scene.forge.opened() + scene.forge.refused();
    let expected = ["the identity of the host", &scene.path("ca.pem")];
    scene.look().expect("fetch_failed", &expected);
    assert_eq!(scene.forge.opened() + scene.forge.refused(), before);
    fs::write(scene.world.path("ca.pem"), "nothing").unwrap();
    let expected = format!("ca_file {} holds no certificate", scene.path("ca.pem"));
    scene.look().expect("fetch_failed", &[&expected]);
    fs::write(scene.world.path("ca.pem"), &scene.forge.authority).unwrap();
    scene.look().expect("fetched", &[]);

    // Every user can read the file: the daemon warns, and follows the repository.
    assert!(!scene.world.daemon_log().contains("every user"));
    let open = fs::Permissions::from_mode(0o644);
    fs::set_permissions(scene.world.path("private.token"), open).unwrap();
    scene.look().expect("fetched", &[]);
    let log = scene.world.daemon_log();
    assert!(log.contains("has mode 644, so that every user"), "{log}");

    scene.world.stop_daemon();
    scene.assert_token_is_hidden();
}

#[test]
fn a_command_may_print_the_token() {
    let mut scene = Scene::new("token_command: [./token.sh, --for, private]");
    let script = scene.world.path("token.sh");
    let write = |text: &str| {
        let fresh = script.with_extension("fresh");
        fs::write(&fresh, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o700)).unwrap();
        fs::rename(&fresh, &script).unwrap();
    };
    write(&format!("echo {}; echo {0} >&2; exit 4", OLD.0));
    let failed = ["token.sh` failed (exit status: 4): ***"];
    scene.look().expect("fetch_failed", &failed);

    write("test \"$*\" = '--for private' && cat \"$(dirname \"$0\")/private.token\"");
    let look = scene.look();
    look.expect("fetched", &[]);
    assert_eq!(look.shown["token_command"], script.display().to_string());
    assert!(look.shown.get("token_file").is_none());

    scene.forge.accept(NEW.0, NEW.1);
    scene.push("echo second");
    scene
        .look()
        .expect("credentials_refused", &["token_command", "token.sh"]);
    scene.put_token(NEW.0);
    scene.look().expect("fetched", &[]);

    scene.world.stop_daemon();
    scene.assert_token_is_hidden();
}
