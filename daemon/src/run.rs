//! Starts the daemon and stops it again.

use std::future::Future;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use api::Front;
use listen::Tls;
use reconciler::{CallbackSettings, Handle, Reconciler, Start, Upkeep};
use state::{Closing, Options, State, mirrors_folder};
use store::file::OpenError;

use crate::certificate::Certifier;
use crate::configuration::callback::host;
use crate::configuration::{DaemonSettings, Settings};
use crate::error::Error;
use crate::hearing::hear;
use crate::limits::LAST_TASKS;
use crate::logging;
use crate::open_files;
use crate::stop_signal::StopSignals;
use crate::system::{SystemClock, SystemEntropy};

pub(crate) struct Site {
    /// Bound first: a daemon that nobody can reach must not touch the state.
    pub(crate) listener: TcpListener,
    pub(crate) front: Front,
    /// The certificate in use. Its files are watched while the daemon serves.
    pub(crate) tls: Option<Tls>,
    pub(crate) settings: DaemonSettings,
}

pub(crate) struct Serving {
    pub(crate) handle: Handle,
    pub(crate) url: String,
}

pub(crate) fn run(settings: Settings) -> Result<(), Error> {
    logging::to_stderr(settings.log_form)?;
    if let Some(range) = settings.local_from.iter().find(|range| range.is_public()) {
        tracing::warn!(
            %range,
            "`--local-from` makes callers from the internet count as this machine: they may sign in over plain HTTP, read \
             /metrics without a token, and try tokens without limits; name the address of the container's bridge instead"
        );
    }
    warn_of_zones(&settings.daemon);
    let tls = settings.tls.map(|files| Tls::load(files, Vec::new()));
    let tls = tls.transpose()?;
    let may_be_public = settings.insecure_http || tls.is_some();
    let state = &settings.daemon.state;
    let site = Site {
        listener: bind(settings.listen, may_be_public)
            .map_err(|error| in_use(state).unwrap_or(error))?,
        front: Front {
            trusted_proxies: settings.trusted_proxies,
            local_from: settings.local_from,
            base_path: settings.base_path,
            requests: settings.requests,
            tls: tls.as_ref().map(Tls::server),
            // An absolute path, so that it is valid from any folder.
            state_folder: std::path::absolute(state).ok(),
            ..Front::default()
        },
        tls,
        settings: settings.daemon,
    };
    serve(site, |serving| async move {
        let mut signals = StopSignals::receive().map_err(Error::Runtime)?;
        // With port 0, the caller reads the port from this line.
        print(&serving.url);
        tracing::info!(url = serving.url, "everscand is ready");
        signals.next().await;
        tracing::info!("stopping");
        Ok(())
    })
}

/// Browsers share cookies within a domain, and strangers choose the names in a zone.
fn warn_of_zones(settings: &DaemonSettings) {
    let (Some(callback), Some(url)) = (&settings.callback, &settings.delivery.url) else {
        return;
    };
    let zones = &callback.listening.zones;
    if let Some(zone) = zones.iter().find(|zone| zone.is_beside(host(url))) {
        tracing::warn!(%zone, url, "the zone of callback servers shares a domain with the daemon: take a domain that serves nothing else");
    }
}

/// Binds an address. Unless public addresses are allowed, it must belong to this machine only.
pub(crate) fn bind(address: SocketAddr, may_be_public: bool) -> Result<TcpListener, Error> {
    if !may_be_public && !address.ip().to_canonical().is_loopback() {
        return Err(Error::PlainHttp { address });
    }
    let fail = |source| Error::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(fail)?;
    listener.set_nonblocking(true).map_err(fail)?;
    Ok(listener)
}

/// The error that another daemon uses the state. This is the usual reason for an address in use, and another address would not
/// help.
fn in_use(state: &Path) -> Option<Error> {
    let root = state.to_owned();
    let owner = store::user(state)?;
    let locked = store::OpenError::from(OpenError::Locked { root, owner });
    Some(Error::Open(locked.into()))
}

pub(crate) fn serve<M, F>(mut site: Site, meanwhile: M) -> Result<(), Error>
where
    M: FnOnce(Serving) -> F + Send,
    F: Future<Output = Result<(), Error>> + Send,
{
    let others = site.settings.callback.as_ref();
    let others = others.map_or(0, |_| callback::CONNECTIONS);
    site.front.connections = Some(open_files::raise_limit(others)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers())
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    let (ended, closing) = runtime.block_on(compose(site, meanwhile))?;
    // All holders of the state end with the runtime. Then the committer ends and the store closes.
    runtime.shutdown_timeout(LAST_TASKS);
    if matches!(ended, Err(Error::Fatal(_))) {
        return ended;
    }
    let closed = closing.join().map_err(Error::Close);
    ended.and(closed)
}

/// Half of the machine's cores: a commit also uses the threads of the committer and of the store. More workers would only wake
/// each other.
fn workers() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    (cores / 2).max(1)
}

async fn compose<M, F>(site: Site, meanwhile: M) -> Result<(Result<(), Error>, Closing), Error>
where
    M: FnOnce(Serving) -> F + Send,
    F: Future<Output = Result<(), Error>> + Send,
{
    let Site {
        listener,
        mut front,
        tls,
        settings,
    } = site;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::Runtime)?;
    let address = listener.local_addr().map_err(Error::Runtime)?;
    let root = settings.state;
    check_folder(&root)?;
    let certifier = settings.callback.as_ref().and_then(|callback| {
        let source = callback.certificate.clone()?;
        Some(Certifier::new(source, &callback.listening.zones))
    });
    let certifier = certifier.transpose()?;
    let authority = settings.callback.as_ref().and_then(|it| it.authority());
    let resolver = settings.callback.as_ref().and_then(|it| it.resolver);
    // A daemon that cannot be reached must not touch the state.
    let callbacks = settings.callback.map(|callback| {
        let mut listening = callback.listening;
        if let Some(certifier) = &certifier {
            listening.tls = Some(certifier.server());
            listening.challenges = certifier.challenges();
        }
        callback::bind(listening)
    });
    let callbacks = callbacks.transpose()?;
    let clock = Arc::new(SystemClock::new());
    let options = Options {
        root: root.clone(),
        allow_network: settings.allow_network_state,
        clock: clock.clone(),
        entropy: Box::new(SystemEntropy),
        cycle_pause: settings.cycle_pause,
    };
    let (state, closing) = State::open(options).await?;
    let mut reconciler = Reconciler::start(Start {
        state: state.clone(),
        mirrors: mirrors_folder(&root),
        sources: settings.sources,
        clock: clock.clone(),
        entropy: Box::new(SystemEntropy),
        secret_keys: settings.secret_keys,
        retention: settings.retention,
        log_limit: settings.log_limit,
        blobs: settings.blobs,
        upkeep: Upkeep {
            certificate: tls.as_ref().map(Tls::expires),
            backup_within: settings.backup_within,
            callback_certificate: certifier.as_ref().map(Certifier::expires),
        },
        callbacks: callbacks.as_ref().map(|bound| CallbackSettings {
            zones: (bound.settings.zones.iter())
                .map(ToString::to_string)
                .collect(),
            authority,
        }),
    })
    .await?;
    let handle = reconciler.handle();
    // A program that reads the URL may next read the file of the first token.
    if let Err(error) = state.settled().await {
        tracing::warn!(%error, "the state's files are behind");
    }
    tracing::info!(%address, state = %root.display(), "the state is open");
    let url = match front.tls {
        None => format!("http://{address}"),
        Some(_) => format!("https://{address}"),
    };
    let mut delivery = settings.delivery;
    delivery.url.get_or_insert_with(|| url.clone());
    let delivery = Arc::new(delivery);
    front.delivery = delivery.clone();
    let hearing = callbacks.map(|bound| hear(bound, certifier, resolver, &handle, clock));
    let hearing = hearing.transpose()?;
    if let Some(hearing) = &hearing {
        front.callback_check = Some(hearing.checker.clone());
    }
    let serving = Serving {
        handle: handle.clone(),
        url,
    };
    let followed = tls.map(|tls| tokio::spawn(tls.follow()));
    let beating = settings
        .heartbeat
        .map(|heartbeat| tokio::spawn(heartbeat.keep(handle.clone(), delivery.clone())));
    reconciler.add("deliveries", move |handle| {
        delivery::send_all(handle, delivery.clone())
    });
    let mut ended = Ok(());
    let stop = async {
        ended = tokio::select! {
            done = meanwhile(serving) => done,
            failed = state.failed() => Err(Error::Fatal(failed)),
        };
        handle.drain();
    };
    api::serve(listener, handle.clone(), front, Box::pin(stop)).await;
    for task in [followed, beating].into_iter().flatten() {
        task.abort();
    }
    if let Some(hearing) = hearing {
        hearing.stop().await;
    }
    reconciler.stop().await;
    Ok((ended, closing))
}

/// A state folder must be a folder, or must not exist yet.
fn check_folder(root: &Path) -> Result<(), Error> {
    if root.exists() && !root.is_dir() {
        return Err(Error::NotAFolder {
            root: root.to_owned(),
        });
    }
    Ok(())
}

pub(crate) fn print(text: &str) {
    let mut stdout = std::io::stdout();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    if let Err(error) = written {
        tracing::debug!(%error, "nobody reads the output");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;

    #[test]
    fn a_file_is_refused_as_state_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = check_folder(&file).unwrap_err();
        assert_eq!(error.exit_code(), exit::STATE_UNUSABLE);
        assert!(error.report().contains("is not a folder"));
        for good in [folder.path(), &folder.path().join("missing")] {
            assert!(check_folder(good).is_ok());
        }
    }
}
