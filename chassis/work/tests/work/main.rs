//! Background work, on a real Postgres.

mod event_listener;
mod files;
mod identity;
mod mail;
mod mail_keys;
mod mail_later;
mod relay;
mod scans;
mod snapshots;
mod wake_ups;
mod workers;
