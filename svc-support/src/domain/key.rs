//! Generates the key that signs the mail of a domain (DKIM). A file of its own because it is the only code that uses
//! `rsa`.

use rsa::RsaPrivateKey;
use rsa::pkcs1::{EncodeRsaPrivateKey, LineEnding};
use rsa::rand_core::OsRng;

use crate::error::Error;

/// RSA, because many receivers do not support other algorithms; the length is the longest that fits into a DNS record.
const BITS: usize = 2048;

/// A new private key as PEM. This can take a second, so it must not run inside a transaction.
pub(super) async fn generate() -> Result<String, Error> {
    let failed = |error: &dyn std::fmt::Display| {
        chassis_base::Error::Internal(format!("generating a mail key failed: {error}"))
    };
    let generated = tokio::task::spawn_blocking(|| RsaPrivateKey::new(&mut OsRng, BITS));
    let key = generated.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
    let pem = key.to_pkcs1_pem(LineEnding::LF).map_err(|error| failed(&error))?;
    Ok(pem.to_string())
}
