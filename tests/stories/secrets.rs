//! A var and a secret: set, used, masked, and kept over a restart. Missing ones, and secrets that cannot be opened, are
//! reported.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::support::{World, eventually};
use crate::tree;

const SECRET: &str = "correct horse: battery/staple";

const USE: &str = r#"
scans:
  use:
    on: {dispatch: {}}
    env: {OUT: '${{ vars.OUT }}', URL: '${{ vars.URL }}', KEY: '${{ secrets.KEY }}'}
    steps:
      - run: |
          echo "$URL $KEY"
          printf %s "$KEY" | base64
          printf 'split: correct ho'; sleep 0.2; printf 'rse: battery/staple\n'
          printf %s "$KEY" > "$OUT"
  lost:
    on: {dispatch: {}}
    steps: [{run: 'echo ${{ vars.URL }}'}]
"#;

/// Runs `everscan` with text on its standard input.
fn with_input(world: &World, arguments: &[&str], input: &str) -> Output {
    let mut command = world.command("everscan");
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments closes the pipe before it reads.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The files below a folder in which a text occurs.
fn holding(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut files = tree::contents(folder);
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.retain(|_, bytes| {
        let mut windows = bytes.windows(text.len());
        windows.any(|window| window == text.as_bytes())
    });
    files.into_keys().collect()
}

/// A world whose daemon has a key.
fn keyed() -> World {
    let mut world = World::new();
    world.init_repository();
    world.push(&[("use.yaml", Some(USE))]);
    let key = world.path("secret-key").display().to_string();
    let made = world.output("everscand", &["secret-key", "make", &key]);
    assert!(made.status.success(), "{}", said(&made));
    world.daemon_key = Some("secret-key".to_owned());
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    world
}

#[test]
fn a_secret_reaches_its_step_and_stays_out_of_every_file() {
    let mut world = keyed();
    let out = world.path("out").display().to_string();
    world.everscan(&["var", "set", "OUT", &out]);
    world.everscan(&["var", "set", "URL", "https://localhost"]);
    let set = with_input(
        &world,
        &["secret", "set", "KEY", "--file", "-"],
        &format!("{SECRET}\n"),
    );
    assert!(set.status.success(), "{}", said(&set));

    let job = world.dispatch("use", "use", &[]);
    let shown = world.finished(&job);
    assert_eq!(
        shown["state"],
        "succeeded",
        "{shown}\n{}",
        world.runner_log()
    );
    assert_eq!(world.log(&job), "https://localhost ***\n***\nsplit: ***\n");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), SECRET);
    // The runner removes files of the job at its end. Wait, so that the files do not change.
    world.stop_runner();
    let none = Vec::<PathBuf>::new();
    assert_eq!(holding(&world.path("state"), SECRET), none);
    assert_eq!(holding(&world.path("state"), "Y29ycmVjdCBob3Jz"), none);
    assert_eq!(holding(&world.path(".everscan"), SECRET), none);
    assert!(!world.daemon_log().contains(SECRET) && !world.runner_log().contains(SECRET));

    assert_eq!(
        world.everscan(&["var", "get", "URL"]),
        "https://localhost\n"
    );
    let listed = world.json(&["secret", "list"]);
    assert_eq!(listed["items"][0]["name"], "KEY", "{listed}");
    assert!(listed["items"][0].get("value").is_none());
    assert!(
        !world
            .everscan(&["var", "list", "--output", "json"])
            .contains("localhost")
    );

    world.stop_daemon();
    world.start_daemon();
    world.run_runner();
    let job = world.dispatch("use", "use", &[]);
    assert_eq!(
        world.finished(&job)["state"],
        "succeeded",
        "both outlive a restart"
    );
}

#[test]
fn missing_vars_and_secrets_are_named_with_a_hint() {
    let world = keyed();
    world.everscan(&["var", "set", "URL", "https://localhost"]);
    world.everscan(&["var", "delete", "URL", "--project", "main"]);
    let job = world.dispatch("use", "lost", &[]);
    let shown = world.finished(&job);
    assert_eq!(shown["state"], "failed");
    let error = shown["steps"][0]["error"].as_str().unwrap();
    assert!(
        error.contains("vars.URL is not set in project main (everscan var set URL VALUE)"),
        "{error}"
    );
    let gone = world.output("everscan", &["var", "get", "URL"]);
    assert_eq!(gone.status.code(), Some(7));
    assert!(
        said(&gone).contains("there is no var `URL`"),
        "{}",
        said(&gone)
    );

    let short = with_input(&world, &["secret", "set", "KEY", "--file", "-"], "ab\n");
    assert_eq!(short.status.code(), Some(1));
    assert!(said(&short).contains("masked"), "{}", said(&short));
    let unasked = world.output("everscan", &["secret", "set", "KEY"]);
    assert_eq!(unasked.status.code(), Some(2), "{}", said(&unasked));
}

#[test]
fn a_different_or_missing_key_is_reported() {
    let mut world = keyed();
    let out = world.path("out").display().to_string();
    world.everscan(&["var", "set", "OUT", &out]);
    world.everscan(&["var", "set", "URL", "https://localhost"]);
    let set = with_input(&world, &["secret", "set", "KEY", "--file", "-"], SECRET);
    assert!(set.status.success(), "{}", said(&set));
    world.stop_daemon();

    let other = world.path("other-key").display().to_string();
    world.output("everscand", &["secret-key", "make", &other]);
    world.daemon_key = Some("other-key".to_owned());
    world.start_daemon();
    assert!(
        world.daemon_log().contains("sealed with another key"),
        "{}",
        world.daemon_log()
    );
    let job = world.dispatch("use", "use", &[]);
    let shown = world.finished(&job);
    assert_eq!(shown["reason"]["code"], "env_failed", "{shown}");
    let message = shown["reason"]["message"].as_str().unwrap();
    assert!(
        message.contains("secrets.KEY cannot be opened"),
        "{message}"
    );
    world.stop_daemon();

    world.daemon_key = None;
    world.start_daemon();
    let refused = with_input(&world, &["secret", "set", "KEY", "--file", "-"], SECRET);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said(&refused).contains("--secret-key-file"),
        "{}",
        said(&refused)
    );
}

#[test]
fn a_new_key_takes_over_the_secrets_of_the_old_one() {
    let mut world = keyed();
    let out = world.path("out").display().to_string();
    world.everscan(&["var", "set", "OUT", &out]);
    world.everscan(&["var", "set", "URL", "https://localhost"]);
    let set = with_input(&world, &["secret", "set", "KEY", "--file", "-"], SECRET);
    assert!(set.status.success(), "{}", said(&set));
    let before = world.json(&["secret", "list"]);
    world.stop_daemon();

    let new = world.path("new-key").display().to_string();
    let rotate = world.output("everscand", &["secret-key", "rotate"]);
    assert_eq!(rotate.status.code(), Some(2), "{}", said(&rotate));
    assert!(said(&rotate).contains("`rotate` is no command"));
    world.output("everscand", &["secret-key", "make", &new]);
    world.daemon_key = Some("new-key".to_owned());
    world.daemon_config = Some("old_secret_key_files: [secret-key]\n".to_owned());
    world.start_daemon();
    eventually("the end of the old key", || {
        world
            .daemon_log()
            .contains("no secret is sealed with this old key any more")
    });
    let after = world.json(&["secret", "list"]);
    let id = world.output("everscand", &["secret-key", "id", &new]);
    assert_eq!(
        after["items"][0]["key"],
        String::from_utf8_lossy(&id.stdout).trim()
    );
    assert_eq!(after["items"][0]["key_state"], "present");
    assert_ne!(after["items"][0]["key"], before["items"][0]["key"]);
    for unchanged in ["version", "updated_at", "updated_by"] {
        assert_eq!(after["items"][0][unchanged], before["items"][0][unchanged]);
    }
    // The log line was written after the commit: a crash does not bring the old key back.
    world.kill_daemon();

    world.daemon_config = None;
    std::fs::remove_file(world.path("secret-key")).unwrap();
    world.start_daemon();
    let job = world.dispatch("use", "use", &[]);
    assert_eq!(world.finished(&job)["state"], "succeeded");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), SECRET);
}

#[test]
fn an_error_that_quotes_a_secret_reaches_the_daemon_masked() {
    let world = keyed();
    // The message names the path that is missing, which is the secret.
    let text = format!(
        "
scans:
  quote:
    on: {{dispatch: {{}}}}
    env: {{KEY: '${{{{ secrets.KEY }}}}'}}
    steps: [{{run: 'true'}}]
    artifacts: [{{name: out, paths: ['{SECRET}']}}]
"
    );
    world.push(&[("quote.yaml", Some(&text))]);
    world.sync();
    let set = with_input(&world, &["secret", "set", "KEY", "--file", "-"], SECRET);
    assert!(set.status.success(), "{}", said(&set));
    let job = world.dispatch("quote", "quote", &[]);
    let shown = world.finished(&job);
    let message = shown["reason"]["message"].as_str().unwrap();
    assert!(message.contains("***"), "{shown}");
    assert!(!shown.to_string().contains("horse"), "{shown}");
    let listed = world.everscan(&["job", "list", "--output", "json"]);
    assert!(!listed.contains("horse") && !world.daemon_log().contains("horse"));
}

/// Writes a secret in every masked form: byte by byte, over several lines, encoded, quoted. The
/// last step fails with an error that quotes it.
const FORMS: &str = r#"
scans:
  forms:
    on: {dispatch: {}}
    env: {KEY: '${{ secrets.KEY }}', TEXT: '${{ secrets.TEXT }}'}
    steps:
      - run: |
          printf %s "$KEY" | sed 's/./&\n/g' | while IFS= read -r one; do printf %s "$one"; done; echo
          printf %s "$KEY" | sed 's/./&\n/g' | while IFS= read -r one; do printf %s "$one" >&2; done
          printf %s "$TEXT"; echo
          printf 'only %s\n' "$(printf %s "$TEXT" | tail -n 1)"
          for before in '' x xx; do printf '%s%s' "$before" "$KEY" | base64; done
          printf %s "$KEY" | od -An -tx1 | tr -d ' \n'; echo
          printf %s "$KEY" | sed 's/ /%20/g; s/:/%3A/g; s|/|%2F|g'; echo
          printf '{"key": "%s"}\n' "$KEY"
          printf '%s\n' "$TEXT" | sed ':a; N; s/\n/\\n/; ta'
          printf "'%s'\n" "$KEY"
      - run: "echo ${{ {'a': 'b'}[secrets.KEY] }}"
        allow_failure: true
"#;

const KUBECONFIG: &str = "apiVersion: v1
users:
- name: ci
  user:
    token: s3cr3t-tok3n-value
done
";

const WORDS: &str = r#"
scans:
  words:
    on: {dispatch: {}}
    env: {KUBE: '${{ secrets.KUBE }}'}
    steps:
      - run: |
          echo "users: 3 online, all work is done, nothing was abandoned"
          echo "$KUBE" | sed -n 's/.*token: //p'
"#;

#[test]
fn words_of_a_kubeconfig_stay_readable_and_its_token_does_not() {
    let world = keyed();
    world.push(&[("words.yaml", Some(WORDS))]);
    world.sync();
    let arguments = ["secret", "set", "KUBE", "--file", "-"];
    let set = with_input(&world, &arguments, KUBECONFIG);
    assert!(set.status.success(), "{}", said(&set));
    assert!(said(&set).contains("lines 1-4, 6 "), "{}", said(&set));
    let tested = world.json(&["secret", "test", "KUBE"]);
    assert_eq!(tested["short_lines"].to_string(), "[1,2,3,4,6]");
    let job = world.dispatch("words", "words", &[]);
    assert_eq!(world.finished(&job)["state"], "succeeded");
    assert_eq!(
        world.log(&job),
        "users: 3 online, all work is done, nothing was abandoned\n***\n"
    );
}

#[test]
fn a_secret_is_masked_in_all_forms_and_pieces() {
    let world = keyed();
    world.push(&[("forms.yaml", Some(FORMS))]);
    world.sync();
    for (name, value) in [
        ("KEY", SECRET),
        ("TEXT", "first staple line\nsecond horse line"),
    ] {
        let set = with_input(&world, &["secret", "set", name, "--file", "-"], value);
        assert!(set.status.success(), "{}", said(&set));
    }
    let job = world.dispatch("forms", "forms", &[]);
    let shown = world.finished(&job);
    let log = world.log(&job);
    let all = format!(
        "{shown}\n{log}\n{}\n{}",
        world.daemon_log(),
        world.runner_log()
    );
    for part in [
        "horse",
        "staple",
        "aG9yc2",
        "hvcnNl",
        "ob3JzZ",
        "686f727365",
    ] {
        assert!(!all.contains(part), "{part} in {all}");
    }
    assert!(log.matches("***").count() >= 12, "{log}");
    let error = shown["steps"][1]["error"].as_str().unwrap();
    assert!(error.contains("***"), "{shown}");
}
