//! How the Web API and the WebSocket are reached: one TLS configuration for both, on ring.

use std::{sync::Arc, time::Duration};

use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{ClientConfig, crypto::ring};

/// How long a TCP connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A TLS configuration that trusts what the system trusts; Mozilla's roots where the system has none, as
/// in a container without certificates. It names its provider, so it does not depend on what else the
/// process has installed.
pub(super) fn client_config() -> Result<ClientConfig, rustls::Error> {
    let builder = || {
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions()
    };
    let config = match builder()?.with_native_roots() {
        Ok(trusting) => trusting.with_no_client_auth(),
        Err(error) => {
            tracing::debug!(%error, "the system has no root certificates, so Mozilla's are used");
            builder()?.with_webpki_roots().with_no_client_auth()
        }
    };
    Ok(config)
}

/// The connector of the Web API. Plain http only where `allow_http` says so.
pub(super) fn connector(config: ClientConfig, allow_http: bool) -> HttpsConnector<HttpConnector> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let builder = HttpsConnectorBuilder::new().with_tls_config(config);
    let builder = if allow_http { builder.https_or_http() } else { builder.https_only() };
    builder.enable_all_versions().wrap_connector(tcp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_configuration_can_be_built() {
        // Another test may have installed it already; it is the same one.
        let _ = ring::default_provider().install_default();
        // What other libraries do: they take the provider of the process.
        let roots = rustls::RootCertStore::empty();
        ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        client_config().expect("ours names its provider");
    }

    #[test]
    fn ring_is_the_only_provider_in_the_dependency_graph() {
        let lock = include_str!("../../../../../Cargo.lock");
        let packages: Vec<&str> = lock.lines().filter_map(|line| line.strip_prefix("name = ")).collect();
        assert!(packages.contains(&"\"ring\""));
        assert!(!packages.contains(&"\"aws-lc-rs\""), "two TLS providers panic at the first handshake");
    }
}
