//! Callback servers and interactions for people. Names and requests of strangers are cleaned.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use wire::{
    Callback, CallbackCheck, CallbackOutcome, Interaction, InteractionRequest, Page,
    PlantedPayload, PlantingJob,
};

use crate::table::{Fields, Table, bytes, time};
use crate::untrusted::clean;

/// Bytes in a line of a dump.
const DUMPED: usize = 16;

pub(super) fn callbacks(page: &Page<Callback>) -> String {
    let mut table = Table::new(&["NAME", "PROJECT", "PLANT", "INTERACTIONS", "SIZE", "ID"]);
    for callback in &page.items {
        table.row([
            callback.name.clone(),
            callback.project.clone(),
            named(&callback.names),
            callback.interactions.to_string(),
            bytes(callback.bytes),
            callback.id.clone(),
        ]);
    }
    table.text()
}

/// The first name, which is in the first zone.
pub(super) fn named(names: &[String]) -> String {
    names.first().map_or_else(|| "-".to_owned(), Clone::clone)
}

pub(super) fn server(callback: &Callback) -> String {
    let keep = callback.keep_days.map(|days| format!("{days} days"));
    let mut fields = Fields::new()
        .add("callback server", &callback.name)
        .add("project", &callback.project)
        .add("id", &callback.id);
    for name in &callback.names {
        fields = fields.add("plant", name);
    }
    let full = callback
        .full
        .then_some("a limit is reached; nothing more is recorded");
    let some = |count: u64| (count > 0).then(|| count.to_string());
    fields
        .add("interactions", callback.interactions.to_string())
        .add_some("left out", some(callback.left_out))
        .add_some("unknown tags", some(callback.unknown_tags))
        .add("size", bytes(callback.bytes))
        .add_some("full", full)
        .add("names", callback.tokens.to_string())
        .add("kept", keep.unwrap_or_else(|| "for ever".to_owned()))
        .add("created", time(&callback.created_at))
        .add("by", &callback.created_by)
        .text()
}

pub(super) fn interactions(page: &Page<Interaction>) -> String {
    let headers = [
        "NUMBER", "AT", "TYPE", "FROM", "WHAT", "ANSWER", "NOTE", "JOB", "TAG",
    ];
    let mut table = Table::new(&headers);
    for it in &page.items {
        table.row([
            it.number.to_string(),
            time(&it.at),
            it.request.kind().to_owned(),
            it.peer.clone(),
            what(it),
            it.answer.clone(),
            planted(it),
            it.job.as_ref().map(job).unwrap_or_default(),
            it.tag.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table.text()
}

/// Where the name was planted, and with which payload.
fn planted(it: &Interaction) -> String {
    let payload = it.payload.as_ref().map(PlantedPayload::summary);
    let parts: Vec<String> = it.note.clone().into_iter().chain(payload).collect();
    parts.join(", ")
}

fn what(it: &Interaction) -> String {
    let mut what = it.request.summary();
    if it.repeats > 0 {
        what.push_str(&format!(" ({} times)", it.repeats + 1));
    }
    if it.left_out > 0 {
        what.push_str(&format!(" (after {} left out)", it.left_out));
    }
    what
}

/// A line for each finding, those of a zone below its name.
pub(super) fn check(check: &CallbackCheck) -> String {
    let mut text = String::new();
    let mut zone = None;
    for finding in &check.findings {
        if let Some(name) = finding.zone.as_ref().filter(|name| zone != Some(*name)) {
            text.push_str(&format!("{}\n", clean(name)));
        }
        zone = finding.zone.as_ref();
        let word = match finding.outcome {
            CallbackOutcome::Good => "good",
            CallbackOutcome::Bad => "BAD",
            CallbackOutcome::Unknown => "unknown",
        };
        let indent = if zone.is_some() { "  " } else { "" };
        text.push_str(&format!("{indent}{word:<7}  {}\n", clean(&finding.text)));
    }
    text
}

/// The scan and the id of a job.
fn job(job: &PlantingJob) -> String {
    format!("{} {}", job.scan, job.id)
}

/// One line about an interaction.
pub(super) fn line(it: &Interaction) -> String {
    let note = match (planted(it), &it.tag) {
        (note, Some(tag)) if note.is_empty() => format!("  ({tag})"),
        (note, None) if note.is_empty() => String::new(),
        (note, _) => format!("  ({note})"),
    };
    let by = it.job.as_ref().map(|by| format!("  job {}", job(by)));
    let by = by.unwrap_or_default();
    let (number, at, kind, peer) = (it.number, time(&it.at), it.request.kind(), &it.peer);
    clean(&format!(
        "{number}  {at}  {kind}  {peer}  {}{note}{by}",
        what(it)
    ))
}

/// An interaction with its raw request: text as text, and everything else in hexadecimal.
pub(super) fn interaction(it: &Interaction) -> String {
    let mut fields = Fields::new()
        .add("number", it.number.to_string())
        .add("at", time(&it.at))
        .add("type", it.request.kind())
        .add("from", &it.peer)
        .add("what", what(it))
        .add_some("tag", it.tag.as_ref())
        .add_some("note", it.note.as_ref())
        .add_some("payload", it.payload.as_ref().map(PlantedPayload::summary))
        .add_some("job", it.job.as_ref().map(job))
        .add("answer", &it.answer)
        .add_some("rule", it.rule.as_ref());
    let mut head = 0;
    match &it.request {
        InteractionRequest::Dns {
            transport,
            client_subnet,
            ..
        } => {
            fields = fields.add("over", transport);
            fields = fields.add_some("client", client_subnet.as_ref());
        }
        InteractionRequest::Http {
            head_bytes,
            truncated,
            tls,
            sni,
            ..
        } => {
            fields = fields.add_some("over", tls.then_some("TLS"));
            fields = fields.add_some("asked for", sni.as_ref());
            head = usize::try_from(*head_bytes).unwrap_or(0);
            let cut = truncated.then_some("the rest of the request was not kept");
            fields = fields.add_some("cut", cut);
        }
    }
    let raw = it.raw.as_deref().unwrap_or_default();
    let raw = STANDARD.decode(raw).unwrap_or_default();
    let (head, body) = raw.split_at(head.min(raw.len()));
    format!("{}\n{}{}", fields.text(), readable(head), readable(body))
}

fn readable(raw: &[u8]) -> String {
    let is_text = |text: &&str| !text.contains('\0');
    match std::str::from_utf8(raw).ok().filter(is_text) {
        Some(text) => text.lines().map(|line| clean(line) + "\n").collect(),
        None => dump(raw),
    }
}

fn dump(raw: &[u8]) -> String {
    let line = |(row, bytes): (usize, &[u8])| {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let shown = |byte: &u8| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        };
        let text: String = bytes.iter().map(shown).collect();
        format!("{:08x}  {:<47}  {text}\n", row * DUMPED, hex.join(" "))
    };
    raw.chunks(DUMPED).enumerate().map(line).collect()
}
