//! Files and folders that only the user of the process can read.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use uuid::Uuid;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Makes a folder, if it is not there, and those above it.
pub(crate) fn folder(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    // Those above it are for whoever made room for us.
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        outcome => outcome,
    }
}

/// Takes the rights of others to a folder away, if it is there and ours: it may have been made before that was usual.
pub(crate) fn close(path: &Path) {
    if path.is_dir()
        && let Err(error) = std::fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE))
    {
        tracing::warn!(%error, path = %path.display(), "a folder may be open to others");
    }
}

/// Puts a file in place, whole or not at all, over what was there.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    staged(path, content, |from| std::fs::rename(from, path))
}

/// Puts a file in place, whole or not at all, if there is none; says whether it did. Kept even if the machine stops.
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

/// Writes beside the place, and moves that there when it is complete. Nothing is left beside it, except when the process
/// is killed.
fn staged(path: &Path, content: &[u8], place: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
    let mut name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_owned();
    name.push(format!("#{}", Uuid::new_v4().simple()));
    let beside = path.with_file_name(name);
    let written = write(&beside, content).and_then(|()| place(&beside));
    match std::fs::remove_file(&beside) {
        // A renamed one is gone, and one that could not be made was never there.
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
