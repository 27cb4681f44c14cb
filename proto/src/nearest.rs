//! What somebody meant who wrote a name that does not exist: the question "did you mean" at the end of a fault.

/// Longer names are not compared, so that a comparison stays cheap.
const MAX_LENGTH: usize = 64;
/// Shorter names abbreviate too much.
const MIN_ABBREVIATION: usize = 3;

/// The known name that is nearest to this one, if one is near: at most a third of the letters differ, or one is short for the
/// other, as `qty` is for `quantity`. Of equally near names the first.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let name = letters(name)?;
    let near = known.into_iter().filter_map(|candidate| {
        let letters = letters(candidate)?;
        let longest = name.len().max(letters.len());
        let distance = distance(&name, &letters);
        (distance * 3 <= longest || is_short_for(&name, &letters)).then_some((distance, candidate))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// What is appended to the detail of a fault: `; did you mean `quantity`?`, or nothing if no known name is near.
pub fn did_you_mean<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(name, known).map(|known| format!("; did you mean `{known}`?")).unwrap_or_default()
}

/// What is compared: neither case nor separators matter, so that `clientId` is `client_id`.
fn letters(name: &str) -> Option<Vec<u8>> {
    let is_compared = name.len() <= MAX_LENGTH && !name.is_empty();
    let letters = name.bytes().filter(|byte| !matches!(byte, b'_' | b'-' | b' '));
    is_compared.then(|| letters.map(|byte| byte.to_ascii_lowercase()).collect())
}

/// Whether the shorter one has some of the letters of the longer one, in their order and from the first on.
fn is_short_for(one: &[u8], other: &[u8]) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let mut rest = long.iter();
    short.len() >= MIN_ABBREVIATION
        && short.len() * 3 >= long.len()
        && short.first() == long.first()
        && short.iter().all(|letter| rest.any(|other| other == letter))
}

/// How many letters must be added, removed, replaced or exchanged with the next one.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut before = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(a != b);
            let mut fewest = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                fewest = fewest.min(before[j - 1] + 1);
            }
            row.push(fewest);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = ["quantity", "price", "client_id", "invoice_date", "description", "tax"];

    #[test]
    fn a_misspelled_name_has_a_nearest_one() {
        for (wrong, right) in [
            ("quantiy", "quantity"),
            ("qauntity", "quantity"),
            ("Quantity", "quantity"),
            ("qty", "quantity"),
            ("clientId", "client_id"),
            ("client", "client_id"),
            ("invoice-date", "invoice_date"),
            ("desc", "description"),
            ("prices", "price"),
            ("tex", "tax"),
        ] {
            assert_eq!(nearest(wrong, KNOWN), Some(right), "{wrong}");
        }
    }

    #[test]
    fn a_name_that_is_like_no_other_has_no_nearest_one() {
        for strange in ["", "x", "colour", "__", "qu", "étiquette", &"quantity".repeat(100)] {
            assert_eq!(nearest(strange, KNOWN), None, "{strange}");
        }
        assert_eq!(nearest("quantity", []), None);
    }

    #[test]
    fn the_nearest_of_several_is_named_and_of_equal_ones_the_first() {
        assert_eq!(nearest("dates", ["date_from", "date", "date_to"]), Some("date"));
        assert_eq!(nearest("late", ["date", "rate"]), Some("date"));
        assert_eq!(did_you_mean("dates", ["date"]), "; did you mean `date`?");
        assert_eq!(did_you_mean("colour", ["date"]), "");
    }
}
