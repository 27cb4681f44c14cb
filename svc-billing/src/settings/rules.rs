//! What makes billing settings valid. Pure.

use chassis_base::update_mask::UpdateMask;
use proto::api::Fault;
use proto::billing::{BillingSettings, DocumentLanguage};
use proto::{At, Faults};
use render::printed::Language;

use super::Settings;

const FIELDS: [&str; 9] = [
    "payment_days",
    "quote_days",
    "default_tax_code",
    "language",
    "invoice_prefix",
    "quote_prefix",
    "workorder_prefix",
    "number_padding",
    "sandbox_payments",
];

const MAX_PREFIX_LENGTH: usize = 20;

/// The settings after the change: the values of `given` that the mask names, the others of `current`. Whether the tax
/// code exists is for the caller to check.
pub(super) fn apply(
    mask: UpdateMask<'_>,
    given: &BillingSettings,
    current: &Settings,
    faults: &mut Faults,
) -> Settings {
    let at = At::ROOT.name("settings");
    mask.check(|name| FIELDS.contains(&name), "billing settings", faults);
    let mut next = current.clone();
    let numbers = [
        ("payment_days", given.payment_days, &mut next.payment_days),
        ("quote_days", given.quote_days, &mut next.quote_days),
        ("number_padding", given.number_padding, &mut next.number_padding),
    ];
    for (name, value, target) in numbers {
        match value {
            Some(value) => mask.put(name, &value, target),
            None if mask.has(name) => {
                faults.add(&at.name(name), Fault::Required, format!("{name} is required"));
            }
            None => {}
        }
    }
    mask.put("sandbox_payments", &given.sandbox_payments, &mut next.sandbox_payments);
    let prefixes = [
        ("invoice_prefix", &given.invoice_prefix, &mut next.invoice_prefix),
        ("quote_prefix", &given.quote_prefix, &mut next.quote_prefix),
        ("workorder_prefix", &given.workorder_prefix, &mut next.workorder_prefix),
    ];
    for (name, value, target) in prefixes {
        if mask.has(name) {
            check_prefix(value, &at.name(name), faults);
            target.clone_from(value);
        }
    }
    if mask.has("default_tax_code") {
        if given.default_tax_code.is_empty() {
            faults.add(&at.name("default_tax_code"), Fault::Required, "default_tax_code is required");
        }
        next.default_tax_code.clone_from(&given.default_tax_code);
    }
    if mask.has("language") {
        match given.language() {
            DocumentLanguage::Nl => next.language = Language::Nl,
            DocumentLanguage::En => next.language = Language::En,
            DocumentLanguage::Unspecified => {
                faults.add(&at.name("language"), Fault::Required, "language is required");
            }
        }
    }
    next
}

fn check_prefix(prefix: &str, at: &At<'_>, faults: &mut Faults) {
    let allowed = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, '-' | '/' | '_');
    if prefix.is_empty() || prefix.len() > MAX_PREFIX_LENGTH || !prefix.chars().all(allowed) {
        let detail = format!("{} must be 1 to {MAX_PREFIX_LENGTH} of A-Z, 0-9, -, / and _", at.label());
        faults.add(at, Fault::BadFormat, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(paths: &[&str], given: &BillingSettings) -> (Settings, Vec<(String, Fault)>) {
        let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
        let mut faults = Faults::default();
        let settings = apply(UpdateMask::Only(&paths), given, &Settings::of_country("NL"), &mut faults);
        let faults = faults.entries().iter().map(|entry| (entry.pointer.clone(), entry.code())).collect();
        (settings, faults)
    }

    #[test]
    fn only_what_the_mask_names_changes() {
        let given = BillingSettings {
            payment_days: Some(0),
            quote_prefix: "Q/1".into(),
            language: DocumentLanguage::En.into(),
            ..BillingSettings::default()
        };
        let (settings, faults) = applied(&["payment_days", "quote_prefix"], &given);
        assert_eq!(faults, []);
        let expected = Settings { payment_days: 0, quote_prefix: "Q/1".into(), ..Settings::of_country("NL") };
        assert_eq!(settings, expected);
    }

    #[test]
    fn no_number_or_text_can_be_emptied_and_a_prefix_has_only_allowed_letters() {
        let (_, faults) = applied(&FIELDS, &BillingSettings::default());
        assert_eq!(faults.len(), FIELDS.len() - 1, "only whether the sandbox may be used can be left open");
        for prefix in ["a", "A B", "É", "A.B", &"A".repeat(21)] {
            let given = BillingSettings { invoice_prefix: prefix.into(), ..BillingSettings::default() };
            let (_, faults) = applied(&["invoice_prefix"], &given);
            assert_eq!(faults, [("/settings/invoice_prefix".to_owned(), Fault::BadFormat)], "{prefix}");
        }
    }
}
