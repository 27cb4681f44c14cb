//! E-mail addresses in the form that mail servers accept in practice: no quoted local parts, comments or bare hosts.

const MAX: usize = 254;
const MAX_LOCAL: usize = 64;
const MAX_LABEL: usize = 63;

/// One address without surrounding white space.
pub fn normalise(text: &str) -> Option<String> {
    let address = text.trim();
    is_address(address).then(|| address.to_owned())
}

/// Comma-separated addresses. Empty entries are ignored, but there must be at least one address.
pub fn normalise_several(text: &str) -> Option<String> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let addresses = entries.map(normalise).collect::<Option<Vec<_>>>()?;
    (!addresses.is_empty()).then(|| addresses.join(","))
}

fn is_address(address: &str) -> bool {
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    address.len() <= MAX && is_local(local) && is_domain(domain)
}

fn is_local(local: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
    local.len() <= MAX_LOCAL && local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(allowed))
}

fn is_domain(domain: &str) -> bool {
    let Some((_, top)) = domain.rsplit_once('.') else { return false };
    domain.split('.').all(is_label) && !top.chars().all(|c| c.is_ascii_digit())
}

/// A label of a host name. Letters of all scripts are allowed, because such domains exist.
pub(super) fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label.len() <= MAX_LABEL
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.chars().all(|c| c.is_alphanumeric() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn usual_addresses_pass_and_others_do_not() {
        for right in
            ["a@b.nl", "sanne.de-vries+x@mail.korenbloem.example", "o'neil@bücher.example", " a@b.co "]
        {
            assert_eq!(normalise(right).as_deref(), Some(right.trim()), "{right}");
        }
        for wrong in [
            "",
            "a",
            "a@",
            "@b.nl",
            "a@b",
            "a@b.",
            "a@.nl",
            "a..b@c.nl",
            ".a@b.nl",
            "a b@c.nl",
            "a@b@c.nl",
            "a@-b.nl",
        ] {
            assert_eq!(normalise(wrong), None, "{wrong}");
        }
        for wrong in ["a@b.1", "<a@b.nl>", "a@b.nl\r\nBcc: c@d.nl", "a,b@c.nl", "\"a\"@b.nl", "é@b.nl"] {
            assert_eq!(normalise(wrong), None, "{wrong}");
        }
        assert_eq!(normalise(&format!("{}@b.nl", "a".repeat(65))), None);
        assert_eq!(normalise(&format!("a@{}b.nl", "bcdefghi.".repeat(30))), None);
    }

    #[test]
    fn several_addresses_are_joined_without_spaces() {
        assert_eq!(normalise_several(" a@b.nl , c@d.nl,").as_deref(), Some("a@b.nl,c@d.nl"));
        assert_eq!(normalise_several("a@b.nl; c@d.nl"), None);
        assert_eq!(normalise_several(" , "), None);
    }

    proptest! {
        #[test]
        fn a_normal_form_stays_as_it_is(text in any::<String>()) {
            if let Some(normal) = normalise_several(&text) {
                prop_assert_eq!(normalise_several(&normal), Some(normal));
            }
        }

        #[test]
        fn simple_addresses_pass(address in "[a-z0-9]{1,20}(\\.[a-z0-9]{1,20})?@[a-z0-9]{1,20}\\.[a-z]{2,6}") {
            prop_assert_eq!(normalise(&address), Some(address));
        }
    }
}
