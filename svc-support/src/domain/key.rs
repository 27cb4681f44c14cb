//! Making the key that a domain's mail is signed with.

use rsa::RsaPrivateKey;
use rsa::pkcs1::{EncodeRsaPrivateKey, LineEnding};
use rsa::rand_core::OsRng;

use crate::Error;

/// RSA, because many receivers still know no other, of the length that a DNS record holds.
const BITS: usize = 2048;

/// A new private key as PEM. Takes a while: outside any transaction.
pub async fn generate() -> Result<String, Error> {
    let failed =
        |error: &dyn std::fmt::Display| chassis::Error::Internal(format!("no mail key was made: {error}"));
    let made = tokio::task::spawn_blocking(|| RsaPrivateKey::new(&mut OsRng, BITS));
    let key = made.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
    let pem = key.to_pkcs1_pem(LineEnding::LF).map_err(|error| failed(&error))?;
    Ok(pem.to_string())
}
