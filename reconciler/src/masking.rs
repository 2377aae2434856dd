//! Hides secrets in the errors that runners report. Runners mask them too, but a runner may be outdated or faulty, and
//! these texts become records and events.

use model::decide::Failure;
use model::{Job, Masker, NamedValues, Step};
use tokio::sync::Semaphore;

use crate::handle::Handle;

/// A masker of large secrets briefly needs a thread and much memory.
static ROOM: Semaphore = Semaphore::const_new(1);

/// Replaces a text in which secrets cannot be searched.
const HIDDEN: &str = "the error is not shown, because it cannot be searched for the job's secrets";

impl Handle {
    /// Hides the job's secrets in the errors of its steps and in further `texts`. Without texts it does nothing.
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
                tracing::warn!(job = %job.id, "a runner reported a secret of its job in an error; it is hidden");
                *text = masked;
            }
        }
    }

    /// The masker of the secrets that the job got. None if it cannot be made.
    pub async fn masker(&self, job: &Job) -> Option<Masker> {
        let keys = self.settings().secret_keys.as_ref();
        let secrets = self
            .state()
            .read(|world| NamedValues::secrets(world, job, keys));
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
