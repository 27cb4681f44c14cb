//! Documents as businesses send them, each complete.

use render::PrintedDocument;
use render::printed::{Bank, Category, Collection, Language, Row};
use rust_decimal::Decimal;

use crate::support::{buyer, credit, day, invoice, row, total};

fn to(country: &str, rows: Vec<Row>) -> PrintedDocument {
    PrintedDocument { buyer: buyer(country), ..invoice(rows) }
}

fn hours() -> Vec<Row> {
    vec![row("2", "50", "21", Category::S)]
}

fn mixed() -> Vec<Row> {
    vec![
        row("2", "50", "21", Category::S),
        row("3", "12.95", "9", Category::S),
        row("1", "7.50", "21", Category::S),
        row("1", "100", "0", Category::Z),
        row("1", "80", "0", Category::E),
    ]
}

fn hostile() -> PrintedDocument {
    let nasty =
        "<&>\"' ]]> \u{0}\u{1}\u{8}\u{b}\u{1b}\u{7f}\u{85}\u{fffe} 😀 é \u{202e} &amp; <!-- --> {{x}}";
    let mut printed = invoice(hours());
    for text in [&mut printed.number, &mut printed.title, &mut printed.reference] {
        text.push_str(nasty);
    }
    for party in [&mut printed.seller, &mut printed.buyer] {
        for text in
            [&mut party.name, &mut party.contact, &mut party.address, &mut party.zipcode, &mut party.city]
        {
            text.push_str(nasty);
        }
        for text in [&mut party.email, &mut party.phone, &mut party.website, &mut party.debtor_number] {
            text.push_str(nasty);
        }
    }
    printed.bank.holder = nasty.to_owned();
    let row = &mut printed.rows[0];
    for text in [&mut row.name, &mut row.description, &mut row.unit] {
        *text = format!("{nasty}\r\nsecond line\rthird");
    }
    printed
}

/// A seller elsewhere in Europe, who sells to a German.
fn from(country: &str, registration_number: &str, vat_number: &str) -> PrintedDocument {
    let mut printed = to("DE", hours());
    printed.seller.country = country.to_owned();
    printed.seller.registration_number = registration_number.to_owned();
    printed.seller.vat_number = vat_number.to_owned();
    printed
}

fn outside_scope_in_germany() -> PrintedDocument {
    let mut printed = from("DE", "HRB 1", "DE123456789");
    printed.rows = vec![row("1", "5", "0", Category::O)];
    total(&mut printed);
    printed
}

pub(crate) fn complete() -> Vec<(&'static str, PrintedDocument)> {
    let mut cases = kinds_of_vat();
    cases.extend(amounts());
    cases.extend(parties());
    cases.extend(payments());
    cases
}

/// What was paid before, what is collected, and totals that no rate comes to.
fn payments() -> Vec<(&'static str, PrintedDocument)> {
    let prepaid = |cents: i64| PrintedDocument { prepaid: Decimal::new(cents, 2), ..invoice(hours()) };
    let collected = Collection { mandate: "mdt_8Qk3h".to_owned(), on: day(2026, 11, 14) };
    let mut from_total = invoice(vec![row("1", "82.64", "21", Category::S)]);
    from_total.vat[0].vat = Decimal::new(1736, 2);
    from_total.total_vat = Decimal::new(1736, 2);
    from_total.total_incl = Decimal::from(100);
    let without_iban = PrintedDocument { bank: Bank::default(), ..invoice(hours()) };
    vec![
        ("deposit", prepaid(2000)),
        ("deposit-of-all", prepaid(12_100)),
        ("credit-partly-refunded", PrintedDocument { prepaid: Decimal::new(-2000, 2), ..credit(hours()) }),
        ("direct-debit", PrintedDocument { collection: Some(collected.clone()), ..prepaid(0) }),
        (
            "direct-debit-of-the-rest",
            PrintedDocument { collection: Some(collected.clone()), ..prepaid(2000) },
        ),
        (
            "direct-debit-without-iban",
            PrintedDocument { collection: Some(collected.clone()), ..without_iban },
        ),
        ("direct-debit-to-be", PrintedDocument { collection: Some(collected), ..to("BE", hours()) }),
        ("from-a-total", from_total.clone()),
    ]
}

fn kinds_of_vat() -> Vec<(&'static str, PrintedDocument)> {
    let outside = || vec![row("1", "1000", "0", Category::O), row("2", "5", "0", Category::O)];
    vec![
        ("one-rate", invoice(hours())),
        ("mixed-rates", invoice(mixed())),
        ("reverse-charge", to("BE", vec![row("8", "95", "0", Category::AE)])),
        ("reverse-charge-beside-21", to("NL", vec![row("8", "95", "0", Category::AE), hours().remove(0)])),
        ("intra-community", to("DE", vec![row("10", "19.99", "0", Category::K)])),
        (
            "intra-community-credit",
            PrintedDocument { buyer: buyer("DE"), ..credit(vec![row("10", "19.99", "0", Category::K)]) },
        ),
        ("export", to("US", vec![row("3", "250", "0", Category::G)])),
        ("exempt", invoice(vec![row("1", "80", "0", Category::E)])),
        ("zero-rated", invoice(vec![row("1", "80", "0", Category::Z)])),
        ("outside-scope", invoice(outside())),
        ("outside-scope-to-de", to("DE", outside())),
        ("credit-full", credit(mixed())),
        ("credit-partial", credit(mixed().split_off(3))),
        (
            "credit-with-discount",
            credit(vec![row("1", "100", "21", Category::S), row("1", "-10", "21", Category::S)]),
        ),
    ]
}

fn amounts() -> Vec<(&'static str, PrintedDocument)> {
    let many = (0..500)
        .map(|at| row(&format!("{at}.25"), "0.3333", if at % 3 == 0 { "9" } else { "21" }, Category::S));
    let halves = ["0.005", "0.015", "0.025", "-0.005", "1.005", "2.675"];
    vec![
        (
            "discount-by-price",
            invoice(vec![row("1", "100", "21", Category::S), row("1", "-12.34", "21", Category::S)]),
        ),
        (
            "discount-by-quantity",
            invoice(vec![row("1", "100", "9", Category::S), row("-1", "12.34", "9", Category::S)]),
        ),
        ("both-negative", invoice(vec![row("-2", "-12.34", "21", Category::S)])),
        ("negative-total", invoice(vec![row("1", "-12.34", "21", Category::S)])),
        ("nothing-to-pay", invoice(vec![row("1", "0", "21", Category::S)])),
        (
            "nothing-to-pay-rate-by-rate",
            invoice(vec![row("1", "5", "21", Category::S), row("-1", "5", "21", Category::S)]),
        ),
        (
            "four-decimals",
            invoice(vec![row("1000", "0.1234", "21", Category::S), row("3", "1.0005", "9", Category::S)]),
        ),
        (
            "fractions",
            invoice(vec![row("1.3333", "99.99", "21", Category::S), row("0.001", "49.5", "21", Category::S)]),
        ),
        ("half-cents", invoice(halves.map(|price| row("1", price, "21", Category::S)).into())),
        // 0.50 × 9 % = 0.045 and 2.50 × 21 % = 0.525: the half goes up, once for each rate.
        (
            "half-cents-of-vat",
            invoice(vec![row("1", "0.50", "9", Category::S), row("1", "2.50", "21", Category::S)]),
        ),
        // 0.50 × 21 % = 0.105; rounded row by row it would be 0.10.
        ("vat-over-the-sum", invoice((0..10).map(|_| row("1", "0.05", "21", Category::S)).collect())),
        ("broken-rate", invoice(vec![row("1", "100", "5.5", Category::S)])),
        ("five-hundred-rows", invoice(many.collect())),
        ("large", invoice(vec![row("9999999", "9999999.99", "21", Category::S)])),
    ]
}

fn parties() -> Vec<(&'static str, PrintedDocument)> {
    let small = |change: fn(&mut PrintedDocument)| {
        let mut printed = invoice(hours());
        change(&mut printed);
        printed
    };
    vec![
        ("to-be", to("BE", hours())),
        ("to-de", to("DE", hours())),
        ("to-fr", to("FR", hours())),
        ("to-us", to("US", hours())),
        ("from-be", from("BE", "0403170701", "BE0403170701")),
        ("from-de-to-de", from("DE", "HRB 1", "DE123456789")),
        ("from-de-to-de-outside-scope", outside_scope_in_germany()),
        ("from-fr", from("FR", "732829320", "FR83732829320")),
        ("from-it", from("IT", "", "IT00743110157")),
        ("hostile", hostile()),
        (
            "english-in-dollars",
            small(|printed| {
                printed.language = Language::En;
                printed.currency = "USD".to_owned();
            }),
        ),
        (
            "least",
            small(|printed| {
                (printed.title, printed.reference, printed.bank.bic) = Default::default();
                for party in [&mut printed.seller, &mut printed.buyer] {
                    (party.contact, party.email, party.phone, party.website, party.debtor_number) =
                        Default::default();
                }
                printed.buyer.vat_number.clear();
            }),
        ),
        ("vat-number-instead-of-registration", small(|printed| printed.buyer.registration_number.clear())),
        (
            "government",
            small(|printed| printed.buyer.registration_number = "00000001234567890000".to_owned()),
        ),
    ]
}
