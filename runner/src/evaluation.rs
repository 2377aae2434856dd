//! Evaluates a job's expressions and templates. Only this part of the runner uses the workflow language. The daemon froze the
//! context at the claim; only `ok` and `steps` change while the job runs. An evaluation is bounded but may take a moment, so it
//! never runs on the thread that talks to the daemon.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::spawn_blocking;
use uuid::Uuid;
use wire::Assignment;
use workflow::{
    Context, Expression, JobIdentity, Outputs, References, Sandbox, StepSummary, Template,
    should_run,
};

pub(crate) use workflow::Site;

const TEMPLATE_OPENING: &str = "${{";

#[derive(Debug, thiserror::Error)]
pub(crate) enum EvaluationError {
    #[error("cannot read the context of job {job}; is this runner as new as the daemon?")]
    Context {
        job: Uuid,
        source: serde_json::Error,
    },
    #[error(transparent)]
    Source(#[from] workflow::ExpressionError),
    #[error(transparent)]
    Value(#[from] workflow::EvaluationError),
    /// The source has no value, because a name in it has no value. The text says which name, and why.
    #[error("{0}")]
    Missing(String),
    #[error(transparent)]
    Engine(#[from] workflow::expression::EngineError),
    #[error("the evaluation panicked; this is a defect of Everscan")]
    BrokeOff,
}

#[derive(Debug)]
pub(crate) struct Evaluation {
    context: Mutex<Arc<Context>>,
    missing: Arc<BTreeMap<String, String>>,
}

impl Evaluation {
    /// Adds the values that only the assignment has to the frozen context.
    pub(crate) fn of(assignment: &Assignment) -> Result<Self, EvaluationError> {
        let context: Context =
            serde_json::from_value(assignment.context.clone()).map_err(|source| {
                EvaluationError::Context {
                    job: assignment.job_id,
                    source,
                }
            })?;
        let job = JobIdentity {
            id: assignment.job_id.to_string(),
            name: assignment.scan.clone(),
        };
        Ok(Self {
            context: Mutex::new(Arc::new(Context {
                job: Some(job),
                secrets: assignment.secrets.clone(),
                ..context
            })),
            missing: Arc::new(assignment.missing.clone()),
        })
    }

    pub(crate) async fn render(
        &self,
        template: &str,
        site: Site,
        ok: bool,
    ) -> Result<String, EvaluationError> {
        if !template.contains(TEMPLATE_OPENING) {
            return Ok(template.to_owned());
        }
        let template = template.to_owned();
        let missing = Arc::clone(&self.missing);
        self.apart(ok, move |context| {
            let template = Template::parse(&template, site)?;
            Sandbox::shared()?
                .render(&template, context)
                .map_err(|error| explained(error, template.references(), &missing))
        })
        .await
    }

    /// Whether a step runs. If the job was `cancelled`, only a condition that names `always` is evaluated.
    pub(crate) async fn should_run(
        &self,
        condition: Option<&str>,
        ok: bool,
        cancelled: bool,
    ) -> Result<bool, EvaluationError> {
        let Some(condition) = condition else {
            return Ok(ok && !cancelled);
        };
        let condition = condition.to_owned();
        let missing = Arc::clone(&self.missing);
        self.apart(ok, move |context| {
            let condition = Expression::parse(&condition, Site::Condition)?;
            if cancelled && !condition.references().always {
                return Ok(false);
            }
            should_run(Some(&condition), context, Sandbox::shared()?)
                .map_err(|error| explained(error, condition.references(), &missing))
        })
        .await
    }

    pub(crate) async fn should_upload(
        &self,
        condition: Option<&str>,
        ok: bool,
    ) -> Result<bool, EvaluationError> {
        let Some(condition) = condition else {
            return Ok(true);
        };
        let condition = condition.to_owned();
        let missing = Arc::clone(&self.missing);
        self.apart(ok, move |context| {
            let condition = Expression::parse(&condition, Site::Artifact)?;
            Sandbox::shared()?
                .holds(&condition, context)
                .map_err(|error| explained(error, condition.references(), &missing))
        })
        .await
    }

    pub(crate) fn step_ended(&self, name: &str) {
        let mut context = self.lock();
        let steps = &mut Arc::make_mut(&mut context).steps;
        steps.entry(name.to_owned()).or_default();
    }

    pub(crate) fn step_wrote(&self, name: &str, outputs: Outputs) {
        let mut context = self.lock();
        let steps = &mut Arc::make_mut(&mut context).steps;
        steps.insert(name.to_owned(), StepSummary { outputs });
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Context>> {
        self.context.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn apart<T: Send + 'static>(
        &self,
        ok: bool,
        evaluate: impl FnOnce(&Context) -> Result<T, EvaluationError> + Send + 'static,
    ) -> Result<T, EvaluationError> {
        let context = Arc::clone(&self.lock());
        let evaluated = spawn_blocking(move || {
            if context.ok == ok {
                return evaluate(&context);
            }
            evaluate(&Context {
                ok,
                ..Context::clone(&context)
            })
        });
        evaluated.await.unwrap_or(Err(EvaluationError::BrokeOff))
    }
}

/// The error, with the daemon's explanation of a name that has no value.
fn explained(
    source: workflow::EvaluationError,
    references: &References,
    missing: &BTreeMap<String, String>,
) -> EvaluationError {
    let vars = references.vars.iter().map(|name| format!("vars.{name}"));
    let secrets = references.secrets.iter();
    let named = vars.chain(secrets.map(|name| format!("secrets.{name}")));
    let explanations: Vec<String> = named
        .filter_map(|name| Some(format!("{name} {}", missing.get(&name)?)))
        .collect();
    if explanations.is_empty() {
        return EvaluationError::Value(source);
    }
    EvaluationError::Missing(explanations.join("; "))
}
