//! Products and settings on real Postgres, called over gRPC as the gateway and other services call the service.

#![expect(clippy::unwrap_used, reason = "what a test takes for granted stops it when it is not so")]

mod billing_settings;
mod identities;
mod logos;
mod product_lists;
mod products;
mod provisioning;
mod support;
mod tax_rates;
mod tenants;
mod terms;
mod versions;
