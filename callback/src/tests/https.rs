//! HTTPS with certificates of an authority of the test.

use listen::{Certificate, ServerTls, TlsFiles};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::*;
use crate::Http;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let name = "Authority of the test";
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn certificate(&self) -> Certificate {
        let key = KeyPair::generate().unwrap();
        let names = ["cb.example.com", "*.cb.example.com"].map(str::to_owned);
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let named = TlsFiles {
            certificate: "certificate".into(),
            key: "key".into(),
        };
        let (chain, key) = (certificate.pem(), key.serialize_pem());
        Certificate::read(chain.as_bytes(), key.as_bytes(), &named).unwrap()
    }

    /// A client that trusts this authority.
    fn client(&self) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(config))
    }
}

/// Serves HTTPS with the newest certificate of the sender.
fn world() -> (World, watch::Sender<Option<Certificate>>, SocketAddr) {
    let (newest, certificates) = watch::channel(None);
    let world = try_start(Settings {
        https: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
        tls: Some(ServerTls::new(certificates)),
        ..settings()
    });
    let world = world.unwrap();
    let address = world.callbacks.https[0];
    (world, newest, address)
}

fn tagged() -> String {
    format!("{SERVER}-{TAG}.cb.example.com")
}

/// Connects to a name and sends bytes. Returns what comes back, or nothing if there is no connection.
async fn send(client: &TlsConnector, address: SocketAddr, name: &str, bytes: &[u8]) -> String {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let exchanged = async {
        let mut stream = client.connect(name, stream).await?;
        stream.write_all(bytes).await?;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        Ok::<_, std::io::Error>(String::from_utf8(answer).unwrap())
    };
    let exchanged = tokio::time::timeout(PATIENCE, exchanged).await;
    exchanged.unwrap().unwrap_or_default()
}

async fn next(world: &mut World) -> (Http, Option<String>, String) {
    let hit = world.hit().await;
    let Kind::Http(http) = hit.kind else { panic!() };
    (http, hit.tag.map(|tag| tag.to_string()), hit.answer)
}

#[tokio::test]
async fn curl_gets_the_answer_over_tls_and_leaves_the_request_in_clear() {
    let (mut world, newest, address) = world();
    let authority = Authority::new();
    newest.send_replace(Some(authority.certificate()));
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root.pem");
    std::fs::write(&root, authority.0.pem()).unwrap();
    let name = tagged();
    let arguments = [
        "--silent",
        "--show-error",
        "--max-time",
        "60",
        "--cacert",
        &root.display().to_string(),
        "--resolve",
        &format!("{name}:{}:{}", address.port(), address.ip()),
        &format!("https://{name}:{}/path.json", address.port()),
    ]
    .map(str::to_owned);
    let curl = tokio::task::spawn_blocking(|| output("curl", arguments.into_iter()));
    let Some(answer) = curl.await.unwrap() else {
        return;
    };
    assert_eq!(
        answer,
        r#"{"data":"33333333332222222222-ponmlkjihgfedcba"}"#
    );
    let (http, tag, answer) = next(&mut world).await;
    assert_eq!((tag.as_deref(), &*answer), (Some(TAG), "200"));
    assert!(http.is_tls);
    assert_eq!(http.sni, Some(name.clone()));
    let head = String::from_utf8(http.head.to_vec()).unwrap();
    let first = "GET /path.json HTTP/1.1\r\nHost: ";
    assert!(head.starts_with(first), "{head}");
}

#[tokio::test]
async fn host_and_sni_are_both_searched_and_shown() {
    let (mut world, newest, address) = world();
    let authority = Authority::new();
    newest.send_replace(Some(authority.certificate()));
    let client = authority.client();
    let quiet = format!("{SERVER}-{QUIET}.cb.example.com");
    let other = "zzzzzzzzzzzzzzzz.cb.example.com".to_owned();
    for (host, name, expected) in [
        (&other, &quiet, QUIET),
        (&tagged(), &other, TAG),
        // The host counts first.
        (&tagged(), &quiet, TAG),
    ] {
        let request = format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n");
        let answer = send(&client, address, name, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let (http, tag, _) = next(&mut world).await;
        assert_eq!(tag.as_deref(), Some(expected));
        assert_eq!((&http.host, http.sni.as_ref()), (host, Some(name)));
    }
    let request = format!("GET / HTTP/1.1\r\nhost: {other}\r\n\r\n");
    let answer = send(&client, address, &other, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert_eq!(world.callbacks.unknown(), 1);
}

#[tokio::test]
async fn a_handshake_that_fails_is_a_hit_of_the_name_it_asks_for() {
    let (mut world, newest, address) = world();
    let authority = Authority::new();
    // Without a certificate, and with one that the client does not trust.
    for is_certified in [false, true] {
        if is_certified {
            newest.send_replace(Some(Authority::new().certificate()));
        }
        let answer = send(&authority.client(), address, &tagged(), b"x").await;
        assert_eq!(answer, "");
        let (http, tag, answer) = next(&mut world).await;
        assert_eq!(answer, "TLS handshake failed");
        assert_eq!(tag.as_deref(), Some(TAG));
        assert_eq!(http.sni, Some(tagged()));
        assert!(http.malformed && http.head.is_empty());
    }
    newest.send_replace(Some(authority.certificate()));
    let request = b"GET / HTTP/1.1\r\n\r\n";
    let answer = send(&authority.client(), address, &tagged(), request).await;
    assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
}

#[tokio::test]
async fn bytes_that_are_no_tls_are_no_request() {
    let (world, newest, address) = world();
    newest.send_replace(Some(Authority::new().certificate()));
    let request = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", tagged());
    let answer = talk(address, request.as_bytes()).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    world.callbacks.stop().await;
    let mut hits = world.hits;
    assert!(hits.recv().await.is_none());
}
