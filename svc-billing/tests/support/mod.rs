//! Documents for tests, complete enough for every rule; a test changes what it is about. Their sums are worked out here
//! in the plainest way: rows rounded half away from zero, VAT over the sum of each rate and rounded once.

use chrono::NaiveDate;
use render::PrintedDocument;
use render::printed::{Bank, Category, Kind, Language, Look, Original, Party, PrintedState, Row, Vat};
use rust_decimal::{Decimal, RoundingStrategy};

pub(crate) fn day(year: i32, month: u32, day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(year, month, day).expect("a day that exists")
}

pub(crate) fn cents(amount: Decimal) -> Decimal {
    amount.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero)
}

/// Quantity, price and rate as they would be typed.
pub(crate) fn row(quantity: &str, unit_price: &str, vat_rate: &str, category: Category) -> Row {
    let [quantity, unit_price, vat_rate] =
        [quantity, unit_price, vat_rate].map(|text| text.parse::<Decimal>().expect("a number"));
    Row {
        name: "Advies".to_owned(),
        description: String::new(),
        quantity,
        unit: "uur".to_owned(),
        unit_price,
        vat_rate,
        category,
        total_excl: cents(quantity * unit_price),
    }
}

pub(crate) fn seller() -> Party {
    Party {
        name: "Voorbeeld B.V.".to_owned(),
        contact: "Eva de Vries".to_owned(),
        address: "Keizersgracht 1".to_owned(),
        zipcode: "1015 CJ".to_owned(),
        city: "Amsterdam".to_owned(),
        country: "NL".to_owned(),
        email: "facturen@voorbeeld.nl".to_owned(),
        phone: "+31 20 123 45 67".to_owned(),
        website: "https://voorbeeld.nl".to_owned(),
        registration_number: "12345678".to_owned(),
        vat_number: "NL123456789B01".to_owned(),
        debtor_number: String::new(),
    }
}

/// A company in that country that can be reached through Peppol.
pub(crate) fn buyer(country: &str) -> Party {
    let (registration_number, vat_number) = match country {
        "NL" => ("87654321", "NL987654321B01"),
        "BE" => ("0403.170.701", "BE0403170701"),
        "DE" => ("HRB 12345", "DE123456789"),
        "FR" => ("", "FR83732829320"),
        "US" => ("12-3456789", ""),
        other => panic!("no sample of a buyer in {other}"),
    };
    Party {
        name: "Klant & Zonen".to_owned(),
        contact: "Jan Jansen".to_owned(),
        address: "Coolsingel 2".to_owned(),
        zipcode: "3011 AD".to_owned(),
        city: "Rotterdam".to_owned(),
        country: country.to_owned(),
        email: "inkoop@klant.example".to_owned(),
        phone: "+31 10 765 43 21".to_owned(),
        website: String::new(),
        registration_number: registration_number.to_owned(),
        vat_number: vat_number.to_owned(),
        debtor_number: "D-00001".to_owned(),
    }
}

/// A final invoice from the Netherlands to the Netherlands.
pub(crate) fn invoice(rows: Vec<Row>) -> PrintedDocument {
    let mut printed = PrintedDocument {
        kind: Kind::Invoice,
        language: Language::Nl,
        draft: false,
        number: "INV-2026-00001".to_owned(),
        title: "Werkzaamheden november".to_owned(),
        reference: "PO-77".to_owned(),
        date: day(2026, 11, 14),
        due_date: day(2026, 11, 28),
        currency: "EUR".to_owned(),
        seller: seller(),
        buyer: buyer("NL"),
        bank: Bank {
            iban: "NL91 ABNA 0417 1643 00".to_owned(),
            bic: "ABNANL2A".to_owned(),
            holder: String::new(),
        },
        rows,
        vat: Vec::new(),
        total_excl: Decimal::ZERO,
        total_vat: Decimal::ZERO,
        total_incl: Decimal::ZERO,
        credits: None,
        prepaid: Decimal::ZERO,
        state: PrintedState::New,
        collection: None,
        look: Look::default(),
    };
    total(&mut printed);
    printed
}

/// A credit of these rows: their quantities are turned around.
pub(crate) fn credit(mut rows: Vec<Row>) -> PrintedDocument {
    for row in &mut rows {
        row.quantity = -row.quantity;
        row.total_excl = -row.total_excl;
    }
    PrintedDocument {
        kind: Kind::Credit,
        number: "INV-2026-00002".to_owned(),
        credits: Some(Original { number: "INV-2026-00001".to_owned(), date: day(2026, 11, 14) }),
        ..invoice(rows)
    }
}

/// Works the sums out again after the rows were changed.
pub(crate) fn total(printed: &mut PrintedDocument) {
    let mut parts: Vec<Vat> = Vec::new();
    for row in &printed.rows {
        let found = parts.iter_mut().find(|vat| vat.category == row.category && vat.rate == row.vat_rate);
        if let Some(vat) = found {
            vat.taxable += row.total_excl;
        } else {
            let (rate, category) = (row.vat_rate, row.category);
            parts.push(Vat { rate, category, taxable: row.total_excl, vat: Decimal::ZERO });
        }
    }
    for vat in &mut parts {
        vat.vat = cents(vat.taxable * vat.rate / Decimal::ONE_HUNDRED);
    }
    printed.total_excl = parts.iter().map(|vat| vat.taxable).sum();
    printed.total_vat = parts.iter().map(|vat| vat.vat).sum();
    printed.total_incl = printed.total_excl + printed.total_vat;
    printed.vat = parts;
}
