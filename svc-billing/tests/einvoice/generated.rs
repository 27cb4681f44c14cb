//! Documents by chance, complete ones and others, the same in every run.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use render::PrintedDocument;
use render::printed::{Category, Language, Party, Row};
use rust_decimal::Decimal;

use crate::support::{buyer, cents, credit, invoice, seller};

pub(crate) fn samples(count: usize) -> Vec<PrintedDocument> {
    let mut runner = TestRunner::deterministic();
    let samples = printed();
    (0..count).map(|_| samples.new_tree(&mut runner).expect("a document").current()).collect()
}

pub(crate) fn printed() -> impl Strategy<Value = PrintedDocument> {
    (
        rows(),
        party(seller()),
        buyer_party(),
        (any::<bool>(), any::<bool>()),
        chance("PO-9".to_owned()),
        0..40_u8,
    )
        .prop_map(|(rows, seller, buyer, (is_credit, is_english), reference, rare)| {
            let printed = if is_credit { credit(rows) } else { invoice(rows) };
            let language = if is_english { Language::En } else { Language::Nl };
            let mut printed = PrintedDocument { seller, buyer, language, reference, ..printed };
            match rare {
                0 => printed.bank.iban.clear(),
                1 => printed.credits = None,
                2 => printed.currency = "CHF".to_owned(),
                3 => printed.number = "\u{1}".to_owned(),
                4 => printed.total_incl += Decimal::ONE,
                _ => {}
            }
            printed
        })
}

/// Mostly rows that may stand together.
fn rows() -> impl Strategy<Value = Vec<Row>> {
    const TAXED: [(&str, Category); 4] =
        [("21", Category::S), ("9", Category::S), ("5.5", Category::S), ("0", Category::Z)];
    let kinds = select(vec![
        TAXED.to_vec(),
        TAXED.to_vec(),
        TAXED.to_vec(),
        TAXED.to_vec(),
        vec![("21", Category::S), ("0", Category::E), ("0", Category::AE)],
        vec![("0", Category::K)],
        vec![("0", Category::G)],
        vec![("0", Category::O)],
        vec![("0", Category::O), ("21", Category::S)],
        vec![("0", Category::S), ("21", Category::S)],
    ]);
    kinds.prop_flat_map(|kinds| vec(row(kinds), 0..9)).prop_filter("seldom empty", |rows| rows.len() != 1)
}

fn row(kinds: Vec<(&'static str, Category)>) -> impl Strategy<Value = Row> {
    let quantity = (-50_000_i64..200_000, 0..4_u32).prop_map(|(digits, scale)| Decimal::new(digits, scale));
    let price = (-50_000_i64..900_000, 0..5_u32).prop_map(|(digits, scale)| Decimal::new(digits, scale));
    let unit = select(vec!["uur", "stuks", "", "kg", "m2", "maand", "\u{2}"]);
    (quantity, price, unit, select(kinds), text()).prop_map(|(quantity, unit_price, unit, kind, name)| Row {
        name: format!("x{name}"),
        description: name,
        quantity,
        unit: unit.to_owned(),
        unit_price,
        vat_rate: kind.0.parse().expect("a rate"),
        category: kind.1,
        total_excl: cents(quantity * unit_price),
    })
}

fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..12).prop_map(String::from_iter)
}

/// Seldom empty.
fn chance(text: String) -> impl Strategy<Value = String> {
    (0..30_u8).prop_map(move |at| if at == 0 { " \u{7} ".to_owned() } else { text.clone() })
}

fn buyer_party() -> impl Strategy<Value = Party> {
    select(vec!["NL", "NL", "BE", "DE", "FR", "US"]).prop_flat_map(|country| party(buyer(country)))
}

fn party(party: Party) -> impl Strategy<Value = Party> {
    let place = (chance(party.address.clone()), chance(party.zipcode.clone()), chance(party.city.clone()));
    let ids = (chance(party.registration_number.clone()), chance(party.vat_number.clone()));
    (chance(party.name.clone()), text(), place, ids, foreign(party.country.clone())).prop_map(
        move |(name, contact, (address, zipcode, city), (registration_number, vat_number), country)| Party {
            name,
            contact,
            address,
            zipcode,
            city,
            country,
            registration_number,
            vat_number,
            ..party.clone()
        },
    )
}

/// Seldom another country than the numbers are from.
fn foreign(country: String) -> impl Strategy<Value = String> {
    (0..120_usize).prop_map(move |at| {
        let others = ["DE", "IT", "SE", "GR", "BE", "xx", "", "nl"];
        others.get(at).map_or_else(|| country.clone(), |other| (*other).to_owned())
    })
}

/// Nothing in it can be trusted.
pub(crate) fn nonsense() -> impl Strategy<Value = PrintedDocument> {
    (printed(), vec((any_decimal(), any_decimal(), any_decimal()), 1..4), text(), text()).prop_map(
        |(mut printed, rows, one, other)| {
            for (row, (quantity, price, amount)) in printed.rows.iter_mut().zip(&rows) {
                (row.quantity, row.unit_price, row.total_excl, row.vat_rate) =
                    (*quantity, *price, *amount, *amount);
            }
            (printed.total_incl, printed.total_vat) = (rows[0].0, rows[0].1);
            (printed.currency, printed.seller.country, printed.seller.vat_number) =
                (one.clone(), one, other.clone());
            (printed.buyer.registration_number, printed.bank.iban) = (other.clone(), other);
            printed
        },
    )
}

/// Any value that the type can have.
fn any_decimal() -> impl Strategy<Value = Decimal> {
    (any::<[u32; 3]>(), any::<bool>(), 0..29_u32).prop_map(|([low, middle, high], is_negative, scale)| {
        Decimal::from_parts(low, middle, high, is_negative, scale)
    })
}
