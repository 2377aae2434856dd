//! All live records, in memory. [`World::apply`] is the only way to change them.
//!
//! The world holds the records that decisions need: sources, newest revisions, scan heads, unfinished jobs, runners,
//! tokens. Finished jobs and old revisions are only on disk, and decisions do not read them. Records are shared, so a
//! second copy of the world costs only its pointers.

mod blobs;
mod callbacks;
mod conditions;
mod due;
mod ends;
mod jobs;
mod listening;
mod lookup;
pub(crate) mod names;
mod outbox;
mod payloads;
mod queue;
mod triggers;
mod users;
mod workflows;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use self::blobs::Blobs;
use self::callbacks::Callbacks;
use self::conditions::Conditions;
use self::ends::Ends;
use self::jobs::Jobs;
use self::names::Names;
use self::outbox::Outbox;
use self::queue::Place;
use self::triggers::Triggers;
use self::users::Users;
use crate::abilities::Abilities;
use crate::change::Change;
use crate::derive::touched;
use crate::idempotency::Idempotency;
use crate::job::Job;
use crate::payload::PayloadGroup;
use crate::project::{ProjectSecrets, ProjectVars};
use crate::recent::Recent;
use crate::retention::{Retention, Stock};
use crate::revision::{Revision, WorkflowRecord};
use crate::rules::ProjectRules;
use crate::runner::{Registration, Runner};
use crate::scan_head::ScanHead;
use crate::source::Source;
use crate::suspension::Suspensions;
use crate::token::{Token, TokenHash};
use crate::{
    JobId, Order, PayloadGroupId, ProjectId, RegistrationId, RevisionId, RunnerId, ScanKey,
    SourceName, Timestamp, TokenId, UserId, WorkflowId,
};

#[derive(Debug, Clone, Default)]
pub struct World {
    ends: Ends,
    sources: BTreeMap<SourceName, Arc<Source>>,
    source_names: HashMap<ProjectId, SourceName>,
    workflows: BTreeMap<WorkflowId, Arc<WorkflowRecord>>,
    revisions: HashMap<RevisionId, Arc<Revision>>,
    heads: HashMap<ScanKey, Arc<ScanHead>>,
    retention: HashMap<ScanKey, Arc<Retention>>,
    stocks: HashMap<WorkflowId, Stock>,
    recent: HashMap<ScanKey, Arc<Recent>>,
    suspensions: Suspensions,
    triggers: Triggers,
    conditions: Conditions,
    names: Names,
    outbox: Outbox,
    jobs: Jobs,
    latest_job: Option<JobId>,
    latest_order: Order,
    runners: BTreeMap<RunnerId, Arc<Runner>>,
    tokens: BTreeMap<TokenId, Arc<Token>>,
    token_hashes: HashMap<TokenHash, TokenId>,
    tokens_of: HashMap<UserId, BTreeSet<TokenId>>,
    users: Users,
    registrations: BTreeMap<RegistrationId, Arc<Registration>>,
    vars: BTreeMap<ProjectId, Arc<ProjectVars>>,
    secrets: BTreeMap<ProjectId, Arc<ProjectSecrets>>,
    rules: BTreeMap<Option<ProjectId>, Arc<ProjectRules>>,
    blobs: Blobs,
    callbacks: Callbacks,
    payload_groups: BTreeMap<PayloadGroupId, Arc<PayloadGroup>>,
    idempotency: HashMap<String, Arc<Idempotency>>,
    idempotency_by_age: BTreeSet<(Timestamp, String)>,
}

impl World {
    pub fn apply(&mut self, change: &Change) {
        self.note_new_ends(change);
        let mut subjects = BTreeSet::new();
        touched(self, change, &mut subjects);
        self.apply_record(change);
        touched(self, change, &mut subjects);
        for subject in &subjects {
            self.expect(subject);
        }
    }

    fn apply_record(&mut self, change: &Change) {
        match change {
            Change::Source(source) => {
                self.source_names
                    .insert(source.project, source.name.clone());
                self.sources.insert(source.name.clone(), source.clone());
            }
            Change::Workflow(workflow) => {
                if let Some(before) = self.active_definition(workflow.id) {
                    self.names.remove(workflow.project, &before);
                }
                let before = self.workflows.insert(workflow.id, workflow.clone());
                if let Some(after) = self.active_definition(workflow.id) {
                    self.names.add(workflow.project, &after);
                }
                let armed = workflow.armed.values().flat_map(|armed| {
                    let expr = armed.expr.as_ref().map(|expr| expr.since);
                    let callback = armed.callback.as_ref().map(|callback| callback.since);
                    expr.into_iter().chain(callback)
                });
                self.latest_order = armed.fold(self.latest_order, Order::max);
                self.refile(workflow.id);
                self.rearm(workflow);
                if let Some(before) =
                    before.filter(|before| before.revision.id != workflow.revision.id)
                {
                    self.forget_unused(before.revision.id);
                }
            }
            Change::Suspension(suspension) => {
                self.suspensions.put(suspension);
                let workflow = suspension.workflow.id;
                self.refile(workflow);
                if let Some(record) = self.workflows.get(&workflow).cloned() {
                    self.rearm(&record);
                }
            }
            Change::Revision(revision, _) | Change::RevisionRead(revision) => {
                self.revisions
                    .insert(revision.record.reference.id, revision.clone());
            }
            Change::Head(head) => {
                self.latest_job = self.latest_job.max(Some(head.latest_job));
                let successes = head.successes.iter().map(|success| success.order);
                self.latest_order = successes
                    .chain(head.failure.map(|failure| failure.order))
                    .chain(head.latest_claim)
                    .chain(head.considered)
                    .fold(self.latest_order, Order::max);
                let scan = head.key();
                self.restock(&scan, |world| {
                    world.heads.insert(head.key(), head.clone());
                });
                self.index_triggers(&scan);
            }
            Change::Job(job) => self.apply_job(job),
            Change::Runner(runner) => {
                self.runners.insert(runner.id, runner.clone());
            }
            Change::RunnerRemoved(runner) => {
                self.runners.remove(&runner.id);
            }
            Change::Token(token) => {
                self.forget_token(token.id);
                let hashes = token.hashes().map(|hash| (hash, token.id));
                self.token_hashes.extend(hashes);
                let of_owner = self.tokens_of.entry(token.owner).or_default();
                of_owner.insert(token.id);
                self.tokens.insert(token.id, token.clone());
            }
            Change::TokenRemoved(id) => self.forget_token(*id),
            Change::User(user) => self.users.put(user),
            Change::Session(session) => self.users.begin(session),
            Change::SessionRemoved(session) => self.users.end(session),
            Change::Registration(registration) => {
                self.registrations
                    .insert(registration.id, registration.clone());
            }
            Change::RegistrationRemoved(id) => {
                self.registrations.remove(id);
            }
            Change::Vars(vars) => {
                self.vars.insert(vars.project, vars.clone());
            }
            Change::Secrets(secrets) => {
                self.secrets.insert(secrets.project, secrets.clone());
            }
            Change::Rules(rules) => {
                self.rules.insert(rules.project, rules.clone());
            }
            Change::Blob(blob) => self.blobs.put(blob),
            Change::BlobRemoved(project, path) => self.blobs.remove(*project, path),
            Change::BlobUsage(usage) => self.blobs.count(usage),
            Change::BlobLink(link) => self.blobs.link(link),
            Change::BlobLinkRemoved(id) => self.blobs.unlink(*id),
            Change::Idempotency(request) => {
                self.forget_request(&request.key);
                self.idempotency_by_age
                    .insert((request.expires_at, request.key.clone()));
                self.idempotency
                    .insert(request.key.clone(), request.clone());
            }
            Change::IdempotencyRemoved(key) => self.forget_request(key),
            Change::History(entry) => {
                if let Some(recent) = self.recent.get_mut(&entry.scan) {
                    Arc::make_mut(recent).add(entry.line.clone());
                }
            }
            Change::Recent(scan, recent) => {
                self.recent.insert(scan.clone(), recent.clone());
            }
            Change::JobRemoved(job) => {
                let scan = job.scan_key();
                if let Some(recent) = self.recent.get_mut(&scan)
                    && !Arc::make_mut(recent).remove(job.id)
                {
                    // The history is read again when needed.
                    self.recent.remove(&scan);
                }
            }
            Change::Retention(retention) => {
                self.restock(&retention.key(), |world| {
                    world.retention.insert(retention.key(), retention.clone());
                });
            }
            Change::Condition(condition) => self.open(condition),
            Change::ConditionClosed(condition, _) => self.close(condition),
            Change::Channel(channel) => {
                let sending = channel.sending.iter().map(|sending| sending.planned);
                self.latest_order = sending.fold(self.latest_order, Order::max);
                self.outbox.put_channel(channel);
            }
            Change::ChannelRemoved(id) => self.outbox.remove_channel(*id),
            Change::Outgoing(outgoing) => {
                let deliveries = outgoing.deliveries.iter().flatten();
                let planned = deliveries.map(|delivery| delivery.planned);
                let latest = planned.fold(outgoing.order, Order::max);
                self.latest_order = self.latest_order.max(latest);
                self.outbox.put(outgoing);
            }
            Change::OutgoingRemoved(id) => self.outbox.remove(*id),
            Change::Callback(callback) => {
                let since = callback.unconsidered.iter().map(|heard| heard.since);
                self.latest_order = since.fold(self.latest_order, Order::max);
                self.callbacks.put(callback);
            }
            Change::CallbackRemoved(id) => self.callbacks.remove(*id),
            Change::CallbackToken(token) => self.callbacks.add_token(token),
            Change::CallbackTokenRemoved(server, tag) => {
                self.callbacks.remove_token(*server, *tag);
            }
            Change::PayloadGroup(group) => {
                self.payload_groups.insert(group.id, group.clone());
            }
            Change::PayloadGroupRemoved(id) => {
                self.payload_groups.remove(id);
            }
            Change::CallbackCertificate(new) => self.callbacks.put_certificate(new),
            Change::ClockFollowed(by) => self.follow_clock(*by),
            Change::Clocks(clocks) => self.note_clocks(clocks.clone()),
            Change::Tip(_)
            | Change::Digests(_)
            | Change::Repeats(..)
            | Change::ArtifactRemoved(..)
            | Change::Expiry(_)
            | Change::ExpiryRemoved(_)
            | Change::HistoryPageRemoved(..)
            | Change::Ledger(_)
            | Change::LedgerPageRemoved(..)
            | Change::Event(_)
            | Change::Delivery(_)
            | Change::PayloadVersionRemoved(..)
            | Change::Minted(_)
            | Change::MintRemoved(..)
            | Change::Interactions(..) => {}
        }
    }

    fn apply_job(&mut self, job: &Arc<Job>) {
        self.latest_job = self.latest_job.max(Some(job.id));
        let place = self.place(job);
        self.jobs.apply(job, place);
        if job.state.is_terminal() {
            self.forget_unused(job.revision.id);
        }
    }

    /// Updates the places of a workflow's waiting jobs in the queue, because the newest revision may have removed or
    /// changed their scans.
    fn refile(&mut self, workflow: WorkflowId) {
        let waiting: Vec<JobId> = self.jobs.queue().of_workflow(workflow).collect();
        for id in waiting {
            if let Some(job) = self.jobs.get(id).cloned() {
                let place = self.place(&job);
                self.jobs.refile(&job, place);
            }
        }
    }

    /// The place of a waiting job in the queue.
    fn place(&self, job: &Job) -> Place {
        if self.is_orphan(job) {
            return Place::Orphan;
        }
        if self.suspension(&job.scan_key()).is_some() {
            return if job.ends_with_suspension() {
                Place::Withdrawn
            } else {
                Place::Held
            };
        }
        let scan = self
            .revision(self.revision_to_run(job))
            .and_then(|revision| revision.definition.scan(job.scan.as_str()));
        scan.map_or(Place::Unknown, |scan| {
            let needs = Arc::new(Abilities::needed_by(scan));
            match job.not_before {
                None => Place::Offerable(needs),
                Some(at) => Place::Delayed(needs, at),
            }
        })
    }

    fn forget_token(&mut self, id: TokenId) {
        let Some(token) = self.tokens.remove(&id) else {
            return;
        };
        for hash in token.hashes() {
            self.token_hashes.remove(&hash);
        }
        if let Some(of_owner) = self.tokens_of.get_mut(&token.owner) {
            of_owner.remove(&id);
            if of_owner.is_empty() {
                self.tokens_of.remove(&token.owner);
            }
        }
    }

    fn forget_request(&mut self, key: &str) {
        if let Some(request) = self.idempotency.remove(key) {
            self.idempotency_by_age
                .remove(&(request.expires_at, request.key.clone()));
        }
    }

    /// Removes a revision that is neither active nor needed by an unfinished job.
    fn forget_unused(&mut self, id: RevisionId) {
        let needed = self.revisions.get(&id).is_none_or(|revision| {
            let workflow = revision.record.workflow.id;
            self.workflows
                .get(&workflow)
                .is_some_and(|record| record.revision.id == id)
                || self.jobs.uses(id)
        });
        if !needed {
            self.revisions.remove(&id);
        }
    }

    /// Applies a change that may affect a scan's finished jobs, and updates the totals.
    fn restock(&mut self, scan: &ScanKey, change: impl FnOnce(&mut Self)) {
        let retained = |world: &Self| world.head(scan).map(|head| world.retained(head));
        let before = retained(self).unwrap_or_default();
        change(self);
        let after = retained(self).unwrap_or_default();
        if (before.jobs(), before.bytes) != (after.jobs(), after.bytes) {
            let stock = self.stocks.entry(scan.workflow).or_default();
            stock.jobs = (stock.jobs + after.jobs()).saturating_sub(before.jobs());
            stock.bytes = (stock.bytes + after.bytes).saturating_sub(before.bytes);
        }
    }
}

#[cfg(test)]
mod tests;
