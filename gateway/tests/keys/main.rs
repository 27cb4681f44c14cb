//! Accounts, keys, their command line and the limits, on real Postgres.

mod accounts;
mod authentication;
mod command_line;
mod exact_limit;
mod support;
