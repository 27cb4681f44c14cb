//! Writes the page of a document in each state into a folder, to look at them: `cargo run --example document_pages -- folder`.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "for a person at a terminal")]

#[path = "../tests/support/mod.rs"]
mod samples;

use std::path::PathBuf;

use render::PrintedDocument;
use render::printed::{Category, Kind, Language, Logo, LogoFormat, Row};
use rust_decimal::Decimal;
use samples::{credit, day, invoice, row, total};
use svc_billing::page::{Pay, State, page};

const LOGO: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='220' height='56'>\
    <circle cx='28' cy='28' r='24' fill='#9a3412'/><circle cx='28' cy='28' r='11' fill='#fff'/>\
    <text x='66' y='37' font-family='sans-serif' font-weight='bold' font-size='26' fill='#431407'>Voorbeeld</text></svg>";

fn rows() -> Vec<Row> {
    let mut rows = vec![
        row("16", "95", "21", Category::S),
        row("500", "1.245", "9", Category::S),
        row("156", "0.23", "21", Category::S),
    ];
    let texts = [
        ("Ontwerp en advies", "Workshop en uitwerking van het handboek, met twee correctierondes.", "uur"),
        ("Drukwerk brochures", "", "stuks"),
        ("Reiskosten", "Amsterdam – Rotterdam en terug\n2 × 78 km", "km"),
    ];
    for (row, (name, description, unit)) in rows.iter_mut().zip(texts) {
        name.clone_into(&mut row.name);
        description.clone_into(&mut row.description);
        unit.clone_into(&mut row.unit);
    }
    rows
}

fn quote() -> PrintedDocument {
    let mut printed =
        PrintedDocument { kind: Kind::Quote, number: "QUO-2026-00001".to_owned(), ..invoice(rows()) };
    "Nieuwe huisstijl en website".clone_into(&mut printed.title);
    "#c2410c".clone_into(&mut printed.look.primary_color);
    "#fdba74".clone_into(&mut printed.look.secondary_color);
    "Samen maken we er iets moois van.".clone_into(&mut printed.look.footer);
    printed.look.logo = Some(Logo { format: LogoFormat::Svg, bytes: LOGO.as_bytes().to_vec() });
    printed
}

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("the name of a folder"));
    let printed = invoice(rows());
    let part = Decimal::from(500);
    let to_pay = |paid: Decimal, late| State::ToPay {
        open: printed.total_incl - paid,
        paid,
        credited: Decimal::ZERO,
        late,
        pay: Pay::default(),
    };
    let on = Some(day(2026, 11, 20));
    let draft = PrintedDocument { draft: true, number: "DRAFT-12".to_owned(), ..invoice(rows()) };
    let mut many = invoice((0..14).flat_map(|_| rows()).take(40).collect());
    many.language = Language::En;
    many.rows[3].category = Category::AE;
    many.rows[3].vat_rate = Decimal::ZERO;
    total(&mut many);
    let work =
        PrintedDocument { kind: Kind::Workorder, number: "WO-2026-00001".to_owned(), ..invoice(rows()) };
    let refund = State::ToRefund { open: part, paid: Decimal::ZERO };
    let open_many = State::ToPay {
        open: many.total_incl,
        paid: Decimal::ZERO,
        credited: Decimal::ZERO,
        late: false,
        pay: Pay::default(),
    };
    std::fs::create_dir_all(&folder).unwrap();
    for (name, printed, state) in [
        ("open", &printed, to_pay(Decimal::ZERO, false)),
        ("late", &printed, to_pay(part, true)),
        ("paid", &printed, State::Paid { on }),
        ("credited", &printed, State::Credited),
        ("draft", &draft, State::Draft),
        ("credit", &credit(rows()), State::Settled),
        ("refund", &credit(rows()), refund),
        ("quote", &quote(), State::Offered),
        ("accepted", &quote(), State::Accepted { on }),
        ("expired", &quote(), State::Expired),
        ("many", &many, open_many),
        ("work", &work, State::Informative),
    ] {
        let html = page(printed, &state, "/documents/sample").unwrap().html;
        std::fs::write(folder.join(format!("{name}.html")), html).unwrap();
    }
}
