//! The trusted root certificates for all TLS connections.

use rustls::RootCertStore;

/// The trusted root certificates.
#[derive(Debug)]
pub struct Roots {
    pub store: RootCertStore,
    /// Whether they are the system's; otherwise they are Mozilla's, which are embedded in the program.
    pub are_the_systems: bool,
    /// The variable that names where the system's are, if nothing could be read there.
    pub misled_by: Option<&'static str>,
}

/// The variables that name a file or folders of certificates, instead of the system's own.
const PLACES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Returns the roots that the system trusts, or Mozilla's if it has none, as in a container without certificates.
pub fn roots() -> Roots {
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(found.certs);
    let are_the_systems = !store.is_empty();
    let is_misled = !are_the_systems && !found.errors.is_empty();
    let misled_by = PLACES.into_iter().find(|name| is_misled && std::env::var_os(name).is_some());
    if !are_the_systems {
        tracing::debug!(errors = ?found.errors, "the system has no root certificates, so Mozilla's are used");
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    Roots { store, are_the_systems, misled_by }
}

/// Whether a connection failed because a certificate is not valid at the time of this machine. Servers renew theirs in
/// time, so the clock is more likely to be wrong.
pub fn blames_the_clock(error: &str) -> bool {
    ["certificate expired", "certificate not valid yet"].into_iter().any(|why| error.contains(why))
}
