//! The language that an account of a country starts with: of its documents, and of the labels of its tax rates and
//! payment terms.

use render::printed::Language;

/// Dutch in the Netherlands and Belgium, English elsewhere.
pub(crate) fn of_country(country: &str) -> Language {
    match country {
        "NL" | "BE" => Language::Nl,
        _ => Language::En,
    }
}
