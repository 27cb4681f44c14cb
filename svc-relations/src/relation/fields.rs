//! The table of the settable fields: the names that a field mask can contain, and how one value goes from a request
//! into a record. A file of its own because the rules and the supplier rpcs both use it.

use proto::relations::{ClientInput, SupplierInput};

use super::Role;

/// How the value of a field is reached.
enum Slot {
    Type,
    Text(fn(&mut ClientInput) -> &mut String),
    Days(fn(&mut ClientInput) -> &mut Option<i32>),
}

pub(super) struct Field {
    pub name: &'static str,
    slot: Slot,
    /// Whether suppliers have the field too.
    shared: bool,
}

impl Field {
    /// Moves the value of `from` into `to`. Returns whether the two differed.
    pub(super) fn transfer(&self, from: &mut ClientInput, to: &mut ClientInput) -> bool {
        match self.slot {
            Slot::Type => put(&mut from.r#type, &mut to.r#type),
            Slot::Text(slot) => put(slot(from), slot(to)),
            Slot::Days(slot) => put(slot(from), slot(to)),
        }
    }
}

fn put<T: Default + PartialEq>(from: &mut T, to: &mut T) -> bool {
    let differs = from != to;
    *to = std::mem::take(from);
    differs
}

const fn text(name: &'static str, slot: fn(&mut ClientInput) -> &mut String) -> Field {
    Field { name, slot: Slot::Text(slot), shared: false }
}

const fn shared(name: &'static str, slot: fn(&mut ClientInput) -> &mut String) -> Field {
    Field { name, slot: Slot::Text(slot), shared: true }
}

const fn days(name: &'static str, slot: fn(&mut ClientInput) -> &mut Option<i32>) -> Field {
    Field { name, slot: Slot::Days(slot), shared: false }
}

static FIELDS: [Field; 22] = [
    Field { name: "type", slot: Slot::Type, shared: true },
    shared("company_name", |v| &mut v.company_name),
    shared("firstname", |v| &mut v.firstname),
    shared("lastname", |v| &mut v.lastname),
    shared("email", |v| &mut v.email),
    shared("phone", |v| &mut v.phone),
    text("address", |v| &mut v.address),
    text("zipcode", |v| &mut v.zipcode),
    shared("city", |v| &mut v.city),
    shared("country", |v| &mut v.country),
    text("company_registration_number", |v| &mut v.company_registration_number),
    text("vat_number", |v| &mut v.vat_number),
    text("website", |v| &mut v.website),
    text("iban", |v| &mut v.iban),
    text("bank_account_name", |v| &mut v.bank_account_name),
    text("bic", |v| &mut v.bic),
    text("external_id", |v| &mut v.external_id),
    days("payment_term", |v| &mut v.payment_term),
    days("quote_expiration_days", |v| &mut v.quote_expiration_days),
    text("email_invoices", |v| &mut v.email_invoices),
    text("email_reminders", |v| &mut v.email_reminders),
    text("mail_salutation", |v| &mut v.mail_salutation),
];

/// The fields of a list's records.
pub(super) fn of(role: Role) -> impl Iterator<Item = &'static Field> {
    FIELDS.iter().filter(move |field| field.shared || role == Role::Client)
}

/// The values of a supplier in the input message of clients, which the rest of the code works with.
pub(super) fn from_supplier(input: &SupplierInput) -> ClientInput {
    let SupplierInput { r#type, company_name, firstname, lastname, email, phone, city, country } =
        input.clone();
    let rest = ClientInput::default();
    ClientInput { r#type, company_name, firstname, lastname, email, phone, city, country, ..rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in_contract(message: &str) -> Vec<String> {
        let message = proto::policy::pool().get_message_by_name(message).unwrap();
        message.fields().map(|field| field.name().to_owned()).collect()
    }

    #[test]
    fn the_table_has_exactly_the_fields_of_the_contract() {
        let names = |role| of(role).map(|field| field.name).collect::<Vec<_>>();
        assert_eq!(names(Role::Client), names_in_contract("admin.relations.v1.ClientInput"));
        assert_eq!(names(Role::Supplier), names_in_contract("admin.relations.v1.SupplierInput"));
    }

    #[test]
    fn every_field_moves_its_own_value() {
        for field in of(Role::Client) {
            let mut given = ClientInput {
                r#type: 1,
                payment_term: Some(1),
                quote_expiration_days: Some(1),
                ..ClientInput::default()
            };
            for other in &FIELDS {
                if let Slot::Text(slot) = other.slot {
                    other.name.clone_into(slot(&mut given));
                }
            }
            let mut current = ClientInput::default();
            assert!(field.transfer(&mut given.clone(), &mut current), "{}", field.name);
            assert!(!field.transfer(&mut given, &mut current), "{} is there already", field.name);
            if let Slot::Text(slot) = field.slot {
                assert_eq!(slot(&mut current), field.name);
            }
        }
    }
}
