//! The sources of the daemon's configuration, and their records.

use std::time::Duration;

use model::decide::{ConfigureSource, DropSource, Retire};
use model::{SourceName, WorkflowId, WorkflowStatus};
use state::{State, SubmitError};

use crate::git::{Access, Location, Reference};

/// A source in the daemon's configuration.
#[derive(Debug, Clone)]
pub struct SourceConfig {
    pub name: SourceName,
    pub location: Location,
    /// The credentials and certificates of the repository.
    pub access: Access,
    /// The reference to follow; none for the remote's default branch.
    pub reference: Option<Reference>,
    /// Folder of workflows within the repository.
    pub folder: String,
    /// The time between two polls, unless an event wakes the source earlier.
    pub interval: Duration,
}

/// Records the configured sources. Sources that are no longer configured are dropped, and their workflows are retired
/// until the source is configured again.
pub(crate) async fn configure(state: &State, sources: &[SourceConfig]) -> Result<(), SubmitError> {
    for source in sources {
        configure_one(state, source).await?;
    }
    let (gone, leftover): (Vec<SourceName>, Vec<WorkflowId>) = state.read(|world| {
        let configured = |name: &SourceName| sources.iter().any(|source| source.name == *name);
        let gone = world
            .sources()
            .map(|source| &source.name)
            .filter(|name| !configured(name));
        let leftover = world.workflows().filter(|workflow| {
            workflow.record.status == WorkflowStatus::Active && !configured(&workflow.record.source)
        });
        (
            gone.cloned().collect(),
            leftover.map(|workflow| workflow.record.id).collect(),
        )
    });
    for name in gone {
        state.submit(DropSource { name }).await?;
    }
    for workflow in leftover {
        retire(state, Retire { workflow }).await?;
    }
    Ok(())
}

pub(super) async fn retire(state: &State, retire: Retire) -> Result<(), SubmitError> {
    let workflow = retire.workflow;
    state.submit(retire).await?;
    let record = state.read(|world| world.workflow_record(workflow).cloned());
    if let Some(record) = record {
        tracing::info!(source = %record.source, workflow = record.name, "a workflow is retired");
    }
    Ok(())
}

/// Records a source, unless the record is up to date.
pub(super) async fn configure_one(state: &State, config: &SourceConfig) -> Result<(), SubmitError> {
    let command = ConfigureSource {
        name: config.name.clone(),
        url: config.location.to_string(),
        reference: config.reference.as_ref().map(ToString::to_string),
        folder: config.folder.clone(),
        interval_seconds: config.interval.as_secs(),
    };
    let is_up_to_date = state.read(|world| {
        world.source(&command.name).is_some_and(|source| {
            source.configured
                && source.url == command.url
                && source.reference == command.reference
                && source.folder == command.folder
                && source.interval_seconds == command.interval_seconds
        })
    });
    if is_up_to_date {
        Ok(())
    } else {
        state.submit(command).await
    }
}
