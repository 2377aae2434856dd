//! The subjects whose conditions may follow from a change.

use std::collections::BTreeSet;
use std::sync::Arc;

use workflow::notify::NotifyName;

use super::scans_of;
use crate::callback::Callback;
use crate::change::Change;
use crate::channel::Channel;
use crate::condition::Subject;
use crate::rules::ProjectRules;
use crate::world::World;

pub(crate) fn touched(world: &World, change: &Change, subjects: &mut BTreeSet<Subject>) {
    match change {
        Change::Source(source) => {
            subjects.insert(Subject::Source {
                source: source.name.clone(),
            });
        }
        Change::Workflow(record) => {
            subjects.insert(Subject::Workflow {
                workflow: record.id,
            });
            subjects.insert(Subject::Project {
                project: record.project,
            });
            // A new revision may have other scans than the revision before.
            let before = world.workflow(record.id);
            subjects.extend(before.iter().flat_map(scans_of));
        }
        Change::Revision(revision, _) => {
            let workflow = revision.record.workflow.id;
            let scans = revision.definition.scans();
            subjects.extend(scans.map(|scan| Subject::Scan {
                workflow,
                scan: scan.name.clone(),
            }));
        }
        Change::Suspension(suspension) => {
            let workflow = suspension.workflow.id;
            subjects.insert(match suspension.scan.clone() {
                Some(scan) => Subject::Scan { workflow, scan },
                None => Subject::Workflow { workflow },
            });
        }
        Change::Head(head) => {
            subjects.insert(Subject::from(&head.key()));
        }
        Change::Job(job) => {
            subjects.insert(Subject::from(&job.scan_key()));
        }
        Change::Vars(vars) => {
            subjects.insert(Subject::Project {
                project: vars.project,
            });
        }
        Change::Secrets(secrets) => {
            subjects.insert(Subject::Project {
                project: secrets.project,
            });
        }
        Change::Rules(rules) => {
            let project = |project| Subject::Project { project };
            subjects.extend(rules.project.map(project));
        }
        Change::RunnerRemoved(runner) => {
            subjects.insert(Subject::Runner { runner: runner.id });
        }
        Change::Token(token) => {
            subjects.insert(Subject::Token { token: token.id });
        }
        Change::TokenRemoved(token) => {
            subjects.insert(Subject::Token { token: *token });
        }
        Change::Channel(channel) => {
            subjects.insert(Subject::Channel {
                channel: channel.id,
            });
            let before = world.channel(channel.id);
            let is_same = |before: &&Arc<Channel>| {
                before.name == channel.name && before.offered == channel.offered
            };
            if before.filter(is_same).is_none() {
                let names = before.into_iter().chain([channel]);
                names.for_each(|channel| subjects.extend(named_by_rules(world, &channel.name)));
            }
        }
        Change::ChannelRemoved(channel) => {
            subjects.insert(Subject::Channel { channel: *channel });
            let before = world.channel(*channel).into_iter();
            subjects.extend(before.flat_map(|before| named_by_rules(world, &before.name)));
        }
        Change::Callback(callback) => {
            let before = world.any_callback(callback.id);
            let state = |it: &Callback| (it.is_deleted, it.is_full());
            if before.is_none_or(|before| state(before) != state(callback)) {
                let project = callback.project;
                subjects.insert(Subject::Project { project });
            }
        }
        Change::Tip(_)
        | Change::RevisionRead(_)
        | Change::Digests(_)
        | Change::Repeats(..)
        | Change::History(_)
        | Change::JobRemoved(_)
        | Change::ArtifactRemoved(..)
        | Change::Expiry(_)
        | Change::ExpiryRemoved(_)
        | Change::Retention(_)
        | Change::HistoryPageRemoved(..)
        | Change::Ledger(_)
        | Change::LedgerPageRemoved(..)
        | Change::Recent(..)
        | Change::Runner(_)
        | Change::User(_)
        | Change::Session(_)
        | Change::SessionRemoved(_)
        | Change::Registration(_)
        | Change::RegistrationRemoved(_)
        | Change::Idempotency(_)
        | Change::IdempotencyRemoved(_)
        | Change::Blob(_)
        | Change::BlobRemoved(..)
        | Change::BlobLink(_)
        | Change::BlobLinkRemoved(_)
        | Change::BlobUsage(_)
        | Change::Condition(_)
        | Change::ConditionClosed(..)
        | Change::Event(_)
        | Change::Outgoing(_)
        | Change::OutgoingRemoved(_)
        | Change::Delivery(_)
        | Change::CallbackRemoved(_)
        | Change::CallbackToken(_)
        | Change::CallbackCertificate(_)
        | Change::CallbackTokenRemoved(..)
        | Change::PayloadGroup(_)
        | Change::PayloadGroupRemoved(_)
        | Change::PayloadVersionRemoved(..)
        | Change::Minted(_)
        | Change::MintRemoved(..)
        | Change::Interactions(..)
        | Change::ClockFollowed(_)
        | Change::Clocks(_) => {}
    }
}

/// The projects whose rules name a channel.
fn named_by_rules<'w>(
    world: &'w World,
    channel: &'w NotifyName,
) -> impl Iterator<Item = Subject> + 'w {
    let names = |rules: &&Arc<ProjectRules>| rules.all().any(|rule| rule.channel == *channel);
    let projects = world
        .all_rules()
        .filter(names)
        .filter_map(|rules| rules.project);
    projects.map(|project| Subject::Project { project })
}
