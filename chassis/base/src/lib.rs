//! What everything else stands on: errors, accounts, time and ids, paging, field masks, formats of values. No I/O and no
//! async runtime: what is here only computes. Knows neither the database nor gRPC; what has to be written beside a type
//! of this crate for their sake is behind the features `sqlx` and `grpc`.

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
pub mod update_mask;

pub use account::{Account, AccountId};
pub use clock::Clock;
pub use environment::Environment;
pub use error::Error;
