//! What a reader of the PDF gets, whatever is on the document.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod papers;
mod reader;

use papers::{add_up, logo, paper};
use proptest::prelude::*;
use reader::{pages, squeezed, text};
use render::Paper;
use render::paper::{Category, Collection, Kind, Language, Logo, LogoFormat, Original, Settlement};
use render::pdf::{Attachment, render};
use rust_decimal::Decimal;

const KINDS: [Kind; 4] = [Kind::Invoice, Kind::Credit, Kind::Quote, Kind::Workorder];
const LANGUAGES: [Language; 2] = [Language::Nl, Language::En];

fn pdf(paper: &Paper) -> Vec<u8> {
    render(paper, None).unwrap()
}

#[track_caller]
fn assert_shows(pdf: &[u8], expected: &[&str]) {
    let text = text(pdf);
    for part in expected {
        assert!(text.contains(&squeezed(part)), "{part:?} is not in {text}");
    }
}

#[track_caller]
fn assert_hides(pdf: &[u8], unexpected: &[&str]) {
    let text = text(pdf);
    for part in unexpected {
        assert!(!text.contains(&squeezed(part)), "{part:?} is in {text}");
    }
}

#[test]
fn the_same_document_gives_the_same_bytes() {
    let attachment = Attachment { name: "factur-x.xml", bytes: b"<Invoice/>" };
    let mut paper = paper(Kind::Invoice, Language::Nl, 3);
    paper.look.logo = Some(logo());
    let first = render(&paper, Some(&attachment)).unwrap();
    assert!(first == render(&paper, Some(&attachment)).unwrap());
    paper.title.push('!');
    assert!(first != render(&paper, Some(&attachment)).unwrap());
}

#[test]
fn an_invoice_shows_all_that_is_on_it() {
    let pdf = pdf(&paper(Kind::Invoice, Language::Nl, 5));
    assert_shows(
        &pdf,
        &[
            "Factuur",
            "Webwinkel voor Bloemenhuis De Korenbloem",
            "2026-0042",
            "15 november 2026",
            "29 november 2026",
            "PO-88120",
            "10234",
            "T.a.v. mevrouw J. van den Berg",
            "9711 NW Groningen",
            "Studio Noorderlicht B.V.",
            "KvK 12345678",
            "NL001234567B01",
            "NL91 ABNA 0417 1643 00",
            "Reiskosten",
            "0,2325",
            "Btw 21% over € 7.473,39",
            "Btw 9% over € 444,00",
            "€ 9.526,76",
            "Scan met uw bank-app",
            "Pagina 1 van 1",
        ],
    );
}

#[test]
fn every_kind_renders_in_every_language() {
    for kind in KINDS {
        for language in LANGUAGES {
            let words = render::text::Words::of(kind, language);
            let pdf = pdf(&paper(kind, language, 2));
            assert_shows(&pdf, &[words.document, words.number, words.total, words.closing, words.amount]);
            assert_hides(&pdf, &[&words.draft.to_uppercase()]);
        }
    }
}

#[test]
fn a_draft_says_so() {
    for (kind, language, word) in
        [(Kind::Invoice, Language::Nl, "CONCEPT"), (Kind::Quote, Language::En, "DRAFT")]
    {
        let mut paper = paper(kind, language, 1);
        paper.draft = true;
        assert_shows(&pdf(&paper), &[word]);
    }
}

#[test]
fn only_a_final_invoice_in_euros_can_be_paid_by_scanning() {
    let scan = "Scan with your banking app";
    let invoice = paper(Kind::Invoice, Language::En, 2);
    assert_shows(&pdf(&invoice), &[scan, "Please transfer"]);
    for kind in [Kind::Credit, Kind::Quote, Kind::Workorder] {
        assert_hides(&pdf(&paper(kind, Language::En, 2)), &[scan, "Please transfer"]);
    }
    let changes: [fn(&mut Paper); 4] = [
        |paper| paper.currency = "USD".to_owned(),
        |paper| paper.bank.iban = String::new(),
        |paper| paper.total_incl = Decimal::ZERO,
        |paper| paper.draft = true,
    ];
    for change in changes {
        let mut other = invoice.clone();
        change(&mut other);
        assert_hides(&pdf(&other), &[scan]);
    }
}

/// An invoice of these cents in Dutch, and where it stands.
fn standing(cents: i64, settlement: Settlement) -> Paper {
    let mut paper = paper(Kind::Invoice, Language::Nl, 1);
    paper.rows[0].quantity = Decimal::ONE;
    paper.rows[0].unit_price = Decimal::new(cents, 2);
    paper.rows[0].total_excl = Decimal::new(cents, 2);
    paper.rows[0].vat_rate = Decimal::ZERO;
    add_up(&mut paper);
    Paper { settlement, ..paper }
}

const SCAN: &str = "Scan met uw bank-app";

#[test]
fn an_invoice_asks_for_what_is_left_of_it() {
    let left =
        Settlement::ToPay { open: Decimal::from(70), paid: Decimal::from(20), credited: Decimal::from(10) };
    let partly = pdf(&standing(10_000, left));
    assert_shows(
        &partly,
        &["Totaal inclusief btw", "€ 100,00", "Al betaald", "€ -20,00", "Nog te betalen", "€ 70,00"],
    );
    assert_shows(&partly, &["Wij ontvingen al € 20,00.", "Wij verzoeken u € 70,00 uiterlijk", SCAN]);
    let deposit = pdf(&Paper { prepaid: Decimal::from(30), ..standing(10_000, Settlement::New) });
    assert_shows(&deposit, &["Wij verzoeken u € 70,00 uiterlijk", SCAN]);
}

#[test]
fn what_is_settled_is_told_and_nothing_is_asked() {
    let on = chrono::NaiveDate::from_ymd_opt(2026, 11, 20);
    for (settlement, said) in [
        (Settlement::Paid { on }, "Betaald op 20 november 2026. Hartelijk dank!"),
        (Settlement::Credited, "Deze factuur is gecrediteerd. U hoeft niets te betalen."),
    ] {
        let pdf = pdf(&standing(10_000, settlement));
        assert_shows(&pdf, &[said, "Totaal inclusief btw"]);
        assert_hides(&pdf, &[SCAN, "Te betalen", "Ten name van", "Wij verzoeken u"]);
    }
    let mut quote = paper(Kind::Quote, Language::Nl, 1);
    quote.settlement = Settlement::Accepted { on };
    let pdf = pdf(&quote);
    assert_shows(&pdf, &["Deze offerte is geaccepteerd op 20 november 2026."]);
    assert_hides(&pdf, &["Handtekening", "Gaat u akkoord?"]);
}

#[test]
fn an_invoice_of_less_than_nothing_tells_what_the_reader_gets() {
    let pdf = pdf(&standing(-24_200, Settlement::New));
    assert_shows(&pdf, &["€ -242,00", "U ontvangt", "u ontvangt € 242,00 van ons."]);
    assert_hides(&pdf, &[SCAN, "Te betalen", "Ten name van"]);
}

#[test]
fn what_is_collected_is_not_to_be_transferred() {
    let on = chrono::NaiveDate::from_ymd_opt(2026, 11, 16).unwrap();
    let collection = Some(Collection { mandate: "mdt_8Qk3h".to_owned(), on });
    let pdf = pdf(&Paper { collection, ..standing(10_000, Settlement::New) });
    let said = "Wij schrijven € 100,00 op of kort na 16 november 2026 automatisch van uw rekening af, met machtiging \
                mdt_8Qk3h. U hoeft niets te doen.";
    assert_shows(&pdf, &[said]);
    assert_hides(&pdf, &[SCAN, "Ten name van", "Wij verzoeken u"]);
}

#[test]
fn the_address_of_the_sender_is_never_cut() {
    let mut paper = paper(Kind::Invoice, Language::Nl, 1);
    paper.seller.name =
        "Internationale Vereniging voor de Bevordering van Ambachtelijk Brood en Banket B.V.".to_owned();
    paper.seller.address =
        "Burgemeester van der Werff-Wilhelminaboulevard 1234-bis, derde verdieping".to_owned();
    paper.seller.zipcode = "1234 AB".to_owned();
    paper.seller.city = "Sint Willebrord aan de Oude Rijn".to_owned();
    let whole = format!("{} · {} · 1234 AB  {}", paper.seller.name, paper.seller.address, paper.seller.city);
    assert_shows(&pdf(&paper), &[&whole]);
    paper.seller.name = "W".repeat(255);
    paper.seller.address = "M".repeat(255);
    let whole = format!("{} · {} · 1234 AB  {}", paper.seller.name, paper.seller.address, paper.seller.city);
    assert_shows(&pdf(&paper), &[&whole]);
}

#[test]
fn the_number_of_a_company_is_called_what_its_country_calls_it() {
    let mut paper = paper(Kind::Invoice, Language::Nl, 1);
    assert_shows(&pdf(&paper), &["KvK 12345678"]);
    paper.seller.country = "BE".to_owned();
    paper.seller.registration_number = "0123.456.789".to_owned();
    let pdf = pdf(&paper);
    assert_shows(&pdf, &["KBO/BCE 0123.456.789"]);
    assert_hides(&pdf, &["KvK"]);
}

#[test]
fn a_credit_names_the_invoice_that_it_takes_back() {
    let paper = paper(Kind::Credit, Language::En, 2);
    let Some(Original { number, .. }) = &paper.credits else { panic!("a credit has an original") };
    assert_shows(&pdf(&paper), &["Credit note", number, "30 October 2026", "-€8,212.88"]);
}

#[test]
fn quotes_and_work_orders_have_a_place_to_sign() {
    assert_shows(&pdf(&paper(Kind::Quote, Language::Nl, 2)), &["Geldig tot en met", "Handtekening"]);
    assert_shows(&pdf(&paper(Kind::Workorder, Language::En, 2)), &["Work order", "Signature"]);
    assert_hides(&pdf(&paper(Kind::Invoice, Language::Nl, 2)), &["Handtekening"]);
}

#[test]
fn the_law_is_quoted_for_what_is_not_taxed() {
    let cases = [
        (Category::AE, "de btw is verschuldigd door de afnemer", "Reverse charge"),
        (Category::K, "Intracommunautaire levering", "Article 138"),
        (Category::G, "artikel 146", "Export outside the European Union"),
        (Category::E, "vrijgesteld van btw", "exempt from VAT"),
        (Category::O, "buiten de heffing van btw", "outside the scope of VAT"),
    ];
    for language in LANGUAGES {
        let mut paper = paper(Kind::Invoice, language, cases.len());
        for (row, (category, ..)) in paper.rows.iter_mut().zip(cases) {
            row.category = category;
            row.vat_rate = Decimal::ZERO;
        }
        add_up(&mut paper);
        let expected = cases.map(|(_, nl, en)| if language == Language::Nl { nl } else { en });
        assert_shows(&pdf(&paper), &expected);
    }
}

#[test]
fn many_rows_go_over_pages_with_the_head_repeated_and_a_row_beside_the_totals() {
    for (rows, expected) in [(0, 1), (5, 1), (60, 3), (500, 20)] {
        let pdf = pdf(&paper(Kind::Invoice, Language::Nl, rows));
        let pages = pages(&pdf);
        assert_eq!(pages.len(), expected, "{rows} rows");
        for (index, page) in pages.iter().enumerate() {
            assert!(page.contains("Omschrijving"), "page {index} of {rows} rows has no head");
            assert!(page.contains(&squeezed(&format!("Pagina {} van {expected}", index + 1))), "{page}");
        }
        let last = pages.last().unwrap();
        assert!(last.contains("Tebetalen") && (rows == 0 || last.contains("Reiskosten")), "{last}");
    }
}

#[test]
fn a_row_longer_than_a_page_is_shown_to_its_end() {
    let mut paper = paper(Kind::Invoice, Language::Nl, 2);
    paper.rows[1].description = format!("{}slotwoord", "woorden en regels\n".repeat(200));
    let pdf = pdf(&paper);
    assert!(pages(&pdf).len() >= 4);
    assert_shows(&pdf, &["slotwoord", "Te betalen"]);
}

#[test]
fn the_attachment_is_inside_byte_for_byte() {
    let bytes: Vec<u8> = b"<?xml version=\"1.0\"?><Invoice>\xc3\xa9</Invoice>".repeat(500);
    let attachment = Attachment { name: "factur-x.xml", bytes: &bytes };
    let pdf = render(&paper(Kind::Invoice, Language::Nl, 1), Some(&attachment)).unwrap();
    let found = reader::attachments(&pdf);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name, "factur-x.xml");
    assert_eq!(found[0].relationship, "Alternative");
    assert_eq!(found[0].mime, "application/xml");
    assert!(found[0].bytes == bytes);
}

#[test]
fn the_name_of_an_attachment_cannot_be_a_path() {
    for (name, expected) in [("../../etc/x.xml", "etc-x.xml"), ("a\\b:c.xml", "a-b-c.xml"), ("", "document")]
    {
        let pdf = render(&paper(Kind::Invoice, Language::Nl, 1), Some(&Attachment { name, bytes: b"<a/>" }))
            .unwrap();
        assert!(reader::attachments(&pdf)[0].name.ends_with(expected), "{name}");
        assert!(!reader::attachments(&pdf)[0].name.contains(['/', '\\']), "{name}");
    }
}

#[test]
fn the_file_says_what_it_is() {
    for attachment in [None, Some(&Attachment { name: "a.xml", bytes: b"<a/>" })] {
        let pdf = render(&paper(Kind::Invoice, Language::En, 1), attachment).unwrap();
        let xmp = reader::xmp(&pdf);
        for part in [
            "<pdfaid:part>3</pdfaid:part>",
            "<pdfaid:conformance>B</pdfaid:conformance>",
            "Invoice 2026-0042",
            "Studio Noorderlicht B.V.",
            "<rdf:li>en</rdf:li>",
            "2026-11-15T00:00:00",
        ] {
            assert!(xmp.contains(part), "{part} is not in {xmp}");
        }
    }
}

#[test]
fn a_logo_that_cannot_be_drawn_is_left_out() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x10\0\0\0\x10\x08\x06\0\0\0broken".to_vec();
    let svg = |text: &str| text.as_bytes().to_vec();
    let logos = [
        (LogoFormat::Png, png.clone()),
        (LogoFormat::Jpeg, png),
        (LogoFormat::Png, Vec::new()),
        (LogoFormat::Svg, svg("<svg")),
        (LogoFormat::Svg, svg("")),
        (
            LogoFormat::Svg,
            svg(
                "<svg xmlns='http://www.w3.org/2000/svg'><image href='/etc/passwd' width='9' height='9'/></svg>",
            ),
        ),
        (
            LogoFormat::Svg,
            svg(
                "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><image href='data.json' width='9' height='9'/></svg>",
            ),
        ),
        (
            LogoFormat::Svg,
            svg(
                "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><text font-family='Noto Sans' y='9'>\u{5e9}</text></svg>",
            ),
        ),
        (LogoFormat::Svg, svg("<svg xmlns='http://www.w3.org/2000/svg' width='0' height='0'/>")),
        (
            LogoFormat::Svg,
            svg(
                "<svg xmlns='http://www.w3.org/2000/svg' width='1e30' height='1e-30'><rect width='1' height='1'/></svg>",
            ),
        ),
    ];
    for (format, bytes) in logos {
        let mut paper = paper(Kind::Invoice, Language::Nl, 1);
        paper.look.logo = Some(Logo { format, bytes });
        assert_shows(&pdf(&paper), &["Studio Noorderlicht B.V.", "Te betalen"]);
    }
}

#[test]
fn texts_that_look_like_markup_are_shown_as_they_are() {
    let hostile = [
        "#panic(1) #let x = 1",
        "$x^2$ *bold* _it_ `raw` <label> @ref",
        "\\u{41} \\ \" ] [ } { ) (",
        "= Heading - item + item / term: x // c /* c */",
        "json(\"data.json\") #eval(\"1+1\") #sys.version",
        "--- ... ~ ' \"quoted\" http://example.com/#a",
    ];
    for text in hostile {
        let mut paper = paper(Kind::Quote, Language::En, 1);
        fill(&mut paper, text);
        assert_shows(&pdf(&paper), &[text]);
    }
}

#[test]
fn extreme_amounts_dates_and_colours_render() {
    let mut paper = paper(Kind::Invoice, Language::Nl, 2);
    for extreme in [Decimal::MAX, Decimal::MIN, Decimal::new(1, 28)] {
        paper.rows[0].quantity = extreme;
        paper.rows[0].unit_price = extreme;
        paper.rows[0].total_excl = extreme;
        paper.rows[0].vat_rate = extreme;
        paper.total_incl = extreme;
        paper.vat[0].taxable = extreme;
        paper.vat[0].rate = extreme;
        paper.date = if extreme > Decimal::ZERO { chrono::NaiveDate::MAX } else { chrono::NaiveDate::MIN };
        paper.due_date = paper.date;
        paper.look.primary_color = "#ffffff\"); panic(".to_owned();
        pdf(&paper);
    }
}

/// Puts a text wherever a document has one.
fn fill(paper: &mut Paper, text: &str) {
    let set = |target: &mut String| text.clone_into(target);
    for party in [&mut paper.seller, &mut paper.buyer] {
        for target in [
            &mut party.name,
            &mut party.contact,
            &mut party.address,
            &mut party.zipcode,
            &mut party.city,
            &mut party.country,
            &mut party.email,
            &mut party.phone,
            &mut party.website,
            &mut party.registration_number,
            &mut party.vat_number,
            &mut party.debtor_number,
        ] {
            set(target);
        }
    }
    for target in [
        &mut paper.number,
        &mut paper.title,
        &mut paper.reference,
        &mut paper.currency,
        &mut paper.bank.iban,
        &mut paper.bank.bic,
        &mut paper.bank.holder,
        &mut paper.look.footer,
        &mut paper.look.primary_color,
    ] {
        set(target);
    }
    for row in &mut paper.rows {
        for target in [&mut row.name, &mut row.description, &mut row.unit] {
            set(target);
        }
    }
    if let Some(original) = &mut paper.credits {
        set(&mut original.number);
    }
}

/// Pieces that are hard to lay out, or that mean something to a layout language.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("#".to_owned()),
        Just("$".to_owned()),
        Just("\\".to_owned()),
        Just("\"".to_owned()),
        Just("]".to_owned()),
        Just("*_`<>@=-+/~".to_owned()),
        Just("\n".to_owned()),
        Just("\r\n\t".to_owned()),
        Just("🎉👩‍🚀".to_owned()),
        Just("שלום العربية".to_owned()),
        Just("漢字かな".to_owned()),
        Just("e\u{301}\u{323}".to_owned()),
        Just("\u{202e}\u{200d}\u{feff}\u{0}\u{7f}\u{ffff}".to_owned()),
        Just("W".repeat(255)),
        any::<char>().prop_map(String::from),
        "[a-zA-Z0-9 ]{0,20}",
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn no_text_keeps_a_document_from_being_rendered(text in hostile(), kind in 0..4_usize, language in 0..2_usize) {
        let mut paper = paper(KINDS[kind], LANGUAGES[language], 2);
        fill(&mut paper, &text);
        let attachment = Attachment { name: &text, bytes: text.as_bytes() };
        prop_assert!(render(&paper, Some(&attachment)).is_ok());
    }

    #[test]
    fn every_text_of_known_letters_is_shown_literally(text in "[ -~À-ÿĀ-žΑ-ΡΣ-ωА-я€]{1,40}") {
        let mut paper = paper(Kind::Invoice, Language::Nl, 1);
        paper.rows[0].name.clone_from(&text);
        let shown = reader::text(&render(&paper, None).unwrap());
        prop_assert!(shown.contains(&squeezed(&text)), "{} is not in {}", text, shown);
    }
}
