//! Damages a state in thousands of ways. Nothing panics, fsck reports the file whenever wrong data is served, and other
//! files stay readable.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::everything::make_every_kind_of_record;
use super::fixture::Folder;
use super::fsck::findings_at;
use super::picture::picture;
use crate::fsck::Finding;

/// Mutations per test. EVERSCAN_MUTATIONS overrides this number.
const MUTATIONS: usize = 1_000;

/// Every 25th mutated state is also opened by the daemon's code, which is slow.
const OPENED: usize = 25;

/// Repeatable random choices.
struct Choices(u64);

impl Choices {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// The files of an intact state with their content.
struct Original {
    folder: Folder,
    files: BTreeMap<String, Vec<u8>>,
    served: BTreeMap<String, Value>,
}

impl Original {
    /// A state with every kind of record, stopped cleanly or crashed.
    async fn new(is_crashed: bool) -> Self {
        let (mut folder, opened, fleet) = Folder::prepared_in_memory().await;
        make_every_kind_of_record(&opened, fleet).await;
        for _ in 0..3 {
            let job = opened.running_job(fleet, "check").await;
            opened.complete(job).await;
        }
        opened.new_job(fleet, "check").await;
        if is_crashed {
            // Wait until all commits are applied, so that every run copies the same files.
            opened.state.settled().await.unwrap();
            let crashed = folder.crashed();
            opened.close();
            folder = crashed;
        } else {
            opened.close();
        }
        let content = |name: String| {
            let bytes = fs::read(folder.root().join(&name)).unwrap();
            (name, bytes)
        };
        let files = folder.files().into_iter().map(content).collect();
        let mut original = Self {
            folder,
            files,
            served: BTreeMap::new(),
        };
        original.served = original.serve().await.unwrap();
        original.restore_all();
        original
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.root().join(name)
    }

    fn restore(&self, name: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &self.files[name]).unwrap();
    }

    fn restore_all(&self) {
        for entry in fs::read_dir(self.folder.root()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                fs::remove_dir_all(path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
        }
        for folder in ["journal", "tmp", "quarantine", "index"] {
            fs::create_dir_all(self.path(folder)).unwrap();
        }
        self.files.keys().for_each(|name| self.restore(name));
    }

    /// Everything that the daemon's code serves, or why it does not start.
    async fn serve(&mut self) -> Result<BTreeMap<String, Value>, String> {
        let opened = self.folder.try_open().await;
        let (state, closing) = opened.map_err(|error| model::error_chain(&error))?;
        let mut served = state.read(picture);
        let jobs = self.files.keys().filter_map(|name| {
            let job = name.strip_suffix("/job.json")?.rsplit('/').next()?;
            job.parse::<model::JobId>().ok()
        });
        for id in jobs {
            if let Ok(Some(job)) = state.job(id).await {
                served.insert(format!("job {id}"), serde_json::to_value(&*job).unwrap());
            }
        }
        drop(state);
        // The close may fail because of the damage. The next mutation starts from intact files.
        drop(closing.join());
        Ok(served)
    }

    fn findings(&self) -> Result<Vec<Finding>, String> {
        findings_at(self.folder.root()).map_err(|error| model::error_chain(&error))
    }
}

/// A way to damage a state.
#[derive(Debug)]
enum Mutation {
    Flip(String, usize, u8),
    Truncate(String, usize),
    Zero(String, usize, usize),
    Swap(String, String),
    Copy(String, String),
    Delete(String),
}

impl Mutation {
    fn choose(choices: &mut Choices, files: &BTreeMap<String, Vec<u8>>) -> Self {
        let names: Vec<&String> = files.keys().collect();
        let name = names[choices.below(names.len())].clone();
        let length = used(&files[&name]);
        let other = |choices: &mut Choices| names[choices.below(names.len())].clone();
        match choices.below(10) {
            0..5 => Self::Flip(name, choices.below(length), 1 << choices.below(8)),
            5 => Self::Truncate(name, choices.below(length)),
            6 => {
                let at = choices.below(length);
                Self::Zero(name, at, 1 + choices.below(64.min(length - at)))
            }
            7 => Self::Swap(name, other(choices)),
            8 => Self::Copy(name, other(choices)),
            _ => Self::Delete(name),
        }
    }

    fn names(&self) -> Vec<&str> {
        match self {
            Self::Flip(name, ..) | Self::Truncate(name, _) | Self::Zero(name, ..) => vec![name],
            Self::Delete(name) => vec![name],
            Self::Swap(one, other) | Self::Copy(one, other) => vec![one, other],
        }
    }

    fn apply(&self, original: &Original) {
        let write = |name: &str, bytes: &[u8]| fs::write(original.path(name), bytes).unwrap();
        let content = |name: &str| original.files[name].clone();
        match self {
            Self::Flip(name, at, bit) => {
                let mut bytes = content(name);
                if let Some(byte) = bytes.get_mut(*at) {
                    *byte ^= bit;
                }
                write(name, &bytes);
            }
            Self::Truncate(name, length) => {
                let mut bytes = content(name);
                bytes.truncate(*length);
                write(name, &bytes);
            }
            Self::Zero(name, at, count) => {
                let mut bytes = content(name);
                let end = (*at + *count).min(bytes.len());
                bytes[(*at).min(end)..end].fill(0);
                write(name, &bytes);
            }
            Self::Swap(one, other) => {
                write(one, &content(other));
                write(other, &content(one));
            }
            Self::Copy(from, to) => write(to, &content(from)),
            Self::Delete(name) => fs::remove_file(original.path(name)).unwrap(),
        }
    }
}

/// The length without trailing zeros. Changes in the reserved space of a segment have no effect.
fn used(bytes: &[u8]) -> usize {
    let end = bytes.iter().rposition(|byte| *byte != 0);
    end.map_or(1, |end| end + 1)
}

/// True if the file has a checksum. Log, history and ledger lines, `LOCK` and the first token have no checksum.
fn has_checksum(name: &str) -> bool {
    !(name.ends_with(".jsonl") || matches!(name, "LOCK" | "initial-admin-token"))
}

/// True if the served `entity` is read from the file `name`.
fn is_about(entity: &str, name: &str) -> bool {
    let words = entity.split([' ', '/']).skip(1);
    let mut ids = words.filter(|word| !word.is_empty());
    ids.any(|id| name.contains(id))
}

async fn check(seed: u64, is_crashed: bool) {
    let mut original = Original::new(is_crashed).await;
    let clean = original.findings().unwrap();
    let clean: Vec<_> = clean.iter().map(|one| (one.code, &one.path)).collect();
    let mutations = std::env::var("EVERSCAN_MUTATIONS");
    let mutations = mutations.map_or(MUTATIONS, |count| count.parse().unwrap());
    let mut choices = Choices(seed);
    for number in 0..mutations {
        let mutation = Mutation::choose(&mut choices, &original.files);
        mutation.apply(&original);
        let reported = match original.findings() {
            Ok(found) => {
                let is_new = |one: &&Finding| {
                    clean
                        .iter()
                        .all(|(code, path)| (*code, *path) != (one.code, &one.path))
                };
                let new: Vec<String> = found
                    .iter()
                    .filter(is_new)
                    .map(|one| format!("{one:?}"))
                    .collect();
                (!new.is_empty()).then(|| new.join("\n"))
            }
            Err(error) => Some(error),
        };
        if number % OPENED == 0 {
            let served = original.serve().await;
            compare(&original, &mutation, served, reported.as_deref());
            original.restore_all();
        } else {
            mutation
                .names()
                .into_iter()
                .for_each(|name| original.restore(name));
        }
    }
}

/// Served data is unchanged, or its damage was reported. Records unrelated to the damage are still served.
fn compare(
    original: &Original,
    mutation: &Mutation,
    served: Result<BTreeMap<String, Value>, String>,
    reported: Option<&str>,
) {
    let names = mutation.names();
    let Ok(served) = served else {
        assert!(
            reported.is_some(),
            "{mutation:?}: the daemon does not start, but fsck reports nothing"
        );
        return;
    };
    let is_store_file = names.iter().any(|name| {
        let first = name.split('/').next().unwrap_or_default();
        matches!(first, "journal" | "index" | "FORMAT" | "LOCK")
    });
    for (entity, value) in &original.served {
        if served.get(entity) == Some(value) {
            continue;
        }
        // Anybody may remove a finished job, as `state-layout.md` says.
        let is_removal = matches!(mutation, Mutation::Delete(name) if name.ends_with("/job.json"));
        assert!(
            reported.is_some() || is_removal || !names.iter().all(|name| has_checksum(name)),
            "{mutation:?}: {entity} is served with a different value, but fsck reports nothing: {:?}",
            served.get(entity)
        );
        assert!(
            is_store_file || names.iter().any(|name| is_about(entity, name)),
            "{mutation:?}: {entity} is served with a different value: {:?}; {reported:?}",
            served.get(entity)
        );
    }
}

#[tokio::test]
async fn damage_to_a_stopped_state_is_reported_and_affects_nothing_else() {
    check(1, false).await;
}

#[tokio::test]
async fn damage_to_a_crashed_state_is_reported_and_affects_nothing_else() {
    check(2, true).await;
}
