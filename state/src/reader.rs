//! The store's reader behind one pointer, so that the kind of engine is no type parameter of everything.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use store::{Key, Length, Piece, Prefix, Reader};

use crate::error::ReadError;
use crate::warned::Warned;

type Reading<'a, T> = Pin<Box<dyn Future<Output = Result<T, store::ReadError>> + Send + 'a>>;

trait ErasedReader: Send + Sync {
    fn get<'a>(&'a self, key: &'a Key) -> Reading<'a, Option<Bytes>>;
    fn get_many(&self, keys: Vec<Key>) -> Reading<'_, Vec<Option<Bytes>>>;
    fn piece<'a>(&'a self, key: &'a Key, before: u64, limit: usize) -> Reading<'a, Option<Piece>>;
    fn lengths(&self, keys: Vec<Key>) -> Reading<'_, Vec<Length>>;
    fn children<'a>(&'a self, folder: &'a Prefix) -> Reading<'a, Vec<String>>;
    fn settled(&self) -> Reading<'_, ()>;
}

impl<R: Reader> ErasedReader for R {
    fn get<'a>(&'a self, key: &'a Key) -> Reading<'a, Option<Bytes>> {
        Box::pin(Reader::get(self, key))
    }

    fn get_many(&self, keys: Vec<Key>) -> Reading<'_, Vec<Option<Bytes>>> {
        Box::pin(Reader::get_many(self, keys))
    }

    fn piece<'a>(&'a self, key: &'a Key, before: u64, limit: usize) -> Reading<'a, Option<Piece>> {
        Box::pin(Reader::piece(self, key, before, limit))
    }

    fn lengths(&self, keys: Vec<Key>) -> Reading<'_, Vec<Length>> {
        Box::pin(Reader::lengths(self, keys))
    }

    fn children<'a>(&'a self, folder: &'a Prefix) -> Reading<'a, Vec<String>> {
        Box::pin(Reader::children(self, folder))
    }

    fn settled(&self) -> Reading<'_, ()> {
        Box::pin(Reader::settled(self))
    }
}

/// Reads what is in the store. See [`Reader`] for what each method answers.
#[derive(Clone)]
pub(crate) struct StoreReader(Arc<dyn ErasedReader>, Warned);

impl StoreReader {
    pub(crate) fn new(reader: impl Reader) -> Self {
        Self(Arc::new(reader), Warned::default())
    }

    /// The files of which a warning was logged.
    pub(crate) fn warned(&self) -> &Warned {
        &self.1
    }

    pub(crate) async fn get(&self, key: &Key) -> Result<Option<Bytes>, ReadError> {
        Ok(self.0.get(key).await?)
    }

    pub(crate) async fn get_many(&self, keys: Vec<Key>) -> Result<Vec<Option<Bytes>>, ReadError> {
        Ok(self.0.get_many(keys).await?)
    }

    pub(crate) async fn piece(
        &self,
        key: &Key,
        before: u64,
        limit: usize,
    ) -> Result<Option<Piece>, ReadError> {
        Ok(self.0.piece(key, before, limit).await?)
    }

    pub(crate) async fn lengths(&self, keys: Vec<Key>) -> Result<Vec<Length>, ReadError> {
        Ok(self.0.lengths(keys).await?)
    }

    pub(crate) async fn children(&self, folder: &Prefix) -> Result<Vec<String>, ReadError> {
        Ok(self.0.children(folder).await?)
    }

    pub(crate) async fn settled(&self) -> Result<(), ReadError> {
        Ok(self.0.settled().await?)
    }
}
