//! Which status a ticket gets by what happens to it. Pure.

pub const NEW: &str = "new";
pub const OPEN: &str = "open";
pub const WAITING: &str = "waiting";
pub const CLOSED: &str = "closed";

/// The status of a new ticket: `new`, or the first active one when the account does not use that.
pub fn of_a_new_ticket(active: &[String]) -> &str {
    let first = || active.first().map_or(NEW, String::as_str);
    active.iter().map(String::as_str).find(|name| *name == NEW).unwrap_or_else(first)
}

/// The status that a ticket moves on to. One that the account does not use leaves the ticket where it is, unless it is
/// closed: then it has to be seen again, in the first active status.
pub fn after<'a>(wanted: &'a str, current: &'a str, active: &'a [String]) -> &'a str {
    let is_active = |name: &str| active.iter().any(|known| known == name);
    if is_active(wanted) {
        wanted
    } else if current == CLOSED && wanted == OPEN {
        of_a_new_ticket(active)
    } else {
        current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_new_ticket_is_new_or_what_comes_first() {
        assert_eq!(of_a_new_ticket(&names(&["open", "new"])), "new");
        assert_eq!(of_a_new_ticket(&names(&["triage", "open"])), "triage");
        assert_eq!(of_a_new_ticket(&[]), "new");
    }

    #[test]
    fn a_ticket_moves_only_to_what_the_account_uses() {
        let all = names(&["new", "open", "waiting", "solved", "closed"]);
        assert_eq!(after(WAITING, "new", &all), "waiting");
        assert_eq!(after(OPEN, "closed", &all), "open");
        let few = names(&["new", "closed"]);
        assert_eq!(after(WAITING, "new", &few), "new");
        assert_eq!(after(OPEN, "closed", &few), "new", "a closed ticket with a new message is seen again");
    }
}
