//! What makes a client or supplier valid. Pure: uses neither tables nor calls.

use chassis_base::formats::{Form, country};
use chassis_base::update_mask::UpdateMask;
use proto::api::Fault;
use proto::relations::{ClientInput, RelationType};
use proto::{At, Faults};

use super::{Role, fields};

/// What the checks need besides the values of the request.
#[derive(Clone, Copy)]
pub(super) struct InputContext<'a> {
    pub role: Role,
    pub mask: UpdateMask<'a>,
    /// The account's country, for records that have none.
    pub default_country: &'a str,
    /// The position of the values in the request.
    pub at: &'a At<'a>,
}

impl InputContext<'_> {
    /// Whether one of these fields has a fault already.
    fn has_fault(&self, faults: &Faults, names: &[&str]) -> bool {
        names.iter().any(|name| faults.cover(&self.at.name(name)))
    }
}

/// Adds a fault for each name of the field mask that is not a field.
pub(super) fn check_mask(context: &InputContext<'_>, faults: &mut Faults) {
    let is_field = |name: &str| fields::of(context.role).any(|field| field.name == name);
    context.mask.check(is_field, context.role.name(), faults);
}

/// Puts the values of `given` that the mask names into `current`, normalised and checked. Returns the names of the
/// fields that changed.
pub(super) fn apply(
    context: &InputContext<'_>,
    mut given: ClientInput,
    current: &mut ClientInput,
    faults: &mut Faults,
) -> Vec<&'static str> {
    choose_type(context, &mut given, faults);
    choose_country(context, &mut given, faults);
    let country = if context.mask.has("country") { &given.country } else { &current.country }.clone();
    for Formatted { name, value, form } in formatted(&mut given) {
        if context.mask.has(name) {
            form.check(value, &country, &context.at.name(name), faults);
        }
    }
    let in_mask = fields::of(context.role).filter(|field| context.mask.has(field.name));
    in_mask.filter(|field| field.transfer(&mut given, current)).map(|field| field.name).collect()
}

/// A company needs a company name, a person a first or last name. Checks the record as it will be stored, and only when
/// the request sets one of these fields.
pub(super) fn check_name(context: &InputContext<'_>, values: &ClientInput, faults: &mut Faults) {
    let names = ["type", "company_name", "firstname", "lastname"];
    let role = context.role.name();
    // The fields are in an object named like the role. If that object cannot be read, the names may have been in it.
    if !names.iter().any(|name| context.mask.has(name)) || context.has_fault(faults, &["type", role]) {
        return;
    }
    if values.r#type() == RelationType::Company {
        if values.company_name.is_empty() {
            let detail = format!("company_name is required: a {role} of type company needs one");
            faults.add(&context.at.name("company_name"), Fault::Required, detail);
        }
    } else if values.firstname.is_empty() && values.lastname.is_empty() {
        // A name that was sent but cannot be read has a fault already and is not reported as missing too. Without a
        // type, a company_name that cannot be read would have made this record a company.
        if !context.has_fault(faults, &["company_name", "firstname", "lastname"]) {
            let detail =
                format!("firstname or lastname is required: a {role} of type private needs one of them");
            faults.add(&context.at.name("firstname"), Fault::Required, detail);
        }
    }
}

/// A request without a type creates a company if it has a company name, else a person. A mask that contains the type
/// needs a value for it.
fn choose_type(context: &InputContext<'_>, given: &mut ClientInput, faults: &mut Faults) {
    if given.r#type() != RelationType::Unspecified {
        return;
    }
    match context.mask {
        UpdateMask::All if given.company_name.is_empty() => given.set_type(RelationType::Private),
        UpdateMask::All => given.set_type(RelationType::Company),
        UpdateMask::Only(_) if context.mask.has("type") => {
            faults.add(&context.at.name("type"), Fault::NotNullable, "type must be company or private");
        }
        UpdateMask::Only(_) => {}
    }
}

fn choose_country(context: &InputContext<'_>, given: &mut ClientInput, faults: &mut Faults) {
    if given.country.is_empty() {
        context.default_country.clone_into(&mut given.country);
    } else if let Some(code) = country::normalise(&given.country) {
        given.country = code;
    } else if context.mask.has("country") {
        let detail = "country must be an ISO 3166 alpha-2 code, for example NL";
        faults.add(&context.at.name("country"), Fault::BadCountry, detail);
        // The other values are checked as if no country had been sent.
        context.default_country.clone_into(&mut given.country);
    }
}

/// A value that must have a certain form when it is not empty.
struct Formatted<'a> {
    name: &'static str,
    value: &'a mut String,
    form: Form,
}

fn formatted(values: &mut ClientInput) -> [Formatted<'_>; 7] {
    [
        Formatted { name: "email", value: &mut values.email, form: Form::Email },
        Formatted { name: "vat_number", value: &mut values.vat_number, form: Form::VatNumber },
        Formatted { name: "website", value: &mut values.website, form: Form::Website },
        Formatted { name: "iban", value: &mut values.iban, form: Form::Iban },
        Formatted { name: "bic", value: &mut values.bic, form: Form::Bic },
        Formatted { name: "email_invoices", value: &mut values.email_invoices, form: Form::Emails },
        Formatted { name: "email_reminders", value: &mut values.email_reminders, form: Form::Emails },
    ]
}

/// A debtor number as clients have it.
pub(super) fn debtor_number(number: i64) -> String {
    format!("D-{number:05}")
}

/// What an anonymised client is called, in the language of the account's country.
pub(super) fn anonymous_name(country: &str, debtor_number: &str) -> String {
    let called = match country {
        "NL" | "BE" => "Geanonimiseerde klant",
        _ => "Anonymised client",
    };
    format!("{called} {debtor_number}")
}

/// Takes everything out of a client that tells who it is. Returns the names of the fields that changed.
pub(super) fn anonymize(name: String, values: &mut ClientInput) -> Vec<&'static str> {
    let mut left = ClientInput {
        r#type: values.r#type,
        country: values.country.clone(),
        payment_term: values.payment_term,
        quote_expiration_days: values.quote_expiration_days,
        ..ClientInput::default()
    };
    match values.r#type() {
        RelationType::Company => left.company_name = name,
        _ => left.lastname = name,
    }
    let all = fields::of(Role::Client);
    all.filter(|field| field.transfer(&mut left, values)).map(|field| field.name).collect()
}

/// The text that a search looks through, in lower case; the store appends the debtor number. Line breaks keep a search
/// term from matching across two values.
pub(super) fn search_text(values: &ClientInput) -> String {
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
