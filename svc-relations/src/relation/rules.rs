//! What makes a client or supplier valid. Pure: takes values and faults, knows neither tables nor calls.

use chassis::formats::{Form, country};
use chassis::mask::Named;
use proto::api::Fault;
use proto::relations::{ClientInput, RelationType};
use proto::{At, Faults};

use super::Role;
use super::fields;

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
        names.iter().any(|name| faults.cover(&self.at.name(name)))
    }
}

/// The names that a field mask may not have.
pub fn check_mask(setting: &Setting<'_>, faults: &mut Faults) {
    let is_field = |name: &str| fields::of(setting.role).any(|field| field.name == name);
    setting.named.check(is_field, setting.role.name(), faults);
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
    for (name, value, form) in formats(&mut given) {
        if setting.named.has(name) {
            form.check(value, &country, &setting.at.name(name), faults);
        }
    }
    let named = fields::of(setting.role).filter(|field| setting.named.has(field.name));
    named.filter(|field| field.transfer(&mut given, current)).map(|field| field.name).collect()
}

/// A company needs its name, a person one of two. Judged on the record as it will be, when the request touches it.
pub fn check_name(setting: &Setting<'_>, values: &ClientInput, faults: &mut Faults) {
    let touched = ["type", "company_name", "firstname", "lastname"];
    let role = setting.role.name();
    // The fields may come in an object named like the role; one that cannot be read may have had the names in it.
    if !touched.iter().any(|name| setting.named.has(name)) || setting.is_faulty(faults, &["type", role]) {
        return;
    }
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
        // The other values are judged as if none had been named.
        setting.country.clone_into(&mut given.country);
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
