//! The VAT rates of each country, which a new account of that country starts with.

use proto::billing::{TaxRateContext, TaxRateType};
use rust_decimal::Decimal;

use super::Rate;

/// Country, whether it is in the EU, its standard rate in tenths of a percent, and its reduced ones.
type Entry = (&'static str, bool, i64, &'static [i64]);

/// As they are at the end of 2026. Rates for single regions are left out.
const COUNTRIES: [Entry; 30] = [
    ("AT", true, 200, &[130, 100]),
    ("BE", true, 210, &[120, 60]),
    ("BG", true, 200, &[90]),
    ("CH", false, 81, &[38, 26]),
    ("CY", true, 190, &[90, 50, 30]),
    ("CZ", true, 210, &[120]),
    ("DE", true, 190, &[70]),
    ("DK", true, 250, &[]),
    ("EE", true, 240, &[130, 90]),
    ("ES", true, 210, &[100, 40]),
    ("FI", true, 255, &[135, 100]),
    ("FR", true, 200, &[100, 55, 21]),
    ("GB", false, 200, &[50]),
    ("GR", true, 240, &[130, 60]),
    ("HR", true, 250, &[130, 50]),
    ("HU", true, 270, &[180, 50]),
    ("IE", true, 230, &[135, 90, 48]),
    ("IT", true, 220, &[100, 50, 40]),
    ("LT", true, 210, &[120, 50]),
    ("LU", true, 170, &[140, 80, 30]),
    ("LV", true, 210, &[120, 50]),
    ("MT", true, 180, &[120, 70, 50]),
    ("NL", true, 210, &[90]),
    ("NO", false, 250, &[150, 120]),
    ("PL", true, 230, &[80, 50]),
    ("PT", true, 230, &[130, 60]),
    ("RO", true, 210, &[110]),
    ("SE", true, 250, &[120, 60]),
    ("SI", true, 220, &[95, 50]),
    ("SK", true, 230, &[190, 50]),
];

const ZERO: &str = "VAT0";

/// Whether people there read Dutch.
pub fn is_dutch(country: &str) -> bool {
    matches!(country, "NL" | "BE")
}

/// The code of the rate that rows have unless they name another.
///
/// A country without VAT, such as the US, or one that is not in the table has no rate of its own: there it is the one of
/// 0 percent, and the account adds what it needs.
pub fn standard_code(country: &str) -> String {
    find(country).map_or_else(|| ZERO.to_owned(), |(_, _, standard, _)| code_of(percent(*standard)))
}

/// The rates of a country, for sales and for purchases.
pub fn rates_of(country: &str) -> Vec<Rate> {
    let contexts = [TaxRateContext::Sales, TaxRateContext::Purchase];
    contexts.into_iter().flat_map(|context| rates_in(country, context)).collect()
}

/// The rates of a country for sales.
pub fn sales_rates_of(country: &str) -> Vec<Rate> {
    rates_in(country, TaxRateContext::Sales)
}

fn rates_in(country: &str, context: TaxRateContext) -> Vec<Rate> {
    use TaxRateType::{Exempt, Export, IntraCommunity, Reduced, ReverseCharge, Standard, Zero};
    let dutch = is_dutch(country);
    let vat = if dutch { "btw" } else { "VAT" };
    let rate = |code: String, label: String, kind, amount| Rate { code, label, kind, context, amount };
    let counted = |kind, amount: Decimal| rate(code_of(amount), format!("{amount}% {vat}"), kind, amount);
    let special = |code: &str, kind| {
        rate(code.to_owned(), label_of(kind, context, dutch).to_owned(), kind, Decimal::ZERO)
    };

    let entry = find(country);
    let mut rates = Vec::new();
    if let Some((_, _, standard, reduced)) = entry {
        rates.push(counted(Standard, percent(*standard)));
        rates.extend(reduced.iter().map(|amount| counted(Reduced, percent(*amount))));
    }
    rates.push(counted(Zero, Decimal::ZERO));
    rates.push(special("EXEMPT", Exempt));
    rates.push(special("REVERSE", ReverseCharge));
    if entry.is_some_and(|(_, eu, _, _)| *eu) {
        rates.push(special("ICP", IntraCommunity));
    }
    rates.push(special("EXPORT", Export));
    rates
}

fn find(country: &str) -> Option<&'static Entry> {
    COUNTRIES.iter().find(|(code, ..)| *code == country)
}

fn percent(tenths: i64) -> Decimal {
    Decimal::new(tenths, 1).normalize()
}

fn code_of(amount: Decimal) -> String {
    format!("VAT{amount}")
}

fn label_of(kind: TaxRateType, context: TaxRateContext, dutch: bool) -> &'static str {
    let sales = context == TaxRateContext::Sales;
    match (kind, dutch) {
        (TaxRateType::Exempt, true) => "Vrijgesteld van btw",
        (TaxRateType::Exempt, false) => "Exempt from VAT",
        (TaxRateType::ReverseCharge, true) => "Btw verlegd",
        (TaxRateType::ReverseCharge, false) => "VAT reverse charged",
        (TaxRateType::IntraCommunity, true) if sales => "Intracommunautaire levering",
        (TaxRateType::IntraCommunity, true) => "Intracommunautaire verwerving",
        (TaxRateType::IntraCommunity, false) if sales => "Intra-community supply",
        (TaxRateType::IntraCommunity, false) => "Intra-community acquisition",
        (TaxRateType::Export, _) if sales => "Export",
        (TaxRateType::Export, true) => "Invoer",
        (TaxRateType::Export, false) => "Import",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_every_reduced_rate_is_below_the_standard() {
        assert!(COUNTRIES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(COUNTRIES.iter().filter(|(_, eu, ..)| *eu).count(), 27, "the countries of the EU");
        for (country, _, standard, reduced) in COUNTRIES {
            let falling = std::iter::once(&standard).chain(reduced).collect::<Vec<_>>();
            assert!(falling.windows(2).all(|pair| pair[0] > pair[1]), "{country}");
        }
    }

    #[test]
    fn the_standard_code_is_a_rate_for_sales_and_no_code_comes_twice() {
        for country in COUNTRIES.map(|(country, ..)| country).iter().chain(&["US", "BR", ""]) {
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
