//! Runs CEL so that it cannot crash the process. The library's parser and evaluator may recurse deeper than the stack of an
//! ordinary thread, so they run on threads with large stacks. Stack memory is committed only when it is used, so an idle sandbox
//! is small. Parsing and evaluating have separate threads, so that no decision waits for the parsing of a file. A shallow
//! expression is evaluated on the caller's thread, because switching threads takes several times as long
//! (docs/decisions/0020-where-expressions-run.md).

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::error::{EngineError, EvaluationError};
use super::explain::{self, Explanation};
use super::value::Value;
use super::variables::Variables;
use super::{Expression, evaluate, missing};
use crate::context::Context;
use crate::limits::{SANDBOX_STACK_BYTES, SANDBOX_THREADS};
use crate::template::Template;

type Task = Box<dyn FnOnce() + Send>;

/// Receives the duration of each evaluation.
type Observer = Box<dyn Fn(Duration) + Send + Sync>;

/// Runs expressions. Calls block until the result is available. The static check limits this to about a tenth of a second for
/// each expression.
pub struct Sandbox {
    parsing: Pool,
    evaluating: Pool,
    observer: OnceLock<Observer>,
}

/// Threads with large stacks that share a queue.
struct Pool {
    /// Absent only while the pool is being dropped.
    tasks: Option<Sender<Task>>,
    threads: Vec<JoinHandle<()>>,
}

impl Sandbox {
    /// Starts `threads` threads for parsing and as many for evaluating, at least one each.
    ///
    /// # Errors
    /// An I/O error if a thread cannot be started.
    pub fn new(threads: usize) -> io::Result<Self> {
        Ok(Self {
            parsing: Pool::new("parsing", threads)?,
            evaluating: Pool::new("expressions", threads)?,
            observer: OnceLock::new(),
        })
    }

    /// The only sandbox of the process, started at its first use.
    ///
    /// # Errors
    /// If no thread can be started. A later call tries again.
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

    /// Calls `observer` with the duration of each later evaluation. Only the first observer is kept.
    pub fn observe(&self, observer: impl Fn(Duration) + Send + Sync + 'static) {
        let _is_first = self.observer.set(Box::new(observer));
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// If the expression fails on these values, or the engine fails.
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
    /// Like [`Sandbox::evaluate`], and if the result is neither true nor false.
    pub fn holds(
        &self,
        expression: &Expression,
        context: &Context,
    ) -> Result<bool, EvaluationError> {
        self.with(expression, context, evaluate::truth)
    }

    /// Evaluates a condition and explains which parts of it decided.
    ///
    /// # Errors
    /// If the engine fails. An error of the expression is part of the explanation.
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

    /// Fills a template. Substitution is single-pass: inserted text is not expanded again.
    ///
    /// # Errors
    /// The first expression that fails or whose result has no text.
    pub fn render(
        &self,
        template: &Template,
        context: &Context,
    ) -> Result<String, EvaluationError> {
        let narrowed = context.narrowed(template.references());
        self.fill(template, move || Variables::new(narrowed))
            .map_err(|error| missing::suggested(error, context, template.references()))
    }

    /// Fills the template of a notification.
    pub(crate) fn render_event(
        &self,
        template: &Template,
        event: BTreeMap<String, String>,
    ) -> Result<String, EvaluationError> {
        self.fill(template, move || Variables::of_event(event))
    }

    fn fill(
        &self,
        template: &Template,
        variables: impl FnOnce() -> Variables + Send + 'static,
    ) -> Result<String, EvaluationError> {
        if let Some(text) = template.as_text() {
            return Ok(text.to_owned());
        }
        let task = template.clone();
        self.run_at(template.is_shallow(), move || {
            let variables = variables();
            task.render_with(|expression| evaluate::value(expression, &variables))
        })
        .map_err(|source| engine_error(template.source(), source))?
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

    /// Runs an evaluation on this thread, or on a thread with a large stack if it is deep.
    fn run_at<T: Send + 'static>(
        &self,
        is_shallow: bool,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        let begun = Instant::now();
        let result = if is_shallow {
            catch_unwind(AssertUnwindSafe(task)).map_err(|_| EngineError::Broken)
        } else {
            self.evaluating.run(task)
        };
        if let Some(observer) = self.observer.get() {
            observer(begun.elapsed());
        }
        result
    }

    /// Runs a parser on a thread for parsing and waits for its result. The task itself must not call this, because it would wait
    /// for itself.
    pub(crate) fn parse<T: Send + 'static>(
        &self,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        self.parsing.run(task)
    }
}

impl Pool {
    fn new(name: &str, threads: usize) -> io::Result<Self> {
        let (tasks, queue) = channel::<Task>();
        let queue = Arc::new(Mutex::new(queue));
        let mut pool = Self {
            tasks: Some(tasks),
            threads: Vec::new(),
        };
        for number in 0..threads.max(1) {
            let queue = Arc::clone(&queue);
            let thread = std::thread::Builder::new()
                .name(format!("{name}-{number}"))
                .stack_size(SANDBOX_STACK_BYTES)
                .spawn(move || work(&queue))?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Runs a task on one of the threads and waits for its result.
    fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        let (answer, answered) = channel();
        let task: Task = Box::new(move || {
            // Ignore a failure: the caller may be gone.
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

/// Runs tasks until the pool is dropped. A task that panics drops its sender, which notifies its caller.
fn work(queue: &Mutex<Receiver<Task>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(task) => drop(catch_unwind(AssertUnwindSafe(task))),
            Err(_) => return,
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        drop(self.tasks.take());
        for thread in self.threads.drain(..) {
            // The threads catch panics of their tasks, so the result is always the same.
            let _ended = thread.join();
        }
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("parsing", &self.parsing.threads.len())
            .field("evaluating", &self.evaluating.threads.len())
            .finish()
    }
}
