use render::printed::Category;

use super::*;

fn rates() -> Vec<SalesRate> {
    let rate = |code: &str, amount: &str, category, is_default| SalesRate {
        code: code.to_owned(),
        amount: amount.parse().unwrap(),
        category,
        is_default,
    };
    vec![
        rate("HIGH", "21.0", Category::S, true),
        rate("LOW", "9", Category::S, false),
        rate("ZERO", "0", Category::Z, false),
        rate("REVERSE", "0", Category::AE, false),
    ]
}

fn row_of(name: &str, quantity: &str, unit_price: &str) -> DocumentRowInput {
    DocumentRowInput {
        name: name.to_owned(),
        quantity: quantity.to_owned(),
        unit_price: unit_price.to_owned(),
        ..DocumentRowInput::default()
    }
}

fn of_rows(rows: Vec<DocumentRowInput>) -> DocumentInput {
    DocumentInput { title: "Bread".to_owned(), rows, ..DocumentInput::default() }
}

/// What a request means; it must have no fault.
fn read(given: &DocumentInput) -> Content {
    let mut faults = Faults::default();
    let outcome = content(given, &rates(), &At::ROOT, &mut faults);
    assert!(faults.is_empty(), "{:?}", faults.entries());
    outcome
}

/// Where a request is wrong, and how.
fn refused(given: &DocumentInput) -> Vec<(String, Fault, String)> {
    let mut faults = Faults::default();
    content(given, &rates(), &At::ROOT, &mut faults);
    let entries = faults.entries();
    entries.iter().map(|entry| (entry.pointer.clone(), entry.code(), entry.detail.clone())).collect()
}

fn places(given: &DocumentInput) -> Vec<(String, Fault)> {
    refused(given).into_iter().map(|(place, fault, _)| (place, fault)).collect()
}

fn at(pointer: &str, fault: Fault) -> (String, Fault) {
    (pointer.to_owned(), fault)
}

/// Excluding VAT, VAT, and including it.
fn sums(amounts: &Amounts) -> [String; 3] {
    [amounts.excl, amounts.vat, amounts.incl].map(|amount| amount.to_string())
}

#[test]
fn a_row_shows_its_name_or_else_its_title() {
    let row = |name: &str, title: &str| DocumentRowInput {
        name: name.to_owned(),
        title: title.to_owned(),
        ..DocumentRowInput::default()
    };
    let Content { rows, .. } =
        read(&of_rows(vec![row("Rye", ""), row("", "Spelt"), row("Rye", "Baked on stone")]));
    let shown: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.description.as_str())).collect();
    assert_eq!(shown, [("Rye", ""), ("Spelt", ""), ("Rye", "Baked on stone")]);
    let nameless = of_rows(vec![row("Rye", ""), row("", "")]);
    assert_eq!(places(&nameless), [at("/rows/1/name", Fault::Required)]);
}

#[test]
fn a_row_is_one_piece_for_nothing_unless_it_says_more() {
    let Content { rows, amounts } = read(&of_rows(vec![row_of("Rye", "", "")]));
    assert_eq!((rows[0].quantity, rows[0].unit_price), (Decimal::ONE, Decimal::ZERO));
    assert_eq!(sums(&amounts), ["0.00", "0.00", "0.00"]);
    let Content { amounts, .. } =
        read(&of_rows(vec![row_of("Refund", "-2", "10"), row_of("Discount", "1", "-0.005")]));
    assert_eq!(sums(&amounts), ["-20.01", "-4.20", "-24.21"], "halves are rounded away from zero");
}

#[test]
fn numbers_are_kept_without_padding() {
    let Content { rows, .. } = read(&of_rows(vec![row_of("Rye", "2.50", "4.00")]));
    assert_eq!((rows[0].quantity.to_string(), rows[0].unit_price.to_string()), ("2.5".into(), "4".into()));
    let Content { rows, .. } = read(&of_rows(vec![row_of("Rye", "-0", "-0.00")]));
    assert_eq!((rows[0].quantity.to_string(), rows[0].unit_price.to_string()), ("0".into(), "0".into()));
}

#[test]
fn the_code_wins_over_the_rate_and_the_rate_over_the_default() {
    let row = |code: &str, rate: &str| DocumentRowInput {
        vat_code: code.to_owned(),
        vat_rate: rate.to_owned(),
        ..row_of("Rye", "1", "100")
    };
    let known = |code: &str, rate: &str| {
        let Content { rows, .. } = read(&of_rows(vec![row(code, rate)]));
        (rows[0].vat_rate.to_string(), rows[0].vat_code.clone(), rows[0].category)
    };
    let meant = |rate: &str, code: &str, category| (rate.to_owned(), code.to_owned(), category);
    assert_eq!(known("REVERSE", "21"), meant("0", "REVERSE", Category::AE));
    assert_eq!(known("", "9.0"), meant("9", "LOW", Category::S));
    assert_eq!(known("", ""), meant("21", "HIGH", Category::S));
    assert_eq!(known("", "0"), meant("0", "ZERO", Category::Z), "0 means zero-rated");
    assert_eq!(known("", "19.5"), meant("19.5", "", Category::S), "a rate that the account does not have");
}

#[test]
fn an_unknown_code_is_refused_with_the_ones_there_are() {
    let row = DocumentRowInput { vat_code: "high".to_owned(), ..row_of("Rye", "1", "1") };
    let faults = refused(&of_rows(vec![row_of("Rye", "1", "1"), row]));
    let [(place, Fault::UnknownReference, detail)] = faults.as_slice() else { panic!("{faults:?}") };
    assert_eq!(place, "/rows/1/vat_code");
    for code in ["HIGH", "LOW", "ZERO", "REVERSE"] {
        assert!(detail.contains(code), "{detail}");
    }
}

#[test]
fn totals_that_agree_are_accepted_in_any_spelling() {
    let rows = || vec![row_of("Rye", "3", "1.15"), row_of("Spelt", "1", "0.10")];
    let given = DocumentInput {
        subtotal: "3.55".to_owned(),
        vat_rate: "21.00".to_owned(),
        vat_amount: "0.75".to_owned(),
        total_excl_vat: "3.550".to_owned(),
        total_incl_vat: "4.3".to_owned(),
        ..of_rows(rows())
    };
    assert_eq!(sums(&read(&given).amounts), ["3.55", "0.75", "4.30"]);
}

#[test]
fn totals_that_disagree_are_refused_and_both_are_shown() {
    let given = DocumentInput {
        subtotal: "10".to_owned(),
        vat_rate: "20".to_owned(),
        vat_amount: "2.11".to_owned(),
        total_excl_vat: "10.01".to_owned(),
        total_incl_vat: "12.2".to_owned(),
        ..of_rows(vec![row_of("Rye", "1", "10")])
    };
    let faults = refused(&given);
    let shown: Vec<_> = faults
        .iter()
        .map(|(place, fault, detail)| {
            assert_eq!(*fault, Fault::Conflicting);
            let (_, shown) = detail.split_once(" is ").unwrap();
            (place.as_str(), shown.split_once(';').unwrap().0)
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("/vat_rate", "20, but the rows come to 21"),
            ("/vat_amount", "2.11, but the rows come to 2.10"),
            ("/total_excl_vat", "10.01, but the rows come to 10.00"),
            ("/total_incl_vat", "12.2, but the rows come to 12.10"),
        ]
    );
}

#[test]
fn with_several_rates_the_documents_rate_is_blended() {
    let low = DocumentRowInput { vat_rate: "9".to_owned(), ..row_of("Rye", "1", "100") };
    let given = of_rows(vec![low, row_of("Oven", "1", "200")]);
    let Content { amounts, .. } = read(&given);
    assert_eq!(sums(&amounts), ["300.00", "51.00", "351.00"]);
    assert_eq!(amounts.rate.to_string(), "17");
    read(&DocumentInput { vat_rate: "17".to_owned(), ..given });
}

#[test]
fn totals_without_rows_make_one_row() {
    let only = |excl: &str, incl: &str, vat: &str, rate: &str| {
        let given = DocumentInput {
            total_excl_vat: excl.to_owned(),
            total_incl_vat: incl.to_owned(),
            vat_amount: vat.to_owned(),
            vat_rate: rate.to_owned(),
            ..of_rows(Vec::new())
        };
        let Content { rows, amounts } = read(&given);
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.name.as_str(), row.quantity), ("Bread", Decimal::ONE));
        (sums(&amounts), row.vat_rate.to_string())
    };
    let sums_of = |excl: &str, vat: &str, incl: &str| [excl, vat, incl].map(str::to_owned);
    assert_eq!(only("100", "", "", ""), (sums_of("100.00", "21.00", "121.00"), "21".to_owned()));
    assert_eq!(only("", "109", "", "9"), (sums_of("100.00", "9.00", "109.00"), "9".to_owned()));
    assert_eq!(only("", "121", "", ""), (sums_of("100.00", "21.00", "121.00"), "21".to_owned()));
    assert_eq!(only("", "109", "9", ""), (sums_of("100.00", "9.00", "109.00"), "9".to_owned()));
    assert_eq!(only("100", "106", "", ""), (sums_of("100.00", "6.00", "106.00"), "6".to_owned()));
    assert_eq!(only("-50", "", "", "0"), (sums_of("-50.00", "0.00", "-50.00"), "0".to_owned()));
    let subtotal = DocumentInput { subtotal: "5".to_owned(), ..of_rows(Vec::new()) };
    assert_eq!(sums(&read(&subtotal).amounts), ["5.00", "1.05", "6.05"]);
}

#[test]
fn a_total_with_vat_is_exactly_what_was_sent() {
    // 82.64 with 21 % would be 99.99, and 82.65 would be 100.01.
    for (sent, rate, sums_of) in [
        ("100", "", ["82.64", "17.36", "100.00"]),
        ("10.00", "21", ["8.26", "1.74", "10.00"]),
        ("10", "9", ["9.17", "0.83", "10.00"]),
        ("-10", "21", ["-8.26", "-1.74", "-10.00"]),
        ("0.01", "21", ["0.01", "0.00", "0.01"]),
    ] {
        let (total_incl_vat, vat_rate) = (sent.to_owned(), rate.to_owned());
        let given = DocumentInput { total_incl_vat, vat_rate, ..of_rows(Vec::new()) };
        assert_eq!(sums(&read(&given).amounts), sums_of.map(str::to_owned));
    }
}

#[test]
fn the_rate_of_totals_is_the_accounts_own_that_explains_them() {
    let rate_of = |excl: &str, vat: &str, sent: &str| {
        let given = DocumentInput {
            total_excl_vat: excl.to_owned(),
            vat_amount: vat.to_owned(),
            vat_rate: sent.to_owned(),
            ..of_rows(Vec::new())
        };
        let Content { rows, amounts } = read(&given);
        let row = &rows[0];
        assert_eq!(amounts.rate, row.vat_rate);
        (row.vat_rate.to_string(), row.vat_code.clone(), row.category)
    };
    let meant = |rate: &str, code: &str, category| (rate.to_owned(), code.to_owned(), category);
    assert_eq!(rate_of("17.17", "3.61", ""), meant("21", "HIGH", Category::S), "3.61 is 21.03 % of 17.17");
    assert_eq!(rate_of("82.64", "17.36", ""), meant("21", "HIGH", Category::S), "100.00 including it");
    assert_eq!(rate_of("1.11", "0.10", ""), meant("9", "LOW", Category::S));
    assert_eq!(rate_of("0.02", "0.00", ""), meant("21", "HIGH", Category::S), "the default first");
    assert_eq!(rate_of("0.02", "0.00", "9"), meant("9", "LOW", Category::S), "unless another was sent");
    assert_eq!(rate_of("50", "0", ""), meant("0", "ZERO", Category::Z), "reverse charge is never guessed");
    assert_eq!(rate_of("100", "15", ""), meant("15", "", Category::S), "blended");
    let blended = rate_of("100000", "15333.33", "15.33");
    assert_eq!(blended, meant("15.33", "", Category::S), "what an answer shows may be sent back");
    let wrong = DocumentInput {
        total_excl_vat: "100".to_owned(),
        vat_amount: "9".to_owned(),
        vat_rate: "21".to_owned(),
        ..of_rows(Vec::new())
    };
    assert_eq!(places(&wrong), [at("/vat_rate", Fault::Conflicting)]);
}

#[test]
fn totals_alone_that_contradict_each_other_are_refused() {
    let given = DocumentInput {
        total_excl_vat: "100".to_owned(),
        total_incl_vat: "300".to_owned(),
        ..of_rows(Vec::new())
    };
    assert_eq!(places(&given), [at("/total_incl_vat", Fault::Conflicting)], "no rate is 200 percent");
    let vat_alone = DocumentInput { vat_amount: "21".to_owned(), ..of_rows(Vec::new()) };
    assert_eq!(places(&vat_alone), [at("/vat_amount", Fault::Conflicting)]);
}

#[test]
fn no_rows_and_no_totals_are_no_row() {
    let Content { rows, amounts } = read(&of_rows(Vec::new()));
    assert_eq!((rows.len(), sums(&amounts)), (0, ["0.00", "0.00", "0.00"].map(str::to_owned)));
    let Content { rows, .. } = read(&DocumentInput { vat_rate: "0".to_owned(), ..of_rows(Vec::new()) });
    assert_eq!(rows.len(), 0, "a rate alone is no total");
}

#[test]
fn amounts_stay_below_a_million_millions() {
    let most = "999999999999";
    let fits = DocumentRowInput { vat_rate: "0".to_owned(), ..row_of("Rye", "1", most) };
    read(&of_rows(vec![fits.clone()]));
    let with_vat = of_rows(vec![row_of("Rye", "1", most)]);
    assert_eq!(places(&with_vat), [at("/rows/0/unit_price", Fault::OutOfRange)]);
    let product = of_rows(vec![row_of("Rye", most, most)]);
    assert_eq!(places(&product), [at("/rows/0/unit_price", Fault::OutOfRange)]);
    let negative = of_rows(vec![row_of("Rye", most, "-2")]);
    assert_eq!(places(&negative), [at("/rows/0/unit_price", Fault::OutOfRange)]);
    let together = of_rows(vec![fits.clone(), fits]);
    assert_eq!(places(&together), [at("/rows", Fault::OutOfRange)]);
}

#[test]
fn every_faulty_row_is_told() {
    let bad_code = DocumentRowInput { vat_code: "x".to_owned(), ..row_of("", "1", "1") };
    let given = DocumentInput {
        total_incl_vat: "7".to_owned(),
        ..of_rows(vec![row_of("", "1", "1"), row_of("Rye", "1", "1"), bad_code])
    };
    let expected = [
        at("/rows/0/name", Fault::Required),
        at("/rows/2/name", Fault::Required),
        at("/rows/2/vat_code", Fault::UnknownReference),
    ];
    assert_eq!(places(&given), expected, "and totals are compared only when the rows are right");
}
