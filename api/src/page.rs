//! Pages of lists that are in memory. Items are in the order of a key, which is also the cursor, so that items added or
//! removed between two pages move no others.

use wire::Page;

use crate::failure::Failure;
use crate::limits::PAGE;
use crate::request::Query;

/// Which page the caller wants.
pub(crate) struct Window {
    after: Option<String>,
    limit: usize,
}

impl Window {
    pub(crate) fn of(query: &Query) -> Result<Self, Failure> {
        Self::up_to(query, PAGE)
    }

    /// A page of at most `most` items.
    pub(crate) fn up_to(query: &Query, most: usize) -> Result<Self, Failure> {
        Ok(Self {
            after: query.get("cursor").map(str::to_owned),
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
        let mut ahead: Vec<(String, T)> = all
            .map(|item| (key(&item), item))
            .filter(|(key, _)| self.after.as_ref().is_none_or(|after| key > after))
            .collect();
        ahead.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let is_last = ahead.len() <= self.limit;
        ahead.truncate(self.limit);
        let items = ahead.iter().map(|(_, item)| show(item)).collect();
        Page {
            next_cursor: ahead.pop().map(|(key, _)| key).filter(|_| !is_last),
            ..Page::all(items)
        }
    }
}
