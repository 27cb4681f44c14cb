//! The bytes that a service keeps: in a folder, or in an S3 bucket.
//!
//! A file is written once and never changed; what may change gets another key with every version. A path is made of
//! the service's name, the account and what a [`Key`] can hold, so that no input ever becomes part of one. What kind
//! of file it is, and how it is called, is for the service's own tables.

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
use error::{away, busy, unreachable};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::private;

pub use orphans::{list, worker};
pub use reading::{HttpBodies, Reading};
pub use settings::{FileSettings, S3Identity};

/// Longest part of a key that another service tells of.
const MAX_PART: usize = 200;

/// Where a file is among those of a service. Made of ids, numbers and digests only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    account: AccountId,
    /// Whose file it is; none for the service that asks.
    service: Option<String>,
    area: Cow<'static, str>,
    name: String,
}

impl Key {
    /// The area says what kind of files these are, for example `logos`.
    pub fn new(account: AccountId, area: &'static str, id: Uuid) -> Self {
        Self { account, service: None, area: area.into(), name: id.simple().to_string() }
    }

    /// A file that is known by what is in it: the same content has the same key.
    pub fn of_content(account: AccountId, area: &'static str, content: &[u8]) -> Self {
        Self { account, service: None, area: area.into(), name: hex(&Sha256::digest(content)) }
    }

    /// A file of any service, by what [`Files::reference`] called it. `None` for every other text: no input becomes a
    /// path that leads elsewhere.
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

    /// One of several files of the same id, for example its version.
    #[must_use]
    pub fn number(mut self, number: u64) -> Self {
        // Not a folder of its own: what is a file may not be a folder too.
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
    place: Storage,
    max_bytes: usize,
    /// Files that are being read piece by piece.
    readings: Arc<Semaphore>,
}

#[derive(Clone)]
enum Storage {
    /// The folder is made when it is first needed: a service without files leaves no trace.
    Folder(PathBuf, Arc<OnceLock<Arc<LocalFileSystem>>>),
    Bucket(Arc<dyn ObjectStore>),
}

impl Files {
    pub fn new(service: &'static str, settings: &FileSettings) -> Result<Self, String> {
        // The program's only TLS library is told which cryptography to use; every HTTP client needs that. An error
        // means that it was told before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let place = if settings.files_s3_bucket.is_empty() {
            Storage::Folder(settings.files_dir.clone(), Arc::default())
        } else {
            Storage::Bucket(bucket::open(settings)?)
        };
        let readings = Arc::new(Semaphore::new(reading::MAX_READINGS));
        Ok(Self { service, place, max_bytes: settings.files_max_bytes, readings })
    }

    /// The largest file that is taken in from outside.
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// What other services are told of a file: the service, the area and the name in it.
    pub fn parts<'k>(&'k self, key: &'k Key) -> [&'k str; 3] {
        [key.service.as_deref().unwrap_or(self.service), &key.area, &key.name]
    }

    /// The same as one text, `service/area/name`, for [`Key::parse`].
    pub fn reference(&self, key: &Key) -> String {
        self.parts(key).join("/")
    }

    /// Keeps a file. It may be there already with the same content; other content for a key that is in use is a
    /// mistake of the caller's.
    pub async fn put(&self, key: &Key, content: impl Into<Bytes>) -> Result<(), Error> {
        let (path, content) = (key.path(self.service), content.into());
        match self.create(&path, content.clone()).await {
            Ok(true) => Ok(()),
            Ok(false) => match self.get(key).await? {
                Some(stored) if stored == content => Ok(()),
                Some(_) => Err(Error::Internal(format!("the file {path} is there with another content"))),
                // Another process is just writing it.
                None => Err(away()),
            },
            Err(error) => Err(unreachable(&*error)),
        }
    }

    /// Writes a file if there is none, and says whether it did.
    async fn create(&self, path: &Path, content: Bytes) -> Result<bool, Failure> {
        match &self.place {
            Storage::Bucket(store) => {
                match store.put_opts(path, content.into(), PutMode::Create.into()).await {
                    Ok(_) => Ok(true),
                    Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
                    Err(error) => Err(error.into()),
                }
            }
            // Not by the store, which lets everyone read what it writes. A path has no part that a folder would not.
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

    /// The same piece by piece, for what is passed on.
    pub async fn open_file(&self, key: &Key) -> Result<Option<Reading>, Error> {
        let place = Arc::clone(&self.readings).try_acquire_owned().map_err(|_| busy())?;
        let (store, path) = (self.store()?, key.path(self.service));
        match store.head(&path).await {
            Ok(found) => Reading::begin(store, path, found.size, place).await.map(Some),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(unreachable(&error)),
        }
    }

    /// Removes a file, if it is there.
    pub async fn delete(&self, key: &Key) -> Result<(), Error> {
        match self.store()?.delete(&key.path(self.service)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(unreachable(&error)),
        }
    }

    /// Where they are, for an operator.
    pub fn place(&self) -> String {
        match &self.place {
            Storage::Bucket(store) => store.to_string(),
            Storage::Folder(folder, _) => format!("the folder {}", folder.display()),
        }
    }

    /// Writes, reads and deletes a file of nobody's; says what went wrong.
    pub async fn probe(&self, id: Uuid) -> Result<(), String> {
        let key = Key::new(AccountId::trust(Uuid::nil()), "probes", id);
        let (store, path) = (self.open().map_err(|error| chain(&*error))?, key.path(self.service));
        let content = Bytes::copy_from_slice(id.as_bytes());
        let told = |doing: &str, error: object_store::Error| format!("{doing} failed: {}", chain(&error));
        let put = self.create(&path, content.clone()).await;
        put.map_err(|error| format!("writing failed: {}", chain(&*error)))?;
        let read = match store.get(&path).await {
            Ok(found) => found.bytes().await,
            Err(error) => Err(error),
        };
        // Deleted even if it could not be read.
        store.delete(&path).await.map_err(|error| told("deleting", error))?;
        let read = read.map_err(|error| told("reading", error))?;
        if read == content { Ok(()) } else { Err("what was read is not what was written".to_owned()) }
    }

    fn store(&self) -> Result<Arc<dyn ObjectStore>, Error> {
        self.open().map_err(|error| unreachable(&*error))
    }

    fn open(&self) -> Result<Arc<dyn ObjectStore>, Failure> {
        match &self.place {
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

/// Writes a file into folders inside each other, which are made if they are not there.
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
        let (place, readings) =
            (Storage::Folder(PathBuf::new(), Arc::default()), Arc::new(Semaphore::new(1)));
        Files { service, place, max_bytes: 1, readings }
    }

    #[test]
    fn another_service_finds_the_file_that_it_was_told_of() {
        let key = Key::new(account(), "logos", Uuid::from_u128(9)).number(3);
        let reference = files("billing").reference(&key);
        assert_eq!(reference, "billing/logos/00000000000000000000000000000009-3");
        let heard = Key::parse(account(), &reference).unwrap();
        assert_eq!(heard.path("work"), key.path("billing"));
        assert_eq!(files("work").reference(&heard), reference);
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
