//! The store's reader behind one pointer, so that the kind of engine is no type parameter of everything.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use store::{Key, Piece, Reader, parallel};
use tokio::runtime::Handle;

use crate::error::ReadError;
use crate::files::blocking;
use crate::limits::READING_THREADS;
use crate::warned::Warned;

type Reading<'a> =
    Pin<Box<dyn Future<Output = Result<Option<Bytes>, store::ReadError>> + Send + 'a>>;

type Settling<'a> = Pin<Box<dyn Future<Output = Result<(), store::ReadError>> + Send + 'a>>;

type ReadingPiece<'a> =
    Pin<Box<dyn Future<Output = Result<Option<Piece>, store::ReadError>> + Send + 'a>>;

trait ErasedReader: Send + Sync {
    fn get<'a>(&'a self, key: &'a Key) -> Reading<'a>;
    fn piece<'a>(&'a self, key: &'a Key, before: u64, limit: usize) -> ReadingPiece<'a>;
    fn settled<'a>(&'a self) -> Settling<'a>;
}

impl<R: Reader> ErasedReader for R {
    fn get<'a>(&'a self, key: &'a Key) -> Reading<'a> {
        Box::pin(Reader::get(self, key))
    }

    fn piece<'a>(&'a self, key: &'a Key, before: u64, limit: usize) -> ReadingPiece<'a> {
        Box::pin(Reader::piece(self, key, before, limit))
    }

    fn settled<'a>(&'a self) -> Settling<'a> {
        Box::pin(Reader::settled(self))
    }
}

/// Reads small files of the store.
#[derive(Clone)]
pub(crate) struct StoreReader(Arc<dyn ErasedReader>, Warned);

impl StoreReader {
    pub(crate) fn new(reader: impl Reader) -> Self {
        Self(Arc::new(reader), Warned::default())
    }

    /// The files that were told to be damaged.
    pub(crate) fn warned(&self) -> &Warned {
        &self.1
    }

    /// Waits until everything acknowledged so far stands in files that other programs can read.
    pub(crate) async fn settled(&self) -> Result<(), ReadError> {
        Ok(self.0.settled().await?)
    }

    /// The content of a file. An engine on local files blocks while it reads, so it does so off the async threads.
    pub(crate) async fn get(&self, key: &Key) -> Result<Option<Bytes>, ReadError> {
        let (reader, key, runtime) = (self.0.clone(), key.clone(), Handle::current());
        blocking(move || Ok(runtime.block_on(reader.get(&key))?)).await
    }

    /// The contents of many files, in their order.
    pub(crate) async fn get_all(&self, keys: Vec<Key>) -> Result<Vec<Option<Bytes>>, ReadError> {
        let (reader, runtime) = (self.0.clone(), Handle::current());
        blocking(move || {
            parallel::try_map(READING_THREADS, &keys, |key| {
                Ok(runtime.block_on(reader.get(key))?)
            })
        })
        .await
    }

    /// A piece of a file, at most `limit` bytes long, that ends before byte `before`, or where the file ends.
    pub(crate) async fn piece(
        &self,
        key: &Key,
        before: u64,
        limit: usize,
    ) -> Result<Option<Piece>, ReadError> {
        let (reader, key, runtime) = (self.0.clone(), key.clone(), Handle::current());
        blocking(move || Ok(runtime.block_on(reader.piece(&key, before, limit))?)).await
    }
}
