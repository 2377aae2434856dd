//! A second process with the registration of a running runner.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{World, eventually, lines};

/// A runner process that ends with the test.
struct Copy(Child);

impl Copy {
    /// Copies the runner's folder to another home, as to another machine, and runs it there.
    fn run(world: &World) -> Self {
        let home = world.path("copy");
        std::fs::create_dir(&home).unwrap();
        let copied = Command::new("cp")
            .arg("-r")
            .arg(world.path(".everscan"))
            .arg(&home)
            .status();
        assert!(copied.unwrap().success());
        let configuration = home.join(".everscan/runner/story/config.json");
        let mut content: Value = read(&configuration);
        content["workdir"] = home.join("work").display().to_string().into();
        std::fs::write(&configuration, content.to_string()).unwrap();
        let child = world
            .command("everscan-runner")
            .args(["run", "--name", "story"])
            .env("HOME", &home)
            .env_remove("SERVICE_TOKEN")
            .stdout(Stdio::null())
            .stderr(File::create(world.path("copy.log")).unwrap())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_second_process_is_refused_until_the_first_process_ends() {
    let mut world = World::new();
    let (ran, gate) = (world.path("ran"), world.path("gate"));
    let text = format!(
        "scans:\n  wait:\n    on:\n      dispatch: {{}}\n    steps:\n      - run: |\n          echo \"$HOME\" >> {}\n          while [ ! -e {} ]; do sleep 0.02; done\n",
        ran.display(),
        gate.display(),
    );
    world.init_repository();
    world.push(&[("wait.yaml", Some(&text))]);
    world.start_daemon();
    world.sync();
    world.start_runner(1);
    let job = world.dispatch("wait", "wait", &[]);
    eventually("the step", || lines(&ran).len() == 1);

    let again = world.output("everscan-runner", &["run", "--name", "story"]);
    assert_eq!(again.status.code(), Some(1));
    let printed = String::from_utf8(again.stderr).unwrap();
    assert!(printed.contains("is running already"), "{printed}");
    assert!(printed.contains("hint: "), "{printed}");

    let _copy = Copy::run(&world);
    let printed = || lines(&world.path("copy.log")).join("\n");
    eventually("the word about the first process", || {
        printed().contains("another process works under the name of this runner")
    });
    std::fs::write(&gate, "").unwrap();
    let shown = world.finished(&job);
    assert_eq!(shown["state"], "succeeded", "{shown}\n{}", printed());

    // The first process ends, and the second process takes its place.
    world.stop_runner();
    let job = world.dispatch("wait", "wait", &[]);
    assert_eq!(world.finished(&job)["state"], "succeeded");
    let homes = [world.path(""), world.path("copy")];
    let ran: Vec<PathBuf> = lines(&ran).into_iter().map(PathBuf::from).collect();
    assert_eq!(ran, homes);
}
