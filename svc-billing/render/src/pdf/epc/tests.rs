use chrono::NaiveDate;

use super::*;
use crate::printed::{Bank, Kind, Language, Look, Party, PrintedState};

fn invoice() -> PrintedDocument {
    PrintedDocument {
        kind: Kind::Invoice,
        language: Language::Nl,
        draft: false,
        number: "2026-0042".to_owned(),
        title: String::new(),
        reference: String::new(),
        date: NaiveDate::default(),
        due_date: NaiveDate::default(),
        currency: "EUR".to_owned(),
        seller: Party { name: "Studio Noorderlicht B.V.".to_owned(), ..Party::default() },
        buyer: Party::default(),
        bank: Bank {
            iban: "nl91 ABNA 0417 1643 00".to_owned(),
            bic: "ABNANL2A".to_owned(),
            holder: String::new(),
        },
        rows: Vec::new(),
        vat: Vec::new(),
        total_excl: Decimal::ZERO,
        total_vat: Decimal::ZERO,
        total_incl: Decimal::new(12_345, 1),
        credits: None,
        prepaid: Decimal::ZERO,
        state: PrintedState::New,
        collection: None,
        look: Look::default(),
    }
}

#[test]
fn the_payload_is_what_the_guideline_asks_for() {
    assert_eq!(
        payload(&invoice()).unwrap(),
        "BCD\n002\n1\nSCT\nABNANL2A\nStudio Noorderlicht B.V.\nNL91ABNA0417164300\nEUR1234.50\n\n\n2026-0042"
    );
}

#[test]
fn a_text_cannot_add_fields_or_outgrow_its_own() {
    let mut printed = invoice();
    printed.bank.holder = "é\n".repeat(200);
    printed.number = "1\nEUR9.99\n".to_owned();
    let payload = payload(&printed).unwrap();
    let fields: Vec<&str> = payload.split('\n').collect();
    assert_eq!(fields.len(), 11);
    assert!(fields[5].chars().count() <= 70);
    assert_eq!(fields[10], "1 EUR9.99");
    assert!(code(&printed, 68.0).is_some());
}

#[test]
fn a_number_that_does_not_fit_is_not_cut_off() {
    let mut printed = invoice();
    printed.number = "7".repeat(141);
    assert!(code(&printed, 68.0).is_none());
}

#[test]
fn what_cannot_be_paid_has_no_code() {
    let changes: [fn(&mut PrintedDocument); 8] = [
        |printed| printed.draft = true,
        |printed| printed.kind = Kind::Quote,
        |printed| printed.currency = "USD".to_owned(),
        |printed| printed.bank.iban = "NL91".to_owned(),
        |printed| printed.bank.iban = "NL91ABNA04171643é0".to_owned(),
        |printed| printed.total_incl = Decimal::ZERO,
        |printed| printed.total_incl = Decimal::from(-5),
        |printed| printed.total_incl = Decimal::from(1_000_000_000),
    ];
    for change in changes {
        let mut printed = invoice();
        change(&mut printed);
        assert_eq!(payload(&printed), None);
    }
}
