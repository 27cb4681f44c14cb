//! What makes a product valid. Pure.

use chassis_base::update_mask::UpdateMask;
use proto::api::Fault;
use proto::billing::ProductInput;
use proto::{At, Faults};

const FIELDS: [&str; 6] = ["name", "code", "price", "vat_rate", "unit", "active"];

/// The values of a product after the change: those of `given` that the mask names, the others of `current`.
pub(crate) fn apply(
    mask: UpdateMask<'_>,
    given: &ProductInput,
    current: &ProductInput,
    faults: &mut Faults,
) -> ProductInput {
    let at = At::ROOT.name("product");
    mask.check(|name| FIELDS.contains(&name), "product", faults);
    if mask.has("name") && given.name.is_empty() {
        faults.add(&at.name("name"), Fault::Required, "name is required");
    }
    // A whole product without `active` gets the default; a mask that names it requires a value.
    let active = match mask {
        UpdateMask::All => Some(given.active.unwrap_or(true)),
        UpdateMask::Only(_) => given.active,
    };
    if mask.has("active") && active.is_none() {
        faults.add(&at.name("active"), Fault::NotNullable, "active must be true or false");
    }
    let mut values = current.clone();
    mask.put("name", &given.name, &mut values.name);
    mask.put("code", &given.code, &mut values.code);
    mask.put("price", &given.price, &mut values.price);
    mask.put("vat_rate", &given.vat_rate, &mut values.vat_rate);
    mask.put("unit", &given.unit, &mut values.unit);
    mask.put("active", &active, &mut values.active);
    values
}

/// The text that a search looks through, in lower case. The line break keeps a search from matching across the two
/// values.
pub(crate) fn search_text(values: &ProductInput) -> String {
    format!("{}\n{}", values.name, values.code).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bread() -> ProductInput {
        ProductInput {
            name: "Bread".into(),
            code: "B".into(),
            price: "4".into(),
            vat_rate: "9".into(),
            unit: "loaf".into(),
            active: Some(false),
        }
    }

    fn applied(paths: &[&str], given: &ProductInput) -> (ProductInput, Vec<(String, Fault)>) {
        let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
        let mut faults = Faults::default();
        let values = apply(UpdateMask::Only(&paths), given, &bread(), &mut faults);
        let faults = faults.entries().iter().map(|entry| (entry.pointer.clone(), entry.code())).collect();
        (values, faults)
    }

    #[test]
    fn only_what_the_mask_names_changes() {
        let given = ProductInput { name: "Rye".into(), code: "R".into(), ..ProductInput::default() };
        let (values, faults) = applied(&["name", "price"], &given);
        assert_eq!(faults, []);
        assert_eq!(values, ProductInput { name: "Rye".into(), price: String::new(), ..bread() });
    }

    #[test]
    fn name_and_active_cannot_be_emptied_and_other_names_are_refused() {
        let (_, faults) = applied(&["name", "active", "colour"], &ProductInput::default());
        let expected = [
            ("/update_mask".to_owned(), Fault::NotAllowed),
            ("/product/name".to_owned(), Fault::Required),
            ("/product/active".to_owned(), Fault::NotNullable),
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn a_whole_product_is_active_unless_it_says_otherwise() {
        let mut faults = Faults::default();
        let given = ProductInput { active: None, ..bread() };
        let values = apply(UpdateMask::All, &given, &ProductInput::default(), &mut faults);
        assert_eq!((values.active, faults.len()), (Some(true), 0));
    }
}
