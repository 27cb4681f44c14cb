//! What a reader of the PDF gets, whatever is on the document.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod reader;
mod samples;

use proptest::prelude::*;
use reader::{pages, squeezed, text};
use render::PrintedDocument;
use render::pdf::{Attachment, render};
use render::printed::{Category, Collection, Kind, Language, Logo, LogoFormat, Original, PrintedState};
use rust_decimal::Decimal;
use samples::{add_up, logo, printed};

const KINDS: [Kind; 4] = [Kind::Invoice, Kind::Credit, Kind::Quote, Kind::Workorder];
const LANGUAGES: [Language; 2] = [Language::Nl, Language::En];

fn pdf(printed: &PrintedDocument) -> Vec<u8> {
    render(printed, None).unwrap().pdf
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
    let mut printed = printed(Kind::Invoice, Language::Nl, 3);
    printed.look.logo = Some(logo());
    let first = render(&printed, Some(&attachment)).unwrap().pdf;
    assert!(first == render(&printed, Some(&attachment)).unwrap().pdf);
    printed.title.push('!');
    assert!(first != render(&printed, Some(&attachment)).unwrap().pdf);
}

#[test]
fn an_invoice_shows_all_that_is_on_it() {
    let pdf = pdf(&printed(Kind::Invoice, Language::Nl, 5));
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
            let pdf = pdf(&printed(kind, language, 2));
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
        let mut printed = printed(kind, language, 1);
        printed.draft = true;
        assert_shows(&pdf(&printed), &[word]);
    }
}

#[test]
fn only_a_final_invoice_in_euros_can_be_paid_by_scanning() {
    let scan = "Scan with your banking app";
    let invoice = printed(Kind::Invoice, Language::En, 2);
    assert_shows(&pdf(&invoice), &[scan, "Please transfer"]);
    for kind in [Kind::Credit, Kind::Quote, Kind::Workorder] {
        assert_hides(&pdf(&printed(kind, Language::En, 2)), &[scan, "Please transfer"]);
    }
    let changes: [fn(&mut PrintedDocument); 4] = [
        |printed| printed.currency = "USD".to_owned(),
        |printed| printed.bank.iban = String::new(),
        |printed| printed.total_incl = Decimal::ZERO,
        |printed| printed.draft = true,
    ];
    for change in changes {
        let mut other = invoice.clone();
        change(&mut other);
        assert_hides(&pdf(&other), &[scan]);
    }
}

/// An invoice of these cents in Dutch, in a state.
fn in_state(cents: i64, state: PrintedState) -> PrintedDocument {
    let mut printed = printed(Kind::Invoice, Language::Nl, 1);
    printed.rows[0].quantity = Decimal::ONE;
    printed.rows[0].unit_price = Decimal::new(cents, 2);
    printed.rows[0].total_excl = Decimal::new(cents, 2);
    printed.rows[0].vat_rate = Decimal::ZERO;
    add_up(&mut printed);
    PrintedDocument { state, ..printed }
}

const SCAN: &str = "Scan met uw bank-app";

#[test]
fn an_invoice_asks_for_what_is_left_of_it() {
    let left =
        PrintedState::ToPay { open: Decimal::from(70), paid: Decimal::from(20), credited: Decimal::from(10) };
    let partly = pdf(&in_state(10_000, left));
    assert_shows(
        &partly,
        &["Totaal inclusief btw", "€ 100,00", "Al betaald", "€ -20,00", "Nog te betalen", "€ 70,00"],
    );
    assert_shows(&partly, &["Wij ontvingen al € 20,00.", "Wij verzoeken u € 70,00 uiterlijk", SCAN]);
    let deposit = pdf(&PrintedDocument { prepaid: Decimal::from(30), ..in_state(10_000, PrintedState::New) });
    assert_shows(&deposit, &["Wij verzoeken u € 70,00 uiterlijk", SCAN]);
}

#[test]
fn what_is_settled_is_told_and_nothing_is_asked() {
    let on = chrono::NaiveDate::from_ymd_opt(2026, 11, 20);
    for (state, said) in [
        (PrintedState::Paid { on }, "Betaald op 20 november 2026. Hartelijk dank!"),
        (PrintedState::Credited, "Deze factuur is gecrediteerd. U hoeft niets te betalen."),
    ] {
        let pdf = pdf(&in_state(10_000, state));
        assert_shows(&pdf, &[said, "Totaal inclusief btw"]);
        assert_hides(&pdf, &[SCAN, "Te betalen", "Ten name van", "Wij verzoeken u"]);
    }
    let mut quote = printed(Kind::Quote, Language::Nl, 1);
    quote.state = PrintedState::Accepted { on };
    let pdf = pdf(&quote);
    assert_shows(&pdf, &["Deze offerte is geaccepteerd op 20 november 2026."]);
    assert_hides(&pdf, &["Handtekening", "Gaat u akkoord?"]);
}

#[test]
fn an_invoice_of_less_than_nothing_tells_what_the_reader_gets() {
    let pdf = pdf(&in_state(-24_200, PrintedState::New));
    assert_shows(&pdf, &["€ -242,00", "U ontvangt", "u ontvangt € 242,00 van ons."]);
    assert_hides(&pdf, &[SCAN, "Te betalen", "Ten name van"]);
}

#[test]
fn what_is_collected_is_not_to_be_transferred() {
    let on = chrono::NaiveDate::from_ymd_opt(2026, 11, 16).unwrap();
    let collection = Some(Collection { mandate: "mdt_8Qk3h".to_owned(), on });
    let pdf = pdf(&PrintedDocument { collection, ..in_state(10_000, PrintedState::New) });
    let said = "Wij schrijven € 100,00 op of kort na 16 november 2026 automatisch van uw rekening af, met machtiging \
                mdt_8Qk3h. U hoeft niets te doen.";
    assert_shows(&pdf, &[said]);
    assert_hides(&pdf, &[SCAN, "Ten name van", "Wij verzoeken u"]);
}

#[test]
fn the_address_of_the_sender_is_never_cut() {
    let mut printed = printed(Kind::Invoice, Language::Nl, 1);
    printed.seller.name =
        "Internationale Vereniging voor de Bevordering van Ambachtelijk Brood en Banket B.V.".to_owned();
    printed.seller.address =
        "Burgemeester van der Werff-Wilhelminaboulevard 1234-bis, derde verdieping".to_owned();
    printed.seller.zipcode = "1234 AB".to_owned();
    printed.seller.city = "Sint Willebrord aan de Oude Rijn".to_owned();
    let whole =
        format!("{} · {} · 1234 AB  {}", printed.seller.name, printed.seller.address, printed.seller.city);
    assert_shows(&pdf(&printed), &[&whole]);
    printed.seller.name = "W".repeat(255);
    printed.seller.address = "M".repeat(255);
    let whole =
        format!("{} · {} · 1234 AB  {}", printed.seller.name, printed.seller.address, printed.seller.city);
    assert_shows(&pdf(&printed), &[&whole]);
}

#[test]
fn the_number_of_a_company_is_called_what_its_country_calls_it() {
    let mut printed = printed(Kind::Invoice, Language::Nl, 1);
    assert_shows(&pdf(&printed), &["KvK 12345678"]);
    printed.seller.country = "BE".to_owned();
    printed.seller.registration_number = "0123.456.789".to_owned();
    let pdf = pdf(&printed);
    assert_shows(&pdf, &["KBO/BCE 0123.456.789"]);
    assert_hides(&pdf, &["KvK"]);
}

#[test]
fn a_credit_names_the_invoice_that_it_takes_back() {
    let printed = printed(Kind::Credit, Language::En, 2);
    let Some(Original { number, .. }) = &printed.credits else { panic!("a credit has an original") };
    assert_shows(&pdf(&printed), &["Credit note", number, "30 October 2026", "-€8,212.88"]);
}

#[test]
fn quotes_and_work_orders_have_a_place_to_sign() {
    assert_shows(&pdf(&printed(Kind::Quote, Language::Nl, 2)), &["Geldig tot en met", "Handtekening"]);
    assert_shows(&pdf(&printed(Kind::Workorder, Language::En, 2)), &["Work order", "Signature"]);
    assert_hides(&pdf(&printed(Kind::Invoice, Language::Nl, 2)), &["Handtekening"]);
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
        let mut printed = printed(Kind::Invoice, language, cases.len());
        for (row, (category, ..)) in printed.rows.iter_mut().zip(cases) {
            row.category = category;
            row.vat_rate = Decimal::ZERO;
        }
        add_up(&mut printed);
        let expected = cases.map(|(_, nl, en)| if language == Language::Nl { nl } else { en });
        assert_shows(&pdf(&printed), &expected);
    }
}

#[test]
fn many_rows_go_over_pages_with_the_head_repeated_and_a_row_beside_the_totals() {
    for (rows, expected) in [(0, 1), (5, 1), (60, 3), (500, 20)] {
        let pdf = pdf(&printed(Kind::Invoice, Language::Nl, rows));
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
    let mut printed = printed(Kind::Invoice, Language::Nl, 2);
    printed.rows[1].description = format!("{}slotwoord", "woorden en regels\n".repeat(200));
    let pdf = pdf(&printed);
    assert!(pages(&pdf).len() >= 4);
    assert_shows(&pdf, &["slotwoord", "Te betalen"]);
}

#[test]
fn the_attachment_is_inside_byte_for_byte() {
    let bytes: Vec<u8> = b"<?xml version=\"1.0\"?><Invoice>\xc3\xa9</Invoice>".repeat(500);
    let attachment = Attachment { name: "factur-x.xml", bytes: &bytes };
    let pdf = render(&printed(Kind::Invoice, Language::Nl, 1), Some(&attachment)).unwrap().pdf;
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
        let pdf =
            render(&printed(Kind::Invoice, Language::Nl, 1), Some(&Attachment { name, bytes: b"<a/>" }))
                .unwrap()
                .pdf;
        assert!(reader::attachments(&pdf)[0].name.ends_with(expected), "{name}");
        assert!(!reader::attachments(&pdf)[0].name.contains(['/', '\\']), "{name}");
    }
}

#[test]
fn the_file_says_what_it_is() {
    for attachment in [None, Some(&Attachment { name: "a.xml", bytes: b"<a/>" })] {
        let pdf = render(&printed(Kind::Invoice, Language::En, 1), attachment).unwrap().pdf;
        let xmp = reader::xmp(&pdf);
        for part in [
            "<pdfaid:part>3</pdfaid:part>",
            "<pdfaid:conformance>B</pdfaid:conformance>",
            "<pdfuaid:part>1</pdfuaid:part>",
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
        let mut printed = printed(Kind::Invoice, Language::Nl, 1);
        printed.look.logo = Some(Logo { format, bytes });
        assert_shows(&pdf(&printed), &["Studio Noorderlicht B.V.", "Te betalen"]);
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
        let mut printed = printed(Kind::Quote, Language::En, 1);
        fill(&mut printed, text);
        assert_shows(&pdf(&printed), &[text]);
    }
}

#[test]
fn extreme_amounts_dates_and_colours_render() {
    let mut printed = printed(Kind::Invoice, Language::Nl, 2);
    for extreme in [Decimal::MAX, Decimal::MIN, Decimal::new(1, 28)] {
        printed.rows[0].quantity = extreme;
        printed.rows[0].unit_price = extreme;
        printed.rows[0].total_excl = extreme;
        printed.rows[0].vat_rate = extreme;
        printed.total_incl = extreme;
        printed.vat[0].taxable = extreme;
        printed.vat[0].rate = extreme;
        printed.date = if extreme > Decimal::ZERO { chrono::NaiveDate::MAX } else { chrono::NaiveDate::MIN };
        printed.due_date = printed.date;
        printed.look.primary_color = "#ffffff\"); panic(".to_owned();
        pdf(&printed);
    }
}

/// Puts a text wherever a document has one.
fn fill(printed: &mut PrintedDocument, text: &str) {
    let set = |target: &mut String| text.clone_into(target);
    for party in [&mut printed.seller, &mut printed.buyer] {
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
        &mut printed.number,
        &mut printed.title,
        &mut printed.reference,
        &mut printed.currency,
        &mut printed.bank.iban,
        &mut printed.bank.bic,
        &mut printed.bank.holder,
        &mut printed.look.footer,
        &mut printed.look.primary_color,
    ] {
        set(target);
    }
    for row in &mut printed.rows {
        for target in [&mut row.name, &mut row.description, &mut row.unit] {
            set(target);
        }
    }
    if let Some(original) = &mut printed.credits {
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
        let mut printed = printed(KINDS[kind], LANGUAGES[language], 2);
        fill(&mut printed, &text);
        let attachment = Attachment { name: &text, bytes: text.as_bytes() };
        prop_assert!(render(&printed, Some(&attachment)).is_ok());
    }

    #[test]
    fn every_text_of_known_letters_is_shown_literally(text in "[ -~À-ÿĀ-žΑ-ΡΣ-ωА-я€]{1,40}") {
        let mut printed = printed(Kind::Invoice, Language::Nl, 1);
        printed.rows[0].name.clone_from(&text);
        let shown = reader::text(&pdf(&printed));
        prop_assert!(shown.contains(&squeezed(&text)), "{} is not in {}", text, shown);
    }
}
