//! A certificate authority for tests. Certificates and keys are PEM files, as servers and clients expect them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};

/// A self-signed certificate authority.
#[derive(Debug)]
pub struct Authority {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    /// Path of its certificate (PEM).
    pub certificate: PathBuf,
}

/// Paths of a certificate and its key (PEM). Only the owner may read the key's file.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

// === impl Authority ===

impl Authority {
    /// A new authority, whose files are in `dir` under names that begin with `name`.
    pub fn new(dir: &Path, name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names are valid names");
        let mut named = DistinguishedName::new();
        named.push(DnType::CommonName, name);
        params.distinguished_name = named;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let signed = params.self_signed(&key).expect("it signs itself");
        let certificate = dir.join(format!("{name}.pem"));
        fs::write(&certificate, signed.pem()).expect("the directory can be written");
        Self {
            dir: dir.to_owned(),
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    /// A certificate for the host or user `subject`, in files that begin with `name`.
    pub fn sign(&self, name: &str, subject: &str) -> Certificate {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![subject.to_owned()]).expect("a name");
        let signed = params.signed_by(&key, &self.issuer).expect("it signs");
        let files = Certificate {
            certificate: self.dir.join(format!("{name}.pem")),
            key: self.dir.join(format!("{name}.key")),
        };
        fs::write(&files.certificate, signed.pem()).expect("the directory can be written");
        fs::write(&files.key, key.serialize_pem()).expect("the directory can be written");
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&files.key, private).expect("the file is ours");
        files
    }
}
