//! The files of a service, stored in a folder or in an S3 bucket.
//!
//! A file is written once and never changed; content that can change gets a new key with every version. A path consists
//! of the service's name, the account and the parts of a [`Key`], so that input never becomes part of a path. The type
//! and the display name of a file are in the service's own tables.

mod bucket;
mod error;
mod orphans;
mod reading;
mod settings;

use std::borrow::Cow;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use chassis_base::error::chain;
use chassis_base::{AccountId, Error};
use chassis_rpc::scope;
use error::{busy, unavailable, unreachable};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::private;

pub use orphans::{list, worker};
pub use reading::{HttpBodies, Messages, Reading};
pub use settings::{FileSettings, S3Identity};

/// The longest part of a key in a reference.
const MAX_PART: usize = 200;

/// Identifies a file of a service. Consists of ids, numbers and digests only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    account: AccountId,
    /// The service that owns the file; `None` for this service.
    service: Option<String>,
    area: Cow<'static, str>,
    name: String,
}

impl Key {
    /// `area` is the kind of file, for example `logos`.
    pub fn new(account: AccountId, area: &'static str, id: Uuid) -> Self {
        Self { account, service: None, area: area.into(), name: id.simple().to_string() }
    }

    /// The key of a file by its content: the same content has the same key.
    pub fn of_content(account: AccountId, area: &'static str, content: &[u8]) -> Self {
        Self { account, service: None, area: area.into(), name: hex(&Sha256::digest(content)) }
    }

    /// Parses a reference that [`Files::reference`] returned, of any service. `None` for any other text, so that input
    /// cannot lead to a path outside the storage.
    pub fn parse(account: AccountId, reference: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        let word = |part: &str| (1..=MAX_PART).contains(&part.len()) && part.bytes().all(plain);
        let parts: Vec<&str> = reference.splitn(4, '/').collect();
        let [service, area, name] = parts.try_into().ok()?;
        [service, area, name].into_iter().all(word).then(|| Self {
            account,
            service: Some(service.to_owned()),
            area: area.to_owned().into(),
            name: name.to_owned(),
        })
    }

    /// Distinguishes several files with the same id, for example by version.
    #[must_use]
    pub fn number(mut self, number: u64) -> Self {
        // Not a subfolder, because a path cannot be both a file and a folder.
        let _ = write!(self.name, "-{number}");
        self
    }

    fn path(&self, service: &str) -> Path {
        let service = self.service.as_deref().unwrap_or(service);
        Path::from_iter([service, &self.account.to_string(), &self.area, &self.name])
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The files of one service.
#[derive(Clone)]
pub struct Files {
    service: &'static str,
    storage: Storage,
    max_bytes: usize,
    /// Limits the files that are read in pieces at the same time.
    readings: Arc<Semaphore>,
}

#[derive(Clone)]
enum Storage {
    /// The folder is created on first use, so that a service without files does not create one.
    Folder(PathBuf, Arc<OnceLock<Arc<LocalFileSystem>>>),
    Bucket(Arc<dyn ObjectStore>),
}

impl Files {
    pub fn new(service: &'static str, settings: &FileSettings) -> Result<Self, String> {
        // HTTP clients need the process-wide default crypto provider of rustls. An error means that it is already
        // installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let storage = if settings.files_s3_bucket.is_empty() {
            Storage::Folder(settings.files_dir.clone(), Arc::default())
        } else {
            Storage::Bucket(bucket::open(settings)?)
        };
        let readings = Arc::new(Semaphore::new(reading::MAX_READINGS));
        Ok(Self { service, storage, max_bytes: settings.files_max_bytes, readings })
    }

    /// The maximum size of an uploaded file.
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// The parts of a file's reference: service, area and name.
    pub fn parts<'k>(&'k self, key: &'k Key) -> [&'k str; 3] {
        [key.service.as_deref().unwrap_or(self.service), &key.area, &key.name]
    }

    /// The reference as text, `service/area/name`, for [`Key::parse`].
    pub fn reference(&self, key: &Key) -> String {
        self.parts(key).join("/")
    }

    /// Stores a file. Storing the same content again succeeds, so that retries are safe. Other content for an existing
    /// key is a bug of the caller.
    pub async fn put(&self, key: &Key, content: impl Into<Bytes>) -> Result<(), Error> {
        // Not undone by the transaction, whose rows are.
        if scope::is_dry_run() {
            return Ok(());
        }
        let (path, content) = (key.path(self.service), content.into());
        match self.create(&path, content.clone()).await {
            Ok(true) => Ok(()),
            Ok(false) => match self.get(key).await? {
                Some(stored) if stored == content => Ok(()),
                Some(_) => Err(Error::Internal(format!("the file {path} exists with other content"))),
                // A concurrent writer has not finished, or the file was deleted in between.
                None => Err(unavailable()),
            },
            Err(error) => Err(unreachable(&*error)),
        }
    }

    /// Writes a file if it does not exist; returns whether it did.
    async fn create(&self, path: &Path, content: Bytes) -> Result<bool, Failure> {
        match &self.storage {
            Storage::Bucket(store) => {
                match store.put_opts(path, content.into(), PutMode::Create.into()).await {
                    Ok(_) => Ok(true),
                    Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
                    Err(error) => Err(error.into()),
                }
            }
            // Not through the object store, whose files are readable by all users. The parts of a path are valid file
            // names.
            Storage::Folder(folder, _) => {
                self.open()?;
                let parts: Vec<String> = path.parts().map(|part| part.as_ref().to_owned()).collect();
                let folder = folder.clone();
                tokio::task::spawn_blocking(move || create_in(folder, &parts, &content)).await?
            }
        }
    }

    pub async fn get(&self, key: &Key) -> Result<Option<Bytes>, Error> {
        let path = key.path(self.service);
        let content = match self.store()?.get(&path).await {
            Ok(found) => found.bytes().await,
            Err(error) => Err(error),
        };
        match content {
            Ok(content) => Ok(Some(content)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(unreachable(&error)),
        }
    }

    /// Opens a file for reading in pieces, for streaming.
    pub async fn open_file(&self, key: &Key) -> Result<Option<Reading>, Error> {
        let permit = Arc::clone(&self.readings).try_acquire_owned().map_err(|_| busy())?;
        let (store, path) = (self.store()?, key.path(self.service));
        match store.head(&path).await {
            Ok(found) => Reading::begin(store, path, found.size, permit).await.map(Some),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(unreachable(&error)),
        }
    }

    /// Deletes a file if it exists.
    pub async fn delete(&self, key: &Key) -> Result<(), Error> {
        if scope::is_dry_run() {
            return Ok(());
        }
        match self.store()?.delete(&key.path(self.service)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(unreachable(&error)),
        }
    }

    /// The storage location, for operators.
    pub fn place(&self) -> String {
        match &self.storage {
            Storage::Bucket(store) => store.to_string(),
            Storage::Folder(folder, _) => format!("the folder {}", folder.display()),
        }
    }

    /// Writes, reads and deletes a file that belongs to no account; the error says what failed.
    pub async fn probe(&self, id: Uuid) -> Result<(), String> {
        let key = Key::new(AccountId::trust(Uuid::nil()), "probes", id);
        let (store, path) = (self.open().map_err(|error| chain(&*error))?, key.path(self.service));
        let content = Bytes::copy_from_slice(id.as_bytes());
        let failed = |doing: &str, error: object_store::Error| format!("{doing} failed: {}", chain(&error));
        let put = self.create(&path, content.clone()).await;
        put.map_err(|error| format!("writing failed: {}", chain(&*error)))?;
        let read = match store.get(&path).await {
            Ok(found) => found.bytes().await,
            Err(error) => Err(error),
        };
        // Deleted even if the read failed.
        store.delete(&path).await.map_err(|error| failed("deleting", error))?;
        let read = read.map_err(|error| failed("reading", error))?;
        if read == content { Ok(()) } else { Err("read and written content differ".to_owned()) }
    }

    fn store(&self) -> Result<Arc<dyn ObjectStore>, Error> {
        self.open().map_err(|error| unreachable(&*error))
    }

    fn open(&self) -> Result<Arc<dyn ObjectStore>, Failure> {
        match &self.storage {
            Storage::Bucket(store) => Ok(Arc::clone(store)),
            Storage::Folder(folder, opened) => {
                if let Some(store) = opened.get() {
                    return Ok(Arc::clone(store) as Arc<dyn ObjectStore>);
                }
                private::folder(folder)?;
                private::close(&folder.join(self.service));
                let store = LocalFileSystem::new_with_prefix(folder)?;
                let store = opened.get_or_init(|| Arc::new(store.with_fsync(true)));
                Ok(Arc::clone(store) as Arc<dyn ObjectStore>)
            }
        }
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Writes a file and creates the folders above it.
fn create_in(mut folder: PathBuf, parts: &[String], content: &[u8]) -> Result<bool, Failure> {
    let (name, folders) = parts.split_last().ok_or("a file needs a name")?;
    for part in folders {
        folder.push(part);
        private::folder(&folder)?;
    }
    Ok(private::create(&folder.join(name), content)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> AccountId {
        AccountId::trust(Uuid::from_u128(7))
    }

    fn files(service: &'static str) -> Files {
        let (storage, readings) =
            (Storage::Folder(PathBuf::new(), Arc::default()), Arc::new(Semaphore::new(1)));
        Files { service, storage, max_bytes: 1, readings }
    }

    #[test]
    fn another_service_finds_the_file_that_it_was_told_of() {
        let key = Key::new(account(), "logos", Uuid::from_u128(9)).number(3);
        let reference = files("billing").reference(&key);
        assert_eq!(reference, "billing/logos/00000000000000000000000000000009-3");
        let parsed = Key::parse(account(), &reference).unwrap();
        assert_eq!(parsed.path("work"), key.path("billing"));
        assert_eq!(files("work").reference(&parsed), reference);
    }

    #[test]
    fn no_other_text_names_a_file() {
        for wrong in [
            "", "a", "a/b", "a/b/c/d", "a//c", "/a/b", "../b/c", "a/../c", "a/b/..", "a/b/C", "a/b/c\0",
            "a/b/%2e",
        ] {
            assert_eq!(Key::parse(account(), wrong), None, "{wrong}");
        }
        assert_eq!(Key::parse(account(), &format!("a/b/{}", "c".repeat(201))), None);
    }
}
