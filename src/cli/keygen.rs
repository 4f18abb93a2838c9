//! `nucleus-gate keygen`: a key pair to sign receipts with.

use std::path::{Path, PathBuf};

use super::{Failure, screen};
use crate::dsse::{self, KeyError, SecretKey};
use crate::gate::ExitCode;
use crate::text::sanitize;

/// Make a key pair (Ed25519) for check --sign and verify --key
///
/// Writes the secret key to KEY (PKCS#8 PEM, readable by its owner alone) and the public key to KEY.pub
/// (SubjectPublicKeyInfo PEM). Neither file is replaced.
#[derive(Debug, clap::Args)]
pub(super) struct Keygen {
    /// Where the secret key is written
    #[arg(value_name = "KEY")]
    secret: PathBuf,
}

/// Reads a secret key. One that others can read is no secret any more, and the call is told so.
pub(super) fn read_secret(path: &Path) -> Result<SecretKey, KeyError> {
    let key = SecretKey::read(path)?;
    if dsse::is_shared(path) {
        let path = path.display();
        screen::note(&format!("{path} can be read by others than its owner, who can sign with it: chmod 600 {path}"));
    }
    Ok(key)
}

impl Keygen {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let mut public = self.secret.clone().into_os_string();
        public.push(".pub");
        let public = PathBuf::from(public);
        let written =
            SecretKey::generate().and_then(|key| key.write(&self.secret, &public).map(|()| key.public().id()));
        let id = written.map_err(|error| {
            Failure::invocation(
                error.code(),
                error.to_string(),
                "name a file that does not exist, in a folder that does",
            )
        })?;
        screen::print(&format!(
            "secret key  {}\npublic key  {}\nkey id      {id}\n",
            sanitize(&self.secret.display().to_string()),
            sanitize(&public.display().to_string())
        ))?;
        Ok(ExitCode::Passed)
    }
}
