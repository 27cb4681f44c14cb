//! The kinds of records of other services that records of this one refer to.

use chassis_rpc::references::Kind;

pub const CLIENT: Kind = Kind { service: "relations", name: "client" };
pub const INVOICE: Kind = Kind { service: "billing", name: "invoice" };
pub const DEAL: Kind = Kind { service: "crm", name: "deal" };
pub const OPEN_DEAL: Kind = Kind { service: "crm", name: "open_deal" };
