//! The jobs of a world: dispatching, waiting, logs and artifacts.

use std::collections::BTreeMap;
use std::io::Read;

use super::{PATIENCE, World};

impl World {
    /// Dispatches a scan and returns the job's id.
    pub(crate) fn dispatch(&self, workflow: &str, scan: &str, inputs: &[&str]) -> String {
        let mut arguments = vec!["scan", "dispatch", workflow, scan];
        for input in inputs {
            arguments.extend(["--input", input]);
        }
        self.everscan(&arguments).trim().to_owned()
    }

    /// A token that reads jobs.
    pub(crate) fn step_token(&self) -> String {
        let create = ["token", "create", "--name", "steps", "--scope", "job:read"];
        self.everscan(&create).trim().to_owned()
    }

    /// The newest jobs of a scan, newest first.
    pub(crate) fn jobs_of(&self, workflow: &str, scan: &str) -> Vec<String> {
        let list = ["job", "list", "--workflow", workflow, "--scan", scan];
        let jobs = self.json(&list);
        let ids = jobs["items"].as_array().unwrap().iter();
        ids.map(|job| job["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Dispatches a scan, waits until the job has succeeded, and returns it.
    pub(crate) fn succeed(&self, workflow: &str, scan: &str, inputs: &[&str]) -> String {
        let job = self.dispatch(workflow, scan, inputs);
        self.expect_success(&job);
        job
    }

    /// The newest job of a scan that another scan's success started. Waits until it has succeeded.
    pub(crate) fn followed_by(&self, workflow: &str, scan: &str) -> String {
        let job = self.jobs_of(workflow, scan).first().unwrap().clone();
        let shown = self.expect_success(&job);
        assert_eq!(shown["trigger"], "expr", "{shown}");
        job
    }

    fn expect_success(&self, job: &str) -> serde_json::Value {
        let shown = self.finished(job);
        let log = self.log(job);
        assert_eq!(
            shown["state"],
            "succeeded",
            "{shown}\n{log}\n{}",
            self.runner_log()
        );
        shown
    }

    /// Waits for a job's end and returns the job.
    pub(crate) fn finished(&self, job: &str) -> serde_json::Value {
        let patience = format!("{}s", PATIENCE.as_secs());
        let output = self.output(
            "everscan",
            &["job", "wait", "-j", job, "--timeout", &patience],
        );
        let shown = self.json(&["job", "show", "-j", job]);
        assert_ne!(
            output.status.code(),
            Some(6),
            "job {job} did not end: {shown}\ndaemon: {}\nrunner: {}",
            self.daemon_log(),
            self.runner_log()
        );
        shown
    }

    pub(crate) fn log(&self, job: &str) -> String {
        self.everscan(&["job", "logs", "-j", job])
    }

    /// The files of the zip of an artifact.
    pub(crate) fn artifact(&self, job: &str, name: &str) -> BTreeMap<String, Vec<u8>> {
        let zip = self.path(&format!("{job}-{name}.zip"));
        self.everscan(&[
            "job",
            "artifact",
            "download",
            "-j",
            job,
            "-a",
            name,
            "-o",
            &zip.display().to_string(),
        ]);
        let mut archive = zip::ZipArchive::new(std::fs::File::open(zip).unwrap()).unwrap();
        (0..archive.len())
            .map(|at| {
                let mut entry = archive.by_index(at).unwrap();
                let mut content = Vec::new();
                entry.read_to_end(&mut content).unwrap();
                (entry.name().unwrap().into_owned(), content)
            })
            .collect()
    }
}
