//! Encrypted connections, with certificates that are read again when they change.

use crate::keys::check_private;
use crate::options::TlsFiles;
use crate::{Error, Result};
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use tokio_rustls::TlsAcceptor;

/// The certificate that new connections get, where they are encrypted.
pub(crate) struct TlsSlot {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
}

impl TlsSlot {
    pub(crate) fn load(files: &TlsFiles) -> Result<Self> {
        Ok(TlsSlot {
            config: RwLock::new(load(files)?),
            files: files.clone(),
        })
    }

    /// Read the files again.
    pub(crate) fn read(&self) -> Result<Arc<ServerConfig>> {
        load(&self.files)
    }

    /// Let new connections have this.
    pub(crate) fn replace(&self, config: Arc<ServerConfig>) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&config))
    }
}

/// What a connection is accepted with.
fn load(files: &TlsFiles) -> Result<Arc<ServerConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificates = certificates(&files.certificate)?;
    check_private(&files.key)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|e| Error::file(&files.key, format!("expected a private key in PEM: {e}")))?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::file(&files.certificate, e.to_string()))?;
    let builder = match &files.client_authorities {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in self::certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|e| Error::file(path, e.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = verifier.build();
            builder
                .with_client_cert_verifier(verifier.map_err(|e| Error::file(path, e.to_string()))?)
        }
    };
    let config = builder.with_single_cert(certificates, key);
    let mut config = config.map_err(|e| Error::file(&files.certificate, e.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let wrong = |e: rustls::pki_types::pem::Error| {
        Error::file(path, format!("expected certificates in PEM: {e}"))
    };
    let all = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(wrong)?;
    match all.is_empty() {
        true => Err(Error::file(
            path,
            "expected certificates in PEM, but found none",
        )),
        false => Ok(all),
    }
}
