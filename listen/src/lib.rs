//! The accept loop of every listener, for HTTP/1.1 with or without TLS. It bounds connections, heads and the drain. It serves
//! any hyper service, and knows nothing of routes.
//!
//! A request has its [`Connection`] among its extensions.

mod accept;
mod addresses;
mod limits;
mod tls;

pub use accept::{Bounds, Connection, Stop, serve};
pub use addresses::network;
pub use tls::{ServerTls, Tls, TlsError, TlsFiles};
