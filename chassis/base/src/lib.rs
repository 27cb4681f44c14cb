//! The types that all other crates use: errors, accounts, time and ids, paging, field masks, formats of values. This
//! crate only computes; it does no I/O and uses no async runtime. It does not depend on the database or gRPC, except
//! for trait implementations that must be here, which are behind the features `sqlx` and `grpc`.

pub mod account;
pub mod clock;
pub mod environment;
pub mod error;
pub mod formats;
pub mod html;
pub mod id;
pub mod paging;
pub mod shares;
pub mod stored;
pub mod time;
pub mod timezone;
pub mod update_mask;

pub use account::{Account, AccountId};
pub use clock::Clock;
pub use environment::Environment;
pub use error::Error;
pub use timezone::Timezone;
