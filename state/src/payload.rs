//! Payloads that are too large for a record: the inputs of a job and the text of a workflow. Each is written as an
//! object before its command is decided, and the commit of the command adopts it. The first admin token is stored in
//! the same way, because the journal must not contain it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use model::decide::{
    Activate, Command, Decision, Dispatch, EndJob, InitialToken, LargeInputs, Loss,
};
use model::{Change, Inputs, Job, JobId, PlainToken, Revision, TokenHash, TokenId, large_payload};
use store::{Batch, Staged};
use workflow::{InputValue, hex, sha256};

use crate::blocking::on_volume;
use crate::encode::{adopt, adopt_inputs, delete};
use crate::error::{PayloadError, ReadError, SubmitError, WriteError};
use crate::layout::Layout;
use crate::limits::FIRST_TOKEN_BYTES;
use crate::load::load_revision;
use crate::state::State;
use crate::upload::begin_object;

impl State {
    /// Starts a job. Inputs that are too large for its record become a file next to it.
    pub async fn dispatch(&self, mut dispatch: Dispatch) -> Result<JobId, PayloadError> {
        let large = match &dispatch.inputs {
            Inputs::Inline(inputs) => large_payload(inputs),
            Inputs::Object { .. } | Inputs::Defaults => None,
        };
        let Some(payload) = large else {
            return Ok(self.submit(dispatch).await?);
        };
        let staged = self.stage(payload.into()).await?;
        dispatch.inputs = Inputs::Object {
            sha256: hex(&staged.sha256()),
            bytes: staged.size(),
        };
        let submitted = self.submit_with(dispatch, None, move |decision, batch| {
            // A repeated request changes nothing. Its answer is the existing job, which has its own inputs.
            if !decision.changes.is_empty() {
                adopt(batch, Layout::inputs(decision.answer), staged.clone());
            }
        });
        Ok(submitted.await?)
    }

    /// Makes a workflow file's text its newest revision.
    pub async fn activate(&self, activate: Activate) -> Result<(), PayloadError> {
        if !activate.is_object() {
            return Ok(self.submit(activate).await?);
        }
        let text = Bytes::copy_from_slice(activate.text.as_bytes());
        let staged = self.stage(text).await?;
        let submitted = self.submit_with(activate, None, move |decision, batch| {
            let revision = decision.changes.iter().find_map(|change| {
                if let Change::Revision(revision, _) = change {
                    return Some(&revision.record);
                }
                None
            });
            // An unchanged text makes no revision.
            if let Some(revision) = revision {
                let key = Layout::revision_text(revision.workflow.id, &revision.reference);
                adopt(batch, key, staged.clone());
            }
        });
        Ok(submitted.await?)
    }

    /// Makes the first admin token. Its secret is an object, so that the journal has only the hash. It replaces the
    /// file of an earlier first token.
    pub(crate) async fn store_first_token(&self, secret: &PlainToken) -> Result<(), PayloadError> {
        let staged = self.stage(format!("{}\n", secret.reveal()).into()).await?;
        let command = InitialToken {
            hash: secret.hash(),
        };
        let submitted = self.submit_with(command, None, move |decision, batch| {
            if !decision.changes.is_empty() {
                adopt(batch, Layout::initial_admin_token(), staged.clone());
            }
        });
        Ok(submitted.await?)
    }

    /// Runs a command that replaces a token's secret or revokes the token. If the file of the first admin token has
    /// this secret, the same commit deletes the file.
    pub async fn end_secret<C: Command>(
        &self,
        token: TokenId,
        command: C,
    ) -> Result<C::Answer, SubmitError> {
        let first = self.first_secret().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the file of the first token cannot be read and is not deleted");
            None
        });
        let ends = self.read(|world| world.token(token).map(|token| token.hash));
        let is_first = first.is_some() && first == ends;
        let submitted = self.submit_with(command, None, move |decision, batch| {
            if is_first && !decision.changes.is_empty() {
                delete(batch, Layout::initial_admin_token());
            }
        });
        submitted.await
    }

    /// The hash of the secret in the file of the first admin token, if there is one.
    async fn first_secret(&self) -> Result<Option<TokenHash>, ReadError> {
        let key = Layout::initial_admin_token();
        on_volume(self.volume(), move |volume| {
            let fail = |source| ReadError::file(&key, source);
            let Some(file) = volume.open_object(&key).map_err(fail)? else {
                return Ok(None);
            };
            let text = file.read_at(0, FIRST_TOKEN_BYTES).map_err(fail)?;
            Ok(Some(TokenHash::of(String::from_utf8_lossy(&text).trim())))
        })
        .await
    }

    /// The job's inputs, from its record or from their file.
    pub async fn inputs(&self, job: &Job) -> Result<BTreeMap<String, InputValue>, ReadError> {
        let read = match &job.inputs {
            Inputs::Inline(inputs) => return Ok(inputs.clone()),
            Inputs::Object { sha256, bytes: _ } => self.own_inputs(job.id, sha256).await,
            Inputs::Defaults => self.default_inputs(job).await,
        };
        if read.is_err() && self.job(job.id).await?.is_none() {
            return Err(ReadError::Removed { job: job.id });
        }
        read
    }

    async fn own_inputs(
        &self,
        job: JobId,
        wanted: &str,
    ) -> Result<BTreeMap<String, InputValue>, ReadError> {
        let bytes = self.own_file(job, wanted).await?;
        let key = Layout::inputs(job);
        serde_json::from_slice(&bytes).map_err(|error| ReadError::damaged(&key, error))
    }

    /// Reads the file with a job's inputs and checks its digest.
    async fn own_file(&self, job: JobId, wanted: &str) -> Result<Vec<u8>, ReadError> {
        let (key, wanted) = (Layout::inputs(job), wanted.to_owned());
        on_volume(self.volume(), move |volume| {
            let fail = |source| ReadError::file(&key, source);
            let opened = volume.open_object(&key).map_err(fail)?;
            let file = opened.ok_or_else(|| ReadError::damaged(&key, "it is missing"))?;
            let bytes = file.read_at(0, usize::MAX).map_err(fail)?;
            let found = sha256(&bytes);
            if found != wanted {
                return Err(ReadError::damaged(&key, format!("its SHA-256 is {found}")));
            }
            Ok(bytes)
        })
        .await
    }

    /// Ends a job whose worker did not complete it.
    pub async fn end(&self, mut end: EndJob) -> Result<Arc<Job>, SubmitError> {
        let copy = match end.loss {
            Loss::RunnerLost | Loss::TimedOut => self.copy_large_inputs(end.job).await,
            Loss::Restored | Loss::SessionExpired | Loss::Suspended | Loss::Retired => None,
        };
        if copy.is_some() {
            end.large_inputs = LargeInputs::Copied;
        }
        let attach = move |decision: &Decision<_>, batch: &mut Batch| {
            adopt_inputs(batch, &decision.changes, copy.clone());
        };
        self.submit_with(end, None, attach).await
    }

    /// Copies the inputs file of a job for its retry, if it may get a retry. If this fails, the job ends without a
    /// retry.
    pub(crate) async fn copy_large_inputs(&self, id: JobId) -> Option<Staged> {
        let (job, sha256) = self.read(|world| {
            let job = world.job(id)?;
            let Inputs::Object { sha256, .. } = &job.inputs else {
                return None;
            };
            let revision = world.revision(job.revision.id)?;
            let scan = revision.definition.scan(job.scan.as_str())?;
            job.next_attempt(scan)?;
            Some((job.id, sha256.clone()))
        })?;
        let failed = |error: &dyn std::error::Error| {
            tracing::warn!(%job, %error, "the inputs of a job cannot be copied, so it is not retried");
        };
        let bytes = self.own_file(job, &sha256).await;
        let bytes = bytes.inspect_err(|error| failed(error)).ok()?;
        let staged = self.stage(bytes.into()).await;
        staged.inspect_err(|error| failed(error)).ok()
    }

    async fn default_inputs(&self, job: &Job) -> Result<BTreeMap<String, InputValue>, ReadError> {
        let revision = self.revision_of(job).await?;
        let scan = revision.definition.scan(job.scan.as_str());
        scan.map(workflow::Scan::default_inputs).ok_or_else(|| {
            let key = Layout::revision_text(job.workflow.id, &job.revision);
            ReadError::damaged(key, format!("it has no scan `{}`", job.scan))
        })
    }

    /// The revision in a job's record. The world may not contain it any more.
    pub async fn revision_of(&self, job: &Job) -> Result<Arc<Revision>, ReadError> {
        let known = self.read(|world| world.revision(job.revision.id).cloned());
        match known {
            Some(revision) => Ok(revision),
            None => Ok(load_revision(self.reader(), job.workflow.id, &job.revision)
                .await?
                .into()),
        }
    }

    /// Writes a payload durably as an object that a command can adopt.
    async fn stage(&self, bytes: Bytes) -> Result<Staged, WriteError> {
        let alarm = self.alarm().clone();
        on_volume(self.volume(), move |volume| {
            let fail = |error| WriteError::watched(&alarm, "tmp", error);
            let mut writer = begin_object(volume)?;
            writer.write(&[bytes]).map_err(fail)?;
            writer.finish().map_err(fail)
        })
        .await
    }
}
