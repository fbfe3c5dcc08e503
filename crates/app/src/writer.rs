//! Atomic file writing: a file is written completely or not at all, by one process at a time.
//!
//! A regular file is replaced: the new content goes into `.NAME.oneport-tmp` in the same folder,
//! which is then renamed. If the path is a symbolic link, its target is replaced. Mode and owner
//! are kept.
//!
//! The writer holds an advisory lock on the temporary file until the rename:
//!
//! - Another writer waits for the lock. A process that reads the file with [`Writer::current`] and
//!   then writes it therefore loses nothing of what the other process wrote.
//! - The system releases the lock when a process ends for any reason. An unlocked temporary file
//!   with content was left by a killed writer, and the next writer removes it.
//!
//! A file that cannot be replaced is written in place, under a lock on the file itself. This is the
//! case if it has other hard links, if its owner would change, or if no file may be created in its
//! folder.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::{NamedTempFile, TempPath};

/// How long a writer waits for another one. Writing a file takes far less, but a stopped process
/// holds its lock forever.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// A file that is about to be written. If it is dropped without [`Writer::write`], the file remains
/// unchanged.
#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A regular file that does not exist or can be replaced: by this one beside it.
    Replace(NamedTempFile, PathBuf),
    /// A regular file that is written in place, locked.
    InPlace(File),
    /// A regular file that is this process's standard output or error, after what is there.
    Output,
    Error,
    /// A device or a pipe, or a file without room for a temporary file beside it.
    Direct,
}

/// A folder that a command makes for files. Those that are empty when it is dropped are removed: a
/// command that fails leaves none behind.
#[derive(Debug)]
pub(crate) struct NewFolder {
    /// The folder and its parents that were not there, the innermost first.
    made: Vec<PathBuf>,
}

impl NewFolder {
    /// Makes the folder and its parents, unless they exist.
    pub(crate) fn make(folder: &Path) -> Result<NewFolder> {
        let above = folder
            .ancestors()
            .filter(|path| !path.as_os_str().is_empty());
        let made = above.take_while(|path| !path.exists());
        let new = NewFolder {
            made: made.map(Path::to_path_buf).collect(),
        };
        fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
        Ok(new)
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        for folder in &self.made {
            // The system refuses to remove one that is not empty.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Makes sure that files can be written and are all different, before the work that produces them
/// starts. Each path comes with the name of its option.
pub(crate) fn writable(outputs: &[(&str, Option<&Path>)]) -> Result<()> {
    let outputs = outputs.iter();
    let outputs = outputs.filter_map(|&(name, path)| Some((name, path?)));
    let outputs: Vec<(&str, &Path)> = outputs.collect();
    for (i, &(option, path)) in outputs.iter().enumerate() {
        if path.as_os_str() == "-" {
            bail!("{option} writes a file: standard output has the text, or JSON with --json");
        }
        let mut before = outputs[..i].iter();
        if let Some((other, _)) = before.find(|(_, other)| is_same_file(other, path)) {
            let path = path.display();
            bail!("{other} and {option} name the same file, {path}");
        }
        Writer::open(path)?;
    }
    Ok(())
}

impl Writer {
    /// Prepares to write `path`; waits while another process writes it.
    pub(crate) fn open(path: &Path) -> Result<Writer> {
        Writer::open_within(path, LOCK_TIMEOUT)
    }

    pub(crate) fn open_within(path: &Path, timeout: Duration) -> Result<Writer> {
        let failed = || format!("cannot write {}", path.display());
        let target = target_of(path, timeout).with_context(failed)?;
        let path = path.to_path_buf();
        Ok(Writer { path, target })
    }

    /// Returns the current content, which no other writer changes until this writer is dropped.
    /// Returns `None` if the file does not exist or cannot be read back.
    pub(crate) fn current(&self) -> Result<Option<Vec<u8>>> {
        if !matches!(self.target, Target::Replace(..) | Target::InPlace(_)) {
            return Ok(None);
        }
        match fs::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            content => content
                .map(Some)
                .with_context(|| format!("cannot read {}", self.path.display())),
        }
    }

    pub(crate) fn write(self, content: &[u8]) -> Result<()> {
        let written = match self.target {
            Target::Replace(mut temporary, destination) => temporary
                .write_all(content)
                .and_then(|()| Ok(temporary.persist(destination).map(|_| ())?)),
            Target::InPlace(file) => overwrite(&file, content),
            Target::Output => io::stdout().write_all(content),
            Target::Error => io::stderr().write_all(content),
            Target::Direct => fs::write(&self.path, content),
        };
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn target_of(path: &Path, timeout: Duration) -> Result<Target> {
    let old = match fs::metadata(path) {
        Ok(old) if old.is_dir() => bail!("it is a folder"),
        // Opening a pipe may wake its reader, so it is opened only for writing the content.
        Ok(old) if !old.is_file() => return Ok(Target::Direct),
        Ok(old) => old,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let destination = destination(path)?;
            return match temporary(&destination, 0o666, timeout) {
                Ok(temporary) => Ok(Target::Replace(temporary, destination)),
                Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(error.into()),
                Err(error) if is_permanent(&error) => Ok(Target::Direct),
                Err(error) => Err(error.into()),
            };
        }
        Err(error) => return Err(error.into()),
    };
    if is_stream(&old, io::stdout().as_fd()) {
        return Ok(Target::Output);
    }
    if is_stream(&old, io::stderr().as_fd()) {
        return Ok(Target::Error);
    }
    // A process without permission to write the file must not replace it either.
    let file = OpenOptions::new().write(true).open(path)?;
    // A link of the system itself (`/proc/self/fd/3`) may lead to a file that no longer has a path.
    let destination = destination(path).ok().filter(|at| is_at(at, &old));
    if let Some(destination) = destination.filter(|_| old.nlink() == 1) {
        match temporary(&destination, old.mode() & 0o777, timeout) {
            Ok(temporary) => return Ok(Target::Replace(temporary, destination)),
            Err(error) if is_permanent(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    match lock(&file, "it", timeout) {
        Err(error) if error.kind() != ErrorKind::Unsupported => Err(error.into()),
        _ => Ok(Target::InPlace(file)),
    }
}

/// Whether this error means that a temporary file can never be created beside the destination.
fn is_permanent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::InvalidFilename | ErrorKind::Unsupported
    )
}

/// Returns the file that a path leads to, or would create.
fn destination(path: &Path) -> io::Result<PathBuf> {
    if fs::metadata(path).is_ok() {
        return fs::canonicalize(path);
    }
    // Links are relative to their folder.
    let folder = path.parent().unwrap_or(path);
    if let Ok(next) = fs::read_link(path) {
        return destination(&folder.join(next));
    }
    let name = path.file_name();
    let name = name.filter(|_| !path.as_os_str().as_encoded_bytes().ends_with(b"/"));
    let name = name.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "not a file name"))?;
    Ok(fs::canonicalize(Path::new(".").join(folder))?.join(name))
}

/// Whether two paths lead to the same regular file, existing or not.
fn is_same_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => a.is_file() && is_same(&a, &b),
        (Err(_), Err(_)) => {
            a == b || destination(a).is_ok_and(|a| destination(b).is_ok_and(|b| a == b))
        }
        _ => false,
    }
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Whether the path itself, which may be a link, is this file.
fn is_at(path: &Path, file: &Metadata) -> bool {
    fs::symlink_metadata(path).is_ok_and(|there| is_same(&there, file))
}

fn is_stream(file: &Metadata, stream: impl AsFd) -> bool {
    let stream = stream.as_fd().try_clone_to_owned();
    let stream = stream.and_then(|stream| File::from(stream).metadata());
    stream.is_ok_and(|stream| is_same(&stream, file))
}

/// Locks a file, which messages call `name`. [`ErrorKind::Unsupported`] if files cannot be locked.
fn lock(file: &File, name: &str, timeout: Duration) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => {
                return Err(io::Error::new(ErrorKind::Unsupported, error));
            }
            Err(TryLockError::WouldBlock) if start.elapsed() < timeout => {
                std::thread::sleep(LOCK_INTERVAL);
            }
            Err(TryLockError::WouldBlock) => {
                let seconds = timeout.as_secs_f64();
                let message = format!(
                    "another process has been writing the file for {seconds} s and holds {name} locked"
                );
                return Err(io::Error::new(ErrorKind::TimedOut, message));
            }
        }
    }
}

fn overwrite(mut file: &File, content: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)
}

/// Creates an empty, locked temporary file for `destination`, with this mode, or with mode and
/// owner of the existing destination.
fn temporary(destination: &Path, mode: u32, timeout: Duration) -> io::Result<NamedTempFile> {
    let mut name = OsString::from(".");
    name.push(destination.file_name().unwrap_or_default());
    name.push(".oneport-tmp");
    let path = destination.with_file_name(name);
    loop {
        if fs::symlink_metadata(&path).is_ok_and(|there| !there.is_file()) {
            let message = format!("{} is in the way: it is not a file", path.display());
            return Err(io::Error::new(ErrorKind::AlreadyExists, message));
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(mode);
        let file = options.open(&path)?;
        match lock(&file, &path.to_string_lossy(), timeout) {
            Err(error) if error.kind() == ErrorKind::TimedOut => return Err(error),
            // The process that has locked the file with this name is the writer.
            Ok(()) if !is_at(&path, &file.metadata()?) => continue,
            locked => {
                // Removed when it is dropped.
                let path = TempPath::try_from_path(&path)?;
                let temporary = NamedTempFile::from_parts(file, path);
                locked?;
                let (file, mine) = (temporary.as_file(), temporary.as_file().metadata()?);
                if mine.len() > 0 {
                    // Left by a killed writer.
                    continue;
                }
                // Another process may have written the destination meanwhile.
                if let Ok(old) = fs::metadata(destination) {
                    if (mine.uid(), mine.gid()) != (old.uid(), old.gid()) {
                        fchown(file, Some(old.uid()), Some(old.gid()))?;
                    }
                    file.set_permissions(old.permissions())?;
                }
                return Ok(temporary);
            }
        }
    }
}
