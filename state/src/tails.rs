//! The ends of the ledgers of days: the audit log, the events, and the delivery log.

use chrono::NaiveDate;
use model::event::Event;
use model::outbox::DeliveryRecord;
use model::{Change, Timestamp};
use store::{Batch, Key};

use crate::audit::AuditRecord;
use crate::error::ReadError;
use crate::layout::{Layout, RecordPlace};
use crate::limits::EVENT_DAYS;
use crate::reader::StoreReader;
use crate::tail::{DayLedger, Tail};

#[derive(Debug, Clone)]
pub(crate) struct Tails {
    pub(crate) audit: Tail<AuditRecord>,
    events: Tail<Event>,
    deliveries: Tail<DeliveryRecord>,
}

impl DayLedger for Event {
    const DAYS: u64 = EVENT_DAYS;
    const PLACE: RecordPlace = RecordPlace::Events;

    fn file(day: NaiveDate) -> Key {
        Layout::events(day)
    }
}

impl DayLedger for DeliveryRecord {
    const DAYS: u64 = EVENT_DAYS;
    const PLACE: RecordPlace = RecordPlace::Deliveries;

    fn file(day: NaiveDate) -> Key {
        Layout::deliveries(day)
    }
}

impl Tails {
    #[cfg(test)]
    pub(crate) const fn none() -> Self {
        use std::collections::BTreeSet;
        Self {
            audit: Tail::new(BTreeSet::new(), 0),
            events: Tail::new(BTreeSet::new(), 0),
            deliveries: Tail::new(BTreeSet::new(), 0),
        }
    }

    pub(crate) async fn read(reader: &StoreReader) -> Result<Self, ReadError> {
        Ok(Self {
            audit: Tail::read(reader).await?,
            events: Tail::read(reader).await?,
            deliveries: Tail::read(reader).await?,
        })
    }

    /// Adds the lines of a decision to its batch. Returns the new ends, if there are any lines.
    pub(crate) fn append(
        &self,
        now: Timestamp,
        audit: &[AuditRecord],
        changes: &[Change],
        batch: &mut Batch,
    ) -> Result<Option<Self>, serde_json::Error> {
        let events = changes.iter().filter_map(|change| match change {
            Change::Event(event) => Some(&**event),
            _ => None,
        });
        let deliveries = changes.iter().filter_map(|change| match change {
            Change::Delivery(delivery) => Some(&**delivery),
            _ => None,
        });
        let audit = self.audit.append(now, audit, batch)?;
        let events = self.events.append(now, events, batch)?;
        let deliveries = self.deliveries.append(now, deliveries, batch)?;
        if audit.is_none() && events.is_none() && deliveries.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            audit: audit.unwrap_or_else(|| self.audit.clone()),
            events: events.unwrap_or_else(|| self.events.clone()),
            deliveries: deliveries.unwrap_or_else(|| self.deliveries.clone()),
        }))
    }
}
