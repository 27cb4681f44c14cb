//! A service as a process.

mod metrics;
mod readiness;
mod reflection;
mod stop;
mod teams;
mod tls;
mod traces;
