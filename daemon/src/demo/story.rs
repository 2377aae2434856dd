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

/// Runs the whole story. Any difference from its text is an error.
pub(super) fn run(stage: &mut Stage, keep: bool) -> Result<(), DemoError> {
    push_a_workflow(stage)?;
    start_the_programs(stage)?;
    the_loop(stage)?;
    a_question(stage)?;
    let report = a_second_round(stage)?;
    a_broken_file(stage)?;
    the_result(stage, &report)?;
    if keep {
        let folder = stage.path("");
        stage.terminal.explain(&format!(
            "Everything goes on running in {} until Ctrl-C. The daemon has pages for browsers; this link signs one in.",
            folder.display()
        ))?;
        stage.everscan(&["session", "link"])?;
        stage.keep()?;
    }
    stage.terminal.explain(
        "Done. The folder of the demonstration is removed, and its programs end. `everscand demo --keep` leaves both until\n\
         Ctrl-C, to look around with a browser and with commands.\n\
         The same on your own files: `everscand up`, and README.md, “The first ten minutes”.",
    )
}

fn push_a_workflow(stage: &Stage) -> Result<(), DemoError> {
    stage.terminal.explain(
        "1. A workflow is a file in a Git repository. This one watches what a project stands on; the project's\n   \
         Cargo.lock lies beside it. `validate` checks it as the daemon will.",
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
        "3. A runner registers with a token that is good once, and waits for work. Its steps get a token that can\n   \
         only read jobs, and the repository to look at.",
    )?;
    stage.start_runner()
}

fn the_loop(stage: &Stage) -> Result<(), DemoError> {
    stage.terminal.explain(
        "4. `inventory` is due every morning. Nobody waits for that: a dispatch makes a job now, and its log is\n   \
         followed as it is written.",
    )?;
    stage.dispatch("inventory", &[])?;
    stage.terminal.explain(
        "5. Its success has started `changes`, whose expression is true. `why` has the reason, with what was read.",
    )?;
    stage.started_by_itself("changes")?;
    expect(
        &stage.everscan(&["scan", "why", WORKFLOW, "changes"])?,
        "made job",
    )?;
    stage.terminal.explain(
        "6. And the success of `changes` has started `report`. Nobody asked for either.",
    )?;
    stage.started_by_itself("report")?;
    let jobs = stage.everscan(&["job", "list", "--workflow", WORKFLOW])?;
    expect(&jobs, "expr")
}

fn a_question(stage: &Stage) -> Result<(), DemoError> {
    stage.terminal.explain(
        "7. `lookup` takes inputs: which packages have `serde` in their name? It downloads the newest list in its step.",
    )?;
    stage
        .dispatch("lookup", &["name=serde", "similar=true"])
        .map(drop)
}

fn a_second_round(stage: &Stage) -> Result<String, DemoError> {
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
        .explain("9. The newest list is news to `changes`, so the loop goes round again. The newest job of `changes` comes\n   \
         first in its list; some digits of its id name it.")?;
    let changes = stage.started_by_itself("changes")?;
    stage.jobs_of("changes")?;
    expect(
        &stage.everscan(&["job", "logs", "-j", short(&changes)])?,
        "upgraded",
    )?;
    stage.started_by_itself("report")
}

fn a_broken_file(stage: &Stage) -> Result<(), DemoError> {
    stage.terminal.explain(
        "10. A push with a mistake changes nothing: the file is refused with line and column, and the last good\n    \
         revision goes on.",
    )?;
    stage.write(PATH, &changed(FILE, MISTAKE)?)?;
    stage.push("Make a mistake")?;
    let output = stage.everscan_fails(&["source", "sync", "project", "--wait"])?;
    expect(&output, "dependency-watch.yaml:")?;
    stage.dispatch("lookup", &["name=itoa"]).map(drop)
}

fn the_result(stage: &Stage, report: &str) -> Result<(), DemoError> {
    stage.terminal.explain(
        "11. The newest job of `report` left an artifact behind. It is downloaded by name, and the content is checked\n    \
         on the way.",
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
    stage.terminal.explain("12. All of it is files.")?;
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
