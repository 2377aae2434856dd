//! Refused sign-ins of the present minute. They are counted in memory and written to the audit log at the end of the
//! minute. So nobody can fill the log, or cause commits, without a credential.

use std::collections::HashMap;
use std::net::IpAddr;

use model::{AuditAction, UserName};
use state::AuditEntry;

use super::SignIns;
use crate::limits::{REFUSED_SIGN_IN_ADDRESSES, REFUSED_SIGN_INS};
use crate::supervise::lock;

/// Refusals by address and by the user who was tried, since the last lines were written.
#[derive(Debug, Default)]
pub(super) struct RefusedSignIns {
    of_addresses: HashMap<(IpAddr, Option<UserName>), Refused>,
    of_others: Option<Refused>,
}

#[derive(Debug)]
struct Refused {
    entry: AuditEntry,
    count: u64,
}

impl Refused {
    fn line(self, user: Option<&UserName>) -> (AuditEntry, AuditAction) {
        let action = AuditAction::sign_in_refused(self.count, user);
        (self.entry, action)
    }
}

impl RefusedSignIns {
    /// Counts a refusal. True if it is the first of its minute.
    fn add(&mut self, address: IpAddr, user: Option<UserName>, entry: AuditEntry) -> bool {
        let is_first = self.of_addresses.is_empty();
        let has_room = self.of_addresses.len() < REFUSED_SIGN_IN_ADDRESSES;
        let key = (address, user);
        let of_one = self.of_addresses.get_mut(&key);
        match (of_one, &mut self.of_others) {
            (Some(refused), _) => *refused = again(refused, entry, Some(address)),
            (None, _) if has_room => {
                self.of_addresses.insert(key, first(entry, Some(address)));
            }
            (None, Some(refused)) => *refused = again(refused, entry, None),
            (None, others @ None) => *others = Some(first(entry, None)),
        }
        is_first
    }

    /// Takes the lines, sorted by address, and restarts the count.
    fn take(&mut self) -> Vec<(AuditEntry, AuditAction)> {
        let Self {
            of_addresses,
            of_others,
        } = std::mem::take(self);
        let mut of_addresses: Vec<_> = of_addresses.into_iter().collect();
        of_addresses.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let of_addresses = of_addresses
            .into_iter()
            .map(|((_, user), refused)| refused.line(user.as_ref()));
        let of_others = of_others.map(|refused| refused.line(None));
        of_addresses.chain(of_others).collect()
    }
}

fn first(entry: AuditEntry, address: Option<IpAddr>) -> Refused {
    Refused {
        entry: AuditEntry { address, ..entry },
        count: 1,
    }
}

fn again(before: &Refused, entry: AuditEntry, address: Option<IpAddr>) -> Refused {
    Refused {
        count: before.count + 1,
        ..first(entry, address)
    }
}

impl SignIns {
    /// Counts a refused credential, and names the user who was tried. Its line is written within a minute.
    pub fn note_refused(&self, address: IpAddr, user: Option<UserName>, entry: AuditEntry) {
        if lock(&self.refused).add(address, user, entry) {
            self.first_refused.notify_one();
        }
    }

    /// Writes the lines of each minute in which a credential was refused.
    pub(crate) async fn write_refused_sign_ins(&self) {
        loop {
            self.first_refused.notified().await;
            tokio::time::sleep(REFUSED_SIGN_INS).await;
            self.write_refused().await;
        }
    }

    pub(crate) async fn write_refused(&self) {
        let lines = lock(&self.refused).take();
        let count = lines.len();
        if count > 0
            && let Err(error) = self.state.note(lines).await
        {
            tracing::warn!(%error, count, "refused sign-ins are missing in the audit log");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use model::AuditKind;
    use state::{AuditFilter, AuditRecord};
    use tempfile::TempDir;
    use uuid::Uuid;

    use super::*;
    use crate::testing::{TestDaemon, freeze, in_time};

    fn request(number: u128) -> AuditEntry {
        AuditEntry {
            actor: None,
            address: None,
            method: "POST".to_owned(),
            path: "/v0/sessions".to_owned(),
            request: Uuid::from_u128(number),
        }
    }

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    fn fields((entry, action): &(AuditEntry, AuditAction)) -> (Option<IpAddr>, Option<u64>, u128) {
        (entry.address, action.count, entry.request.as_u128())
    }

    #[test]
    fn each_address_has_one_line_with_its_count_and_its_latest_request() {
        let mut refused = RefusedSignIns::default();
        assert!(refused.add(address(2), None, request(1)));
        assert!(!refused.add(address(1), None, request(2)));
        assert!(!refused.add(address(2), None, request(3)));
        let lines: Vec<_> = refused.take().iter().map(fields).collect();
        assert_eq!(
            lines,
            [
                (Some(address(1)), Some(1), 2),
                (Some(address(2)), Some(2), 3)
            ]
        );
        assert!(refused.take().is_empty());
        assert!(refused.add(address(2), None, request(4)), "a new minute");
    }

    #[test]
    fn each_user_who_was_tried_has_a_line() {
        let mut refused = RefusedSignIns::default();
        let ann: UserName = "ann".parse().unwrap();
        for user in [Some(ann.clone()), None, Some(ann)] {
            refused.add(address(1), user, request(1));
        }
        let lines = refused.take().into_iter();
        let lines: Vec<_> = lines.map(|(_, it)| (it.name, it.count)).collect();
        assert_eq!(lines, [(None, Some(1)), (Some("ann".to_owned()), Some(2))]);
    }

    #[test]
    fn all_addresses_beyond_the_limit_share_one_line() {
        let mut refused = RefusedSignIns::default();
        for round in 0..3 {
            for last in 0..u8::MAX {
                refused.add(address(last), None, request(round));
            }
        }
        let lines = refused.take();
        assert_eq!(lines.len(), REFUSED_SIGN_IN_ADDRESSES + 1);
        let others = 3 * (usize::from(u8::MAX) - REFUSED_SIGN_IN_ADDRESSES);
        assert_eq!(
            lines.last().map(fields),
            Some((None, Some(others as u64), 2))
        );
    }

    async fn written(daemon: &TestDaemon) -> Vec<AuditRecord> {
        let filter = AuditFilter {
            kind: Some(AuditKind::SignInRefused),
            ..AuditFilter::default()
        };
        let page = daemon.handle.state().audit(&filter, None, 100).await;
        page.unwrap().records
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_are_written_after_a_minute_and_at_a_stop() {
        let _frozen = freeze();
        let folder = tempfile::tempdir().unwrap();
        let daemon = TestDaemon::open(&folder, 0, Vec::new()).await;
        for number in 0..1_000 {
            let sign_ins = daemon.handle.sign_ins();
            sign_ins.note_refused(address(1), None, request(number));
        }
        assert_eq!(written(&daemon).await, []);
        let waits = tokio::time::Instant::now();
        while written(&daemon).await.is_empty() {
            tokio::time::advance(REFUSED_SIGN_INS / 60).await;
        }
        assert!(waits.elapsed() >= REFUSED_SIGN_INS);
        let lines = written(&daemon).await;
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(lines[0].actions[0].count, Some(1_000));

        daemon
            .handle
            .sign_ins()
            .note_refused(address(1), None, request(1));
        in_time("the close", daemon.close()).await;
        let lines = read_again(&folder).await;
        let counts: Vec<_> = lines.iter().map(|line| line.actions[0].count).collect();
        assert_eq!(counts, [Some(1), Some(1_000)]);
    }

    async fn read_again(folder: &TempDir) -> Vec<AuditRecord> {
        let daemon = TestDaemon::open(folder, 0, Vec::new()).await;
        let lines = written(&daemon).await;
        daemon.close().await;
        lines
    }
}
