//! Documents to render, for tests and for looking at.

use chrono::NaiveDate;
use render::printed::{
    Bank, Category, Kind, Language, Logo, LogoFormat, Look, Original, Party, PrintedDocument, PrintedState,
    Row, Vat,
};
use rust_decimal::Decimal;

fn day(year: i32, month: u32, day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(year, month, day).unwrap_or_default()
}

fn cents(amount: i64) -> Decimal {
    Decimal::new(amount, 2)
}

/// Name, description, quantity in tenths, unit and price in cents.
const NL: [(&str, &str, i64, &str, i64); 5] = [
    ("Advies en ontwerp", "Drie sessies met het team, met een verslag van elke sessie", 125, "uur", 9_500),
    ("Ontwikkeling webwinkel", "Koppeling met de voorraad en de kassa in de winkel", 640, "uur", 8_750),
    ("Fotografie van producten", "", 240, "stuks", 1_850),
    ("Hosting en beheer", "Periode november 2026 tot en met oktober 2027", 120, "maanden", 4_995),
    ("Reiskosten", "Amersfoort – Groningen, heen en terug", 3_720, "km", 23),
];

const EN: [(&str, &str, i64, &str, i64); 5] = [
    ("Advice and design", "Three sessions with the team, with a report of each", 125, "hours", 9_500),
    ("Web shop development", "Connected with the stock and the tills in the shop", 640, "hours", 8_750),
    ("Product photography", "", 240, "pieces", 1_850),
    ("Hosting and maintenance", "November 2026 up to and including October 2027", 120, "months", 4_995),
    ("Travel", "Amersfoort – Groningen and back", 3_720, "km", 23),
];

/// A document with this many rows and everything that is usually known.
pub(crate) fn printed(kind: Kind, language: Language, rows: usize) -> PrintedDocument {
    let source = match language {
        Language::Nl => NL,
        Language::En => EN,
    };
    let sign = if kind == Kind::Credit { -1 } else { 1 };
    let rows: Vec<Row> = source
        .iter()
        .cycle()
        .take(rows)
        .enumerate()
        .map(|(index, (name, description, tenths, unit, price))| {
            let quantity = Decimal::new(tenths * sign, 1);
            let unit_price = if *unit == "km" { Decimal::new(2_325, 4) } else { cents(*price) };
            Row {
                name: (*name).to_owned(),
                description: (*description).to_owned(),
                quantity,
                unit: (*unit).to_owned(),
                unit_price,
                vat_rate: Decimal::from(if index % 5 == 2 { 9 } else { 21 }),
                category: Category::S,
                total_excl: (quantity * unit_price).round_dp(2),
            }
        })
        .collect();
    let mut printed = PrintedDocument {
        kind,
        language,
        draft: false,
        number: match kind {
            Kind::Invoice => "2026-0042",
            Kind::Credit => "C2026-0007",
            Kind::Quote => "OF2026-0113",
            Kind::Workorder => "WB2026-0256",
        }
        .to_owned(),
        title: match language {
            Language::Nl => "Webwinkel voor Bloemenhuis De Korenbloem",
            Language::En => "Web shop for Bloemenhuis De Korenbloem",
        }
        .to_owned(),
        reference: "PO-88120".to_owned(),
        date: day(2026, 11, 15),
        due_date: day(2026, 11, 29),
        currency: "EUR".to_owned(),
        seller: seller(),
        buyer: buyer(),
        bank: Bank {
            iban: "NL91ABNA0417164300".to_owned(),
            bic: "ABNANL2A".to_owned(),
            holder: String::new(),
        },
        rows,
        vat: Vec::new(),
        total_excl: Decimal::ZERO,
        total_vat: Decimal::ZERO,
        total_incl: Decimal::ZERO,
        credits: (kind == Kind::Credit)
            .then(|| Original { number: "2026-0039".to_owned(), date: day(2026, 10, 30) }),
        prepaid: Decimal::ZERO,
        state: PrintedState::New,
        collection: None,
        look: Look { footer: String::new(), ..Look::default() },
    };
    add_up(&mut printed);
    printed
}

/// Fills VAT and totals from the rows.
pub(crate) fn add_up(printed: &mut PrintedDocument) {
    let mut vat: Vec<Vat> = Vec::new();
    for row in &printed.rows {
        match vat.iter_mut().find(|vat| vat.rate == row.vat_rate && vat.category == row.category) {
            Some(vat) => vat.taxable += row.total_excl,
            None => vat.push(Vat {
                rate: row.vat_rate,
                category: row.category,
                taxable: row.total_excl,
                vat: Decimal::ZERO,
            }),
        }
    }
    for line in &mut vat {
        line.vat = (line.taxable * line.rate / Decimal::ONE_HUNDRED).round_dp(2);
    }
    printed.total_excl = vat.iter().map(|vat| vat.taxable).sum();
    printed.total_vat = vat.iter().map(|vat| vat.vat).sum();
    printed.total_incl = printed.total_excl + printed.total_vat;
    printed.vat = vat;
}

fn seller() -> Party {
    Party {
        name: "Studio Noorderlicht B.V.".to_owned(),
        address: "Langestraat 112".to_owned(),
        zipcode: "3811 AK".to_owned(),
        city: "Amersfoort".to_owned(),
        country: "NL".to_owned(),
        email: "administratie@noorderlicht.example".to_owned(),
        phone: "033 123 45 67".to_owned(),
        website: "https://noorderlicht.example".to_owned(),
        registration_number: "12345678".to_owned(),
        vat_number: "NL001234567B01".to_owned(),
        ..Party::default()
    }
}

fn buyer() -> Party {
    Party {
        name: "Bloemenhuis De Korenbloem".to_owned(),
        contact: "mevrouw J. van den Berg".to_owned(),
        address: "Oosterstraat 34".to_owned(),
        zipcode: "9711 NW".to_owned(),
        city: "Groningen".to_owned(),
        country: "NL".to_owned(),
        debtor_number: "10234".to_owned(),
        ..Party::default()
    }
}

/// A small drawing with a name.
pub(crate) fn logo() -> Logo {
    let svg = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 80"><g fill="#0f766e"><circle cx="40" cy="40" r="34"/><path d="M100 60V20h12l20 26V20h12v40h-11l-21-27v27z"/><rect x="160" y="20" width="120" height="12" rx="3"/><rect x="160" y="48" width="80" height="12" rx="3" opacity=".5"/></g><circle cx="50" cy="34" r="26" fill="#fff"/></svg>"##;
    Logo { format: LogoFormat::Svg, bytes: svg.as_bytes().to_vec() }
}
