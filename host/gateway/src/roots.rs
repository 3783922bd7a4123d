//! The trusted root certificates for all TLS connections.

use rustls::RootCertStore;

/// The trusted root certificates.
#[derive(Debug)]
pub struct Roots {
    pub store: RootCertStore,
    /// Whether they are the system's; otherwise they are Mozilla's, which are embedded in the program.
    pub are_the_systems: bool,
}

/// Returns the roots that the system trusts, or Mozilla's if it has none, as in a container without certificates.
pub fn roots() -> Roots {
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(found.certs);
    let are_the_systems = !store.is_empty();
    if !are_the_systems {
        tracing::debug!(errors = ?found.errors, "the system has no root certificates, so Mozilla's are used");
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    Roots { store, are_the_systems }
}
