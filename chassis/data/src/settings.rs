//! The database settings of a process.

use clap::Args;

use crate::connect::Address;

/// The address of the database and the size of the pool.
#[derive(Args, Clone, Debug)]
pub struct DatabaseSettings {
    /// The Postgres database, as postgres://user:password@host:port/database
    #[arg(
        id = "database_url",
        long = "database-url",
        env = "DATABASE_URL",
        default_value = "postgres://localhost/admin",
        hide_env_values = true,
        global = true
    )]
    pub url: String,

    /// The most database connections of this process for its work; the readiness check uses one more
    #[arg(id = "database_pool", long = "database-pool", env = "DATABASE_POOL", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100), global = true)]
    pub pool: u32,

    /// Connections go through a pooler in transaction mode, such as PgBouncer; search path and limits are then settings
    /// of the role
    #[arg(id = "database_pooler", long = "database-pooler", env = "DATABASE_POOLER", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true", require_equals = true, global = true)]
    pub pooler: bool,
}

impl DatabaseSettings {
    pub fn address(&self) -> Address<'_> {
        Address { url: &self.url, pooler: self.pooler }
    }
}
