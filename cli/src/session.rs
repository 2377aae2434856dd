//! The context of every command.

use std::path::PathBuf;

use client::Client;
use serde::Serialize;
use uuid::Uuid;
use wire::{DamagedLines, Page};

use crate::connection::Connection;
use crate::error::Error;
use crate::format::Format;
use crate::selected_job::SelectedJob;
use crate::terminal::Terminal;

pub(crate) struct Session<'a> {
    pub(crate) terminal: &'a mut Terminal,
    pub(crate) format: Format,
    /// The file of a command with --output-file, as `SERVICE_OUTPUT` may name it.
    pub(crate) output_file: Option<PathBuf>,
    pub(crate) connection: Connection,
}

impl Session<'_> {
    /// Prints a message for people.
    pub(crate) fn report(&mut self, text: &str) {
        self.terminal.report(text);
    }

    pub(crate) fn client(&self) -> Result<Client, Error> {
        self.connection.client()
    }

    /// The client, and the id of a job.
    pub(crate) async fn client_and_job(&self, job: &SelectedJob) -> Result<(Client, Uuid), Error> {
        // Report a missing job before a missing daemon.
        let name = job.name()?;
        let client = self.client()?;
        let id = name.id(&client).await?;
        Ok((client, id))
    }

    pub(crate) fn show<T: Serialize>(
        &mut self,
        value: &T,
        table: impl FnOnce(&T) -> String,
    ) -> Result<(), Error> {
        let text = self.format.show(value, table)?;
        self.terminal.data(&text)
    }

    /// Prints a value as JSON, even for people.
    pub(crate) fn show_json(&mut self, value: &serde_json::Value) -> Result<(), Error> {
        let format = match self.format {
            Format::Table | Format::Json => Format::Json,
            Format::Yaml => Format::Yaml,
        };
        let text = format.show(value, |_| String::new())?;
        self.terminal.data(&text)
    }

    /// Prints one page of a list, its unreadable lines, and how to continue.
    pub(crate) fn show_page<T: Serialize>(
        &mut self,
        page: &Page<T>,
        table: impl FnOnce(&Page<T>) -> String,
    ) -> Result<(), Error> {
        self.show(page, table)?;
        self.warn_missing(&page.damaged);
        if let Some(cursor) = &page.next_cursor {
            self.report(&format!("there are more: --cursor {cursor}"));
        }
        Ok(())
    }

    /// Warns about lines that are missing in an answer.
    pub(crate) fn warn_missing(&mut self, damaged: &[DamagedLines]) {
        for DamagedLines { file, lines } in damaged {
            let (s, are) = if *lines == 1 {
                ("", "is")
            } else {
                ("s", "are")
            };
            self.report(&format!(
                "warning: {lines} line{s} of {file} cannot be read and {are} missing here; `everscand fsck` says more"
            ));
        }
    }
}
