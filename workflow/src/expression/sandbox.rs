//! Where CEL runs, so that nothing it does ends the process. Its parser and its evaluator recurse deeper than an ordinary
//! thread's stack, so they run on threads with large ones, which are committed as they are used: an idle sandbox is
//! small. Only an expression that is known to be shallow is evaluated where it is asked, since the way to another thread
//! and back takes several times as long as it does (docs/decisions/0020-where-expressions-run.md).

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use super::error::{EngineError, EvaluationError};
use super::explain::{self, Explanation};
use super::value::Value;
use super::variables::Variables;
use super::{Expression, evaluate, missing};
use crate::context::Context;
use crate::limits::{SANDBOX_STACK_BYTES, SANDBOX_THREADS};
use crate::template::Template;

type Task = Box<dyn FnOnce() + Send>;

/// Runs expressions. Calls wait for their answer, which the static check bounds to about a tenth of a second per
/// expression.
pub struct Sandbox {
    /// Absent only while the sandbox is dropped.
    tasks: Option<Sender<Task>>,
    threads: Vec<JoinHandle<()>>,
}

impl Sandbox {
    /// Starts so many threads, at least one.
    ///
    /// # Errors
    /// The system's, when it gives no thread.
    pub fn new(threads: usize) -> io::Result<Self> {
        let (tasks, queue) = channel::<Task>();
        let queue = Arc::new(Mutex::new(queue));
        let mut sandbox = Self {
            tasks: Some(tasks),
            threads: Vec::new(),
        };
        for number in 0..threads.max(1) {
            let queue = Arc::clone(&queue);
            let thread = std::thread::Builder::new()
                .name(format!("expressions-{number}"))
                .stack_size(SANDBOX_STACK_BYTES)
                .spawn(move || work(&queue))?;
            sandbox.threads.push(thread);
        }
        Ok(sandbox)
    }

    /// The process's one sandbox, started at its first use. Parsing runs on it too, and has threads to spare for
    /// evaluations that come while a long file is read.
    ///
    /// # Errors
    /// When no thread can be started; a later call tries again.
    pub fn shared() -> Result<&'static Self, EngineError> {
        static SHARED: OnceLock<Sandbox> = OnceLock::new();
        if let Some(sandbox) = SHARED.get() {
            return Ok(sandbox);
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.clamp(*SANDBOX_THREADS.start(), *SANDBOX_THREADS.end());
        let sandbox = Self::new(threads).map_err(|error| EngineError::Start {
            reason: error.to_string(),
        })?;
        Ok(SHARED.get_or_init(|| sandbox))
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// The expression failed on these values, or the engine did.
    pub fn evaluate(
        &self,
        expression: &Expression,
        context: &Context,
    ) -> Result<Value, EvaluationError> {
        self.with(expression, context, evaluate::value)
    }

    /// Evaluates a condition.
    ///
    /// # Errors
    /// As [`Sandbox::evaluate`], and when the result is neither true nor false.
    pub fn holds(
        &self,
        expression: &Expression,
        context: &Context,
    ) -> Result<bool, EvaluationError> {
        self.with(expression, context, evaluate::truth)
    }

    /// Evaluates a condition and tells which parts of it decided.
    ///
    /// # Errors
    /// When the engine failed; an error of the expression is part of the explanation.
    pub fn explain(
        &self,
        expression: &Expression,
        context: &Context,
    ) -> Result<Explanation, EvaluationError> {
        let narrowed = context.narrowed(expression.references());
        let moved = expression.clone();
        let task = move || explain::explain(&moved, &Variables::recorded(narrowed));
        let mut explanation = self
            .run_at(expression.is_shallow(), task)
            .map_err(|source| engine_error(expression.source(), source))?;
        missing::suggest_in(&mut explanation, context, expression.references());
        Ok(explanation)
    }

    /// Fills a template. Substitution is single-pass: what is inserted is not looked at again.
    ///
    /// # Errors
    /// The first expression that fails or yields what has no text.
    pub fn render(
        &self,
        template: &Template,
        context: &Context,
    ) -> Result<String, EvaluationError> {
        if let Some(text) = template.as_text() {
            return Ok(text.to_owned());
        }
        let narrowed = context.narrowed(template.references());
        let task = template.clone();
        self.run_at(template.is_shallow(), move || {
            let variables = Variables::new(narrowed);
            task.render_with(|expression| evaluate::value(expression, &variables))
        })
        .map_err(|source| engine_error(template.source(), source))?
        .map_err(|error| missing::suggested(error, context, template.references()))
    }

    fn with<T: Send + 'static>(
        &self,
        expression: &Expression,
        context: &Context,
        task: impl FnOnce(&Expression, &Variables) -> Result<T, EvaluationError> + Send + 'static,
    ) -> Result<T, EvaluationError> {
        let narrowed = context.narrowed(expression.references());
        let moved = expression.clone();
        let task = move || task(&moved, &Variables::new(narrowed));
        self.run_at(expression.is_shallow(), task)
            .map_err(|source| engine_error(expression.source(), source))?
            .map_err(|error| missing::suggested(error, context, expression.references()))
    }

    /// Runs an evaluation here or on a thread, by how deep it goes.
    fn run_at<T: Send + 'static>(
        &self,
        is_shallow: bool,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        if is_shallow {
            return catch_unwind(AssertUnwindSafe(task)).map_err(|_| EngineError::Broken);
        }
        self.run(task)
    }

    /// Runs a task on a thread and waits for its answer. A task must not call this: it would wait for itself.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        let (answer, answered) = channel();
        let task: Task = Box::new(move || {
            // Nobody waiting any more is no concern of the thread.
            let _unread = answer.send(task());
        });
        let tasks = self.tasks.as_ref().ok_or(EngineError::Broken)?;
        tasks.send(task).map_err(|_| EngineError::Broken)?;
        answered.recv().map_err(|_| EngineError::Broken)
    }
}

fn engine_error(expression: &str, source: EngineError) -> EvaluationError {
    EvaluationError::Engine {
        expression: expression.to_owned(),
        source,
    }
}

/// Takes tasks until the sandbox is dropped. A task that panics drops its answer's sender, which its caller sees.
fn work(queue: &Mutex<Receiver<Task>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(task) => drop(catch_unwind(AssertUnwindSafe(task))),
            Err(_) => return,
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.tasks.take());
        for thread in self.threads.drain(..) {
            // The threads catch what their tasks throw, so there is nothing to learn from the result.
            let _ended = thread.join();
        }
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("threads", &self.threads.len())
            .finish()
    }
}
