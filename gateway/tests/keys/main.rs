//! Accounts, keys, their command line and the limits, on real Postgres.

#[cfg(test)]
mod accounts;
#[cfg(test)]
mod authentication;
#[cfg(test)]
mod command_line;
#[cfg(test)]
mod credentials;
#[cfg(test)]
mod exact_limit;
#[cfg(test)]
mod support;
