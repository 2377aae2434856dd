//! The interactions of callback servers: records, lists and indexes them.
//!
//! A page of interactions is a file of lines, with a file of the raw requests beside it. A closed page also has a line in an index
//! with its tags, so that the hits of one tag are found without reading the other pages.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem;
use model::callback::{
    CallbackId, CallbackTag, IndexedPage, Interaction, Interactions, Mint, RequestType, index_of,
    indexed_tag, page_of,
};
use model::decide::{IndexInteractions, PageLines, RecordInteractions};
use model::limits::INTERACTION_PAGE;
use model::retention::Position;
use model::{Job, JobId, Timestamp};
use store::{Append, Piece};
use tokio::time::Instant;

use crate::error::{ReadError, SubmitError};
use crate::history::lines;
use crate::layout::Layout;
use crate::reader::StoreReader;
use crate::state::State;

/// Selects interactions.
#[derive(Debug, Clone, Default)]
pub struct InteractionFilter {
    pub tag: Option<CallbackTag>,
    pub kind: Option<RequestType>,
    pub address: Option<IpAddr>,
    /// The group of the planted payload, and its name.
    pub payload: Option<(String, Option<String>)>,
    /// In the raw request, in any case of ASCII letters.
    pub text: Option<String>,
    /// The job that has made the name.
    pub job: Option<JobId>,
    /// The running job that asks.
    pub heard_by: Option<Arc<Job>>,
}

/// Where a list of interactions begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InteractionPlace {
    /// Newest first, below this number; none begins with the newest.
    Before(Option<u64>),
    /// Oldest first, above this number.
    After(u64),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InteractionPage {
    pub interactions: Vec<Interaction>,
    /// The number before or after which the list goes on.
    pub next: Option<u64>,
}

impl InteractionFilter {
    fn takes(&self, server: CallbackId, it: &Interaction) -> bool {
        let heard = &it.heard;
        self.tag.is_none_or(|tag| heard.tag == Some(tag))
            && self.kind.is_none_or(|kind| heard.request.kind() == kind)
            && (self.job).is_none_or(|job| it.is_of(job))
            && (self.heard_by.as_ref()).is_none_or(|job| job.hears(server, it))
            && (self.address).is_none_or(|address| heard.address() == address.to_canonical())
            && (self.payload.as_ref()).is_none_or(|(group, name)| {
                it.planted.payload.as_ref().is_some_and(|planted| {
                    planted.group == *group
                        && (name.as_ref()).is_none_or(|name| planted.payload.as_str() == name)
                })
            })
    }
}

impl State {
    /// Records interactions, with their raw requests.
    pub async fn record_interactions(&self, record: RecordInteractions) -> Result<(), SubmitError> {
        let (server, new) = (record.server, record.new.clone());
        self.submit_with(record, None, move |decision, batch| {
            for page in &decision.answer {
                let PageLines {
                    page,
                    at,
                    text,
                    raw_at,
                    new: range,
                } = page;
                let mut append = |ledger, at, bytes: Bytes| {
                    if !bytes.is_empty() {
                        batch.appends.push(Append { ledger, at, bytes });
                    }
                };
                let text = Bytes::copy_from_slice(text.as_bytes());
                append(Layout::interactions(&server, *page), *at, text);
                let new = new.get(range.clone()).unwrap_or_default();
                let raw: Vec<&[u8]> = new.iter().map(|new| new.raw.as_slice()).collect();
                let raw = raw.concat();
                append(Layout::raw_requests(&server, *page), *raw_at, raw.into());
            }
        })
        .await
        .map(drop)
    }

    /// Interactions of a callback server that a filter accepts. The page ends early at the deadline.
    pub async fn interactions(
        &self,
        server: CallbackId,
        filter: &InteractionFilter,
        from: InteractionPlace,
        limit: usize,
        deadline: Instant,
    ) -> Result<InteractionPage, ReadError> {
        let search = Search::new(self.reader(), server, self.end_of(server), filter, limit);
        search.run(from, deadline).await
    }

    /// An interaction with its raw request.
    pub async fn interaction(
        &self,
        server: CallbackId,
        number: u64,
    ) -> Result<Option<(Interaction, Bytes)>, ReadError> {
        let end = self.end_of(server);
        let page = page_of(number);
        if page < end.oldest || number >= end.next {
            return Ok(None);
        }
        let lines = page_lines(self.reader(), server, end, page).await?;
        let Some(found) = lines.into_iter().find(|line| line.number == number) else {
            return Ok(None);
        };
        let raw = self.raw_request(server, &found).await?;
        Ok(Some((found, raw)))
    }

    /// The raw request of an interaction. Empty if it was removed in the meantime.
    pub async fn raw_request(
        &self,
        server: CallbackId,
        of: &Interaction,
    ) -> Result<Bytes, ReadError> {
        let end = of.raw_at.saturating_add(of.raw_bytes);
        let (Ok(length), true) = (usize::try_from(of.raw_bytes), of.raw_bytes > 0) else {
            return Ok(Bytes::new());
        };
        let key = Layout::raw_requests(&server, page_of(of.number));
        let piece = self.reader().piece(&key, end, length).await?;
        let raw = piece.filter(|Piece { at, .. }| *at == of.raw_at);
        Ok(raw.map(|piece| piece.bytes).unwrap_or_default())
    }

    /// Gives the next page a line in the index, if it is closed or of an earlier day.
    pub async fn unindexed_page(
        &self,
        server: CallbackId,
        now: Timestamp,
    ) -> Result<Option<IndexInteractions>, ReadError> {
        let end = self.end_of(server);
        let page = end.indexed;
        if page >= end.open_page() && !end.is_page_over(now) {
            return Ok(None);
        }
        let lines = page_lines(self.reader(), server, end, page).await?;
        let newest = lines.iter().map(|line| line.heard.at).max();
        let bytes = Layout::interactions(&server, page);
        let bytes = self.reader().get(&bytes).await?.unwrap_or_default();
        let line = IndexedPage {
            page,
            until: newest.unwrap_or_default(),
            count: lines.len() as u64,
            bytes: bytes.len() as u64 + lines.iter().map(|line| line.raw_bytes).sum::<u64>(),
            tags: lines
                .iter()
                .map(|line| indexed_tag(line.heard.tag.as_ref()).to_owned())
                .collect(),
        };
        let next = end.next;
        Ok(Some(IndexInteractions { server, line, next }))
    }

    /// The oldest indexed pages, in their order.
    pub async fn oldest_pages(&self, server: CallbackId) -> Result<Vec<IndexedPage>, ReadError> {
        let end = self.end_of(server);
        let pages = index(self.reader(), server, index_of(end.oldest)).await?;
        let there = end.oldest..end.indexed;
        Ok(pages
            .into_iter()
            .filter(|line| there.contains(&line.page))
            .collect())
    }

    /// Tags of a callback server that were made at once.
    pub async fn mint(&self, server: CallbackId, number: u32) -> Result<Option<Mint>, ReadError> {
        self.reader().record(&Layout::minted(server, number)).await
    }

    fn end_of(&self, server: CallbackId) -> Interactions {
        let end = |callback: &Arc<model::Callback>| callback.interactions;
        self.read(|world| world.callback(server).map(end))
            .unwrap_or_default()
    }
}

/// A search for interactions, page by page.
pub(crate) struct Search<'a> {
    reader: &'a StoreReader,
    server: CallbackId,
    end: Interactions,
    filter: &'a InteractionFilter,
    found: InteractionPage,
    limit: usize,
    /// The files of the index that were read: which of their pages may have the tag.
    index: BTreeMap<u64, Vec<u64>>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        reader: &'a StoreReader,
        server: CallbackId,
        end: Interactions,
        filter: &'a InteractionFilter,
        limit: usize,
    ) -> Self {
        Self {
            reader,
            server,
            end,
            filter,
            found: InteractionPage::default(),
            limit,
            index: BTreeMap::new(),
        }
    }

    pub(crate) async fn run(
        mut self,
        from: InteractionPlace,
        deadline: Instant,
    ) -> Result<InteractionPage, ReadError> {
        let job = self.filter.heard_by.as_ref();
        let first = job.map_or(0, |job| job.hears_from(self.server));
        let oldest = self.end.oldest.max(page_of(first));
        let open = page_of(self.end.next.saturating_sub(1));
        match from {
            InteractionPlace::Before(before) => {
                let before = before.map_or(self.end.next, |before| before.min(self.end.next));
                let newest = page_of(before.saturating_sub(1));
                for page in (oldest..=newest).rev() {
                    if self.page(page, |number| number < before, true).await? {
                        break;
                    }
                    if Instant::now() >= deadline && page > oldest {
                        self.found.next = Some(page * INTERACTION_PAGE);
                        break;
                    }
                }
            }
            InteractionPlace::After(after) => {
                for page in oldest.max(page_of(after.saturating_add(1)))..=open {
                    if self.page(page, |number| number > after, false).await? {
                        break;
                    }
                    if Instant::now() >= deadline && page < open {
                        self.found.next = Some((page + 1) * INTERACTION_PAGE - 1);
                        break;
                    }
                }
            }
        }
        Ok(self.found)
    }

    /// Adds what is wanted of a page. True if the list is full.
    async fn page(
        &mut self,
        page: u64,
        is_there: impl Fn(u64) -> bool,
        is_backwards: bool,
    ) -> Result<bool, ReadError> {
        if !self.may_have_tag(page).await? {
            return Ok(false);
        }
        let lines = page_lines(self.reader, self.server, self.end, page).await?;
        let wanted = lines.into_iter();
        let mut wanted: Vec<_> = wanted
            .filter(|line| is_there(line.number) && self.filter.takes(self.server, line))
            .collect();
        if let Some(text) = &self.filter.text
            && !wanted.is_empty()
        {
            let raw = Layout::raw_requests(&self.server, page);
            let raw = self.reader.get(&raw).await?.unwrap_or_default();
            let raw = raw.to_ascii_lowercase();
            let text = memmem::Finder::new(&text.to_ascii_lowercase()).into_owned();
            wanted.retain(|line| {
                let texts = line.heard.request.texts();
                if texts
                    .iter()
                    .any(|it| text.find(it.to_ascii_lowercase().as_bytes()).is_some())
                {
                    return true;
                }
                let at = usize::try_from(line.raw_at).unwrap_or(usize::MAX);
                let end = at.saturating_add(usize::try_from(line.raw_bytes).unwrap_or(0));
                raw.get(at..end).is_some_and(|raw| text.find(raw).is_some())
            });
        }
        if is_backwards {
            wanted.reverse();
        }
        for line in wanted {
            if self.found.interactions.len() == self.limit {
                let last = self.found.interactions.last();
                self.found.next = last.map(|last| last.number);
                return Ok(true);
            }
            self.found.interactions.push(line);
        }
        Ok(false)
    }

    /// False if the index says that the page does not have the wanted tag.
    async fn may_have_tag(&mut self, page: u64) -> Result<bool, ReadError> {
        let Some(tag) = self.filter.tag else {
            return Ok(true);
        };
        if page >= self.end.indexed {
            return Ok(true);
        }
        let file = index_of(page);
        if let std::collections::btree_map::Entry::Vacant(entry) = self.index.entry(file) {
            let lines = index(self.reader, self.server, file).await?.into_iter();
            let tag = indexed_tag(Some(&tag));
            let with_tag = lines.filter(|line| line.tags.contains(tag));
            entry.insert(with_tag.map(|line| line.page).collect());
        }
        Ok(self.index[&file].contains(&page))
    }
}

/// The interactions of a page up to the published end, oldest first.
async fn page_lines(
    reader: &StoreReader,
    server: CallbackId,
    end: Interactions,
    page: u64,
) -> Result<Vec<Interaction>, ReadError> {
    let key = Layout::interactions(&server, page);
    let bytes = reader.get(&key).await?.unwrap_or_default();
    let begin = Position { page, at: 0 };
    let lines = lines::<Interaction>(reader.warned(), &key, begin, &bytes);
    Ok(lines
        .filter_map(|(_, line)| line)
        .take_while(|line| line.number < end.next)
        .collect())
}

async fn index(
    reader: &StoreReader,
    server: CallbackId,
    file: u64,
) -> Result<Vec<IndexedPage>, ReadError> {
    let key = Layout::interaction_index(&server, file);
    let bytes = reader.get(&key).await?.unwrap_or_default();
    let begin = Position { page: file, at: 0 };
    let lines = lines::<IndexedPage>(reader.warned(), &key, begin, &bytes);
    Ok(lines.filter_map(|(_, line)| line).collect())
}
