//! The kinds of records of other services that records of this one refer to.

use chassis_rpc::references::Kind;

pub(crate) const CLIENT: Kind = Kind { service: "relations", name: "client" };
pub(crate) const INVOICE: Kind = Kind { service: "billing", name: "invoice" };
pub(crate) const DEAL: Kind = Kind { service: "crm", name: "deal" };
pub(crate) const OPEN_DEAL: Kind = Kind { service: "crm", name: "open_deal" };
