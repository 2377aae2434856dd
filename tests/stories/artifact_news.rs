//! A scan processes the new lines in the result of another scan: no change is lost when it fails or
//! is busy, and no change is processed twice.

use std::path::PathBuf;

use crate::support::{World, eventually, lines};

/// The reader reports its begin, waits while the file `busy` exists, reads the news, and fails while `flaky` exists.
const WORKFLOW: &str = "\
scans:
  hosts:
    on:
      dispatch:
        inputs:
          list: {}
    env:
      LIST: ${{ inputs.list }}
    steps:
      - run: printf '%s\\n' $LIST > hosts.txt
    artifacts:
      - name: hosts
        paths: [hosts.txt]
  reader:
    on:
      expr: scans.hosts.has_news('hosts')
    steps:
      - run: |
          echo \"$SERVICE_JOB_ID\" >> ~/begun
          while [ -e ~/busy ]; do sleep 0.01; done
          everscan job artifact news --scan hosts -a hosts > new.txt
          [ ! -e ~/flaky ]
          cat new.txt >> ~/worked
";

struct Scene {
    world: World,
    /// The number of jobs of the reader.
    jobs: usize,
}

impl Scene {
    fn new() -> Self {
        let mut world = World::new();
        world.init_repository();
        world.push(&[("net.yaml", Some(WORKFLOW))]);
        world.start_daemon();
        world.sync();
        world.start_runner(2);
        Self { world, jobs: 0 }
    }

    fn list(&self, hosts: &str) {
        let list = format!("list={hosts}");
        self.world.succeed("net", "hosts", &[&list]);
    }

    /// Waits for the end of the next job of the reader, and returns its id.
    fn reads(&mut self, state: &str) -> String {
        self.jobs += 1;
        let job = self.newest();
        assert_eq!(
            self.world.finished(&job)["state"],
            state,
            "{}",
            self.world.log(&job)
        );
        job
    }

    /// The newest job of the reader, once there are this many.
    fn newest(&self) -> String {
        let mut jobs = Vec::new();
        eventually("the next job of the reader", || {
            jobs = self.world.jobs_of("net", "reader");
            jobs.len() >= self.jobs
        });
        assert_eq!(jobs.len(), self.jobs, "{jobs:?}");
        jobs.swap_remove(0)
    }

    fn worked(&self) -> Vec<String> {
        lines(&self.file("worked"))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.world.path(name)
    }
}

#[test]
fn missed_results_are_news_until_the_reader_has_processed_them() {
    let mut scene = Scene::new();
    scene.list("one two");
    scene.reads("succeeded");
    assert_eq!(scene.worked(), ["one", "two"]);
    scene.list("two one");
    assert_eq!(scene.reads("succeeded"), scene.newest());
    assert_eq!(scene.worked(), ["one", "two"], "only the order has changed");

    // The reader fails once. The next lists are the same.
    std::fs::write(scene.file("flaky"), "").unwrap();
    scene.list("one two three");
    scene.reads("failed");
    std::fs::remove_file(scene.file("flaky")).unwrap();
    scene.list("one two three");
    scene.reads("succeeded");
    assert_eq!(scene.worked(), ["one", "two", "three"]);
    scene.list("one two three");

    // The processed results outlive the daemon.
    scene.world.kill_daemon();
    scene.world.start_daemon();
    scene.list("one two three");

    // The reader is busy with `four` while `five` comes twice. Its step asks late, and gets the
    // results that its job has read.
    std::fs::write(scene.file("busy"), "").unwrap();
    scene.list("one two three four");
    scene.jobs += 1;
    let busy = scene.newest();
    eventually("the beginning of its step", || {
        lines(&scene.file("begun")).contains(&busy)
    });
    scene.list("one two three four five");
    scene.list("one two three four five");
    std::fs::remove_file(scene.file("busy")).unwrap();
    assert_eq!(scene.world.finished(&busy)["state"], "succeeded");
    let next = scene.reads("succeeded");
    assert_eq!(scene.worked(), ["one", "two", "three", "four", "five"]);
    for (job, news) in [(&busy, "four\n"), (&next, "five\n")] {
        let ask = [
            "job", "artifact", "news", job, "--scan", "hosts", "-a", "hosts",
        ];
        assert_eq!(
            scene.world.everscan(&ask),
            news,
            "people get the same news later"
        );
    }

    // By hand, without news.
    scene.world.succeed("net", "reader", &[]);
    scene.jobs += 1;
    scene.list("one two three four five");
    assert_eq!(scene.world.jobs_of("net", "reader").len(), scene.jobs);
    assert_eq!(scene.worked().len(), 5);
}

#[test]
fn if_the_processed_files_were_removed_all_lines_are_news() {
    let mut scene = Scene::new();
    scene.list("one two");
    scene.reads("succeeded");
    let processed = scene.world.jobs_of("net", "hosts").swap_remove(0);
    scene
        .world
        .everscan(&["job", "artifact", "delete", &processed, "-a", "hosts"]);
    scene.list("one two three");
    let job = scene.reads("succeeded");
    assert_eq!(scene.worked(), ["one", "two", "one", "two", "three"]);
    let log = scene.world.log(&job);
    assert!(
        log.contains("warning: what was processed is gone, so every line counts as news"),
        "{log}"
    );
}
