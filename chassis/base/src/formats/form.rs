//! The format that the text of a field must have, with its fault and the advice for the caller.

use proto::api::Fault;
use proto::{At, Faults};

use super::{bank, country, email, vat, website};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Email,
    /// Comma-separated addresses.
    Emails,
    VatNumber,
    Website,
    Iban,
    Bic,
    Country,
}

impl Form {
    /// Normalises a text that is not empty, or adds a fault. `country` is the country of the record's subject.
    pub fn check(self, value: &mut String, country: &str, at: &At<'_>, faults: &mut Faults) {
        if value.is_empty() {
            return;
        }
        match self.normalise(value, country) {
            Some(normal) => *value = normal,
            None => faults.add(at, self.fault(), format!("{} {}", at.label(), self.advice())),
        }
    }

    fn normalise(self, text: &str, country: &str) -> Option<String> {
        match self {
            Self::Email => email::normalise(text),
            Self::Emails => email::normalise_several(text),
            Self::VatNumber => vat::normalise(text, country),
            Self::Website => website::normalise(text),
            Self::Iban => bank::normalise_iban(text),
            Self::Bic => bank::normalise_bic(text),
            Self::Country => country::normalise(text),
        }
    }

    fn fault(self) -> Fault {
        match self {
            Self::Email | Self::Emails => Fault::BadEmail,
            Self::VatNumber => Fault::BadVatNumber,
            Self::Website => Fault::BadUrl,
            Self::Iban => Fault::BadIban,
            Self::Bic => Fault::BadBic,
            Self::Country => Fault::BadCountry,
        }
    }

    /// The advice to the caller, which follows the name of the field.
    fn advice(self) -> &'static str {
        match self {
            Self::Email => "must be an e-mail address, for example sanne@korenbloem.example",
            Self::Emails => "must be e-mail addresses, separated by commas",
            Self::VatNumber => {
                "must be a VAT number with its country prefix in the format of that country, for example NL123456789B01"
            }
            Self::Website => "must be an http or https address, for example https://korenbloem.example",
            Self::Iban => "must be an IBAN; its length or its check digits are wrong",
            Self::Bic => "must be a BIC of 8 or 11 characters, for example ABNANL2A",
            Self::Country => "must be an ISO 3166 alpha-2 code, for example NL",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gets_its_normal_form_or_a_fault_and_an_empty_one_neither() {
        let mut faults = Faults::default();
        let at = At::ROOT.name("iban");
        for (given, expected) in [("", ""), ("nl91 abna 0417 1643 00", "NL91ABNA0417164300"), ("NL1", "NL1")]
        {
            let mut value = given.to_owned();
            Form::Iban.check(&mut value, "NL", &at, &mut faults);
            assert_eq!(value, expected);
        }
        let found: Vec<_> =
            faults.entries().iter().map(|entry| (entry.pointer.as_str(), entry.code())).collect();
        assert_eq!(found, [("/iban", Fault::BadIban)]);
    }
}
