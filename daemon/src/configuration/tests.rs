use reconciler::{Access, Location, TokenSource};

use super::source::folder;
use super::*;

fn options(config: Option<PathBuf>, sources: &[&str]) -> RunOptions {
    RunOptions {
        config,
        state_dir: None,
        allow_network_state: false,
        listen: None,
        insecure_http: false,
        tls_cert: None,
        tls_key: None,
        trust_proxy: Vec::new(),
        base_path: None,
        local_from: Vec::new(),
        secret_key_file: None,
        old_secret_key_files: Vec::new(),
        log_form: LogForm::Text,
        sources: sources.iter().map(|&source| source.to_owned()).collect(),
    }
}

fn resolve(text: &str, sources: &[&str]) -> Result<Settings, ConfigurationError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("everscand.yaml");
    std::fs::write(&path, text).unwrap();
    Settings::resolve(options(Some(path), sources))
}

#[test]
fn settings_come_from_the_file_and_the_flags() {
    let text = "state: st\nallow_network_state: true\nlisten: 127.0.0.1:9\ninsecure_http: true\nsources:\n  - {name: a, url: repo, ref: main, path: w, interval: 5m}\n";
    let settings = resolve(text, &["b=/srv/b.git"]).unwrap();
    assert!(settings.daemon.state.ends_with("st") && settings.daemon.state.is_absolute());
    assert!(settings.daemon.allow_network_state && settings.insecure_http);
    assert_eq!(settings.listen.port(), 9);
    let [a, b] = settings.daemon.sources.as_slice() else {
        panic!("{:?}", settings.daemon.sources)
    };
    assert_eq!(
        (a.folder.as_str(), a.interval),
        ("w", Duration::from_secs(300))
    );
    assert!(
        matches!(&a.location, Location::Local(path) if path.is_absolute() && path.ends_with("repo"))
    );
    assert_eq!((b.folder.as_str(), b.interval), ("workflows", INTERVAL));
}

#[test]
fn notifications_have_a_link_programs_and_addresses() {
    let text = "state: s\nurl: https://everscan.example.org/ci/\noutbound: {allow: [10.0.0.0/8]}\nnotify_commands:\n  \
                page: {program: bin/page, args: [-v], timeout: 5s}\n  plain: {program: /bin/true}\n";
    let delivery = resolve(text, &[]).unwrap().daemon.delivery;
    assert_eq!(
        delivery.url.as_deref(),
        Some("https://everscan.example.org/ci")
    );
    let [page, plain] = ["page", "plain"].map(|name| &delivery.commands[name]);
    assert!(page.program.is_absolute() && page.program.ends_with("bin/page"));
    assert_eq!(
        (page.args.as_slice(), page.timeout),
        (&["-v".to_owned()][..], Duration::from_secs(5))
    );
    assert_eq!(
        (plain.args.len(), plain.timeout),
        (0, Duration::from_secs(30))
    );
}

#[test]
fn a_proxy_and_a_bridge_are_named_by_flags_or_the_file() {
    let text =
        "state: s\ntrust_proxy: [10.0.0.1]\nlocal_from: [172.17.0.0/16]\nbase_path: /scans/\n";
    let settings = resolve(text, &[]).unwrap();
    assert_eq!(settings.trusted_proxies, ["10.0.0.1".parse().unwrap()]);
    assert_eq!(settings.local_from, ["172.17.0.0/16".parse().unwrap()]);
    assert_eq!(settings.base_path, "/scans".parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("everscand.yaml");
    std::fs::write(&path, text).unwrap();
    let flags = RunOptions {
        trust_proxy: vec!["10.0.0.0/8".parse().unwrap()],
        base_path: Some("/".parse().unwrap()),
        local_from: vec!["::1".parse().unwrap()],
        ..options(Some(path), &[])
    };
    let settings = Settings::resolve(flags).unwrap();
    assert_eq!(settings.trusted_proxies, ["10.0.0.0/8".parse().unwrap()]);
    assert_eq!(settings.local_from, ["::1".parse().unwrap()]);
    assert_eq!(settings.base_path, "".parse().unwrap());
}

#[test]
fn a_private_repository_names_its_token_and_authority() {
    let url = "https://forge.example/a.git";
    let access = |keys: &str| {
        let text = format!("state: s\nsources: [{{name: a, url: '{url}', {keys}}}]\n");
        resolve(&text, &[]).map(|settings| settings.daemon.sources[0].access.clone())
    };
    let read = access("token_file: t, ca_file: /etc/ca.pem").unwrap();
    let login = read.login.unwrap();
    assert_eq!(login.username.as_str(), "x-access-token");
    assert!(
        matches!(&login.token, TokenSource::File(path) if path.is_absolute() && path.ends_with("t"))
    );
    assert_eq!(read.ca_file.as_deref(), Some(Path::new("/etc/ca.pem")));

    let read = access("token_command: [gh, auth, token], username: bot").unwrap();
    let login = read.login.unwrap();
    assert_eq!(login.username.as_str(), "bot");
    let command = TokenSource::Command {
        program: "gh".to_owned(),
        arguments: vec!["auth".to_owned(), "token".to_owned()],
    };
    assert_eq!(login.token, command);
    let TokenSource::Command { program, .. } =
        access("token_command: [./t]").unwrap().login.unwrap().token
    else {
        panic!("the source must be a command")
    };
    assert!(Path::new(&program).is_absolute(), "{program}");
    assert_eq!(access("").unwrap(), Access::default());
}

#[test]
fn a_token_in_the_state_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().display();
    let token = folder.path().join("token");
    std::fs::write(&token, "t0ken").unwrap();
    let text = format!(
        "state: {state}\nsources: [{{name: a, url: 'https://h/a', token_file: {}}}]\n",
        token.display()
    );
    let error = resolve(&text, &[]).unwrap_err().to_string();
    assert!(error.contains("lies in the state folder"), "{error}");
}

#[test]
fn the_retention_of_a_workflow_replaces_the_default() {
    let text = "state: s\nretention:\n  jobs: 100\n  age: 30d\n  workflows:\n    a/deep/b: {bytes: 2KiB}\n    a/c: {}\n";
    let retention = resolve(text, &[]).unwrap().daemon.retention;
    let id = |name| model::WorkflowId::derive(&"a".parse().unwrap(), name);
    let other = retention.of(id("other"));
    assert_eq!((other.jobs, other.bytes), (Some(100), None));
    assert_eq!(other.age.map(|age| age.num_days()), Some(30));
    let named = retention.of(id("deep/b"));
    assert_eq!(
        (named.jobs, named.age, named.bytes),
        (None, None, Some(2_048))
    );
    assert!(retention.of(id("c")).keeps_everything());
    let none = resolve("state: s\n", &[]).unwrap().daemon.retention;
    assert!(none.of(id("c")).keeps_everything());
}

#[test]
fn a_log_may_grow_to_256_mib_by_default() {
    for (line, bytes) in [
        ("", 256 << 20),
        ("log_limit: 1GiB\n", 1 << 30),
        ("log_limit: 9\n", 9),
    ] {
        let settings = resolve(&format!("state: s\n{line}"), &[]).unwrap();
        assert_eq!(settings.daemon.log_limit, bytes);
    }
}

#[test]
fn blobs_have_no_quota_unless_one_is_set() {
    for (line, bytes) in [("", None), ("blob_quota: 1GiB\n", Some(1 << 30))] {
        let settings = resolve(&format!("state: s\n{line}"), &[]).unwrap();
        assert_eq!(settings.daemon.blobs.quota, bytes);
    }
}

#[test]
fn the_cycle_pause_is_1s_by_default_and_can_be_set() {
    for (line, milliseconds) in [
        ("", 1_000),
        ("cycle_pause: 0\n", 0),
        ("cycle_pause: 5s\n", 5_000),
        ("cycle_pause: 1h\n", 3_600_000),
    ] {
        let settings = resolve(&format!("state: s\n{line}"), &[]).unwrap();
        assert_eq!(
            settings.daemon.cycle_pause.num_milliseconds(),
            milliseconds,
            "{line}"
        );
    }
}

#[test]
fn backups_are_expected_only_if_the_file_says_so() {
    for (line, hours) in [("", None), ("backup_within: 26h\n", Some(26))] {
        let settings = resolve(&format!("state: s\n{line}"), &[]).unwrap();
        let within = settings.daemon.backup_within;
        assert_eq!(within.map(|within| within.num_hours()), hours);
    }
}

#[test]
fn old_versions_of_blobs_are_kept_per_folder() {
    let kept = |line: &str, path: &str| {
        let settings = resolve(&format!("state: s\n{line}"), &[]).unwrap();
        settings.daemon.blobs.versions.of(&path.parse().unwrap())
    };
    assert_eq!(kept("", "results/a"), 0);
    let line = "blob_versions: {results/: 5, archive/2026: 20}\n";
    assert_eq!(kept(line, "results/deep/a"), 5);
    assert_eq!(kept(line, "archive/2026/a"), 20);
    assert_eq!(kept(line, "archive/a"), 0);
    assert_eq!(kept("blob_versions: {/: 1}\n", "a"), 1);
}

#[test]
fn the_current_key_and_the_old_keys_must_differ() {
    let folder = tempfile::tempdir().unwrap();
    let keys = ["new", "old", "older"].map(|name| folder.path().join(name));
    for key in &keys {
        secret_key::make(key).unwrap();
    }
    let [new, old, older] = keys.map(|key| key.display().to_string());
    let text =
        format!("state: s\nsecret_key_file: {new}\nold_secret_key_files: [{old}, {older}]\n");
    let read = resolve(&text, &[]).unwrap().daemon.secret_keys.unwrap();
    let state = Path::new("s");
    let key = |path: &str| secret_key::read(Path::new(path), state).unwrap();
    assert_eq!(*read.current(), key(&new));
    assert_eq!(read.old(), [key(&old), key(&older)]);
    for (text, expected) in [
        (format!("old_secret_key_files: [{old}]"), "no current one"),
        (
            format!("secret_key_file: {old}\nold_secret_key_files: [{old}]"),
            "holds the current key",
        ),
        (
            format!("secret_key_file: {old}\nold_secret_key_files: [lost]"),
            "there is no secret key file",
        ),
    ] {
        let error = resolve(&format!("state: s\n{text}\n"), &[]).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_folder_is_a_path_of_names() {
    for (text, expected) in [
        ("workflows", "workflows"),
        ("./a//b/", "a/b"),
        (".", ""),
        ("a..b", "a..b"),
    ] {
        assert_eq!(folder(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn each_invalid_setting_is_named() {
    for (text, sources, expected) in [
        ("listen: 127.0.0.1:1\n", &[][..], "no state folder"),
        ("state: s\nstat: x\n", &[], "stat"),
        ("state: s\nsources: [{name: 'a b', url: x}]\n", &[], "a b"),
        (
            "state: s\nsources: [{name: a, url: x, interval: never}]\n",
            &[],
            "interval",
        ),
        (
            "state: s\nsources: [{name: a, url: x, interval: 0s}]\n",
            &[],
            "interval",
        ),
        (
            "state: s\nsources: [{name: a, url: 'ext::sh'}]\n",
            &[],
            "ext",
        ),
        (
            "state: s\nsources: [{name: a, url: x}]\n",
            &["a=y"],
            "two sources are named `a`",
        ),
        ("state: s\n", &["nothing"], "NAME=URL"),
        (
            "state: s\nsecret_key_file: missing\n",
            &[],
            "everscand secret-key make",
        ),
        (
            "state: s\nsources: [{name: a, url: x, path: ../y}]\n",
            &[],
            "`../y` is not a folder inside a repository",
        ),
        (
            "state: s\nsources: [{name: a, url: x, path: /y}]\n",
            &[],
            "`/y` is not a folder inside a repository",
        ),
        (
            "state: s\nsources: [{name: a, url: 'https://u:p@h/a'}]\n",
            &[],
            "holds a credential\nhint: remove it, and name the token of an https:// source with `token_file`",
        ),
        (
            "state: s\nsources: [{name: a, url: 'ssh://h/a', token_file: t}]\n",
            &[],
            "token_file: is for https:// only",
        ),
        (
            "state: s\nsources: [{name: a, url: 'http://127.0.0.1/a', token_command: [t]}]\n",
            &[],
            "token_command: is for https:// only",
        ),
        (
            "state: s\nsources: [{name: a, url: x, ca_file: t}]\n",
            &[],
            "ca_file: is for https:// only",
        ),
        (
            "state: s\nsources: [{name: a, url: 'https://h/a', token_file: t, token_command: [t]}]\n",
            &[],
            "name one of them",
        ),
        (
            "state: s\nsources: [{name: a, url: 'https://h/a', token_command: []}]\n",
            &[],
            "names no program",
        ),
        (
            "state: s\nsources: [{name: a, url: 'https://h/a', username: u}]\n",
            &[],
            "there is no token for it",
        ),
        (
            "state: s\nsources: [{name: a, url: 'https://h/a', token_file: t, username: 'a:b'}]\n",
            &[],
            "without `:`",
        ),
        (
            "state: s\nlisten: localhost:7\n",
            &[],
            "as in 127.0.0.1:7411",
        ),
        ("state: [\n", &[], "line 1, column 8"),
        (
            "state: s\ncycle_pause: 5\n",
            &[],
            "cycle_pause: `5` needs a unit",
        ),
        ("state: s\ncycle_pause: 2h\n", &[], "at most 1h"),
        ("state: s\nbackup_within: daily\n", &[], "backup_within"),
        (
            "state: s\nheartbeat: {url: 'hc.example.org/x'}\n",
            &[],
            "heartbeat: url: the URL is unusable",
        ),
        (
            "state: s\nheartbeat: {url: 'https://hc.example.org/x', every: often}\n",
            &[],
            "heartbeat: every: ",
        ),
        (
            "state: s\noutbound: {allow: [everything]}\n",
            &[],
            "outbound.allow: `everything`: it is neither",
        ),
        (
            "state: s\nurl: everscan.example.org\n",
            &[],
            "url: the URL is unusable",
        ),
        (
            "state: s\nnotify_commands: {page: {program: p, timeout: soon}}\n",
            &[],
            "notify_commands: `page`: timeout: ",
        ),
        (
            "state: s\nnotify_commands: {page: {args: [a]}}\n",
            &[],
            "missing field `program`",
        ),
        (
            "state: s\nbase_path: /jobs\n",
            &[],
            "base_path: `/jobs` begins",
        ),
        (
            "state: s\nbase_path: scans\n",
            &[],
            "no path such as /everscan",
        ),
        (
            "state: s\nlocal_from: [10.0.0.0/33]\n",
            &[],
            "local_from: `10.0",
        ),
        (
            "state: s\ntrust_proxy: [nginx]\n",
            &[],
            "trust_proxy: `nginx`",
        ),
        ("state: s\nlog_limit: 0\n", &[], "log_limit: must be more"),
        ("state: s\nlog_limit: 500KB\n", &[], "log_limit: `500KB`"),
        ("state: s\nlog_limit: [1]\n", &[], "must be a size"),
        ("state: s\nblob_quota: 5MB\n", &[], "blob_quota: `5MB`"),
        (
            "state: s\nblob_versions: {a: 21}\n",
            &[],
            "blob_versions: `a` may keep at most 20",
        ),
        (
            "state: s\nblob_versions: {a/../b: 1}\n",
            &[],
            "`a/../b` is no folder",
        ),
        (
            "state: s\nblob_versions: {a: 1, a/: 2}\n",
            &[],
            "is named twice",
        ),
        ("state: s\nretention: {job: 3}\n", &[], "job"),
        ("state: s\nretention: {age: soon}\n", &[], "retention: age"),
        ("state: s\nretention: {bytes: 1 GB}\n", &[], "10GiB"),
        (
            "state: s\nretention: {workflows: {nightly: {jobs: 1}}}\n",
            &[],
            "SOURCE/NAME",
        ),
        (
            "state: s\nretention: {workflows: {a/b: {bytes: -1}}}\n",
            &[],
            "must be a size",
        ),
    ] {
        let error = resolve(text, sources).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(!error.contains("error:"), "{text}: {error}");
    }
}
