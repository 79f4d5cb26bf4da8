//! TLS 1.3 by rustls, which real peers speak: certificates, whom a client believes, and what a server shows.
//!
//! Its random numbers and its times are the machine's, so that no two runs have the same octets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::quic::Suite;
use rustls::{ClientConfig, DigitallySignedStruct, KeyLog, RootCertStore, ServerConfig, SignatureScheme};

/// What is spoken, and by which means.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// What it is called in TLS.
    pub alpn: &'static [u8],
    /// With ChaCha20 alone.
    pub chacha20: bool,
    /// With data before the handshake is over, where a session is resumed.
    pub early: bool,
}

impl Terms {
    //= RFC 9114 (3.1): the name of HTTP/3.
    /// HTTP/3, by whatever cipher.
    pub const HTTP3: Terms = Terms { alpn: b"h3", chacha20: false, early: false };

    fn provider(self) -> Arc<CryptoProvider> {
        let mut provider = ring::default_provider();
        if self.chacha20 {
            provider.cipher_suites = vec![ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256];
        }
        Arc::new(provider)
    }
}

/// What Initial packets are protected with, whatever is negotiated (RFC 9001, 5.2).
///
/// # Errors
/// There is no such cipher.
pub fn initial() -> Result<Suite, String> {
    let suite = ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().and_then(|suite| suite.quic_suite());
    suite.ok_or_else(|| "there is no cipher for Initial packets".to_owned())
}

/// Whom a client believes to be who it asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Who has a certificate of a public authority. On loopback anybody: who answers there is this machine.
    #[default]
    Public,
    /// Who has a certificate that is, or was signed by, one of this file (PEM).
    File(PathBuf),
    /// Anybody.
    Anybody,
}

/// Who may be anybody: signatures are checked, names and authorities are not.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        //= RFC 9001 (4.2): QUIC takes TLS 1.3 or later.
        Err(rustls::Error::General("TLS 1.2 below QUIC".to_owned()))
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn said(what: &Path) -> impl Fn(rustls::pki_types::pem::Error) -> String + '_ {
    move |why| format!("{}: {why}", what.display())
}

/// A client's side of TLS towards a host that is `is_loopback` or not; `log` gets its secrets.
///
/// # Errors
/// What is wrong with the file, in words.
pub fn client(
    terms: Terms,
    trust: &Trust,
    is_loopback: bool,
    log: Arc<dyn KeyLog>,
) -> Result<Arc<ClientConfig>, String> {
    let provider = terms.provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| e.to_string())?;
    let mut roots = RootCertStore::empty();
    let believes_all = *trust == Trust::Anybody || (*trust == Trust::Public && is_loopback);
    match trust {
        Trust::File(file) => {
            for certificate in CertificateDer::pem_file_iter(file).map_err(said(file))? {
                roots
                    .add(certificate.map_err(said(file))?)
                    .map_err(|e| format!("{}: {e}", file.display()))?;
            }
        }
        Trust::Public | Trust::Anybody => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let mut config = if believes_all {
        let anybody = Arc::new(Anybody(provider));
        builder.dangerous().with_custom_certificate_verifier(anybody).with_no_client_auth()
    } else {
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    config.alpn_protocols = vec![terms.alpn.to_vec()];
    config.enable_early_data = terms.early;
    config.key_log = log;
    Ok(Arc::new(config))
}

/// Octets that a comment in a certificate has beside its text (X.690): headers of the extension, of its name and of its value, of
/// the text, and longer ones of all that it is in.
const COMMENT_HEADERS: usize = 4 + 11 + 4 + 4 + 2;

/// An extension that says nothing in so many octets: Netscape's comment, which nobody minds. `None`: too few of them, or too many.
fn comment(octets: usize) -> Option<rcgen::CustomExtension> {
    // A text in ASCII (IA5String); from 256 octets on its length has two.
    let len = u16::try_from(octets).ok().filter(|octets| *octets >= 256)?.to_be_bytes();
    let content = [&[0x16, 0x82][..], &len, &vec![b'.'; octets]].concat();
    Some(rcgen::CustomExtension::from_oid_content(&[2, 16, 840, 1, 113_730, 1, 13], content))
}

/// What a server shows, with its key.
#[derive(Debug)]
pub struct Shown {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Shown {
    /// The certificates and the key of these files (PEM).
    ///
    /// # Errors
    /// What is wrong with the files, in words.
    pub fn of_files(certificates: &Path, key: &Path) -> Result<Shown, String> {
        let chain = CertificateDer::pem_file_iter(certificates).map_err(said(certificates))?;
        let chain = chain.collect::<Result<_, _>>().map_err(said(certificates))?;
        Ok(Shown { chain, key: PrivateKeyDer::from_pem_file(key).map_err(said(key))? })
    }

    /// A certificate that is made now, for these names and addresses, and signed by itself. From some 700 on it has `octets`, but for a few
    /// that its signature is longer or shorter by; else as many as it needs.
    ///
    /// # Errors
    /// A name cannot be in a certificate.
    pub fn made(names: &[&str], octets: usize) -> Result<Shown, String> {
        let names: Vec<_> = names.iter().copied().map(str::to_owned).collect();
        let mut about = rcgen::CertificateParams::new(names).map_err(|e| e.to_string())?;
        let key = rcgen::KeyPair::generate().map_err(|e| e.to_string())?;
        let mut made = about.self_signed(&key).map_err(|e| e.to_string())?;
        if let Some(filler) = octets.checked_sub(made.der().len() + COMMENT_HEADERS).and_then(comment) {
            about.custom_extensions.push(filler);
            made = about.self_signed(&key).map_err(|e| e.to_string())?;
        }
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Shown { chain: vec![made.into()], key: key.into() })
    }

    /// Octets of the certificates.
    #[cfg(test)]
    pub(crate) fn octets(&self) -> usize {
        self.chain.iter().map(|certificate| certificate.len()).sum()
    }
}

/// A server's side of TLS; `log` gets its secrets.
///
/// # Errors
/// Certificates and key do not belong together.
pub fn server(terms: Terms, shown: Shown, log: Arc<dyn KeyLog>) -> Result<Arc<ServerConfig>, String> {
    let mut config = ServerConfig::builder_with_provider(terms.provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| e.to_string())?
        .with_no_client_auth()
        .with_single_cert(shown.chain, shown.key)
        .map_err(|e| e.to_string())?;
    config.alpn_protocols = vec![terms.alpn.to_vec()];
    //= RFC 9001 (4.6.1): early data is offered by this number, or not at all.
    config.max_early_data_size = if terms.early { u32::MAX } else { 0 };
    config.key_log = log;
    Ok(Arc::new(config))
}
