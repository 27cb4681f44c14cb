//! What is measured: operations on clients, invoices, deals, tasks and tickets.

use std::fmt;
use std::str::FromStr;

/// Every so many-th client that is filled in carries the word that the search looks for.
pub const SEARCHED_EVERY: u64 = 1_500;
pub const SEARCHED: &str = "korenbloem";

/// Making PDFs is work for the processor; more connections than this only wait.
const MOST_FOR_PDFS: u32 = 4;

/// Whose operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Client,
    Invoice,
    Deal,
    Task,
    Ticket,
}

impl Resource {
    pub const ALL: [Self; 5] = [Self::Client, Self::Invoice, Self::Deal, Self::Task, Self::Ticket];

    /// The service that owns it; also the name of its schema.
    pub fn service(self) -> &'static str {
        match self {
            Self::Client => "relations",
            Self::Invoice => "billing",
            Self::Deal => "crm",
            Self::Task => "work",
            Self::Ticket => "support",
        }
    }

    pub fn path(self) -> &'static str {
        match self {
            Self::Client => "/v1/clients",
            Self::Invoice => "/v1/invoices",
            Self::Deal => "/v1/deals",
            Self::Task => "/v1/tasks",
            Self::Ticket => "/v1/tickets",
        }
    }

    /// What one is called; also the list whose counters tell its total.
    pub fn list(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Invoice => "invoice",
            Self::Deal => "deal",
            Self::Task => "task",
            Self::Ticket => "ticket",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
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
pub struct Operation {
    /// As on the command line.
    pub name: &'static str,
    pub resource: Resource,
    pub action: Action,
}

const fn client(name: &'static str, action: Action) -> Operation {
    Operation { name, resource: Resource::Client, action }
}

const fn invoice(name: &'static str, action: Action) -> Operation {
    Operation { name, resource: Resource::Invoice, action }
}

const fn deal(name: &'static str, action: Action) -> Operation {
    Operation { name, resource: Resource::Deal, action }
}

const fn task(name: &'static str, action: Action) -> Operation {
    Operation { name, resource: Resource::Task, action }
}

const fn ticket(name: &'static str, action: Action) -> Operation {
    Operation { name, resource: Resource::Ticket, action }
}

impl Operation {
    /// In the order of measuring: what adds data comes after what reads it, so that all rounds of a read see the same.
    pub const ALL: [Self; 19] = [
        client("get", Action::Get),
        client("list25", Action::List(25)),
        client("list100", Action::List(100)),
        client("search", Action::Search),
        invoice("invoice-get", Action::Get),
        invoice("invoice-list25", Action::List(25)),
        invoice("invoice-list100", Action::List(100)),
        invoice("invoice-counted", Action::Counted),
        invoice("invoice-open", Action::Open),
        invoice("invoice-search", Action::Search),
        deal("deal-list25", Action::List(25)),
        task("task-list25", Action::List(25)),
        ticket("ticket-list25", Action::List(25)),
        client("create", Action::Create),
        invoice("invoice-draft", Action::Create),
        invoice("invoice-final", Action::CreateFinal),
        deal("deal-move", Action::Move),
        task("task-complete", Action::Complete),
        ticket("ticket-message", Action::Message),
    ];

    pub fn success(self) -> u16 {
        if self.creates() { 201 } else { 200 }
    }

    pub fn page_size(self) -> u32 {
        if let Action::List(size) = self.action { size } else { 25 }
    }

    pub fn writes(self) -> bool {
        self.creates() || matches!(self.action, Action::Move | Action::Complete)
    }

    fn creates(self) -> bool {
        matches!(self.action, Action::Create | Action::CreateFinal | Action::Message)
    }

    /// With how many connections it is measured when so many are asked for.
    pub fn connections(self, wanted: u32) -> u32 {
        if self.action == Action::CreateFinal { wanted.min(MOST_FOR_PDFS) } else { wanted }
    }

    /// The pgbench script with its statements.
    pub fn script(self) -> String {
        let action = match self.action {
            Action::Get => "get",
            Action::List(_) => "list",
            Action::Counted => "counted",
            Action::Open => "open",
            Action::Search => "search",
            Action::Create => "create",
            Action::CreateFinal => "final",
            Action::Move => "move",
            Action::Complete => "complete",
            Action::Message => "message",
        };
        match self.resource {
            Resource::Client => action.to_owned(),
            Resource::Invoice | Resource::Deal | Resource::Task | Resource::Ticket => {
                format!("{}-{action}", self.resource.list())
            }
        }
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(|operation| operation.name).join(", ");
        Self::ALL
            .into_iter()
            .find(|operation| operation.name == name)
            .ok_or_else(|| format!("it must be one of: {}", names()))
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

    #[test]
    fn pdfs_are_made_with_few_connections() {
        let of = |name: &str| name.parse::<Operation>().unwrap();
        assert_eq!((of("invoice-final").connections(32), of("invoice-final").connections(1)), (4, 1));
        assert_eq!(of("invoice-draft").connections(32), 32);
    }
}
