//! The TLS configuration of Web API and WebSocket: one for both, on ring.

use std::sync::Arc;

use rustls::{ClientConfig, crypto::ring};

use crate::roots::roots;

/// Returns the TLS configuration. It names its provider, so it does not depend on what else the process has
/// installed.
pub(super) fn client_config() -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    Ok(builder.with_safe_default_protocol_versions()?.with_root_certificates(roots().store).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use rustls::RootCertStore;

    use super::*;

    #[test]
    fn a_client_configuration_can_be_built() {
        // Another test may have installed it already; it is the same one.
        let _ = ring::default_provider().install_default();
        // Other libraries do this: they use the provider of the process.
        let roots = RootCertStore::empty();
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
