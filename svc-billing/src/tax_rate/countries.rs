//! The built-in VAT rates of each country, which a new account of that country starts with. A table of its own, so not in
//! `rules.rs`.

use proto::billing::{TaxRateContext, TaxRateType};
use render::printed::Language;
use rust_decimal::Decimal;

use super::Rate;
use crate::language;

/// The VAT rates of a country, in tenths of a percent.
struct Country {
    code: &'static str,
    is_in_eu: bool,
    standard: i64,
    /// In falling order.
    reduced: &'static [i64],
}

const fn country(code: &'static str, is_in_eu: bool, standard: i64, reduced: &'static [i64]) -> Country {
    Country { code, is_in_eu, standard, reduced }
}

/// As of the end of 2026, ordered by code. Rates of single regions are left out.
static COUNTRIES: [Country; 30] = [
    country("AT", true, 200, &[130, 100]),
    country("BE", true, 210, &[120, 60]),
    country("BG", true, 200, &[90]),
    country("CH", false, 81, &[38, 26]),
    country("CY", true, 190, &[90, 50, 30]),
    country("CZ", true, 210, &[120]),
    country("DE", true, 190, &[70]),
    country("DK", true, 250, &[]),
    country("EE", true, 240, &[130, 90]),
    country("ES", true, 210, &[100, 40]),
    country("FI", true, 255, &[135, 100]),
    country("FR", true, 200, &[100, 55, 21]),
    country("GB", false, 200, &[50]),
    country("GR", true, 240, &[130, 60]),
    country("HR", true, 250, &[130, 50]),
    country("HU", true, 270, &[180, 50]),
    country("IE", true, 230, &[135, 90, 48]),
    country("IT", true, 220, &[100, 50, 40]),
    country("LT", true, 210, &[120, 50]),
    country("LU", true, 170, &[140, 80, 30]),
    country("LV", true, 210, &[120, 50]),
    country("MT", true, 180, &[120, 70, 50]),
    country("NL", true, 210, &[90]),
    country("NO", false, 250, &[150, 120]),
    country("PL", true, 230, &[80, 50]),
    country("PT", true, 230, &[130, 60]),
    country("RO", true, 210, &[110]),
    country("SE", true, 250, &[120, 60]),
    country("SI", true, 220, &[95, 50]),
    country("SK", true, 230, &[190, 50]),
];

const ZERO_CODE: &str = "VAT0";

/// The code of the rate that rows have unless they name another.
///
/// A country without VAT, such as the US, or one that is not in the table has no standard rate. Its default is the rate of
/// 0 percent, and the account adds the rates it needs.
pub(crate) fn standard_code(country: &str) -> String {
    find(country).map_or_else(|| ZERO_CODE.to_owned(), |entry| code_of(percent(entry.standard)))
}

/// The rates of a country, for sales and for purchases.
pub(crate) fn rates_of(country: &str) -> Vec<Rate> {
    let contexts = [TaxRateContext::Sales, TaxRateContext::Purchase];
    contexts.into_iter().flat_map(|context| rates_in(country, context)).collect()
}

/// The rates of a country for sales.
pub(crate) fn sales_rates_of(country: &str) -> Vec<Rate> {
    rates_in(country, TaxRateContext::Sales)
}

fn rates_in(country: &str, context: TaxRateContext) -> Vec<Rate> {
    use TaxRateType::{Exempt, Export, IntraCommunity, Reduced, ReverseCharge, Standard, Zero};
    let language = language::of_country(country);
    let vat = match language {
        Language::Nl => "btw",
        Language::En => "VAT",
    };
    let rate = |code: String, label: String, kind, amount| Rate { code, label, kind, context, amount };
    let with_amount = |kind, amount: Decimal| rate(code_of(amount), format!("{amount}% {vat}"), kind, amount);
    let special = |code: &str, kind| {
        rate(code.to_owned(), label_of(kind, context, language).to_owned(), kind, Decimal::ZERO)
    };

    let entry = find(country);
    let mut rates = Vec::new();
    if let Some(entry) = entry {
        rates.push(with_amount(Standard, percent(entry.standard)));
        rates.extend(entry.reduced.iter().map(|amount| with_amount(Reduced, percent(*amount))));
    }
    rates.push(with_amount(Zero, Decimal::ZERO));
    rates.push(special("EXEMPT", Exempt));
    rates.push(special("REVERSE", ReverseCharge));
    if entry.is_some_and(|entry| entry.is_in_eu) {
        rates.push(special("ICP", IntraCommunity));
    }
    rates.push(special("EXPORT", Export));
    rates
}

fn find(country: &str) -> Option<&'static Country> {
    COUNTRIES.iter().find(|entry| entry.code == country)
}

fn percent(tenths: i64) -> Decimal {
    Decimal::new(tenths, 1).normalize()
}

fn code_of(amount: Decimal) -> String {
    format!("VAT{amount}")
}

fn label_of(kind: TaxRateType, context: TaxRateContext, language: Language) -> &'static str {
    let sales = context == TaxRateContext::Sales;
    match (kind, language) {
        (TaxRateType::Exempt, Language::Nl) => "Vrijgesteld van btw",
        (TaxRateType::Exempt, Language::En) => "Exempt from VAT",
        (TaxRateType::ReverseCharge, Language::Nl) => "Btw verlegd",
        (TaxRateType::ReverseCharge, Language::En) => "VAT reverse charged",
        (TaxRateType::IntraCommunity, Language::Nl) if sales => "Intracommunautaire levering",
        (TaxRateType::IntraCommunity, Language::Nl) => "Intracommunautaire verwerving",
        (TaxRateType::IntraCommunity, Language::En) if sales => "Intra-community supply",
        (TaxRateType::IntraCommunity, Language::En) => "Intra-community acquisition",
        (TaxRateType::Export, _) if sales => "Export",
        (TaxRateType::Export, Language::Nl) => "Invoer",
        (TaxRateType::Export, Language::En) => "Import",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_every_reduced_rate_is_below_the_standard() {
        assert!(COUNTRIES.windows(2).all(|pair| pair[0].code < pair[1].code));
        assert_eq!(COUNTRIES.iter().filter(|entry| entry.is_in_eu).count(), 27, "the countries of the EU");
        for entry in &COUNTRIES {
            let falling = std::iter::once(&entry.standard).chain(entry.reduced).collect::<Vec<_>>();
            assert!(falling.windows(2).all(|pair| pair[0] > pair[1]), "{}", entry.code);
        }
    }

    #[test]
    fn the_standard_code_is_a_rate_for_sales_and_no_code_comes_twice() {
        for country in COUNTRIES.iter().map(|entry| entry.code).chain(["US", "BR", ""]) {
            for context in [TaxRateContext::Sales, TaxRateContext::Purchase] {
                let mut codes: Vec<String> =
                    rates_in(country, context).into_iter().map(|rate| rate.code).collect();
                assert!(codes.contains(&standard_code(country)), "{country}");
                let all = codes.len();
                codes.sort();
                codes.dedup();
                assert_eq!(codes.len(), all, "{country}");
            }
        }
    }

    #[test]
    fn only_rates_that_count_have_an_amount_and_every_rate_has_a_label() {
        for rate in rates_of("FI").into_iter().chain(rates_of("US")).chain(rates_of("NL")) {
            let counts = matches!(rate.kind, TaxRateType::Standard | TaxRateType::Reduced);
            assert_eq!(counts, !rate.amount.is_zero(), "{}", rate.code);
            assert!(!rate.label.is_empty(), "{}", rate.code);
        }
        assert_eq!(standard_code("FI"), "VAT25.5");
        assert_eq!(standard_code("CH"), "VAT8.1");
    }
}
