//! The API on a listener.

use std::pin::Pin;

use http::{Request, Uri};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::service::TowerToHyperService;
use listen::{Bounds, Stop};
use reconciler::Handle;
use tokio::net::TcpListener;

use crate::limits::{ADDRESS_CONNECTIONS, CONNECTIONS, DRAIN, HEAD};
use crate::respond::routes;
use crate::service::Front;

/// The path of requests without one. No route has it.
const NO_PATH: &str = "/-";

/// Serves the API on `listener` until `stop` resolves, then drains. The caller drains the handle at the same time, which ends
/// waiting reads and polls.
///
/// The future is boxed here, because the body of an `async fn` is compiled in the package that awaits it, with that package's
/// optimisation level.
pub fn serve(
    listener: TcpListener,
    handle: Handle,
    front: Front,
    stop: Stop<'_>,
) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
    let connections = front.connections.unwrap_or(CONNECTIONS).min(CONNECTIONS);
    let bounds = Bounds {
        connections,
        per_address: ADDRESS_CONNECTIONS.min(connections / 2),
        uncounted: [&front.trusted_proxies[..], &front.local_from].concat(),
        head: HEAD,
        drain: DRAIN,
    };
    let tls = front.tls.clone();
    let routes = TowerToHyperService::new(warp::service(routes(handle, front)));
    let service = service_fn(move |mut request: Request<Incoming>| {
        // A request to a proxy has no path, and warp panics without one.
        if request.uri().path_and_query().is_none() {
            *request.uri_mut() = Uri::from_static(NO_PATH);
        }
        routes.call(request)
    });
    Box::pin(listen::serve(listener, tls, service, bounds, stop))
}
