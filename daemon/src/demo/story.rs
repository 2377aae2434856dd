//! The story of the demonstration, in order.

use super::error::DemoError;
use super::stage::{Stage, WORKFLOW};

const FILE: &str =
    include_str!("../../../examples/dependency-watch/workflows/dependency-watch.yaml");
const LOCK_FILE: &str = include_str!("../../../examples/dependency-watch/Cargo.lock");

const PATH: &str = "workflows/dependency-watch.yaml";

/// The change of the lock file: the old text and the new one.
const UPGRADE: (&str, &str) = (
    "name = \"itoa\"\nversion = \"1.0.18\"",
    "name = \"itoa\"\nversion = \"1.0.19\"",
);

/// The change of the workflow: the old text and the new one.
const CHANGE: (&str, &str) = (
    "  # By hand: do we use",
    "  # By hand, at any time: do we use",
);
/// The mistake: the old text and the new one.
const MISTAKE: (&str, &str) = (
    "expr: scans.inventory.has_news()",
    "expr: scans.inventry.has_news()",
);

/// Runs the whole story. Any output that the story does not expect is an error.
pub(super) fn run(stage: &mut Stage, keep: bool) -> Result<(), DemoError> {
    push_a_workflow(stage)?;
    start_the_programs(stage)?;
    show_triggers(stage)?;
    dispatch_lookup(stage)?;
    let report = push_an_upgrade(stage)?;
    push_a_broken_file(stage)?;
    download_the_report(stage, &report)?;
    if keep {
        let folder = stage.path("");
        stage.terminal.explain(&format!(
            "Everything keeps running in {} until Ctrl-C. The daemon has pages for browsers: open this link to sign in.",
            folder.display()
        ))?;
        stage.everscan(&["session", "link"])?;
        stage.keep()?;
    }
    stage.terminal.explain(
        "Done. The demo stops its programs and removes its folder. With `everscand demo --keep`, both stay until Ctrl-C,\n\
         so that you can look around with a browser and with commands.\n\
         The same on your own files: `everscand up`, and README.md, “The first ten minutes”.",
    )
}

fn push_a_workflow(stage: &Stage) -> Result<(), DemoError> {
    stage.terminal.explain(
        "1. A workflow is a file in a Git repository. This one watches the dependencies of a project, whose\n   \
         Cargo.lock is in the same repository. `validate` makes the same checks as the daemon.",
    )?;
    stage.make_repository()?;
    stage.write(PATH, FILE)?;
    stage.write("Cargo.lock", LOCK_FILE)?;
    stage.everscan(&["validate", "project/workflows"])?;
    stage.push("Watch the dependencies")
}

fn start_the_programs(stage: &mut Stage) -> Result<(), DemoError> {
    stage.terminal.explain(
        "2. The daemon follows the repository. Its whole state is a folder of plain files.",
    )?;
    stage.start_daemon()?;
    stage.everscan(&["workflow", "list"])?;
    stage.terminal.explain(
        "3. A runner registers with a token that is valid once, and waits for work. Its steps get the path of\n   \
         the repository, and each job has a token of its own, for its project.",
    )?;
    stage.start_runner()
}

fn show_triggers(stage: &Stage) -> Result<(), DemoError> {
    stage.terminal.explain(
        "4. `inventory` runs every morning. We do not wait for that: a dispatch makes a job now, and we follow its log.",
    )?;
    stage.dispatch("inventory", &[])?;
    stage.terminal.explain(
        "5. Its success has started `changes`, whose expression is true. `why` shows the reason and the values.",
    )?;
    stage.started_by_itself("changes")?;
    expect(
        &stage.everscan(&["scan", "why", WORKFLOW, "changes"])?,
        "made job",
    )?;
    stage.terminal.explain(
        "6. The success of `changes` has started `report`. Nobody dispatched these two jobs.",
    )?;
    stage.started_by_itself("report")?;
    let jobs = stage.everscan(&["job", "list", "--workflow", WORKFLOW])?;
    expect(&jobs, "expr")
}

fn dispatch_lookup(stage: &Stage) -> Result<(), DemoError> {
    stage.terminal.explain(
        "7. `lookup` takes inputs: which packages have `serde` in their name? Its step downloads the newest list.",
    )?;
    stage
        .dispatch("lookup", &["name=serde", "similar=true"])
        .map(drop)
}

fn push_an_upgrade(stage: &Stage) -> Result<String, DemoError> {
    stage.terminal.explain(
        "8. A push that changes the workflow makes a new revision, active at once. This one also upgrades a package.",
    )?;
    stage.write(PATH, &changed(FILE, CHANGE)?)?;
    stage.write("Cargo.lock", &changed(LOCK_FILE, UPGRADE)?)?;
    stage.push("Upgrade itoa")?;
    stage.sync()?;
    expect(&stage.everscan(&["workflow", "show", WORKFLOW])?, "2")?;
    stage.dispatch("inventory", &[])?;
    stage
        .terminal
        .explain("9. `changes` has not seen the newest list, so it runs again. Its newest job is listed first; the last\n   \
         digits of an id are enough to name a job.")?;
    let changes = stage.started_by_itself("changes")?;
    stage.jobs_of("changes")?;
    expect(
        &stage.everscan(&["job", "logs", "-j", short(&changes)])?,
        "upgraded",
    )?;
    stage.started_by_itself("report")
}

fn push_a_broken_file(stage: &Stage) -> Result<(), DemoError> {
    stage.terminal.explain(
        "10. A push with a mistake changes nothing: the file is refused with line and column, and the last good\n    \
         revision stays active.",
    )?;
    stage.write(PATH, &changed(FILE, MISTAKE)?)?;
    stage.push("Make a mistake")?;
    let output = stage.everscan_fails(&["source", "sync", "project", "--wait"])?;
    expect(&output, "dependency-watch.yaml:")?;
    stage.dispatch("lookup", &["name=itoa"]).map(drop)
}

fn download_the_report(stage: &Stage, report: &str) -> Result<(), DemoError> {
    stage.terminal.explain(
        "11. The newest job of `report` stored an artifact. We download it by name; its checksum is verified.",
    )?;
    stage.jobs_of("report")?;
    let download = [
        "job",
        "artifact",
        "download",
        "-j",
        short(report),
        "-a",
        "report",
    ];
    stage.everscan(&[&download[..], &["--unpack", "report"]].concat())?;
    let page = stage.path("report/report.html");
    let text = std::fs::read_to_string(&page).map_err(DemoError::file(&page))?;
    expect(&text, "<td>itoa</td><td>1.0.18</td><td>1.0.19</td>")?;
    stage.terminal.explain("12. The state is plain files.")?;
    let files = stage.state_files()?;
    expect(&files.join("\n"), report)?;
    stage
        .terminal
        .command("find state -type f   (without Git's own files)")?;
    stage.terminal.output(&files.join("\n"))
}

fn short(job: &str) -> &str {
    let (_, digits) = job.split_at(job.len().saturating_sub(8));
    digits
}

/// Replaces one place of the text. If the place is missing, the example has changed and the story is wrong.
fn changed(text: &str, (from, to): (&str, &str)) -> Result<String, DemoError> {
    expect(text, from)?;
    Ok(text.replacen(from, to, 1))
}

fn expect(text: &str, part: &str) -> Result<(), DemoError> {
    if text.contains(part) {
        Ok(())
    } else {
        Err(DemoError::Unexpected(format!(
            "`{part}` is missing in:\n{text}"
        )))
    }
}
