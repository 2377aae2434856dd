//! The ledger of a scan: what was evaluated, and what came of it.

use maud::{Markup, html};
use wire::{LedgerCause, LedgerOutcome, LedgerRecord, Scan};

use super::clause::{evaluation, what_decided};
use crate::list::{empty, table};
use crate::words::{at, cause, condition, outcome_of};

pub(super) fn ledger(scan: &Scan, records: &[LedgerRecord]) -> Markup {
    html! {
        @if records.is_empty() {
            (empty(&html! { p { (nothing_yet(scan)) } }))
        } @else {
            (table("Ledger", &["time", "outcome", "because of", "the expression said", "what came of it"], &html! {
                @for record in records { (row(record)) }
            }))
        }
    }
}

/// Why a ledger has no record.
const fn nothing_yet(scan: &Scan) -> &'static str {
    match (&scan.cron, &scan.expr) {
        (Some(_), Some(_)) => "Its schedule and its expression have not been evaluated yet.",
        (Some(_), None) => "Its schedule has not been evaluated yet.",
        (None, Some(_)) => "Its expression has not been evaluated yet.",
        (None, None) => "Only people start it, so there is nothing to evaluate.",
    }
}

fn row(record: &LedgerRecord) -> Markup {
    let (shape, word) = match &record.outcome {
        LedgerOutcome::Made { .. } => ("succeeded", "made"),
        LedgerOutcome::NotMade { .. } => ("skipped", "no job"),
        LedgerOutcome::Skipped { .. } => ("cancelled", "skipped"),
    };
    html! {
        tr.repeats[matches!(record.cause, LedgerCause::Repeats { .. })] {
            td { (at(record.at)) }
            td { (condition(shape, word)) }
            td.wide { (cause(record)) }
            td.wide {
                @if let Some(read) = &record.evaluation {
                    details {
                        summary { (what_decided(read)) }
                        (evaluation(read))
                    }
                }
            }
            td.wide { (outcome_of(record)) }
        }
    }
}
