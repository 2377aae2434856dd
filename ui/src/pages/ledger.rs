//! The ledger of a scan: what was evaluated, and what came of it.

use maud::{Markup, html};
use wire::{LedgerCause, LedgerOutcome, LedgerRecord};

use super::clause::{evaluation, what_decided};
use crate::list::{empty, table};
use crate::words::{at, cause, condition, outcome_of};

pub(super) fn ledger(records: &[LedgerRecord]) -> Markup {
    html! {
        @if records.is_empty() {
            (empty(&html! { p { "Its schedule and its expression have not been evaluated yet." } }))
        } @else {
            (table("Ledger", &["time", "outcome", "because of", "the expression said", "what came of it"], &html! {
                @for record in records { (row(record)) }
            }))
        }
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
