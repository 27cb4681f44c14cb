//! Signatures on mail (DKIM, RFC 6376 and 8463): relaxed/relaxed, RSA or Ed25519 with SHA-256.
//!
//! Signs the formatted message, so that exactly what is signed is sent. Lettre's own signer is not used: it does not
//! cover the MIME headers, and it recurses over the characters of all headers, which overflows the stack on a long list
//! of recipients.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};

/// The headers that are signed, if the mail has them.
const SIGNED: [&str; 12] = [
    "from",
    "reply-to",
    "to",
    "cc",
    "subject",
    "date",
    "message-id",
    "in-reply-to",
    "references",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
];
/// The characters of a signature per line.
const LINE: usize = 72;

/// A private key.
pub(super) enum Signer {
    Rsa(Box<RsaKeyPair>),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    /// Parses a PEM key. The error describes the accepted forms.
    pub(super) fn new(pem: &str) -> Result<Self, &'static str> {
        let ed25519 = |der: &[u8]| Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(Self::Ed25519);
        match PrivateKeyDer::from_pem_slice(pem.trim().as_bytes()) {
            Ok(PrivateKeyDer::Pkcs1(der)) => {
                RsaKeyPair::from_der(der.secret_pkcs1_der()).map(|key| Self::Rsa(Box::new(key)))
            }
            Ok(PrivateKeyDer::Pkcs8(der)) => {
                let der = der.secret_pkcs8_der();
                RsaKeyPair::from_pkcs8(der).map(|key| Self::Rsa(Box::new(key))).or_else(|_| ed25519(der))
            }
            _ => return Err("must be a private key in PEM form: RSA (PKCS#1 or PKCS#8) or Ed25519 (PKCS#8)"),
        }
        .map_err(|_| "must be an RSA key of 2048 to 4096 bits or an Ed25519 key")
    }

    /// The value of the key's TXT record.
    pub(super) fn record(&self) -> String {
        match self {
            Self::Rsa(key) => {
                format!("v=DKIM1; k=rsa; p={}", STANDARD.encode(public_key_info(key.public_key().as_ref())))
            }
            Self::Ed25519(key) => format!("v=DKIM1; k=ed25519; p={}", STANDARD.encode(key.public_key())),
        }
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "rsa-sha256",
            Self::Ed25519(_) => "ed25519-sha256",
        }
    }

    fn sign(&self, content: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), content, &mut signature)
                    .map_err(|_| "the key of the sender's domain cannot sign")?;
                Ok(signature)
            }
            Self::Ed25519(key) => Ok(key.sign(&Sha256::digest(content)).as_ref().to_vec()),
        }
    }
}

/// An RSA key as `SubjectPublicKeyInfo` in DER: the algorithm, then the key as a bit string.
fn public_key_info(key: &[u8]) -> Vec<u8> {
    const RSA: [u8; 15] = [0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
    let bits = tagged(0x03, &[&[0], key].concat());
    tagged(0x30, &[RSA.as_slice(), &bits].concat())
}

fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut der = vec![tag];
    if content.len() >= 128 {
        der.push(0x80 | u8::try_from(length.len()).unwrap_or_default());
    }
    der.extend(length);
    der.extend(content);
    der
}

/// A key, and the domain and selector under which receivers find its public part.
pub(super) struct SigningKey<'a> {
    pub domain: &'a str,
    pub selector: &'a str,
    pub signer: &'a Signer,
}

/// Returns the message with its signature as the first header.
pub(super) fn sign(message: &[u8], key: &SigningKey<'_>, time: DateTime<Utc>) -> Result<Vec<u8>, String> {
    let SigningKey { domain, selector, signer } = key;
    let end = message.windows(4).position(|window| window == b"\r\n\r\n").ok_or("the mail has no body")?;
    let (head, body) = (&message[..end], &message[end + 4..]);
    let head = std::str::from_utf8(head).map_err(|_| "the mail has headers that are not text")?;
    let headers = unfolded(head);
    // Of several headers with the same name, verifiers use the last.
    let find = |name: &str| headers.iter().rev().find(|(found, _)| found == name);
    let covered: Vec<&(String, String)> = SIGNED.iter().filter_map(|name| find(name)).collect();
    let names: Vec<&str> = covered.iter().map(|(name, _)| name.as_str()).collect();
    let unsigned = format!(
        "v=1; a={}; c=relaxed/relaxed; d={domain}; s={selector};\r\n\tt={}; h={};\r\n\tbh={};\r\n\tb=",
        signer.algorithm(),
        time.timestamp(),
        names.join(":"),
        STANDARD.encode(Sha256::digest(relaxed_body(body))),
    );
    let mut content = String::new();
    for (name, value) in covered {
        content.extend([name, ":", value, "\r\n"]);
    }
    content.extend(["dkim-signature:", &relaxed(&unsigned)]);
    let signature = STANDARD.encode(signer.sign(content.as_bytes())?);
    let lines = signature.as_bytes().chunks(LINE).map(String::from_utf8_lossy);
    let signature = lines.collect::<Vec<_>>().join("\r\n\t");
    let header = format!("DKIM-Signature: {unsigned}{signature}\r\n");
    Ok([header.as_bytes(), message].concat())
}

/// The headers, unfolded, with names in lower case and values in relaxed form.
fn unfolded(head: &str) -> Vec<(String, String)> {
    let head = head.replace("\r\n ", " ").replace("\r\n\t", " ");
    let lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
    lines.map(|(name, value)| (name.trim().to_ascii_lowercase(), relaxed(value))).collect()
}

/// Relaxed form of a header value: runs of blanks become one, none at the ends.
fn relaxed(value: &str) -> String {
    let words = value.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Relaxed form of the body: runs of blanks become one, none at the end of a line, no empty lines at the end.
fn relaxed_body(body: &[u8]) -> Vec<u8> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut out = Vec::with_capacity(body.len());
    let mut empty_lines = 0;
    for line in body.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let kept = line.len() - line.iter().rev().take_while(|byte| is_blank(byte)).count();
        if kept == 0 {
            empty_lines += 1;
            continue;
        }
        out.extend(b"\r\n".repeat(empty_lines));
        empty_lines = 0;
        let mut before = false;
        for byte in &line[..kept] {
            if !is_blank(byte) {
                out.push(*byte);
            } else if !before {
                out.push(b' ');
            }
            before = is_blank(byte);
        }
        out.extend(b"\r\n");
    }
    out
}
