//! The store's reader as a trait object, so that other types need no type parameter for the engine.

use std::ops::Deref;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use store::{Key, Length, Piece, Prefix, Reader};

use crate::ended_jobs::EndedJobs;
use crate::envelope;
use crate::error::ReadError;
use crate::layout::RecordPlace;
use crate::record::Record;
use crate::warned::Warned;

type Reading<'a, T> = Pin<Box<dyn Future<Output = Result<T, ReadError>> + Send + 'a>>;

pub(crate) trait ErasedReader: Send + Sync {
    fn get<'a>(&'a self, key: &'a Key) -> Reading<'a, Option<Bytes>>;
    fn get_many(&self, keys: Vec<Key>) -> Reading<'_, Vec<Option<Bytes>>>;
    fn piece<'a>(&'a self, key: &'a Key, before: u64, limit: usize) -> Reading<'a, Option<Piece>>;
    fn lengths(&self, keys: Vec<Key>) -> Reading<'_, Vec<Length>>;
    fn children<'a>(&'a self, folder: &'a Prefix) -> Reading<'a, Vec<String>>;
    fn settled(&self) -> Reading<'_, ()>;
}

impl<R: Reader> ErasedReader for R {
    fn get<'a>(&'a self, key: &'a Key) -> Reading<'a, Option<Bytes>> {
        Box::pin(async move { Ok(Reader::get(self, key).await?) })
    }

    fn get_many(&self, keys: Vec<Key>) -> Reading<'_, Vec<Option<Bytes>>> {
        Box::pin(async move { Ok(Reader::get_many(self, keys).await?) })
    }

    fn piece<'a>(&'a self, key: &'a Key, before: u64, limit: usize) -> Reading<'a, Option<Piece>> {
        Box::pin(async move { Ok(Reader::piece(self, key, before, limit).await?) })
    }

    fn lengths(&self, keys: Vec<Key>) -> Reading<'_, Vec<Length>> {
        Box::pin(async move { Ok(Reader::lengths(self, keys).await?) })
    }

    fn children<'a>(&'a self, folder: &'a Prefix) -> Reading<'a, Vec<String>> {
        Box::pin(async move { Ok(Reader::children(self, folder).await?) })
    }

    fn settled(&self) -> Reading<'_, ()> {
        Box::pin(async move { Ok(Reader::settled(self).await?) })
    }
}

/// Reads the store. See [`Reader`] for the methods.
#[derive(Clone)]
pub(crate) struct StoreReader {
    erased: Arc<dyn ErasedReader>,
    warned: Warned,
    ended_jobs: EndedJobs,
}

impl StoreReader {
    pub(crate) fn new(reader: impl Reader) -> Self {
        Self {
            erased: Arc::new(reader),
            warned: Warned::default(),
            ended_jobs: EndedJobs::default(),
        }
    }

    /// The files whose damage was logged.
    pub(crate) fn warned(&self) -> &Warned {
        &self.warned
    }

    pub(crate) const fn ended_jobs(&self) -> &EndedJobs {
        &self.ended_jobs
    }

    /// The values at `{name}` in the keys of a folder. Other files in it are left out.
    pub(crate) async fn words<T: FromStr + ToString>(
        &self,
        folder: &Prefix,
        place: RecordPlace,
        name: &str,
    ) -> Result<Vec<T>, ReadError> {
        let entries = self.children(folder).await?.into_iter();
        let keys = entries.filter_map(|entry| folder.join(&entry));
        Ok(keys.filter_map(|key| place.word(&key, name)).collect())
    }

    /// The record at `key`, if there is one.
    pub(crate) async fn record<R: Record>(&self, key: &Key) -> Result<Option<R>, ReadError> {
        let bytes = self.get(key).await?;
        bytes
            .map(|bytes| envelope::open_at(key, &bytes))
            .transpose()
            .map_err(|problem| ReadError::damaged(key, problem))
    }
}

impl Deref for StoreReader {
    type Target = dyn ErasedReader;

    fn deref(&self) -> &Self::Target {
        &*self.erased
    }
}
