//! Files and folders that only the user of the process can read.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use uuid::Uuid;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Creates a folder and its parents if they do not exist.
pub(crate) fn folder(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    // Parents get default permissions, because they may not be for this process alone.
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        outcome => outcome,
    }
}

/// Removes the permissions of other users from an existing folder, which an earlier version may have created with them.
pub(crate) fn close(path: &Path) {
    if path.is_dir()
        && let Err(error) = std::fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE))
    {
        tracing::warn!(%error, path = %path.display(), "a folder may be readable by other users");
    }
}

/// Writes a file atomically and replaces an existing file.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    staged(path, content, |from| std::fs::rename(from, path))
}

/// Writes a file atomically if it does not exist; returns whether it did. The file and its folder entry are synced, so
/// that it survives a crash of the machine.
pub(crate) fn create(path: &Path, content: &[u8]) -> Result<bool, Error> {
    let mut created = true;
    staged(path, content, |from| match std::fs::hard_link(from, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            created = false;
            Ok(())
        }
        outcome => outcome,
    })?;
    if let Some(folder) = path.parent().filter(|_| created) {
        File::open(folder)?.sync_all()?;
    }
    Ok(created)
}

/// Writes a temporary file in the same folder, which `place` then renames or links. The temporary file is removed
/// afterwards, unless the process is killed.
fn staged(path: &Path, content: &[u8], place: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
    let mut name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_owned();
    name.push(format!("#{}", Uuid::new_v4().simple()));
    let temporary = path.with_file_name(name);
    let written = write(&temporary, content).and_then(|()| place(&temporary));
    match std::fs::remove_file(&temporary) {
        // A renamed file no longer exists, and a file that could not be created never did.
        Err(error) if error.kind() != ErrorKind::NotFound && written.is_ok() => Err(error),
        _ => written,
    }
}

fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_and_folders_are_for_nobody_else() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("above/inner");
        folder(&inner).unwrap();
        folder(&inner).unwrap();
        let path = inner.join("file");
        assert!(create(&path, b"one").unwrap());
        assert!(!create(&path, b"two").unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        replace(&path, b"three").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"three");
        assert_eq!((mode(&inner), mode(&path)), (0o700, 0o600));
        assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 1, "nothing is left beside it");
        let open = root.path().join("above");
        std::fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        close(&open);
        assert_eq!(mode(&open), 0o700);
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        std::fs::write(&path, "").unwrap();
        assert!(folder(&path).is_err() && folder(&path.join("inner")).is_err());
        assert!(create(&path.join("inner"), b"x").is_err());
        assert!(replace(root.path(), b"x").is_err(), "a folder is in the way");
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
    }
}
