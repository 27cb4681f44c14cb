//! Which status a ticket gets when something happens to it. Pure.

pub(crate) const NEW: &str = "new";
pub(crate) const OPEN: &str = "open";
pub(crate) const WAITING: &str = "waiting";
pub(crate) const CLOSED: &str = "closed";

/// The status of a new ticket: `new`, or the first active status when the account has deactivated `new`.
pub(crate) fn of_a_new_ticket(active: &[String]) -> &str {
    let first = || active.first().map_or(NEW, String::as_str);
    active.iter().map(String::as_str).find(|name| *name == NEW).unwrap_or_else(first)
}

/// The status that a ticket gets when something asks for the status `wanted`. If the account has deactivated that one,
/// the ticket keeps its status. The exception is a closed ticket that should be open: people must notice it, so it gets
/// the status of a new ticket.
pub(crate) fn next<'a>(wanted: &'a str, current: &'a str, active: &'a [String]) -> &'a str {
    let is_active = |name: &str| active.iter().any(|other| other == name);
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
    fn a_ticket_gets_only_active_statuses() {
        let all = names(&["new", "open", "waiting", "solved", "closed"]);
        assert_eq!(next(WAITING, "new", &all), "waiting");
        assert_eq!(next(OPEN, "closed", &all), "open");
        let few = names(&["new", "closed"]);
        assert_eq!(next(WAITING, "new", &few), "new");
        assert_eq!(next(OPEN, "closed", &few), "new", "a closed ticket with a new message is reopened");
    }
}
