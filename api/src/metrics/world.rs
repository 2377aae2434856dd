//! The metrics of the world. They are updated on each scrape.

use model::{Rights, SourceConditionKind};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use reconciler::Handle;
use state::Room;

use super::series::SeriesMetrics;
use super::{Labels, Measured, add};

pub(super) struct WorldMetrics {
    jobs: Family<Labels<1>, Gauge>,
    runners: Family<Labels<1>, Gauge>,
    runner_slots: Gauge,
    polls: Gauge,
    source_conditions: Family<Labels<3>, Gauge>,
    disk: Family<Labels<1>, Gauge>,
    disk_bytes: Family<Labels<1>, Gauge>,
    tokens: Gauge,
    circles: Gauge,
    channels_failing: Gauge,
    interactions: Family<Labels<1>, Gauge>,
    masked_errors: Counter,
    certificate: Family<Labels<0>, Gauge>,
    backup: Family<Labels<0>, Gauge>,
    series: SeriesMetrics,
}

impl WorldMetrics {
    #[rustfmt::skip]
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            jobs: add(registry, "jobs", "Unfinished jobs by state"),
            runners: add(registry, "runners", "Registered runners, by whether they are connected"),
            runner_slots: add(registry, "runner_slots", "Jobs that the connected runners can run at once"),
            polls: add(registry, "waiting_polls", "Requests for work that wait for a job"),
            source_conditions: add(registry, "source_condition", "1 for the present status of each condition of each source"),
            disk: add(registry, "disk", "1 for the mark that the disk of the state has reached: enough, low or full"),
            disk_bytes: add(registry, "disk_bytes", "The disk of the state: total, and free for the daemon"),
            tokens: add(registry, "tokens", "Access tokens"),
            circles: add(registry, "circles", "Groups of scans that wake each other, after more than 100 laps of under a minute each"),
            channels_failing: add(registry, "channels_failing", "Channels of notifications whose messages do not arrive"),
            interactions: add(registry, "callback_interactions", "What callback servers have heard: kept, left_out (of a flood or at a limit), and with an unknown_tag"),
            masked_errors: add(registry, "masked_errors", "Errors reported by runners in which the daemon had to hide a secret"),
            certificate: add(registry, "certificate_expiry_timestamp_seconds", "When the certificate of the listener expires"),
            backup: add(registry, "backup_timestamp_seconds", "When the newest backup was made"),
            series: SeriesMetrics::new(registry),
        }
    }

    pub(super) fn update(&self, handle: &Handle, measured: &Measured) {
        self.source_conditions.clear();
        handle.state().read(|world| {
            let of = |state: &str| {
                self.jobs
                    .get_or_create_owned(&[("state", state.to_owned())])
            };
            let running = world.running().count();
            set(&of("running"), running);
            set(&of("scheduled"), world.unfinished_jobs() - running);
            let (mut connected, mut gone, mut slots) = (0, 0, 0);
            for runner in world.runners() {
                if handle.runners().is_connected(runner.id) {
                    connected += 1;
                    slots += runner.capacity as usize;
                } else {
                    gone += 1;
                }
            }
            let of = |connected: &str| {
                let labels = [("connected", connected.to_owned())];
                self.runners.get_or_create_owned(&labels)
            };
            set(&of("true"), connected);
            set(&of("false"), gone);
            set(&self.runner_slots, slots);
            set(&self.tokens, world.tokens().count());
            set(
                &self.circles,
                world.seen_by(&Rights::admin()).circles().len(),
            );
            let failing = world.channels().filter(|it| it.failing.is_some());
            set(&self.channels_failing, failing.count());
            let (mut kept, mut left_out, mut unknown) = (0, 0, 0);
            for heard in world.callbacks().map(|it| it.interactions) {
                kept += heard.count;
                left_out += heard.left_out;
                unknown += heard.unknown_tags;
            }
            let heard = [
                ("kept", kept),
                ("left_out", left_out),
                ("unknown_tag", unknown),
            ];
            for (outcome, count) in heard {
                let labels = [("outcome", outcome.to_owned())];
                self.interactions
                    .get_or_create(&labels)
                    .set(count.cast_signed());
            }
            for source in world.sources().filter(|source| source.configured) {
                for kind in SourceConditionKind::ALL {
                    let labels = [
                        ("source", source.name.to_string()),
                        ("condition", kind.name().to_owned()),
                        ("status", source.status(kind).name().to_owned()),
                    ];
                    self.source_conditions.get_or_create(&labels).set(1);
                }
            }
            self.series.update(handle, world);
        });
        let expires = handle.settings().upkeep.certificate_expires();
        for (family, time) in [
            (&self.certificate, expires),
            (&self.backup, measured.backup),
        ] {
            family.clear();
            if let Some(time) = time {
                family.get_or_create(&[]).set(time.timestamp());
            }
        }
        set(&self.polls, handle.runners().waiting_polls());
        let masked = handle.runners().masked_errors();
        let counted = self.masked_errors.get();
        self.masked_errors.inc_by(masked.saturating_sub(counted));
        for (mark, at) in [
            ("enough", Room::Enough),
            ("low", Room::Low),
            ("full", Room::Full),
        ] {
            let labels = [("mark", mark.to_owned())];
            self.disk
                .get_or_create(&labels)
                .set(i64::from(measured.room == at));
        }
        if let Some(disk) = &measured.disk {
            for (of, bytes) in [("total", disk.total), ("free", disk.free)] {
                let labels = [("of", of.to_owned())];
                let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
                self.disk_bytes.get_or_create(&labels).set(bytes);
            }
        }
    }
}

fn set(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}
