//! What makes a custom field valid. Pure.

use proto::api::Fault;
use proto::relations::CustomFieldType;
use proto::{At, Faults};

/// A key can be used as a name in any program: a-z, 0-9 and `_`, starting with a letter.
pub(super) fn check_key(key: &str, at: &At<'_>, faults: &mut Faults) {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !key.starts_with(|c: char| c.is_ascii_lowercase()) || !key.chars().all(allowed) {
        let detail = "key must be made of a-z, 0-9 and _, and start with a letter";
        faults.add(at, Fault::BadFormat, detail);
    }
}

/// The options, trimmed. A select has at least one and no duplicates; the other types have none.
pub(super) fn check_options(
    kind: CustomFieldType,
    given: &[String],
    at: &At<'_>,
    faults: &mut Faults,
) -> Vec<String> {
    let options: Vec<String> = given.iter().map(|option| option.trim().to_owned()).collect();
    match kind {
        CustomFieldType::Select if options.is_empty() => {
            faults.add(at, Fault::Required, "options is required: a select needs at least one");
        }
        CustomFieldType::Text | CustomFieldType::Checkbox if !options.is_empty() => {
            faults.add(at, Fault::NotAllowed, "options must be empty: only a select has options");
        }
        // A missing type is reported elsewhere.
        _ => {}
    }
    for (index, option) in options.iter().enumerate() {
        if option.is_empty() {
            faults.add(&at.index(index), Fault::Required, "an option must not be blank");
        } else if options[..index].contains(option) {
            faults.add(&at.index(index), Fault::NotAllowed, "an option must be there only once");
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(check: impl FnOnce(&At<'_>, &mut Faults)) -> Vec<(String, Fault)> {
        let mut faults = Faults::default();
        check(&At::ROOT, &mut faults);
        faults.entries().iter().map(|entry| (entry.pointer.clone(), entry.code())).collect()
    }

    #[test]
    fn a_key_is_a_plain_name() {
        for right in ["a", "loyalty_card", "x1"] {
            assert_eq!(faults_of(|at, faults| check_key(right, at, faults)), [], "{right}");
        }
        for wrong in ["1a", "_a", "A", "a-b", "a b", "é"] {
            assert_eq!(faults_of(|at, faults| check_key(wrong, at, faults)).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn only_a_select_has_options_and_no_option_twice() {
        let check = |kind, options: &[&str]| {
            let options: Vec<String> = options.iter().map(ToString::to_string).collect();
            faults_of(|at, faults| drop(check_options(kind, &options, at, faults)))
        };
        assert_eq!(check(CustomFieldType::Text, &[]), []);
        assert_eq!(check(CustomFieldType::Select, &["a", "b"]), []);
        assert_eq!(check(CustomFieldType::Select, &[]), [(String::new(), Fault::Required)]);
        assert_eq!(check(CustomFieldType::Checkbox, &["a"]), [(String::new(), Fault::NotAllowed)]);
        let faults = [("/1".to_owned(), Fault::NotAllowed), ("/2".to_owned(), Fault::Required)];
        assert_eq!(check(CustomFieldType::Select, &["a", " a", " "]), faults);
    }
}
