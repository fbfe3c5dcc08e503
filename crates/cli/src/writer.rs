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
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a writer waits for another one. Writing a file takes far less, but a stopped process
/// holds its lock forever.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval between two attempts to lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum length of a chain of symbolic links, as in the system.
const MAX_LINKS: usize = 40;

/// A file that is about to be written. If it is dropped without [`Writer::write`], the file remains
/// unchanged.
#[derive(Debug)]
pub(crate) struct Writer {
    /// The path that the user gave.
    path: PathBuf,
    target: Target,
}

/// How a path is written.
#[derive(Debug)]
enum Target {
    /// A regular file that does not exist or can be replaced.
    Replace(Temporary),
    /// A regular file that is written in place, locked.
    InPlace(File),
    /// A regular file that is this process's standard output or error; the content is appended to
    /// the stream.
    Printed(Stream),
    /// A device or a pipe, or a file without room for a temporary file beside it.
    Direct,
}

#[derive(Debug, Clone, Copy)]
enum Stream {
    Output,
    Error,
}

/// A locked temporary file beside its destination, removed when it is dropped.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    file: File,
    destination: PathBuf,
    /// Permissions of the file that it replaces.
    mode: Option<Permissions>,
    renamed: bool,
}

/// Makes sure that files can be written and are all different, before the work that produces them
/// starts. Each path comes with the name of its option.
pub(crate) fn writable(outputs: &[(&str, Option<&Path>)]) -> Result<()> {
    let outputs = outputs
        .iter()
        .filter_map(|&(name, path)| Some((name, path?)));
    let outputs: Vec<_> = outputs.collect();
    for (i, &(option, path)) in outputs.iter().enumerate() {
        if path.as_os_str() == "-" {
            bail!("{option} writes a file: standard output has the text, or JSON with --json");
        }
        let mut before = outputs[..i].iter();
        if let Some((other, _)) = before.find(|(_, other)| is_same_file(other, path)) {
            bail!(
                "{other} and {option} name the same file, {}",
                path.display()
            );
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

    fn open_within(path: &Path, timeout: Duration) -> Result<Writer> {
        let target =
            target_of(path, timeout).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Writer {
            path: path.to_path_buf(),
            target,
        })
    }

    /// Returns the current content, which no other writer changes until this writer is dropped.
    /// Returns `None` if the file does not exist or cannot be read back.
    pub(crate) fn current(&self) -> Result<Option<Vec<u8>>> {
        match &self.target {
            Target::Replace(Temporary { mode: None, .. }) | Target::Printed(_) | Target::Direct => {
                Ok(None)
            }
            Target::Replace(_) | Target::InPlace(_) => fs::read(&self.path)
                .map(Some)
                .with_context(|| format!("cannot read {}", self.path.display())),
        }
    }

    /// Writes the file.
    pub(crate) fn write(self, content: &[u8]) -> Result<()> {
        let Writer { path, target } = self;
        let written = match target {
            Target::Replace(temporary) => temporary.replace(content),
            Target::InPlace(file) => overwrite(&file, content),
            Target::Printed(Stream::Output) => io::stdout().write_all(content),
            Target::Printed(Stream::Error) => io::stderr().write_all(content),
            Target::Direct => fs::write(&path, content),
        };
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

fn target_of(path: &Path, timeout: Duration) -> Result<Target> {
    let old = match fs::metadata(path) {
        Ok(old) if old.is_dir() => bail!("it is a folder"),
        // Opening a pipe may wake its reader, so it is opened only for writing the content.
        Ok(old) if !old.is_file() => return Ok(Target::Direct),
        Ok(old) => old,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let destination = follow_links(path)?;
            return match Temporary::create(&destination, 0o666, timeout) {
                Ok(temporary) => Ok(Target::Replace(temporary)),
                Err(e) if e.kind() == ErrorKind::PermissionDenied => Err(e.into()),
                Err(e) if is_permanent(&e) => Ok(Target::Direct),
                Err(e) => Err(e.into()),
            };
        }
        Err(e) => return Err(e.into()),
    };
    if let Some(stream) = printed(&old) {
        return Ok(Target::Printed(stream));
    }
    // A process without permission to write the file must not replace it either.
    let file = OpenOptions::new().write(true).open(path)?;
    // A link of the system itself (`/proc/self/fd/3`) may lead to a file that no longer has a path.
    let destination = fs::canonicalize(path).ok();
    let destination = destination.filter(|at| fs::metadata(at).is_ok_and(|at| is_same(&at, &old)));
    if let Some(destination) = destination.filter(|_| old.nlink() == 1) {
        match Temporary::create(&destination, old.mode() & 0o777, timeout) {
            Ok(temporary) => return Ok(Target::Replace(temporary)),
            Err(e) if is_permanent(&e) => {}
            Err(e) => return Err(e.into()),
        }
    }
    lock(&file, timeout)?;
    Ok(Target::InPlace(file))
}

/// Whether this error means that a temporary file can never be created beside the destination.
fn is_permanent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::InvalidFilename | ErrorKind::Unsupported
    )
}

/// Returns the file that a dangling path would create, after following its links.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut end = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&end) else {
            break;
        };
        // Links are relative to their folder.
        end.pop();
        end.push(next);
    }
    if end.as_os_str().as_encoded_bytes().ends_with(b"/") || end.file_name().is_none() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a file name"));
    }
    Ok(end)
}

/// Whether two paths lead to the same regular file, existing or not.
fn is_same_file(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        let end = follow_links(path).ok()?;
        let folder = match end.parent()? {
            here if here.as_os_str().is_empty() => Path::new("."),
            folder => folder,
        };
        Some(fs::canonicalize(folder).ok()?.join(end.file_name()?))
    };
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => a.is_file() && is_same(&a, &b),
        (Err(_), Err(_)) => a == b || place(a).is_some_and(|a| place(b) == Some(a)),
        _ => false,
    }
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Returns which of the standard streams the file is, if any.
fn printed(file: &Metadata) -> Option<Stream> {
    let is = |stream: io::Result<_>| {
        let stream = stream.and_then(|stream| File::from(stream).metadata());
        stream.is_ok_and(|stream| is_same(&stream, file))
    };
    if is(io::stdout().as_fd().try_clone_to_owned()) {
        Some(Stream::Output)
    } else if is(io::stderr().as_fd().try_clone_to_owned()) {
        Some(Stream::Error)
    } else {
        None
    }
}

/// Locks a file, if the system supports that.
fn lock(file: &File, timeout: Duration) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match try_lock(file) {
            Ok(false) => wait(start, timeout, "it")?,
            Ok(true) => return Ok(()),
            Err(e) if e.kind() == ErrorKind::Unsupported => return Ok(()),
            Err(e) => return Err(e),
        }
    }
}

/// Tries to lock a file and returns whether it succeeded. [`ErrorKind::Unsupported`] if files
/// cannot be locked.
fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(e)) => Err(io::Error::new(ErrorKind::Unsupported, e)),
    }
}

/// Waits briefly for another writer that has locked `what`; an error after `timeout`.
fn wait(start: Instant, timeout: Duration, what: impl fmt::Display) -> io::Result<()> {
    if start.elapsed() < timeout {
        std::thread::sleep(LOCK_INTERVAL);
        return Ok(());
    }
    let seconds = timeout.as_secs_f64();
    let message = format!(
        "another process has been writing the file for {seconds} s and holds {what} locked"
    );
    Err(io::Error::new(ErrorKind::TimedOut, message))
}

/// Writes a file in place.
fn overwrite(mut file: &File, content: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)
}

impl Temporary {
    /// Creates the temporary file for `destination` with this mode, or with mode and owner of the
    /// existing destination.
    fn create(destination: &Path, mode: u32, timeout: Duration) -> io::Result<Temporary> {
        let mut name = OsString::from(".");
        name.push(destination.file_name().unwrap_or_default());
        name.push(".oneport-tmp");
        let path = destination.with_file_name(name);
        let mut temporary = Temporary {
            file: create_locked(&path, mode, timeout)?,
            path,
            destination: destination.to_path_buf(),
            mode: None,
            renamed: false,
        };
        // Another process may have written the destination while this one waited for the lock.
        if let Ok(old) = fs::metadata(destination) {
            let mine = temporary.file.metadata()?;
            if (mine.uid(), mine.gid()) != (old.uid(), old.gid()) {
                fchown(&temporary.file, Some(old.uid()), Some(old.gid()))?;
            }
            temporary.mode = Some(old.permissions());
        }
        Ok(temporary)
    }

    fn replace(mut self, content: &[u8]) -> io::Result<()> {
        self.file.write_all(content)?;
        if let Some(mode) = self.mode.take() {
            self.file.set_permissions(mode)?;
        }
        fs::rename(&self.path, &self.destination)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // The file is still locked, so nobody else uses its name.
        if !self.renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Creates an empty, locked temporary file. The process that has locked the file with this name is
/// the writer; another process may have created it.
fn create_locked(path: &Path, mode: u32, timeout: Duration) -> io::Result<File> {
    let start = Instant::now();
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    loop {
        let created = options.clone().create_new(true).mode(mode).open(path);
        let is_mine = created.is_ok();
        let file = match created {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                match open_existing(path, &options)? {
                    Some(file) => file,
                    None => continue,
                }
            }
            created => created?,
        };
        let has_name = || {
            let named = fs::symlink_metadata(path);
            let held = file.metadata()?;
            Ok::<_, io::Error>(named.is_ok_and(|named| is_same(&named, &held)))
        };
        let is_locked = try_lock(&file).inspect_err(|_| {
            if is_mine {
                let _ = fs::remove_file(path);
            }
        })?;
        if !is_locked {
            wait(start, timeout, path.display())?;
        } else if has_name()? {
            if file.metadata()?.len() == 0 {
                return Ok(file);
            }
            // Left by a killed writer.
            fs::remove_file(path)?;
        }
    }
}

/// Opens the existing temporary file, unless it has disappeared.
fn open_existing(path: &Path, options: &OpenOptions) -> io::Result<Option<File>> {
    let in_the_way = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    match fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => {
            let message = format!("{} is in the way: it is not a file", path.display());
            return Err(io::Error::new(ErrorKind::AlreadyExists, message));
        }
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(in_the_way(e)),
    }
    match options.open(path) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(in_the_way(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_another_writer_ends_after_a_timeout() {
        let folder = std::env::temp_dir().join(format!("oneport-writer-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("r.json");
        let timeout = Duration::from_millis(20);
        let first = Writer::open(&path).unwrap();
        let message = format!("{:#}", Writer::open_within(&path, timeout).unwrap_err());
        for part in [
            "cannot write ",
            "r.json: another process has",
            ".r.json.oneport-tmp locked",
        ] {
            assert!(message.contains(part), "{message}");
        }
        // The second writer reads what the first has written.
        first.write(b"first").unwrap();
        let second = Writer::open(&path).unwrap();
        assert_eq!(second.current().unwrap().as_deref(), Some(&b"first"[..]));
        drop(second);

        // When written in place, the file itself is locked.
        fs::hard_link(&path, folder.join("other")).unwrap();
        let first = Writer::open(&path).unwrap();
        assert!(matches!(first.target, Target::InPlace(_)));
        let message = format!("{:#}", Writer::open_within(&path, timeout).unwrap_err());
        assert!(message.contains("r.json: another process has"), "{message}");
        first.write(b"1st").unwrap();
        let second = Writer::open(&folder.join("other")).unwrap();
        assert_eq!(second.current().unwrap().as_deref(), Some(&b"1st"[..]));
        drop(second);
        let left = fs::read_dir(&folder).unwrap().count();
        assert_eq!(left, 2);
        fs::remove_dir_all(&folder).unwrap();
    }
}
