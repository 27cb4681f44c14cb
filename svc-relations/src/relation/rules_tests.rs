//! The tests of `rules`, in a file of their own because of their length.

use super::*;

const AT: At<'static> = At::ROOT;

fn context(mask: UpdateMask<'_>) -> InputContext<'_> {
    InputContext { role: Role::Client, mask, default_country: "NL", at: &AT }
}

fn faults_of(mask: UpdateMask<'_>, given: ClientInput, current: &mut ClientInput) -> Vec<(String, Fault)> {
    let mut faults = Faults::default();
    let context = context(mask);
    check_mask(&context, &mut faults);
    apply(&context, given, current, &mut faults);
    check_name(&context, current, &mut faults);
    faults.entries().iter().map(|entry| (entry.pointer.clone(), entry.code())).collect()
}

fn fault(pointer: &str, fault: Fault) -> (String, Fault) {
    (pointer.to_owned(), fault)
}

fn created(given: ClientInput) -> ClientInput {
    let mut current = ClientInput::default();
    assert_eq!(faults_of(UpdateMask::All, given, &mut current), []);
    current
}

fn bakery() -> ClientInput {
    ClientInput { company_name: "Bakery".into(), ..ClientInput::default() }
}

fn paths(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn the_type_follows_the_company_name() {
    assert_eq!(created(bakery()).r#type(), RelationType::Company);
    let person = ClientInput { lastname: "de Vries".into(), ..ClientInput::default() };
    assert_eq!(created(person).r#type(), RelationType::Private);
}

#[test]
fn values_are_stored_in_their_normal_form() {
    let values = created(ClientInput {
        country: "be".into(),
        vat_number: "be 0123.456.789".into(),
        iban: "nl91 abna 0417 1643 00".into(),
        bic: "abna nl 2a".into(),
        email_invoices: "a@b.nl , c@d.nl".into(),
        website: "HTTPS://a.nl".into(),
        ..bakery()
    });
    assert_eq!((values.country.as_str(), values.vat_number.as_str()), ("BE", "BE0123456789"));
    assert_eq!((values.iban.as_str(), values.bic.as_str()), ("NL91ABNA0417164300", "ABNANL2A"));
    assert_eq!((values.email_invoices.as_str(), values.website.as_str()), ("a@b.nl,c@d.nl", "https://a.nl"));
}

#[test]
fn every_fault_is_reported() {
    let given = ClientInput {
        r#type: RelationType::Company.into(),
        email: "no".into(),
        country: "XX".into(),
        vat_number: "NL1".into(),
        website: "a.nl".into(),
        iban: "NL00".into(),
        bic: "X".into(),
        email_invoices: "a@b.nl,no".into(),
        ..ClientInput::default()
    };
    assert_eq!(
        faults_of(UpdateMask::All, given, &mut ClientInput::default()),
        [
            fault("/country", Fault::BadCountry),
            fault("/email", Fault::BadEmail),
            fault("/vat_number", Fault::BadVatNumber),
            fault("/website", Fault::BadUrl),
            fault("/iban", Fault::BadIban),
            fault("/bic", Fault::BadBic),
            fault("/email_invoices", Fault::BadEmail),
            fault("/company_name", Fault::Required),
        ]
    );
}

#[test]
fn a_person_needs_one_of_two_names() {
    let empty = faults_of(UpdateMask::All, ClientInput::default(), &mut ClientInput::default());
    assert_eq!(empty, [fault("/firstname", Fault::Required)]);
}

#[test]
fn a_name_that_cannot_be_read_is_not_also_missing() {
    for name in ["type", "company_name", "firstname", "lastname"] {
        let mut faults = Faults::default();
        faults.add(&AT.name(name), Fault::NotAString, "carried");
        let values = ClientInput { r#type: RelationType::Private.into(), ..ClientInput::default() };
        check_name(&context(UpdateMask::All), &values, &mut faults);
        assert_eq!(faults.len(), 1, "{name}");
    }
}

#[test]
fn a_body_that_cannot_be_read_has_no_other_fault() {
    for at in [AT, AT.name("client")] {
        let mut faults = Faults::default();
        faults.add(&at, Fault::NotAnObject, "carried");
        let values = ClientInput { r#type: RelationType::Company.into(), ..ClientInput::default() };
        check_name(&context(UpdateMask::All), &values, &mut faults);
        assert_eq!(faults.len(), 1);
    }
}

#[test]
fn an_update_is_checked_on_the_record_as_it_will_be() {
    let named = paths(&["company_name"]);
    let mut current = created(bakery());
    let emptied = faults_of(UpdateMask::Only(&named), ClientInput::default(), &mut current);
    assert_eq!(emptied, [fault("/company_name", Fault::Required)]);

    let named = paths(&["type"]);
    let private = ClientInput { r#type: RelationType::Private.into(), ..ClientInput::default() };
    let turned = faults_of(UpdateMask::Only(&named), private, &mut created(bakery()));
    assert_eq!(turned, [fault("/firstname", Fault::Required)]);

    let named = paths(&["city"]);
    let mut nameless = ClientInput::default();
    assert_eq!(faults_of(UpdateMask::Only(&named), ClientInput::default(), &mut nameless), [], "not touched");
}

#[test]
fn only_fields_in_the_mask_change() {
    let named = paths(&["city", "country", "payment_term"]);
    let given = ClientInput { email: "x@y.nl".into(), city: "Gent".into(), ..bakery() };
    let mut current =
        ClientInput { payment_term: Some(14), ..created(ClientInput { country: "BE".into(), ..bakery() }) };
    let mut faults = Faults::default();
    let changed = apply(&context(UpdateMask::Only(&named)), given, &mut current, &mut faults);
    assert_eq!(changed, ["city", "country", "payment_term"]);
    assert_eq!(
        (current.city.as_str(), current.country.as_str()),
        ("Gent", "NL"),
        "an emptied country is the account's"
    );
    assert_eq!((current.email.as_str(), current.payment_term), ("", None));
}

#[test]
fn a_vat_number_is_checked_by_the_country_of_the_record() {
    let named = paths(&["vat_number"]);
    let swiss = ClientInput { vat_number: "CHE-1".into(), ..ClientInput::default() };
    let mut current = created(ClientInput { country: "CH".into(), ..bakery() });
    assert_eq!(faults_of(UpdateMask::Only(&named), swiss.clone(), &mut current), []);
    let dutch = faults_of(UpdateMask::Only(&named), swiss, &mut created(bakery()));
    assert_eq!(dutch, [fault("/vat_number", Fault::BadVatNumber)]);
}

#[test]
fn a_mask_contains_only_fields_and_a_type_cannot_be_emptied() {
    let named = paths(&["type", "id"]);
    let faults = faults_of(UpdateMask::Only(&named), ClientInput::default(), &mut created(bakery()));
    assert_eq!(faults, [fault("/update_mask", Fault::NotAllowed), fault("/type", Fault::NotNullable)]);
    let supplier = InputContext { role: Role::Supplier, ..context(UpdateMask::Only(&named[..1])) };
    let iban = paths(&["iban"]);
    let mut faults = Faults::default();
    check_mask(&InputContext { mask: UpdateMask::Only(&iban), ..supplier }, &mut faults);
    assert_eq!(faults.len(), 1, "suppliers have no iban");
}

#[test]
fn a_search_looks_through_names_email_and_city() {
    let values = ClientInput {
        firstname: "Sanne".into(),
        lastname: "ÉVÉ".into(),
        email: "S@x.nl".into(),
        city: "Gent".into(),
        ..bakery()
    };
    assert_eq!(search_text(&values), "bakery\nsanne évé\ns@x.nl\ngent\n");
}

#[test]
fn a_debtor_number_has_five_digits_or_more() {
    assert_eq!(debtor_number(1), "D-00001");
    assert_eq!(debtor_number(123_456), "D-123456");
}

#[test]
fn an_anonymised_client_keeps_what_tells_nothing_of_it() {
    let mut person = ClientInput {
        firstname: "Sanne".to_owned(),
        lastname: "de Vries".to_owned(),
        iban: "NL91ABNA0417164300".to_owned(),
        country: "BE".to_owned(),
        payment_term: Some(14),
        ..ClientInput::default()
    };
    person.set_type(RelationType::Private);
    let name = anonymous_name("BE", "D-00007");
    assert_eq!(
        (name.as_str(), anonymous_name("DE", "D-1")),
        ("Geanonimiseerde klant D-00007", "Anonymised client D-1".into())
    );
    assert_eq!(anonymize(name.clone(), &mut person), ["firstname", "lastname", "iban"]);
    let mut left = ClientInput { lastname: name.clone(), country: "BE".to_owned(), ..ClientInput::default() };
    left.payment_term = Some(14);
    left.set_type(RelationType::Private);
    assert_eq!(person, left);
    assert!(anonymize(name.clone(), &mut person).is_empty());
    let mut company = ClientInput { company_name: "Bakery".to_owned(), ..ClientInput::default() };
    company.set_type(RelationType::Company);
    anonymize(name.clone(), &mut company);
    assert_eq!((company.company_name.as_str(), company.lastname.as_str()), (name.as_str(), ""));
}
