//! What makes a client or supplier valid. Pure: takes values and faults, knows neither tables nor calls.

use proto::api::Fault;
use proto::relations::{ClientInput, RelationType};
use proto::{At, Faults};

use super::Role;
use super::fields::{self, Named};
use crate::checks::{bank, country, email, vat, website};

/// What the values of a request are judged by besides themselves.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    pub role: Role,
    pub named: Named<'a>,
    /// The account's country, for records that name none.
    pub country: &'a str,
    /// Where the values are in the request.
    pub at: &'a At<'a>,
}

impl Setting<'_> {
    fn is_faulty(&self, faults: &Faults, names: &[&str]) -> bool {
        names.iter().any(|name| {
            let pointer = self.at.name(name).pointer();
            faults.entries().iter().any(|entry| entry.pointer == pointer)
        })
    }
}

/// The names that a field mask may not have.
pub fn check_mask(setting: &Setting<'_>, faults: &mut Faults) {
    let Named::Only(paths) = setting.named else { return };
    for path in paths {
        if !fields::of(setting.role).any(|field| field.name == path) {
            let detail =
                format!("update_mask names `{path}`, which is no field of a {}", setting.role.name());
            faults.add(&At::ROOT.name("update_mask"), Fault::NotAllowed, detail);
        }
    }
}

/// Puts the named values of `given` into `current`, normalised and checked; returns the names of those that changed.
pub fn apply(
    setting: &Setting<'_>,
    mut given: ClientInput,
    current: &mut ClientInput,
    faults: &mut Faults,
) -> Vec<&'static str> {
    choose_type(setting, &mut given, faults);
    choose_country(setting, &mut given, faults);
    let country = if setting.named.has("country") { &given.country } else { &current.country }.clone();
    for (name, value, rule) in formats(&mut given) {
        if setting.named.has(name) && !value.is_empty() {
            match rule.normalise(value, &country) {
                Some(normal) => *value = normal,
                None => faults.add(&setting.at.name(name), rule.fault(), format!("{name} {}", rule.advice())),
            }
        }
    }
    let named = fields::of(setting.role).filter(|field| setting.named.has(field.name));
    named.filter(|field| field.transfer(&mut given, current)).map(|field| field.name).collect()
}

/// A company needs its name, a person one of two. Judged on the record as it will be, when the request touches it.
pub fn check_name(setting: &Setting<'_>, values: &ClientInput, faults: &mut Faults) {
    let touched = ["type", "company_name", "firstname", "lastname"];
    if !touched.iter().any(|name| setting.named.has(name)) || setting.is_faulty(faults, &["type"]) {
        return;
    }
    let role = setting.role.name();
    if values.r#type() == RelationType::Company {
        if values.company_name.is_empty() {
            let detail = format!("company_name is required: a {role} of type company needs one");
            faults.add(&setting.at.name("company_name"), Fault::Required, detail);
        }
    } else if values.firstname.is_empty() && values.lastname.is_empty() {
        // A name that is there but cannot be read is reported as that, not also as missing. Without a type, a
        // company_name that cannot be read would have made it a company.
        if !setting.is_faulty(faults, &["company_name", "firstname", "lastname"]) {
            let detail =
                format!("firstname or lastname is required: a {role} of type private needs one of them");
            faults.add(&setting.at.name("firstname"), Fault::Required, detail);
        }
    }
}

/// Without a type, a company_name decides. A mask that names the type must also say which.
fn choose_type(setting: &Setting<'_>, given: &mut ClientInput, faults: &mut Faults) {
    if given.r#type() != RelationType::Unspecified {
        return;
    }
    match setting.named {
        Named::All if given.company_name.is_empty() => given.set_type(RelationType::Private),
        Named::All => given.set_type(RelationType::Company),
        Named::Only(_) if setting.named.has("type") => {
            faults.add(&setting.at.name("type"), Fault::NotNullable, "type must be company or private");
        }
        Named::Only(_) => {}
    }
}

fn choose_country(setting: &Setting<'_>, given: &mut ClientInput, faults: &mut Faults) {
    if given.country.is_empty() {
        setting.country.clone_into(&mut given.country);
    } else if let Some(code) = country::normalise(&given.country) {
        given.country = code;
    } else if setting.named.has("country") {
        let detail = "country must be an ISO 3166 alpha-2 code, for example NL";
        faults.add(&setting.at.name("country"), Fault::BadCountry, detail);
    }
}

/// The values that must have a certain form when they are not empty.
fn formats(values: &mut ClientInput) -> [(&'static str, &mut String, Form); 7] {
    [
        ("email", &mut values.email, Form::Email),
        ("vat_number", &mut values.vat_number, Form::VatNumber),
        ("website", &mut values.website, Form::Website),
        ("iban", &mut values.iban, Form::Iban),
        ("bic", &mut values.bic, Form::Bic),
        ("email_invoices", &mut values.email_invoices, Form::Emails),
        ("email_reminders", &mut values.email_reminders, Form::Emails),
    ]
}

#[derive(Clone, Copy)]
enum Form {
    Email,
    Emails,
    VatNumber,
    Website,
    Iban,
    Bic,
}

impl Form {
    fn normalise(self, text: &str, country: &str) -> Option<String> {
        match self {
            Self::Email => email::normalise(text),
            Self::Emails => email::normalise_several(text),
            Self::VatNumber => vat::normalise(text, country),
            Self::Website => website::normalise(text),
            Self::Iban => bank::normalise_iban(text),
            Self::Bic => bank::normalise_bic(text),
        }
    }

    fn fault(self) -> Fault {
        match self {
            Self::Email | Self::Emails => Fault::BadEmail,
            Self::VatNumber => Fault::BadVatNumber,
            Self::Website => Fault::BadUrl,
            Self::Iban => Fault::BadIban,
            Self::Bic => Fault::BadBic,
        }
    }

    /// What to do, after the field's name.
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
        }
    }
}

/// What a search looks through, in lower case; the debtor number follows it in the table. Line breaks keep a search
/// from matching across two values.
pub fn search_text(values: &ClientInput) -> String {
    let ClientInput { company_name, firstname, lastname, email, city, .. } = values;
    let full_name = if firstname.is_empty() || lastname.is_empty() {
        format!("{firstname}{lastname}")
    } else {
        format!("{firstname} {lastname}")
    };
    format!("{company_name}\n{full_name}\n{email}\n{city}\n").to_lowercase()
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
