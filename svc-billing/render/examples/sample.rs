//! Renders sample documents into a folder, to look at them: `cargo run -p render --example sample -- <folder>`.
//! With `--time N` it renders N different invoices instead and says what they cost.

#[path = "../tests/samples/mod.rs"]
mod samples;

use std::error::Error;
use std::path::Path;

use render::PrintedDocument;
use render::pdf::{Attachment, render};
use render::printed::{Category, Collection, Kind, Language, PrintedState};
use rust_decimal::Decimal;
use samples::{add_up, logo, printed};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--time", count] => measure(count.parse()?),
        [folder] => write_samples(Path::new(folder)),
        _ => Err("give a folder, or --time and a number".into()),
    }
}

fn write_samples(folder: &Path) -> Outcome<()> {
    std::fs::create_dir_all(folder)?;
    for (name, printed) in samples() {
        let attachment = Attachment { name: "factur-x.xml", bytes: b"<Invoice/>" };
        let attachment = matches!(printed.kind, Kind::Invoice | Kind::Credit).then_some(&attachment);
        let before = cpu_millis()?;
        let pdf = render(&printed, attachment)?.pdf;
        println!("{name}: {} kB in {} ms", pdf.len() / 1000, cpu_millis()? - before);
        std::fs::write(folder.join(name).with_extension("pdf"), pdf)?;
    }
    Ok(())
}

fn samples() -> Vec<(&'static str, PrintedDocument)> {
    use Kind::{Credit, Invoice, Quote, Workorder};
    use Language::{En, Nl};
    let mut branded = printed(Invoice, Nl, 5);
    branded.look.logo = Some(logo());
    branded.look.primary_color = "#0f766e".into();
    branded.look.secondary_color = "#f59e0b".into();
    branded.look.footer = "Op al onze werkzaamheden zijn onze algemene voorwaarden van toepassing.".into();
    let mut pale = printed(Invoice, En, 12);
    pale.look.primary_color = "#ffe45c".into();
    let mut draft = printed(Invoice, Nl, 5);
    draft.draft = true;
    draft.number = String::new();
    let mut samples = vec![
        ("invoice-nl-5", printed(Invoice, Nl, 5)),
        ("invoice-nl-60", printed(Invoice, Nl, 60)),
        ("invoice-nl-branded", branded),
        ("invoice-en-pale", pale),
        ("invoice-en-abroad", abroad()),
        ("invoice-nl-draft", draft),
        ("invoice-nl-long", long()),
        ("credit-nl", printed(Credit, Nl, 3)),
        ("credit-en", printed(Credit, En, 3)),
        ("quote-nl", printed(Quote, Nl, 5)),
        ("quote-en", printed(Quote, En, 8)),
        ("workorder-nl", printed(Workorder, Nl, 4)),
        ("workorder-en", printed(Workorder, En, 4)),
    ];
    samples.extend(states());
    samples.extend(scripts());
    samples
}

/// An invoice in each state of payment, and an accepted quote.
fn states() -> Vec<(&'static str, PrintedDocument)> {
    let on = chrono::NaiveDate::from_ymd_opt(2026, 11, 20);
    let invoice = |state| PrintedDocument { state, ..printed(Kind::Invoice, Language::Nl, 3) };
    let open = Decimal::from(1000);
    let (paid, credited) = (Decimal::from(5000), Decimal::new(221_288, 2));
    let collection = on.map(|on| Collection { mandate: "mdt_8Qk3h".into(), on });
    vec![
        ("state-partly", invoice(PrintedState::ToPay { open, paid, credited })),
        ("state-paid", invoice(PrintedState::Paid { on })),
        ("state-credited", invoice(PrintedState::Credited)),
        ("state-collected", PrintedDocument { collection, ..invoice(PrintedState::New) }),
        ("state-refund", invoice(PrintedState::ToRefund { open, paid })),
        (
            "state-accepted",
            PrintedDocument { state: PrintedState::Accepted { on }, ..printed(Kind::Quote, Language::Nl, 3) },
        ),
    ]
}

/// Texts in scripts that need installed fonts.
fn scripts() -> Vec<(&'static str, PrintedDocument)> {
    let texts = [
        ("script-hebrew", "IL", "חברת הצפון בע״מ", "ייעוץ ועיצוב (שלב 2) – 12 שעות"),
        ("script-arabic", "AE", "مكتب الشمال للتصميم", "استشارة وتصميم موقع إلكتروني 2026"),
        ("script-japanese", "JP", "北極光デザイン株式会社", "ウェブサイトの設計と開発、写真撮影、保守"),
        ("script-chinese", "CN", "北极光设计有限公司", "网站设计与开发，产品摄影，服务器托管与维护"),
        ("script-thai", "TH", "บริษัท แสงเหนือ จำกัด", "ออกแบบและพัฒนาเว็บไซต์"),
        ("script-hindi", "IN", "उत्तरी प्रकाश स्टूडियो", "वेबसाइट डिज़ाइन और विकास"),
    ];
    texts
        .into_iter()
        .map(|(sample, country, name, row)| {
            let mut printed = printed(Kind::Invoice, Language::En, 3);
            printed.buyer.country = country.into();
            printed.buyer.name = name.into();
            printed.title = row.into();
            for of in &mut printed.rows {
                of.name = row.into();
                of.description = format!("{row} {row} {row}");
            }
            (sample, printed)
        })
        .collect()
}

fn abroad() -> PrintedDocument {
    let mut abroad = printed(Kind::Invoice, Language::En, 5);
    abroad.buyer.country = "DE".into();
    abroad.buyer.zipcode = "10115".into();
    abroad.buyer.city = "Berlin".into();
    abroad.buyer.vat_number = "DE123456789".into();
    for (index, row) in abroad.rows.iter_mut().enumerate() {
        row.vat_rate = Decimal::ZERO;
        row.category = if index == 2 { Category::K } else { Category::AE };
    }
    add_up(&mut abroad);
    abroad
}

/// Everything longer than usual.
fn long() -> PrintedDocument {
    let mut long = printed(Kind::Invoice, Language::Nl, 7);
    long.title = "Werkzaamheden volgens opdracht van 3 september 2026 ".repeat(4);
    long.buyer.name =
        "Coöperatieve Vereniging van Arbeidsongeschiktheidsverzekeraars in de Noordelijke Provinciën U.A."
            .into();
    long.seller.name =
        "Vennootschap onder firma Van der Meulen, Hoogeveen en Zonen Installatietechniek".into();
    long.reference = "Inkooporder 2026/Afdeling-Huisvesting/00098812 gebouw C".into();
    if let Some(row) = long.rows.get_mut(1) {
        row.name = "W".repeat(255);
        row.description =
            "Eerste regel\n\n- punt een\n- punt twee\n#strong[geen opmaak] $x^2$ *ster* _streep_ \\ \"]"
                .into();
    }
    if let Some(row) = long.rows.get_mut(2) {
        row.quantity = Decimal::new(1_234_567_891, 3);
        row.unit_price = Decimal::new(98_765_432_101, 4);
        row.total_excl = (row.quantity * row.unit_price).round_dp(2);
        row.unit = "strekkende meters".into();
    }
    if let Some(row) = long.rows.get_mut(3) {
        row.description =
            "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor. ".repeat(6);
    }
    add_up(&mut long);
    long
}

/// Different each time, so that nothing is remembered from the one before.
fn variant(number: usize, rows: usize) -> PrintedDocument {
    let mut printed = printed(Kind::Invoice, Language::Nl, rows);
    printed.number = format!("2026-{number:06}");
    printed.title = format!("Opdracht {number}");
    printed.buyer.name = format!("Klant {number}");
    for (index, row) in printed.rows.iter_mut().enumerate() {
        row.name = format!("{} {number}.{index}", row.name);
        row.quantity += Decimal::from(number % 97);
        row.total_excl = (row.quantity * row.unit_price).round_dp(2);
    }
    add_up(&mut printed);
    printed
}

fn measure(count: usize) -> Outcome<()> {
    let before = cpu_millis()?;
    render(&variant(0, 5), None)?;
    println!("first of the process: {} ms cpu", cpu_millis()? - before);
    for rows in [5, 60] {
        let before = cpu_millis()?;
        for number in 1..=count {
            render(&variant(number, rows), None)?;
            if number.is_multiple_of((count / 5).max(1)) {
                println!("{rows} rows, {number} documents: {} MB resident", resident_megabytes()?);
            }
        }
        let spent = cpu_millis()? - before;
        println!("{rows} rows: {} µs cpu each", spent * 1000 / count.max(1) as u64);
    }
    Ok(())
}

/// Time of this process on the processor, all threads; Linux counts it in hundredths of a second.
fn cpu_millis() -> Outcome<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(')').ok_or("no name in stat")?.1;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(ticks * 10)
}

fn resident_megabytes() -> Outcome<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split_whitespace().nth(1).ok_or("no resident pages in statm")?.parse()?;
    Ok(pages * 4096 / 1_000_000)
}
