//! What makes an identity valid. Pure.

use chassis_base::formats::{Form, country};
use chassis_base::update_mask::UpdateMask;
use proto::api::Fault;
use proto::billing::IdentityInput;
use proto::{At, Faults};

use super::{PRIMARY_COLOR, SECONDARY_COLOR};

type Slot = fn(&mut IdentityInput) -> &mut String;

/// Every field; all are texts.
const FIELDS: [(&str, Slot); 17] = [
    ("name", |v| &mut v.name),
    ("primary_color", |v| &mut v.primary_color),
    ("secondary_color", |v| &mut v.secondary_color),
    ("company_name", |v| &mut v.company_name),
    ("address", |v| &mut v.address),
    ("zipcode", |v| &mut v.zipcode),
    ("city", |v| &mut v.city),
    ("country", |v| &mut v.country),
    ("email", |v| &mut v.email),
    ("phone", |v| &mut v.phone),
    ("website", |v| &mut v.website),
    ("company_registration_number", |v| &mut v.company_registration_number),
    ("vat_number", |v| &mut v.vat_number),
    ("iban", |v| &mut v.iban),
    ("bic", |v| &mut v.bic),
    ("bank_account_name", |v| &mut v.bank_account_name),
    ("footer", |v| &mut v.footer),
];

/// The values of an identity after the change: those of `given` that the mask names, normalised and checked, the others
/// of `current`. `home` is the account's country.
pub(super) fn apply(
    mask: UpdateMask<'_>,
    mut given: IdentityInput,
    current: &IdentityInput,
    home: &str,
    faults: &mut Faults,
) -> IdentityInput {
    let at = At::ROOT.name("identity");
    mask.check(|name| FIELDS.iter().any(|(field, _)| *field == name), "identity", faults);
    if mask.has("name") && given.name.is_empty() {
        faults.add(&at.name("name"), Fault::Required, "name is required");
    }
    let colors = [
        ("primary_color", &mut given.primary_color, PRIMARY_COLOR),
        ("secondary_color", &mut given.secondary_color, SECONDARY_COLOR),
    ];
    for (name, color, default) in colors {
        if mask.has(name) {
            check_color(color, default, &at.name(name), faults);
        }
    }
    let country = choose_country(mask, &mut given, current, home, &at, faults);
    let forms = [
        ("email", &mut given.email, Form::Email),
        ("website", &mut given.website, Form::Website),
        ("vat_number", &mut given.vat_number, Form::VatNumber),
        ("iban", &mut given.iban, Form::Iban),
        ("bic", &mut given.bic, Form::Bic),
    ];
    for (name, value, form) in forms {
        if mask.has(name) {
            form.check(value, &country, &at.name(name), faults);
        }
    }
    let mut values = current.clone();
    for (name, slot) in FIELDS {
        mask.put(name, &*slot(&mut given), slot(&mut values));
    }
    values
}

/// The country whose formats the other values must have. An invalid country counts as the account's own.
fn choose_country(
    mask: UpdateMask<'_>,
    given: &mut IdentityInput,
    current: &IdentityInput,
    home: &str,
    at: &At<'_>,
    faults: &mut Faults,
) -> String {
    if !mask.has("country") {
        return current.country.clone();
    }
    if given.country.is_empty() {
        home.clone_into(&mut given.country);
    }
    Form::Country.check(&mut given.country, home, &at.name("country"), faults);
    if country::is_code(&given.country) { given.country.clone() } else { home.to_owned() }
}

fn check_color(color: &mut String, default: &str, at: &At<'_>, faults: &mut Faults) {
    if color.is_empty() {
        default.clone_into(color);
    }
    let is_valid = color
        .strip_prefix('#')
        .is_some_and(|digits| digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    if is_valid {
        color.make_ascii_lowercase();
    } else {
        faults.add(at, Fault::BadFormat, format!("{} must be a colour as #rrggbb", at.label()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(
        paths: Option<&[&str]>,
        given: IdentityInput,
        current: &IdentityInput,
    ) -> (IdentityInput, Vec<(String, Fault)>) {
        let paths: Option<Vec<String>> = paths.map(|paths| paths.iter().map(ToString::to_string).collect());
        let mask = paths.as_deref().map_or(UpdateMask::All, UpdateMask::Only);
        let mut faults = Faults::default();
        let values = apply(mask, given, current, "NL", &mut faults);
        (values, faults.entries().iter().map(|entry| (entry.pointer.clone(), entry.code())).collect())
    }

    #[test]
    fn values_get_their_normal_form_and_their_defaults() {
        let given = IdentityInput {
            name: "Bakery".into(),
            primary_color: "#ABCDEF".into(),
            vat_number: "123456789b01".into(),
            iban: "nl91 abna 0417 1643 00".into(),
            ..IdentityInput::default()
        };
        let (values, faults) = applied(None, given, &IdentityInput::default());
        assert_eq!(faults, []);
        assert_eq!(
            (values.primary_color.as_str(), values.secondary_color.as_str()),
            ("#abcdef", SECONDARY_COLOR)
        );
        assert_eq!(
            (values.vat_number.as_str(), values.iban.as_str()),
            ("NL123456789B01", "NL91ABNA0417164300")
        );
        assert_eq!(values.country, "NL");
    }

    #[test]
    fn every_invalid_value_is_reported() {
        let wrong = IdentityInput {
            primary_color: "blue".into(),
            secondary_color: "#12345g".into(),
            country: "XX".into(),
            email: "x".into(),
            website: "x".into(),
            vat_number: "x".into(),
            iban: "x".into(),
            bic: "x".into(),
            ..IdentityInput::default()
        };
        let (_, mut faults) = applied(None, wrong, &IdentityInput::default());
        faults.sort();
        let names: Vec<_> =
            faults.iter().map(|(pointer, _)| pointer.trim_start_matches("/identity/")).collect();
        let expected = [
            "bic",
            "country",
            "email",
            "iban",
            "name",
            "primary_color",
            "secondary_color",
            "vat_number",
            "website",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_vat_number_has_the_format_of_the_identitys_country() {
        let swiss = IdentityInput { name: "A".into(), country: "CH".into(), ..IdentityInput::default() };
        let given = IdentityInput { vat_number: "che-123".into(), ..IdentityInput::default() };
        assert_eq!(applied(Some(&["vat_number"]), given.clone(), &swiss).1, []);
        let dutch = IdentityInput { country: "NL".into(), ..swiss };
        assert_eq!(applied(Some(&["vat_number"]), given, &dutch).1.len(), 1);
    }

    #[test]
    fn every_field_of_the_message_can_be_changed() {
        let full = |text: &str| {
            let mut values = IdentityInput::default();
            for (_, slot) in FIELDS {
                text.clone_into(slot(&mut values));
            }
            values
        };
        let debug = format!("{:?}", full("value"));
        assert_eq!(debug.matches("value\"").count(), FIELDS.len());
        assert!(!debug.contains("\"\""), "a field of the message is not in the table: {debug}");
    }
}
