//! A new order for all entries of a list. Pure.

use proto::api::Fault;
use proto::{At, Faults};

/// Checks that `wanted` names each of `known` once and nothing else. `what` is one of them, for example `phase`.
pub fn check<T: PartialEq>(wanted: &[Option<T>], known: &[T], what: &str, at: &At<'_>, faults: &mut Faults) {
    for (index, entry) in wanted.iter().enumerate() {
        if !entry.as_ref().is_some_and(|entry| known.contains(entry)) {
            let detail = format!("each entry must be a {what} of this account");
            faults.add(&at.index(index), Fault::UnknownReference, detail);
        } else if wanted[..index].contains(entry) {
            faults.add(&at.index(index), Fault::Repeated, format!("a {what} must be there only once"));
        }
    }
    if known.iter().any(|known| !wanted.iter().flatten().any(|entry| entry == known)) {
        let detail = format!("{} must name every {what}: there are {}", at.label(), known.len());
        faults.add(at, Fault::Required, detail);
    }
}

/// Refuses one more where there are so many already.
pub fn check_room(have: usize, most: usize, what: &str, at: &At<'_>, faults: &mut Faults) {
    if have >= most {
        faults.add(at, Fault::TooMany, format!("there can be at most {most} {what}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(wanted: &[Option<u8>]) -> Vec<(String, Fault)> {
        let mut faults = Faults::default();
        check(wanted, &[1, 2, 3], "phase", &At::ROOT.name("ids"), &mut faults);
        faults.entries().iter().map(|entry| (entry.pointer.clone(), entry.code())).collect()
    }

    #[test]
    fn an_order_names_every_entry_once() {
        assert_eq!(faults(&[Some(3), Some(1), Some(2)]), []);
        assert_eq!(faults(&[Some(3), Some(1)]), [("/ids".to_owned(), Fault::Required)]);
        let expected = [
            ("/ids/1".to_owned(), Fault::Repeated),
            ("/ids/3".to_owned(), Fault::UnknownReference),
            ("/ids/4".to_owned(), Fault::UnknownReference),
        ];
        assert_eq!(faults(&[Some(1), Some(1), Some(2), Some(9), None, Some(3)]), expected);
    }
}
