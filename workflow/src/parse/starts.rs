//! Finds scans that never start by themselves, and scans that start each other forever. An expression is evaluated when a scan
//! that it names succeeds. So the expressions of a file form a graph. A part of the graph that no schedule and no dispatch
//! reaches never starts.

use std::collections::HashMap;

use super::Reader;
use super::declared::member;
use super::object::listed;
use super::triggers::ReadTriggers;
use crate::diagnostic::Code;
use crate::expression::endless;
use crate::position::Span;
use crate::yaml::Entry;

/// The most names that a message shows.
const SHOWN: usize = 5;

/// How a scan starts.
enum Start {
    /// By a schedule, by a callback, by a declared dispatch, or by a part that could not be read.
    Itself,
    /// After a success of one of these scans.
    After(Vec<usize>),
    /// After a success of any other scan.
    AfterAny,
}

impl Reader<'_> {
    /// Reports expressions that are never evaluated.
    pub(super) fn starts(&mut self, scans: &[Entry], triggers: &[ReadTriggers]) {
        let places: HashMap<&str, usize> = scans
            .iter()
            .enumerate()
            .map(|(at, scan)| (&*scan.key, at))
            .collect();
        let mut starts = Vec::with_capacity(scans.len());
        for (at, (scan, triggers)) in scans.iter().zip(triggers).enumerate() {
            starts.push(self.start(at, scan, triggers, &places));
        }
        let started = started(&starts);
        for (at, _) in started.iter().enumerate().filter(|(_, is)| !**is) {
            if let (Some(scan), Some(start)) = (scans.get(at), starts.get(at)) {
                self.never_starts(scan, start, scans);
            }
        }
        let expressions: Vec<_> = scans
            .iter()
            .zip(triggers)
            .map(|(scan, triggers)| {
                let read = triggers.read.as_ref().filter(|_| triggers.is_whole);
                (&*scan.key, read.and_then(|read| read.expr.as_ref()))
            })
            .collect();
        for cycle in endless(&expressions) {
            let is_started = cycle.iter().any(|at| started.get(*at) == Some(&true));
            let cycle: Vec<&Entry> = cycle.iter().filter_map(|at| scans.get(*at)).collect();
            if let Some(first) = cycle.first().filter(|_| is_started) {
                self.endless_cycle(first, &cycle);
            }
        }
    }

    fn endless_cycle(&mut self, first: &Entry, cycle: &[&Entry]) {
        let names = cycle.iter().map(|scan| scan.shown_key());
        let names: Vec<&str> = names.take(SHOWN).collect();
        let message = format!(
            "the scans {} start each other for ever: their expressions do not depend on a result",
            listed(&names)
        );
        let span = self.expr_span(first);
        self.report
            .warning(span, Code::EndlessCycle, message)
            .hint("let one of the expressions depend on a result, such as `scans.X.has_news()`, or start one of the scans by `cron`");
    }

    fn start(
        &mut self,
        at: usize,
        scan: &Entry,
        triggers: &ReadTriggers,
        places: &HashMap<&str, usize>,
    ) -> Start {
        let starts_otherwise = member(&scan.value, "on").is_some_and(|on| {
            ["cron", "callback", "dispatch"]
                .iter()
                .any(|key| member(on, key).is_some())
        });
        let read = triggers.read.as_ref();
        let Some(expr) = read.and_then(|triggers| triggers.expr.as_ref()) else {
            return Start::Itself;
        };
        let references = expr.references();
        let named = references.scans.iter();
        let named: Vec<usize> = named
            .filter_map(|name| places.get(name.as_str()).copied())
            .collect();
        if !references.any_scan && named.as_slice() == [at] {
            let message = format!(
                "scan `{}` waits only for itself, and a scan never starts itself",
                scan.shown_key()
            );
            let hint = if starts_otherwise {
                "the triggers of a scan are independent; a condition for all of them is the `if` of a step"
            } else {
                "name the scan whose success is to start it"
            };
            let span = self.expr_span(scan);
            self.report
                .error(span, Code::ReadsOnlyItself, message)
                .hint(hint);
            return Start::Itself;
        }
        if starts_otherwise || !triggers.is_whole {
            Start::Itself
        } else if references.any_scan || named.is_empty() {
            Start::AfterAny
        } else {
            Start::After(named)
        }
    }

    fn never_starts(&mut self, scan: &Entry, start: &Start, scans: &[Entry]) {
        let waits_for = match start {
            Start::Itself => return,
            Start::AfterAny => "any other".to_owned(),
            Start::After(named) => {
                let names = named.iter().filter_map(|at| scans.get(*at));
                let names: Vec<&str> = names
                    .filter(|other| other.key != scan.key)
                    .map(Entry::shown_key)
                    .take(SHOWN)
                    .collect();
                format!("what it waits for ({})", listed(&names))
            }
        };
        let message = format!(
            "scan `{}` never starts by itself, and neither does {waits_for}",
            scan.shown_key()
        );
        let span = self.expr_span(scan);
        self.report
            .warning(span, Code::NeverStarts, message)
            .hint("give `cron` or `dispatch: {}` to the scan that begins");
    }

    /// The place of a scan's expression.
    fn expr_span(&self, scan: &Entry) -> Span {
        let expr = member(&scan.value, "on").and_then(|on| member(on, "expr"));
        expr.map_or(scan.key_span, |node| self.report.places(node).whole())
    }
}

/// For each scan: whether it can start without a person, directly or through other scans.
fn started(starts: &[Start]) -> Vec<bool> {
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); starts.len()];
    let mut of_any = Vec::new();
    let mut started = vec![false; starts.len()];
    let mut pending = Vec::new();
    for (at, start) in starts.iter().enumerate() {
        match start {
            Start::Itself => pending.push(at),
            Start::AfterAny => of_any.push(at),
            Start::After(named) => {
                for leader in named {
                    if let Some(followers) = followers.get_mut(*leader) {
                        followers.push(at);
                    }
                }
            }
        }
    }
    if !pending.is_empty() {
        pending.append(&mut of_any);
    }
    while let Some(at) = pending.pop() {
        if let Some(is_started) = started.get_mut(at).filter(|is| !**is) {
            *is_started = true;
            pending.extend(followers.get(at).into_iter().flatten());
        }
    }
    started
}
