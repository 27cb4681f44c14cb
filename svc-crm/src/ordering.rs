//! Lists that the caller orders: a new order names every entry, a list has a maximum length, and its places have no
//! gaps. Pure.

use chrono::{DateTime, Utc};
use proto::api::Fault;
use proto::{At, Faults};

/// A record that shows its place in such a list.
pub(crate) trait Entry: Clone {
    /// Counted from 1.
    fn order(&self) -> i32;

    /// Gives it another place, which is a change of the record.
    fn move_to(&mut self, order: i32, now: DateTime<Utc>);
}

/// Gives the entries the places 1, 2, 3, … Returns those that had another place before.
pub(crate) fn renumber<E: Entry>(entries: &mut [E], now: DateTime<Utc>) -> Vec<E> {
    let mut moved = Vec::new();
    for (order, entry) in (1..).zip(entries) {
        if entry.order() != order {
            entry.move_to(order, now);
            moved.push(entry.clone());
        }
    }
    moved
}

/// Checks that `requested` names each of `existing` once and nothing else. `None` in `requested` stands for a text that
/// is not an id. `what` is the kind of entry, for example `phase`.
pub(crate) fn check<T: PartialEq>(
    requested: &[Option<T>],
    existing: &[T],
    what: &str,
    at: &At<'_>,
    faults: &mut Faults,
) {
    for (index, entry) in requested.iter().enumerate() {
        if !entry.as_ref().is_some_and(|entry| existing.contains(entry)) {
            let detail = format!("each entry must be a {what} of this account");
            faults.add(&at.index(index), Fault::UnknownReference, detail);
        } else if requested[..index].contains(entry) {
            faults.add(&at.index(index), Fault::Repeated, format!("a {what} must be there only once"));
        }
    }
    if existing.iter().any(|existing| !requested.iter().flatten().any(|entry| entry == existing)) {
        let detail = format!("{} must name every {what}: there are {}", at.label(), existing.len());
        faults.add(at, Fault::Required, detail);
    }
}

/// Refuses another entry of a list that has its maximum length.
pub(crate) fn check_length(length: usize, max: usize, what: &str, at: &At<'_>, faults: &mut Faults) {
    if length >= max {
        faults.add(at, Fault::TooMany, format!("there can be at most {max} {what}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(requested: &[Option<u8>]) -> Vec<(String, Fault)> {
        let mut faults = Faults::default();
        check(requested, &[1, 2, 3], "phase", &At::ROOT.name("ids"), &mut faults);
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

    /// Its letter, its place, and how often it was moved.
    #[derive(Clone, Debug, PartialEq)]
    struct Letter(char, i32, u8);

    impl Entry for Letter {
        fn order(&self) -> i32 {
            self.1
        }

        fn move_to(&mut self, order: i32, _: DateTime<Utc>) {
            *self = Self(self.0, order, self.2 + 1);
        }
    }

    #[test]
    fn only_entries_that_get_another_place_are_moved() {
        let mut letters = [Letter('a', 1, 0), Letter('c', 3, 0), Letter('b', 2, 0), Letter('e', 5, 0)];
        let moved = renumber(&mut letters, DateTime::UNIX_EPOCH);
        assert_eq!(moved, [Letter('c', 2, 1), Letter('b', 3, 1), Letter('e', 4, 1)]);
        assert_eq!(letters[0], Letter('a', 1, 0));
        assert_eq!(letters[1..], moved);
        assert_eq!(renumber(&mut letters, DateTime::UNIX_EPOCH), []);
    }

    #[test]
    fn a_full_list_takes_no_more() {
        for (length, expected) in [(1, 0), (2, 1), (3, 1)] {
            let mut faults = Faults::default();
            check_length(length, 2, "phases", &At::ROOT.name("name"), &mut faults);
            assert_eq!(faults.len(), expected, "{length}");
        }
    }
}
