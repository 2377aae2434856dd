//! Runs the examples of the documentation: the commands unchanged, and the workflow files through `everscan validate`.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::World;

const README: &str = include_str!("../../README.md");

const NOTIFICATIONS: &str = include_str!("../../docs/notifications.md");

const TEAMS: &str = include_str!("../../docs/teams.md");

const OPERATING: &str = include_str!("../../docs/operating.md");

/// The address of the page's daemon. The test replaces it with the world's address, so that tests can run in parallel.
const ADDRESS: &str = "127.0.0.1:7411";

/// A page starts dozens of programs, one after the other. If one hangs, the test fails after this time.
const PATIENCE: Duration = Duration::from_secs(600);

#[test]
fn the_first_ten_minutes_of_the_readme_work_unchanged() {
    let world = World::new();
    let said = run(&world, README);
    for words in [
        "scans.list.has_news() = true",
        "no job: its expression is false",
        "watch: revision 2 is active",
        "workflows/watch.yaml:16:24: there is no function",
        "revision 2 goes on",
        "watch count: succeeded",
        "stopped",
    ] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    let counted = std::fs::read_to_string(world.path("empty/count.txt")).unwrap();
    assert_eq!(counted.trim(), "1");
}

#[test]
fn the_guide_with_each_program_by_hand_works_unchanged() {
    let world = World::new();
    assert!(OPERATING.contains(ADDRESS), "the page names {ADDRESS}");
    let said = run(&world, &OPERATING.replace(ADDRESS, &world.address()));
    assert!(said.contains("Hello, Ada."), "{said}");
    let zip = std::fs::File::open(world.path("empty/greeting.zip")).unwrap();
    let mut zip = zip::ZipArchive::new(zip).unwrap();
    assert_eq!(zip.by_index(0).unwrap().name().unwrap(), "greeting.txt");
}

#[test]
fn the_example_of_notifications_works_unchanged() {
    let world = World::new();
    let receiver = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = receiver.local_addr().unwrap().port().to_string();
    drop(receiver);
    let page = NOTIFICATIONS
        .replace(ADDRESS, &world.address())
        .replace("8025", &port);
    let said = run(&world, &page);
    for words in [
        "delivered: 204",
        "delivered: exit status: 0",
        "Everscan: test message",
        "Failed: first/backup dump",
        "webhook http://127.0.0.1:",
    ] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    assert!(!said.contains("a wrong signature"), "{said}");
}

#[test]
fn the_example_of_a_team_works_unchanged() {
    let world = World::new();
    let said = run(&world, &TEAMS.replace(ADDRESS, &world.address()));
    let links = said.matches("/welcome/evu_").count();
    assert_eq!(links, 3, "{said}");
    for words in [
        "owner",
        "ann   person  invited  operator",
        "no such workflow for this token",
        "deactivated",
    ] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
}

/// Runs the commands of a page in an empty folder of a world, and returns their output.
fn run(world: &World, page: &str) -> String {
    let commands = blocks(page, "sh")
        .into_iter()
        .find(|block| block.starts_with("# run by tests/stories"))
        .expect("the page has a block that is run");
    let empty = world.path("empty");
    std::fs::create_dir(&empty).unwrap();
    // After a failure, background jobs are killed without a wait.
    let script = format!("trap 'kill $(jobs -p) 2> ended || true' EXIT\n{commands}");
    let patience = PATIENCE.as_secs().to_string();
    let output = world
        .command("timeout")
        .args([&patience, "bash", "-euo", "pipefail", "-c", &script])
        .current_dir(&empty)
        // The page must not depend on this world's own Git settings.
        .env_remove("GIT_AUTHOR_NAME")
        .env_remove("GIT_AUTHOR_EMAIL")
        .env_remove("GIT_COMMITTER_NAME")
        .env_remove("GIT_COMMITTER_EMAIL")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

#[test]
fn the_readme_has_two_commands_that_set_everything_up() {
    for command in [
        "cargo run --release --bin everscand -- demo",
        "cargo test --workspace",
    ] {
        assert!(README.contains(command), "{command}");
    }
    let checked = include_str!("../../.ci/run");
    assert!(
        checked.contains("cargo test --workspace"),
        ".ci/run passes the README's tests"
    );
}

#[test]
fn workflow_files_in_the_guide_match_their_labels() {
    let world = World::new();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut checked = 0;
    for entry in std::fs::read_dir(docs).unwrap() {
        let page = entry.unwrap().path();
        if page.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&page).unwrap();
        for block in blocks(&text, "yaml") {
            let first = block.lines().next().unwrap_or_default();
            let wanted = match first.strip_prefix("# ") {
                Some("valid") => None,
                Some(words) => match words.split_once(": ") {
                    Some(("invalid" | "warning", code)) => Some(code),
                    Some(_) | None => continue,
                },
                None => continue,
            };
            checked += 1;
            let file = world.path(&format!("block-{checked}.yaml"));
            std::fs::write(&file, &block).unwrap();
            let file = file.display().to_string();
            let mut arguments = vec!["--output", "json", "validate", &file];
            // Valid examples have no warnings either.
            arguments.extend((!first.starts_with("# invalid")).then_some("--strict"));
            let output = world.output("everscan", &arguments);
            let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let place = format!("{}: {block}\n{found}", page.display());
            match wanted {
                None => assert!(output.status.success(), "{place}"),
                Some(code) => {
                    assert_eq!(output.status.code(), Some(1), "{place}");
                    let diagnostics = found.as_array().unwrap();
                    let codes: Vec<_> = diagnostics
                        .iter()
                        .map(|one| one["code"].as_str().unwrap())
                        .collect();
                    assert!(codes.contains(&code.trim()), "{place}");
                }
            }
        }
    }
    assert!(checked >= 10, "the guide shows workflow files: {checked}");
}

#[test]
fn every_test_that_shows_conformance_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("docs/evidence/conformance.md")).unwrap();
    let mut named = 0;
    // Every second piece is between backquotes.
    for (file, test) in page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|code| code.split_once(".rs::"))
    {
        let source = std::fs::read_to_string(root.join(format!("{file}.rs")));
        let source = source.unwrap_or_else(|error| panic!("{file}.rs: {error}"));
        let is_test = source.split(&format!("fn {test}()")).nth(1).is_some();
        assert!(is_test, "{file}.rs has no test {test}");
        named += 1;
    }
    assert!(named > 100, "{named}");
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        assert_eq!(row.matches(" | ").count(), 1, "{row}");
    }
}

#[test]
fn every_example_is_valid() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let output = Command::new(env!("CARGO_BIN_EXE_everscand"))
        .arg0("everscan")
        .args(["validate", "--strict"])
        .arg(examples)
        .output();
    let output = output.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// The fenced blocks of a language on a page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}");
    let mut blocks = Vec::new();
    let mut block: Option<String> = None;
    for line in page.lines() {
        match &mut block {
            None if line.trim_end() == opening => block = Some(String::new()),
            None => {}
            Some(_) if line.starts_with("```") => blocks.extend(block.take()),
            Some(text) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    blocks
}
