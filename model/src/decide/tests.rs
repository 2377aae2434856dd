//! The promises of every decision, one file per family. `properties` runs all of them at random.

mod blobs;
mod channels;
mod claim;
mod clock;
mod complete;
mod conditions;
mod deliveries;
mod delivery_rules;
mod dispatch;
mod end;
mod ends;
mod events;
mod once;
mod properties;
mod removal;
mod report;
mod rerun;
mod retry;
mod rules;
mod runner_projects;
mod runners;
mod sources;
mod suspend;
mod tokens;
mod values;
mod workflows;
