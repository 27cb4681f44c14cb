//! The SQL of online payments and of the commands to providers, and nothing else.

pub(crate) mod commands;
mod payments;

pub(crate) use payments::{
    close_superseded, find, find_by_token, find_latest, find_of_client, insert, list_collections, lock,
    update,
};
