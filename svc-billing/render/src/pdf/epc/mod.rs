//! The QR code with which a banking app fills in a transfer: EPC069-12, version 002.

use krilla::geom::{Path, PathBuilder, Rect};
use qrcodegen::{QrCode, QrCodeEcc, QrSegment, Version};
use rust_decimal::Decimal;

use crate::printed::PrintedDocument;
use crate::typeset::float;

/// The largest QR version that the guideline allows.
const MAX_VERSION: u8 = 13;

/// The code as a square path with sides of this length, for documents with an amount in euros to transfer and an account to
/// transfer it to. A draft has no code: it is not to be paid.
pub(super) fn code(printed: &PrintedDocument, side: f32) -> Option<Path> {
    let payload = payload(printed)?;
    let segments = [QrSegment::make_bytes(payload.as_bytes())];
    let code = QrCode::encode_segments_advanced(
        &segments,
        QrCodeEcc::Medium,
        Version::MIN,
        Version::new(MAX_VERSION),
        None,
        false,
    )
    .ok()?;
    path(&code, side)
}

pub(super) fn payload(printed: &PrintedDocument) -> Option<String> {
    let iban: String =
        printed.bank.iban.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_uppercase();
    let amount = printed.to_transfer()?.round_dp(2);
    let payable = amount > Decimal::ZERO && amount <= Decimal::new(99_999_999_999, 2);
    if printed.draft || printed.currency != "EUR" || !payable || !is_iban(&iban) {
        return None;
    }
    let holder =
        [&printed.bank.holder, &printed.seller.name].into_iter().find(|name| !name.trim().is_empty())?;
    let bic: String =
        printed.bank.bic.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_uppercase();
    let bic = if matches!(bic.len(), 8 | 11) { bic.as_str() } else { "" };
    let name = field(holder, 70);
    let remittance = field(&printed.number, usize::MAX);
    // A truncated number could be the number of another invoice.
    if remittance.chars().count() > 140 {
        return None;
    }
    Some(format!("BCD\n002\n1\nSCT\n{bic}\n{name}\n{iban}\nEUR{amount:.2}\n\n\n{remittance}"))
}

/// A line end inside a field would make it another field.
fn field(text: &str, limit: usize) -> String {
    let clean: String =
        text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(limit).collect();
    clean.trim().to_owned()
}

fn is_iban(text: &str) -> bool {
    let bytes = text.as_bytes();
    (15..=34).contains(&bytes.len())
        && bytes.iter().all(u8::is_ascii_alphanumeric)
        && bytes.iter().take(2).all(u8::is_ascii_alphabetic)
        && bytes.iter().skip(2).take(2).all(u8::is_ascii_digit)
}

/// One path of horizontal runs: small, and without seams between the modules.
fn path(code: &QrCode, side: f32) -> Option<Path> {
    let count = code.size();
    let modules = |number: i32| float(usize::try_from(number).unwrap_or(1));
    let length = |number: i32| side * modules(number) / modules(count);
    let mut path = PathBuilder::new();
    for y in 0..count {
        let mut x = 0;
        while x < count {
            let run = (x..count).take_while(|x| code.get_module(*x, y)).count();
            let run = i32::try_from(run).unwrap_or(count);
            if run > 0 {
                path.push_rect(Rect::from_xywh(length(x), length(y), length(run), length(1))?);
            }
            x += run + 1;
        }
    }
    path.finish()
}

#[cfg(test)]
mod tests;
