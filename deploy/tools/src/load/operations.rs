//! What is measured: operations on clients, invoices, deals, tasks and tickets.

use std::fmt;
use std::str::FromStr;

/// The word that the search looks for.
pub(crate) const SEARCHED: &str = "korenbloem";

/// Making PDFs is work for the processor; more connections than this only wait.
const MAX_PDF_CONNECTIONS: u32 = 4;

/// Whose operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Client,
    Invoice,
    Deal,
    Task,
    Ticket,
}

impl Resource {
    pub(crate) const ALL: [Self; 5] = [Self::Client, Self::Invoice, Self::Deal, Self::Task, Self::Ticket];

    /// The service that owns it; also the name of its schema and of its connections.
    pub(crate) fn service(self) -> &'static str {
        match self {
            Self::Client => "relations",
            Self::Invoice => "billing",
            Self::Deal => "crm",
            Self::Task => "work",
            Self::Ticket => "support",
        }
    }

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Client => "/v1/clients",
            Self::Invoice => "/v1/invoices",
            Self::Deal => "/v1/deals",
            Self::Task => "/v1/tasks",
            Self::Ticket => "/v1/tickets",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// By its id, any of the account's
    Get,
    /// The first page of so many with the exact total
    List(u32),
    /// The first page with the exact total, beside a database that counts
    Counted,
    /// The first page of what is open
    Open,
    /// A word that a handful have
    Search,
    /// A new one, with idempotency key and event; an invoice is a draft
    Create,
    /// A new final invoice, with its PDF
    CreateFinal,
    /// A deal to another phase, with idempotency key, history and event
    Move,
    /// A task is completed or opened again, any of the account's
    Complete,
    /// A reply on a ticket, with idempotency key and event, without mail
    Message,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// As on the command line.
    pub name: &'static str,
    pub resource: Resource,
    pub action: Action,
}

const fn operation(name: &'static str, resource: Resource, action: Action) -> Operation {
    Operation { name, resource, action }
}

impl Operation {
    /// In the order of measuring: what adds data comes after what reads it, so that all rounds of a read see the same.
    pub(crate) const ALL: [Self; 19] = [
        operation("get", Resource::Client, Action::Get),
        operation("list25", Resource::Client, Action::List(25)),
        operation("list100", Resource::Client, Action::List(100)),
        operation("search", Resource::Client, Action::Search),
        operation("invoice-get", Resource::Invoice, Action::Get),
        operation("invoice-list25", Resource::Invoice, Action::List(25)),
        operation("invoice-list100", Resource::Invoice, Action::List(100)),
        operation("invoice-counted", Resource::Invoice, Action::Counted),
        operation("invoice-open", Resource::Invoice, Action::Open),
        operation("invoice-search", Resource::Invoice, Action::Search),
        operation("deal-list25", Resource::Deal, Action::List(25)),
        operation("task-list25", Resource::Task, Action::List(25)),
        operation("ticket-list25", Resource::Ticket, Action::List(25)),
        operation("create", Resource::Client, Action::Create),
        operation("invoice-draft", Resource::Invoice, Action::Create),
        operation("invoice-final", Resource::Invoice, Action::CreateFinal),
        operation("deal-move", Resource::Deal, Action::Move),
        operation("task-complete", Resource::Task, Action::Complete),
        operation("ticket-message", Resource::Ticket, Action::Message),
    ];

    pub(crate) fn success(self) -> u16 {
        if self.creates() { 201 } else { 200 }
    }

    pub(crate) fn writes(self) -> bool {
        self.creates() || matches!(self.action, Action::Move | Action::Complete)
    }

    fn creates(self) -> bool {
        matches!(self.action, Action::Create | Action::CreateFinal | Action::Message)
    }

    /// With how many connections it is measured when so many are asked for.
    pub(crate) fn connections(self, asked: u32) -> u32 {
        if self.action == Action::CreateFinal { asked.min(MAX_PDF_CONNECTIONS) } else { asked }
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(|operation| operation.name).join(", ");
        let found = Self::ALL.into_iter().find(|operation| operation.name == name);
        found.ok_or_else(|| format!("it must be one of: {}", names()))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_writes_to_a_resource_is_measured_after_what_reads_it() {
        for resource in Resource::ALL {
            let mine = Operation::ALL.into_iter().filter(|operation| operation.resource == resource);
            let writes: Vec<bool> = mine.map(Operation::writes).collect();
            assert!(writes.is_sorted(), "{resource:?}: {writes:?}");
        }
    }
}
