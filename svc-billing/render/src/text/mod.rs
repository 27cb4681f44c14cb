//! How amounts, dates and names read on a document in each language. Pages and PDF use the same, so that a reader
//! never sees one document in two ways of writing.

mod country;
mod sentences;
mod words;

use chrono::{Datelike, NaiveDate};
use rust_decimal::{Decimal, RoundingStrategy};

pub use country::country_name;
pub use words::Words;

use crate::paper::Language;

/// Keeps an amount and its currency on one line.
const NO_BREAK: char = '\u{a0}';

/// An amount with its currency: `€ 1.234,56` in Dutch, `€1,234.56` in English; other currencies by their code.
pub fn money(amount: Decimal, currency: &str, language: Language) -> String {
    with_currency(&self::amount(amount, language), currency, language)
}

/// The price of one unit with its currency; two decimals, up to four where the price has them.
pub fn unit_price(price: Decimal, currency: &str, language: Language) -> String {
    with_currency(&plain_price(price, language), currency, language)
}

/// An amount without its currency, as in a column of amounts.
pub fn amount(amount: Decimal, language: Language) -> String {
    number(amount, 2, 2, language)
}

/// The price of one unit without its currency, as in a column of prices.
pub fn plain_price(price: Decimal, language: Language) -> String {
    number(price, 2, 4, language)
}

/// A quantity with as many decimals as it has.
pub fn quantity(quantity: Decimal, language: Language) -> String {
    number(quantity, 0, Decimal::MAX_SCALE, language)
}

/// A rate such as `21%` or `5,5%`.
pub fn percent(rate: Decimal, language: Language) -> String {
    format!("{}%", number(rate, 0, 4, language))
}

/// A date in words: `15 november 2026`, `15 November 2026`.
pub fn date(date: NaiveDate, language: Language) -> String {
    const NL: [&str; 12] = [
        "januari",
        "februari",
        "maart",
        "april",
        "mei",
        "juni",
        "juli",
        "augustus",
        "september",
        "oktober",
        "november",
        "december",
    ];
    const EN: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let months = match language {
        Language::Nl => NL,
        Language::En => EN,
    };
    let month = months.get(date.month0() as usize).copied().unwrap_or_default();
    format!("{} {month} {}", date.day(), date.year())
}

/// An IBAN in groups of four, as banks print it.
pub fn iban(iban: &str) -> String {
    let compact: Vec<char> = iban.chars().filter(|c| !c.is_whitespace()).collect();
    compact.chunks(4).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
}

fn with_currency(digits: &str, currency: &str, language: Language) -> String {
    let (sign, unsigned) = match digits.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", digits),
    };
    let symbol = match currency {
        "EUR" => "€",
        other => other,
    };
    match language {
        // A Dutch reader looks for the sign at the digits, an English one before everything.
        Language::Nl => format!("{symbol}{NO_BREAK}{sign}{unsigned}"),
        Language::En if symbol == "€" => format!("{sign}{symbol}{unsigned}"),
        Language::En => format!("{sign}{symbol}{NO_BREAK}{unsigned}"),
    }
}

/// Digits in groups of three, with at least `min` and at most `max` decimals.
fn number(value: Decimal, min: u32, max: u32, language: Language) -> String {
    let (group, point) = match language {
        Language::Nl => ('.', ','),
        Language::En => (',', '.'),
    };
    let rounded = value.round_dp_with_strategy(max, RoundingStrategy::MidpointAwayFromZero).normalize();
    let digits = rounded.abs().to_string();
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));

    let mut text = String::with_capacity(digits.len() * 2);
    if rounded.is_sign_negative() && !rounded.is_zero() {
        text.push('-');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(group);
        }
        text.push(digit);
    }
    let decimals = fraction.len().max(min as usize);
    if decimals > 0 {
        text.push(point);
        text.push_str(fraction);
        text.extend(std::iter::repeat_n('0', decimals - fraction.len()));
    }
    text
}

#[cfg(test)]
mod tests;
