//! The board: waiting polls of runners, and jobs that are offered to runners.
//!
//! Offers are only in memory. A job stays scheduled until it is claimed, so a lost offer is made again. An offer is
//! valid only while its job waits for a runner and its runner is registered. Every round checks this in the world, so
//! nobody has to withdraw the offer. The board's clock never jumps with the wall clock.

mod polls;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use model::{
    Entropy, JobId, JobState, PlainToken, Reach, RunnerId, Timestamp, TokenHash, Turn, Turns,
    World, next_job,
};
use tokio::sync::oneshot;
use tokio::time::Instant;

pub(crate) use self::polls::Arrival;
use self::polls::Polls;
use super::presence::Instance;
use crate::limits::{DEADLINE_CHECK, OFFER, REPEAT};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    Assigned(JobId, PlainToken),
    Cancelled(JobId),
}

#[derive(Default)]
pub(crate) struct Board {
    waiting: Polls,
    offers: BTreeMap<JobId, Offer>,
    /// When a runner last got the message to stop a job that it still holds.
    cancels: HashMap<(RunnerId, JobId), Instant>,
    turns: Turns,
    /// The jobs that each runner holds according to its newest poll, without runners that hold no job. Shared with many
    /// readers.
    holding: Arc<HashMap<RunnerId, BTreeSet<JobId>>>,
    /// The number of each runner's newest poll, and the process that counts its polls.
    newest: HashMap<RunnerId, (Instance, u64)>,
    closed: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Poll {
    pub(crate) runner: RunnerId,
    pub(crate) instance: Instance,
    /// Its number among the polls of its process, if the process counts them.
    pub(crate) number: Option<u64>,
    pub(crate) capacity: u32,
    pub(crate) holding: BTreeSet<JobId>,
}

pub(crate) struct Wait {
    /// Its place on the board. None if the daemon is stopping or a newer poll arrived earlier.
    pub(crate) arrival: Option<Arrival>,
    /// The answer to the poll. The channel closes without an answer if the poll is removed from the board.
    pub(crate) answer: oneshot::Receiver<Vec<Message>>,
}

struct Offer {
    runner: RunnerId,
    token: PlainToken,
    until: Instant,
    /// When the runner last got the offer.
    sent: Instant,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// By the clock of the board.
    pub(crate) steady: Instant,
    /// By the clock of the world, which decides when retries are due.
    pub(crate) time: Timestamp,
}

#[derive(Default)]
struct Reply {
    messages: Vec<Message>,
    new: Vec<JobId>,
}

/// Whether offers were withdrawn, so that other runners may get their jobs in another round.
#[derive(PartialEq, Eq)]
enum Round {
    Done,
    Again,
}

impl Board {
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// True if a newer poll of the same process arrived earlier, because this poll took a slower connection. It
    /// describes an earlier state, so it must have no effect.
    pub(crate) fn is_overtaken(&mut self, poll: &Poll) -> bool {
        let Some(number) = poll.number else {
            return false;
        };
        let newest = self.newest.entry(poll.runner).or_default();
        if newest.0 == poll.instance && number < newest.1 {
            return true;
        }
        *newest = (poll.instance, number);
        false
    }

    /// Puts a poll on the board. A waiting poll of the same runner ends without a message. If the new poll is
    /// overtaken, it ends likewise.
    pub(crate) fn wait(&mut self, poll: Poll) -> Wait {
        let (sender, answer) = oneshot::channel();
        if self.is_overtaken(&poll) {
            let arrival = None;
            return Wait { arrival, answer };
        }
        self.waiting.remove(poll.runner);
        self.cancels
            .retain(|(runner, job), _| *runner != poll.runner || poll.holding.contains(job));
        if poll.holding.is_empty() {
            self.no_longer_holding(poll.runner);
        } else {
            Arc::make_mut(&mut self.holding).insert(poll.runner, poll.holding.clone());
        }
        if poll.capacity == 0 {
            // The runner takes no more jobs, so its offered jobs that it does not hold are free at once.
            self.offers
                .retain(|job, offer| offer.runner != poll.runner || poll.holding.contains(job));
        }
        let arrival = (!self.closed).then(|| self.waiting.insert(poll, sender));
        Wait { arrival, answer }
    }

    /// Removes a poll whose runner does not wait any more.
    pub(crate) fn withdraw(&mut self, runner: RunnerId, arrival: Arrival) {
        self.waiting.withdraw(runner, arrival);
    }

    /// Ends the poll of a runner whose projects have changed. Its next poll waits in another line.
    pub(crate) fn end_poll(&mut self, runner: RunnerId) {
        self.waiting.remove(runner);
    }

    /// Ends the runner's poll and withdraws its offers.
    pub(crate) fn forget(&mut self, runner: RunnerId) {
        self.waiting.remove(runner);
        self.offers.retain(|_, offer| offer.runner != runner);
        self.cancels.retain(|(of, _), _| *of != runner);
        self.newest.remove(&runner);
        self.no_longer_holding(runner);
    }

    fn no_longer_holding(&mut self, runner: RunnerId) {
        if self.holding.contains_key(&runner) {
            Arc::make_mut(&mut self.holding).remove(&runner);
        }
    }

    /// The jobs that each runner holds according to its newest poll.
    pub(crate) fn holding(&self) -> Arc<HashMap<RunnerId, BTreeSet<JobId>>> {
        self.holding.clone()
    }

    /// Answers every poll for which there is a message. Returns when to call this again, even without a change.
    pub(crate) fn assign(
        &mut self,
        world: &World,
        now: Now,
        entropy: &mut dyn Entropy,
    ) -> Option<Instant> {
        self.offers.retain(|job, offer| {
            now.steady < offer.until
                && is_claimable(world, *job)
                && serves(world, offer.runner, *job)
        });
        self.cancels
            .retain(|(runner, _), _| world.runner(*runner).is_some());
        let is_gone = |runner: &RunnerId| world.runner(*runner).is_none();
        if self.holding.keys().any(is_gone) {
            Arc::make_mut(&mut self.holding).retain(|runner, _| !is_gone(runner));
        }
        self.turns.keep_waiting(world);
        while self.answer(world, now, entropy) == Round::Again {}
        let retry = next_delayed(world, now).map(|pause| now.steady + pause);
        self.next_check().into_iter().chain(retry).min()
    }

    fn answer(&mut self, world: &World, now: Now, entropy: &mut dyn Entropy) -> Round {
        let offered: HashSet<RunnerId> = self.offers.values().map(|offer| offer.runner).collect();
        self.waiting.line_up(world, &offered);
        let polls = std::mem::take(&mut self.waiting);
        let (mut over, mut answers) = (Vec::new(), Vec::new());
        let lines = polls.lines(world).into_iter();
        let mut lines: Vec<_> = lines
            .map(|(reach, line)| (reach, line.iter().copied()))
            .collect();
        // Among all lines, the oldest poll is examined first.
        let heads = lines.iter_mut().enumerate();
        let mut heads: BinaryHeap<Reverse<(Arrival, usize)>> = heads
            .filter_map(|(at, (_, line))| Some(Reverse((line.next()?, at))))
            .collect();
        while let Some(Reverse((arrival, at))) = heads.pop() {
            let (reach, line) = &mut lines[at];
            let has_job = reach.is_none_or(|reach| {
                let taken = |job| self.offers.contains_key(&job);
                next_job(world, reach, &self.turns, now.time, taken).is_some()
            });
            if !has_job {
                // No other poll of this line can get a job either.
                continue;
            }
            heads.extend(line.next().map(|next| Reverse((next, at))));
            let Some(poll) = polls.at(arrival) else {
                continue;
            };
            if world.runner(poll.runner).is_none() {
                // The runner learns of its removal at its next poll.
                over.push(poll.runner);
                continue;
            }
            let busy = world.running_on(poll.runner).count();
            let reply = self.reply(world, poll, busy, now, entropy);
            if !reply.messages.is_empty() {
                answers.push((poll.runner, reply));
            }
        }
        self.waiting = polls;
        for runner in over {
            self.waiting.remove(runner);
            self.newest.remove(&runner);
        }
        let mut round = Round::Done;
        for (runner, Reply { messages, new }) in answers {
            let waiting = self.waiting.remove(runner);
            if waiting.is_none_or(|waiting| waiting.answer.send(messages).is_err()) {
                // The runner has just disconnected, so its offers are free for other runners.
                for job in new {
                    self.offers.remove(&job);
                    round = Round::Again;
                }
            }
        }
        round
    }

    fn next_job(
        &self,
        world: &World,
        poll: &Poll,
        reach: &Reach,
        time: Timestamp,
    ) -> Option<(Turn, JobId)> {
        // The runner still holds this job from an earlier offer, so the job cannot start there yet.
        let taken = |job| self.offers.contains_key(&job) || poll.holding.contains(&job);
        next_job(world, reach, &self.turns, time, taken)
    }

    /// The answer to a poll of a runner with `running` jobs.
    fn reply(
        &mut self,
        world: &World,
        poll: &Poll,
        running: usize,
        Now { steady: now, time }: Now,
        entropy: &mut dyn Entropy,
    ) -> Reply {
        let mut reply = Reply::default();
        let Some(runner) = world.runner(poll.runner) else {
            return reply;
        };
        let mut busy = running;
        for job in &poll.holding {
            let offered = self
                .offers
                .get(job)
                .is_some_and(|offer| offer.runner == poll.runner);
            if offered || runs_on(world, *job, poll.runner) {
                self.cancels.remove(&(poll.runner, *job));
                continue;
            }
            busy += 1;
            let sent = self.cancels.get(&(poll.runner, *job));
            if sent.is_none_or(|sent| *sent + REPEAT <= now) {
                self.cancels.insert((poll.runner, *job), now);
                reply.messages.push(Message::Cancelled(*job));
            }
        }
        for (job, offer) in &mut self.offers {
            if offer.runner != poll.runner {
                continue;
            }
            busy += 1;
            // The answer with the offer may have been lost, so send it again.
            if !poll.holding.contains(job) && offer.sent + REPEAT <= now {
                offer.sent = now;
                reply
                    .messages
                    .push(Message::Assigned(*job, offer.token.clone()));
            }
        }
        let capacity = usize::try_from(poll.capacity.min(runner.capacity)).unwrap_or(usize::MAX);
        let reach = Reach::of(runner);
        while busy < capacity {
            let Some((turn, job)) = self.next_job(world, poll, &reach, time) else {
                break;
            };
            let token = PlainToken::session(entropy);
            self.turns.serve(turn);
            let offer = Offer {
                runner: poll.runner,
                token: token.clone(),
                until: now + OFFER,
                sent: now,
            };
            self.offers.insert(job, offer);
            reply.messages.push(Message::Assigned(job, token));
            reply.new.push(job);
            busy += 1;
        }
        reply
    }

    pub(crate) fn offered_to(
        &self,
        job: JobId,
        token: TokenHash,
        now: Instant,
    ) -> Option<RunnerId> {
        let offer = self.offers.get(&job)?;
        (offer.token.hash() == token && now < offer.until).then_some(offer.runner)
    }

    /// When an offer expires, or when a message to a waiting runner must be repeated.
    fn next_check(&self) -> Option<Instant> {
        let lapses = self.offers.values().map(|offer| offer.until);
        let offers = self.offers.iter().filter_map(|(job, offer)| {
            let poll = self.waiting.of(offer.runner)?;
            (!poll.holding.contains(job)).then(|| offer.sent + REPEAT)
        });
        let cancels = self
            .cancels
            .iter()
            .filter(|((runner, _), _)| self.waiting.of(*runner).is_some())
            .map(|(_, sent)| *sent + REPEAT);
        lapses.chain(offers).chain(cancels).min()
    }

    /// From now on, answers every poll without a message, because the daemon is stopping.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.waiting.clear();
    }
}

/// The pause until the next delayed job is due, at most [`DEADLINE_CHECK`]: while the machine sleeps, the clock of the
/// world runs on, but timers do not.
fn next_delayed(world: &World, now: Now) -> Option<Duration> {
    let due = world.next_delayed(now.time)?;
    let pause = (due - now.time).to_std().unwrap_or_default();
    Some(pause.min(DEADLINE_CHECK))
}

fn is_claimable(world: &World, job: JobId) -> bool {
    world.job(job).is_some_and(|job| {
        let is_scheduled = matches!(job.state, JobState::Scheduled);
        is_scheduled && world.suspension(&job.scan_key()).is_none()
    })
}

/// True if the runner exists, and the job is of one of its projects.
fn serves(world: &World, runner: RunnerId, job: JobId) -> bool {
    let both = world.runner(runner).zip(world.job(job));
    both.is_some_and(|(runner, job)| runner.projects.contain(job.project))
}

fn runs_on(world: &World, job: JobId, runner: RunnerId) -> bool {
    world
        .job(job)
        .and_then(|job| job.state.run())
        .is_some_and(|run| run.runner.id == runner)
}

#[cfg(test)]
mod tests;
