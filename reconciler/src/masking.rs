//! Hides secrets in the errors that runners tell. A runner does it itself; but these texts become records, which people
//! read and events carry, and a runner may be old or wrong.

use model::decide::Failure;
use model::{Job, Masker, Step};
use tokio::sync::Semaphore;

use crate::handle::Handle;

/// A masker of large secrets takes a thread and much memory for a moment.
static ROOM: Semaphore = Semaphore::const_new(1);

/// What stands in place of a text in which secrets cannot be looked for.
const HIDDEN: &str = "the error is not shown, because the job's secrets cannot be looked for in it";

impl Handle {
    /// Hides the job's secrets in what its worker says in words, of its steps and in further `texts`. Costs nothing when
    /// it says nothing.
    pub(crate) async fn mask_errors<'a>(
        &self,
        job: &Job,
        steps: &'a mut [Step],
        texts: impl Iterator<Item = &'a mut String>,
    ) {
        let errors = steps.iter_mut().filter_map(|step| step.error.as_mut());
        let texts: Vec<&mut String> = errors.chain(texts).collect();
        if texts.is_empty() {
            return;
        }
        let masker = self.masker(job).await;
        for text in texts {
            let masked = match &masker {
                Some(masker) => masker.mask(text),
                None => HIDDEN.to_owned(),
            };
            if masked != *text {
                self.runners().count_masked_error();
                tracing::warn!(job = %job.id, "a runner told a secret of its job in an error; it is hidden");
                *text = masked;
            }
        }
    }

    /// Of the secrets that the job's scan names, if one can be made.
    async fn masker(&self, job: &Job) -> Option<Masker> {
        let revision = self
            .state()
            .read(|world| world.revision(job.revision.id).cloned())?;
        let secrets = self.named_values(job, &revision).secrets;
        if secrets.is_empty() {
            return Some(Masker::default());
        }
        let _room = ROOM.acquire().await;
        let making = tokio::task::spawn_blocking(move || {
            Masker::new(secrets.values().map(|secret| secret.reveal()))
        });
        making.await.ok()?.ok()
    }
}

/// What a failure says in words.
pub(crate) fn text(failure: &mut Failure) -> Option<&mut String> {
    match failure {
        Failure::Artifact(text)
        | Failure::Env(text)
        | Failure::Checkout(text)
        | Failure::Setup(text)
        | Failure::RunnerStopped(text) => Some(text),
        Failure::TimedOut => None,
    }
}
