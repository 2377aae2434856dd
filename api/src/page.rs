//! Pages of lists in memory. Items are sorted by a key, which is also the cursor. So added and removed items do not move other
//! items between pages.

use std::collections::BTreeMap;

use wire::Page;

use crate::failure::Failure;
use crate::limits::PAGE;
use crate::request::Query;

pub(crate) struct Window {
    after: Option<String>,
    pub(crate) limit: usize,
}

impl Window {
    pub(crate) fn of(query: &Query) -> Result<Self, Failure> {
        Self::up_to(query, PAGE)
    }

    pub(crate) const fn first(limit: usize) -> Self {
        Self { after: None, limit }
    }

    pub(crate) fn up_to(query: &Query, most: usize) -> Result<Self, Failure> {
        Ok(Self {
            after: query.owned("cursor"),
            limit: query.limit_of(most)?,
        })
    }

    /// The requested page of `all`. Keys must differ. `show` is called only for items on the page.
    pub(crate) fn cut<T, S>(
        &self,
        all: impl Iterator<Item = T>,
        key: impl Fn(&T) -> String,
        show: impl Fn(&T) -> S,
    ) -> Page<S> {
        let mut page = self.begin();
        for item in all {
            page.add(key(&item), item);
        }
        page.end(show)
    }

    /// Begins the requested page. The items are added one by one, in any order.
    pub(crate) fn begin<T>(&self) -> Cut<T> {
        Cut {
            after: self.after.clone(),
            limit: self.limit,
            first: BTreeMap::new(),
        }
    }
}

/// Keeps only the first items after a key, of all items that are added.
pub(crate) struct Cut<T> {
    after: Option<String>,
    limit: usize,
    /// One more than the page has, if there are more items.
    first: BTreeMap<String, T>,
}

impl<T> Cut<T> {
    pub(crate) fn add(&mut self, key: String, item: T) {
        let is_full = self.first.len() > self.limit;
        let is_behind = |(last, _): (&String, &T)| *last <= key;
        if self.after.as_ref().is_some_and(|after| key <= *after)
            || is_full && self.first.last_key_value().is_some_and(is_behind)
        {
            return;
        }
        self.first.insert(key, item);
        if self.first.len() > self.limit + 1 {
            self.first.pop_last();
        }
    }

    pub(crate) fn end<S>(mut self, show: impl Fn(&T) -> S) -> Page<S> {
        let is_last = self.first.len() <= self.limit;
        if !is_last {
            self.first.pop_last();
        }
        let items = self.first.values().map(show).collect();
        Page {
            next_cursor: self
                .first
                .pop_last()
                .map(|(key, _)| key)
                .filter(|_| !is_last),
            ..Page::all(items)
        }
    }
}
