//! From changes to files: which key a record has, whether it is live, how it looks.

use bytes::Bytes;
use model::Change;
use serde::Serialize;
use store::{Append, Batch, Epoch, Key, Put};

use crate::envelope::{Kind, seal};
use crate::layout::Layout;

/// The changes of one decision as a batch of its own.
pub(crate) fn encode(epoch: Epoch, changes: &[Change]) -> Result<Batch, serde_json::Error> {
    let mut batch = Batch::new(epoch);
    for change in changes {
        encode_change(&mut batch, change)?;
    }
    Ok(batch)
}

fn encode_change(batch: &mut Batch, change: &Change) -> Result<(), serde_json::Error> {
    match change {
        Change::Source(source) => record(
            batch,
            Layout::source(&source.name),
            Kind::Source,
            source.name.as_str(),
            true,
            &**source,
        ),
        Change::Tip(tip) => {
            let key = Layout::tip(&tip.source, tip.tip.number, &tip.tip.commit);
            record(batch, key, Kind::Tip, &tip.tip.commit, false, &**tip)
        }
        Change::Workflow(workflow) => {
            let id = workflow.id.to_string();
            record(
                batch,
                Layout::workflow(workflow.id),
                Kind::Workflow,
                &id,
                true,
                &**workflow,
            )
        }
        Change::Revision(revision, text) => {
            let record_body = &revision.record;
            let (workflow, reference) = (record_body.workflow.id, &record_body.reference);
            if let Some(text) = text {
                let bytes = Bytes::copy_from_slice(text.as_bytes());
                put(
                    batch,
                    Layout::revision_text(workflow, reference),
                    Put { bytes, live: false },
                );
            }
            let key = Layout::revision(workflow, reference);
            record(
                batch,
                key,
                Kind::Revision,
                &reference.id.to_string(),
                false,
                record_body,
            )
        }
        Change::Head(head) => record(
            batch,
            Layout::head(&head.key()),
            Kind::ScanHead,
            head.scan.as_str(),
            true,
            &**head,
        ),
        Change::Job(job) => record(
            batch,
            Layout::job(job.id),
            Kind::Job,
            &job.id.to_string(),
            !job.state.is_terminal(),
            &**job,
        ),
        Change::History(entry) => {
            batch.appends.push(Append {
                ledger: Layout::history(&entry.scan, entry.page),
                at: entry.at,
                bytes: Bytes::copy_from_slice(entry.text.as_bytes()),
            });
            Ok(())
        }
        Change::Ledger(entry) => {
            batch.appends.push(Append {
                ledger: Layout::ledger(&entry.scan, entry.page),
                at: entry.at,
                bytes: Bytes::copy_from_slice(entry.text.as_bytes()),
            });
            Ok(())
        }
        Change::LedgerPageRemoved(scan, page) => {
            delete(batch, Layout::ledger(scan, *page));
            Ok(())
        }
        Change::Recent(..) => Ok(()),
        Change::Runner(runner) => record(
            batch,
            Layout::runner(runner.id),
            Kind::Runner,
            &runner.id.to_string(),
            true,
            &**runner,
        ),
        Change::RunnerRemoved(id) => {
            delete(batch, Layout::runner(*id));
            Ok(())
        }
        Change::Token(token) => record(
            batch,
            Layout::token(token.id),
            Kind::Token,
            &token.id.to_string(),
            true,
            &**token,
        ),
        Change::Registration(registration) => {
            let id = registration.id.to_string();
            record(
                batch,
                Layout::registration(registration.id),
                Kind::Registration,
                &id,
                true,
                &**registration,
            )
        }
        Change::RegistrationRemoved(id) => {
            delete(batch, Layout::registration(*id));
            Ok(())
        }
        Change::Vars(vars) => record(
            batch,
            Layout::vars(vars.project),
            Kind::Vars,
            &vars.project.to_string(),
            true,
            &**vars,
        ),
        Change::Secrets(secrets) => record(
            batch,
            Layout::secrets(secrets.project),
            Kind::Secrets,
            &secrets.project.to_string(),
            true,
            &**secrets,
        ),
        Change::Idempotency(request) => record(
            batch,
            Layout::idempotency(&request.key),
            Kind::Idempotency,
            &request.key,
            true,
            &**request,
        ),
        Change::IdempotencyRemoved(key) => {
            delete(batch, Layout::idempotency(key));
            Ok(())
        }
        Change::InitialAdminToken(secret) => {
            let bytes = Bytes::from(format!("{}\n", secret.reveal()));
            put(
                batch,
                Layout::initial_admin_token(),
                Put { bytes, live: false },
            );
            Ok(())
        }
    }
}

fn record<B: Serialize>(
    batch: &mut Batch,
    key: Key,
    kind: Kind,
    id: &str,
    live: bool,
    body: &B,
) -> Result<(), serde_json::Error> {
    let bytes = Bytes::from(seal(kind, id, live, body)?);
    put(batch, key, Put { bytes, live });
    Ok(())
}

fn put(batch: &mut Batch, key: Key, put: Put) {
    batch.deletes.remove(&key);
    batch.puts.insert(key, put);
}

fn delete(batch: &mut Batch, key: Key) {
    batch.puts.remove(&key);
    batch.deletes.insert(key);
}

/// Adds a later batch to an earlier one: the last value of each key counts.
pub(crate) fn fold(batch: &mut Batch, later: Batch) {
    for (key, value) in later.puts {
        put(batch, key, value);
    }
    for key in later.deletes {
        delete(batch, key);
    }
    batch.appends.extend(later.appends);
}
