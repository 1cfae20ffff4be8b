//! Encryption, and whom to trust, with libpq's meaning of `sslmode`: `prefer` and `require` encrypt without
//! asking who is there, unless a root certificate is given; `verify-ca` asks for a certificate that a root
//! signed, `verify-full` for one that names the host as well. Roots are those of the file `sslrootcert`, or
//! the system's.

use crate::{Error, Result};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// What libpq calls sslmode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SslMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Whom to trust.
#[derive(Debug, Clone)]
pub(super) struct TlsSettings {
    pub(super) mode: SslMode,
    /// A file of root certificates; `system` for the system's.
    pub(super) root: Option<String>,
}

impl SslMode {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "disable" => SslMode::Disable,
            // Without encryption first is a habit of old: what a server can encrypt is encrypted.
            "allow" | "prefer" => SslMode::Prefer,
            "require" => SslMode::Require,
            "verify-ca" => SslMode::VerifyCa,
            "verify-full" => SslMode::VerifyFull,
            _ => return None,
        })
    }

    /// As the client library knows it.
    pub(super) fn ssl_mode(self) -> postgres::config::SslMode {
        match self {
            SslMode::Disable => postgres::config::SslMode::Disable,
            SslMode::Prefer => postgres::config::SslMode::Prefer,
            _ => postgres::config::SslMode::Require,
        }
    }
}

impl TlsSettings {
    /// What connects by TLS; `place` is for messages.
    pub(super) fn connector(&self, place: &str) -> Result<MakeRustlsConnect> {
        let refused = |problem: String| Error::Refused {
            place: place.to_owned(),
            problem,
        };
        let provider = Arc::new(ring::default_provider());
        let asks = self.root.is_some() || self.mode >= SslMode::VerifyCa;
        let roots = if asks {
            let roots = Arc::new(self.roots().map_err(refused)?);
            let verifier =
                WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
            Some(verifier.map_err(|e| refused(format!("the root certificates: {e}")))?)
        } else {
            None
        };
        let verifier = CertificateVerifier {
            roots,
            names: self.mode == SslMode::VerifyFull,
            provider: Arc::clone(&provider),
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| refused(e.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(MakeRustlsConnect::new(config))
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        let file = self.root.as_deref().filter(|root| *root != "system");
        let Some(file) = file else {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err(
                    "the system has no root certificates: name a file by sslrootcert".into(),
                );
            }
            return Ok(roots);
        };
        let unreadable = |e: &dyn std::fmt::Display| format!("sslrootcert {file}: {e}");
        for certificate in CertificateDer::pem_file_iter(file).map_err(|e| unreadable(&e))? {
            let certificate = certificate.map_err(|e| unreadable(&e))?;
            roots.add(certificate).map_err(|e| unreadable(&e))?;
        }
        if roots.is_empty() {
            return Err(unreadable(&"expected certificates in PEM, but found none"));
        }
        Ok(roots)
    }
}

/// Checks a server's certificate as far as the mode asks.
#[derive(Debug)]
struct CertificateVerifier {
    /// Absent where any certificate will do.
    roots: Option<Arc<WebPkiServerVerifier>>,
    /// Whether the certificate must name the host.
    names: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(roots) = &self.roots else {
            return Ok(ServerCertVerified::assertion());
        };
        match roots.verify_server_cert(certificate, between, host, ocsp, now) {
            // Names are looked at last: whoever comes here was signed by a root.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.names => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = &self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}
